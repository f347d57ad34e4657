"""Which tasks a picture of the graph shows, and what they say about each other.

Without more words these are the open tasks and what they need. Everything comes from the read
cache; a ring, which only a document written by hand can make, never stops a walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from gittasks.domain.errors import UsageFault
from gittasks.workflow.queries import Filter, snapshot_of, task_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gittasks.domain.task import Task
    from gittasks.ledger.snapshot import Problem, Snapshot
    from gittasks.workflow.project import Project

EdgeKind = Literal["parent", "depends_on", "supersedes", "follows"]
"""The field of a document that names another task."""


class Edge(NamedTuple):
    """The document of one task names another one, in a field."""

    kind: EdgeKind
    task: str
    named: str


class GraphView(NamedTuple):
    """The tasks to show, lowest id first, and the edges between them."""

    tasks: tuple[Task, ...]
    edges: tuple[Edge, ...]
    unread: tuple[str, ...]
    """The ids that are named and that no document which verifies has."""
    about: str | None
    left_out: int
    """How many tasks of the project are not shown."""
    problems: tuple[Problem, ...]


def view(
    project: Project,
    task_id: str | None = None,
    *,
    everything: bool = False,
    history: bool = False,
) -> GraphView:
    """Returns the open tasks and what they need, the surroundings of one task, or everything.

    With `history` the closed tasks belong to it that these are connected with.
    """
    if task_id is not None and everything:
        raise UsageFault(
            "The surroundings of one task are not the whole project.",
            "Give either --task or --all.",
        )
    snapshot = snapshot_of(project)
    if task_id is not None:
        found = _around(snapshot, task_of(project, task_id), history=history)
    elif everything:
        found = {task.id: task for task in snapshot.all_tasks()}
    elif history:
        found = _connected({task.id: task for task in snapshot.all_tasks()})
    else:
        found = {task.id: task for task in snapshot.all_tasks(include_closed=False)}
        needed = {need for task in found.values() for need in task.depends_on}
        found.update((task.id, task) for task in snapshot.tasks(sorted(needed - found.keys())))
    tasks = tuple(found[number] for number in sorted(found))
    named = [edge for task in tasks for edge in edges_of(task)]
    beyond = sorted({edge.named for edge in named if edge.named not in found})
    exist = {task.id for task in snapshot.tasks(beyond)} if beyond else set()
    unread = tuple(number for number in beyond if number not in exist)
    shown = found.keys() | set(unread)
    return GraphView(
        tasks,
        tuple(edge for edge in named if edge.named in shown),
        unread,
        task_id,
        snapshot.count(Filter(include_closed=True)) - len(tasks),
        snapshot.problems(),
    )


def edges_of(task: Task) -> Iterator[Edge]:
    """Yields whom a task names."""
    if task.parent is not None:
        yield Edge("parent", task.id, task.parent)
    for need in task.depends_on:
        yield Edge("depends_on", task.id, need)
    if task.supersedes is not None:
        yield Edge("supersedes", task.id, task.supersedes)
    if task.follows is not None:
        yield Edge("follows", task.id, task.follows)


def _around(snapshot: Snapshot, task: Task, *, history: bool) -> dict[str, Task]:
    """Returns what is above a task, below it, needed by it, and waiting for it, in any number of steps."""

    def wanted(other: Task) -> bool:
        return history or other.is_open

    def named(task: Task) -> Sequence[str]:
        return task.depends_on if wanted(task) else ()

    def above(task: Task) -> Sequence[str]:
        return () if task.parent is None else (task.parent,)

    def older(task: Task) -> Iterable[str]:
        return (edge.named for edge in edges_of(task) if edge.kind in ("supersedes", "follows"))

    found = {task.id: task}
    _walk(snapshot, task, above, found)
    _walk(snapshot, task, named, found)
    _walk(snapshot, task, lambda one: snapshot.children(one.id), found, wanted)
    _walk(snapshot, task, lambda one: snapshot.dependents(one.id), found, wanted)
    if history:
        _walk(snapshot, task, older, found)
        _walk(snapshot, task, lambda one: snapshot.superseders(one.id), found)
    return found


def _walk(
    snapshot: Snapshot,
    start: Task,
    following: Callable[[Task], Iterable[str]],
    found: dict[str, Task],
    wanted: Callable[[Task], bool] = lambda _: True,
) -> None:
    """Adds all that a walk reaches, level by level."""
    seen = {start.id}
    level = [start]
    while level:
        ids = dict.fromkeys(one for task in level for one in following(task) if one not in seen)
        seen.update(ids)
        level = [task for task in snapshot.tasks(ids) if wanted(task)]
        found.update((task.id, task) for task in level)


def _connected(tasks: dict[str, Task]) -> dict[str, Task]:
    """Returns the open tasks and all that is connected with one of them."""
    beside: dict[str, list[str]] = {}
    for task in tasks.values():
        for edge in edges_of(task):
            beside.setdefault(edge.task, []).append(edge.named)
            beside.setdefault(edge.named, []).append(edge.task)
    stack = [task.id for task in tasks.values() if task.is_open]
    seen = set(stack)
    while stack:
        for other in beside.get(stack.pop(), ()):
            if other in tasks and other not in seen:
                seen.add(other)
                stack.append(other)
    return {number: tasks[number] for number in seen}
