"""A team whose agents do everything wrong once: what they were asked for comes out all the same."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gittasks.plumbing.processes import with_variable
from tests.support.cli import environment, tasks
from tests.support.git import git, make_repository
from tests.workflow.ground import opened

SLOW = pytest.mark.slow

# What a worker does the first time that it has a task, by the last digits of the task.
FAULTS = {
    0: "kill -9 $$",  # dies
    1: "sleep 600",  # hangs
    2: "for i in 1 2 3 4 5 6 7 8 9 10 11; do echo gittasks-activity: make; done; sleep 600",
    3: "work; echo dirt >> dirt.txt; git tasks submit -m Done; rm dirt.txt; git tasks submit -m Done",
    4: "work; sed -i '1i mine' ../ASSIGNMENT.md; echo Done >> ../ASSIGNMENT.md; git tasks submit;"
    " git tasks submit",
    5: "work; git tasks submit -m Done; git tasks submit -m Done",
    6: "git switch -qc elsewhere/$GITTASKS_TASK; work; git tasks submit -m Done",
    7: "work; git update-ref refs/heads/stolen/$GITTASKS_TASK HEAD; git tasks submit -m Done",
    8: "head -c 20000000 /dev/zero | tr '\\0' 'x'; work; git tasks submit -m Done",
    9: "trap '' TERM INT; while :; do sleep 1; done",  # hears nothing
    10: "work; exit 0",  # says nothing
    11: "echo broken >&2; exit 3",
}

# A shell takes a number that begins with 0 for an octal one, so the task gets a 1 before it.
AGENT = """#!/bin/sh
cat > /dev/null
work() { echo "$GITTASKS_TASK" > "$GITTASKS_TASK.txt"; git add -A; git commit -qm "Work"; }
case "$GITTASKS_ROLE" in
  designer|planner) exec git tasks submit -m "As asked." ;;
  reviewer) exec git tasks submit ;;
