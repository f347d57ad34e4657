"""The remote that a ledger is shared through: what it has, what it gets, and what it refuses.

A fetch goes into refs of ours first (`refs/gittasks/incoming/…`). Only when it is clear that the
remote has merely gone on does our copy of its ledger follow; so a remote that was rewritten is
noticed, however often it is asked.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Busy, Corrupt, GittasksError, SyncRefused
from gittasks.domain.fields import shown
from gittasks.ledger import layout, repair
from gittasks.plumbing import merging, refs, remote
from gittasks.plumbing.errors import (
    GitError,
    LockTimeout,
    NoSuchRemote,
    ObjectMissing,
    RefMoved,
    RemoteAsks,
    RemoteError,
    RemoteRefused,
    RemoteUnreachable,
)
from gittasks.plumbing.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.ledger.ledger import Ledger

_SHORTEST = 0.05
_ANOTHER = "git config --replace-all gittasks.remote NAME"
_SHOWN = 10
"""The most things that one fetch tells of what does not verify."""
_LOST_WORDS = (
    "bad object",
    "unable to read",
    "unable to find",
    "missing",
    "not found",
    "Not a valid",
    "No such file or directory",
)

__all__ = ["Arrived", "Shared", "SyncLock", "is_unsettled"]


class Arrived(NamedTuple):
    """What a fetch has brought: the ledger's tip there (None: it has none), and what to say."""

    tip: str | None
    notes: tuple[str, ...] = ()


def is_unsettled(error: GitError) -> bool:
    """Tells whether git may have met a repository that is collected or packed at this moment.

    What a fetch has brought can be taken away before a ref names it, and a ref that is being
    packed can look older than it is, or gone.
    """
    if isinstance(error, RefMoved):
        return error.name.startswith((layout.COPIES, layout.INCOMING))
    words = error.stderr
    return isinstance(error, ObjectMissing) or (
        not isinstance(error, RemoteError) and any(one in words for one in _LOST_WORDS)
    )


