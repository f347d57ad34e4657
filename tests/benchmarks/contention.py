"""Many processes that take tasks at once: is everybody served, fairly, and at what price?"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.benchmarks.fixtures import Plan, task_lines
from tests.benchmarks.table import Row, count_row

NOTHING_LEFT = 10
EACH = 6
EACH_QUICK = 3
RACES = 3
ALONE = 10
TRACE = {"GITTASKS_TRACE": "1"}


class _Worker(threading.Thread):
    """One agent that takes the next task again and again until none is left."""

    def __init__(self, plan: Plan, repo: Path, name: str, gate: threading.Barrier) -> None:
        super().__init__()
        self._plan = plan
        self._repo = repo
        self._agent = name
        self._gate = gate
        self.taken: list[str] = []
        self.seconds: list[float] = []
        self.moves = 0
        self.strange: list[int] = []

    def run(self) -> None:
        self._gate.wait()
        while True:
            line = ("claim", "--next", "--no-worktree", "--as", self._agent)
            done = self._plan.machine.tasks(self._repo, *line, env=TRACE, expected=None)
            self.moves += done.err.count(b" git update-ref ")
            if done.status:
                self.strange += [done.status] if done.status != NOTHING_LEFT else []
                return
            self.taken.append(done.out.decode().strip())
            self.seconds.append(done.wall)


def rows(plan: Plan) -> Iterator[Row]:
    """Yields the claims of sixteen and of thirty-two processes at once."""
    for processes in (16, 32):
        races = [_race(plan, processes) for _ in range(1 if plan.is_quick else RACES)]
        place = f"{processes} processes, {races[0].pool} tasks"
        undecided = sum(race.undecided for race in races)
        yield count_row("claims at once, not decided or doubled", place, undecided, 0)
        tries = max(race.tries for race in races)
        yield count_row("claims at once, tries for each", place, tries, 1.05)
        fairness = median(race.fairness for race in races)
        yield count_row("claims at once, fairness (Jain)", place, fairness, 0.9, at_least=True)
        slowest = median(race.slowest for race in races)
        yield count_row("claims at once, slowest / median", place, slowest, 3)
        each = median(race.each for race in races)
        yield count_row("claims at once, time for each / alone", place, each, 1.0)


class _Race(NamedTuple):
    """What came of one race for a pool of tasks."""

    pool: int
    undecided: int
    tries: float
    fairness: float
    slowest: float
    each: float


def _add(plan: Plan, repo: Path, count: int) -> None:
    lines = "\n".join(task_lines(0, count, 1, waiting=False))
    key = f"--idempotency-key={count}"
    plan.machine.tasks(repo, "new", "--from-file", "-", key, stdin=lines.encode())


def _alone(plan: Plan, repo: Path) -> list[float]:
    """Returns the seconds of some claims that nobody disturbs."""
    if b"\n" not in plan.machine.tasks(repo, "ready").out:
        _add(plan, repo, ALONE)
    line = ("claim", "--next", "--no-worktree", "--as", "single")
    return [plan.machine.tasks(repo, *line, env=TRACE).wall for _ in range(ALONE)]


def _race(plan: Plan, processes: int) -> _Race:
    repo = plan.fixtures.copy(plan.fixtures.empty())
    machine = plan.machine
    pool = processes * (EACH_QUICK if plan.is_quick else EACH)
    _add(plan, repo, pool + ALONE)
    machine.tasks(repo, "ready")
    machine.calibrate(repo)
    alone = _alone(plan, repo)
    gate = threading.Barrier(processes + 1)
    workers = [_Worker(plan, repo, f"agent-{n}", gate) for n in range(processes)]
    for worker in workers:
        worker.start()
    gate.wait()
    started = time.perf_counter()
    for worker in workers:
        worker.join()
    spent = time.perf_counter() - started
    # Before and after, because the machine may have been busy with something else at one time.
    alone += _alone(plan, repo)
    taken = [task for worker in workers for task in worker.taken]
    seconds = sorted(second for worker in workers for second in worker.seconds)
    counts = [len(worker.taken) for worker in workers]
    undecided = pool - len(set(taken)) + sum(len(worker.strange) for worker in workers)
    moves = sum(worker.moves for worker in workers)
    plan.fixtures.drop(repo)
    return _Race(
        pool,
        undecided,
        moves / len(taken),
        sum(counts) ** 2 / (processes * sum(n * n for n in counts)),
        seconds[-1] / median(seconds),
        spent / len(taken) / median(alone),
    )
