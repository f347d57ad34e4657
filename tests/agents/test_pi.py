"""pi tells in records what it does, and is asked for its session, its model and its costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gittasks.agents import pi
from gittasks.agents.base import (
    Activity,
    Compacted,
    Event,
    Exited,
    Program,
    Retrying,
    Settled,
    Started,
    Usage,
)
from tests.agents.conversation import NOW, Conversation, probe, spec
from tests.support.player import heard, plan

Record = dict[str, Any]

PROGRAM = Program("pi", "local", "fake-model")
STATE = {
    "id": "state",
    "type": "response",
    "success": True,
    "data": {"model": {"id": "fake-model"}, "sessionFile": "/the/session.jsonl"},
}
START = {"type": "agent_start"}
TOOL = {"type": "tool_execution_start", "toolName": "bash", "args": {"command": "make"}}
TOOL_END = {"type": "tool_execution_end", "toolName": "bash", "isError": False}
SETTLED = {"type": "agent_settled", "aborted": False}
STATS = {
    "id": "settled",
    "type": "response",
    "success": True,
    "data": {
        "tokens": {"output": 13, "total": 2840},
        "cost": 0.25,
        "contextUsage": {"percent": 1.5},
    },
}
USAGE = Usage(0.25, 2840, 13, 1.5)
STARTED = Started("/the/session.jsonl")


def ended(stop: str, **more: str) -> Record:
    return {"type": "message_end", "message": {"role": "assistant", "stopReason": stop, **more}}


def ready(program: Program = PROGRAM) -> pi.Reader:
    reader = pi.Reader(program)
    reader.read(STATE, NOW)
    reader.prompt("Work.")
    reader.commands()
    return reader


def read(reader: pi.Reader, *found: Record) -> list[Event]:
    return [event for record in found for event in reader.read(record, NOW)]


def talk_to(folder: Path, *steps: Record, version: str = "99.0.0", **more: str) -> Conversation:
    what = spec(folder, "pi", *plan(folder, list(steps), version=version))
    program = what.program._replace(provider="local", model="fake-model")
    return Conversation(what._replace(program=program, **more))  # type: ignore[arg-type]


def says(*found: Record | str) -> list[Record]:
    return [{"say": record} for record in found]


def test_a_turn_is_told_from_its_start_to_its_end(tmp_path: Path) -> None:
    talk = talk_to(
        tmp_path,
        {"hear": "get_state"},
        {"say": STATE},
        {"hear": "prompt"},
        {"err": "a warning"},
        *says("no record", START, TOOL, TOOL_END, {"type": "new"}, ended("stop"), SETTLED),
        {"hear": "get_session_stats"},
        {"say": STATS},
    )
    told = talk.turn("/work")
    talk.run.close()
    assert [*told, *talk.ended()] == [
        STARTED,
        Activity(),
        Activity("bash", "make", '{"command": "make"}'),
        Activity("bash", is_over=True),
        USAGE,
        Settled("done"),
        Exited(0),
    ]
    options = "--mode rpc --no-approve -ne --no-mcp --provider local --model fake-model"
    assert heard(tmp_path) == [
        options.split(),
        {"id": "state", "type": "get_state"},
        {"id": "prompt", "type": "prompt", "message": "Note: /work"},
        {"id": "settled", "type": "get_session_stats"},
    ]
    assert (talk.run.session, talk.run.pid) == ("/the/session.jsonl", None)


def test_a_session_goes_on_in_another_process(tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    session.touch()
    answer = {"id": "session", "type": "response", "success": True, "data": {}}
    steps = ({"hear": "switch"}, {"say": answer}, {"hear": "get_state"}, {"say": STATE})
    talk = talk_to(tmp_path, *steps, session=str(session))
    before = talk.run.session
    talk.until_told(Started)
    talk.run.close()
    talk.ended()
    asked = {"id": "session", "type": "switch_session", "sessionPath": str(session)}
    stats = {"id": "usage", "type": "get_session_stats"}
    assert (before, heard(tmp_path)[1:3]) == (str(session), [asked, stats])


def test_a_session_that_is_gone_is_not_gone_on_with(tmp_path: Path) -> None:
    talk = talk_to(tmp_path, {"hear": "get_state"}, {"exit": 0}, session=str(tmp_path / "gone"))
    before = talk.run.session
    talk.ended()
    assert (before, heard(tmp_path)[1]) == (None, {"id": "state", "type": "get_state"})


def test_an_older_pi_is_not_told_of_servers(tmp_path: Path) -> None:
    talk = talk_to(tmp_path, {"hear": "get_state"}, {"exit": 0}, version="0.83.0")
    assert (talk.ended(), heard(tmp_path)[0][:5]) == (
        [Exited(0)],
        ["--mode", "rpc", "--no-approve", "-ne", "--provider"],
    )


def test_a_pi_that_cannot_begin_is_an_error_that_stays(tmp_path: Path) -> None:
    talk = talk_to(tmp_path, {"err": "Unknown provider."}, {"exit": 1})
    talk.run.prompt("Work.")
    failed = Settled("error", "Unknown provider.", is_retryable=False)
    assert talk.ended() == [failed, Exited(1)]


def test_a_pi_that_is_killed_at_its_start_has_died() -> None:
    reader = pi.Reader(PROGRAM)
    reader.prompt("Work.")
    assert [reader.ended(code, "Killed.") for code in (-9, 137)] == [[], []]


def test_a_pi_that_is_gone_in_the_middle_has_died(tmp_path: Path) -> None:
    talk = talk_to(tmp_path, {"hear": "get_state"}, {"say": STATE}, {"hear": "prompt"}, {"exit": 3})
    talk.run.prompt("Work.")
    assert talk.ended() == [STARTED, Exited(3)]


@pytest.mark.parametrize(
    ("last", "settled"),
    [
        (ended("toolUse"), Settled("done")),
        (
            ended("length"),
            Settled("length", "The answer reached the limit of its length."),
        ),
        (ended("aborted"), Settled("aborted")),
        (ended("error", errorMessage="401: no"), Settled("error", "401: no")),
        (
            ended("error", errorMessage="429: retry in 9s"),
            Settled("limit", "429: retry in 9s", until=NOW + 9),
        ),
        (
            ended("error", errorMessage="Filtered.", rawStopReason="content_filter"),
            Settled("refused", "Filtered."),
        ),
        ({"type": "message_end", "message": 7}, Settled("error", "529")),
    ],
)
def test_the_last_message_tells_how_a_turn_ended(last: Record, settled: Settled) -> None:
    told = read(ready(), START, ended("error", errorMessage="529"), last, SETTLED, STATS)
    assert told == [Activity(), USAGE, settled]


def test_an_interrupted_turn_is_aborted_whatever_pi_says() -> None:
    reader = ready()
    reader.interrupt()
    told = read(reader, ended("stop"), SETTLED, STATS)
    assert (reader.commands()[0], told) == (
        {"id": "abort", "type": "abort"},
        [USAGE, Settled("aborted")],
    )


def test_a_prompt_that_waits_for_pi_can_be_taken_back() -> None:
    reader = pi.Reader(PROGRAM)
    reader.prompt("Work.")
    reader.interrupt()
    assert (reader.taken(), read(reader, STATE)) == ([Settled("aborted")], [STARTED])
    assert [command["type"] for command in reader.commands()] == ["get_state"]


def test_what_a_message_has_used_is_told_before_its_tools_are_done() -> None:
    used = {"totalTokens": 30, "output": 5, "cost": {"total": 0.5}}
    message = {"type": "message_end", "message": {"role": "assistant", "usage": used}}
    told = read(ready(), {**STATS, "id": "usage"}, message)
    assert told == [USAGE, Usage(0.75, 2870, 18, 1.5)]


def test_tries_and_shortened_histories_are_told() -> None:
    again = {"type": "auto_retry_start", "attempt": 2, "errorMessage": "529: overloaded"}
    failed = {"type": "compaction_end", "reason": "manual", "errorMessage": "too small"}
    shortened = {"type": "compaction_end", "reason": "threshold", "aborted": False}
    told = read(ready(), again, failed, shortened)
    assert told == [Retrying(2, "529: overloaded"), Compacted("threshold")]


@pytest.mark.parametrize(
    ("answer", "settled"),
    [
        ({"success": False, "error": "busy"}, Settled("error", "busy")),
        (
            {"success": True, "data": {"disposition": "handled"}},
            Settled("error", "pi took the prompt for a command of its own.", is_retryable=False),
        ),
    ],
)
def test_a_prompt_that_begins_no_turn_ends_it(answer: Record, settled: Settled) -> None:
    told = read(ready(), {"id": "prompt", "type": "response", **answer}, SETTLED, STATS)
    assert told == [settled]


def test_a_turn_nobody_asked_for_settles_nothing() -> None:
    assert read(pi.Reader(PROGRAM), STATE, START, ended("stop"), SETTLED) == [STARTED, Activity()]


@pytest.mark.parametrize(
    ("model", "is_used"),
    [
        ("fake-model", True),
        ("fake-model:high", True),
        ("local/fake-model", True),
        ("", True),
        ("fake", False),
    ],
)
def test_another_model_than_the_one_asked_for_is_an_error(model: str, is_used: bool) -> None:
    reader = pi.Reader(Program("pi", "local", model))
    reader.prompt("Work.")
    told = read(reader, STATE)
    reader.prompt("Again.")
    words = f"pi would use the model fake-model where {model} was asked for."
    failed = Settled("error", words, is_retryable=False)
    found = ([STARTED], []) if is_used else ([STARTED, failed], [failed])
    assert (told, reader.taken()) == found


def test_questions_of_an_extension_are_answered_with_nothing() -> None:
    reader = ready()
    read(
        reader,
        {"type": "extension_ui_request", "id": "7", "method": "confirm"},
        {"type": "extension_ui_request", "id": "8", "method": "notify"},
    )
    answer = {"type": "extension_ui_response", "id": "7", "cancelled": True}
    assert reader.commands() == [answer]


@pytest.mark.parametrize(
    ("version", "problems"),
    [
        ("0.83.0", ()),
        ("pi 1.6.0", ()),
        ("0.82.9", ("pi 0.83 or newer is needed, and 0.82.9 is here.",)),
    ],
)
def test_an_old_pi_is_a_problem(tmp_path: Path, version: str, problems: tuple[str, ...]) -> None:
    assert probe("pi", *plan(tmp_path, version=version)) == problems


def test_a_pi_that_is_not_there_is_a_problem() -> None:
    found = probe("pi", "/no/pi"), probe("pi", env={"PATH": "/nowhere"})
    assert found == (
        ("There is no program /no/pi here.",),
        ("There is no program pi here.",),
    )


@pytest.mark.parametrize(
    ("needs", "problems"),
    [
        (">=22.19.0", ("pi.js needs node 22.19.0 or newer, and 20.1.0 is here.",)),
        (">=20", ()),
    ],
)
def test_the_node_that_would_run_it_is_compared_by_us(
    tmp_path: Path, needs: str, problems: tuple[str, ...]
) -> None:
    (tmp_path / "package.json").write_text(
        f'{{"version": "1.6.0", "engines": {{"node": "{needs}"}}}}'
    )
    script = tmp_path / "dist" / "pi.js"
    script.parent.mkdir()
    script.write_text("#!/usr/bin/env node\n")
    script.chmod(0o755)
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text("#!/bin/sh\necho v20.1.0\n")
    node.chmod(0o755)
    env = {"PATH": f"{node.parent}:/usr/bin:/bin"}
    assert probe("pi", str(script), env=env) == probe("pi", str(node), str(script)) == problems
