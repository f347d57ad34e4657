"""`watch`, `inbox --watch` and `status --watch` as processes: lines as they come, and their ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.cli import tasks, tasks_inprocess, tasks_process
from tests.support.git import git, make_repository
from tests.support.remotes import away, two_clones

KEYS = ["oid", "ordinal", "at", "event", "signal", "projection", "task", "data"]
HOSTILE = "Look \x1b[31mred\u202e at /home/mia/plan and api_key=abcdef123456"


@pytest.fixture
def project(home: Path) -> Path:
    folder = make_repository(home / "project")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    tasks_inprocess(folder, "init", "-q")
    return folder


class Watching:
    """A command that follows the ledger, and what it has printed so far."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = tasks_process(folder, *words)
        assert self.process.stdout is not None
        self._out = self.process.stdout.fileno()
        self._read = b""

    def line(self, seconds: float = 20) -> str:
        """Returns the next line; fails where none comes in time."""
        while b"\n" not in self._read:
            assert select.select([self._out], [], [], seconds)[0], "Nothing was printed."
            found = os.read(self._out, 1 << 16)
            assert found, "It has ended."
            self._read += found
        line, _, self._read = self._read.partition(b"\n")
        return line.decode() + "\n"

    def event(self) -> dict[str, Any]:
        """Returns the next event; its signals are passed over."""
        while (line := json.loads(self.line()))["signal"] is not None:
            pass
        return cast("dict[str, Any]", line)

    def follows(self, project: Path) -> None:
        """Waits until it prints what happens; reads all of that."""
        for number in range(40):
            new(project, f"Sign {number}")
            if select.select([self._out], [], [], 0.5)[0]:
                break
        while select.select([self._out], [], [], 1.5)[0]:
            os.read(self._out, 1 << 16)

    def lines(self, count: int) -> list[str]:
        """Returns so many lines."""
        return [self.line() for _ in range(count)]

    def ended(self, number: int | None = None) -> tuple[int, str, str]:
        """Sends a signal, waits for the end, and returns status and what was left to print."""
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


@pytest.fixture
def watching(project: Path) -> Iterator[Any]:
    started: list[Watching] = []

    def start(*words: str) -> Watching:
        started.append(Watching(project, *words))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def root_of(project: Path) -> str:
    return git(project, "rev-list", "--max-parents=0", "refs/heads/gittasks")


def new(project: Path, title: str, *words: str) -> str:
    return tasks_inprocess(project, "new", title, *words).out.strip()


def test_a_line_has_exactly_these_fields(project: Path) -> None:
    new(project, "One", "--enter", "work")
    tasks_inprocess(project, "hold", "1", "-m", "Which?")
    done = tasks(project, "watch", "--from", "HEAD~1", "--jsonl", "--until", "idle")
    line, *signals = [json.loads(text) for text in done.out.splitlines()]
    shown = git(project, "log", "-1", "--format=%H %aI", "gittasks").split()
    assert list(line) == KEYS
    assert line == {
        "oid": shown[0],
        "ordinal": 0,
        "at": shown[1].replace("+00:00", "Z"),
        "event": "hold",
        "signal": None,
        "projection": None,
        "task": "000001",
        "data": {
            "actor": "Ada", "role": "manager", "from": "WORK", "to": "HELD_WORK", "reason": "Which?"
        },
    }  # fmt: skip
    common = {"oid": shown[0], "at": line["at"], "event": "hold", "task": "000001"}
    assert signals == [
        {
            **common, "ordinal": 1, "signal": "task_status_changed", "projection": "task_graph",
            "data": {"from": "WORK", "to": "HELD_WORK"},
        },
        {
            **common, "ordinal": 2, "signal": "inbox_added", "projection": "inbox",
            "data": {"rank": 2, "state": "HELD_WORK"},
        },
        {
            **common, "ordinal": 3, "signal": "queue_cleared", "projection": "queue",
            "data": {"rank": 4},
        },
    ]  # fmt: skip
    assert done.err == ""


def _all(project: Path, *words: str) -> list[str]:
    """Returns the lines of a watch of everything, by whoever comes once all is over."""
    words = ("watch", "--jsonl", "--until", "idle", *words)
    return tasks_inprocess(project, *words).out.splitlines(keepends=True)


def test_a_watch_goes_on_behind_any_line(project: Path) -> None:
    new(project, "One", "--enter", "work")
    tasks_inprocess(project, "hold", "1", "-m", "Which?")
    tasks_inprocess(project, "abort", "1")
    whole = _all(project, "--from", root_of(project))
    assert len(whole) > 10
    for at, line in enumerate(whole, 1):
        last = json.loads(line)
        assert _all(project, "--from", f"{last['oid']}:{last['ordinal']}") == whole[at:]


