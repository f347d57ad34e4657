"""Codex is a process for each prompt, and a thread that another process goes on with."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from gittasks.agents import codex, orphans
from gittasks.agents.base import Activity, Event, Exited, Retrying, Settled, Started, Usage
from tests.agents.conversation import MARK, NOW, Conversation, probe, spec
from tests.support.player import heard, plan

Record = dict[str, Any]

THREAD = {"type": "thread.started", "thread_id": "t1"}
COMPLETED = {
    "type": "turn.completed",
    "usage": {"input_tokens": 90, "cached_input_tokens": 50, "output_tokens": 10},
}
OPTIONS = ["exec", "--json", "-s", "danger-full-access", "-c", "allow_login_shell=false"]
BEGUN: list[Event] = [Started("t1"), Activity()]
DONE: list[Event] = [Usage(0.0, 100, 10), Settled("done")]


def item(kind: str, **more: object) -> Record:
    return {"type": "item.completed", "item": {"id": "i1", "type": kind, **more}}


def read(*found: Record, ended: tuple[int, str] | None = None) -> list[Event]:
    reader = codex.Reader(is_running=True)
    told = [event for record in found for event in reader.read(record, NOW)]
    return told if ended is None else [*told, *reader.ended(*ended, NOW)]


def talk_to(folder: Path, *runs: list[Record], **more: Any) -> Conversation:
    what = spec(folder, "codex", *plan(folder, *runs), HOME=str(folder))
    program = what.program._replace(provider="openai", model="m")
    return Conversation(what._replace(program=program, **more))


def steps(*found: Record | str) -> list[Record]:
    return [{"hear": "work"}, *({"say": record} for record in found)]


def test_each_prompt_is_a_process_that_goes_on_with_the_thread(tmp_path: Path) -> None:
    first = [*steps("no record", {"type": "new"}, THREAD, COMPLETED), {"sleep": 60}]
    talk = talk_to(tmp_path, first, steps(THREAD, COMPLETED))
    told = talk.turn("/work")
    between = talk.run.pid, talk.run.session, talk.run.is_alive()
    told += talk.turn("Go on with the work.")
    assert (told, between) == ([*BEGUN, *DONE, *BEGUN, *DONE], (None, "t1", True))
    assert talk.ended() == [Exited(0)]
    trust = f'projects={{"{tmp_path}/tree"={{trust_level="untrusted"}}}}'
    options = [*OPTIONS, "-c", trust, "-c", 'model_provider="openai"', "-m", "m"]
    assert heard(tmp_path) == [
        [*options, "-"],
        "Note: /work",
        [*options, "resume", "t1", "-"],
        "Go on with the work.",
    ]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_thread_goes_on_only_where_it_is_kept(tmp_path: Path, is_there: bool) -> None:
    kept = tmp_path / ".codex" / "sessions" / "2026" / "12" / "01"
    kept.mkdir(parents=True)
    if is_there:
        (kept / "rollout-2026-12-01T05-48-26-t0.jsonl").touch()
    talk = talk_to(tmp_path, steps(THREAD, COMPLETED), session="t0")
    before = talk.run.session
    talk.turn("Go on with the work.")
    options = ["resume", "t0", "-"] if is_there else ["-"]
    assert (before, heard(tmp_path)[0][12:]) == ("t0" if is_there else None, options)


@pytest.mark.parametrize(
    ("how", "exits"),
    [
        ("interrupt", [Exited(1), Exited(-2)]),
        ("close", [Exited(1), Exited(-2)]),
        ("terminate", [Exited(-15)]),
        ("kill", [Exited(-9)]),
    ],
)
def test_what_we_end_is_aborted(tmp_path: Path, how: str, exits: list[Exited]) -> None:
    talk = talk_to(tmp_path, [*steps(THREAD), {"sleep": 60}])
    talk.run.prompt("The work.")
    talk.until_told(Activity)
    getattr(talk.run, how)()
    aborted, exited = talk.ended()
    assert (aborted, exited in exits) == (Settled("aborted"), True)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")
def test_a_command_that_outlives_an_interrupt_is_ended(tmp_path: Path) -> None:
    script = "setsid sleep 60 & cat; while true; do sleep 1; done"
    what = spec(tmp_path, "codex", "sh", "-c", script)
    talk = Conversation(what)
    talk.run.prompt(json.dumps(THREAD) + "\n")
    talk.until_told(Started)
    before = len(orphans.marked(what.env[MARK]))
    talk.run.interrupt()
    talk.until_told(Settled)
    assert (before > 1, orphans.marked(what.env[MARK])) == (True, [])


def test_a_prompt_that_waits_for_the_last_process_can_be_taken_back(tmp_path: Path) -> None:
    talk = talk_to(tmp_path, [*steps(THREAD, COMPLETED), {"sleep": 60}])
    talk.turn("The work.")
    talk.run.prompt("More work.")
    talk.run.interrupt()
    assert talk.ended() == [Settled("aborted"), Exited(-15)]


def test_a_program_that_cannot_begin_is_an_error_that_stays(tmp_path: Path) -> None:
    talk = talk_to(tmp_path, [{"err": "Error: no such provider"}, {"exit": 1}])
    talk.run.prompt("The work.")
    failed = Settled("error", "Error: no such provider", is_retryable=False)
    assert talk.ended() == [failed, Exited(1)]


def test_a_program_that_is_not_there_is_an_error_that_stays(tmp_path: Path) -> None:
    words = "The program no-such-codex cannot be started: No such file or directory."
    told = Conversation(spec(tmp_path, "codex", "no-such-codex")).turn()
    assert told == [Settled("error", words, is_retryable=False)]


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        ((0, ""), []),
        ((-9, ""), []),
        ((137, "Killed"), []),
        ((1, "Error: no rollout found for thread id t1"), []),
        ((101, "panicked"), [Settled("error", "panicked")]),
        ((1, ""), [Settled("error", "exit code 1")]),
    ],
)
def test_an_end_without_a_record_is_a_death_or_an_error(
    ended: tuple[int, str], told: list[Event]
) -> None:
    assert read(THREAD, ended=ended) == [*BEGUN, *told]


@pytest.mark.parametrize(
    ("words", "settled"),
    [
        (
            "unexpected status 401 Unauthorized",
            Settled("error", "unexpected status 401 Unauthorized"),
        ),
        ("last status: 429", Settled("limit", "last status: 429")),
        ("reason: max_output_tokens", Settled("length", "reason: max_output_tokens")),
        ("reason: content_filter", Settled("refused", "reason: content_filter")),
    ],
)
def test_a_failed_turn_is_over_with_its_record(words: str, settled: Settled) -> None:
    told = read({"type": "turn.failed", "error": {"message": words}}, ended=(1, "oh"))
    assert told == [settled]


def test_commands_changes_and_calls_are_told_once_each() -> None:
    command = {"id": "i0", "type": "command_execution", "command": "/bin/bash -c 'make all'"}
    told = read(
        {"type": "item.started", "item": command},
        {"type": "item.completed", "item": {**command, "exit_code": 0}},
        item("file_change", changes=[{"path": "a.py"}, {"path": "b.py"}], status="completed"),
        item("mcp_tool_call", server="s", tool="find", arguments={"q": 1}),
        item("web_search", query="why"),
        item("agent_message", text="Done."),
    )
    assert told == [
        Activity("command_execution", "make all", '{"command": "/bin/bash -c \'make all\'"}'),
        Activity("command_execution", is_over=True),
        Activity("file_change", "a.py, b.py", '{"changes": [{"path": "a.py"}, {"path": "b.py"}]}'),
        Activity("file_change", is_over=True),
        Activity("mcp_tool_call", "find", '{"arguments": {"q": 1}, "server": "s", "tool": "find"}'),
        Activity("mcp_tool_call", is_over=True),
        Activity("web_search", "why", '{"query": "why"}'),
        Activity("web_search", is_over=True),
    ]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Reconnecting... 2/5 (status 429)", [Retrying(2, "status 429")]),
        ("Reconnecting... soon", [Retrying(1)]),
        ("status 401", []),
    ],
)
def test_its_own_tries_are_told(message: str, told: list[Event]) -> None:
    assert read({"type": "error", "message": message}) == told


def test_a_command_that_is_no_shell_of_its_own_is_shown_as_it_is() -> None:
    commands = ["make 'all", "sh -x run", "git commit -m words"]
    told = read(*(item("command_execution", command=one) for one in commands))
    assert [event.target for event in told if isinstance(event, Activity)][::2] == commands


@pytest.mark.skipif(sys.platform != "linux", reason="the names of the packages are of Linux")
@pytest.mark.parametrize("place", ["../codex-linux", "node_modules/@openai/codex-linux", "."])
def test_the_program_proper_is_taken_in_place_of_its_script(tmp_path: Path, place: str) -> None:
    script = tmp_path / "@openai" / "codex" / "bin" / "codex.js"
    script.parent.mkdir(parents=True)
    script.write_text("#!/usr/bin/env node\n")
    machine = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())
    proper = (
        script.parents[1] / place / "vendor" / f"{machine}-unknown-linux-musl" / "bin" / "codex"
    )
    proper = Path(f"{proper.parent.resolve()}/codex")
    proper.parent.mkdir(parents=True)
    proper.write_text("#!/bin/sh\n")
    link = tmp_path / "codex"
    link.symlink_to(script)
    for path in (script, proper):
        path.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert codex.native(("codex",), env) == (str(proper),)
    proper.unlink()
    assert codex.native(("codex",), env) == ("codex",)


def test_a_program_that_is_not_there_or_not_whole_is_a_problem(tmp_path: Path) -> None:
    found = probe("codex", "/no/codex"), probe("codex", "false"), probe("codex", *plan(tmp_path))
    assert found == (
        ("There is no program /no/codex here.",),
        ("false does not tell its version, so it may not be whole.",),
        (),
    )
