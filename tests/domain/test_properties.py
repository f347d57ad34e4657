"""Whatever is asked by whomever in whatever order, the graph stays one that can be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain import dependencies, machine
from gittasks.domain.decide import decide
from gittasks.domain.errors import GittasksError
from gittasks.domain.events import brings_body, change_from, data_of
from gittasks.domain.machine import STAGE
from gittasks.domain.requests import (
    Abort,
    Facts,
    Request,
    Speaker,
)
from gittasks.domain.task_graph import Overlay, TaskGraph
from tests.support.anybody import STEPS, Dice, World
from tests.support.builders import NOW
from tests.support.decisions import (
    HOST,
    a_graph,
    replayed,
)
from tests.support.examples import examples

# What has to hold.


def _heirs(graph: TaskGraph, task: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """Returns the tasks of which one has to land for a dependency on this one."""
    if graph.tasks[task].outcome != "aborted" or task in seen:
        return {task}
    following = [_heirs(graph, heir, seen | {task}) for heir in graph.superseders(task)]
    return {task}.union(*following)


def _waits_for(graph: TaskGraph) -> dict[str, set[str]]:
    return {
        task.id: set().union(*(_heirs(graph, need) for need in task.depends_on))
        for task in graph.tasks.values()
        if task.is_open
    }


def _reached(edges: dict[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    while more := set().union(*(edges.get(one, set()) for one in {start, *reached})) - reached:
        reached |= more
    return reached


def _is_satisfied(graph: TaskGraph, need: str) -> bool:
    return any(graph.tasks[heir].outcome == "landed" for heir in _heirs(graph, need))


def _check_tasks(graph: TaskGraph) -> None:
    claims = [task.claim for task in graph.tasks.values() if task.claim]
    assert len(claims) == len(set(claims))
    for task in graph.tasks.values():
        waits = any(not _is_satisfied(graph, need) for need in task.depends_on)
        assert task.claim is None or STAGE[task.state].claimable
        assert task.state != "BLOCKED" or waits
        assert task.draft is not None or task.state not in machine.DRAFTED
        assert task.outcome != "landed" or not waits or task.landed is None
        assert task.is_open or not machine.any_open_child(graph, task.id)
        assert task.rejections < 2 or task.state in machine.HELD or not task.is_open
        keys = [graph.tasks[one].sort_key for one in graph.children(task.parent)]
        assert len(keys) == len(set(keys))


def _check_ways(graph: TaskGraph) -> None:
    edges = _waits_for(graph)
    waiting = {
        task: {n for need in graph.tasks[task].depends_on if not _is_satisfied(graph, need)
               for n in _heirs(graph, need)}
        for task in edges
    }  # fmt: skip
    above = {task.id: {task.parent} for task in graph.tasks.values() if task.parent}
    for task in graph.tasks:
        assert task not in _reached(waiting, task)
        assert task not in _reached(above, task)
        counted = {one for one in edges if one != task and task in _reached(edges, one)}
        assert dependencies.blocking(graph, task) == len(counted)


def _story(seed: int) -> World:
    world = World(Dice(seed))
    for _ in range(STEPS):
        world.asks()
        _check_tasks(world.graph)
    _check_ways(world.graph)
    return world


SEEDS = st.integers(0, 2**32)


@examples(40)
@given(SEEDS)
def test_whatever_is_asked_the_graph_stays_one_that_can_be(seed: int) -> None:
    _story(seed)


@examples(15)
@given(SEEDS)
def test_what_happened_tells_the_graph(seed: int) -> None:
    world = _story(seed)
    events = [
        event._replace(
            change=change_from(event.kind, data_of(event.change)),
            body=event.body if brings_body(event.change, event.source) else None,
        )
        for event in world.past
    ]
    assert events == world.past
    graph = replayed(events)
    assert TaskGraph(graph.tasks, graph.bodies) == world.graph


@examples(10)
@given(SEEDS)
def test_a_decision_is_the_same_above_any_layers(seed: int) -> None:
    graph = _story(seed).graph
    layered = Overlay(Overlay(a_graph()))
    for task in graph.tasks.values():
        layered.put(task, graph.body(task.id))
    for task in graph.tasks.values():
        request = Abort(task.id, recursive=True)
        facts = Facts(NOW, HOST, Speaker("ada", "manager"))
        assert _answer(layered, request, facts) == _answer(graph, request, facts)


def test_the_stories_take_every_way_that_there_is() -> None:
    taken = {
        (event.source, event.kind, event.target)
        for seed in range(40)
        for event in _story(seed).past
    }
    # A BLOCKED task waits for something: the manager's submit alone does not take it on.
    rows = {
        (row.source, row.event, row.target)
        for row in machine.TRANSITIONS
        if (row.source, row.event) != ("BLOCKED", "submit") or row.target == "BLOCKED"
    }
    assert rows - taken == set()


def _answer(graph: Overlay | TaskGraph, request: Request, facts: Facts) -> object:
    try:
        return decide(graph, request, facts)
    except GittasksError as refusal:
        return refusal.message
