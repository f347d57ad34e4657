"""Tasks that somebody else than the manager has written down, and what the manager made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gittasks.domain.projections.persistent import Persistent
from gittasks.domain.projections.signals import Signal, Signals
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from gittasks.domain.projections.graph import Step

NAME = "proposals"
SIGNALS: tuple[str, ...] = (
    "proposal_opened",
    "proposal_accepted",
    "proposal_declined",
)

Answer = Literal["open", "accepted", "declined"]


class Proposal(NamedTuple):
    """Who proposed a task and when, what it follows from, and how it was answered."""

    by: str
    at: int
    follows: str | None = None
    answer: Answer = "open"


class Proposals(NamedTuple):
    """The proposals by task."""

    tasks: Persistent[Proposal] = Persistent()

    def open(self) -> tuple[str, ...]:
        """Returns the ids of those that wait for an answer."""
        return tuple(task for task, one in self.tasks.items() if one.answer == "open")


def fold(state: Proposals, step: Step) -> tuple[Proposals, Signals]:
    """Returns the proposals after a step, and what was proposed or answered by it."""
    before, after = step.before, step.after
    if after.proposed_by is None:
        return state, ()
    if before is None:
        one = Proposal(after.proposed_by, step.event.at, after.follows)
        return _with(state, after.id, one, "proposal_opened")
    known = state.tasks.get(after.id)
    if known is None or known.answer != "open" or after.state == "NEW":
        return state, ()
    answer: Answer = "declined" if after.outcome == "aborted" else "accepted"
    return _with(state, after.id, known._replace(answer=answer), f"proposal_{answer}")


def _with(state: Proposals, task: str, one: Proposal, name: str) -> tuple[Proposals, Signals]:
    signal = Signal(name, NAME, task, (("by", one.by),))
    return Proposals(state.tasks.with_(task, one)), (signal,)
