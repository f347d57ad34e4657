"""Agents are run, looked at and steered from the command line."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gittasks.cli.output import Output
from gittasks.cli.team import Progress
from gittasks.workflow import pool
from gittasks.workflow.project import Options, Project
from gittasks.workspaces import records
from tests.support.cli import COMMAND, environment, tasks, tasks_inprocess, tasks_process
from tests.support.git import make_repository

AGENT = {"type": "command", "command": ["true"], "slots": 2, "maxSlots": 4}


@pytest.fixture
def project(home: Path) -> Path:
    folder = make_repository(home / "project")
    tasks_inprocess(folder, "init", "-q")
    write_pool(folder, AGENT)
    return folder


def write_pool(folder: Path, *agents: object) -> None:
    path = folder / ".git" / "gittasks" / "agents.json"
    path.write_text(json.dumps({"agents": agents}), encoding="utf-8")


def live(folder: Path) -> Path:
    """Shows a runner with one slot at work and an idle one; returns the log of the first."""
    log = folder / ".git" / "gittasks" / "agents" / "000001" / "command-1.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("first\nsecond \x1b[31m\n" + "x" * 3000 + "\n", encoding="utf-8")
    now = time.time()
    shown = {"agent": "command", "total": 2, "max": 4, "enabled": True}
    slots = [
        {
            **shown, "slot": "command-1", "state": "BUSY", "task": "000001", "role": "worker",
            "started_at": now - 300, "tokens": 1200, "cost": 0.25, "log": str(log), "why": "",
            "activity": {"tool": "shell", "target": "make\x1b", "since": now - 61},
        },
        {**shown, "slot": "command-2", "state": "IDLE", "task": None, "why": "no task is ready"},
    ]  # fmt: skip
    view = {
        "process": records.own_process(), "at": now, "scheduling": True, "why": "",
        "sandbox": "bare", "slots": slots,
        "checks": [{"task": "000002", "started_at": now - 5, "log": "l"}],
        "queue": [{"task": f"{number:06d}"} for number in range(1, 13)],
    }  # fmt: skip
    pool.write_view(Project.open(Options(str(folder))), "aa", view)
    return log


def test_every_slot_says_what_it_does(project: Path) -> None:
    live(project)
    shown = tasks_inprocess(project, "pool", "status").out
    assert shown.replace(f"Runner {os.getpid()} ", "Runner 1 ") == (
        "command-1  BUSY  000001  worker  5 min  shell make\\x1b (1 min), 1200 tokens, 0.25 dollars\n"
        "command-2  IDLE  -       -       -      no task is ready\n"
        "Runner 1 gives out tasks; agents are kept apart by: bare.\n"
        "The checks of 000002 run since 5 s.\n"
        "Ready: 12, first 000001 000002 000003 000004 000005 000006 000007 000008 000009 000010 …\n"
    )
    data = tasks_inprocess(project, "pool", "status", "--json").json()
    assert (data["kind"], len(data["data"]["slots"]), len(data["data"]["queue"])) == ("pool", 2, 12)


def test_without_a_runner_the_file_is_shown(project: Path) -> None:
    done = tasks_inprocess(project, "pool", "status")
    assert done.out == (
        "command-1  IDLE  -  -  -  no runner works here\n"
        "command-2  IDLE  -  -  -  no runner works here\n"
    )
    assert done.err == "No runner works here; start one with `git tasks run`.\n"


def test_numbers_and_switches_are_shown_at_once(project: Path) -> None:
    live(project)
    lines = [("scale", "command", "3"), ("scale", "command=1"), ("disable", "command")]
    told = [tasks_inprocess(project, "pool", *line).out for line in lines]
    assert told == ["command: 3 slots\n", "command: 1 slot\n", "command: disabled\n"]
    shown = tasks_inprocess(project, "pool", "status").out.splitlines()
    assert shown[1] == (
        "command-2  DISABLED  -       -       -      the agent is disabled, 1 slots wanted"
    )
    assert tasks_inprocess(project, "pool", "enable", "command").out == "command: enabled\n"


@pytest.mark.parametrize(
    ("line", "status", "told"),
    [
        (("pool", "scale", "command", "5"), 2, "5 slots are more than the 4 that maxSlots allows."),
        (("pool", "scale", "command"), 2, "'command' is no number of slots."),
        (("pool", "scale", "command", "x"), 2, "'x' is no number of slots."),
        (("pool", "enable", "nobody"), 4, "There is no agent nobody.\nhint: Choose one of command."),
        (("send", "command-1"), 2, "There is nothing to say."),
        (("send", "command-1", "a", "-m", "b"), 2, "The text is given twice."),
        (("kill", "command-9"), 4, "There is no slot command-9.\nhint: Choose one of command-1, command-2."),
        (("pool", "kill", "2"), 4, "There is no task 000002."),
        (("tail", "nobody"), 4, "There is no slot nobody.\nhint: Choose one of command-1, command-2."),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(
    project: Path, line: tuple[str, ...], status: int, told: str
) -> None:
    live(project)
    done = tasks_inprocess(project, *line, check=status)
    assert f"error: {told}" in done.err


@pytest.mark.parametrize(
    "line", [("send", "1", "hi"), ("kill", "1"), ("pool", "scale", "command=1")]
)
def test_without_a_runner_the_way_to_one_is_named(project: Path, line: tuple[str, ...]) -> None:
    tasks_inprocess(project, "new", "One")
    done = tasks_inprocess(project, *line, check=1)
    assert done.err == "error: No runner works here.\nhint: Start one with `git tasks run`.\n"


def test_what_an_agent_writes_is_printed_escaped(project: Path) -> None:
    live(project)
    long = "x" * 2000 + "…\n"
    assert tasks_inprocess(project, "tail", "command-1").out == f"first\nsecond \\x1b[31m\n{long}"
    assert tasks_inprocess(project, "tail", "-n", "1").out == f"command-1: {long}"
    data = tasks_inprocess(project, "pool", "tail", "command-1", "-n", "3", "--json").json()["data"]
    assert data[1] == {"slot": "command-1", "task": "000001", "text": "second \x1b[31m"}


def test_following_ends_with_the_run(project: Path) -> None:
    log = live(project)
    process = tasks_process(project, "tail", "-f", "command-1", "-n", "0", "--json")
    assert process.stdout is not None
    # The first lines may come before it follows.
    reader = select.poll()
    reader.register(process.stdout, select.POLLIN)
    with log.open("ab", buffering=0) as file:
        _until(lambda: file.write(b"more\n") > 0 and bool(reader.poll(50)))
    line = process.stdout.readline()
    pool.drop_view(Project.open(Options(str(project))), "aa")
    process.communicate(timeout=20)
    assert json.loads(line) == {"slot": "command-1", "task": "000001", "text": "more"}
    assert process.returncode == 0


def test_a_faulty_or_empty_pool_starts_nothing(project: Path) -> None:
    write_pool(project, {**AGENT, "slots": 0, "rolls": []})
    done = tasks_inprocess(project, "run", "--once", check=2)
    path = project / ".git" / "gittasks" / "agents.json"
    assert done.err == (
        f"error: The pool file {path} has 2 faults.\n"
        "  agents[0].slots: 0 is less than 1.\n"
        "  agents[0].rolls: The field is unknown; did you mean roles?\n"
        f"hint: Correct the fields named in {path}.\n"
    )
    other = project / "other.json"
    other.write_text('{"agents": []}', encoding="utf-8")
    done = tasks_inprocess(project.parent, "-C", "project", "run", "--pool", "other.json", check=2)
    assert f"The pool file {other} has a fault.\n  agents: There is no agent." in done.err
    assert tasks_inprocess(project, "new", "Written all the same").out == "000001\n"


def test_a_dry_run_only_says_who_would_get_what(project: Path) -> None:
    assert (
        tasks_inprocess(project, "run", "--dry-run").err == "Nobody would be given anything now.\n"
    )
    tasks_inprocess(project, "new", "One", "--enter", "work")
    before = tasks_inprocess(project, "log").out
    assert tasks_inprocess(project, "run", "--dry-run").out == "000001  command-1\n"
    planned = tasks_inprocess(project, "pool", "run", "--dry-run", "--json").json()["data"][
        "planned"
    ]
    assert planned == [{"task": "000001", "slot": "command-1"}]
    assert tasks_inprocess(project, "log").out == before


def test_an_agent_does_not_start_agents(project: Path) -> None:
    done = tasks_inprocess(project, "run", env={"GITTASKS_RUN": "x"}, check=5)
    assert "An agent at work does not steer the pool." in done.err


def test_a_run_is_steered_from_another_terminal(project: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    turn = [{"say": "hello"}, {"listen": 60}, {"hold": "that is all"}]
    plan.write_text(json.dumps({"default": {"default": [turn, [{"listen": 60}]]}}), "utf-8")
    write_pool(project, {"type": "scripted", "command": [str(plan)], "slots": 2})
    tasks_inprocess(project, "new", "One", "--enter", "work")
    tasks_inprocess(project, "new", "Two", "--enter", "work")
    runner = tasks_process(project, "run")
    try:
        _until(lambda: '"hello"' in _tail(project, "1") and '"hello"' in _tail(project, "2"))
        second = tasks_process(project, "run")
        told = second.communicate(timeout=30)[1]
        assert (second.returncode, "Another runner has every slot" in told) == (75, True)
        sent = tasks_inprocess(project, "send", "1", "go", "on")
        assert sent.out.startswith("000001 scripted-")
        _until(lambda: '"go on"' in _tail(project, "1"))
        assert tasks_inprocess(project, "kill", "#2").out.startswith("000002 scripted-")
        stopped = tasks_inprocess(project, "pool", "stop", "--now")
        assert stopped.out == "The runner has ended.\n"
        out, _ = runner.communicate(timeout=30)
    finally:
        runner.kill()
    events = [json.loads(line) for line in out.splitlines()]
    assert runner.returncode == 0
    assert [one["event"] for one in events if one["event"] in ("start", "sent", "killed", "end")] == [
        "start", "sent", "killed", "end",
    ]  # fmt: skip
    assert tasks_inprocess(project, "pool", "stop").out == "No runner works here.\n"
    claims = [one["claimed_by"] for one in tasks(project, "list", "--json").json()["data"]]
    assert claims == [None, None]


def _tail(folder: Path, task: str) -> str:
    done = tasks_inprocess(folder, "tail", task, "-n", "99", check=None)
    return done.out


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# -- how a run is told


RECORDS: list[dict[str, Any]] = [
    {"at": 0.5, "event": "start", "slots": ["a-1", "a-2"], "sandbox": "bare"},
    {"at": 1.0, "event": "dispatch", "slot": "a-1", "task": "000001", "state": "WORK"},
    {"at": 2.0, "event": "nudge", "slot": "a-1", "task": "000001", "issue": "blocked"},
    {"at": 3.0, "event": "trouble", "task": "000001", "error": "disk\x1b full"},
    {
        "at": 4.0, "event": "settled", "slot": "a-1", "task": "000001", "source": "WORK",
        "target": "CHECK",
    },
    {"at": 5.0, "event": "limit", "slot": "a-2", "until": 60.0, "error": "exit code 75\nlater"},
    {"at": 5.5, "event": "trespass", "tasks": ["000001"], "error": "The branch main was moved."},
    {"at": 6.0, "event": "end", "why": "the work is done"},
]  # fmt: skip


def test_elsewhere_each_event_is_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(Output())
    for record in RECORDS:
        progress(record)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {**RECORDS[0], "at": "1970-01-01T00:00:00Z"}
    assert lines[5] == {**RECORDS[5], "at": "1970-01-01T00:00:05Z", "until": "1970-01-01T00:01:00Z"}
    assert len(lines) == len(RECORDS)


def test_one_document_is_told_at_the_end_only(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(Output(json=True))
    for record in RECORDS:
        progress(record)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_on_a_terminal_one_line_changes_and_what_matters_stays(project: Path, term: str) -> None:
    ours, theirs = pty.openpty()
    script = (
        "import json, sys\n"
        "from gittasks.cli.output import Output\n"
        "from gittasks.cli.team import Progress\n"
        "progress = Progress(Output())\n"
        "for record in json.loads(sys.argv[1]):\n"
        "    progress(record)\n"
        "progress.clear()\n"
    )
    try:
        subprocess.run(
            [*COMMAND[:2], "-c", script, json.dumps(RECORDS)],
            cwd=project, env=environment({"TERM": term, "COLUMNS": "60"}),
            stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, check=True, timeout=60,
        )  # fmt: skip
        printed = os.read(ours, 65_536).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    stays = [
        "00:00:03 000001 trouble: disk\\x1b full\r\n",
        "00:00:05 a-2 limit until 1970-01-01T00:01:00Z: exit code 75 later\r\n",
        "00:00:05 trespass: The branch main was moved.\r\n",
    ]
    if term == "dumb":
        assert printed == "".join(stays)
        return
    new = "\r\x1b[K"
    assert printed == (
        f"{new}0 of 2 at work | 00:00:00 start"
        f"{new}1 of 2 at work | 00:00:01 000001 a-1 dispatch WORK"
        f"{new}1 of 2 at work | 00:00:02 000001 a-1 nudge: blocked"
        f"{new}{stays[0]}"
        f"{new}1 of 2 at work | 00:00:03 000001 trouble: disk\\x1b full"
        f"{new}0 of 2 at work | 1 settled | 00:00:04 000001 a-1 settled W…"
        f"{new}{stays[1]}"
        f"{new}0 of 2 at work | 1 settled | 00:00:05 a-2 limit until 1970…"
        f"{new}{stays[2]}"
        f"{new}0 of 2 at work | 1 settled | 00:00:05 trespass: The branch…"
        f"{new}0 of 2 at work | 1 settled | 00:00:06 end: the work is done"
        f"{new}"
    )
