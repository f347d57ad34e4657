"""What has to hold of the projections on any ledger, also on one that was made by a real team."""

from __future__ import annotations

from pathlib import Path

from gittasks.domain.projections import table
from gittasks.domain.projections.difference import difference
from gittasks.domain.projections.table import Fact, World
from gittasks.ledger import history
from gittasks.ledger.ledger import Ledger
from tests.support.ledgers import open_ledger


def assert_derivations_agree(folder: Path, every: int = 1) -> int:
    """Compares, at every commit or some, the fold with the tree; returns how many events there are.

    On the way it goes on from a fold at each third of the history, listens to the signals from
    there, and takes the difference from there to the end.
    """
    ledger = open_ledger(folder)
    facts = list(history.facts(ledger.repo, ledger.tip))
    ledger.close()
    world = World()
    worlds = []
    for number, fact in enumerate(facts):
        world, _ = table.fold(world, fact)
        worlds.append(world)
        if number % every == 0 or number == len(facts) - 1:
            _assert_is_tree(folder, world, fact)
    for part in (1, 2):
        here = len(facts) * part // 3
        assert table.resume(worlds[here - 1], facts[here:]) == world
        _assert_signals_go_on(facts, here, worlds[here - 1])
        _assert_differs(worlds[here - 1], world)
    return len(facts)


def _assert_is_tree(folder: Path, world: World, fact: Fact) -> None:
    past = open_ledger(folder)
    past.look_at(fact.oid)
    try:
        _assert_same(past, world, fact)
    finally:
        past.close()


def _assert_same(past: Ledger, world: World, fact: Fact) -> None:
    assert world.graph.violations == ()
    assert list(world.graph.tasks.values()) == past.snapshot.all_tasks(), fact.oid
    inbox = past.snapshot.inbox("1970")
    assert {(row.id, row.rank) for row in inbox} == {
        (task, entry.rank) for task, entry in world.inbox.entries.items()
    }
    queue = past.snapshot.ready()
    assert {(row.id, row.rank) for row in queue} == set(world.queue.ranks.items())
    claims = past.snapshot.claims()
    assert {(row[0], row[2]) for row in claims} == {
        (task, claim.actor) for task, claim in world.working.claims.items()
    }
    blocking = {row.id: row.blocking for row in inbox} | {row.id: row.blocking for row in queue}
    assert {task: world.graph.blocking(task) for task in blocking} == blocking
    costs = [cost for task in world.graph.tasks.values() for cost in task.costs]
    assert world.costs.total.claims == len(costs)


def _assert_signals_go_on(facts: list[Fact], here: int, world: World) -> None:
    whole = [(f.oid, signals) for _, f, signals in table.told(World(), facts)]
    assert [(f.oid, signals) for _, f, signals in table.told(world, facts[here:])] == whole[here:]


def _assert_differs(before: World, after: World) -> None:
    found = difference(before, after)
    old, new = dict(before.graph.tasks.items()), dict(after.graph.tasks.items())
    assert set(found.created) == new.keys() - old.keys()
    for task, fields in found.changed.items():
        changed = {name: now for name, (_, now) in fields.items()}
        assert old[task]._replace(**changed) == new[task]
    assert {task for task in old if old[task] != new[task]} == found.changed.keys()