def test_only_the_signals_asked_for_are_told(project: Path) -> None:
    new(project, "One", "--enter", "work")
    tasks_inprocess(project, "hold", "1", "-m", "Which?")
    start = ("--from", root_of(project))
    wanted = ("--signal", "inbox_cleared", "--signal", "queue_cleared")
    told = [json.loads(line) for line in _all(project, *start, *wanted)]
    assert [(one["signal"], one["ordinal"]) for one in told] == [
        ("inbox_cleared", 2), ("queue_cleared", 3),
    ]  # fmt: skip
    out = tasks_inprocess(project, "watch", "--until", "idle", *start, *wanted).out
    assert [line[32:] for line in out.splitlines()] == [
        "inbox_cleared 000001 rank=10", "queue_cleared 000001 rank=4",
    ]  # fmt: skip
    refused = tasks_inprocess(project, "watch", "--signal", "nothing", check=2)
    assert "There is no signal 'nothing'." in refused.err


def test_a_command_gets_each_line(project: Path, home: Path) -> None:
    new(project, "One $(touch x); `y`")
    hook = home / "a hook"
    hook.write_text(
        f"#!/bin/sh\ncat >> {home}/lines\necho $GITTASKS_WATCH_ORDINAL $GITTASKS_WATCH_SIGNAL; exit $1\n"
    )
    hook.chmod(0o755)
    words = ("--from", "HEAD~1", "--exec", f"'{hook}' 3")
    done = tasks(project, "watch", "--jsonl", "--until", "idle", *words, check=1)
    assert (home / "lines").read_text() == done.out
    assert done.err.splitlines() == [
        "0", f"The command {hook} ended with 3.",
        "1 task_created", f"The command {hook} ended with 3.",
        "2 inbox_added", f"The command {hook} ended with 3.",
    ]  # fmt: skip
    for line in ("/no/where", "no-such-program", "'", ""):
        tasks(project, "watch", "--until", "idle", "--from", "HEAD~1", "--exec", line, check=2)
    tasks(project, "watch", "--until", "idle", "--from", "HEAD~1", "--exec", "cat")


def test_json_means_lines_too(project: Path) -> None:
    new(project, "One")
    words = ("watch", "--from", "HEAD~1", "--until", "idle")
    lines = tasks_inprocess(project, *words, "--jsonl").out
    assert lines.count("\n") == 3
    assert tasks_inprocess(project, *words, "--json").out == lines


def test_a_note_brings_its_text_and_no_secret(project: Path) -> None:
    new(project, "One")
    tasks_inprocess(project, "note", "1", "-m", "See /home/mia/plan and api_key=abcdef123456")
    out = tasks_inprocess(project, "watch", "--from", "HEAD~1", "--jsonl", "--until", "idle").out
    assert json.loads(out)["data"]["text"] == "See [path] and api_key=[secret]"


def test_people_read_commit_time_and_subject(project: Path) -> None:
    new(project, HOSTILE)
    out = tasks_inprocess(project, "watch", "--from", "HEAD~1", "--until", "idle").out
    oid, when = git(project, "log", "-1", "--format=%H %aI", "gittasks").split()
    assert out == (
        f"{oid[:10]} {when[:10]} {when[11:19]}  000001 create -> NEW (manager Ada): "
        "Look \\x1b[31mred\\u202e at [path] and api_key=[secret]\n"
    )


def test_a_hostile_title_stays_on_one_line_of_json(project: Path) -> None:
    new(project, HOSTILE)
    out = tasks_inprocess(project, "watch", "--from", "HEAD~1", "--jsonl", "--until", "idle").out
    assert out.isascii()
    assert out.count("\n") == 3
    assert "\x1b" not in out
    event, created, _ = map(json.loads, out.splitlines())
    assert event["data"]["title"] == created["data"]["title"]
    assert event["data"]["title"] == "Look \x1b[31mred\u202e at [path] and api_key=[secret]"


def test_events_come_as_they_are_written(project: Path, watching: Any) -> None:
    follower = watching("watch", "--jsonl", "--from", git(project, "rev-parse", "gittasks"))
    for number in range(1, 4):
        new(project, f"Task {number}")
        line = follower.event()
        assert (line["event"], line["task"]) == ("create", f"{number:06d}")
        assert line["oid"] == git(project, "rev-parse", "gittasks")


def test_whoever_is_killed_goes_on_where_it_was(project: Path, watching: Any) -> None:
    """Kills the follower after every few lines while others write; compares with one that stays."""
    whole = watching("watch", "--jsonl", "--from", root_of(project))
    cursor = root_of(project)
    printed: list[str] = []
    for at in range(4):
        writers = [
            tasks_process(project, "new", f"Task {at}.{n}", "--enter", "work") for n in range(2)
        ]
        follower = watching("watch", "--jsonl", "--from", cursor)
        read = follower.lines(3 if at else 2)
        assert follower.ended(signal.SIGKILL)[0] == -signal.SIGKILL
        printed += read
        last = json.loads(read[-1])
        cursor = f"{last['oid']}:{last['ordinal']}"
        for writer in writers:
            assert writer.wait(timeout=30) == 0
            writer.communicate()
    total = 1 + 8 * (1 + 2) + 8 * (1 + 3)
    printed += watching("watch", "--jsonl", "--from", cursor).lines(total - len(printed))
    assert printed == whole.lines(total)


