"""The projections in their order, and the world they make together: all that events have told.

Each row reads the graph that the first one has made; none reads a later one. One event is applied
by all or by none, and signals come in the order of this table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from gittasks.domain.projections import (
    artifacts,
    assignments,
    costs,
    graph,
    inbox,
    proposals,
    queue,
    stages,
    working_state,
)
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gittasks.domain.events import Event
    from gittasks.domain.projections.graph import GraphState, Step
    from gittasks.domain.projections.signals import Signals

STATE_VERSION = 1
"""The version of the states; a checkpoint of another one is not used."""


class Fold(Protocol):
    """The function of a projection."""

    def __call__(self, state: Any, step: Step, /) -> tuple[Any, Signals]:
        """Returns the state after a step, and what the step has to tell."""
        ...


class Projection(NamedTuple):
    """One row: name, field in the world, the state before all, the fold, the signals it gives."""

    name: str
    field: str
    empty: Any
    fold: Fold
    signals: tuple[str, ...]


PROJECTIONS: tuple[Projection, ...] = (
    Projection(graph.NAME, "graph", graph.GraphState(), graph.fold, graph.SIGNALS),
    Projection(
        working_state.NAME,
        "working",
        working_state.WorkingState(),
        working_state.fold,
        working_state.SIGNALS,
    ),
    Projection(
        assignments.NAME,
        "assignments",
        assignments.Assignments(),
        assignments.fold,
        assignments.SIGNALS,
    ),
    Projection(
        artifacts.NAME, "artifacts", artifacts.Artifacts(), artifacts.fold, artifacts.SIGNALS
    ),
    Projection(
        proposals.NAME, "proposals", proposals.Proposals(), proposals.fold, proposals.SIGNALS
    ),
    Projection(inbox.NAME, "inbox", inbox.Inbox(), inbox.fold, inbox.SIGNALS),
    Projection(queue.NAME, "queue", queue.Queue(), queue.fold, queue.SIGNALS),
    Projection(costs.NAME, "costs", costs.Costs(), costs.fold, costs.SIGNALS),
    Projection(stages.NAME, "stages", stages.Stages(), stages.fold, stages.SIGNALS),
)

SIGNALS: tuple[str, ...] = tuple(name for row in PROJECTIONS for name in row.signals)
"""The names of all signals, in the order of the projections."""


class World(NamedTuple):
    """Everything that the events up to a commit have told; `oid` None is before the first."""

    graph: GraphState = graph.GraphState()
    working: working_state.WorkingState = working_state.WorkingState()
    assignments: assignments.Assignments = assignments.Assignments()
    artifacts: artifacts.Artifacts = artifacts.Artifacts()
    proposals: proposals.Proposals = proposals.Proposals()
    inbox: inbox.Inbox = inbox.Inbox()
    queue: queue.Queue = queue.Queue()
    costs: costs.Costs = costs.Costs()
    stages: stages.Stages = stages.Stages()
    commits: int = 0
    """How many commits were folded, also those that count for nothing."""
    oid: str | None = None
    at: int = 0
    """When the last event happened, in seconds since 1970."""


class Fact(NamedTuple):
    """One commit of the ledger as it was read: its event, or why it is none that is known."""

    oid: str
    at: int
    event: Event | None
    reason: str = ""
    parent: str = ""


def fold(world: World, fact: Fact) -> tuple[World, Signals]:
    """Returns the world after one more commit of the ledger, and all that this one tells."""
    if fact.event is None:
        after: Step | GraphState = graph.refused(world.graph, fact.oid, None, fact.reason)
    else:
        after = graph.apply(world.graph, fact.oid, fact.event)
    if isinstance(after, graph.GraphState):
        return _placed(world, fact, (after, *world[1 : len(PROJECTIONS)])), ()
    states: list[Any] = []
    signals: list[Any] = []
    for row, state in zip(PROJECTIONS, world, strict=False):
        state, told = row.fold(state, after)  # noqa: PLW2901 - the state is what the row makes of it
        states.append(state)
        signals += told
    return _placed(world, fact, states), tuple(signals)


def resume(world: World, facts: Iterable[Fact]) -> World:
    """Returns the world after more commits, oldest first."""
    for fact in facts:
        world, _ = fold(world, fact)
    return world


def told(world: World, facts: Iterable[Fact]) -> Iterator[tuple[World, Fact, Signals]]:
    """Yields the world after each commit, the commit, and what it tells."""
    for fact in facts:
        world, signals = fold(world, fact)
        yield world, fact, signals


def _placed(world: World, fact: Fact, states: Iterable[Any]) -> World:
    at = world.at if fact.event is None else fact.event.at
    return World._make((*states, world.commits + 1, fact.oid, at))
