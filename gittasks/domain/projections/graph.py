"""The task graph as a projection: all tasks after some events, who needs whom, what was refused.

Bodies are not folded: they are in the tree of the commit. An event that is not legal where it
stands changes nothing and is kept as a violation, so that all readers still agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain import dependencies, machine
from gittasks.domain.projections.persistent import Persistent
from gittasks.domain.projections.signals import Signal, Signals
from gittasks.domain.task_graph import evolve, numbers_of
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.task import Task

NAME = "task_graph"
SIGNALS: tuple[str, ...] = (
    "task_created",
    "task_completed",
    "task_cancelled",
    "task_status_changed",
    "task_reparented",
    "task_reordered",
    "task_changed",
)

_SET_ELSEWHERE = frozenset(
    (
        "state", "entered_at", "claimed_by", "claim", "claimed_at", "lease_expires", "outcome",
        "parent", "position",
    )
)  # fmt: skip
"""What a signal of its own tells."""


class Violation(NamedTuple):
    """A commit that counts for nothing: which, about which task, and why."""

    oid: str
    task: str | None
    reason: str


class GraphState(NamedTuple):
    """All tasks after some events; answers what decisions and queries ask of a graph."""

    tasks: Persistent[Task] = Persistent()
    uids: Persistent[str] = Persistent()
    below: Persistent[tuple[str, ...]] = Persistent()
    """The ids of the direct children by parent, as they came."""
    top: Persistent[bool] = Persistent()
    """The ids of the tasks without a parent."""
    needed_by: Persistent[tuple[str, ...]] = Persistent()
    replaced_by: Persistent[tuple[str, ...]] = Persistent()
    last: int = 0
    violations: tuple[Violation, ...] = ()

    # What decisions ask (the protocol `Graph`).

    def get(self, task: str) -> Task | None:
        """Returns the task with this six-digit id."""
        return self.tasks.get(task)

    def body(self, task: str) -> bytes:
        """Returns nothing: bodies are not folded."""
        del task
        return b""

    def revision(self, task: str) -> str | None:
        """Returns None: what was folded has no document."""
        del task
        return None

    def with_uid(self, uid: str) -> str | None:
        """Returns the id of the task with this uid."""
        return self.uids.get(uid)

    def dependents(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks, open or closed, that name the task in `depends_on`."""
        return sorted(self.needed_by.get(task) or ())

    def children(self, task: str | None) -> Sequence[str]:
        """Returns the ids of the direct children, lowest first; of None, the tasks at the top."""
        return list(self.top) if task is None else sorted(self.below.get(task) or ())

    def superseders(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks that name the task in `supersedes`."""
        return sorted(self.replaced_by.get(task) or ())

    def last_id(self) -> int:
        """Returns the highest number in use, 0 when there is no task."""
        return self.last

    def free_id(self, first: int) -> int:
        """Returns the lowest number from `first` on that means nothing and never has."""
        used = {number for task in self.tasks.values() for number in numbers_of(task)}
        while first in used:
            first += 1
        return first

    # What people ask.

    def roots(self) -> tuple[str, ...]:
        """Returns the ids of the tasks without a parent, in their order."""
        return self.in_order(self.top)

    def in_order(self, ids: Persistent[bool] | Sequence[str]) -> tuple[str, ...]:
        """Returns siblings in the order that `reorder` gave them, else by id."""
        found = [task for task in map(self.get, ids) if task is not None]
        return tuple(task.id for task in sorted(found, key=lambda task: (task.sort_key, task.id)))

    def subtree(self, task: str) -> tuple[str, ...]:
        """Returns a task and all below it, each before its children; of an unknown id, nothing."""
        return tuple(one for one, _ in self.outline((task,)))

    def outline(self, roots: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yields id and depth of tasks and all below them, each before its children and once."""
        seen: set[str] = set()
        stack = [(root, 0) for root in reversed(roots)]
        while stack:
            task, depth = stack.pop()
            if task in seen or self.get(task) is None:
                continue
            seen.add(task)
            yield task, depth
            below = self.in_order(self.below.get(task) or ())
            stack.extend((child, depth + 1) for child in reversed(below))

    def ancestors(self, task: str) -> tuple[str, ...]:
        """Returns the ids above a task, the nearest first."""
        found: dict[str, None] = {}
        here = self.get(task)
        while here is not None and here.parent is not None and here.parent not in (task, *found):
            found[here.parent] = None
            here = self.get(here.parent)
        return tuple(found)

    def can_close(self, task: str) -> tuple[str, ...]:
        """Returns the reasons why a task cannot close now, in sentences; none means that it can."""
        found = self.get(task)
        if found is None:
            return (f"There is no task {task}.",)
        if not found.is_open:
            return (f"The task {task} is closed already.",)
        reasons = []
        still = machine.any_open_child(self, task)
        if still:
            reasons.append(f"Its children {', '.join(still)} are open.")
        waits = dependencies.open_dependencies(self, found.depends_on)
        if waits:
            reasons.append(f"It needs {', '.join(waits)}.")
        if found.state != "MANAGER_REVIEW" and machine.objection_to_close(self, found) is not None:
            reasons.append(f"It is at {found.state}, and closes from MANAGER_REVIEW.")
        return tuple(reasons)

    def blocking(self, task: str) -> int:
        """Returns how many open tasks wait on a task, transitively, each counted once."""
        return dependencies.blocking(self, task)


class Step(NamedTuple):
    """One commit of the ledger about a task: its event, and the task before and after it.

    `graph` is the whole graph afterwards; before a create there is no task.
    """

    oid: str
    event: Event
    before: Task | None
    after: Task
    graph: GraphState


def refused(state: GraphState, oid: str, task: str | None, reason: str) -> GraphState:
    """Returns the graph with one more commit that counts for nothing."""
    return state._replace(violations=(*state.violations, Violation(oid, task, reason)))


def apply(state: GraphState, oid: str, event: Event) -> Step | GraphState:
    """Returns the step that an event is, or else the graph: an event about no task changes nothing.

    Where it is not legal, that has a violation more.
    """
    if event.task is None or not event.is_about_a_task:
        return state
    reason = machine.objection(state, event)
    if reason is not None:
        return refused(state, oid, event.task, reason)
    before = state.get(event.task)
    after, _ = evolve(before, b"", event)
    return Step(oid, event, before, after, _with(state, before, after))


def fold(state: GraphState, step: Step) -> tuple[GraphState, Signals]:
    """Returns the graph after a step, and what has become of its task."""
    del state
    return step.graph, tuple(_signals(step))


def _with(state: GraphState, before: Task | None, after: Task) -> GraphState:
    number = after.id
    if before is not None and before.parent == after.parent:
        moved: dict[str, Any] = {}
    else:
        moved = _moved(state, before, after)
    if before is None or before.depends_on != after.depends_on:
        needed = state.needed_by
        for old in () if before is None else before.depends_on:
            needed = _fewer(needed, old, number)
        for new in after.depends_on:
            needed = _more(needed, new, number)
        moved["needed_by"] = needed
    if before is None:
        moved["uids"] = state.uids.with_(after.uid, number)
        moved["last"] = max(state.last, int(number))
        if after.supersedes is not None:
            moved["replaced_by"] = _more(state.replaced_by, after.supersedes, number)
    return state._replace(tasks=state.tasks.with_(number, after), **moved)


def _moved(state: GraphState, before: Task | None, after: Task) -> dict[str, Any]:
    """Returns what a task changes that has come, or has another parent now."""
    below, top = state.below, state.top
    if before is not None:
        if before.parent is None:
            top = top.without(before.id)
        else:
            below = _fewer(below, before.parent, before.id)
    if after.parent is None:
        top = top.with_(after.id, True)
    else:
        below = _more(below, after.parent, after.id)
    return {"below": below, "top": top}


def _more(found: Persistent[tuple[str, ...]], key: str, value: str) -> Persistent[tuple[str, ...]]:
    return found.with_(key, (*(found.get(key) or ()), value))


def _fewer(found: Persistent[tuple[str, ...]], key: str, value: str) -> Persistent[tuple[str, ...]]:
    left = tuple(one for one in found.get(key) or () if one != value)
    return found.with_(key, left) if left else found.without(key)


def _signals(step: Step) -> Iterator[Signal]:
    before, after = step.before, step.after
    if before is None:
        yield _told("task_created", after.id, title=after.title, parent=after.parent)
        return
    if before.outcome != after.outcome:
        name = "task_completed" if after.outcome == "landed" else "task_cancelled"
        yield _told(name, after.id, landed=after.landed)
    if before.state != after.state:
        yield _told("task_status_changed", after.id, **{"from": before.state, "to": after.state})
    if before.parent != after.parent:
        yield _told("task_reparented", after.id, **{"from": before.parent, "to": after.parent})
    elif before.position != after.position:
        yield _told("task_reordered", after.id)
    if step.event.kind in ("edit", "external"):
        names = [
            name
            for name, old, new in zip(before._fields, before, after, strict=True)
            if old != new and name not in _SET_ELSEWHERE
        ]
        body = ["body"] if getattr(step.event.change, "body", False) else []
        if names or body:
            yield _told("task_changed", after.id, fields=[*names, *body])


def _told(name: str, task: str, **data: Any) -> Signal:
    return Signal(name, NAME, task, tuple(data.items()))
