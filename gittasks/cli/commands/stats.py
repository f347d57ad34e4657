"""`git tasks stats`: how long the work takes, how often it comes back, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.cli import frame, rows
from gittasks.cli.output import age
from gittasks.workflow import queries, stats
from gittasks.workflow.answers import announced
from gittasks.workflow.queries import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.domain.projections.costs import Spent
    from gittasks.domain.projections.statistics import Done, Spread, Statistics, Yield
    from gittasks.workflow.stats import Count

_DAYS = 14
_WEEKS = 8
_BAR = 24


@frame.command("stats", past=True)
@frame.option("--since", metavar="WHEN", help="only what is newer: a date, an age or a commit")
def command(session: frame.Session, since: str | None) -> None:
    """Show cycle times, what passed at once, throughput, cost and what is in progress.

    All of it is counted from the events of the ledger, with --since from those after it.
    """
    found = stats.stats(session.project, since=since)
    problems = Rows((), 0, found.problems)
    if session.answer("stats", as_object(found), more=announced(problems)):
        return
    session.out.page()
    _print(session, found.numbers)
    rows.tell(session, problems)


def as_object(found: Count) -> dict[str, Any]:
    """Returns all numbers as JSON has them."""
    numbers = found.numbers
    return {
        "since": None if found.since is None else queries.time_text(found.since),
        "until": queries.time_text(found.until),
        "tasks": numbers.done._asdict(),
        "lead_time": numbers.lead._asdict(),
        "stages": [{"state": state, **row._asdict()} for state, row in numbers.stages],
        "reviews": [{"state": state, **_yield(row)} for state, row in numbers.reviews],
        "rejections": numbers.rejections,
        "checks": _yield(numbers.checks),
        "throughput": {
            "days": [{"day": day, **row._asdict()} for day, row in numbers.days],
            "weeks": [{"week": week, **row._asdict()} for week, row in numbers.weeks],
        },
        "cost": {
            "total": numbers.spent._asdict(),
            "stages": [{"state": name, **row._asdict()} for name, row in numbers.spent_by_state],
            "agents": [{"actor": name, **row._asdict()} for name, row in numbers.spent_by_actor],
            "days": [{"day": name, **row._asdict()} for name, row in numbers.spent_by_day],
        },
        "wip": {
            "open": numbers.in_progress.open,
            "started": numbers.in_progress.started,
            "claimed": numbers.in_progress.claimed,
            "states": [
                {"state": state, **row._asdict()} for state, row in numbers.in_progress.states
            ],
        },
    }


def _yield(row: Yield) -> dict[str, Any]:
    return {**row._asdict(), "first_pass_yield": row.first_pass}


def _print(session: frame.Session, numbers: Statistics) -> None:
    done, lead, wip = numbers.done, numbers.lead, numbers.in_progress
    session.out.line(f"{done.created} created, {done.landed} landed, {done.aborted} aborted")
    session.out.line(f"{wip.open} open: {wip.started} started, {wip.claimed} claimed")
    _table(
        session,
        ("stage", "times", "median", "90 %", "longest", ""),
        [(state, *_spread(row)) for state, row in numbers.stages]
        + ([("to landing", *_spread(lead))] if lead.times else []),
        [row.median_seconds or 0 for _, row in (*numbers.stages, *[("", lead)] * (lead.times > 0))],
    )
    judged = [*numbers.reviews, ("CHECK", numbers.checks)]
    judged = [(state, row) for state, row in judged if row.accepted or row.rejected]
    _table(
        session,
        ("judged at", "accepted", "rejected", "at once", ""),
        [
            (state, str(row.accepted), str(row.rejected), _share(row.first_pass))
            for state, row in judged
        ],
        [row.first_pass or 0 for _, row in judged],
    )
    for head, days in (("day", numbers.days[-_DAYS:]), ("week of", numbers.weeks[-_WEEKS:])):
        _table(
            session,
            (head, "created", "landed", "aborted", ""),
            [(day, *_done(row)) for day, row in days],
            [row.landed for _, row in days],
        )
    _print_cost(session, numbers)
    _table(
        session,
        ("open at", "tasks", "oldest", ""),
        [(state, str(row.tasks), age(row.oldest_seconds)) for state, row in wip.states],
        [row.tasks for _, row in wip.states],
    )


def _print_cost(session: frame.Session, numbers: Statistics) -> None:
    for head, spent in (
        ("cost at", numbers.spent_by_state),
        ("cost by", numbers.spent_by_actor),
        ("cost on", numbers.spent_by_day[-_DAYS:]),
    ):
        _table(
            session,
            (head, "claims", "time", "tokens", "cost", ""),
            [(name, *_spent(row)) for name, row in spent],
            [row.cost if numbers.spent.cost else row.seconds for _, row in spent],
        )


def _table(
    session: frame.Session,
    head: Sequence[str],
    cells: Sequence[Sequence[str]],
    lengths: Sequence[float],
) -> None:
    """Prints rows below their head, each with a bar; nothing where there are none."""
    if not cells:
        return
    from gittasks.cli.drawing import bars

    shown = bars(((str(at), length) for at, length in enumerate(lengths)), _BAR)
    session.out.line()
    session.out.table([head, *((*row, shown[str(at)]) for at, row in enumerate(cells))])


def _spread(row: Spread) -> tuple[str, ...]:
    return (
        str(row.times),
        age(row.median_seconds or 0),
        age(row.p90_seconds or 0),
        age(row.max_seconds or 0),
    )


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _done(row: Done) -> tuple[str, ...]:
    return tuple(str(number) for number in row)


def _spent(row: Spent) -> tuple[str, ...]:
    return str(row.claims), age(row.seconds), str(row.tokens), f"${row.cost:.2f}"
