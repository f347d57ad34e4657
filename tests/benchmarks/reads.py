"""Reads with a cache that is true, one that is behind, and none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.fixtures import Plan, at
from tests.benchmarks.measure import Budget, Sample
from tests.benchmarks.table import Row, case_row, count_row

WARM = Budget(p=5, r=2)
WARM_STRETCH = Budget(p=2.2, r=2)
EVERYTHING = "list of everything"
A_ROW = 1.5e-6
A_COLD_TASK = 60e-6
GROWTH = 1.25
STEPS = (1, 10, 100)


def warm(plan: Plan) -> Iterator[Row]:
    """Yields the reads that find everything in the cache, and how they grow."""
    machine = plan.machine
    measured: dict[int, dict[str, float]] = {}
    for size in plan.sizes:
        repo = plan.fixtures.tasks(size)
        words = {
            "ready": ("ready",),
            "show": ("show", "42"),
            "inbox": ("inbox",),
            "status": ("status",),
            "prime": ("prime", "41"),
            EVERYTHING: ("list", "--all"),
        }
        found = machine.interleaved(
            repo, {name: partial(machine.tasks, repo, *line) for name, line in words.items()}
        )
        measured[size] = {name: cpu for name, cpu in found.cpu.items() if name != EVERYTHING}
        for name in measured[size]:
            yield case_row(found, name, f"warm {name}", at(size), WARM, WARM_STRETCH)
        yield case_row(
            found,
            EVERYTHING,
            f"warm {EVERYTHING}",
            at(size),
            WARM._replace(seconds=size * A_ROW),
            Budget(p=3.5, r=2) if size == 10_000 else None,
        )
    smallest, largest = plan.sizes[0], plan.sizes[-1]
    if smallest != largest:
        for name, seconds in measured[largest].items():
            ratio = seconds / measured[smallest][name]
            yield count_row(f"warm {name}, growth", _between(smallest, largest), ratio, GROWTH)


def stale(plan: Plan) -> Iterator[Row]:
    """Yields `ready` after some new events, measured against a cache that is true."""
    machine = plan.machine
    for size in plan.sizes:
        repo = plan.fixtures.copy(plan.fixtures.tasks(size))
        cache = repo / ".git" / "gittasks" / "cache.db"
        kept = {}
        # Backwards: the cache that lacks a hundred events is the first to be kept.
        for left in range(max(STEPS), 0, -1):
            if left in STEPS:
                kept[left] = shutil.copy(cache, plan.folder / f"cache-{size}-{left}.db")
            machine.tasks(repo, "note", str(left * 7), "The cache is behind by this.")
        cases: dict[str, Callable[[], Sample]] = {
            str(step): partial(_with_cache, plan, repo, Path(old)) for step, old in kept.items()
        }
        found = machine.interleaved(repo, {**cases, "warm": partial(machine.tasks, repo, "ready")})
        for step in STEPS:
            target = WARM._replace(r=WARM.r + 2 + 0.3 * step)
            name = f"ready after {step} new events"
            row = case_row(found, str(step), name, at(size), target)
            extra = (found.cpu[str(step)] - found.cpu["warm"]) / found.units.r
            yield row._replace(measured=f"{row.measured}, warm + {extra:.1f} R")
        plan.fixtures.drop(repo)


def _with_cache(plan: Plan, repo: Path, cache: Path) -> Sample:
    shutil.copy(cache, repo / ".git" / "gittasks" / "cache.db")
    return plan.machine.tasks(repo, "ready")


def cold(plan: Plan) -> Iterator[Row]:
    """Yields `ready` where there is no cache yet."""
    machine = plan.machine
    for size in plan.sizes:
        repo = plan.fixtures.tasks(size)
        rounds = machine.rounds if size <= 1000 else 3
        found = machine.interleaved(repo, {"cold": partial(_without_cache, plan, repo)}, rounds)
        target = Budget(p=5, seconds=A_COLD_TASK * size)
        row = case_row(found, "cold", "cold ready", at(size), target)
        beyond = (found.cpu["cold"] - 5 * found.units.p) / size * 1e6
        yield row._replace(measured=f"{row.measured}, {beyond:.0f} us a task beyond 5 P")


def _without_cache(plan: Plan, repo: Path) -> Sample:
    (repo / ".git" / "gittasks" / "cache.db").unlink()
    return plan.machine.tasks(repo, "ready")


def _between(smallest: int, largest: int) -> str:
    return f"{largest // 1000}k / {smallest // 1000}k tasks"
