"""Folders to work in, and landing, in a repository of many files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.benchmarks.fixtures import Fixtures, Plan
from tests.benchmarks.measure import Budget
from tests.benchmarks.table import Row, count_row, cpu_row

START = 1.15
LANDING = Budget(r=25)
ROUNDS = 5


# Many small files bring a disk to its limits, and then all is as slow as the disk.
MEMORY = Path("/dev/shm")


def rows(plan: Plan) -> Iterator[Row]:
    """Yields `start` against `git worktree add`, and what a landing costs beyond its start."""
    where = f"{plan.files // 1000}k files"
    if not os.access(MEMORY, os.W_OK):
        yield from _rows(plan, plan.fixtures, where)
        return
    with tempfile.TemporaryDirectory(prefix="gittasks-bench-", dir=MEMORY) as folder:
        fixtures = Fixtures(plan.machine, Path(folder) / "fixtures")
        yield from _rows(plan, fixtures, f"{where} in memory")


def _rows(plan: Plan, fixtures: Fixtures, where: str) -> Iterator[Row]:
    machine = plan.machine
    repo = fixtures.copy(fixtures.files(plan.files))
    ours, plain, landed, starts = [], [], [], []
    names = ("CPU", "wall")
    for number in range(ROUNDS):
        machine.calibrate(repo)
        path = str(repo.parent / f"plain-{number}")
        done = machine.git(repo, "worktree", "add", "-q", "-b", f"p{number}", path)
        plain.append((done.cpu, done.wall))
        task = str(number + 1)
        done = machine.tasks(repo, "start", task, "--as", "builder")
        ours.append((done.cpu, done.wall))
        _to_review(plan, repo, Path(done.out.decode().strip()), task)
        starts.append(machine.tasks(repo, "whoami").cpu)
        landed.append(machine.tasks(repo, "submit", task).cpu)
    for name, mine, theirs in zip(
        names, zip(*ours, strict=True), zip(*plain, strict=True), strict=True
    ):
        ratio = count_row(
            f"start / git worktree add, {name}", where, median(mine) / median(theirs), START
        )
        yield ratio._replace(
            measured=f"{ratio.measured} ({median(mine) * 1000:.0f} / {median(theirs) * 1000:.0f} ms)"
        )
    beyond = median(landed) - median(starts)
    yield cpu_row("landing, beyond its start", where, beyond, machine.units(ROUNDS), LANDING)
    fixtures.drop(repo)


def _to_review(plan: Plan, repo: Path, tree: Path, task: str) -> None:
    """Does the work of a task, checks and reviews it, so that the manager can land it."""
    machine = plan.machine
    for name in range(3):
        (tree / f"new-{task}-{name}.txt").write_text(f"{task} {name}\n")
    machine.git(tree, "add", ".")
    machine.git(tree, "commit", "-q", "-m", f"Build {task}")
    machine.tasks(repo, "submit", task, "--as", "builder", "-m", "## Notes\n\nIt stands.")
    machine.tasks(repo, "claim", task, "--as", "reader")
    machine.tasks(repo, "submit", task, "--as", "reader")
