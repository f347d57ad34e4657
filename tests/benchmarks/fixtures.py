"""Repositories to measure in, made by the tool itself, each once and then copied."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.measure import Machine

PARAGRAPH = "It says in a few plain words what has to be done, where, and how one sees that it is. "
BODY = "\n".join([PARAGRAPH * 2 + "\n"] * 3)
_PART = 5000


class Fixtures:
    """The repositories of one run, below one folder."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        """Makes nothing yet."""
        self._machine = machine
        self._folder = folder
        self._copies = 0

    def empty(self) -> Path:
        """Returns a repository with a ledger and no task."""
        return self._made("empty", 0, 1, 0)

    def small(self) -> Path:
        """Returns a repository of a few tasks."""
        return self._made("small", 20, 2, 0)

    def tasks(self, count: int) -> Path:
        """Returns a repository of so many open tasks; nobody may change it.

        Half of them are ready for work, half wait for the manager; every tenth waits for another.
        """
        return self._made(f"tasks-{count}", count, 2, 0)

    def events(self, count: int) -> Path:
        """Returns a repository of so many events about half as many tasks; for reading only."""
        return self._made(f"events-{count}", count // 2, 1, 0)

    def files(self, count: int) -> Path:
        """Returns a repository with so many files and a few tasks; nobody may change it."""
        return self._made(f"files-{count}", 40, 1, count)

    def copy(self, made: Path) -> Path:
        """Returns a copy that may be changed."""
        self._copies += 1
        target = self._folder / f"copy-{self._copies}" / made.name
        target.parent.mkdir()
        shutil.copytree(made, target, symlinks=True)
        return target

    def drop(self, copy: Path) -> None:
        """Removes a copy and the folders of tasks beside it."""
        shutil.rmtree(copy.parent, ignore_errors=True)

    def _made(self, name: str, count: int, every: int, files: int) -> Path:
        repo = self._folder / name
        if repo.exists():
            return repo
        repo.mkdir(parents=True)
        machine = self._machine
        machine.git(repo, "init", "-q", "-b", "master")
        for number in range(max(files, 3)):
            path = repo / f"part-{number // 100:03d}" / f"file-{number:05d}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{number}\n" + PARAGRAPH)
        machine.git(repo, "add", ".")
        machine.git(repo, "commit", "-q", "-m", "Begin")
        machine.tasks(repo, "init")
        for start in range(0, count, _PART):
            lines = task_lines(start, min(start + _PART, count), every)
            machine.tasks(repo, "new", "--from-file", "-", stdin="\n".join(lines).encode())
        machine.git(repo, "gc", "-q")
        machine.tasks(repo, "ready")
        return repo


def task_lines(start: int, end: int, every: int, *, waiting: bool = True) -> Iterator[str]:
    """Yields tasks as `new --from-file` reads them; one in `every` is dispatched.

    `waiting` makes every tenth depend on the one before.
    """
    for number in range(start, end):
        task: dict[str, object] = {"title": f"Part {number} of the house", "body": BODY}
        if number % every == 0:
            task["enter"] = "work"
        if number % 3 == 0:
            task["labels"] = ["house"]
        if waiting and number % 10 == 6:
            task["depends_on"] = [f"k{number - 1}"]
        yield json.dumps({**task, "key": f"k{number}"})


def at(count: int) -> str:
    """Returns a number of tasks as the table has it."""
    return f"{count // 1000}k tasks" if count % 1000 == 0 else f"{count} tasks"


class Plan(NamedTuple):
    """What one run of the benchmark measures with, and how large."""

    machine: Machine
    fixtures: Fixtures
    folder: Path
    sizes: tuple[int, ...]
    files: int
    events: int
    is_quick: bool
