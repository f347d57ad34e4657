"""What the projections are told, and what they tell: steps of the ledger, and signals.

A projection is `fold(state, step) -> (state, signals)`: a pure function over values that never
change. No clock is read; where an answer depends on the time, the query takes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from gittasks.domain.events import Event
    from gittasks.domain.projections.graph import GraphState
    from gittasks.domain.task import Task


class Step(NamedTuple):
    """One commit of the ledger that counts: its event, and the task before and after it.

    `graph` is the whole graph afterwards. An event about no task has neither before nor after.
    """

    oid: str
    event: Event
    before: Task | None
    after: Task | None
    graph: GraphState


class Signal(NamedTuple):
    """Something that a projection has to tell: name, projection, task, and plain JSON values."""

    name: str
    projection: str
    task: str | None
    data: tuple[tuple[str, Any], ...] = ()


Signals = tuple[Signal, ...]
