"""Finds and repairs what a crash, a gc or a hand left behind in the ledger."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gittasks.domain.errors import Corrupt
from gittasks.ledger import layout
from gittasks.plumbing import merging, objects, refs
from gittasks.plumbing.errors import ObjectMissing, RefLocked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.ledger.ledger import Ledger
    from gittasks.plumbing.repository import Repository

__all__ = [
    "checked_out_at",
    "is_known",
    "patient_transaction",
    "recover",
    "restore",
    "writable_tip",
]

_STALE_SECONDS = 10.0
# A process of ours that died had started git, which may still be about to finish.
_DEAD_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
_KEPT_DAYS = 30
_REWRITES = 5


def is_known(ledger: Ledger) -> bool:
    """Tells whether this repository has had a ledger, whatever has become of the branch."""
    return bool(
        refs.read(ledger.repo, layout.BACKUP) or refs.reflog_file(ledger.repo, ledger.branch)
    )


def writable_tip(ledger: Ledger) -> objects.Commit | None:
    """Returns the commit to write on, read anew; None where there is no ledger.

    This is the short form of a recovery, under the write lock: nothing but two questions where
    all is well. What is certain is repaired, and said in `ledger.repaired`.
    """
    found = ledger.reader.get(ledger.branch)
    if found is None and restore_from_journal(ledger):
        found = ledger.reader.get(ledger.branch)
    if found is None:
        # What is lost with a tip that is named and gone is for people to accept.
        if refs.read(ledger.repo, ledger.branch) is None and not _bring_back(ledger):
            return None
        found = ledger.reader.get(ledger.branch)
    if found is None or found.kind != "commit":
        raise Corrupt(
            f"The ledger is damaged: the commit of the branch {ledger.short_branch} cannot be read.",
            "Run `git tasks recover` to go back to the last good state.",
        )
    tip = objects.parse_commit(found.oid, found.data)
    good = ledger.reader.get(layout.BACKUP)
    if good is None:
        _renew_backup(ledger, tip.oid)
        return tip
    if good.oid == tip.oid:
        return tip
    return _reconciled(ledger, tip, good.oid)


def recover(ledger: Ledger) -> list[str]:
    """Repairs all that can be repaired and returns what was done, in sentences."""
    done: list[str] = []
    with ledger.locked():
        ledger.repaired.clear()
        done += _without_stale_locks(ledger)
        done += _replayed_journal(ledger)
        try:
            tip = writable_tip(ledger)
        except Corrupt:
            tip = _back_to_good(ledger)
        done += ledger.repaired
        done += _kept_orphans(ledger, tip)
        done += _without_old_tips(ledger)
    ledger.refresh()
    if tip is not None:
        _rebuild_cache(ledger)
    return done


# --------------------------------------------------------------------------------- the branch


def _bring_back(ledger: Ledger) -> bool:
    """Restores the missing or broken branch from what remembers it; tells whether it was there."""
    tip = _remembered(ledger)
    if tip is None:
        return False
    repo = ledger.repo
    file = refs.ref_file(repo, ledger.branch)
    if refs.is_broken(repo, ledger.branch):
        # git can neither read nor replace it.
        os.unlink(file)
    patient_transaction(
        ledger, [refs.Change(ledger.branch, tip, None)], "gittasks: recover the branch", ()
    )
    ledger.repaired.append(
        f"The branch {ledger.short_branch} was missing; it is back at {tip[:12]}."
    )
    return True


def _remembered(ledger: Ledger) -> str | None:
    """Returns the newest tip that is known to have been good and is still there."""
    names = (entry.new for entry in refs.reflog_file(ledger.repo, ledger.branch))
    backup = refs.read(ledger.repo, layout.BACKUP)
    if backup is not None and not _is_ledger(ledger, backup):
        backup = None
    newest = next((oid for oid in names if _is_ledger(ledger, oid)), None)
    if backup is None or newest is None:
        return backup or newest
    # Whichever contains the other; the backup where they have gone different ways.
    return newest if merging.is_ancestor(ledger.repo, backup, newest) else backup


def _renew_backup(ledger: Ledger, tip: str) -> None:
    """Replaces a backup that names what is no longer there: nothing could be written beside it."""
    lost = refs.read(ledger.repo, layout.BACKUP)
    if lost is not None:
        change = refs.Change(layout.BACKUP, tip, lost)
        patient_transaction(ledger, [change], "gittasks: recover the backup", ())


def _is_ledger(ledger: Ledger, oid: str) -> bool:
    """Tells whether a commit can be read and is one of a ledger."""
    if oid == ledger.repo.null_oid:
        return False
    commit = ledger.reader.get(oid)
    # git ends when it is asked for a path in what it cannot read.
    return (
        commit is not None
        and commit.kind == "commit"
        and ledger.reader.get(f"{oid}:{layout.PROJECT_FILE}") is not None
    )


def _reconciled(ledger: Ledger, tip: objects.Commit, good: str) -> objects.Commit:
    """Returns the commit to write on when the branch is not where we left it."""
    repo = ledger.repo
    if refs.is_symbolic(repo, ledger.branch):
        raise Corrupt(
            f"The branch {ledger.short_branch} is a symbolic ref, so a write would move another"
            " branch.",
            "Run `git tasks recover` to go back to the last good state.",
        )
    if merging.is_ancestor(repo, good, tip.oid):
        return _adopted(ledger, tip, good)
    if merging.is_ancestor(repo, tip.oid, good):
        change = refs.Change(ledger.branch, good, tip.oid)
        patient_transaction(ledger, [change], "gittasks: recover what was taken off", ())
        ledger.repaired.append(
            f"The branch {ledger.short_branch} had been set back; it is at {good[:12]} again."
        )
        return ledger.reader.commit(good)
    raise Corrupt(
        f"The branch {ledger.short_branch} has left its history: the last good commit is"
        f" {good[:12]}, and {tip.oid[:12]} does not contain it.",
        "Run `git tasks recover` to go back to it; what is there now is kept.",
    )


def _back_to_good(ledger: Ledger) -> objects.Commit | None:
    """Sets the branch to the last good tip, and keeps the present one under another name."""
    repo = ledger.repo
    if refs.is_symbolic(repo, ledger.branch):
        # Moving it would move the branch that it stands for.
        refs.drop_symbolic(repo, ledger.branch)
    now, backup = refs.read(repo, ledger.branch), refs.read(repo, layout.BACKUP)
    good = backup if backup is not None and _is_ledger(ledger, backup) else _remembered(ledger)
    if good is None:
        raise Corrupt(
            "No good state of the ledger is known here.",
            "Fetch the branch from another clone, or restore it from a backup.",
        )
    changes = [refs.Change(ledger.branch, good, now)]
    if backup != good:
        changes.append(refs.Change(layout.BACKUP, good, backup))
    found = None if now is None else ledger.reader.get(now)
    kept = ""
    if found is not None and found.kind == "commit":
        changes.append(_keeping(ledger, found.oid))
        kept = f"; what was there is kept at {changes[-1].name}"
    patient_transaction(ledger, changes, "gittasks: recover the last good tip", ())
    lost = "; what came after it could not be read" if now is not None and found is None else ""
    ledger.repaired.append(
        f"The branch {ledger.short_branch} is at its last good commit {good[:12]} again{kept}{lost}."
    )
    return ledger.reader.commit(good)


def _keeping(ledger: Ledger, oid: str) -> refs.Change:
    """Returns the change that keeps a former tip under a name of its own."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(ledger.clock()))
    taken = refs.list(ledger.repo, layout.PRE_REPLAY)
    name = layout.PRE_REPLAY + stamp
    number = 1
    while name in taken:
        number += 1
        name = f"{layout.PRE_REPLAY}{stamp}-{number}"
    return refs.Change(name, oid, None)


