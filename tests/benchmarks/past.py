"""The history of the ledger: all of it, one task's, the last of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.fixtures import Plan
from tests.benchmarks.measure import Budget, Sample
from tests.benchmarks.table import Row, cpu_row

AN_EVENT = 15e-6
OF_A_TASK = Budget(r=60)
OF_A_TASK_WITH_GRAPH = Budget(r=12)
LAST = Budget(r=2.5)

WORLD = """
import gc, sys
from gittasks.ledger import worlds
from gittasks.workflow.project import Project
gc.disable()  # as every command does
ledger = Project.open().ledger
worlds.at(ledger, ledger.repo.text("rev-parse", sys.argv[1]).strip(), worth=int(sys.argv[2]))
"""
AT_ONCE = 1
NEVER = 10**9
"""After how many events a checkpoint is kept."""
SUFFIX = 500


def rows(plan: Plan) -> Iterator[Row]:
    """Yields the fold of the whole ledger, and what looking back costs beyond a warm show."""
    machine = plan.machine
    repo = plan.fixtures.events(plan.events)
    where = f"{plan.events // 1000}k events"
    cases = {
        "start": partial(machine.tasks, repo, "show", "42"),
        "task": partial(machine.tasks, repo, "log", "42"),
        "last": partial(machine.tasks, repo, "log", "--limit", "10"),
    }
    found, units, _ = machine.interleaved(repo, cases, min(machine.rounds, 7))
    yield from _folds(plan)
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


def _folds(plan: Plan) -> Iterator[Row]:
    """Yields what an event costs in all projections: from the first one on, and on a checkpoint."""
    machine, branch = plan.machine, "refs/heads/gittasks"
    repo = plan.fixtures.copy(plan.fixtures.events(plan.events))
    kept = plan.fixtures.copy(repo)

    def world(folder: Path, revision: str, worth: int) -> Sample:
        line = [machine.python, "-c", WORLD, f"{branch}{revision}", str(worth)]
        return machine.run(line, folder)

    world(kept, f"~{SUFFIX}", AT_ONCE)
    found, units, _ = machine.interleaved(
        repo,
        {
            "first": partial(world, repo, f"~{plan.events - 1}", NEVER),
            "whole": partial(world, repo, "", NEVER),
            "loaded": partial(world, kept, f"~{SUFFIX}", NEVER),
            "suffix": partial(world, kept, "", NEVER),
        },
        min(machine.rounds, 5),
    )
    for name, what, cost, count in (
        ("whole", "fold of the whole ledger into all projections", "first", plan.events),
        ("suffix", f"fold of {SUFFIX} events on a checkpoint", "loaded", SUFFIX),
    ):
        spent = found[name] - found[cost]
        where = f"{plan.events // 1000}k events"
        row = cpu_row(what, where, spent, units, Budget(seconds=AN_EVENT * count))
        each = spent / count * 1e6
        yield row._replace(measured=f"{each:.1f} us an event", target="<= 15 us an event")
    for copy in (repo, kept):
        plan.fixtures.drop(copy)
