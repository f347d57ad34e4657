"""Brings a landing to its end: after the step, and after a crash before, in or behind it.

The record of a landing and what has become of its two refs tell all that is needed:

| a crash after                  | base   | ledger | is                                |
|---|---|---|---|
| the record                     | old    | open   | undone                            |
| the merge commit, the checks   | old    | open   | undone                            |
| one ref of the transaction     | new    | open   | completed; undone where refused   |
| one ref of the transaction     | old    | landed | completed                         |
| the transaction                | new    | landed | completed: checkout, tree, branch |

In a clone that shares the remote was told before any ref moved here, so it is asked first: what it
has of the ledger is taken over, and the table tells the rest. While it cannot be reached nothing
is decided.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.domain.decide import decide
from gittasks.domain.errors import Busy, GittasksError, Refused, SyncRefused
from gittasks.domain.requests import Landing, Speaker, Submit
from gittasks.ledger import repair
from gittasks.plumbing import merging, refs
from gittasks.plumbing.errors import GitError, LockTimeout
from gittasks.plumbing.locks import FileLock
from gittasks.plumbing.refs import Change
from gittasks.workspaces import branch as branches
from gittasks.workspaces import landing, records, worktree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph
    from gittasks.plumbing.repository import Repository
    from gittasks.workflow.site import Site

BY_HAND = "by hand"
"""The mode of a landing that found the tip in the base already."""

_COMPLETED = "The landing of {} was completed."
_NO_PATIENCE = 0.05


def recover_landings(site: Site) -> tuple[str, ...]:
    """Finishes or undoes every landing whose process is gone; says what was done."""
    done: list[str] = []
    for record in records.landings(site.state_dir):
        if records.is_alive(record.process):
            continue
        try:
            with lock(site, record.base, _NO_PATIENCE):
                now = records.landing(site.state_dir, record.task)
                if now is not None and not records.is_alive(now.process):
                    done += _recover(site, now)
        except Busy:
            # Whoever lands on that base now looks after it first.
            continue
        except GitError as error:
            # Other tasks can go on; the record stays.
            done.append(f"The landing of {record.task} cannot be recovered yet: {error}")
    return tuple(done)


def recover_base(site: Site, base: str) -> None:
    """Does the same for one base whose lock the caller holds."""
    for record in records.landings(site.state_dir):
        if record.base == base and not records.is_alive(record.process):
            _recover(site, record)


def changes_of(repo: Repository, record: records.LandingRecord, commit: str) -> list[Change]:
    """Returns the moves of refs that go with the close."""
    changes = [Change(record.base, commit, record.base_old)] if commit != record.base_old else []
    held = landing.LANDING + record.task
    kept = landing.LANDED + record.task
    now = refs.read_many(repo, (held, kept))
    if now[held] is not None:
        changes.append(Change(held, None, now[held]))
    if record.mode in ("rebase", "squash") and now[kept] != record.tip:
        changes.append(Change(kept, record.tip, now[kept]))
    return changes


def follow(site: Site, record: records.LandingRecord, *, again: bool = False) -> list[str]:
    """Brings checkouts, tree and branch along after the step; says what is kept or left to do."""
    try:
        left = landing.bring_along(
            site.repo, record.base, record.base_old, record.commit, unless_done=again
        )
    except GitError as error:
        left = (f"The base has moved, but its checkouts could not be looked at: {error}",)
    notes = [*left, *_tidied(site, record)]
    if not left and again:
        forget(site, record.task)
    elif not left:
        records.drop_landing(site.state_dir, record.task)
    return notes


def _tidied(site: Site, record: records.LandingRecord) -> list[str]:
    notes: list[str] = []
    try:
        removed = worktree.remove(site.repo, site.places, record.task, now=site.clock())
        notes += removed.kept.sentences
        if record.branch is not None:
            stays = branches.delete_branch(site.repo, record.branch, record.tip)
            notes += [stays] if stays else []
    except (GittasksError, GitError, OSError) as error:
        # The task has landed whatever becomes of its tree.
        notes.append(f"{error} What is left of {record.task} goes with `git tasks gc`.")
    for claim in (*records.all(site.state_dir), *records.ended(site.state_dir)):
        if claim.uid == record.uid:
            records.drop(site.state_dir, claim.claim)
    return notes


def forget(site: Site, task_id: str) -> None:
    """Lets go of the commit and the record of a landing that is over."""
    landing.hold_commit(site.repo, task_id, None)
    records.drop_landing(site.state_dir, task_id)


def _recover(site: Site, record: records.LandingRecord) -> list[str]:
    """Finishes a landing whose process is gone if any part of the step was done, else undoes it."""
    ledger = site.ledger
    if not record.commit:
        return _undone(site, record)
    ledger.refresh()
    if record.remote and not _is_landed(site, record):
        waits = _asked(site, record)
        if waits is not None:
            return [waits]
    graph = ledger.graph()
    task_id = graph.with_uid(record.uid)
    task = graph.get(task_id) if task_id else None
    base = refs.read(site.repo, record.base)
    is_in = base is not None and merging.is_ancestor(site.repo, record.commit, base)
    if task is not None and task.is_landed:
        return _completed(site, record, task, base, is_in=is_in)
    if not is_in or record.commit == record.base_old:
        return _undone(site, record)
    try:
        _close(site, record)
    except Refused as error:
        return _taken_back(site, record, base, error)
    return [_COMPLETED.format(record.task), *follow(site, record, again=True)]


def _is_landed(site: Site, record: records.LandingRecord) -> bool:
    graph = site.ledger.graph()
    task_id = graph.with_uid(record.uid)
    task = graph.get(task_id) if task_id else None
    return task is not None and task.is_landed


def _asked(site: Site, record: records.LandingRecord) -> str | None:
    """Takes over what the remote has; returns a sentence where it cannot be asked."""
    from gittasks.workflow import exchange

    try:
        exchange.pull(site)
    except (Busy, SyncRefused) as error:
        return (
            f"The landing of {record.task} was cut short, and whether {record.remote} has it is not"
            f" known: {error.message}"
        )
    site.ledger.refresh()
    return None


def _completed(
    site: Site, record: records.LandingRecord, task: Task, base: str | None, *, is_in: bool
) -> list[str]:
    """Brings along what the ledger says has landed."""
    if not is_in and task.landed != record.commit:
        # Somebody else has landed it since.
        return _undone(site, record)
    if record.remote and task.landed == record.commit:
        from gittasks.plumbing import tracking  # only a clone that shares

        tracking.note(site.repo, record.remote, record.base, record.commit)
    if not is_in and base != record.base_old:
        records.drop_landing(site.state_dir, record.task)
        name = record.base.removeprefix(branches.HEADS)
        return [
            f"The landing of {record.task} was cut short, and {name} has moved on since. "
            f"Merge it yourself: git merge {record.commit}."
        ]
    if not is_in:
        changes = changes_of(site.repo, record, record.commit)
        note = f"gittasks: {record.task} landed"
        repair.patient_transaction(site.ledger, changes, note, ())
    return [_COMPLETED.format(record.task), *follow(site, record, again=True)]


def _undone(site: Site, record: records.LandingRecord) -> list[str]:
    worktree.drop_spare(site.repo, site.places, record.task)
    forget(site, record.task)
    return [f"The landing of {record.task}, which had moved nothing, was undone."]


def _close(site: Site, record: records.LandingRecord) -> None:
    """Records a landing whose base has moved already."""
    speaker = Speaker(record.actor, "manager")
    found = Landing(record.tip, record.commit, record.mode)

    def events(graph: Graph) -> Sequence[Event]:
        task_id = graph.with_uid(record.uid) or record.task
        request = Submit(task_id, remark=record.remark, landing=found)
        return decide(graph, request, site.facts(speaker))

    def changes() -> Sequence[Change]:
        moved = changes_of(site.repo, record, record.commit)
        return [change for change in moved if change.name != record.base]

    site.ledger.append(events, also=changes)


def _taken_back(
    site: Site, record: records.LandingRecord, base: str | None, error: Refused
) -> list[str]:
    """Takes the base back where the task may no longer land and nobody has built on it."""
    if base == record.commit:
        refs.compare_and_swap(
            site.repo, record.base, record.base_old, base, f"gittasks: {record.task} not landed"
        )
        return [f"{error.message} {text}" for text in _undone(site, record)]
    forget(site, record.task)
    return [f"{error.message} The base has its commits already: {record.commit[:12]}."]


def lock(site: Site, base: str, timeout: float) -> _BaseLock:
    """Returns the lock that one landing at a time holds on a base of this clone."""
    name = "".join(c if c.isalnum() or c in "-_." else f"%{ord(c):02x}" for c in base)
    path = os.path.join(site.state_dir, f"landing-on-{name}.flk")
    return _BaseLock(FileLock(path, timeout, f"landing on {base.removeprefix(branches.HEADS)}"))


class _BaseLock:
    """A file lock whose time-out is told the way commands tell it."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        try:
            self._lock.acquire()
        except LockTimeout as error:
            raise Busy(
                f"Another landing is under way: {error}", "Try again when it has ended."
            ) from None

    def __exit__(self, *_: object) -> None:
        self._lock.release()
