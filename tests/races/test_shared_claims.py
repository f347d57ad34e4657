"""Clones take tasks of one remote at the same moment, as processes of their own."""

from __future__ import annotations

import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.cli import CHECKOUT, tasks, tasks_inprocess, tasks_process
from tests.support.clones import written
from tests.support.git import git
from tests.support.remotes import bare_remote, clone

# On a busy machine many clones take their time.
pytestmark = pytest.mark.timeout(900)

ROUNDS = 20
FROZEN = CHECKOUT / "tests" / "support" / "frozen"
NOTHING_LEFT = 10
TAKEN = 6
BUSY = 75


def _team(folder: Path, count: int) -> tuple[Path, list[Path]]:
    """Returns a remote and so many clones that share the ledger on it."""
    remote = bare_remote(folder / "remote.git")
    clones = [clone(remote, folder / f"clone{n}", "Ada") for n in range(count)]
    for one in clones:
        tasks_inprocess(one, "init", "--remote", "origin")
    return remote, clones


def _claims(remote: Path) -> list[tuple[str | None, str | None]]:
    """Returns task and claim of each claim on the remote, oldest first."""
    tip = git(remote, "rev-parse", "refs/heads/gittasks")
    return [(one.task, one.claim) for one in written(remote, tip) if one.kind == "claim"]


def _ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def test_of_two_clones_in_the_same_second_with_the_same_name_one_wins(tmp_path: Path) -> None:
    remote, clones = _team(tmp_path, 2)
    lines = "".join(f'{{"title": "Task {n}", "enter": "work"}}\n' for n in range(ROUNDS))
    tasks(clones[0], "new", "--from-file", "-", stdin=lines)
    # One name, one second: only the secret tells the claims apart.
    env = {
        "PYTHONPATH": f"{FROZEN}:{CHECKOUT}",
        "FROZEN_AT": "1800000000",
        "GITTASKS_AGENT": "pi",
    }
    for number in range(1, ROUNDS + 1):
        command = ("claim", str(number), "--no-worktree", "--json")
        ended = [_ended(one) for one in [tasks_process(c, *command, env=env) for c in clones]]
        assert sorted(status for status, _, _ in ended) == [0, TAKEN], ended
    claims = _claims(remote)
    assert [task for task, _ in claims] == [f"{n:06d}" for n in range(1, ROUNDS + 1)]
    dates = git(remote, "log", "--format=%at", f"-{ROUNDS}", "gittasks", "--").splitlines()
    assert set(dates) == {"1800000000"}
    for one in clones:
        tasks_inprocess(one, "sync")
        tasks_inprocess(one, "fsck")


def _take_all(clone_: Path, agent: str) -> list[str]:
    """Takes the next task again and again until none is left; returns the tasks taken."""
    taken: list[str] = []
    while True:
        done = tasks(
            clone_, "claim", "--next", "--no-worktree", env={"GITTASKS_AGENT": agent}, check=None
        )
        if done.status == NOTHING_LEFT:
            return taken
        # Whoever was beaten in each round says so, and may try again.
        assert done.status in (0, BUSY), done.err
        taken += done.out.split()


def _race(folder: Path, clones_count: int, tasks_count: int) -> None:
    remote, clones = _team(folder, clones_count)
    lines = "".join(f'{{"title": "Task {n}", "enter": "work"}}\n' for n in range(tasks_count))
    tasks(clones[0], "new", "--from-file", "-", stdin=lines)
    with ThreadPoolExecutor(clones_count) as pool:
        agents = [f"agent-{number}" for number in range(clones_count)]
        taken = [task for each in pool.map(_take_all, clones, agents) for task in each]
    assert Counter(taken) == Counter(f"{n:06d}" for n in range(1, tasks_count + 1))
    assert sorted(str(task) for task, _ in _claims(remote)) == sorted(taken)
    for one in clones:
        tasks_inprocess(one, "sync")
        tasks_inprocess(one, "fsck")
    assert len({git(one, "rev-parse", "gittasks") for one in (remote, *clones)}) == 1


def test_four_clones_race_for_all_tasks_and_none_is_taken_twice(tmp_path: Path) -> None:
    _race(tmp_path, 4, 16)


@pytest.mark.slow
def test_eight_clones_race_for_200_tasks_and_none_is_taken_twice(tmp_path: Path) -> None:
    _race(tmp_path, 8, 200)
