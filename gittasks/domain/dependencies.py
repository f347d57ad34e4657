"""Which task waits on which: satisfaction, rings, what blocks what."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gittasks.domain.task_graph import Graph

DEPENDENCY_LIMIT = 1000
"""The most dependencies that one document may name."""


def is_satisfied(graph: Graph, dependency: str) -> bool:
    """Tells whether a dependency has landed, itself or through tasks that supersede it."""
    seen: set[str] = set()
    queue = [dependency]
    while queue:
        current = queue.pop()
        if current in seen:
            continue
        seen.add(current)
        task = graph.get(current)
        if task is None:
            continue
        if task.is_landed:
            return True
        if not task.is_open:
            queue.extend(graph.superseders(current))
    return False


def open_dependencies(graph: Graph, depends_on: Iterable[str]) -> tuple[str, ...]:
    """Returns the dependencies that are not satisfied, in the order given."""
    return tuple(dependency for dependency in depends_on if not is_satisfied(graph, dependency))


def aborted_dependencies(graph: Graph, depends_on: Iterable[str]) -> tuple[str, ...]:
    """Returns the dependencies that were aborted and that no landed task supersedes yet."""
    return tuple(
        dependency
        for dependency in depends_on
        if (task := graph.get(dependency)) is not None
        and task.outcome == "aborted"
        and not is_satisfied(graph, dependency)
    )


def ring(graph: Graph, task: str, depends_on: Iterable[str]) -> tuple[str, ...] | None:
    """Returns the ring that these dependencies of `task` would close, first id repeated last.

    Edges go through supersession: whoever needs an aborted task needs the task that replaces it.
    """
    for start in depends_on:
        if start == task:
            return (task, task)
        path = _path(graph, start, task)
        if path is not None:
            return (task, *path)
    return None


def _path(graph: Graph, start: str, goal: str) -> tuple[str, ...] | None:
    """Returns a shortest chain of needs from one task to another, both included."""
    came_from: dict[str, str | None] = {start: None}
    frontier = [start]
    while frontier:
        following: list[str] = []
        for current in frontier:
            for needed in _needs(graph, current):
                if needed in came_from:
                    continue
                came_from[needed] = current
                if needed == goal:
                    return _unwound(came_from, goal)
                following.append(needed)
        frontier = following
    return None


def _unwound(came_from: Mapping[str, str | None], goal: str) -> tuple[str, ...]:
    chain = [goal]
    while (before := came_from[chain[-1]]) is not None:
        chain.append(before)
    return tuple(reversed(chain))


def _needs(graph: Graph, current: str) -> Sequence[str]:
    task = graph.get(current)
    if task is None or is_satisfied(graph, current):
        return ()
    return task.depends_on if task.is_open else graph.superseders(current)


def waiters(graph: Graph, task: str) -> tuple[str, ...]:
    """Returns the open tasks that wait directly on a task, also through what it supersedes."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    current: str | None = task
    while current is not None and current not in seen:
        seen.add(current)
        for dependent in graph.dependents(current):
            waiting = graph.get(dependent)
            if waiting is not None and waiting.is_open:
                found[dependent] = None
        owner = graph.get(current)
        replaced = graph.get(owner.supersedes) if owner and owner.supersedes else None
        current = replaced.id if replaced is not None and replaced.outcome == "aborted" else None
    return tuple(found)


def blocking(graph: Graph, task: str) -> int:
    """Returns how many open tasks wait on a task, transitively, each counted once."""
    seen: set[str] = set()
    queue = list(waiters(graph, task))
    while queue:
        current = queue.pop()
        if current in seen:
            continue
        seen.add(current)
        queue.extend(waiters(graph, current))
    seen.discard(task)
    return len(seen)