# ------------------------------------------------------------------------- commits made by hand


def _adopted(ledger: Ledger, tip: objects.Commit, good: str) -> objects.Commit:
    """Accepts commits that are events, and turns what a hand committed into events."""
    from gittasks.ledger import byhand
    from gittasks.ledger.verify import Checker, oldest_first

    checker = Checker(ledger.repo, ledger.reader)
    last = ledger.reader.commit(good)
    checker.start_at(last)
    for commit in oldest_first(ledger.repo, ledger.reader, tip.oid, good):
        if isinstance(commit, str) or checker.check(commit):
            break
        last = commit
    else:
        return tip
    built, left = byhand.adopt(ledger, last, tip)
    new_tip = built.commits[-1] if built is not None else last.oid
    keeping = _keeping(ledger, tip.oid)
    changes = [refs.Change(ledger.branch, new_tip, tip.oid), keeping]
    drafts = () if built is None else tuple(built.drafts.values())
    objects.write(ledger.repo, drafts)
    patient_transaction(ledger, changes, "gittasks: adopt what was committed by hand", drafts)
    restore(ledger, drafts)
    count = 0 if built is None else len(built.events)
    ledger.repaired.append(
        f"The commits made by hand on {ledger.short_branch} were replaced by {count} events;"
        f" they are kept at {keeping.name}."
    )
    ledger.repaired += left
    return ledger.reader.commit(new_tip)


# ------------------------------------------------------------------------------------ full form


def _without_stale_locks(ledger: Ledger) -> list[str]:
    age = _DEAD_SECONDS if _a_writer_died(ledger) else _STALE_SECONDS
    names = (ledger.branch, layout.BACKUP, "HEAD")
    return [
        f"The lock file {path} was left over and is removed."
        for path in refs.stale_locks(ledger.repo, names)
        if remove_stale(path, age)
    ]


