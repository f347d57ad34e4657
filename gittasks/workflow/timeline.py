"""When tasks went from state to state, by whom, after how long, and at what cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Corrupt
from gittasks.workflow.queries import task_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gittasks.domain.events import Event
    from gittasks.domain.task import Cost, State
    from gittasks.workflow.project import Project


class Moved(NamedTuple):
    """One transition, or the end of a claim that cost something without one."""

    at: int
    """In seconds since 1970."""
    task: str
    event: str
    source: State | None
    target: State | None
    actor: str
    role: str
    seconds: int | None
    """How long the task had stood in the state that it left; None where it left none."""
    cost: Cost | None
    commit: str
    """The commit of the ledger."""


class Timeline(NamedTuple):
    """Transitions, oldest first, and how many older ones are left out."""

    rows: tuple[Moved, ...]
    left_out: int


def of_task(project: Project, task_id: str, limit: int | None = None) -> Timeline:
    """Returns the transitions of one task, from its history alone; raises UnknownTask."""
    try:
        task_of(project, task_id)
    except Corrupt:
        # What its document should say can still be told.
        pass
    told = ((oid, event) for oid, event in _told(project, task_id) if event.task == task_id)
    return _newest(_moved(told), limit)


def of_all(project: Project, limit: int | None = None) -> Timeline:
    """Returns the transitions of all tasks."""
    return _newest(_moved(_told(project)), limit)


def _told(project: Project, about: str | None = None) -> Iterator[tuple[str, Event]]:
    """Yields commits and their events, oldest first; a commit that is none does not count."""
    from gittasks.ledger import history, quarantine

    ledger = project.ledger
    invalid = quarantine.invalid(ledger.state_dir)
    for fact in history.facts(project.repo, ledger.tip, about=about, invalid=invalid):
        if fact.event is not None:
            yield fact.oid, fact.event


def _moved(told: Iterable[tuple[str, Event]]) -> Iterator[Moved]:
    """Yields what moved a task, from events oldest first."""
    entered: dict[str, int] = {}
    for oid, event in told:
        cost = getattr(event.change, "cost", None)
        is_move = event.is_transition and event.is_about_a_task
        if event.task is None or not (is_move or cost is not None):
            continue
        seconds = None
        if is_move:
            since = entered.get(event.task)
            # A clock that went back counts as no time.
            seconds = None if since is None else max(event.at - since, 0)
            entered[event.task] = event.at
        yield Moved(
            event.at,
            event.task,
            event.kind,
            event.source,
            event.target,
            event.actor,
            event.role,
            seconds,
            cost,
            oid,
        )


def _newest(rows: Iterator[Moved], limit: int | None) -> Timeline:
    from collections import deque

    kept: deque[Moved] = deque(maxlen=limit)
    total = 0
    for row in rows:
        kept.append(row)
        total += 1
    return Timeline(tuple(kept), total - len(kept))
