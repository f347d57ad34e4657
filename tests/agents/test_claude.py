"""Claude Code tells in records what it does, and which of our lines it has taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gittasks.agents import claude
from gittasks.agents.base import (
    Activity,
    Compacted,
    Event,
    Exited,
    Retrying,
    Settled,
    Started,
    Usage,
)
from tests.agents.conversation import NOW, Conversation, probe, spec
from tests.support.player import heard, plan

Record = dict[str, Any]

INIT = {"type": "system", "subtype": "init", "session_id": "the-session"}
SESSION = Started("the-session")


def acted(*content: Record, **usage: int) -> Record:
    message = {"id": "msg_1", "content": list(content), "usage": usage}
    return {"type": "assistant", "message": message}


CALL = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make"}}
CALLED = {
    "type": "user",
    "message": {"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
}
MODELS = {
    "big": {"inputTokens": 900, "outputTokens": 90, "contextWindow": 2000},
    "small": {"inputTokens": 9, "outputTokens": 1, "contextWindow": 1000},
}
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "stop_reason": "end_turn",
    "total_cost_usd": 0.5,
    "modelUsage": MODELS,
}
PLAIN = {"type": "result", "is_error": False}


def taken(uuid: str) -> Record:
    return {"type": "user", "isReplay": True, "uuid": uuid, "message": {"content": "words"}}


def read(reader: claude.Reader, *found: Record) -> list[Event]:
    return [event for record in found for event in reader.read(record, NOW)]


def prompted() -> claude.Reader:
    reader = claude.Reader()
    reader.prompted("p1")
    read(reader, INIT, taken("p1"))
    return reader


def talk_to(folder: Path, *steps: Record, **more: Any) -> Conversation:
    what = spec(folder, "claude", *plan(folder, list(steps)), HOME=str(folder))
    return Conversation(what._replace(**more))


def says(*found: Record | str) -> list[Record]:
    return [{"say": record} for record in found]


OPTIONS = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--replay-user-messages",
    "--strict-mcp-config",
    "--setting-sources",
    "user",
    "--permission-mode",
    "dontAsk",
    "--allowedTools",
    "Bash,Read,Edit,Write,Glob,Grep",
]


def test_a_turn_is_told_from_its_start_to_its_end(tmp_path: Path) -> None:
    used = {"input_tokens": 300, "cache_read_input_tokens": 200, "output_tokens": 1}
    talk = talk_to(
        tmp_path,
        {"hear": "user"},
        {"err": "a warning"},
        *says("no record", {"type": "new"}, INIT, acted(CALL, **used), acted(**used)),
        *says(CALLED, RESULT),
    )
    told = talk.turn("-p")
    talk.run.close()
    assert [*told, *talk.ended()] == [
        SESSION,
        Activity(),
        Usage(tokens=500),
        Activity("Bash", "make", '{"command": "make"}'),
        Activity("Bash", is_over=True),
        Usage(0.5, 1000, 91, 25.0),
        Settled("done"),
        Exited(0),
    ]
    options, line = heard(tmp_path)
    assert (options, line["message"], line["type"]) == (
        OPTIONS,
        {"role": "user", "content": "Note: -p"},
        "user",
    )
    assert (talk.run.session, talk.run.pid) == ("the-session", None)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_session_goes_on_only_where_it_is_kept(tmp_path: Path, is_there: bool) -> None:
    kept = tmp_path / ".claude" / "projects" / "-the-tree"
    kept.mkdir(parents=True)
    if is_there:
        (kept / "the-session.jsonl").touch()
    talk = talk_to(tmp_path, {"exit": 0}, session="the-session")
    talk.ended()
    options = ["--resume", "the-session"] if is_there else []
    assert heard(tmp_path) == [[*OPTIONS, *options]]
    assert talk.run.session == ("the-session" if is_there else None)


def test_the_model_is_asked_for_and_nothing_runs_in_the_background(tmp_path: Path) -> None:
    what = spec(
        tmp_path, "claude", "sh", "-c", 'echo $0 "$@" $CLAUDE_CODE_DISABLE_BACKGROUND_TASKS'
    )
    talk = Conversation(what._replace(program=what.program._replace(model="opus")))
    talk.ended()
    assert talk.log.read_text() == f"{' '.join(OPTIONS)} --model opus 1\n"


def test_closing_breaks_off_the_turn_that_goes_on(tmp_path: Path) -> None:
    aborted = {**PLAIN, "is_error": True, "terminal_reason": "aborted_tools"}
    talk = talk_to(tmp_path, {"hear": "user"}, {"hear": "interrupt"}, {"say": aborted})
    talk.run.prompt("Work.")
    talk.run.close()
    assert talk.ended() == [Settled("aborted"), Exited(0)]


def test_a_program_that_cannot_begin_is_an_error_that_stays(tmp_path: Path) -> None:
    talk = talk_to(tmp_path, {"err": "error: unknown option"}, {"exit": 1})
    talk.run.prompt("Work.")
    failed = Settled("error", "error: unknown option", is_retryable=False)
    assert talk.ended() == [failed, Exited(1)]


def test_a_program_that_is_gone_in_the_middle_has_died(tmp_path: Path) -> None:
    talk = talk_to(tmp_path, {"hear": "user"}, {"say": INIT}, {"err": "oh"}, {"exit": 3})
    talk.run.prompt("Work.")
    assert talk.ended() == [SESSION, Activity(), Exited(3)]


FAILED = {"is_error": True, "subtype": "success", "terminal_reason": "api_error"}


@pytest.mark.parametrize(
    ("result", "settled"),
    [
        ({"subtype": "error_of_old", "is_error": False}, Settled("done")),
        ({"is_error": False, "stop_reason": "refusal", "result": "No."}, Settled("refused", "No.")),
        ({"is_error": False, "stop_reason": "max_tokens"}, Settled("length")),
        (
            {**FAILED, "api_error_status": 401, "result": "Failed. API Error: 401"},
            Settled("error", "Failed. API Error: 401"),
        ),
        (
            {**FAILED, "api_error_status": 400, "result": "prompt is too long"},
            Settled("error", "prompt is too long", is_retryable=False),
        ),
        ({**FAILED, "api_error_status": 429, "result": "Wait."}, Settled("limit", "Wait.")),
        ({**FAILED, "api_error_status": 529, "result": "Busy."}, Settled("error", "Busy.")),
        (
            {**FAILED, "api_error": "max_output_tokens", "result": "Too long."},
            Settled("length", "Too long."),
        ),
        (
            {"is_error": True, "terminal_reason": "aborted_streaming", "errors": ["x"]},
            Settled("aborted"),
        ),
        (
            {"is_error": True, "subtype": "error_during_execution", "errors": ["a", "b"]},
            Settled("error", "a; b"),
        ),
        ({"is_error": True, "subtype": "error_max_turns"}, Settled("error", "error_max_turns")),
    ],
)
def test_a_result_tells_how_the_turn_ended(result: Record, settled: Settled) -> None:
    assert read(prompted(), {"type": "result", **result}) == [settled]


def test_a_limit_ends_when_the_record_of_the_limit_says_so() -> None:
    def limit(status: str) -> Record:
        info = {"status": status, "resetsAt": int(NOW) + 60}
        return {"type": "rate_limit_event", "rate_limit_info": info}

    failed = {"type": "result", "is_error": True, "api_error_status": 429, "result": "Wait."}
    assert read(prompted(), limit("rejected"), failed) == [
        Settled("limit", "Wait.", until=NOW + 60)
    ]
    assert read(prompted(), limit("rejected"), limit("allowed"), failed) == [
        Settled("limit", "Wait.")
    ]


def test_an_interrupted_turn_is_aborted() -> None:
    reader = prompted()
    reader.is_interrupted = True
    failed = {"type": "result", "is_error": True, "subtype": "error_during_execution"}
    assert read(reader, failed) == [Settled("aborted")]


def test_words_that_come_too_late_belong_to_the_same_turn() -> None:
    reader = prompted()
    reader.steered("s1")
    assert read(reader, PLAIN, taken("s1")) == []
    assert read(reader, PLAIN) == [Settled("done")]


def test_words_that_are_taken_in_the_turn_do_not_make_it_longer() -> None:
    reader = prompted()
    reader.steered("s1")
    assert read(reader, taken("s1"), PLAIN) == [Settled("done")]


def test_words_left_from_a_turn_that_was_broken_off_end_no_other_one() -> None:
    reader = prompted()
    reader.steered("s1")
    reader.is_interrupted = True
    first = read(reader, PLAIN)
    reader.prompted("p2")
    assert (first, read(reader, taken("s1"), PLAIN)) == ([Settled("done")], [])
    assert read(reader, taken("p2"), PLAIN) == [Settled("done")]


def test_without_any_word_of_what_was_taken_every_result_ends_a_turn() -> None:
    reader = claude.Reader()
    reader.prompted("p1")
    reader.steered("s1")
    assert read(reader, PLAIN, PLAIN) == [Settled("done")]


def test_tries_shortened_histories_and_later_turns_are_told() -> None:
    again = {
        "type": "system",
        "subtype": "api_retry",
        "attempt": 2,
        "error_status": 529,
        "error": "overloaded",
    }
    shortened = {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"trigger": "auto"},
    }
    told = read(prompted(), INIT, again, shortened, {"type": "system", "subtype": "status"})
    assert told == [Activity(), Retrying(2, "529 overloaded"), Compacted("auto")]


def test_a_helper_of_the_agent_counts_only_with_its_result() -> None:
    helper = {**acted(CALL, input_tokens=70), "parent_tool_use_id": "c0"}
    told = read(prompted(), helper, {**PLAIN, "total_cost_usd": 0.25})
    called = Activity("Bash", "make", '{"command": "make"}')
    assert told == [called, Usage(0.25), Settled("done")]


@pytest.mark.parametrize(
    ("version", "problems"),
    [
        ("2.1.332 (Claude Code)", ()),
        ("2.0.9", ("Claude Code 2.1 or newer is needed, and 2.0.9 is here.",)),
    ],
)
def test_an_old_program_is_a_problem(
    tmp_path: Path, version: str, problems: tuple[str, ...]
) -> None:
    assert probe("claude", *plan(tmp_path, version=version)) == problems


def test_a_program_that_is_not_there_or_not_whole_is_a_problem(tmp_path: Path) -> None:
    found = probe("claude", "/no/claude"), probe("claude", "false")
    assert found == (
        ("There is no program /no/claude here.",),
        ("false does not tell its version, so it may not be whole.",),
    )
