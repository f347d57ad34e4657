"""Events that count only when all clones can see them: claims, new tasks, landings.

They are decided on the newest that the remote has, and pushed by object id while the local branch
stands where it was; so a refusal leaves nothing behind. Only when the remote has them does the
local branch follow. Whoever loses a race fetches and decides again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import GittasksError, SyncRefused, Unconfirmed
from gittasks.ledger import aftermath, journal, recover, repair
from gittasks.ledger.locking import unwritable
from gittasks.ledger.shared import Arrived, SyncLock, is_unsettled
from gittasks.ledger.sync import ROUNDS, catch_up, pause, tell
from gittasks.ledger.writing import Appended, prepared
from gittasks.plumbing import objects
from gittasks.plumbing.errors import GitError, RemoteRaced, RemoteRefused, RemoteUnreachable
from gittasks.plumbing.remote import Update

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.replayed import Replayed
    from gittasks.domain.task_graph import Graph
    from gittasks.ledger.build import Builder
    from gittasks.ledger.shared import Shared
    from gittasks.plumbing import refs

    Decide = Callable[[Graph], Sequence[Event]]

__all__ = ["NotFollowed", "append"]


class NotFollowed(Exception):
    """The remote has the events, but what goes with them here could not be moved."""

    def __init__(self, appended: Appended, error: GitError) -> None:
        super().__init__(appended, error)
        self.appended = appended
        self.error = error


def append(  # noqa: PLR0913
    shared: Shared,
    decide: Decide,
    *,
    also: Callable[[], Sequence[refs.Change]] = tuple,
    updates: Callable[[], Sequence[Update]] = tuple,
    optional: Collection[str] = (),
    names: Sequence[str] = (),
    globs: Sequence[str] = (),
    fresh: bool = True,
    patience: float = 30.0,
    followed: Callable[[Replayed], None] = lambda _replayed: None,
) -> Appended:
    """Writes what `decide` says where all clones see it, or raises and leaves nothing behind.

    `updates` are refs of the remote that move with the ledger there, `also` refs that move with
    it here; those among `optional` are left out where the remote refuses just them. `fresh` False decides on what was fetched last, and asks the remote first only where
    that is refused. Raises Busy when the remote cannot be reached, SyncRefused when it refuses,
    Unconfirmed when it cannot be told whether it has the events, NotFollowed when it has them.
    """
    ledger = shared.ledger
    with SyncLock(ledger.state_dir, patience):
        aftermath.finish(ledger, followed)
        for tried in range(ROUNDS):
            is_fresh = tried > 0 or fresh or shared.copy is None
            try:
                arrived = shared.fetch(names, globs) if is_fresh else Arrived(shared.copy)
                commits, before = _prepared(shared, arrived, decide, followed)
            except GittasksError:
                if is_fresh:
                    raise
                # What was refused may be out of date.
                continue
            except GitError as error:
                _settle(error, tried)
                continue
            if commits is None:
                return Appended((), (), before, before)
            try:
                if not _is_pushed(shared, commits, arrived, (updates(), optional), tried):
                    continue
            except GitError as error:
                _settle(error, tried)
                continue
            newest = _confirmed(shared, commits.commits[-1])
            if newest is not None:
                return _follow(shared, commits, before, newest, also, followed)
    raise shared.outrun("Others were faster each time.", "Try again.")


def _settle(error: GitError, tried: int) -> None:
    """Waits where the repository was collected or packed meanwhile; else raises the error."""
    if not is_unsettled(error):
        raise error
    pause(tried)


def _prepared(
    shared: Shared, arrived: Arrived, decide: Decide, followed: Callable[[Replayed], None]
) -> tuple[Builder | None, str]:
    """Returns the commits on top of what the remote has and of what only this clone has."""
    ledger = shared.ledger
    with ledger.locked():
        caught = catch_up(ledger, arrived.tip)
        tell(ledger, caught, followed)
        above = recover.writable_tip(ledger)
        assert above is not None
        commits = prepared(ledger, above, decide)
        if commits is not None:
            drafts = tuple(commits.drafts.values())
            try:
                journal.keep(ledger.state_dir, above.oid, commits.commits[-1], drafts)
            except OSError as error:
                raise unwritable(error) from None
            objects.write(ledger.repo, drafts)
    return commits, above.oid


def _is_pushed(
    shared: Shared,
    commits: Builder,
    arrived: Arrived,
    more: tuple[Sequence[Update], Collection[str]],
    tried: int,
) -> bool:
    """Tells whether the remote has the events now; False is a lost race."""
    ledger = shared.ledger
    tip = commits.commits[-1]
    own = Update(ledger.branch, tip, arrived.tip, plain=True)
    try:
        _push(shared, own, *more)
        return True
    except RemoteRaced:
        pause(tried)
        return False
    except RemoteUnreachable as error:
        if not error.maybe_done:
            raise shared.told(error) from None
        silent = error.timed_out
    except RemoteRefused as error:
        raise SyncRefused(
            str(error),
            "Have the remote's owner allow it, or give --offline to write it in this clone only;"
            " nothing was written.",
        ) from None
    except GitError as error:
        raise shared.told(error) from None
    try:
        arrived = shared.fetch()
    except (GittasksError, GitError) as error:
        words = error.message if isinstance(error, GittasksError) else str(error)
        raise Unconfirmed(
            f"The remote {shared.name} was lost while it was told: {words}"
            " Whether it has the events is not known.",
            "Run `git tasks sync` when it is back, and look.",
        ) from None
    has_it = arrived.tip is not None and repair.contains(ledger, arrived.tip, tip)
    if silent and not has_it:
        # Whoever is slow may still be at it, and is not kept waiting once more.
        raise Unconfirmed(
            f"The remote {shared.name} did not say in time whether it has the events.",
            "Run `git tasks sync` when it is faster, and look.",
        )
    return has_it


def _push(
    shared: Shared, own: Update, updates: Sequence[Update], optional: Collection[str]
) -> None:
    try:
        shared.push((own, *updates))
    except RemoteRefused as error:
        if not error.names or not set(error.names) <= set(optional):
            raise
        shared.push((own, *(one for one in updates if one.name not in error.names)))


def _confirmed(shared: Shared, tip: str) -> str | None:
    """Returns the remote's tip once it has ours, None where it has lost what it had accepted.

    What a push says is not always what the remote has in the end.
    """
    try:
        arrived = shared.fetch()
    except (GittasksError, GitError):
        # It has said yes, and cannot be asked again.
        return tip
    has_it = arrived.tip is not None and repair.contains(shared.ledger, arrived.tip, tip)
    return arrived.tip if has_it else None


def _follow(
    shared: Shared,
    commits: Builder,
    before: str,
    newest: str,
    also: Callable[[], Sequence[refs.Change]],
    followed: Callable[[Replayed], None],
) -> Appended:
    """Lets the local branch follow what the remote has accepted."""
    ledger = shared.ledger
    appended = Appended(tuple(commits.events), tuple(commits.commits), commits.commits[-1], before)
    with ledger.locked():
        try:
            caught = catch_up(ledger, newest, also)
        except GitError as error:
            catch_up(ledger, newest)
            raise NotFollowed(appended, error) from None
        finally:
            journal.restore(ledger.repo, ledger.reader, tuple(commits.drafts.values()))
    tell(ledger, caught, followed)
    return appended