def test_it_ends_by_itself_once_nobody_has_anything_to_do(project: Path, watching: Any) -> None:
    new(project, "One", "--enter", "work")
    tip = git(project, "rev-parse", "gittasks")
    follower = watching("watch", "--until", "idle", "--jsonl", "--from", tip)
    time.sleep(0.5)
    assert follower.process.poll() is None
    tasks_inprocess(project, "hold", "1", "-m", "Which?")
    assert follower.event()["event"] == "hold"
    assert follower.ended()[::2] == (0, "")


@pytest.mark.parametrize("words", [("watch",), ("watch", "--json"), ("inbox", "--watch")])
def test_an_interrupt_ends_it_quietly(project: Path, watching: Any, words: tuple[str, ...]) -> None:
    follower = watching(*words)
    follower.follows(project)
    assert follower.ended(signal.SIGINT) == (130, "", "")


@pytest.mark.parametrize("words", [("watch",), ("inbox", "--watch"), ("status", "--watch")])
def test_a_reader_who_leaves_ends_it_quietly_though_nothing_happens(
    project: Path, watching: Any, words: tuple[str, ...]
) -> None:
    follower = watching(*words)
    assert follower.process.stdout is not None
    follower.process.stdout.close()
    assert follower.process.wait(timeout=20) == 0
    assert follower.process.stderr.read() == ""


def test_head_may_close_the_pipe(project: Path) -> None:
    for number in range(3):
        new(project, f"Task {number}")
    process = tasks_process(project, "watch", "--from", root_of(project))
    head = subprocess.run(
        ["head", "-n", "1"], stdin=process.stdout, capture_output=True, check=True, timeout=20
    )
    assert b" init " in head.stdout
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=20) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


def test_what_another_clone_publishes_is_told(home: Path) -> None:
    remote, ada, bob = two_clones(home)
    tasks_inprocess(ada, "init", "--base", "master", "--remote", "origin")
    tasks_inprocess(bob, "init", "--remote", "origin")
    git(bob, "config", "gittasks.watchInterval", "1")
    follower = Watching(bob, "watch", "--jsonl", "--from", git(bob, "rev-parse", "gittasks"))
    try:
        new(bob, "Ours")
        tasks_inprocess(ada, "new", "Theirs")
        told = [follower.event()["data"]["title"] for _ in range(2)]
        assert told == ["Ours", "Theirs"]
        with away(remote):
            time.sleep(3)
            tasks_inprocess(bob, "new", "Alone", "--offline")
            assert follower.event()["data"]["title"] == "Alone"
        tasks_inprocess(ada, "new", "Once more")
        assert follower.event()["data"]["title"] == "Once more"
        renumbered = follower.event()
        assert (renumbered["event"], renumbered["task"]) == ("renumber", "000004")
        tasks_inprocess(bob, "sync")
        new(bob, "The last one")
        assert follower.event()["data"]["title"] == "The last one"
    finally:
        status, _, err = follower.ended(signal.SIGINT)
    assert status == 130
    assert err.count("warning: the remote is not followed at present: ") == 1
    assert err.count("is no longer part of the ledger, as after a sync;") == 1


@pytest.mark.parametrize("cursor", ["master", "nothing", "000001"])
def test_a_cursor_outside_the_ledger_is_not_found(project: Path, cursor: str) -> None:
    refused = tasks_inprocess(project, "watch", "--from", cursor, check=4)
    assert refused.err == (
        f"error: The commit {cursor} is not part of the ledger.\n"
        "hint: Name one of `git tasks log`, or the last one that a watch has printed.\n"
    )


def test_without_a_ledger_it_says_how_to_begin(home: Path) -> None:
    folder = make_repository(home / "empty")
    assert "git tasks init" in tasks_inprocess(folder, "watch", check=3).err


def test_the_inbox_comes_again_when_it_has_changed(project: Path, watching: Any) -> None:
    follower = watching("inbox", "--watch", "--json")
    assert json.loads(follower.line())["data"] == []
    new(project, "One")
    shown = json.loads(follower.line())
    assert [row["title"] for row in shown["data"]] == ["One"]
    assert (shown["kind"], shown["ledger"]) == ("inbox", git(project, "rev-parse", "gittasks"))
    tasks_inprocess(project, "note", "1", "-m", "Nothing that the inbox shows.")
    new(project, "Two", "--enter", "work")
    new(project, "Three")
    titles = [row["title"] for row in json.loads(follower.line())["data"]]
    assert titles == ["One", "Three"]


def test_people_see_the_whole_inbox_again(project: Path, watching: Any) -> None:
    new(project, "One")
    follower = watching("inbox", "--watch")
    assert follower.line().split()[:2] == ["000001", "NEW"]
    new(project, "Two")
    lines = follower.lines(3)
    assert [line.split()[:1] for line in lines] == [[], ["000001"], ["000002"]]


def test_the_status_comes_again_when_it_has_changed(project: Path, watching: Any) -> None:
    follower = watching("status", "--watch", "--json")
    assert json.loads(follower.line())["data"]["ready_count"] == 0
    new(project, "One", "--enter", "work")
    data = json.loads(follower.line())["data"]
    assert (data["ready_count"], data["working_state"]["waiting_on"]) == (1, "agent")
