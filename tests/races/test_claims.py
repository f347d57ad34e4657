"""Many real processes take tasks of one repository at the same moment."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import tasks, tasks_process
from tests.support.git import git, make_repository

# On a busy machine a hundred processes take their time.
pytestmark = pytest.mark.timeout(900)

ROUNDS = 3
PROCESSES = 32
TASKS = 100


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Returns a repository with a ledger."""
    folder = make_repository(tmp_path / "repo")
    tasks(folder, "init")
    return folder


def _with_ready_tasks(project: Path, count: int) -> None:
    rows = "".join(f'{{"title": "Task {n}", "enter": "work"}}\n' for n in range(count))
    tasks(project, "new", "--from-file", "-", stdin=rows)


def _race(project: Path, commands: list[tuple[str, ...]]) -> list[tuple[int, str, str]]:
    """Starts every command at once, each as its own agent; returns status, stdout and stderr."""
    started = [
        tasks_process(project, *command, env={"GITTASKS_AGENT": f"agent-{number}"})
        for number, command in enumerate(commands)
    ]
    ended = []
    for process in started:
        out, err = process.communicate(timeout=600)
        ended.append((process.returncode, out.strip(), err.strip()))
    return ended


@contextmanager
def _beside(project: Path, *commands: list[str]) -> Iterator[None]:
    """Runs git commands in endless loops while the block runs; at least one round of each ends."""
    loops = []
    for command in commands:
        script = " ".join(command)
        loops.append(
            subprocess.Popen(
                ["sh", "-c", f"while :; do {script} >/dev/null 2>&1; done"],
                cwd=project,
                stdin=subprocess.DEVNULL,
            )
        )
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _claims_in_ledger(project: Path) -> list[str]:
    subjects = git(project, "log", "--format=%s", "gittasks", "--").splitlines()
    return [line.split(" ", 1)[0] for line in subjects if line.split(" ")[1] == "claim"]


def test_of_32_claims_of_one_task_one_wins_and_31_are_told_the_winner(project: Path) -> None:
    for round_ in range(1, ROUNDS + 1):
        task = tasks(project, "new", f"Round {round_}", "--enter", "work").out.strip()
        before = git(project, "rev-list", "--count", "gittasks", "--")
        ended = _race(project, [("claim", task, "--no-worktree")] * PROCESSES)
        winners = [number for number, (status, _, _) in enumerate(ended) if status == 0]
        assert len(winners) == 1, ended
        losers = [(status, err) for status, _, err in ended if status]
        assert {status for status, _ in losers} == {6}
        assert all(f"agent-{winners[0]}" in err for _, err in losers)
        after = git(project, "rev-list", "--count", "gittasks", "--")
        assert int(after) == int(before) + 1
        shown = tasks(project, "show", task, "--json").json()["data"]
        assert shown["claimed_by"] == f"agent-{winners[0]}"


def _take_all(project: Path) -> None:
    _with_ready_tasks(project, TASKS)
    taken: list[str] = []
    agent = 0
    while agent < TASKS:
        batch = min(PROCESSES, TASKS - agent)
        ended = _race(project, [("claim", "--next", "--no-worktree")] * batch)
        assert [status for status, _, _ in ended] == [0] * batch, ended
        taken += [out for _, out, _ in ended]
        agent += batch
    assert Counter(taken) == Counter(f"{n:06d}" for n in range(1, TASKS + 1))
    assert sorted(_claims_in_ledger(project)) == sorted(taken)
    assert tasks(project, "claim", "--next", "--no-worktree", check=10).out == ""


def test_32_processes_take_100_tasks_and_none_twice(project: Path) -> None:
    _take_all(project)


def test_none_is_lost_while_git_collects_packs_and_commits_beside(
    project: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "elsewhere"
    git(project, "worktree", "add", "-q", "-b", "side", str(tree))
    commit = f"git -C {tree} -c user.name=X -c user.email=x@x commit -q --allow-empty -m x"
    with _beside(
        project, ["git", "gc", "-q", "--prune=now"], ["git", "pack-refs", "--all"], [commit]
    ):
        _take_all(project)
    tasks(project, "fsck")
    assert git(project, "fsck", "--connectivity-only", "--no-dangling", "gittasks") == ""
