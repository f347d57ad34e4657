"""Numbers about the work, from the world after it: how long, how often, how much.

With the world `before` they are about what has happened since: what ended between the two counts,
whenever it began. A median is the middle value, or the whole seconds between the middle two; the
90th percentile is the smallest value that nine tenths of all do not exceed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.projections.artifacts import JUDGED, Artifact
from gittasks.domain.projections.costs import Spent
from gittasks.domain.task import STATES
from gittasks.domain.times import timestamp
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gittasks.domain.projections.artifacts import CheckRun, Review
    from gittasks.domain.projections.persistent import Persistent
    from gittasks.domain.projections.table import World
    from gittasks.domain.task import State

_DAY = 86_400
_WAITING = ("NEW", "BLOCKED")
_MONEY_DIGITS = 6


class Spread(NamedTuple):
    """How long something took: how often it did, and the seconds."""

    times: int = 0
    median_seconds: int | None = None
    p90_seconds: int | None = None
    max_seconds: int | None = None
    total_seconds: int = 0


class Yield(NamedTuple):
    """What came to a judgement: verdicts of each kind, and what passed at the first one."""

    accepted: int = 0
    rejected: int = 0
    first: int = 0
    """How many tasks were judged for the first time."""
    first_accepted: int = 0

    @property
    def first_pass(self) -> float | None:
        """Returns the share that passed at the first verdict, None where there was none."""
        return round(self.first_accepted / self.first, 4) if self.first else None


class Done(NamedTuple):
    """How many tasks were written down, landed and aborted."""

    created: int = 0
    landed: int = 0
    aborted: int = 0


class Standing(NamedTuple):
    """The tasks that stand in a state now: how many, and for how long the oldest has."""

    tasks: int = 0
    oldest_seconds: int = 0


class InProgress(NamedTuple):
    """The open tasks: all, those between the dispatch and the landing, those with a claim."""

    open: int = 0
    started: int = 0
    claimed: int = 0
    states: tuple[tuple[State, Standing], ...] = ()


class Statistics(NamedTuple):
    """All numbers; rows stand in the order of the states, of the names, or of the days."""

    stages: tuple[tuple[State, Spread], ...]
    lead: Spread
    """From writing a task down to landing it."""
    reviews: tuple[tuple[State, Yield], ...]
    checks: Yield
    done: Done
    days: tuple[tuple[str, Done], ...]
    """By day, `YYYY-MM-DD` in UTC; days without any are left out."""
    weeks: tuple[tuple[str, Done], ...]
    """By week, named like the Monday that begins it."""
    spent: Spent
    spent_by_state: tuple[tuple[str, Spent], ...]
    spent_by_actor: tuple[tuple[str, Spent], ...]
    spent_by_day: tuple[tuple[str, Spent], ...]
    in_progress: InProgress

    @property
    def rejections(self) -> int:
        """Returns how often a reviewer or the manager sent work back."""
        return sum(row.rejected for _, row in self.reviews)


def statistics(world: World, now: int, before: World | None = None) -> Statistics:
    """Returns the numbers of a world, or of what has happened since the one before."""
    stood: dict[State, list[int]] = {}
    lead: list[int] = []
    ended: list[tuple[int, str]] = []
    for task, visits in world.stages.tasks.items():
        known = () if before is None else before.stages.tasks.get(task) or ()
        if known is visits:
            continue
        start = max(len(known) - 1, 0)
        for here, then in zip(visits[start:], visits[start + 1 :], strict=False):
            stood.setdefault(here.state, []).append(max(then.at - here.at, 0))
        if not known:
            ended.append((visits[0].at, "created"))
        if visits[-1].state == "CLOSED" and not (known and known[-1].state == "CLOSED"):
            found = world.graph.get(task)
            outcome = "aborted" if found is None or not found.is_landed else "landed"
            ended.append((visits[-1].at, outcome))
            if outcome == "landed":
                lead.append(max(visits[-1].at - visits[0].at, 0))
    spent = before.costs if before is not None else None
    costs = world.costs
    return Statistics(
        stages=tuple((state, spread(stood[state])) for state in STATES if state in stood),
        lead=spread(lead),
        reviews=_reviews(world, before),
        checks=_checks(world, before),
        done=_counted(word for _, word in ended),
        days=_by(ended, lambda at: at // _DAY * _DAY),
        weeks=_by(ended, _monday),
        spent=_less(costs.total, spent and spent.total),
        spent_by_state=_spent(costs.by_state, spent and spent.by_state, STATES),
        spent_by_actor=_spent(costs.by_actor, spent and spent.by_actor),
        spent_by_day=_spent(costs.by_day, spent and spent.by_day),
        in_progress=_in_progress(world, now),
    )


def spread(values: Iterable[int]) -> Spread:
    """Returns how some durations lie."""
    found = sorted(values)
    if not found:
        return Spread()
    middle, count = len(found) // 2, len(found)
    median = found[middle] if count % 2 else (found[middle - 1] + found[middle]) // 2
    return Spread(count, median, found[-(-9 * count // 10) - 1], found[-1], sum(found))


def _monday(at: int) -> int:
    # The first day of 1970 was a Thursday.
    day = at // _DAY
    return (day - (day + 3) % 7) * _DAY


def _by(
    ended: Iterable[tuple[int, str]], begin: Callable[[int], int]
) -> tuple[tuple[str, Done], ...]:
    found: dict[int, list[str]] = {}
    for at, word in ended:
        found.setdefault(begin(at), []).append(word)
    return tuple((timestamp(at)[:10], _counted(found[at])) for at in sorted(found))


def _counted(words: Iterable[str]) -> Done:
    found = list(words)
    return Done(found.count("created"), found.count("landed"), found.count("aborted"))


def _brought(
    world: World, before: World | None
) -> Iterator[tuple[Sequence[Review], Sequence[Review], Sequence[CheckRun], bool]]:
    """Yields for each task the verdicts before and since, the check runs since, if any were before.

    What had no checks has passed nothing.
    """
    for task, found in world.artifacts.tasks.items():
        known = (None if before is None else before.artifacts.tasks.get(task)) or Artifact()
        if known is not found:
            count = len(known.reviews)
            runs = [run for run in found.checks[len(known.checks) :] if _ran(run)]
            yield known.reviews, found.reviews[count:], runs, any(map(_ran, known.checks))


def _ran(run: CheckRun) -> bool:
    return bool(run.results) or not run.passed


def _reviews(world: World, before: World | None) -> tuple[tuple[State, Yield], ...]:
    found = dict.fromkeys(JUDGED, Yield())
    for known, given, _, _ in _brought(world, before):
        judged = {one.state for one in known}
        for one in given:
            found[one.state] = _plus(found[one.state], one.accepted, one.state not in judged)
            judged.add(one.state)
    return tuple((state, found[state]) for state in STATES if state in found)


def _checks(world: World, before: World | None) -> Yield:
    found = Yield()
    for _, _, runs, were_before in _brought(world, before):
        for number, run in enumerate(runs):
            found = _plus(found, run.passed, not number and not were_before)
    return found


def _plus(found: Yield, is_accepted: bool, is_first: bool) -> Yield:
    return Yield(
        found.accepted + is_accepted,
        found.rejected + (not is_accepted),
        found.first + is_first,
        found.first_accepted + (is_first and is_accepted),
    )


def _spent(
    now: Persistent[Spent], before: Persistent[Spent] | None, order: Sequence[str] = ()
) -> tuple[tuple[str, Spent], ...]:
    found = {
        name: _less(spent, None if before is None else before.get(name))
        for name, spent in now.items()
    }
    names = sorted(found, key=order.index) if order else sorted(found)
    return tuple((name, found[name]) for name in names if found[name].claims)


def _less(spent: Spent, before: Spent | None) -> Spent:
    known = before or Spent()
    return Spent(
        spent.claims - known.claims,
        spent.seconds - known.seconds,
        round(spent.cost - known.cost, _MONEY_DIGITS),
        spent.tokens - known.tokens,
    )


def _in_progress(world: World, now: int) -> InProgress:
    found: dict[State, Standing] = {}
    for task, visits in world.stages.tasks.items():
        here = world.graph.get(task)
        if here is None or not here.is_open:
            continue
        known = found.get(here.state, Standing())
        oldest = max(known.oldest_seconds, now - visits[-1].at)
        found[here.state] = Standing(known.tasks + 1, oldest)
    total = sum(standing.tasks for standing in found.values())
    waiting = sum(found[state].tasks for state in _WAITING if state in found)
    rows = tuple((state, found[state]) for state in STATES if state in found)
    return InProgress(total, total - waiting, len(world.working.claims), rows)
