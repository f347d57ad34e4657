"""How clones meet: what the remote has is taken over, what only this clone has is replayed on it.

A sync fetches, replays under the write lock, moves the local branch, and pushes without force; a
race starts it again. The write lock is never held while the remote is asked. Nothing remembers
what was published: an event is where its id is. Only commits that the remote does not have are
ever made anew, and the tip before is kept under `refs/gittasks/pre-replay/`.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Busy, SyncRefused
from gittasks.domain.replayed import Replayed
from gittasks.ledger import (
    aftermath,
    journal,
    layout,
    recover,
    refusals,
    repair,
)
from gittasks.ledger.shared import SyncLock, is_unsettled
from gittasks.ledger.writing import require_not_checked_out
from gittasks.plumbing import merging, objects, refs
from gittasks.plumbing.errors import (
    GitError,
    RefMoved,
    RemoteRaced,
    RemoteRefused,
    RemoteUnreachable,
)
from gittasks.plumbing.remote import Update

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.ledger.ledger import Ledger
    from gittasks.ledger.shared import Shared

    Also = Callable[[], Sequence[refs.Change]]
    Branches = Callable[[str | None, str], Sequence[Update]]

__all__ = [
    "CaughtUp",
    "Synced",
    "catch_up",
    "events_between",
    "foreseen",
    "pause",
    "sync",
    "unpublished",
]

ROUNDS = 8
"""How often a sync begins again because others were faster."""


class CaughtUp(NamedTuple):
    """What became of this clone's own events: the tips before and after, and what was replayed."""

    before: str
    tip: str
    replayed: Replayed = Replayed(())
    kept: str | None = None
    """The ref that keeps the tip before a replay."""


class Synced(NamedTuple):
    """What a sync did: how many events came and went, and what became of our own."""

    remote: str
    tip: str
    received: int = 0
    published: int = 0
    pending: int = 0
    """How many events the remote does not have yet."""
    branches: tuple[str, ...] = ()
    """The branches that were published beside the ledger."""
    replayed: tuple[Replayed, ...] = ()
    notes: tuple[str, ...] = ()


def sync(  # noqa: PLR0913
    shared: Shared,
    branches: Branches,
    *,
    names: Sequence[str] = (),
    globs: Sequence[str] = (),
    push: bool = True,
    pull: bool = True,
    rounds: int = ROUNDS,
    patience: float = 30.0,
    followed: Callable[[Replayed], None] = lambda _replayed: None,
) -> Synced:
    """Takes over what the remote has and gives it what only this clone has.

    `names` and `globs` are refs to fetch beside the ledger; `branches` says which branches to
    push with it, given the remote's tip and ours. `followed` is told of each replay right after it,
    while nobody else can sync. Raises Busy when others are faster each time.
    """
    ledger = shared.ledger
    done = Synced(shared.name, "")
    how = _How(branches, tuple(names), tuple(globs), push, pull, followed)
    why = "Others were faster"
    with SyncLock(ledger.state_dir, patience):
        aftermath.finish(ledger, followed)
        for tried in range(rounds):
            try:
                done, is_over = _turn(shared, done, how, tried)
            except GitError as error:
                if not is_unsettled(error):
                    raise
                why = f"The repository here was in the way ({error})"
                pause(tried)
                continue
            if is_over:
                return done
        left = unpublished(ledger, shared.copy)
    words = "one event is" if left == 1 else f"{left} events are"
    raise shared.outrun(
        f"{why} {rounds} times; {words} not published yet.",
        "Run `git tasks sync` again; nothing is lost.",
    )


class _How(NamedTuple):
    """What a sync does in each of its turns."""

    branches: Branches
    names: tuple[str, ...]
    globs: tuple[str, ...]
    push: bool
    pull: bool
    followed: Callable[[Replayed], None]


