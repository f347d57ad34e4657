"""The ledger of one repository as whoever asks it sees it: one commit, and all that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import Corrupt, GittasksError, NoLedger, UsageFault
from gittasks.ledger import layout
from gittasks.ledger.graph import LedgerGraph
from gittasks.ledger.snapshot import Snapshot
from gittasks.plumbing import refs
from gittasks.plumbing.errors import ObjectMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gittasks.domain.config import Project
    from gittasks.domain.events import Event
    from gittasks.domain.task import Task
    from gittasks.ledger.history import Recorded
    from gittasks.ledger.locking import WriteLock
    from gittasks.ledger.snapshot import Problem, ReadyRow
    from gittasks.plumbing.objects import Reader
    from gittasks.plumbing.repository import Repository

__all__ = ["View"]

LOCK_TIMEOUT = 30.0


class View:
    """The ledger branch of a repository at one commit, or its absence; nothing here adds an event."""

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
        self._reader: Reader | None = None
        self._host = host
        self._sign = sign
        self._lock_timeout = lock_timeout
        self._snapshot = Snapshot(state_dir, lambda: self.reader)
        self._tip: str | None = None
        self._is_resolved = False
        self._project: tuple[str, Project] | None = None
        self._is_past = False
        self.has_written = False
        """Whether events were written through this view that no remote was given."""
        self.repaired: list[str] = []
        """What a write or a recovery has repaired on the way, in sentences."""

    # ----------------------------------------------------------------------------------- reading

    @property
    def exists(self) -> bool:
        """Tells whether there is a ledger; raises Corrupt where there has been one."""
        if self._resolved() is not None:
            return True
        absent = self._absent()
        if isinstance(absent, Corrupt):
            raise absent
        return False

    @property
    def is_there(self) -> bool:
        """Tells whether the branch is there, whatever has become of it."""
        return self._resolved() is not None

    @property
    def tip(self) -> str:
        """Returns the commit that all answers are true for; raises NoLedger, or Corrupt."""
        tip = self._resolved()
        if tip is None:
            raise self._absent()
        return tip

    def refresh(self) -> None:
        """Looks at the branch again, unless it is the past that is looked at."""
        if not self._is_past:
            self.is_at(refs.read(self.repo, self.branch))

    def look_at(self, commit: str) -> None:
        """Makes every answer the one of an earlier commit; from here nothing can be written."""
        self._snapshot.close()
        self._snapshot = Snapshot(self.state_dir, lambda: self.reader, in_memory=True)
        self._is_past = True
        self.is_at(commit)

    def close(self) -> None:
        """Lets go of the process and the file behind the answers."""
        if self._reader is not None:
            self._reader.close()
        self._snapshot.close()

    @property
    def reader(self) -> Reader:
        """Returns the one reader of git's objects; most answers need none."""
        if self._reader is None:
            from gittasks.plumbing.objects import Reader

            self._reader = Reader(self.repo)
        return self._reader

    @property
    def snapshot(self) -> Snapshot:
        """Returns the lists and rows at the tip."""
        tip = self.tip
        try:
            self._snapshot.refresh(tip)
        except ObjectMissing as error:
            from gittasks.ledger import journal

            if not journal.restore_all(self.repo, self.reader, self.state_dir):
                raise Corrupt(
                    f"The ledger is damaged: {error}", "Run `git tasks recover` to repair it."
                ) from None
            self._snapshot.refresh(tip)
        return self._snapshot

    def graph(self) -> LedgerGraph:
        """Returns the tasks at the tip."""
        return LedgerGraph(self.snapshot, lambda: self.reader)

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
        from gittasks import __version__
        from gittasks.domain.config import needs_newer, parse_project

        if self._project is None or self._project[0] != self.tip:
            data = self.text(layout.PROJECT_FILE)
            if data is None:
                raise Corrupt(
                    f"The ledger has no {layout.PROJECT_FILE}.",
                    "Run `git tasks recover` to go back to the last good state.",
                )
            settings = parse_project(data)
            if needs_newer(settings, __version__):
                raise Corrupt(
                    f"This ledger asks for gittasks {settings.minimum_version} or newer; "
                    f"this is {__version__}.",
                    "Install a newer gittasks.",
                )
            self._project = (self.tip, settings)
        return self._project[1]

    def text(self, path: str) -> bytes | None:
        """Returns a shared file at the tip: the settings, the template, a prompt."""
        return self.snapshot.text(path)

    def log(
        self, task: str | None = None, *, since: str | None = None, limit: int | None = None
    ) -> Iterator[Recorded]:
        """Yields the events of the ledger or of one task, newest first."""
        from gittasks.ledger import history, quarantine

        invalid = quarantine.invalid(self.state_dir)
        if task is None:
            return history.since(self.repo, self.tip, since, limit=limit, invalid=invalid)
        return history.of_task(self.repo, self.tip, task, limit=limit, invalid=invalid)

    def history(self, task: str, limit: int | None = None) -> Iterator[Event]:
        """Yields the events of one task, newest first; bodies are not loaded."""
        return (recorded.event for recorded in self.log(task, limit=limit))

    def _resolved(self) -> str | None:
        if not self._is_resolved:
            if self.branch in self.repo.resolved:
                self.is_at(self.repo.resolved[self.branch])
            else:
                self.refresh()
        return self._tip

    def _absent(self) -> GittasksError:
        # Whatever has become of the branch, these remember it.
        if refs.read(self.repo, layout.BACKUP) or refs.reflog_file(self.repo, self.branch):
            return Corrupt(
                f"The branch {self.short_branch} of the ledger is missing.",
                "Run `git tasks recover` to bring it back.",
            )
        fetched = self.fetched()
        if fetched is not None:
            short = fetched[0].removeprefix("refs/remotes/")
            return NoLedger(
                f"The ledger is at {short}, and not yet in this clone.",
                "Run `git tasks init` to take it over.",
            )
        return NoLedger("There is no ledger in this repository yet.", "Run `git tasks init`.")

    def fetched(self) -> tuple[str, str] | None:
        """Returns ref and tip of a ledger that a clone or a fetch has brought, if there is one.

        Of several remotes origin counts, else the only one that has a ledger.
        """
        from gittasks.plumbing import merging, objects

        empty = objects.draft(self.repo, "tree", b"")
        root = objects.draft(self.repo, "commit", layout.root_commit(empty.oid)).oid
        found = {
            ref: oid
            for ref, oid in refs.list(self.repo, "refs/remotes/").items()
            if ref.endswith(f"/{self.short_branch}")
            and self.reader.get(root) is not None
            and merging.is_ancestor(self.repo, root, oid)
        }
        usual = f"refs/remotes/origin/{self.short_branch}"
        ref = usual if usual in found else next(iter(found)) if len(found) == 1 else None
        return (ref, found[ref]) if ref is not None else None

    # ----------------------------------------------------------------------- for whoever changes it

    @property
    def host(self) -> str:
        """Returns the random id of this clone."""
        return self._host if isinstance(self._host, str) else self._host()

    @property
    def signs(self) -> bool:
        """Tells whether events are signed here."""
        if self._sign is None:
            self._sign = self.repo.config.get_bool("gittasks.sign", False)
        return self._sign

    @property
    def short_branch(self) -> str:
        """Returns the name of the branch as people write it."""
        return self.branch.removeprefix("refs/heads/")

    def locked(self) -> WriteLock:
        """Returns the write lock of this repository, to be held in a `with`."""
        if self._is_past:
            raise UsageFault("The past cannot be changed.", "Leave --at out.")
        from gittasks.ledger.locking import WriteLock

        return WriteLock(self.state_dir, self._lock_timeout)

    def is_at(self, tip: str | None) -> None:
        """Takes over where the branch is from whoever has just read or moved it."""
        self._tip, self._is_resolved = tip, True

    def advance(
        self,
        before: str,
        tree: str,
        files: Mapping[str, str | None],
        tasks: Mapping[str, Task],
    ) -> None:
        """Takes the rows of the read cache from the commit `before` to the tip."""
        self._snapshot.advance(before, self.tip, tree, files, tasks)
