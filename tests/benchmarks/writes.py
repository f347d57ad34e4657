"""What one event costs, in CPU, in git processes and in bytes, and many of them in one command."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.fixtures import Plan, at, task_lines
from tests.benchmarks.measure import Budget, Sample
from tests.benchmarks.table import Row, case_row, count_row, cpu_row

TARGET = Budget(p=6.5, r=6)
STRETCH = Budget(p=1.8, r=5)
PROCESSES = 5
GROWTH = 1.3
BATCH = 100
REPACK = ("repack", "-a", "-d", "-f", "-q")
COUNTER = """#!/bin/sh
echo "$*" >> "$GIT_COUNT_FILE"
exec "$GIT_COUNTED" "$@"
"""


def one(plan: Plan) -> Iterator[Row]:
    """Yields the CPU of one write, how it grows, and how many git processes it takes."""
    measured: dict[int, dict[str, float]] = {}
    for size in plan.sizes:
        repo = plan.fixtures.copy(plan.fixtures.tasks(size))
        verbs = _Verbs(plan, repo)
        found = plan.machine.interleaved(repo, verbs.cases())
        measured[size] = found.cpu
        for name in found.cpu:
            yield case_row(found, name, name, at(size), TARGET, STRETCH)
        if size == plan.sizes[-1]:
            for name, case in verbs.cases(counted=True).items():
                count = _processes(plan, case)
                yield count_row(f"git processes of {name}", at(size), count, PROCESSES)
        plan.fixtures.drop(repo)
    smallest, largest = plan.sizes[0], plan.sizes[-1]
    if smallest != largest:
        place = f"{largest // 1000}k / {smallest // 1000}k tasks"
        for name, seconds in measured[largest].items():
            yield count_row(f"{name}, growth", place, seconds / measured[smallest][name], GROWTH)


class _Verbs:
    """Writes that never run out of tasks: each call takes the next one in the right state."""

    def __init__(self, plan: Plan, repo: Path) -> None:
        self._plan = plan
        self._repo = repo
        self._env: dict[str, str] = {}
        # Odd ids are at WORK and nobody's, even ones are NEW; see the fixture.
        self._work = iter(range(101, 1000, 10))
        self._new = iter(range(102, 1000, 10))
        self._noted = iter(range(103, 1000, 10))
        self._design = iter(range(104, 1000, 10))

    def cases(self, *, counted: bool = False) -> dict[str, Callable[[], Sample]]:
        """Returns the verbs by name."""
        self._env = _counting(self._plan.folder) if counted else {}
        return {
            "note": lambda: self._run("note", str(next(self._noted)), "The wall stands."),
            "claim": lambda: self._run("claim", str(next(self._work)), "--no-worktree"),
            "submit (dispatch)": lambda: self._run(
                "submit", str(next(self._new)), "--enter", "work"
            ),
            "submit (a design, from its tree)": self._submit_design,
            "feedback (a review, from its tree)": self._feedback,
        }

    def _run(self, *words: str) -> Sample:
        return self._plan.machine.tasks(self._repo, *words, env=self._env)

    def _prepare(self, *words: str) -> None:
        self._plan.machine.tasks(self._repo, *words)

    def _submit_design(self) -> Sample:
        task = str(next(self._design))
        self._prepare("submit", task, "--enter", "design")
        self._prepare("claim", task, "--as", "drawer")
        self._under_review = task
        return self._run("submit", task, "--as", "drawer", "-m", "## Design\n\nOf brick.")

    def _feedback(self) -> Sample:
        task = self._under_review
        self._prepare("claim", task, "--as", "reader")
        return self._run("feedback", task, "--as", "reader", "-m", "Brick is not in store.")


def _counting(folder: Path) -> dict[str, str]:
    """Returns an environment in which every git process leaves a line in a file."""
    home = folder / "counting"
    home.mkdir(exist_ok=True)
    wrapper = home / "git"
    real = next(
        os.path.join(place, "git")
        for place in os.environ["PATH"].split(os.pathsep)
        if os.access(os.path.join(place, "git"), os.X_OK)
    )
    wrapper.write_text(COUNTER)
    wrapper.chmod(0o755)
    return {
        "PATH": f"{home}{os.pathsep}{os.environ['PATH']}",
        "GIT_COUNT_FILE": str(home / "calls"),
        "GIT_COUNTED": real,
    }


def _processes(plan: Plan, case: Callable[[], Sample]) -> int:
    calls = plan.folder / "counting" / "calls"
    calls.unlink(missing_ok=True)
    case()
    return len(calls.read_text().splitlines())


def sizes(plan: Plan) -> Iterator[Row]:
    """Yields the bytes that an event leaves behind, before and after git has packed them."""
    size = max(one for one in plan.sizes if one <= 10_000)
    count = 40 if plan.is_quick else 200
    machine = plan.machine
    repo = plan.fixtures.copy(plan.fixtures.tasks(size))
    objects = repo / ".git" / "objects"
    machine.calibrate(repo)
    # Packed the same way before and after, so that the difference is the events' own.
    machine.git(repo, *REPACK)
    before = _bytes_below(objects)
    # The tasks lie in different folders, as they would in a year of work.
    for number in range(count):
        task = str(1 + number * 7 % 97 * (size // 97) // 2 * 2)
        machine.tasks(repo, "edit", task, "--title", f"Wall {number}")
    loose = _bytes_below(objects) - before
    machine.git(repo, *REPACK)
    packed = _bytes_below(objects) - before
    yield count_row("bytes per event, loose", at(size), loose / count, 7000, "B")
    yield count_row("bytes per event, after gc", at(size), packed / count, 800, "B")
    plan.fixtures.drop(repo)


def _bytes_below(folder: Path) -> int:
    return sum(
        os.stat(os.path.join(place, name)).st_size
        for place, _, names in os.walk(folder)
        for name in names
        if name.endswith((".pack", ".idx", ".rev")) or len(name) == 38
    )


def batch(plan: Plan) -> Iterator[Row]:
    """Yields many events in one command: what each costs, the files, the moves of the ref."""
    machine = plan.machine
    for size in plan.sizes:
        repo = plan.fixtures.copy(plan.fixtures.tasks(size))
        packs = repo / ".git" / "objects"
        log = repo / ".git" / "logs" / "refs" / "heads" / "gittasks"
        added = itertools.count()

        def new(count: int = BATCH, repo: Path = repo, added: Iterator[int] = added) -> Sample:
            lines = "\n".join(task_lines(1, 1 + count, BATCH + 1)).encode()
            key = f"--idempotency-key=batch-{next(added)}"
            return machine.tasks(repo, "new", "--from-file", "-", key, stdin=lines)

        files, moves = _files_below(packs), len(log.read_bytes().splitlines())
        found = machine.interleaved(repo, {"one": partial(new, 1), "many": new})
        each = (found.cpu["many"] - found.cpu["one"]) / (BATCH - 1)
        events = f"{BATCH} events in one command"
        row = cpu_row(f"{events}, each", at(size), each, found.units, Budget(r=0.4))
        whole = f"{found.cpu['many'] * 1000:.0f} ms in all"
        yield row._replace(measured=f"{each / found.units.r:.2f} R ({whole})")
        singles = machine.rounds * _FILES_OF_ONE
        fresh = (_files_below(packs) - files - singles) / machine.rounds
        yield count_row(f"{events}, new files", at(size), fresh, 2)
        moved = (len(log.read_bytes().splitlines()) - moves) / machine.rounds - 1
        yield count_row(f"{events}, moves of the ref", at(size), moved, 1)
        plan.fixtures.drop(repo)


# A document, three folders and a commit.
_FILES_OF_ONE = 5


def _files_below(folder: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(folder))
