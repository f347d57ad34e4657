"""What may be spent: by a task, which is then held, and in a day, after which nobody new is seated.

What was spent is what the ledger says, of all clones, and what those at work here have used since.
A day begins and ends in UTC, as in the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain import schedule
from gittasks.domain.pool import agent_name
from gittasks.runner import settling

if TYPE_CHECKING:
    from gittasks.domain.pool import Agent
    from gittasks.domain.task import Cost
    from gittasks.runner.seat import Seat, Stint
    from gittasks.runner.team import Team

_EVERY = 1.0
_DAY = 86400
_POOL = ""

# How far the clock of another clone may be behind, so that what is older is still followed by today.
_SLOW = 3600


class Budgets:
    """The budgets of a pool, and what counts against them by now."""

    def __init__(self, runner: Team) -> None:
        """Reads the ledger only if some budget is set."""
        self._runner = runner
        pool = runner.pool
        self._is_used = bool(pool.budget) or any(entry.budget for entry in pool.agents)
        self._checked_at = 0.0
        self._told: set[str] = set()
        self._tasks: dict[str, schedule.Sum] = {}
        self._day = -1
        self._today: dict[str, schedule.Sum] = {}
        self._tip: str | None = None

    def tick(self) -> None:
        """Holds the tasks whose budget is spent; tells, once, which day's budget is."""
        runner = self._runner
        if not self._is_used or runner.now - self._checked_at < _EVERY:
            return
        self._checked_at = runner.now
        self._read_today()
        for seat in runner.seats:
            if seat.is_working and seat.stint is not None:
                reached = self._of_task(seat, seat.stint)
                if reached is not None:
                    settling.hold_now(runner, seat, f"budget: {reached}")
        for entry in runner.pool.agents:
            spent = self._spent_budget(entry)
            if spent is not None and spent[0] not in self._told:
                self._told.add(spent[0])
                runner.say("paused", agent=spent[0] or None, why=spent[1])

    def pauses(self, entry: Agent) -> str | None:
        """Returns which budget of the day is spent, None while an agent may be given more."""
        if not self._is_used:
            return None
        self._read_today()
        spent = self._spent_budget(entry)
        return None if spent is None else spent[1]

    def _spent_budget(self, entry: Agent) -> tuple[str, str] | None:
        """Returns whose budget of the day is spent, and which limit of it."""
        name = agent_name(entry)
        for budget, key, whose in (
            (self._runner.pool.budget, _POOL, "the pool"),
            (entry.budget, name, name),
        ):
            if budget is not None and budget.day is not None:
                reached = schedule.over_budget(budget.day, self._spent_today(key))
                if reached is not None:
                    return key, f"the day's budget of {whose} is spent: {reached}"
        return None

    def _of_task(self, seat: Seat, stint: Stint) -> str | None:
        budgets = (seat.entry.budget, self._runner.pool.budget)
        if not any(budget is not None and budget.task is not None for budget in budgets):
            return None
        spent = _plus(self._before(stint), settling.cost_of(self._runner, seat, stint))
        for budget in budgets:
            if budget is not None and budget.task is not None:
                reached = schedule.over_budget(budget.task, spent)
                if reached is not None:
                    return f"one task may not cost more: {reached}"
        return None

    def _before(self, stint: Stint) -> schedule.Sum:
        """Returns what a task had cost when its present claim began."""
        if stint.run.claim not in self._tasks:
            spent = schedule.Sum()
            for event in self._runner.project.ledger.history(stint.run.task):
                cost: Cost | None = getattr(event.change, "cost", None)
                if cost is not None:
                    spent = _plus(spent, cost)
            self._tasks[stint.run.claim] = spent
        return self._tasks[stint.run.claim]

    def _spent_today(self, key: str) -> schedule.Sum:
        runner = self._runner
        spent = self._today.get(key, schedule.Sum())
        for seat in runner.seats:
            # What one who leaves has cost is in the ledger, or will be in a moment.
            if (
                seat.is_working
                and seat.stint is not None
                and key in (_POOL, agent_name(seat.entry))
            ):
                spent = _plus(spent, settling.cost_of(runner, seat, seat.stint))
        return spent

    def _read_today(self) -> None:
        """Adds what the ledger has got since the last look; begins anew with a new day."""
        runner = self._runner
        ledger = runner.project.ledger
        day = int(runner.now) // _DAY
        if day != self._day:
            self._day, self._today, self._tip = day, {}, None
            self._told.clear()
        if ledger.tip == self._tip:
            return
        # A tip that a sync has replaced is not behind the new one: everything is read again.
        known = self._tip
        if known is not None and not runner.is_behind(known):
            known, self._today = None, {}
        for recorded in ledger.log(since=known):
            event = recorded.event
            if event.at < day * _DAY - _SLOW:
                break
            if event.at < day * _DAY:
                continue
            cost: Cost | None = getattr(event.change, "cost", None)
            if cost is not None:
                agent = cost.slot.rpartition("-")[0]
                for key in (_POOL, agent):
                    before = self._today.get(key, schedule.Sum())
                    self._today[key] = _plus(before, cost)
        self._tip = ledger.tip


def _plus(spent: schedule.Sum, cost: Cost) -> schedule.Sum:
    return schedule.Sum(
        spent.cost + cost.cost, spent.tokens + cost.tokens, spent.seconds + cost.seconds
    )
