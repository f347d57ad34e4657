"""The ledger of one repository: what the tasks are, and the one way to change them.

Writing: queue for the lock, read the tip once, decide on that graph, build the commits in memory,
keep their bytes in the journal, write them, and move the branch from the tip that was read. If it
has moved meanwhile, decide again.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Busy, Corrupt, GittasksError, NoLedger, Refused, UnknownTask
from gittasks.domain.task_graph import Overlay
from gittasks.ledger import layout
from gittasks.ledger.snapshot import Snapshot
from gittasks.plumbing import objects, refs
from gittasks.plumbing.errors import GitError, LockTimeout, ObjectMissing, RefLocked, RefMoved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gittasks.domain.config import Project
    from gittasks.domain.events import Event
    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph
    from gittasks.ledger.build import Builder
    from gittasks.ledger.history import Recorded
    from gittasks.ledger.snapshot import Problem, ReadyRow
    from gittasks.plumbing.repository import Repository

__all__ = ["Appended", "Ledger", "LedgerGraph"]

LOCK_TIMEOUT = 30.0
_ROUNDS = 10
_GC_EVERY = 256


class Appended(NamedTuple):
    """What an append wrote: events as they stand in the ledger, one commit each, and the tips."""

    events: tuple[Event, ...]
    commits: tuple[str, ...]
    tip: str
    before: str | None


class LedgerGraph:
    """The tasks at one commit; bodies are read when asked for.

    A document that does not verify counts as absent, so that it never stops the others; `need`
    says what is wrong with it.
    """

    def __init__(self, snapshot: Snapshot, reader: objects.Reader) -> None:
        """Looks at the commit that the snapshot is true for now."""
        self._snapshot = snapshot
        self._reader = reader
        self._tasks: dict[str, Task | None] = {}
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
        return self._reader.blob(blob)

    def revision(self, task: str) -> str | None:
        """Returns the blob id of the task's document."""
        return self._snapshot.blob(task)

    def with_uid(self, uid: str) -> str | None:
        """Returns the id of the task with this uid."""
        return self._snapshot.with_uid(uid)

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
        return self._snapshot.last_id()


class _Built(NamedTuple):
    """Commits that are not yet written."""

    events: tuple[Event, ...]
    commits: tuple[str, ...]
    drafts: tuple[objects.Draft, ...]
    tree: str
    files: dict[str, str | None]
    """The blob of each path that changed, None where it is gone."""
    tasks: dict[str, Task]
    """The task of each new blob."""


