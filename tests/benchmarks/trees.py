"""Folders to work in, and landing, in a repository of many files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.benchmarks.fixtures import Plan
from tests.benchmarks.measure import Budget
from tests.benchmarks.table import Row, count_row, cpu_row

START = 1.15
LANDING = Budget(r=25)
ROUNDS = 5


def rows(plan: Plan) -> Iterator[Row]:
    """Yields `start` against `git worktree add`, and what a landing costs beyond its start."""
    machine = plan.machine
    repo = plan.fixtures.copy(plan.fixtures.files(plan.files))
    where = f"{plan.files // 1000}k files"
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
    plan.fixtures.drop(repo)


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
