"""Who waits on whom, as the tables of the read cache have it, and how many wait on each task.

The rules are those of `domain.dependencies`; here they are asked of rows, and counted for many
tasks at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from sqlite3 import Connection

    # What tasks were and what they are; None where there was or is none.
    Moved = Sequence[tuple["Node | None", "Node | None"]]

__all__ = ["Node", "Web", "reach", "sources_of", "waiting_on"]


class Node(NamedTuple):
    """What the rules about dependencies look at."""

    id: str
    is_open: bool
    is_landed: bool
    outcome: str | None
    supersedes: str | None
    depends_on: tuple[str, ...]


class Web:
    """The dependencies as the tables have them; read when asked for, or all at once."""

    def __init__(self, db: Connection, *, whole: bool = False) -> None:
        self._db = db
        self._nodes: dict[str, Node | None] = {}
        self._dependents: dict[str, list[str]] = {}
        self._heirs: dict[str, list[str]] = {}
        self._whole = whole
        if whole:
            self._load()

    def _load(self) -> None:
        needs: dict[str, list[str]] = {}
        for task, dependency in self._db.execute("SELECT task, dep FROM deps ORDER BY task"):
            needs.setdefault(task, []).append(dependency)
            self._dependents.setdefault(dependency, []).append(task)
        rows = self._db.execute("SELECT id, open, outcome, supersedes FROM tasks ORDER BY n")
        for task, is_open, outcome, supersedes in rows:
            needed = tuple(needs.get(task, ()))
            self._nodes[task] = Node(
                task, bool(is_open), outcome == "landed", outcome, supersedes, needed
            )
            if supersedes is not None:
                self._heirs.setdefault(supersedes, []).append(task)

    def get(self, task: str) -> Node | None:
        """Returns the node of a task."""
        if task in self._nodes or self._whole:
            return self._nodes.get(task)
        found = self._db.execute(
            "SELECT open, outcome, supersedes FROM tasks WHERE n = ?", (int(task),)
        ).fetchone()
        node = None
        if found is not None:
            needs = self._db.execute("SELECT dep FROM deps WHERE task = ?", (task,)).fetchall()
            node = Node(
                task,
                bool(found[0]),
                found[1] == "landed",
                found[1],
                found[2],
                tuple(row[0] for row in needs),
            )
        self._nodes[task] = node
        return node

    def dependents(self, task: str) -> Sequence[str]:
        """Returns who names the task in `depends_on`."""
        if task in self._dependents or self._whole:
            return self._dependents.get(task, ())
        rows = self._db.execute("SELECT task FROM deps WHERE dep = ?", (task,)).fetchall()
        return self._dependents.setdefault(task, [row[0] for row in rows])

    def superseders(self, task: str) -> Sequence[str]:
        """Returns who names the task in `supersedes`."""
        if task in self._heirs or self._whole:
            return self._heirs.get(task, ())
        rows = self._db.execute("SELECT id FROM tasks WHERE supersedes = ?", (task,)).fetchall()
        return self._heirs.setdefault(task, [row[0] for row in rows])

    def waited_on(self) -> Iterable[str]:
        """Returns every task that somebody may wait on, once all is loaded."""
        return {*self._dependents, *(heir for heirs in self._heirs.values() for heir in heirs)}

    def waiting(self) -> Iterable[str]:
        """Returns every open task that has dependencies, once all is loaded."""
        return [n.id for n in self._nodes.values() if n is not None and n.is_open and n.depends_on]

    def with_heirs(self, tasks: Iterable[str]) -> set[str]:
        """Returns the tasks and all that supersede them, directly or through others."""
        found: set[str] = set()
        queue = list(tasks)
        while queue:
            task = queue.pop()
            if task not in found:
                found.add(task)
                queue.extend(self.superseders(task))
        return found

    def above(self, tasks: Iterable[str]) -> set[str]:
        """Returns the tasks and all that these open tasks wait on, directly or through others."""
        found: set[str] = set()
        queue = list(tasks)
        while queue:
            task = queue.pop()
            if task in found:
                continue
            found.add(task)
            node = self.get(task)
            if node is not None and node.is_open and node.depends_on:
                queue.extend(self._needed(node.depends_on))
        return found

    def _needed(self, dependencies: Iterable[str]) -> Iterator[str]:
        """Yields the dependencies, and who takes the place of those that were aborted."""
        queue = list(dependencies)
        seen: set[str] = set()
        while queue:
            task = queue.pop()
            if task in seen:
                continue
            seen.add(task)
            yield task
            node = self.get(task)
            if node is not None and node.outcome == "aborted":
                queue.extend(self.superseders(task))

    def ends(self, moved: Moved) -> dict[str, set[str]] | None:
        """Returns for each task on which nobody waits whom it waits on itself, before it moves.

        None where somebody waits on one of them: then others have to be counted anew.
        """
        return self._ends((old or new, old) for old, new in moved)

    def steps(self, moved: Moved, before: Mapping[str, set[str]]) -> dict[str, int] | None:
        """Returns by how much the counts of others change, given `ends` from before the move.

        A task on which nobody waits counts once for each that it waits on, and no more.
        """
        after = self._ends((new or old, new) for old, new in moved)
        if after is None:
            return None
        steps: dict[str, int] = {}
        for task, above in after.items():
            for other in above ^ before[task]:
                steps[other] = steps.get(other, 0) + (1 if other in above else -1)
        return steps

    def _ends(self, tasks: Iterable[tuple[Node | None, Node | None]]) -> dict[str, set[str]] | None:
        found: dict[str, set[str]] = {}
        for node, now in tasks:
            assert node is not None
            if node.supersedes or self.dependents(node.id) or self.superseders(node.id):
                return None
            found[node.id] = self.above((node.id,)) - {node.id} if now is not None else set()
        return found


def waiting_on(web: Web, moved: Moved) -> set[str]:
    """Returns the tasks whose dependencies may be satisfied or lost by what moved."""
    concerned: set[str] = set()
    queue: list[str] = []
    for old, new in moved:
        node = new or old
        assert node is not None
        if old is not None and new is not None and _inherits(old) == _inherits(new):
            continue
        queue += [node.id, *(n.supersedes for n in (old, new) if n is not None and n.supersedes)]
    while queue:
        task = queue.pop()
        if task in concerned:
            continue
        concerned.add(task)
        node = web.get(task)
        if node is not None and node.supersedes:
            queue.append(node.supersedes)
    return {dependent for task in concerned for dependent in web.dependents(task)}


def sources_of(web: Web, moved: Moved) -> set[str]:
    """Returns the tasks on which others begin or cease to wait directly."""
    found: set[str] = set()
    for old, new in moved:
        node = new or old
        assert node is not None
        if old is None or new is None or _inherits(old) != _inherits(new):
            found |= web.with_heirs((node.id,))
        needs = {*(old.depends_on if old else ()), *(new.depends_on if new else ())}
        found |= web.with_heirs(needs)
    return found


def _inherits(node: Node) -> tuple[str | None, str | None]:
    """Returns what decides for whom this task stands, and who may stand for it."""
    return node.supersedes, node.outcome


def reach(sources: Iterable[str], waiters: Callable[[str], Sequence[str]]) -> dict[str, int]:
    """Returns for each source, and all behind it, how many wait on it, directly or not.

    Sets are the bits of one number for each group of tasks that hang together; they are made from
    the ends, and dropped once everything in front has taken them over.
    """
    behind = _gathered(sources, waiters)
    before: dict[str, list[str]] = {}
    for task, waiting in behind.items():
        for one in waiting:
            before.setdefault(one, []).append(task)
    bit = _numbered(behind, before)
    left = {task: len(waiting) for task, waiting in behind.items()}
    wanted = {task: len(tasks) for task, tasks in before.items()}
    counts: dict[str, int] = {}
    sets: dict[str, int] = {}
    queue = [task for task, count in left.items() if count == 0]
    while queue:
        task = queue.pop()
        reached = 0
        for one in behind[task]:
            reached |= sets[one] | 1 << bit[one]
            wanted[one] -= 1
            if not wanted[one]:
                del sets[one]
        counts[task] = reached.bit_count()
        if task in wanted:
            sets[task] = reached
        for one in before.get(task, ()):
            left[one] -= 1
            if not left[one]:
                queue.append(one)
    # In or in front of a ring, which only documents made by hand can have.
    for task in behind:
        if task not in counts:
            counts[task] = _walked(task, behind)
    return counts


def _gathered(
    sources: Iterable[str], waiters: Callable[[str], Sequence[str]]
) -> dict[str, Sequence[str]]:
    behind: dict[str, Sequence[str]] = {}
    queue = list(sources)
    while queue:
        task = queue.pop()
        if task not in behind:
            behind[task] = waiters(task)
            queue.extend(behind[task])
    return behind


def _numbered(
    behind: Mapping[str, Sequence[str]], before: Mapping[str, Sequence[str]]
) -> dict[str, int]:
    """Returns a number for each task, counted from 0 in each group that hangs together."""
    numbers: dict[str, int] = {}
    for start in behind:
        if start in numbers:
            continue
        numbers[start] = 0
        count = 1
        queue = [start]
        while queue:
            task = queue.pop()
            for one in (*behind[task], *before.get(task, ())):
                if one not in numbers:
                    numbers[one] = count
                    count += 1
                    queue.append(one)
    return numbers


def _walked(task: str, behind: Mapping[str, Sequence[str]]) -> int:
    seen: set[str] = set()
    queue = list(behind[task])
    while queue:
        one = queue.pop()
        if one not in seen:
            seen.add(one)
            queue.extend(behind[one])
    return len(seen - {task})
