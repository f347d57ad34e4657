"""Finds and repairs what a crash, a gc or a hand left behind in the ledger."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gittasks.domain.errors import Corrupt
from gittasks.ledger import layout
from gittasks.plumbing import objects, refs
from gittasks.plumbing.errors import ObjectMissing, RefLocked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.ledger.ledger import Ledger
    from gittasks.plumbing.repository import Repository

__all__ = ["checked_out_at", "is_known", "patient_transaction", "restore", "writable_tip"]

_STALE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
_REWRITES = 5


def is_known(ledger: Ledger) -> bool:
    """Tells whether this repository has had a ledger, whatever has become of the branch."""
    return bool(
        refs.read(ledger.repo, layout.BACKUP) or refs.reflog_file(ledger.repo, ledger.branch)
    )


def writable_tip(ledger: Ledger) -> objects.Commit | None:
    """Returns the commit to write on, read anew; None where there is no ledger."""
    found = ledger.reader.get(ledger.branch)
    if found is None:
        return None
    if found.kind != "commit":
        raise Corrupt(
            f"The branch {ledger.branch} is no commit.", "Run `git tasks recover` to repair it."
        )
    return objects.parse_commit(found.oid, found.data)


def patient_transaction(
    ledger: Ledger,
    changes: Sequence[refs.Change],
    note: str,
    drafts: Sequence[objects.Draft],
) -> None:
    """Moves refs; waits for locks of others, removes those nobody can hold any more."""
    deadline = time.monotonic() + _STALE_SECONDS + 5
    rewrites = 0
    while True:
        try:
            refs.transaction(ledger.repo, changes, note)
            return
        except ObjectMissing:
            rewrites += 1
            if rewrites > _REWRITES:
                raise
            objects.write(ledger.repo, drafts)
        except RefLocked as error:
            if time.monotonic() > deadline:
                raise
            if not remove_stale(error.path):
                time.sleep(_PAUSE_SECONDS)


def remove_stale(path: str, age: float = _STALE_SECONDS) -> bool:
    """Removes a lock file of git that nothing has touched for long; tells whether it is gone."""
    try:
        before = os.stat(path)
        if time.time() - before.st_mtime < age:  # noqa: TID251  # the age of a file
            return False
        os.unlink(path)
    except FileNotFoundError:
        pass
    return True


def restore(ledger: Ledger, drafts: Sequence[objects.Draft]) -> int:
    """Writes again what is missing of these objects; returns how many that were."""
    by_id = {draft.oid: draft for draft in drafts}
    repaired = 0
    for _ in range(_REWRITES):
        # A reader looks for a loose object each time it is asked.
        if len(by_id) <= 50:
            found = ledger.reader.many(by_id)
            gone = [oid for oid, one in zip(by_id, found, strict=True) if one is None]
        else:
            gone = objects.missing(ledger.repo, by_id)
        if not gone:
            break
        repaired += len(gone)
        objects.write(ledger.repo, [by_id[oid] for oid in gone])
    return repaired


def checked_out_at(repo: Repository, branch: str) -> str | None:
    """Returns where a branch is checked out; starts git only if it may be somewhere."""
    if not refs.is_reftable(repo):
        heads = [os.path.join(repo.common_dir, "HEAD")]
        try:
            with os.scandir(os.path.join(repo.common_dir, "worktrees")) as folders:
                heads += [os.path.join(folder.path, "HEAD") for folder in folders]
        except FileNotFoundError:
            pass
        if not any(_names(head, branch) for head in heads):
            return None
    from gittasks.plumbing import worktrees

    for tree in worktrees.list(repo):
        if tree.branch == branch and not tree.bare:
            return tree.path
    return None


def _names(head: str, branch: str) -> bool:
    try:
        with open(head, "rb") as file:
            return file.read().strip() == b"ref: " + os.fsencode(branch)
    except OSError:
        return False
