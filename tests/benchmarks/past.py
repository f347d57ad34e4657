"""The history of the ledger: all of it, one task's, the last of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.benchmarks.fixtures import Plan
from tests.benchmarks.measure import Budget
from tests.benchmarks.table import Row, cpu_row

AN_EVENT = 15e-6
OF_A_TASK = Budget(r=60)
OF_A_TASK_WITH_GRAPH = Budget(r=12)
LAST = Budget(r=2.5)

FOLD = """
import sys
from gittasks.domain.task_graph import evolve
from gittasks.workflow.project import Project
events = list(Project.open().ledger.log(limit=int(sys.argv[1])))
tasks = {}
for recorded in reversed(events):
    event = recorded.event
    if event.task is not None:
        tasks[event.task], _ = evolve(tasks.get(event.task), b"", event)
"""


def rows(plan: Plan) -> Iterator[Row]:
    """Yields the fold of the whole ledger, and what looking back costs beyond a warm show."""
    machine = plan.machine
    repo = plan.fixtures.events(plan.events)
    where = f"{plan.events // 1000}k events"
    cases = {
        "start": partial(machine.tasks, repo, "show", "42"),
        "task": partial(machine.tasks, repo, "log", "42"),
        "last": partial(machine.tasks, repo, "log", "--limit", "10"),
        "one": partial(machine.run, [machine.python, "-c", FOLD, "0"], repo),
        "fold": partial(machine.run, [machine.python, "-c", FOLD, "-1"], repo),
    }
    found, units, _ = machine.interleaved(repo, cases, min(machine.rounds, 7))
    fold = found["fold"] - found["one"]
    target = Budget(seconds=AN_EVENT * plan.events)
    row = cpu_row("fold of the whole ledger", where, fold, units, target)
    each = fold / plan.events * 1e6
    yield row._replace(measured=f"{each:.1f} us an event", target="<= 15 us an event")
    task = found["task"] - found["start"]
    yield cpu_row("history of one task, beyond a warm show", where, task, units, OF_A_TASK)
    last = found["last"] - found["start"]
    yield cpu_row("last ten events, beyond a warm show", where, last, units, LAST)
    copy = plan.fixtures.copy(repo)
    machine.git(copy, "commit-graph", "write", "--reachable", "--changed-paths")
    found, units, _ = machine.interleaved(
        copy,
        {
            "start": partial(machine.tasks, copy, "show", "42"),
            "task": partial(machine.tasks, copy, "log", "42"),
        },
        min(machine.rounds, 7),
    )
    task = found["task"] - found["start"]
    name = "history of one task, beyond a warm show, with a commit-graph"
    yield cpu_row(name, where, task, units, OF_A_TASK_WITH_GRAPH)
    plan.fixtures.drop(copy)