def _turn(shared: Shared, done: Synced, how: _How, tried: int) -> tuple[Synced, bool]:
    """Fetches, replays and pushes once; tells also whether the remote has it all by now."""
    ledger = shared.ledger
    arrived = shared.fetch(how.names, how.globs)
    done = done._replace(notes=(*done.notes, *arrived.notes))
    if done.pending and arrived.tip and repair.contains(ledger, arrived.tip, done.tip):
        # The push of the turn before has arrived although nobody said so.
        done = done._replace(published=done.published + done.pending)
    if how.pull:
        done = _follow(shared, arrived.tip, done, how.followed)
    else:
        ledger.refresh()
        _require_up_to_date(shared, arrived.tip)
    done = done._replace(tip=ledger.tip, pending=unpublished(ledger, arrived.tip))
    updates = _updates(shared, arrived.tip, how.branches) if how.push else []
    if not updates:
        return done, True
    moved = _pushed(shared, updates, tried)
    if moved is None:
        return done, False
    sent = tuple(one.name for one in moved if one.new and one.name != ledger.branch)
    done = done._replace(
        published=done.published + done.pending, branches=(*done.branches, *sent), pending=0
    )
    # What a push says is not always what the remote has in the end.
    arrived = shared.fetch(how.names, how.globs)
    done = done._replace(notes=(*done.notes, *arrived.notes))
    if arrived.tip is None or not repair.contains(ledger, arrived.tip, done.tip):
        return done, False
    if how.pull:
        done = _follow(shared, arrived.tip, done, how.followed)
    return done._replace(tip=ledger.tip), True


def _follow(
    shared: Shared, tip: str | None, done: Synced, followed: Callable[[Replayed], None]
) -> Synced:
    ledger = shared.ledger
    with ledger.locked():
        caught = catch_up(ledger, tip)
    if tip is not None and caught.tip != caught.before:
        news = events_between(ledger, caught.before, tip)
        done = done._replace(received=done.received + news)
    if not tell(ledger, caught, followed):
        return done
    return done._replace(replayed=(*done.replayed, caught.replayed))


def tell(ledger: Ledger, caught: CaughtUp, followed: Callable[[Replayed], None]) -> bool:
    """Tells of a replay, if there was one, whoever has to follow it; it is done when they return."""
    if not caught.replayed.steps and not caught.replayed.notes:
        return False
    followed(caught.replayed)
    aftermath.finish(ledger, lambda _done: None)
    return True


def _require_up_to_date(shared: Shared, tip: str | None) -> None:
    ledger = shared.ledger
    if tip is not None and not repair.contains(ledger, ledger.tip, tip):
        raise SyncRefused(
            f"The remote {shared.name} has events that this clone has not.",
            "Run `git tasks sync` to take them over first.",
        )


def _updates(shared: Shared, tip: str | None, branches: Branches) -> list[Update]:
    ledger = shared.ledger
    here = ledger.tip
    own = [] if here == tip else [Update(ledger.branch, here, tip, plain=True)]
    return [*own, *refusals.without_refused(ledger, shared.name, branches(tip, here))]


def _pushed(shared: Shared, updates: Sequence[Update], tried: int) -> list[Update] | None:
    """Returns the moves that the remote has made, None for a race."""
    try:
        return _push(shared, updates)
    except RemoteRaced:
        pause(tried)
        return None
    except RemoteUnreachable as error:
        if not error.maybe_done or error.timed_out:
            raise shared.told(error) from None
        # The next fetch tells whether it was done.
        pause(tried)
        return None
    except GitError as error:
        raise shared.told(error) from None


def _push(shared: Shared, updates: Sequence[Update]) -> list[Update]:
    """Pushes all, or where the remote refuses only what can be left out, the rest."""
    try:
        shared.push(updates)
        return list(updates)
    except RemoteRefused as error:
        optional = {one.name for one in updates if refusals.is_optional(one)}
        if not error.names or not optional.issuperset(error.names):
            raise
        refusals.note(shared.ledger, shared.name, updates, error.names)
    left = refusals.without_refused(shared.ledger, shared.name, updates)
    return _push(shared, left) if left else []


def unpublished(ledger: Ledger, copy: str | None) -> int:
    """Returns how many events at our tip the remote did not have when it was last fetched."""
    tip = ledger.tip
    if tip == copy:
        return 0
    return events_between(ledger, copy, tip)


