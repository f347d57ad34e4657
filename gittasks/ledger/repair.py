"""How refs are moved where a process that was killed may have left a lock or lost an object."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gittasks.ledger import journal
from gittasks.plumbing import merging, objects, refs
from gittasks.plumbing.errors import ObjectMissing, RefLocked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.ledger.view import View
    from gittasks.plumbing.repository import Repository

__all__ = [
    "checked_out_at",
    "contains",
    "patient_transaction",
    "remove_stale",
    "stale_age",
    "steps_between",
]

_STALE_SECONDS = 10.0
# A process of ours that died had started git, which may still be about to finish.
_DEAD_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
_REWRITES = 5
_NEAR = 6


def patient_transaction(
    ledger: View,
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
            if not remove_stale(error.path, stale_age(ledger)):
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


def stale_age(ledger: View) -> float:
    """Returns for how many seconds a lock file must be untouched to be nobody's."""
    return _DEAD_SECONDS if _a_writer_died(ledger) else _STALE_SECONDS


def _a_writer_died(ledger: View) -> bool:
    """Tells whether a process of ours ended between its journal and the move of the branch."""
    from gittasks.plumbing.processes import process_identity

    for path in journal.entries(ledger.state_dir):
        pid = path.rpartition(".")[2]
        if not pid.isdecimal() or int(pid) == os.getpid() or process_identity(int(pid)):
            continue
        tip = os.path.basename(path).partition(".")[0]
        now = ledger.reader.get(ledger.branch)
        if now is None or not contains(ledger, now.oid, tip):
            return True
    return False


def contains(ledger: View, tip: str, oid: str) -> bool:
    """Tells whether a commit is there and one of those up to a tip."""
    if steps_between(ledger, oid, tip) is not None:
        return True
    # The branch may name anything by now.
    found = ledger.reader.many((tip, oid))
    if not all(one is not None and one.kind == "commit" for one in found):
        return False
    return merging.is_ancestor(ledger.repo, oid, tip)


def steps_between(ledger: View, old: str, new: str) -> int | None:
    """Returns how many commits a tip is ahead of an older one, None where that is not nearby.

    A few questions to the process that reads objects cost less than one more process.
    """
    current: str | None = new
    for steps in range(_NEAR + 1):
        if current == old:
            return steps
        if current is None:
            return None
        found = ledger.reader.get(current)
        if found is None or found.kind != "commit":
            return None
        parents = objects.parse_commit(found.oid, found.data).parents
        current = parents[0] if parents else None
    return None


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
