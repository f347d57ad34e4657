"""Where the project stands, in an answer that does not grow with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.projections.working_state import waiting_on
from gittasks.workflow.queries import Rows, inbox, snapshot_of

_QUEUE_LIMIT = 5
_CHILDREN_LIMIT = 20

if TYPE_CHECKING:
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project


class Overview(NamedTuple):
    """Where the project stands."""

    here: Task | None
    mine: tuple[Task, ...]
    mine_count: int
    counts: dict[str, int]
    inbox: Rows
    inbox_count: int
    ready_count: int
    running: int
    working: dict[str, int]
    """For each parent of running tasks how many of its direct children run."""
    working_left_out: int
    waiting_on: str
    problems: int
    remote: str | None = None
    """The remote that this clone shares its ledger through."""
    unpublished: int = 0
    """How many events the remote did not have when it was last asked."""


def overview(project: Project, actor: str) -> Overview:
    """Returns where the project stands, seen by one actor."""
    snapshot = snapshot_of(project)
    here_id = project.here()
    here = None if here_id is None else snapshot.task(here_id)
    claims = snapshot.claims()
    mine = [task for task, _, holder in claims if holder == actor]
    counts = snapshot.counts()
    waiting = inbox(project, _QUEUE_LIMIT)
    working: dict[str, int] = {}
    for _, parent, _ in claims:
        if parent is not None:
            working[parent] = working.get(parent, 0) + 1
    ready_count = snapshot.ready_count()
    waits = len(waiting.rows) + waiting.left_out
    remote, unpublished = _shared(project)
    return Overview(
        here=here,
        mine=tuple(snapshot.tasks(mine[:_QUEUE_LIMIT])),
        mine_count=len(mine),
        counts=counts,
        inbox=waiting,
        inbox_count=waits,
        ready_count=ready_count,
        running=len(claims),
        working=dict(sorted(working.items())[:_CHILDREN_LIMIT]),
        working_left_out=max(len(working) - _CHILDREN_LIMIT, 0),
        waiting_on=waiting_on(
            running=len(claims),
            ready=ready_count,
            checking=counts.get("CHECK", 0),
            waiting=waits,
            blocked=counts.get("BLOCKED", 0),
        ),
        problems=len(snapshot.problems()),
        remote=remote,
        unpublished=unpublished,
    )


def _shared(project: Project) -> tuple[str | None, int]:
    if project.remote is None:
        return None, 0
    from gittasks.workflow.sync import state  # only a clone that shares

    return state(project) or (None, 0)
