"""What a command costs that hardly does anything."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.fixtures import Plan
from tests.benchmarks.measure import Budget
from tests.benchmarks.table import Row, case_row

TARGET = Budget(p=4.8, r=2)
STRETCH = Budget(p=1.5)


def rows(plan: Plan) -> Iterator[Row]:
    """Yields help, a usage error and `whoami`."""
    machine = plan.machine
    repo = plan.fixtures.small()
    found = machine.interleaved(
        repo,
        {
            "git tasks -h": lambda: machine.tasks(repo, "-h"),
            "usage error: no such command": lambda: machine.tasks(repo, "sbumit", expected=2),
            "usage error: no such option": lambda: machine.tasks(
                repo, "show", "--frob", expected=2
            ),
            "whoami": lambda: machine.tasks(repo, "whoami"),
        },
    )
    for name in found.cpu:
        yield case_row(found, name, name, "start", TARGET, STRETCH)