class Ledger:
    """The ledger branch of a repository; it need not exist yet."""

    def __init__(
        self,
        repo: Repository,
        *,
        state_dir: str,
        host: str | Callable[[], str],
        clock: Callable[[], int],
        identity: Callable[[], tuple[str, str]],
        branch: str = layout.DEFAULT_BRANCH,
        sign: bool | None = None,
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> None:
        """Opens nothing yet; `sign` None asks the setting `gittasks.sign`."""
        self.repo = repo
        self.branch = branch
        self.state_dir = state_dir
        self.clock = clock
        self.identity = identity
        self.reader = objects.Reader(repo)
        self._host = host
        self._sign = sign
        self._lock_timeout = lock_timeout
        self._snapshot = Snapshot(state_dir, self.reader)
        self._tip: str | None = None
        self._is_resolved = False
        self._project: tuple[str, Project] | None = None
        self.repaired: list[str] = []
        """What a write or a recovery has repaired on the way, in sentences."""

    # ----------------------------------------------------------------------------------- reading

    @property
    def exists(self) -> bool:
        """Tells whether the branch is there."""
        return self._resolved() is not None

    @property
    def tip(self) -> str:
        """Returns the commit that all answers are true for; raises NoLedger, or Corrupt."""
        tip = self._resolved()
        if tip is None:
            raise self._absent()
        return tip

    def refresh(self) -> None:
        """Looks at the branch again."""
        self._tip = refs.read(self.repo, self.branch)
        self._is_resolved = True

    def close(self) -> None:
        """Lets go of the process and the file behind the answers."""
        self.reader.close()
        self._snapshot.close()

    @property
    def snapshot(self) -> Snapshot:
        """Returns the lists and rows at the tip."""
        return self._snapshot_at(self.tip)

    def graph(self) -> LedgerGraph:
        """Returns the tasks at the tip."""
        return LedgerGraph(self.snapshot, self.reader)

    def ready(
        self,
        roles: Sequence[str] | None = None,
        limit: int | None = None,
        assignee: str | None = None,
    ) -> list[ReadyRow]:
        """Returns the queue of agents at the tip."""
        return self.snapshot.ready(roles, limit, assignee)

    def problems(self) -> tuple[Problem, ...]:
        """Returns the files at the tip that could not be used."""
        return self.snapshot.problems()

    def project(self) -> Project:
        """Returns the settings that all clones share."""
        from gittasks.domain.config import parse_project

        if self._project is None or self._project[0] != self.tip:
            data = self.text(layout.PROJECT_FILE)
            if data is None:
                raise Corrupt(
                    f"The ledger has no {layout.PROJECT_FILE}.",
                    "Run `git tasks recover` to go back to the last good state.",
                )
            self._project = (self.tip, parse_project(data))
        return self._project[1]

    def text(self, path: str) -> bytes | None:
        """Returns a shared file at the tip: the settings, the template, a prompt."""
        return self.snapshot.text(path)

    def log(
        self, task: str | None = None, *, since: str | None = None, limit: int | None = None
    ) -> Iterator[Recorded]:
        """Yields the events of the ledger or of one task, newest first."""
        from gittasks.ledger import history

        if task is None:
            return history.since(self.repo, self.tip, since, limit=limit)
        return history.of_task(self.repo, self.tip, task, limit=limit)

    def history(self, task: str, limit: int | None = None) -> Iterator[Event]:
        """Yields the events of one task, newest first; bodies are not loaded."""
        return (recorded.event for recorded in self.log(task, limit=limit))

    def _resolved(self) -> str | None:
        if not self._is_resolved:
            if self.branch in self.repo.resolved:
                self._tip = self.repo.resolved[self.branch]
                self._is_resolved = True
            else:
                self.refresh()
        return self._tip

    def _absent(self) -> GittasksError:
        from gittasks.ledger import recover

        if recover.is_known(self):
            return Corrupt(
                f"The branch {_short(self.branch)} of the ledger is missing.",
                "Run `git tasks recover` to bring it back.",
            )
        return NoLedger("There is no ledger in this repository yet.", "Run `git tasks init`.")

    def _snapshot_at(self, tip: str) -> Snapshot:
        try:
            self._snapshot.refresh(tip)
        except ObjectMissing as error:
            from gittasks.ledger import recover

            if not recover.restore_from_journal(self):
                raise _damaged(error) from None
            self._snapshot.refresh(tip)
        return self._snapshot

    # ----------------------------------------------------------------------------------- writing

    def create(self, settings: Project, actor: str) -> str:
        """Begins the ledger with these settings and returns its first event's commit."""
        from gittasks.domain.config import project_dict
        from gittasks.domain.events import Event, Initialized

        pairs = tuple((name, _frozen(value)) for name, value in project_dict(settings).items())
        at = self.clock()
        event = Event("", at, actor, "operator", self.host, Initialized(pairs))
        with self.locked():
            if refs.read(self.repo, self.branch) is not None:
                raise Refused(f"There is a branch {_short(self.branch)} already.")
            empty = objects.draft(self.repo, "tree", b"")
            root = objects.draft(self.repo, "commit", layout.root_commit(empty.oid))
            above = objects.parse_commit(root.oid, root.data)
            built = self._build(above, None, [event], [empty, root])
            self._publish(built, None, (), built.drafts)
        self._tip, self._is_resolved = built.commits[-1], True
        return built.commits[-1]

    def append(
        self,
        decide: Callable[[Graph], Sequence[Event]],
        *,
        also: Sequence[refs.Change] | Callable[[], Sequence[refs.Change]] = (),
    ) -> Appended:
        """Writes what `decide` says on the newest graph, and moves the other refs with it.

        Whoever loses a race decides again; changes of other refs that were given as values and
        no longer fit raise RefMoved. No events: nothing is written and no ref moves.
        """
        from gittasks.ledger import recover

        with self.locked():
            self._require_not_checked_out()
            for tried in range(_ROUNDS):
                try:
                    return self._appended(decide, also)
                except RefMoved as error:
                    if error.name not in (self.branch, layout.BACKUP) and not callable(also):
                        raise
                    _pause(tried)
                except ObjectMissing as error:
                    if not recover.restore_from_journal(self):
                        raise _damaged(error) from None
        raise Busy("Others change the ledger all the time.", "Try again.")

    def _appended(
        self,
        decide: Callable[[Graph], Sequence[Event]],
        also: Sequence[refs.Change] | Callable[[], Sequence[refs.Change]],
    ) -> Appended:
        from gittasks.ledger import recover

        above = recover.writable_tip(self)
        self._tip, self._is_resolved = above and above.oid, True
        if above is None:
            raise self._absent()
        before = above.oid
        self._snapshot.refresh(before)
        graph = LedgerGraph(self._snapshot, self.reader)
        events = self._decided(decide, graph)
        if not events:
            return Appended((), (), before, before)
        built = self._build(above, graph, events, [])
        self._publish(built, before, also() if callable(also) else also, built.drafts)
        self._after(built, before)
        return Appended(built.events, built.commits, built.commits[-1], before)

    @property
    def host(self) -> str:
        """Returns the random id of this clone."""
        return self._host if isinstance(self._host, str) else self._host()

    def locked(self) -> _Locked:
        """Returns the write lock of this repository, to be held in a `with`."""
        return _Locked(os.path.join(self.state_dir, "write.flk"), self._lock_timeout)

    @staticmethod
    def _decided(decide: Callable[[Graph], Sequence[Event]], graph: LedgerGraph) -> Sequence[Event]:
        try:
            return decide(graph)
        except UnknownTask as error:
            bad = graph.problem(error.task) if error.task else None
            raise bad or error from None

    def _build(
        self,
        above: objects.Commit,
        graph: LedgerGraph | None,
        events: Sequence[Event],
        drafts: list[objects.Draft],
    ) -> _Built:
        graph_below = None if graph is None else Overlay(graph)
        settings = None if graph is None else self._snapshot.text(layout.PROJECT_FILE)
        builder = self.builder(above, graph_below, settings)
        for one in drafts:
            builder.add(one)
        for event in events:
            builder.append(event)
        return _Built(
            tuple(builder.events),
            tuple(builder.commits),
            tuple(builder.drafts.values()),
            builder.tree,
            builder.files,
            builder.tasks,
        )

    def builder(
        self, above: objects.Commit, graph: Overlay | None, settings: bytes | None
    ) -> Builder:
        """Returns what makes commits on top of one, given the tasks and settings there."""
        from gittasks.ledger.build import Builder

        sign = self._sign
        if sign is None:
            sign = self.repo.config.get_bool("gittasks.sign", False)
        return Builder(
            self.repo,
            self.reader,
            above,
            graph,
            settings,
            host=self.host,
            now=self.clock(),
            committer=self.identity(),
            sign=sign,
        )

    def _publish(
        self,
        built: _Built,
        before: str | None,
        also: Sequence[refs.Change],
        drafts: Sequence[objects.Draft],
    ) -> None:
        """Writes the objects and moves the refs; afterwards every object is there."""
        from gittasks.ledger import journal, recover

        tip = built.commits[-1]
        try:
            entry = journal.keep(self.state_dir, before, tip, drafts)
        except OSError as error:
            raise GittasksError(
                f"The ledger cannot be written: {error.strerror} ({self.state_dir})."
            ) from None
        backup = refs.Change(layout.BACKUP, tip, self._backup())
        changes = (refs.Change(self.branch, tip, before), backup, *also)
        try:
            objects.write(self.repo, drafts)
            recover.patient_transaction(self, changes, _note(built), drafts)
        except GitError as error:
            # What git says last is not always what it did.
            if not self._is_written(built, before):
                journal.drop(entry)
                raise _told(error) from None
        self._settle(drafts)

    def _backup(self) -> str | None:
        found = self.reader.get(layout.BACKUP)
        return None if found is None else found.oid

    def _settle(self, drafts: Sequence[objects.Draft]) -> None:
        """Makes sure that a gc beside us has taken nothing, and clears the journal."""
        from gittasks.ledger import journal, recover

        recover.restore(self, drafts)
        old, recent = journal.sorted_out(self.state_dir)
        for path in (*old, *recent):
            entry = journal.read(path)
            if entry is not None:
                recover.restore(self, entry.drafts)
        for path in old:
            journal.drop(path)

    def _is_written(self, built: _Built, before: str | None) -> bool:
        """Tells whether our commits are in the ledger although the move was refused."""
        from gittasks.ledger import message

        now = refs.read(self.repo, self.branch)
        if now is None or now == before:
            return False
        wanted = {event.event_id for event in built.events}
        current: str | None = now
        while current is not None and current != before:
            if current == built.commits[-1]:
                return True
            commit = self.reader.commit(current)
            if wanted.intersection(message.event_ids(commit.message)):
                return True
            current = commit.parents[0] if commit.parents else None
        return False

    def _after(self, built: _Built, before: str) -> None:
        tip = built.commits[-1]
        self._tip = tip
        self._snapshot.advance(before, tip, built.tree, built.files, built.tasks)
        if any(int(event.event_id[:8], 16) % _GC_EVERY == 0 for event in built.events):
            from gittasks.ledger import upkeep

            upkeep.collect_in_background(self.repo)

    def _require_not_checked_out(self) -> None:
        from gittasks.ledger import recover

        where = recover.checked_out_at(self.repo, self.branch)
        if where is not None:
            raise Refused(
                f"The ledger is checked out at {where}, so nothing can be written to it.",
                f"Switch that checkout to another branch than {_short(self.branch)}.",
            )


class _Locked:
    """The write lock; tells in the product's words who holds it."""

    def __init__(self, path: str, timeout: float) -> None:
        from gittasks.plumbing.locks import FileLock

        self._lock = FileLock(path, timeout, "write lock of the ledger")

    def __enter__(self) -> None:
        try:
            self._lock.acquire()
        except LockTimeout as error:
            raise Busy(str(error), "Try again when the holder has finished.") from None
        except OSError as error:
            raise GittasksError(
                f"The ledger cannot be written: {error.strerror} ({error.filename})."
            ) from None

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _damaged(error: GitError) -> Corrupt:
    return Corrupt(f"The ledger is damaged: {error}", "Run `git tasks recover` to repair it.")


def _told(error: GitError) -> Exception:
    """Returns what a failed move of the branch means for whoever wanted it."""
    if isinstance(error, RefMoved | ObjectMissing):
        return error
    if isinstance(error, RefLocked):
        return Busy(
            f"Another git process holds {error.path}.",
            "Try again; `git tasks recover` removes it if its process is dead.",
        )
    return GittasksError(f"The ledger was not changed: {error}")


def _note(built: _Built) -> str:
    from gittasks.ledger.message import subject

    more = len(built.events) - 1
    return f"gittasks: {subject(built.events[0])}" + (f" and {more} more" if more else "")


def _pause(tried: int) -> None:
    """Waits a random while, longer each time."""
    longest = min(0.01 * 2**tried, 1.0)
    time.sleep(longest * os.urandom(1)[0] / 255)


def _short(branch: str) -> str:
    return branch.removeprefix("refs/heads/")


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
