"""What the work has cost, folded from the events that end claims: money, tokens and time.

There is no counter anywhere: two clones at the same commit of the ledger say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.projections.persistent import Persistent
from gittasks.domain.projections.signals import Signal, Signals
from gittasks.domain.times import timestamp
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from gittasks.domain.projections.graph import Step
    from gittasks.domain.task import Cost

NAME = "costs"
SIGNALS: tuple[str, ...] = ("cost_recorded",)


class Spent(NamedTuple):
    """A sum: claims, seconds, dollars, tokens."""

    claims: int = 0
    seconds: int = 0
    cost: float = 0.0
    tokens: int = 0

    def plus(self, cost: Cost) -> Spent:
        """Returns the sum with one claim more."""
        return Spent(
            self.claims + 1,
            self.seconds + cost.seconds,
            self.cost + cost.cost,
            self.tokens + cost.tokens,
        )


class Costs(NamedTuple):
    """The sums: of all, by task, by state, by actor, and by day (`YYYY-MM-DD`, UTC)."""

    total: Spent = Spent()
    by_task: Persistent[Spent] = Persistent()
    by_state: Persistent[Spent] = Persistent()
    by_actor: Persistent[Spent] = Persistent()
    by_day: Persistent[Spent] = Persistent()


def fold(state: Costs, step: Step) -> tuple[Costs, Signals]:
    """Returns the sums after a step, and what it has cost."""
    cost: Cost | None = getattr(step.event.change, "cost", None)
    if cost is None:
        return state, ()
    # A claim is told by its end, which another may have given: the cost is the holder's.
    before = step.before
    actor = (before.claimed_by if before is not None else None) or step.event.actor
    day = timestamp(step.event.at)[:10]
    after = Costs(
        state.total.plus(cost),
        _plus(state.by_task, step.after.id, cost),
        _plus(state.by_state, cost.state, cost),
        _plus(state.by_actor, actor, cost),
        _plus(state.by_day, day, cost),
    )
    about = tuple(cost._asdict().items())
    return after, (Signal("cost_recorded", NAME, step.after.id, about),)


def _plus(found: Persistent[Spent], key: str, cost: Cost) -> Persistent[Spent]:
    return found.with_(key, (found.get(key) or Spent()).plus(cost))
