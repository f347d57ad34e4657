"""The task graph: every task at one ledger commit, and how one event changes it."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from gittasks.domain.errors import Corrupt
from gittasks.domain.events import (
    Aborted,
    CheckPassed,
    CheckRefuted,
    Claimed,
    Configured,
    Created,
    Edited,
    Event,
    ExternallyChanged,
    FeedbackGiven,
    Held,
    Initialized,
    Noted,
    Rejected,
    Released,
    Renumbered,
    Reordered,
    Reparented,
    Resumed,
    Submitted,
    Unblocked,
)
from gittasks.domain.ids import LAST_ID, task_id
from gittasks.domain.task import Attention, Draft, Findings, Task
from gittasks.domain.times import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FINDINGS_HEADING = "# Review findings"


class Graph(Protocol):
    """What a decision may ask about the tasks at one commit; unknown ids give None or nothing."""

    def get(self, task: str) -> Task | None:
        """Returns the task with this six-digit id."""
        ...

    def body(self, task: str) -> bytes:
        """Returns the body of a task that exists."""
        ...

    def revision(self, task: str) -> str | None:
        """Returns the blob id of the task's document, None where documents have none."""
        ...

    def with_uid(self, uid: str) -> str | None:
        """Returns the id of the task with this uid."""
        ...

    def dependents(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks, open or closed, that name the task in `depends_on`."""
        ...

    def children(self, task: str | None) -> Sequence[str]:
        """Returns the ids of the direct children; of None, the tasks without a parent."""
        ...

    def superseders(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks that name the task in `supersedes`."""
        ...

    def last_id(self) -> int:
        """Returns the highest number in use, 0 when there is no task."""
        ...

    def free_id(self, first: int) -> int:
        """Returns the lowest number from `first` on that means nothing and never has.

        That takes a look at all tasks.
        """
        ...


class TaskGraph:
    """An immutable graph held in memory; `with_task` gives a new one."""

    def __init__(
        self,
        tasks: Mapping[str, Task] | None = None,
        bodies: Mapping[str, bytes] | None = None,
    ) -> None:
        """Takes tasks and bodies by id."""
        self.tasks: Mapping[str, Task] = dict(tasks or {})
        self.bodies: Mapping[str, bytes] = dict(bodies or {})

    def __eq__(self, other: object) -> bool:
        """Compares tasks and bodies."""
        return (
            isinstance(other, TaskGraph)
            and self.tasks == other.tasks
            and self.bodies == other.bodies
        )

    __hash__ = None  # type: ignore[assignment]  # two graphs compare by value and are not keys

    def get(self, task: str) -> Task | None:
        """Returns the task with this six-digit id."""
        return self.tasks.get(task)

    def body(self, task: str) -> bytes:
        """Returns the body of a task that exists."""
        return self.bodies[task]

    def revision(self, task: str) -> str | None:  # noqa: ARG002  # the protocol names it
        """Returns None: documents in memory have no blob id."""
        return None

    def with_uid(self, uid: str) -> str | None:
        """Returns the id of the task with this uid."""
        return next((task.id for task in self.tasks.values() if task.uid == uid), None)

    def dependents(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks, open or closed, that name the task in `depends_on`."""
        return sorted(t.id for t in self.tasks.values() if task in t.depends_on)

    def children(self, task: str | None) -> Sequence[str]:
        """Returns the ids of the direct children; of None, the tasks without a parent."""
        return sorted(t.id for t in self.tasks.values() if t.parent == task)

    def superseders(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks that name the task in `supersedes`."""
        return sorted(t.id for t in self.tasks.values() if t.supersedes == task)

    def last_id(self) -> int:
        """Returns the highest number in use, 0 when there is no task."""
        return max((int(task) for task in self.tasks), default=0)

    def free_id(self, first: int) -> int:
        """Returns the lowest number from `first` on that means nothing and never has."""
        used = {number for task in self.tasks.values() for number in numbers_of(task)}
        return next(number for number in count(first) if number not in used)

    def with_task(self, task: Task, body: bytes) -> TaskGraph:
        """Returns the graph with one task added or replaced."""
        return TaskGraph({**self.tasks, task.id: task}, {**self.bodies, task.id: body})


class Overlay:
    """A graph plus the tasks that a decision in the making has changed."""

    def __init__(self, below: Graph) -> None:
        """Starts without changes."""
        self.below = below
        self.tasks: dict[str, Task] = {}
        self.bodies: dict[str, bytes] = {}
        self._uids: dict[str, str] = {}
        self._last = 0
        self._used: set[int] = set()
        self._full = 1

    def put(self, task: Task, body: bytes | None) -> None:
        """Replaces or adds one task; a body of None stays as it is."""
        self.tasks[task.id] = task
        self._uids.setdefault(task.uid, task.id)
        self._last = max(self._last, int(task.id))
        self._used.update(numbers_of(task))
        if body is not None:
            self.bodies[task.id] = body

    def get(self, task: str) -> Task | None:
        """Returns the task with this six-digit id."""
        return self.tasks.get(task) or self.below.get(task)

    def body(self, task: str) -> bytes:
        """Returns the body of a task that exists."""
        return self.bodies[task] if task in self.bodies else self.below.body(task)

    def revision(self, task: str) -> str | None:
        """Returns the blob id below, None for a task that this decision has changed."""
        return None if task in self.tasks else self.below.revision(task)

    def with_uid(self, uid: str) -> str | None:
        """Returns the id of the task with this uid."""
        return self._uids.get(uid) or self.below.with_uid(uid)

    def dependents(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks, open or closed, that name the task in `depends_on`."""
        own = (t.id for t in self.tasks.values() if task in t.depends_on)
        return self._merged(self.below.dependents(task), own)

    def children(self, task: str | None) -> Sequence[str]:
        """Returns the ids of the direct children; of None, the tasks without a parent."""
        own = (t.id for t in self.tasks.values() if t.parent == task)
        return self._merged(self.below.children(task), own)

    def superseders(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks that name the task in `supersedes`."""
        own = (t.id for t in self.tasks.values() if t.supersedes == task)
        return self._merged(self.below.superseders(task), own)

    def last_id(self) -> int:
        """Returns the highest number in use, 0 when there is no task."""
        return max(self.below.last_id(), self._last)

    def free_id(self, first: int) -> int:
        """Returns the lowest number from `first` on that means nothing and never has."""
        # Tasks only ever come: what was not free does not become it.
        is_onward = first <= self._full
        number = self.below.free_id(self._full if is_onward else first)
        while number in self._used:
            number = self.below.free_id(number + 1)
        if is_onward:
            self._full = number
        return number

    def _merged(self, below: Sequence[str], own: Iterable[str]) -> Sequence[str]:
        return sorted({*(task for task in below if task not in self.tasks), *own})


def numbers_of(task: Task) -> Iterable[int]:
    """Returns the numbers that mean a task: its own, and those that it has had before."""
    return (int(task.id), *map(int, task.former_ids)) if task.former_ids else (int(task.id),)


def next_id(graph: Graph) -> str:
    """Returns the first of `free_ids`."""
    return next(free_ids(graph))


def free_ids(graph: Graph) -> Iterator[str]:
    """Yields the ids that new tasks get, one after the other; raises Corrupt after the last.

    They count on from the highest. Anybody can take the highest that there is, so from there on
    they fill what lower ones have left.
    """
    for number in range(graph.last_id() + 1, LAST_ID + 1):
        yield task_id(number)
    number = 0
    while (number := graph.free_id(number + 1)) <= LAST_ID:
        yield task_id(number)
    raise Corrupt(f"The ledger has used up all ids up to {LAST_ID}.")


def _moved(task: Task, event: Event) -> Task:
    """Returns the task after the part that every transition has in common."""
    assert event.target is not None
    return task._replace(
        state=event.target,
        entered_at=timestamp(event.at),
        held_reason=None,
        enters=None,
        claimed_by=None,
        claim=None,
        claimed_at=None,
        lease_expires=None,
    )


def _without_claim(task: Task) -> Task:
    return task._replace(claimed_by=None, claim=None, claimed_at=None, lease_expires=None)


def _charged(task: Task, change: Any) -> Task:
    """Returns the task with the cost of the claim that the event ends."""
    return task if change.cost is None else task._replace(costs=(*task.costs, change.cost))


def with_findings(body: bytes, findings: Iterable[str]) -> bytes:
    """Returns the body with a round of findings appended, one bullet each, verbatim."""
    bullets = "".join("- " + item.strip("\n").replace("\n", "\n  ") + "\n" for item in findings)
    text = f"{FINDINGS_HEADING}\n\n{bullets}".encode("utf-8", "replace")
    return body + gap(body) + text


def gap(body: bytes) -> bytes:
    """Returns what has to follow a body so that a heading after it stands alone."""
    if not body or body.endswith(b"\n\n"):
        return b""
    return b"\n" if body.endswith(b"\n") else b"\n\n"


def changed_by_fields(task: Task, set_: Iterable[tuple[str, Any]], unset: Iterable[str]) -> Task:
    """Returns the task with fields set and unset; `x-` keys take their raw text."""
    fields: dict[str, Any] = {}
    extra = dict(task.extra)
    for name, value in set_:
        if name.startswith("x-"):
            extra[name] = value
        else:
            fields[name] = value
    for name in unset:
        if name.startswith("x-"):
            extra.pop(name, None)
        else:
            fields[name] = Task._field_defaults[name]
    return task._replace(**fields, extra=tuple(extra.items()))


def evolve(task: Task | None, body: bytes, event: Event) -> tuple[Task, bytes]:
    """Returns one task and its body after an event that concerns it; knows no other task.

    Trusts that the step is legal (`machine.objection` tells); raises Corrupt only where the event
    cannot be carried out at all.
    """
    change = event.change
    if isinstance(change, Created) or (isinstance(change, ExternallyChanged) and change.created):
        if task is not None:
            raise Corrupt(f"The task {task.id} is created twice.", task=task.id)
        return _begun(event, change), event.body or b""
    if task is None:
        raise Corrupt(f"The event {event.event_id} is about a task that does not exist.")
    return _evolved(task, body, event)


def _begun(event: Event, change: Created | ExternallyChanged) -> Task:
    return _created(event, change) if isinstance(change, Created) else _adopted(event, change)


def _created(event: Event, change: Created) -> Task:
    now = timestamp(event.at)
    assert event.task is not None
    assert event.uid is not None
    return Task(
        id=event.task,
        uid=event.uid,
        title=change.title,
        state="NEW",
        entered_at=now,
        parent=change.parent,
        depends_on=change.depends_on,
        supersedes=change.supersedes,
        follows=change.follows,
        labels=change.labels,
        priority=change.priority,
        checks=change.checks,
        assignee=change.assignee,
        proposed_by=change.proposed_by,
        created_at=now,
        created_by=event.actor,
        former_ids=change.former_ids,
        extra=change.extra,
    )


def _adopted(event: Event, change: ExternallyChanged) -> Task:
    assert event.task is not None
    assert event.uid is not None
    now = timestamp(event.at)
    blank = Task(event.task, event.uid, "", entered_at=now, created_at=now, created_by=event.actor)
    return changed_by_fields(blank, change.set, ())


def _evolved(task: Task, body: bytes, event: Event) -> tuple[Task, bytes]:
    change = event.change
    match change:
        case Created() | Initialized() | Configured():
            raise Corrupt(f"An event {event.kind} changes no task.", task=task.id)
        case Submitted():
            return _submitted(task, body, event, change)
        case Unblocked() | Resumed():
            return _resumed_or_unblocked(task, event), body
        case FeedbackGiven():
            return _sent_back(task, body, event, change)
        case CheckPassed():
            return _moved(task, event)._replace(checked_tip=event.commit, check_failures=0), body
        case CheckRefuted():
            return _check_refuted(task, event, change), body
        case Held():
            held = _charged(_moved(task, event), change)._replace(
                held_reason=change.reason, draft=None
            )
            return held, _without_draft(task, body)
        case Aborted():
            aborted = _charged(_moved(task, event), change)
            return aborted._replace(outcome="aborted", draft=None, attention=()), body
        case Claimed():
            return _claimed(task, event, change), body
        case Released():
            return _charged(_without_claim(task), change), body
        case Edited() | ExternallyChanged():
            edited = changed_by_fields(task, change.set, change.unset)
            if isinstance(change, Edited) and change.seen:
                edited = edited._replace(attention=())
            return edited, event.body if change.body and event.body is not None else body
        case Noted():
            artifacts = {**dict(task.artifacts), **dict(change.artifacts)}
            noted = task._replace(artifacts=tuple(artifacts.items()))
            if change.seen:
                noted = noted._replace(attention=())
            if change.attention is not None:
                noted = _with_row(noted, event, change.attention)
            return noted, body
        case Reparented():
            # Keys order the tasks below one parent; below another one its id says its place.
            return task._replace(parent=change.parent, position=None), body
        case Reordered():
            return task._replace(position=change.position), body
        case Renumbered():
            return task, body
        case Rejected():
            if change.quiet or change.part > 1:
                return task, body
            reason = f"{change.event} by {event.actor} was not applied: {change.reason}"
            return _with_row(task, event, reason), body
        case _:
            assert_never(change)


def _with_row(task: Task, event: Event, text: str) -> Task:
    """Returns the task with one more thing that the manager has to look at."""
    row = Attention(event.event_id, event.kind, text)
    return task._replace(attention=(*task.attention, row))


def _resumed_or_unblocked(task: Task, event: Event) -> Task:
    moved = _moved(task, event)
    if isinstance(event.change, Unblocked):
        return moved
    phase = task.state.removeprefix("HELD_")
    enters = phase if event.target == "BLOCKED" else None
    return moved._replace(enters=enters, rejections=0, check_failures=0, attention=())  # type: ignore[arg-type]  # the suffix of a HELD state is a phase's first state


def _submitted(task: Task, body: bytes, event: Event, change: Submitted) -> tuple[Task, bytes]:
    after = body if event.body is None else event.body
    if not event.is_transition:  # a BLOCKED task that is to enter elsewhere: its clock goes on
        return task._replace(enters=change.enters, attention=()), body
    moved = _charged(_moved(task, event), change)
    match task.state:
        case "NEW" | "BLOCKED":
            return moved._replace(
                enters=change.enters if event.target == "BLOCKED" else None,
                outcome=change.outcome,
                attention=(),
            ), body
        case "DESIGN" | "PLAN":
            return moved._replace(draft=change.draft, findings=_left(task)), after
        case "DESIGN_REVIEW" | "PLAN_REVIEW":
            return moved._replace(draft=None, rejections=0), body
        case "WORK":
            return moved._replace(
                submitted_tip=event.commit, checked_tip=None, findings=_left(task)
            ), after
        case "WORK_REVIEW":
            return moved._replace(rejections=0), body
        case _:
            return moved._replace(outcome=change.outcome, landed=event.commit, attention=()), body


def _left(task: Task) -> Findings | None:
    """Returns the findings that stay when the task's present state submits."""
    return None if task.findings and task.findings.state == task.state else task.findings


_BACK: dict[str, Any] = {
    "DESIGN_REVIEW": "DESIGN",
    "PLAN_REVIEW": "PLAN",
    "WORK_REVIEW": "WORK",
    "MANAGER_REVIEW": "WORK",
}


def _sent_back(task: Task, body: bytes, event: Event, change: FeedbackGiven) -> tuple[Task, bytes]:
    author = _BACK[task.state]
    after = with_findings(body, change.findings) if author == "WORK" else _without_draft(task, body)
    moved = _charged(_moved(task, event), change)._replace(
        draft=None,
        rejections=change.rejections,
        findings=Findings(author, change.round, change.findings),
        held_reason=change.held_reason,
    )
    return moved, after


def _check_refuted(task: Task, event: Event, change: CheckRefuted) -> Task:
    return _moved(task, event)._replace(
        findings=Findings("WORK", change.failures, change.findings),
        check_failures=change.failures,
        held_reason=change.held_reason,
    )


def _claimed(task: Task, event: Event, change: Claimed) -> Task:
    return task._replace(
        claimed_by=event.actor,
        claim=event.claim,
        claimed_at=timestamp(event.at),
        lease_expires=change.lease_expires,
        branch=change.branch,
        base=change.base,
        dispatched=change.dispatched,
    )


def _without_draft(task: Task, body: bytes) -> bytes:
    return body if task.draft is None else body[: task.draft.offset]


def draft_of(draft: Draft, body: bytes) -> bytes:
    """Returns the section under review: what stands in the body from its offset on."""
    return body[draft.offset :]
