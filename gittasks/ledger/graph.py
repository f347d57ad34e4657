"""The task graph as decisions see it: rows of the read cache, bodies from git when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import Corrupt, UnknownTask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.task import Task
    from gittasks.ledger.quarantine import Stray
    from gittasks.ledger.snapshot import Snapshot
    from gittasks.plumbing.objects import Reader

__all__ = ["LedgerGraph"]


class LedgerGraph:
    """The tasks at one commit; bodies are read when asked for.

    A document that does not verify counts as absent, so that it never stops the others; `need`
    says what is wrong with it.
    """

    def __init__(self, snapshot: Snapshot, reader: Callable[[], Reader]) -> None:
        """Looks at the commit that the snapshot is true for now."""
        self._snapshot = snapshot
        self._reader = reader
        self._tasks: dict[str, Task | None] = {}
        self._uids: dict[str, str | None] = {}
        self._last: int | None = None
        self._used: frozenset[int] | None = None
        self._every: Sequence[Stray] | None = None
        self._strays: dict[str, list[Stray]] | None = None
        self._strays_by_path: dict[str, Stray] | None = None
        self.tip = snapshot.tip

    def get(self, task: str) -> Task | None:
        """Returns the task with this six-digit id."""
        if task not in self._tasks:
            self._tasks[task] = self._snapshot.task(task)
        return self._tasks[task]

    def need(self, task: str) -> Task:
        """Returns a task; raises UnknownTask, or Corrupt naming what its document has wrong."""
        found = self.get(task)
        if found is None:
            raise self.problem(task) or UnknownTask(
                f"There is no task {task}.", "Run `git tasks list --all` to see them.", task
            )
        return found

    def problem(self, task: str) -> Corrupt | None:
        """Returns the error of a task whose document does not verify."""
        found = self._snapshot.problem(task)
        hint = "Correct it on the branch of the ledger, or run `git tasks recover`."
        return None if found is None else Corrupt(found.message, hint, task)

    def body(self, task: str) -> bytes:
        """Returns the body of a task that exists."""
        from gittasks.domain.frontmatter import split

        return split(self.document(task))[1]

    def document(self, task: str) -> bytes:
        """Returns the document of a task that exists, as it stands in the ledger."""
        blob = self._snapshot.blob(task)
        if blob is None:
            raise KeyError(task)
        return self._reader().blob(blob)

    def revision(self, task: str) -> str | None:
        """Returns the blob id of the task's document."""
        return self._snapshot.blob(task)

    def file(self, path: str) -> str | None:
        """Returns the blob that counts at a path of the tree."""
        from gittasks.ledger.layout import parse_path, path_of

        place = parse_path(path)
        if place is not None:
            task = self.get(place[0])
            return self.revision(task.id) if task is not None and path_of(task) == path else None
        if self._strays_by_path is None:
            self._strays_by_path = {stray.path: stray for stray in self.every_stray()}
        if path in self._strays_by_path:
            return self._strays_by_path[path].good
        found = self._reader().get(f"{self.tip}:{path}")
        return found.oid if found is not None and found.kind == "blob" else None

    def every_stray(self) -> Sequence[Stray]:
        """Returns all paths at which the tree does not count."""
        if self._every is None:
            self._every = self._snapshot.strays()
        return self._every

    def strays(self, task: str) -> Sequence[Stray]:
        """Returns the paths of a task at which the tree does not count."""
        if self._strays is None:
            self._strays = {}
            for stray in self.every_stray():
                if stray.task is not None:
                    self._strays.setdefault(stray.task, []).append(stray)
        return self._strays.get(task, ())

    def loose_strays(self) -> Sequence[Stray]:
        """Returns the paths of no task at which the tree does not count."""
        every = self.every_stray()
        return [stray for stray in every if stray.task is None or self.get(stray.task) is None]

    def quarantined(self, task: str) -> str | None:
        """Returns why a task keeps its last good state, None where it has the one of the tree."""
        strays = self.strays(task)
        return strays[0].reason if strays else None

    def with_uid(self, uid: str) -> str | None:
        """Returns the id of the task with this uid."""
        if uid not in self._uids:
            self._uids[uid] = self._snapshot.with_uid(uid)
        return self._uids[uid]

    def dependents(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks, open or closed, that name the task in `depends_on`."""
        return self._snapshot.dependents(task)

    def children(self, task: str | None) -> Sequence[str]:
        """Returns the ids of the direct children; of None, the tasks without a parent."""
        return self._snapshot.children(task)

    def superseders(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks that name the task in `supersedes`."""
        return self._snapshot.superseders(task)

    def last_id(self) -> int:
        """Returns the highest number in use, 0 when there is no task."""
        if self._last is None:
            self._last = self._snapshot.last_id()
        return self._last

    def free_id(self, first: int) -> int:
        """Returns the lowest number from `first` on that means nothing and never has."""
        if self._used is None:
            self._used = self._snapshot.used_ids()
        while first in self._used:
            first += 1
        return first
