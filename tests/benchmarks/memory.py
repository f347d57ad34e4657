"""The most memory that a command takes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.fixtures import Plan, at
from tests.benchmarks.table import Row, count_row

MEGABYTE = 1e6
WHOLE = 200
OTHERS = 40


def rows(plan: Plan) -> Iterator[Row]:
    """Yields the peaks at the largest size: of commands that see the whole graph, and of others."""
    size = plan.sizes[-1]
    repo = plan.fixtures.copy(plan.fixtures.tasks(size))
    plan.machine.calibrate(repo)
    for limit, lines in ((OTHERS, ("status", "ready", "show 42", "note 42 Seen.")),
                         (WHOLE, ("list --all", "fsck"))):  # fmt: skip
        for line in lines:
            peak = plan.machine.peak(repo, *line.split()) / MEGABYTE
            yield count_row(f"memory of {line.split()[0]}", at(size), peak, limit, "MB")
    (repo / ".git" / "gittasks" / "cache.db").unlink()
    peak = plan.machine.peak(repo, "ready") / MEGABYTE
    yield count_row("memory of a cold ready", at(size), peak, WHOLE, "MB")
    plan.fixtures.drop(repo)