esac
if mkdir ../tried 2>/dev/null; then
  case $(( (1${GITTASKS_TASK#0000} - 100) %% 12 )) in
%s
  esac
  exit 0
fi
git symbolic-ref -q HEAD > /dev/null && git switch -q "task/$GITTASKS_TASK"
test -e "$GITTASKS_TASK.txt" || work
git tasks submit -m Done
"""


def make_agent(path: Path, faults: Mapping[int, str] = FAULTS) -> Path:
    """Writes the agent as a script; without a fault it only says nothing the first time."""
    cases = "\n".join(f"    {number}) {fault} ;;" for number, fault in faults.items())
    path.write_text(AGENT % cases, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def make_team(folder: Path, agent: Path, *, slots: int, sandbox: str = "off") -> None:
    """Writes the pool file of a clone."""
    pool = {
        "agents": [{"type": "command", "command": [str(agent)], "slots": slots, "maxSlots": 8}],
        "sandbox": sandbox,
    }
    state = folder / ".git" / "gittasks"
    state.mkdir(exist_ok=True)
    (state / "agents.json").write_text(json.dumps(pool), encoding="utf-8")
    git(folder, "config", "gittasks.agentTimeout", "2s")


def write_tasks(folder: Path, count: int) -> None:
    """Writes tasks down, most of them at WORK, all with a check that the work decides."""
    rows = [
        {
            "title": f"Task {number}",
            "enter": "design" if number % 10 == 0 else "work",
            "checks": [f"test -e {number:06d}.txt"],
        }
        for number in range(1, count + 1)
    ]
    (folder.parent / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    tasks(folder, "new", "--from-file", str(folder.parent / "tasks.jsonl"))


def runner(folder: Path) -> subprocess.Popen[str]:
    """Starts a runner that ends when nothing is left to do."""
    code = (
        "import json, sys; from gittasks.workflow.project import Project\n"
        "from gittasks.runner import loop\n"
        "loop.run(Project.open(), once=True, tell=lambda d: print(json.dumps(d), flush=True))"
    )
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code], cwd=folder, env=environment(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def finished(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Waits for a runner and returns what it has told."""
    out, err = process.communicate(timeout=110)
    assert (process.returncode, err) == (0, ""), f"{out[-3000:]}\n{err}"
    return [json.loads(line) for line in out.splitlines()]


def states(folder: Path) -> Counter[str]:
    """Returns how many tasks stand in which state."""
    return Counter(row["state"] for row in tasks(folder, "list", "--all", "--json").json()["data"])


def require_whole(folder: Path, count: int) -> None:
    """Checks that each task was submitted once and is reviewed, and that nothing is left over."""
    assert states(folder) == {"MANAGER_REVIEW": count}
    submits = Counter(
        event["task"]
        for event in map(json.loads, tasks(folder, "log", "--jsonl").out.splitlines())
        if event.get("to") == "CHECK" and event["event"] == "submit"
    )
    assert set(submits.values()) == {1}
    assert len(submits) == count
    tasks(folder, "fsck")
    project = opened(folder)
    assert with_variable("GITTASKS_RUN", project.host) == {}
    assert os.listdir(os.path.join(project.state_dir, "runs")) == []
    for number in range(1, count + 1):
        assert git(folder, "show", f"task/{number:06d}:{number:06d}.txt") == f"{number:06d}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a repository with a ledger."""
    made = make_repository(tmp_path / "repo")
    tasks(made, "init")
    return made


@pytest.mark.parametrize(
    ("count", "sandbox", "expected"),
    [
        (40, "auto", "It tried to move the branch stolen/{}."),
        (12, "off", "The branch stolen/{} was made at "),
    ],
    ids=["forty, kept apart", "twelve, bare"],
)
def test_tasks_are_done_by_six_slots_whatever_goes_wrong(
    folder: Path, count: int, sandbox: str, expected: str
) -> None:
    write_tasks(folder, count)
    make_team(folder, make_agent(folder.parent / "agent"), slots=6, sandbox=sandbox)
    told = finished(runner(folder))
    require_whole(folder, count)
    issues = Counter(one["issue"] for one in told if one["event"] == "nudge")
    assert set(issues) == {"aborted", "looping", "missing-result"}
    trespasses = {one["error"] for one in told if one["event"] == "trespass"}
    for task in [f"{number:06d}" for number in range(7, count, 12)]:
        assert [one for one in trespasses if one.startswith(expected.format(task))]


def test_four_runners_in_two_clones_share_the_work_without_a_double(folder: Path) -> None:
    remote = folder.parent / "remote.git"
    git(folder.parent, "init", "-q", "--bare", "-b", "master", str(remote))
    git(folder, "remote", "add", "origin", str(remote))
    git(folder, "push", "-q", "-u", "origin", "master")
    write_tasks(folder, 12)
    tasks(folder, "sync")
    other = folder.parent / "other"
    git(folder.parent, "clone", "-q", str(remote), str(other))
    for key, value in (("user.name", "Bob"), ("user.email", "bob@example.org")):
        git(other, "config", key, value)
    tasks(other, "init")
    tasks(other, "trust", "--all", check=None)
    agent = make_agent(folder.parent / "agent", {})
    for clone in (folder, other):
        make_team(clone, agent, slots=2)
    running = [runner(clone) for clone in (folder, other) for _ in range(2)]
    for process in running:
        finished(process)
    tasks(other, "sync")
    tasks(folder, "sync")
    # What one clone left at CHECK for the other one is done by whoever runs once more.
    finished(runner(folder))
    tasks(folder, "sync")
    require_whole(folder, 12)


@pytest.mark.parametrize(
    ("seed", "moments"),
    [pytest.param(0, 6, id="a few times")]
    + [pytest.param(seed, 20, id=f"twenty times, {seed}", marks=SLOW) for seed in (1, 2, 3)],
)
def test_a_runner_killed_again_and_again_ends_the_same(
    folder: Path, seed: int, moments: int
) -> None:
    write_tasks(folder, 2 * moments)
    make_team(folder, make_agent(folder.parent / "agent"), slots=4)
    for moment in range(moments):
        process = runner(folder)
        time.sleep(0.15 + ((seed * 7 + moment) * 37 % 100) / 80)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finished(runner(folder))
    require_whole(folder, 2 * moments)
