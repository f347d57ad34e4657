"""A decision in the making, and what every rule asks of it: who speaks, what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain import dependencies, machine
from gittasks.domain.errors import (
    AlreadyClaimed,
    Cycle,
    GuardBroken,
    NotAllowed,
    NotClaimed,
    StaleClaim,
    UnknownTask,
    UsageFault,
    WrongRole,
)
from gittasks.domain.events import Change, Created, Event, EventRole, Unblocked
from gittasks.domain.ids import is_id
from gittasks.domain.machine import STAGE
from gittasks.domain.task_graph import Graph, Overlay, evolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gittasks.domain.requests import Facts, Feedback, Submit
    from gittasks.domain.task import State, Task


class Decision:
    """A decision in the making: the graph with the events so far applied, and those events."""

    def __init__(self, graph: Graph, facts: Facts) -> None:
        """Starts on a graph without events."""
        self.graph = Overlay(graph)
        self.facts = facts
        self.events: list[Event] = []

    def task(self, task_id: str) -> Task:
        """Returns a task, or raises UnknownTask."""
        task = self.graph.get(task_id)
        if task is None:
            raise UnknownTask(
                f"There is no task {task_id}.", "Run `git tasks list --all` to see them.", task_id
            )
        return task

    def add(
        self,
        task: Task,
        change: Change,
        target: State | None = None,
        *,
        role: EventRole | None = None,
        **details: Any,
    ) -> Event:
        """Adds one event about an existing task and applies it."""
        event = Event(
            event_id="",
            at=self.facts.now,
            actor=self.facts.speaker.actor,
            role=role or self.facts.speaker.role or "none",
            host=self.facts.host,
            change=change,
            task=task.id,
            uid=task.uid,
            source=task.state,
            target=target or task.state,
            revision=self.graph.revision(task.id),
            **details,
        )
        self._apply(event, task)
        return event

    def create(self, task_id: str, uid: str, body: bytes, change: Created) -> None:
        """Adds the event that begins a task."""
        event = Event(
            event_id="",
            at=self.facts.now,
            actor=self.facts.speaker.actor,
            role=self.facts.speaker.role or "none",
            host=self.facts.host,
            change=change,
            task=task_id,
            uid=uid,
            source=None,
            target="NEW",
            body=body,
        )
        self._apply(event, None)

    def _apply(self, event: Event, task: Task | None) -> None:
        body = b"" if task is None else self.graph.body(task.id)
        after, body_after = evolve(task, body, event)
        self.graph.put(after, None if body_after is body and task is not None else body_after)
        self.events.append(event)


def require_open(task: Task, verb: str) -> None:
    """Refuses a closed task."""
    if not task.is_open:
        how = "has landed" if task.is_landed else "was aborted"
        raise NotAllowed(f"The task {task.id} {how}; it cannot {verb}.", task=task.id)


def require_manager(decision: Decision, task: Task, verb: str) -> None:
    """Refuses everybody but the manager."""
    role = decision.facts.speaker.role
    if role == "manager":
        return
    who = f"the {role}" if role else "nobody in particular"
    raise WrongRole(
        f"Only the manager may {verb} {task.id}; you speak as {who}. "
        f"{machine.moves_from(task.state)}",
        "Run `git tasks whoami` to see why, or give --role.",
        task.id,
    )


def not_allowed(task: Task, verb: str, hint: str | None = None) -> NotAllowed:
    """Returns the refusal of a verb that the task's state does not have."""
    return NotAllowed(
        f"The task {task.id} is at {task.state}, where there is no {verb}. "
        f"{machine.moves_from(task.state)}",
        hint or f"Run `git tasks show {task.id}` to see where it stands.",
        task.id,
    )


