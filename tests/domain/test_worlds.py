"""The projections on random histories: folds, prefixes, signals, and what was never legal."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain.events import Event, Submitted
from gittasks.domain.projections import inbox, table
from gittasks.domain.projections.signals import Signal
from gittasks.domain.projections.table import PROJECTIONS, Fact, World
from gittasks.domain.task_graph import TaskGraph
from tests.support.anybody import STEPS, Dice
from tests.support.anybody import World as Anybody
from tests.support.builders import a_create, hexadecimal
from tests.support.examples import examples

SEEDS = st.integers(0, 10_000)


@cache
def _history(seed: int) -> tuple[tuple[Event, ...], TaskGraph]:
    asked = Anybody(Dice(seed))
    for _ in range(STEPS):
        asked.asks()
    return tuple(asked.past), asked.graph


def _facts(events: Sequence[Event]) -> list[Fact]:
    oids = [hexadecimal(f"commit {number}", 40) for number in range(len(events) + 1)]
    return [
        Fact(oid, event.at, event, parent=parent)
        for oid, parent, event in zip(oids[1:], oids, events, strict=False)
    ]


def _told(world: World, facts: Sequence[Fact]) -> list[tuple[str, int, Signal]]:
    return [
        (fact.oid, ordinal, signal)
        for _, fact, signals in table.told(world, facts)
        for ordinal, signal in enumerate(signals)
    ]


@examples(15)
@given(SEEDS)
def test_the_fold_has_the_tasks_that_the_decisions_were_made_on(seed: int) -> None:
    events, graph = _history(seed)
    world = table.resume(World(), _facts(events))
    assert dict(world.graph.tasks.items()) == dict(sorted(graph.tasks.items()))
    assert world.graph.violations == ()
    assert world.commits == len(events)


@examples(15)
@given(SEEDS, st.data())
def test_a_fold_goes_on_from_any_checkpoint(seed: int, data: st.DataObject) -> None:
    facts = _facts(_history(seed)[0])
    here = data.draw(st.integers(0, len(facts)))
    stored = pickle.dumps(table.resume(World(), facts[:here]))
    assert table.resume(pickle.loads(stored), facts[here:]) == table.resume(World(), facts)


@examples(15)
@given(SEEDS, st.data())
def test_signals_go_on_where_somebody_stopped_to_listen(seed: int, data: st.DataObject) -> None:
    facts = _facts(_history(seed)[0])
    here = data.draw(st.integers(0, len(facts)))
    whole = _told(World(), facts)
    first = _told(World(), facts[:here])
    assert first + _told(table.resume(World(), facts[:here]), facts[here:]) == whole
    keys = [(oid, ordinal) for oid, ordinal, _ in whole]
    assert len(set(keys)) == len(keys)


@examples(15)
@given(SEEDS)
def test_what_is_folded_step_by_step_is_what_the_graph_says_at_once(seed: int) -> None:
    world = table.resume(World(), _facts(_history(seed)[0]))
    graph = world.graph
    tasks = list(graph.tasks.values())
    plain = TaskGraph({task.id: task for task in tasks})
    ranks = {task.id: inbox.standing_rank(plain, task) for task in tasks}
    assert {task: entry.rank for task, entry in world.inbox.entries.items()} == {
        task: rank for task, rank in ranks.items() if rank
    }
    assert {task: claim.claim for task, claim in world.working.claims.items()} == {
        task.id: task.claim for task in tasks if task.claim
    }
    for task in tasks:
        assert list(graph.dependents(task.id)) == list(plain.dependents(task.id))
        assert list(graph.children(task.id)) == list(plain.children(task.id))
        assert list(graph.superseders(task.id)) == list(plain.superseders(task.id))
        assert graph.with_uid(task.uid) == task.id
    assert set(graph.roots()) == set(plain.children(None))
    assert {one for root in graph.roots() for one in graph.subtree(root)} == {t.id for t in tasks}


@examples(10)
@given(SEEDS)
def test_costs_and_stints_add_up(seed: int) -> None:
    world = table.resume(World(), _facts(_history(seed)[0]))
    tasks = list(world.graph.tasks.values())
    spent = [cost for task in tasks for cost in task.costs]
    assert world.costs.total.claims == len(spent)
    assert world.costs.total.tokens == sum(cost.tokens for cost in spent)
    parts = (world.costs.by_task, world.costs.by_state, world.costs.by_actor, world.costs.by_day)
    assert {sum(one.seconds for one in part.values()) for part in parts} == {
        world.costs.total.seconds
    }
    for task in tasks:
        found = world.assignments.tasks.get(task.id)
        current = None if found is None else found.current
        assert (current and current.claim) == task.claim
        visits = world.stages.tasks.get(task.id) or ()
        assert visits[-1].state == task.state


@examples(15)
@given(SEEDS, st.data())
def test_nothing_that_was_folded_ever_changes(seed: int, data: st.DataObject) -> None:
    facts = _facts(_history(seed)[0])
    here = data.draw(st.integers(0, len(facts)))
    before = table.resume(World(), facts[:here])
    stored = pickle.dumps(before)
    table.resume(before, facts[here:])
    assert before == pickle.loads(stored)


@examples(10)
@given(SEEDS, st.data())
def test_what_differs_between_two_commits_is_what_was_changed(
    seed: int, data: st.DataObject
) -> None:
    facts = _facts(_history(seed)[0])
    here = data.draw(st.integers(0, len(facts)))
    before, after = table.resume(World(), facts[:here]), table.resume(World(), facts)
    old, new = dict(before.graph.tasks.items()), dict(after.graph.tasks.items())
    differing = [task for task in sorted({*old, *new}) if old.get(task) != new.get(task)]
    assert list(after.graph.tasks.changed_since(before.graph.tasks)) == differing


@pytest.mark.parametrize(
    "fact",
    [
        Fact("b" * 40, 0, None, "It is no event."),
        Fact("b" * 40, 0, a_create(1)),
        Fact("b" * 40, 0, a_create(2)._replace(change=Submitted(), source="NEW", target="WORK")),
        Fact("b" * 40, 0, a_create(2, parent="000099")),
    ],
    ids=["no event", "created twice", "of an unknown task", "below an unknown task"],
)
def test_what_is_not_legal_is_kept_as_a_violation_and_changes_nothing_else(fact: Fact) -> None:
    before = table.resume(World(), _facts([a_create(1)]))
    after, signals = table.fold(before, fact)
    assert signals == ()
    assert [one.oid for one in after.graph.violations] == [fact.oid]
    assert after.graph._replace(violations=()) == before.graph
    assert after[1 : len(PROJECTIONS)] == before[1 : len(PROJECTIONS)]
    assert table.fold(after, _facts([a_create(2)])[0])[0].graph.get("000002") is not None


def test_the_order_of_the_projections_is_that_of_the_world() -> None:
    assert tuple(row.field for row in PROJECTIONS) == World._fields[: len(PROJECTIONS)]
    assert tuple(row.empty for row in PROJECTIONS) == tuple(World())[: len(PROJECTIONS)]
    assert len({row.name for row in PROJECTIONS}) == len(PROJECTIONS)
