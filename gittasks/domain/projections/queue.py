"""The queue: what an agent could take, in the order in which it should be taken.

Ranks are in the stage table (`machine.STAGES`): what is closest to closed comes first. Ties:
priority, most blocking, lowest id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain import dependencies, machine
from gittasks.domain.projections.persistent import Persistent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gittasks.domain.projections.graph import Step
    from gittasks.domain.projections.signals import Signals
    from gittasks.domain.task import Role, Task
    from gittasks.domain.task_graph import Graph

NAME = "queue"
SIGNALS: tuple[str, ...] = (
    "queue_added",
    "queue_cleared",
)


class Queue(NamedTuple):
    """The ranks of all that agents could take, by task."""

    ranks: Persistent[int] = Persistent()


class QueueRow(NamedTuple):
    """One place in the queue."""

    rank: int
    priority: int
    blocking: int
    id: str

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Returns the key that sorts the queue."""
        return (self.rank, self.priority, -self.blocking, self.id)


def fold(state: Queue, step: Step) -> tuple[Queue, Signals]:
    """Returns the ranks after a step, and what can be taken, or no more, since it."""
    task = step.after
    rank, known = machine.queue_rank(task), state.ranks.get(task.id)
    if rank == (known or 0):
        return state, ()
    from gittasks.domain.projections.signals import Signal

    if not rank:
        cleared = Signal("queue_cleared", NAME, task.id, (("rank", known),))
        return Queue(state.ranks.without(task.id)), (cleared,)
    about = (("rank", rank), ("role", machine.STAGE[task.state].role))
    return Queue(state.ranks.with_(task.id, rank)), (Signal("queue_added", NAME, task.id, about),)


def queue(
    graph: Graph,
    tasks: Iterable[Task],
    *,
    role: Role | None = None,
    actor: str | None = None,
    resumes: Collection[str] = (),
) -> list[QueueRow]:
    """Returns the rows that a role could take, first to last; of None, those of every role.

    `actor` leaves out what is assigned to somebody else; `resumes` are the ids whose failed check
    this host can go on with.
    """
    rows = []
    for task in tasks:
        rank = machine.queue_rank(task)
        waits = rank > 0 or (role == "checker" and _waits_for_checker(task))
        if not waits or (role is not None and machine.STAGE[task.state].role != role):
            continue
        if actor is not None and task.assignee is not None and task.assignee != actor:
            continue
        if task.id in resumes and task.state == "WORK":
            rank = machine.RESUME_RANK
        rows.append(QueueRow(rank, task.priority, dependencies.blocking(graph, task.id), task.id))
    return sorted(rows, key=lambda row: row.order)


def _waits_for_checker(task: Task) -> bool:
    """Tells whether the task stands in the checker's own queue, which is in nobody else's."""
    return task.state == "CHECK" and task.claim is None
