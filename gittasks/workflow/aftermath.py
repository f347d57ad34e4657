"""What a replay leaves to be done here: our claims that were lost, our tasks with a new number."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.domain.errors import Busy, GittasksError
from gittasks.domain.events import Rejected
from gittasks.ledger.shared import SyncLock
from gittasks.plumbing.errors import GitError
from gittasks.workflow import sharing
from gittasks.workspaces import branch as branches
from gittasks.workspaces import records, worktree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.replayed import Lost, Renaming, Replayed
    from gittasks.workflow.site import Site
    from gittasks.workspaces.records import ClaimRecord

_NO_PATIENCE = 0.05


def follow(site: Site, replayed: Replayed) -> None:
    """Carries out here what a replay has decided about our claims and our numbers, and tells it."""
    told = []
    for renaming in replayed.renamed:
        told += _renamed(site, renaming)
    for lost in replayed.lost:
        told.append(_set_aside(site, lost))
    told += replayed.notes
    claims = {one.claim for one in replayed.lost}
    for event, reason in heard(replayed):
        if event.kind == "claim" and event.claim in claims:
            continue
        what = f"{event.kind} of {event.task}" if event.task else event.kind
        told.append(f"Your {what} was not applied: {reason}.")
    told += _held_again(site, replayed)
    site.told += tuple(told)


def finish(site: Site) -> None:
    """Does here what a sync that was killed has left to do."""
    from gittasks.ledger import aftermath  # only after a sync that was cut short

    try:
        with SyncLock(site.state_dir, _NO_PATIENCE):
            aftermath.finish(site.ledger, lambda replayed: follow(site, replayed))
    except Busy:
        # Whoever syncs now does it first.
        pass


def heard(replayed: Replayed) -> list[tuple[Event, str]]:
    """Returns what was not applied and has to be told, with the reasons; not what is so anyway."""
    claims = {one.claim for one in replayed.lost}
    quiet = {
        step.event.event_id
        for step in replayed.steps
        if isinstance(step.event.change, Rejected) and step.event.change.quiet
    }
    return [
        (event, reason)
        for event, reason in replayed.rejected
        if (event.kind == "claim" and event.claim in claims)
        or (event.event_id not in quiet and event.kind != "unblock")
    ]


def held_here(site: Site) -> tuple[ClaimRecord, ...]:
    """Returns the records of the claims that somebody in this clone holds now."""
    found = records.all(site.state_dir)
    graph = site.ledger.graph() if found else None
    if graph is None:
        return ()
    tasks = {one.claim: graph.get(graph.with_uid(one.uid) or "") for one in found}
    return tuple(one for one in found if (t := tasks[one.claim]) and t.claim == one.claim)


def ended_elsewhere(
    site: Site, held: Sequence[ClaimRecord], lost: Collection[str]
) -> Iterator[str]:
    """Yields a sentence for each claim of this clone that others have ended meanwhile."""
    graph = site.ledger.graph() if held else None
    for record in held:
        task = None if graph is None else graph.get(graph.with_uid(record.uid) or "")
        if task is None or task.claim == record.claim or record.claim in lost:
            continue
        state = f"{task.state}, {task.outcome}" if task.outcome else task.state
        holder = f", held by {task.claimed_by}" if task.claimed_by else ""
        yield (
            f"The claim of {record.actor} on {task.id} was ended elsewhere: the task is at"
            f" {state}{holder}."
        )


def settle(site: Site) -> None:
    """Forgets the claims of this clone whose end the remote has."""
    ended = records.ended(site.state_dir)
    graph = site.ledger.graph() if ended else None
    if graph is None or graph.tip != sharing.shared_of(site).copy:
        return
    for record in ended:
        task = graph.get(graph.with_uid(record.uid) or "")
        if task is None or task.claim != record.claim:
            records.drop(site.state_dir, record.claim)


def _renamed(site: Site, renaming: Renaming) -> list[str]:
    told = []
    if renaming.branch is not None:
        old, new = renaming.branch
        with worktree.locked(site.places, sharing.patience(site)):
            if branches.rename_branch(site.repo, old, new):
                told.append(f"The branch {old} of {renaming.new} is {new} now.")
    if renaming.old == renaming.new:
        return told
    places = site.places
    folder = os.path.basename(places.folder(renaming.old))
    if os.path.lexists(places.folder(renaming.old)):
        places.keep_name(renaming.new, folder)
        newcomer = site.ledger.graph().get(renaming.old)
        if newcomer is not None:
            places.keep_name(renaming.old, f"{renaming.old}-{newcomer.uid[:4]}")
    records.renumber(site.state_dir, renaming.uid, renaming.new)
    records.note_number(site.state_dir, renaming.old, renaming.new, renaming.uid)
    graph = site.ledger.graph()
    task, newcomer = graph.get(renaming.new), graph.get(renaming.old)
    was_taken = (task is not None and renaming.old in task.former_ids) or (
        newcomer is not None and newcomer.uid != renaming.uid
    )
    why = "others had taken the number" if was_taken else "others had created it with the same key"
    told.append(f"The task {renaming.old} of this clone is {renaming.new} now: {why}.")
    return told


def _held_again(site: Site, replayed: Replayed) -> list[str]:
    """Gives back the claims that had ended here, and go on because that was not applied."""
    told = []
    graph = site.ledger.graph()
    for event, _reason in replayed.rejected:
        task = None if event.claim is None else graph.get(graph.with_uid(event.uid or "") or "")
        if task is None or task.claim is None or task.claim != event.claim:
            continue
        record = records.bring_back(site.state_dir, task.claim, task.id)
        if record is not None:
            told.append(
                f"{record.actor} still holds {task.id}:"
                f" `git tasks start {task.id}` hands it out again."
            )
    return told


def _set_aside(site: Site, lost: Lost) -> str:
    """Gives the work of a lost claim a name of its own; tree and commits stay."""
    name = f"{lost.branch}-lost-{lost.claim[:8]}"
    stays = ""
    record = records.with_claim(site.state_dir, lost.claim)
    if record is not None and record.state != "WORK":
        # A review changes nothing: what stands there is the work of whoever submitted it.
        return f"The claim of {lost.actor} on {lost.task} was lost: {lost.reason}."
    try:
        with worktree.locked(site.places, sharing.patience(site)):
            if branches.rename_branch(site.repo, lost.branch, name):
                stays = f" What was done stays on the branch {name}."
    except (GittasksError, GitError) as error:
        stays = f" Its branch could not be renamed: {error}"
    return f"The claim of {lost.actor} on {lost.task} was lost: {lost.reason}.{stays}"