class Shared:
    """One ledger and the remote that all clones agree through."""

    def __init__(self, ledger: Ledger, name: str, *, timeout: float | None = None) -> None:
        """Takes the name of the remote; `timeout` bounds all calls together, in seconds."""
        self.ledger = ledger
        self.repo = ledger.repo
        self.name = name
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self.copy_ref = layout.COPIES + name
        self._tips: set[str | None] = set()

    @property
    def copy(self) -> str | None:
        """Returns the tip that the remote's ledger had when it was last fetched."""
        found = self.ledger.reader.get(self.copy_ref)
        return found and found.oid

    def incoming(self, name: str) -> str:
        """Returns the ref of ours that holds what was fetched of a remote's ref."""
        return layout.INCOMING + name.removeprefix("refs/")

    def fetch(
        self, names: Sequence[str] = (), globs: Sequence[str] = (), *, adopting: bool = False
    ) -> Arrived:
        """Brings the ledger and some other refs into refs of ours, and looks at what is new.

        Raises SyncRefused where the remote was rewritten or refuses, Busy where it cannot be
        reached in time.
        """
        self._require_name()
        wanted = {name: self.incoming(name) for name in (self.ledger.branch, *names)}
        patterns = {name: self.incoming(name) for name in globs}
        asked = (self.copy_ref, *wanted.values())
        known = zip(asked, self.ledger.reader.many(asked), strict=True)
        before = {ref: found and found.oid for ref, found in known}
        try:
            missing = remote.fetch(
                self.repo,
                self.name,
                wanted,
                globs=patterns,
                timeout=self._left(),
                whole=adopting,
                prune=bool(patterns),
            )
        except GitError as error:
            raise self.told(error) from None
        gone = [
            refs.Change(ref, None, old)
            for name, ref in wanted.items()
            if name in missing and (old := before[ref]) is not None
        ]
        refs.transaction(self.repo, gone, "gittasks: the remote has it no more")
        if self.ledger.branch in missing:
            self._tips.add(None)
            return self._nothing(before[self.copy_ref])
        if not adopting:
            self._complete(wanted[self.ledger.branch])
        found = self.ledger.reader.get(wanted[self.ledger.branch])
        if found is None:
            words = f"bad object {wanted[self.ledger.branch]}"
            raise ObjectMissing(("fetch", self.name), 128, words)
        self._tips.add(found.oid)
        return self._arrived(before[self.copy_ref], found.oid)

    def _complete(self, ref: str) -> None:
        """Brings the ledger's history again where a fetch of the user's has cut it off."""
        if not remote.is_shallow(self.repo) or not remote.is_cut(self.repo, ref):
            return
        try:
            remote.fetch(
                self.repo, self.name, {self.ledger.branch: ref}, timeout=self._left(), whole=True
            )
        except GitError as error:
            raise self.told(error) from None

    def peek(self) -> str | None:
        """Returns the tip of the remote's ledger with all that it needs, and takes nothing over."""
        self._require_name()
        if not os.access(self.repo.common_dir, os.W_OK):
            raise _unwritable(self.repo.common_dir)
        own = {self.ledger.branch: self.incoming(self.ledger.branch)}
        try:
            missing = remote.fetch(self.repo, self.name, own, timeout=self._left())
        except GitError as error:
            raise self.told(error) from None
        if missing:
            return None
        self._complete(self.incoming(self.ledger.branch))
        return refs.read(self.repo, self.incoming(self.ledger.branch))

    def push(self, updates: Sequence[remote.Update]) -> None:
        """Moves refs of the remote, all or none; raises RemoteRaced where another was faster."""
        self._require_name()
        remote.push(self.repo, self.name, updates, timeout=self._left())

    def _require_name(self) -> None:
        """Refuses a remote whose name cannot be part of the names of our refs."""
        if layout.is_ref_part(self.name):
            return
        raise SyncRefused(
            f"No ledger can be shared through the remote {shown(self.name)}: git allows no ref with"
            " that in its name.",
            f"Give it another name: git remote add NAME URL; {_ANOTHER}.",
        )

    def outrun(self, words: str, hint: str) -> Exception:
        """Returns why one round after the other came to nothing."""
        key = f"remote.{self.name}.pushurl"
        # Whoever is faster moves the ledger.
        if len(self._tips) == 1 and self.repo.config.get_all(key):
            return SyncRefused(
                f"What is pushed to {self.name} does not come back when it is fetched: {key} leads"
                " to another repository.",
                f"Correct it (git config --unset-all {key}), or share through another remote"
                f" ({_ANOTHER}).",
            )
        return Busy(words, hint)

    def contains(self, commit: str) -> bool:
        """Tells whether the remote's ledger had a commit when it was last fetched."""
        copy = self.copy
        return copy is not None and (copy == commit or merging.is_ancestor(self.repo, commit, copy))

    def _left(self) -> float | None:
        """Returns for how many seconds the remote may still be asked."""
        if self._deadline is None:
            return None
        return max(self._deadline - time.monotonic(), _SHORTEST)

    def told(self, error: GitError) -> Exception:
        """Returns what a failure of the remote means for whoever wanted something of it."""
        match error:
            case RemoteUnreachable():
                return Busy(
                    str(error),
                    "Try again later, or give --offline to work without it.",
                )
            case RemoteAsks():
                return SyncRefused(
                    str(error),
                    "Store the password or the key where git finds it without asking.",
                )
            case RemoteRefused():
                return SyncRefused(
                    str(error),
                    "Everything is safe in this clone; have the remote's owner allow it.",
                )
            case NoSuchRemote():
                return SyncRefused(
                    f"There is no remote {self.name} in this clone.",
                    f"Name another one with `{_ANOTHER}`.",
                )
            case _ if is_unsettled(error):
                return error
            case _:
                return SyncRefused(f"The remote {self.name} could not be used: {error}")

    def _nothing(self, before: str | None) -> Arrived:
        """Follows a remote that has no ledger, or none any more."""
        if before is None:
            return Arrived(None)
        change = refs.Change(self.copy_ref, None, before)
        refs.transaction(self.repo, [change], "gittasks: the remote has no ledger any more")
        return Arrived(
            None, (f"The remote {self.name} has lost its ledger; all events are offered again.",)
        )

    def _arrived(self, before: str | None, tip: str) -> Arrived:
        if before == tip:
            return Arrived(tip)
        notes: tuple[str, ...] = ()
        known = before
        if before is None:
            known = self._common(tip)
        elif not repair.contains(self.ledger, tip, before):
            if not repair.contains(self.ledger, before, tip):
                raise self._rewritten(before, tip)
            lost = self._count(tip, before)
            notes = (
                f"The remote {self.name} was set back by {_events(lost)}: all of it is offered again.",
            )
            known = tip
        if known != tip:
            from gittasks.ledger import arrivals

            try:
                found = arrivals.inspect(self.ledger, known, tip)
            except Corrupt as error:
                raise SyncRefused(
                    f"What the remote {self.name} has is no ledger: {error.message}",
                    f"Look at it: git log {self.incoming(self.ledger.branch)}.",
                ) from None
            notes += tuple(
                f"The commit {one.commit[:12]} from {self.name} does not verify: {one.message}"
                for one in found[:_SHOWN]
            )
            if len(found) > _SHOWN:
                notes += (f"{len(found) - _SHOWN} more; `git tasks fsck` lists them all.",)
        change = refs.Change(self.copy_ref, tip, before)
        refs.transaction(self.repo, [change], f"gittasks: fetched from {self.name}")
        return Arrived(tip, notes)

    def _common(self, tip: str) -> str | None:
        """Returns what our ledger and the remote's have in common when they first meet."""
        here = refs.read(self.repo, self.ledger.branch)
        if here is None:
            return None
        common = merging.merge_base(self.repo, here, tip)
        if common is None:
            raise SyncRefused(
                f"The branch {self.ledger.short_branch} of {self.name} shares no commit with the"
                " ledger here.",
                f"Choose another remote (`{_ANOTHER}`), or give that branch another name and put"
                f" the ledger in its place: git push --no-verify {self.name}"
                f" {self.incoming(self.ledger.branch)}:refs/heads/NAME :{self.ledger.branch}"
                " && git tasks sync.",
            )
        # Nothing can be decided on the first commit of all ledgers, which is no event.
        return common if self.ledger.reader.commit(common).parents else None

    def _count(self, old: str | None, new: str) -> int:
        revisions = (new,) if old is None else (new, f"^{old}")
        return int(self.repo.text("rev-list", "--count", *revisions, "--"))

    def _rewritten(self, before: str, tip: str) -> SyncRefused:
        lost = self._count(tip, before)
        return SyncRefused(
            f"The ledger of {self.name} was rewritten: it has {tip[:12]}, which does not contain"
            f" {before[:12]}, the tip it had before; {_events(lost)}"
            f" {'is' if lost == 1 else 'are'} missing there.",
            "Have it put back, or accept what it has: "
            f"git update-ref -d {self.copy_ref} && git tasks sync. Nothing here is lost.",
        )


def _unwritable(place: str) -> GittasksError:
    import errno

    from gittasks.ledger.locking import unwritable

    code = errno.EROFS if os.statvfs(place).f_flag & os.ST_RDONLY else errno.EACCES
    return unwritable(OSError(code, os.strerror(code), place))


def _events(count: int) -> str:
    return "one event" if count == 1 else f"{count} events"


class SyncLock:
    """The lock of whoever speaks with the remote for this clone; one at a time saves races."""

    def __init__(self, state_dir: str, timeout: float) -> None:
        """Waits as many seconds at most."""
        self._lock = FileLock(os.path.join(state_dir, "sync.flk"), timeout, "lock of the sync")

    def __enter__(self) -> None:
        try:
            self._lock.acquire()
        except LockTimeout as error:
            raise Busy(str(error), "Try again when the holder has finished.") from None
        except OSError as error:
            from gittasks.ledger.locking import unwritable

            raise unwritable(error) from None

    def __exit__(self, *_: object) -> None:
        self._lock.release()
