"""Agents that do not end, that have had enough, that make a mess, or that are not there."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cases.ground import Team, error_of
from tests.support.cli import COMMAND, Result, environment, tasks, tasks_process

# What an agent does that does its work.
WORK = "echo done > done.txt; git add -A; git commit -q -m Work; git tasks submit -m Done."
DONE = ["claim", "submit", "claim", "pass"]


def agent(team: Team, provider: str, body: str, **more: Any) -> dict[str, Any]:
    """Returns an entry of the pool for a worker that runs these lines of sh."""
    script = team.folder.parent / f"{provider}.sh"
    script.write_text(f"#!/bin/sh\ncat > /dev/null\n{body}\n", encoding="utf-8")
    script.chmod(0o700)
    command = [str(script)]
    return {
        "type": "command", "provider": provider, "command": command, "roles": ["worker"], **more
    }  # fmt: skip


def pool(team: Team, *agents: Any, sandbox: str = "off") -> Path:
    """Writes the pool file and returns where it is."""
    file = team.folder / ".git" / "gittasks" / "agents.json"
    file.write_text(json.dumps({"sandbox": sandbox, "agents": agents}), encoding="utf-8")
    return file


def told(result: Result, event: str) -> list[Any]:
    """Returns what a run has told of one kind."""
    records = [json.loads(line) for line in result.out.splitlines()]
    return [record for record in records if record["event"] == event]


@contextmanager
def running(team: Team, *args: str) -> Iterator[subprocess.Popen[str]]:
    """Runs the pool in a process of its own, which does not outlive the test."""
    process = tasks_process(team.folder, "run", *args)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(is_so: Callable[[], object], seconds: float = 20) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processes(words: str) -> list[int]:
    """Returns the processes with these words in their command line."""
    found = subprocess.run(["pgrep", "-f", words], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def slots(team: Team) -> dict[str, Any]:
    """Returns what the pool shows of each slot."""
    shown = team.manager("pool", "status", "--json").json()["data"]["slots"]
    return {row["slot"]: row for row in shown}


def kinds(team: Team, task: str) -> list[str]:
    """Returns what happened to a task since it was handed out."""
    lines = team.git("log", "--reverse", "--format=%s", "gittasks", "--", f"*/{task}.md")
    return [line.split()[1] for line in lines.splitlines()[2:]]


# -- agents that do not end


@pytest.mark.parametrize(
    "words", [pytest.param((), marks=pytest.mark.slow), ("--now",)], ids=["in order", "at once"]
)
def test_a_pool_that_is_stopped_leaves_no_agent_whatever_it_does_not_hear(
    team: Team, words: tuple[str, ...]
) -> None:
    """Guards against agents that outlive their runner, with or without a claim."""
    deaf = agent(team, "deaf", "trap '' TERM INT HUP; sleep 611.5 & sleep 611.5 & wait; sleep 9")
    stopped = agent(team, "stopped", "sleep 612.5 & kill -STOP $$")
    pool(team, deaf, stopped, sandbox="auto")
    tasks_given = [team.new("One"), team.new("Two")]
    with running(team) as runner:
        until(lambda: len(processes("^sleep 61[12].5")) == 3)
        began = time.monotonic()
        ended = team.manager("pool", "stop", *words)
        # Asked, told, killed: three seconds each time.
        assert time.monotonic() - began < 6 + 5
        out, err = runner.communicate(timeout=5)
    assert (ended.out, ended.err) == (
        "The runner has ended.\n", "Of the agents, 2 had to be killed.\n",
    )  # fmt: skip
    assert (runner.returncode, err) == (0, ended.err)
    assert told(Result(0, out, ""), "end")[0]["killed"] == 2
    assert processes("^sleep 61[12].5|(deaf|stopped).sh") == []
    for task in tasks_given:
        shown = team.show(task)
        assert (shown["state"], shown["claimed_by"], kinds(team, task)) == (
            "WORK", None, ["claim", "release"],
        )  # fmt: skip
        assert team.git("status", "--porcelain", at=team.start(task)) == ""


def test_what_an_agent_leaves_running_ends_with_its_turn(team: Team) -> None:
    """Guards against servers that agents start, and that hold port, tree and pipes for ever."""
    servers = (
        "setsid sleep 613.5 & "
        "(setsid sh -c 'sleep 613.5 & sleep 613.5' </dev/null >/dev/null 2>&1 &) ; "
        "nohup sleep 613.5 >/dev/null 2>&1 &"
    )
    pool(team, agent(team, "server", f"{servers}\n{WORK}"))
    task = team.new("One")
    tasks(team.folder, "run", "--once", timeout=20)
    assert (team.state(task), processes("^sleep 613.5")) == ("WORK_REVIEW", [])


def test_an_agent_that_closes_its_outputs_is_still_at_work(team: Team) -> None:
    """Guards against a silent pipe that is taken for the end."""
    pool(team, agent(team, "mute", f"exec >&- 2>&-; sleep 0.5; {WORK}"))
    task = team.new("One")
    tasks(team.folder, "run", "--once")
    assert kinds(team, task) == DONE


# -- agents that have had enough


@pytest.mark.parametrize("count", [1, 2])
def test_a_limit_lets_one_provider_rest_and_costs_its_tasks_nothing(team: Team, count: int) -> None:
    """Guards against a limit that is hammered, or that rejects and loses tasks."""
    spawned = team.folder.parent / "spawned"
    limited = f"echo x >> {spawned}; echo gittasks-limit: 60; exit 1"
    pool(team, agent(team, "p", limited, slots=count), agent(team, "q", WORK))
    ids = [team.new(title) for title in ("One", "Two", "Three")]
    with running(team):
        until(lambda: [team.state(id) for id in ids].count("WORK_REVIEW") == 3 - count)
        time.sleep(1)
        seen = slots(team)
        shown = {id: team.show(id) for id in ids}
        team.manager("pool", "stop")
    assert len(spawned.read_text().splitlines()) == count
    for number in range(1, count + 1):
        row = seen[f"command-p-{number}"]
        assert (row["state"], row["why"].rpartition(" ")[0]) == (
            "LIMITED",
            "the limit of p ends at",
        )
        task = shown[row["task"]]
        assert (task["state"], task["claimed_by"]) == ("WORK", row["slot"])
        assert (task["rounds"], task["findings"]) == ([], None)
        assert kinds(team, task["id"]) == ["claim", "release"]
        assert (team.folder.parent / "project.tasks" / task["id"] / "tree" / "app.txt").exists()


def test_a_limit_is_understood_however_it_is_told(team: Team) -> None:
    """Guards against a limit that is taken for a failure, or for the end of all time."""
    ways = {
        "date": "date -u -d '+2 seconds' '+gittasks-limit: %Y-%m-%dT%H:%M:%SZ'; exit 1",
        "zone": "echo \"gittasks-limit: $(date -u -d '+1 hour' +%Y-%m-%dT%H:%M:%S)+01:00\" >&2",
        "code": "exit 75",
        "past": "echo gittasks-limit: 2001-01-01T00:00:00Z; exit 1",
        "minus": "echo gittasks-limit: -5; exit 1",
        "words": "echo gittasks-limit: soon; exit 1",
        "never": "echo gittasks-limit: nan; exit 1",
    }
    once = 'if mkdir "$GITTASKS_OUTBOX/../../$GITTASKS_TASK.seen" 2>/dev/null; then\n{}\nexit 1; fi\n{}'
    pool(team, *(agent(team, name, once.format(way, WORK)) for name, way in ways.items()))
    ids = [team.new(name) for name in ways]
    ended = tasks(team.folder, "run", "--once", timeout=30)
    assert len(told(ended, "limit")) == len(ways)
    for id in ids:
        assert kinds(team, id) == DONE


def test_a_run_ends_with_a_limit_that_lasts_and_says_so(team: Team) -> None:
    """Guards against a run that waits for days, or that calls it done."""
    pool(team, agent(team, "p", "echo gittasks-limit: 7200; exit 1"))
    ids = [team.new("One"), team.new("Two")]
    ended = tasks(team.folder, "run", "--once")
    assert "the limit of p ends at" in told(ended, "end")[0]["why"]
    assert [kinds(team, id) for id in ids] == [["claim", "release"], []]
    assert team.manager("inbox").out == ""


# -- agents that make a mess


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("yes $(seq 30)", 30_000_000),
        pytest.param("tr '\\0' x < /dev/zero", 100_000_000, marks=pytest.mark.slow),
    ],
    ids=["many lines", "one line"],
)
def test_an_agent_that_prints_without_end_fills_neither_disk_nor_memory(
    team: Team, line: str, size: int
) -> None:
    """Guards against a log that takes the whole disk, and a runner that keeps what it reads."""
    flood = f"{line} | head -c {size}"
    pool(team, agent(team, "loud", f"{flood}; {flood} >&2; {WORK}"))
    task = team.new("One")
    bounded = ["prlimit", "--data=300000000", *COMMAND, "run", "--once"]
    subprocess.run(bounded, cwd=team.folder, env=environment(), check=True, timeout=30)
    logs = (team.folder / ".git" / "gittasks" / "agents" / task).glob("*.log*")
    assert team.state(task) == "WORK_REVIEW"
    assert sum(log.stat().st_size for log in logs) < 30_000_000


def test_what_an_agent_prints_moves_no_cursor(team: Team) -> None:
    """Guards against output that takes over the terminal of whoever looks."""
    evil = "\\033]0;mine\\007\\033[2J\\r"
    body = f"printf '{evil}log\\n'; printf 'gittasks-activity: {evil}tool\\n'; sleep 60"
    pool(team, agent(team, "painter", body))
    task = team.new("One")
    with running(team):
        until(lambda: "tool" in team.manager("pool", "status").out)
        for words in (("pool", "status"), ("tail", task)):
            shown = team.manager(*words).out
            assert not any(char in shown for char in "\033\a\r")
        team.manager("pool", "stop", "--now")


def test_an_agent_that_deletes_its_own_tree_loses_no_commit(team: Team) -> None:
    """Guards against a tree that is missed for ever by whoever comes next."""
    first = WORK.partition("; git tasks")[0]
    seen = team.folder.parent / "seen"
    body = f'if mkdir {seen}; then {first}; rm -rf "${{PWD%/tree}}"; exit 0; fi; git tasks submit -m Done.'
    pool(team, agent(team, "broom", body))
    task = team.new("One")
    ended = tasks(team.folder, "run", "--once", timeout=30)
    assert [one["error"] for one in told(ended, "died")] == ["it has removed its own tree"]
    assert kinds(team, task) == ["claim", "release", *DONE]
    assert team.git("log", "--format=%s", "-1", f"task/{task}") == "Work"


# -- agents that are not there


def test_a_program_that_is_not_there_is_named_and_stops_none_of_the_others(team: Team) -> None:
    """Guards against a pool that does nothing and does not say why."""
    missing = {"type": "command", "provider": "gone", "command": ["/nowhere/agent"]}
    pool(team, missing, agent(team, "q", WORK))
    task = team.new("One")
    other = team.new("Two", "--enter", "plan")
    ended = tasks(team.folder, "run", "--once")
    assert team.state(task) == "WORK_REVIEW"
    assert kinds(team, other) == []
    [said] = told(ended, "unreachable")
    assert (said["agent"], said["why"]) == (
        "command-gone", "There is no program /nowhere/agent here.",
    )  # fmt: skip
    assert "There is no program /nowhere/agent here." in told(ended, "end")[0]["why"]


def test_a_faulty_pool_starts_nothing_and_every_fault_is_told(team: Team) -> None:
    """Guards against a typing error that is found out after the first night."""
    file = pool(team, {"type": "parrot"}, {"type": "command", "slots": 0, "roles": ["manager"]})
    error = error_of(tasks(team.folder, "run", "--json", check=2))
    for part in (
        str(file),
        "agents[0].type",
        "agents[1].command",
        "agents[1].slots",
        "agents[1].roles",
    ):
        assert part in error["message"]
    team.work(team.new("One"), {"new.txt": "new\n"})


def test_a_second_runner_without_a_free_slot_names_the_first(team: Team) -> None:
    """Guards against two runners that hand one slot to two agents."""
    pool(team, agent(team, "busy", "sleep 60"))
    team.new("One")
    with running(team) as first:
        until(lambda: slots(team)["command-busy-1"]["state"] == "BUSY")
        refused = tasks(team.folder, "run", "--once", check=75)
        assert f"command-busy-1 is held by process {first.pid}" in refused.err
        team.manager("pool", "stop", "--now")
        assert first.wait(timeout=10) == 0
    assert os.listdir(team.folder / ".git" / "gittasks" / "runners") == []
