"""The projections for programs: `gittasks.open(path)`, what can be asked of it, and its signals.

Nothing here writes. Every answer is a value that never changes; ids are given in any spelling that
commands take, and come back as six digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain.ids import parse_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from gittasks.domain.projections.difference import Difference
    from gittasks.domain.projections.table import World
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project

__all__ = ["Given", "Opened", "View"]


class Given(NamedTuple):
    """A signal as programs get it: (oid, ordinal) is its key in all clones, `at` in seconds."""

    oid: str
    ordinal: int
    at: int
    event: str
    signal: str
    projection: str
    task: str | None
    data: dict[str, Any]


class View:
    """All that the ledger says at one commit."""

    def __init__(self, world: World) -> None:
        """Takes the world, which `world` gives back to those who want more than is here."""
        self.world = world

    @property
    def oid(self) -> str | None:
        """Returns the commit, None before the first event."""
        return self.world.oid

    def tasks(self) -> tuple[Task, ...]:
        """Returns every task, lowest id first."""
        return tuple(self.world.graph.tasks.values())

    def task(self, task: str) -> Task | None:
        """Returns a task, None where there is none."""
        return self.world.graph.get(parse_id(task))

    def roots(self) -> tuple[str, ...]:
        """Returns the ids of the tasks without a parent, in their order."""
        return self.world.graph.roots()

    def children(self, task: str) -> tuple[str, ...]:
        """Returns the ids of the direct children, in their order."""
        return self.world.graph.in_order(self.world.graph.children(parse_id(task)))

    def subtree(self, task: str) -> tuple[str, ...]:
        """Returns a task and all below it, each before its children; of an unknown id, nothing."""
        return self.world.graph.subtree(parse_id(task))

    def ancestors(self, task: str) -> tuple[str, ...]:
        """Returns the ids above a task, the nearest first."""
        return self.world.graph.ancestors(parse_id(task))

    def dependents(self, task: str) -> tuple[str, ...]:
        """Returns the ids of the tasks that name a task in `depends_on`."""
        return tuple(self.world.graph.dependents(parse_id(task)))

    def blocking(self, task: str) -> int:
        """Returns how many open tasks wait on a task, transitively, each counted once."""
        return self.world.graph.blocking(parse_id(task))

    def can_close(self, task: str) -> tuple[str, ...]:
        """Returns the reasons why a task cannot close now; none means that it can."""
        return self.world.graph.can_close(parse_id(task))

    def working_children(self, task: str, *, recursive: bool = False) -> tuple[str, ...]:
        """Returns the claimed tasks directly below a task, or anywhere below it."""
        working = self.world.working
        return working.working_children(self.world.graph, parse_id(task), recursive=recursive)

    def working_state(self) -> dict[str, Any]:
        """Returns `_tag` (Working or Idle), `workerCount`, `waiting_on` and the counts by parent."""
        from gittasks.domain.projections.working_state import waiting_on

        world = self.world
        count = world.working.worker_count
        states = [task.state for task in world.graph.tasks.values() if task.is_open]
        return {
            "_tag": "Working" if count else "Idle",
            "workerCount": count,
            "waiting_on": waiting_on(
                running=count,
                ready=len(world.queue.ranks),
                checking=states.count("CHECK"),
                waiting=len(world.inbox.entries),
                blocked=states.count("BLOCKED"),
            ),
            "children": world.working.by_parent(world.graph),
        }


class Opened:
    """One repository with a ledger, to be asked about any of its commits; close it when done."""

    def __init__(self, project: Project) -> None:
        """Takes the project; `gittasks.open` finds it."""
        self._project = project

    def __enter__(self) -> Opened:
        """Returns itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Lets go of the repository."""
        self.close()

    def close(self) -> None:
        """Lets go of the repository."""
        self._project.close()

    @property
    def tip(self) -> str:
        """Returns the newest commit of the ledger, looked up each time."""
        self._project.ledger.refresh()
        return self._project.ledger.tip

    def graph(self, at: str = "HEAD") -> View:
        """Returns what the ledger says at a commit, a ref or a date; raises UnknownTask."""
        return View(self._world(self._commit(at)))

    def diff(self, before: str, after: str = "HEAD") -> Difference:
        """Returns what differs between two commits of the ledger."""
        from gittasks.domain.projections.difference import difference

        return difference(self._world(self._commit(before)), self._world(self._commit(after)))

    def signals(self, after: str | None = None, until: str = "HEAD") -> Iterator[Given]:
        """Yields the signals of the commits behind one and up to another, oldest first."""
        from gittasks.ledger import worlds

        begin = None if after is None else self._commit(after)
        for _, fact, signals in worlds.told(self._project.ledger, begin, self._commit(until)):
            for ordinal, one in enumerate(signals, 1):
                assert fact.event is not None
                kind = fact.event.kind
                yield Given(
                    fact.oid, ordinal, fact.event.at, kind, one.name, one.projection, one.task,
                    dict(one.data),
                )  # fmt: skip

    def _commit(self, spelling: str) -> str:
        from gittasks.workflow.past import commit_at

        return commit_at(self._project.repo, self.tip, spelling)

    def _world(self, oid: str) -> World:
        from gittasks.ledger import worlds

        return worlds.at(self._project.ledger, oid)