def require_owner(decision: Decision, task: Task, verb: str) -> None:
    """Refuses a speaker whose role does not own the task's state."""
    speaker, stage = decision.facts.speaker, STAGE[task.state]
    if speaker.role == stage.role:
        return
    if speaker.role is None and stage.claimable and verb != "claim":
        raise WrongRole(
            f"{speaker.actor} holds no claim on {task.id}, which is at {task.state} "
            f"and belongs to the {stage.role}.",
            f"Take it with `git tasks start {task.id}`, or see who you are with `git tasks whoami`.",
            task.id,
        )
    who = f"the {speaker.role}" if speaker.role else "nobody in particular"
    raise WrongRole(
        f"You speak as {who} and cannot {verb} {task.id} at {task.state}: "
        f"{machine.moves_from(task.state)}",
        "Run `git tasks whoami` to see who you are, or give --as and --role.",
        task.id,
    )


def require_holder(decision: Decision, task: Task, verb: str) -> None:
    """Refuses a speaker who does not hold the task's present claim."""
    speaker = decision.facts.speaker
    if task.claim is not None and speaker.claim == task.claim:
        return
    if speaker.claim is not None:
        holder = f"held by {task.claimed_by}" if task.claimed_by else "not held by anybody"
        raise StaleClaim(
            f"Your claim on {task.id} is stale: the task is at {task.state}, {holder}.",
            f"Run `git tasks claim {task.id}` if you want to go on with it.",
            task.id,
        )
    if task.claim is None:
        raise NotClaimed(
            f"Nobody holds {task.id}; who wants to {verb} it has to claim it first.",
            f"Run `git tasks start {task.id}`.",
            task.id,
        )
    raise AlreadyClaimed(
        f"The task {task.id} is held by {task.claimed_by}, and you present no claim on it.",
        "Give --as with the holder's name in the holder's clone, or --claim.",
        task.id,
    )


def require_text(text: str, what: str) -> str:
    """Returns a text without blanks around it; raises UsageFault when nothing is left."""
    if not text.strip():
        raise UsageFault(f"The {what} is blank.", "Give some text with -m.")
    return text.strip()


def require_known(decision: Decision, named: Iterable[str | None]) -> None:
    """Raises UnknownTask for the first id that names no task."""
    for other in named:
        if other is not None and (not is_id(other) or decision.graph.get(other) is None):
            raise UnknownTask(
                f"There is no task {other}.", "Run `git tasks list --all` to see them.", other
            )


def require_few(needs: Sequence[str]) -> None:
    """Raises UsageFault for more dependencies than a document may name."""
    if len(needs) > dependencies.DEPENDENCY_LIMIT:
        raise UsageFault(
            f"The task would have {len(needs)} dependencies; "
            f"{dependencies.DEPENDENCY_LIMIT} are allowed.",
            "Group some of them below a parent.",
        )


def require_no_ring(decision: Decision, task_id: str, needs: Iterable[str]) -> None:
    """Raises Cycle, edge by edge, when these dependencies would close a ring."""
    path = dependencies.ring(decision.graph, task_id, needs)
    if path is not None:
        raise Cycle(path, task_id)


def require_same_assignment(decision: Decision, task: Task, request: Submit | Feedback) -> None:
    """Refuses who works from a text or from checks that the manager has changed meanwhile."""
    body, checks = request.body_dispatched, request.checks_dispatched
    same_body = body is None or body == decision.graph.body(task.id)
    if same_body and (checks is None or checks == task.checks):
        return
    raise GuardBroken(
        "assignment-changed",
        f"The manager has changed the text or the checks of {task.id} since it was handed out.",
        "Read ASSIGNMENT.md again: it has the new text and what you wrote. Submit again.",
        task.id,
    )


def unblock_after(decision: Decision, landed: str) -> None:
    """Adds the unblock of every task that waited for the landed one and for nothing else."""
    for waiting in dependencies.waiters(decision.graph, landed):
        unblock(decision, waiting, landed)


def unblock(decision: Decision, task_id: str, cause: str | None) -> None:
    """Adds the unblock of a task that waits for nothing any more."""
    task = decision.task(task_id)
    if task.state != "BLOCKED" or task.enters is None:
        return
    if dependencies.open_dependencies(decision.graph, task.depends_on):
        return
    decision.add(task, Unblocked(cause), task.enters, role="tool")
