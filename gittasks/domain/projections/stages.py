"""How long every task stood in every state: what cycle times and yields are computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.projections.persistent import Persistent
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from gittasks.domain.projections.graph import Step
    from gittasks.domain.projections.signals import Signals
    from gittasks.domain.task import State

NAME = "stages"
SIGNALS: tuple[str, ...] = ()


class Visit(NamedTuple):
    """A task came into a state: when (seconds since 1970), by which event, whose, which commit."""

    state: State
    at: int
    event: str
    actor: str = ""
    oid: str = ""


class Stages(NamedTuple):
    """The visits by task, oldest first; the last one lasts."""

    tasks: Persistent[tuple[Visit, ...]] = Persistent()


def fold(state: Stages, step: Step) -> tuple[Stages, Signals]:
    """Returns the visits after a step; tells nothing, as the graph has told it."""
    before, after = step.before, step.after
    if before is not None and not step.event.is_transition:
        return state, ()
    visits = state.tasks.get(after.id) or ()
    event = step.event
    visit = Visit(after.state, event.at, event.kind, event.actor, step.oid)
    return Stages(state.tasks.with_(after.id, (*visits, visit))), ()