def foreseen(shared: Shared, *, push: bool = True, pull: bool = True) -> Synced:
    """Returns what a sync would do now; moves no ref but the one that holds what was fetched."""
    ledger = shared.ledger
    tip, here = shared.peek(), ledger.tip
    known = here if tip is None else merging.merge_base(ledger.repo, here, tip)
    received = events_between(ledger, known, tip) if pull and tip is not None else 0
    replayed: tuple[Replayed, ...] = ()
    pending = unpublished(ledger, tip)
    if tip is not None and known not in (here, tip):
        from gittasks.ledger import replaying  # rarely needed

        found, pending = replaying.foreseen(ledger, here, tip)
        replayed = (found,) if pull else ()
    return Synced(shared.name, here, received, 0, pending if push else 0, (), replayed)


def events_between(ledger: Ledger, old: str | None, new: str) -> int:
    """Returns how many events a tip has that another one has not."""
    nearby = None if old is None else repair.steps_between(ledger, old, new)
    if nearby is not None:
        return nearby
    revisions = ("--min-parents=1", new) if old is None else (new, f"^{old}")
    return int(ledger.repo.text("rev-list", "--count", *revisions, "--"))


def catch_up(ledger: Ledger, tip: str | None, also: Also = tuple) -> CaughtUp:
    """Takes a tip of the remote over, with our own events on top; the caller holds the write lock.

    Moves other refs in the same step.
    """
    for tried in range(ROUNDS):
        try:
            return _catch_up(ledger, tip, also)
        except RefMoved as error:
            if error.name not in (ledger.branch, layout.BACKUP):
                raise
            pause(tried)
    raise Busy("Others change the ledger all the time.", "Try again.")


def _catch_up(ledger: Ledger, tip: str | None, also: Also) -> CaughtUp:
    require_not_checked_out(ledger)
    above = recover.writable_tip(ledger)
    ledger.is_at(above and above.oid)
    before = ledger.tip
    require_not_checked_out(ledger)
    steps = None if tip is None else repair.steps_between(ledger, before, tip)
    if tip is None or (not steps and repair.contains(ledger, before, tip)):
        refs.transaction(ledger.repo, also(), "gittasks: sync")
        return CaughtUp(before, before)
    if steps or repair.contains(ledger, tip, before):
        _move(ledger, before, tip, also(), (), "gittasks: sync: what others did")
        return CaughtUp(before, tip)
    return _replayed(ledger, before, tip, also)


def _replayed(ledger: Ledger, before: str, tip: str, also: Also) -> CaughtUp:
    from gittasks.ledger import replaying  # rarely needed

    found, commits = replaying.replayed(ledger, before, tip)
    new = commits.commits[-1] if commits.commits else tip
    drafts = tuple(commits.drafts.values())
    keeping = recover.keeping(ledger, before, layout.BY_SYNC)
    note = f"gittasks: sync: {len(found.steps)} events replayed"
    entry = journal.keep(ledger.state_dir, tip, new, drafts) if drafts else None
    objects.write(ledger.repo, drafts)
    aftermath.note(ledger, new, found)
    try:
        _move(ledger, before, new, (keeping, *also()), drafts, note)
    except GitError:
        if entry is not None:
            journal.drop(entry)
        raise
    journal.restore(ledger.repo, ledger.reader, drafts)
    return CaughtUp(before, new, found, keeping.name)


def _move(
    ledger: Ledger,
    before: str,
    new: str,
    also: Sequence[refs.Change],
    drafts: Sequence[objects.Draft],
    note: str,
) -> None:
    backup = ledger.reader.get(layout.BACKUP)
    changes = (
        refs.Change(ledger.branch, new, before),
        refs.Change(layout.BACKUP, new, backup and backup.oid),
        *also,
    )
    repair.patient_transaction(ledger, changes, note, drafts)
    ledger.is_at(new)


def pause(tried: int) -> None:
    """Waits a random while, longer each time, so that two clones do not meet again at once."""
    longest = min(0.05 * 2**tried, 2.0)
    time.sleep(longest * os.urandom(1)[0] / 255)
