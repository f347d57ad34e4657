"""What a command takes over from the remote before it decides, and what it gives to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.workflow import aftermath, sharing, work_branches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.task_graph import Graph
    from gittasks.ledger.writing import Appended
    from gittasks.plumbing import refs
    from gittasks.workflow.site import Publishing, Site


def pull(site: Site, *, timeout: float | None = None) -> None:
    """Takes over what others did, with the branches of tasks; raises Busy, or SyncRefused."""
    from gittasks.ledger import sync

    done = sync.sync(
        sharing.shared_of(site, timeout=timeout),
        work_branches.to_push(site),
        names=(site.base,),
        globs=sharing.globs(site),
        push=False,
        patience=sharing.patience(site),
        followed=lambda replayed: aftermath.follow(site, replayed),
    )
    site.told += done.notes
    if done.pending:
        # What an earlier command could not publish goes along at the end of this one.
        site.ledger.has_written = True


def publish(
    site: Site,
    decide: Callable[[Graph], Sequence[Event]],
    also: Callable[[], Sequence[refs.Change]],
    how: Publishing,
) -> Appended:
    """Appends events that count only when the remote has them; raises and leaves nothing else."""
    from gittasks.ledger import publishing

    try:
        appended = publishing.append(
            sharing.shared_of(site),
            decide,
            also=also,
            updates=how.updates,
            optional=how.optional,
            names=how.names,
            globs=how.globs,
            fresh=how.fresh,
            patience=sharing.patience(site),
            followed=lambda replayed: aftermath.follow(site, replayed),
        )
    except publishing.NotFollowed as half:
        site.told += (f"The remote has it, but not all could follow here: {half.error}",)
        appended = half.appended
    note_given(site)
    return appended


def note_given(site: Site) -> None:
    """Notes that the remote has all that is here, where it has: nothing is left to publish."""
    ledger = site.ledger
    tip = ledger.tip
    if ledger.has_written and sharing.shared_of(site).copy == tip:
        # Work that was submitted without the remote still goes along at the end.
        ledger.has_written = bool(work_branches.to_push(site)(tip, tip))