def _a_writer_died(ledger: Ledger) -> bool:
    """Tells whether a process of ours ended between its journal and the move of the branch."""
    from gittasks.ledger import journal
    from gittasks.plumbing.processes import process_identity

    for path in journal.entries(ledger.state_dir):
        pid = path.rpartition(".")[2]
        if not pid.isdecimal() or int(pid) == os.getpid() or process_identity(int(pid)):
            continue
        tip = os.path.basename(path).partition(".")[0]
        now = ledger.reader.get(ledger.branch)
        if now is None or not _contains(ledger, now.oid, tip):
            return True
    return False


def _contains(ledger: Ledger, tip: str, oid: str) -> bool:
    if tip == oid:
        return True
    # The branch may name anything by now.
    found = ledger.reader.many((tip, oid))
    if not all(one is not None and one.kind == "commit" for one in found):
        return False
    return merging.is_ancestor(ledger.repo, oid, tip)


def _replayed_journal(ledger: Ledger) -> list[str]:
    """Writes again what accepted events lack, and drops what never became part of the ledger."""
    from gittasks.ledger import journal

    done = []
    now = ledger.reader.get(ledger.branch) or ledger.reader.get(layout.BACKUP)
    for path in journal.entries(ledger.state_dir):
        entry = journal.read(path)
        if entry is not None and now is not None:
            # With the objects there, git can say whether they belong to the ledger.
            missing = restore(ledger, entry.drafts)
            if missing and _contains(ledger, now.oid, entry.tip):
                done.append(f"{missing} objects of the event {entry.tip[:12]} were written again.")
        journal.drop(path)
    return done


def _kept_orphans(ledger: Ledger, tip: objects.Commit | None) -> list[str]:
    """Gives a name to commits that the branch has once had and no longer contains."""
    if tip is None:
        return []
    repo = ledger.repo
    kept = refs.list(repo, layout.PRE_REPLAY).values()
    seen = dict.fromkeys(
        oid
        for entry in refs.reflog(repo, ledger.branch)
        for oid in (entry.new, entry.old)
        if oid != repo.null_oid
    )
    done = []
    for oid in seen:
        found = ledger.reader.get(oid)
        if found is None or found.kind != "commit" or merging.is_ancestor(repo, oid, tip.oid):
            continue
        if any(merging.is_ancestor(repo, oid, other) for other in kept):
            continue
        change = _keeping(ledger, oid)
        refs.transaction(repo, [change], "gittasks: keep what the branch has lost")
        kept = refs.list(repo, layout.PRE_REPLAY).values()
        done.append(
            f"The commit {oid[:12]} is no longer part of the ledger; it is kept at {change.name}."
        )
    return done


def _without_old_tips(ledger: Ledger) -> list[str]:
    """Forgets former tips after thirty days."""
    done = []
    for name, oid in refs.list(ledger.repo, layout.PRE_REPLAY).items():
        stamp = name.removeprefix(layout.PRE_REPLAY)[:16]
        oldest = time.strftime(
            "%Y%m%dT%H%M%SZ", time.gmtime(ledger.clock() - _KEPT_DAYS * 24 * 3600)
        )
        if len(stamp) == len(oldest) and stamp < oldest:
            refs.compare_and_swap(ledger.repo, name, None, oid, "gittasks: forget an old tip")
            done.append(f"The former tip {name} is older than {_KEPT_DAYS} days and is forgotten.")
    return done


def _rebuild_cache(ledger: Ledger) -> None:
    """Makes the read cache anew, and removes what a process that was killed made beside it."""
    with os.scandir(ledger.state_dir) as files:
        for file in files:
            process = file.name.removeprefix("cache.db.").partition(".")[0]
            if file.name.startswith("cache.db.") and process.isdecimal():
                from gittasks.plumbing.processes import process_identity

                if process_identity(int(process)) is None:
                    os.unlink(file.path)
    ledger.snapshot.rebuild()


# ---------------------------------------------------------------------------- parts of a write


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
            age = _DEAD_SECONDS if _a_writer_died(ledger) else _STALE_SECONDS
            if not remove_stale(error.path, age):
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
    for tried in range(_REWRITES):
        # A reader looks for a loose object each time it is asked.
        if len(by_id) <= 50:
            found = ledger.reader.many(by_id)
            gone = [oid for oid, one in zip(by_id, found, strict=True) if one is None]
        else:
            gone = objects.missing(ledger.repo, by_id)
        if not gone:
            break
        if tried:
            # git takes an object for written whose file is there, whatever is in it.
            for oid in gone:
                _drop_unreadable(ledger.repo, oid)
        repaired += len(gone)
        objects.write(ledger.repo, [by_id[oid] for oid in gone])
    return repaired


def _drop_unreadable(repo: Repository, oid: str) -> None:
    try:
        os.unlink(os.path.join(repo.common_dir, "objects", oid[:2], oid[2:]))
    except FileNotFoundError:
        pass


def restore_from_journal(ledger: Ledger) -> int:
    """Writes again what a gc has taken of the latest events; returns how many objects."""
    from gittasks.ledger import journal

    found = (journal.read(path) for path in journal.entries(ledger.state_dir))
    return sum(restore(ledger, entry.drafts) for entry in found if entry is not None)


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
