"""Who has a task, and who had it before: the stints of work on it and the time they took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.projections.persistent import Persistent
from gittasks.domain.projections.signals import Signal, Signals
from gittasks.domain.projections.working_state import end_reason
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.domain.projections.graph import GraphState, Step
    from gittasks.domain.task import State, Task

NAME = "assignments"
SIGNALS: tuple[str, ...] = (
    "task_unassigned",
    "task_assigned",
)

UNFINISHED = ("released", "expired", "forced", "died")
"""How a stint ends that leaves the stage to the next one."""


class Stint(NamedTuple):
    """One claim: who, on which state, from when to when (None: still), why it ended, its commit."""

    actor: str
    state: State
    claim: str
    start: int
    end: int | None = None
    reason: str | None = None
    oid: str = ""
    """The commit of the ledger that recorded the claim."""

    def seconds(self, now: int | None = None) -> int:
        """Returns how long it took, or has taken by `now`; a clock that went back counts as none."""
        end = self.end if self.end is not None else now
        return max(end - self.start, 0) if end is not None else 0


class Assignment(NamedTuple):
    """All stints on one task, the newest last, and how often one went on with another's work."""

    stints: tuple[Stint, ...] = ()
    resumes: int = 0
    accumulated: int = 0
    """The seconds of the stints that have ended."""

    @property
    def current(self) -> Stint | None:
        """Returns the stint that has not ended."""
        return self.stints[-1] if self.stints and self.stints[-1].end is None else None

    def seconds(self, now: int) -> int:
        """Returns the seconds worked on the task by `now`."""
        current = self.current
        return self.accumulated + (0 if current is None else current.seconds(now))


class Assignments(NamedTuple):
    """The assignments by task; one that nobody ever claimed has none."""

    tasks: Persistent[Assignment] = Persistent()


class Row(NamedTuple):
    """One line of the outline: task, depth, who is meant to do it, who does, since when."""

    task: str
    depth: int
    title: str
    state: State
    parent: str | None
    assignee: str | None
    actor: str | None
    since: int | None
    seconds: int
    resumes: int


def fold(state: Assignments, step: Step) -> tuple[Assignments, Signals]:
    """Returns the stints after a step, and who got a task or gave it up by it."""
    before, after = step.before, step.after
    old = None if before is None else before.claim
    new = after.claim
    if old == new:
        return state, ()
    found = state.tasks.get(after.id) or Assignment()
    signals = []
    if old is not None:
        found, signal = _ended(found, after, step)
        signals.append(signal)
    if new is not None:
        found, signal = _begun(found, after, step)
        signals.append(signal)
    return Assignments(state.tasks.with_(after.id, found)), tuple(signals)


def rows(state: Assignments, graph: GraphState, now: int) -> Iterator[Row]:
    """Yields every task in the order of the outline, with its depth and who has it."""
    for task_id, depth in graph.outline(graph.roots()):
        task = graph.get(task_id)
        assert task is not None
        found = state.tasks.get(task_id) or Assignment()
        current = found.current
        yield Row(
            task_id,
            depth,
            task.title,
            task.state,
            task.parent,
            task.assignee,
            None if current is None else current.actor,
            None if current is None else current.start,
            found.seconds(now),
            found.resumes,
        )


def _ended(found: Assignment, after: Task, step: Step) -> tuple[Assignment, Signal]:
    current = found.current
    reason = end_reason(step.event)
    assert current is not None
    ended = current._replace(end=step.event.at, reason=reason)
    more = found._replace(
        stints=(*found.stints[:-1], ended), accumulated=found.accumulated + ended.seconds()
    )
    about = (("actor", ended.actor), ("reason", reason), ("seconds", ended.seconds()))
    return more, Signal("task_unassigned", NAME, after.id, about)


def _begun(found: Assignment, after: Task, step: Step) -> tuple[Assignment, Signal]:
    assert after.claim is not None
    actor = after.claimed_by or step.event.actor
    goes_on = any(
        one.state == after.state and one.reason in UNFINISHED for one in found.stints[-1:]
    )
    stint = Stint(actor, after.state, after.claim, step.event.at, oid=step.oid)
    more = found._replace(stints=(*found.stints, stint), resumes=found.resumes + goes_on)
    about = (("actor", actor), ("state", after.state), ("resumed", goes_on))
    return more, Signal("task_assigned", NAME, after.id, about)
