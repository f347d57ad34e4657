"""Finds and repairs what a crash, a gc or a hand left behind in the ledger."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gittasks.domain.errors import Corrupt
from gittasks.ledger import journal, layout, repair
from gittasks.plumbing import merging, objects, refs

if TYPE_CHECKING:
    from gittasks.ledger.arrivals import Accepted
    from gittasks.ledger.view import View

__all__ = ["keeping", "recover", "writable_tip"]

_KEPT_DAYS = 30


def writable_tip(ledger: View) -> objects.Commit | None:
    """Returns the commit to write on, read anew; None where there is no ledger.

    This is the short form of a recovery, under the write lock: nothing but two questions where
    all is well. What is certain is repaired, and said in `ledger.repaired`.
    """
    found = ledger.reader.get(ledger.branch)
    if found is None and journal.restore_all(ledger.repo, ledger.reader, ledger.state_dir):
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


def recover(ledger: View) -> list[str]:
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
            done += _restored_quarantine(ledger, tip.oid)
    if tip is not None:
        _rebuild_cache(ledger)
    return done


# --------------------------------------------------------------------------------- the branch


def _bring_back(ledger: View) -> bool:
    """Restores the missing or broken branch from what remembers it; tells whether it was there."""
    tip = _remembered(ledger)
    if tip is None:
        return False
    repo = ledger.repo
    file = refs.ref_file(repo, ledger.branch)
    if refs.is_broken(repo, ledger.branch):
        # git can neither read nor replace it.
        os.unlink(file)
    repair.patient_transaction(
        ledger, [refs.Change(ledger.branch, tip, None)], "gittasks: recover the branch", ()
    )
    ledger.repaired.append(
        f"The branch {ledger.short_branch} was missing; it is back at {tip[:12]}."
    )
    return True


def _remembered(ledger: View) -> str | None:
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


def _renew_backup(ledger: View, tip: str) -> None:
    """Replaces a backup that names what is no longer there: nothing could be written beside it."""
    lost = refs.read(ledger.repo, layout.BACKUP)
    if lost is not None:
        change = refs.Change(layout.BACKUP, tip, lost)
        repair.patient_transaction(ledger, [change], "gittasks: recover the backup", ())


def _is_ledger(ledger: View, oid: str) -> bool:
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


def _reconciled(ledger: View, tip: objects.Commit, good: str) -> objects.Commit:
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
        repair.patient_transaction(ledger, [change], "gittasks: recover what was taken off", ())
        ledger.repaired.append(
            f"The branch {ledger.short_branch} had been set back; it is at {good[:12]} again."
        )
        return ledger.reader.commit(good)
    if _is_of_a_sync(ledger, tip.oid):
        changes = [refs.Change(layout.BACKUP, tip.oid, good), keeping(ledger, good, layout.BY_SYNC)]
        repair.patient_transaction(ledger, changes, "gittasks: recover a sync", ())
        ledger.repaired.append("A sync had been cut short after its replay; it is finished.")
        return tip
    raise Corrupt(
        f"The branch {ledger.short_branch} has left its history: the last good commit is"
        f" {good[:12]}, and {tip.oid[:12]} does not contain it.",
        "Run `git tasks recover` to go back to it; what is there now is kept.",
    )


def _is_of_a_sync(ledger: View, tip: str) -> bool:
    """Tells whether a sync of this clone has moved the branch here, and was killed right then.

    It had noted the tip in the journal, or there was nothing of our own to put on the remote's.
    """
    from gittasks.ledger import origins

    noted = (os.path.basename(path).partition(".")[0] for path in journal.entries(ledger.state_dir))
    return tip in noted or tip in origins.shared_tips(ledger)


def _back_to_good(ledger: View) -> objects.Commit | None:
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
        changes.append(keeping(ledger, found.oid))
        kept = f"; what was there is kept at {changes[-1].name}"
    repair.patient_transaction(ledger, changes, "gittasks: recover the last good tip", ())
    lost = "; what came after it could not be read" if now is not None and found is None else ""
    ledger.repaired.append(
        f"The branch {ledger.short_branch} is at its last good commit {good[:12]} again{kept}{lost}."
    )
    return ledger.reader.commit(good)


def keeping(ledger: View, oid: str, why: str = "") -> refs.Change:
    """Returns the change that keeps a former tip under a name of its own, which may say why."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(ledger.clock())) + why
    taken = refs.list(ledger.repo, layout.PRE_REPLAY)
    name = layout.PRE_REPLAY + stamp
    number = 1
    while name in taken:
        number += 1
        name = f"{layout.PRE_REPLAY}{stamp}-{number}"
    return refs.Change(name, oid, None)


# ------------------------------------------------------------------------- commits made by hand


def _adopted(ledger: View, tip: objects.Commit, good: str) -> objects.Commit:
    """Accepts commits that are events, and turns what a hand committed into events."""
    from gittasks.ledger import arrivals, byhand

    accepted = arrivals.accept(ledger, good, tip.oid)
    if accepted.findings:
        ledger.repaired.append(_told(ledger, accepted))
    last = accepted.last
    if last.oid == tip.oid:
        return tip
    built, left = byhand.adopt(ledger, last, accepted.checker.fold, tip)
    new_tip = built.commits[-1] if built is not None else last.oid
    kept = keeping(ledger, tip.oid)
    changes = [refs.Change(ledger.branch, new_tip, tip.oid), kept]
    drafts = () if built is None else tuple(built.drafts.values())
    objects.write(ledger.repo, drafts)
    repair.patient_transaction(
        ledger, changes, "gittasks: adopt what was committed by hand", drafts
    )
    journal.restore(ledger.repo, ledger.reader, drafts)
    count = 0 if built is None else len(built.events)
    events = "one event" if count == 1 else f"{count} events" if count else "no event"
    ledger.repaired.append(
        f"The commits made by hand on {ledger.short_branch} were replaced by {events};"
        f" they are kept at {kept.name}."
    )
    ledger.repaired += left
    return ledger.reader.commit(new_tip)


def _told(ledger: View, accepted: Accepted) -> str:
    commits = len({finding.commit for finding in accepted.findings})
    which = "A commit" if commits == 1 else f"{commits} commits"
    verb = "does" if commits == 1 else "do"
    tasks = sorted({stray.task for stray in accepted.checker.strays.values() if stray.task})
    keeps = "keeps" if len(tasks) == 1 else "keep"
    more = f"; {', '.join(tasks)} {keeps} the last good state" if tasks else ""
    return f"{which} on {ledger.short_branch} that came from a remote {verb} not verify{more}."


# ------------------------------------------------------------------------------------ full form


def _without_stale_locks(ledger: View) -> list[str]:
    age = repair.stale_age(ledger)
    names = (ledger.branch, layout.BACKUP, "HEAD")
    return [
        f"The lock file {path} was left over and is removed."
        for path in refs.stale_locks(ledger.repo, names)
        if repair.remove_stale(path, age)
    ]


def _replayed_journal(ledger: View) -> list[str]:
    """Writes again what accepted events lack, and drops what never became part of the ledger."""
    done = []
    now = ledger.reader.get(ledger.branch) or ledger.reader.get(layout.BACKUP)
    for path in journal.entries(ledger.state_dir):
        entry = journal.read(path)
        if entry is not None and now is not None:
            # With the objects there, git can say whether they belong to the ledger.
            missing = journal.restore(ledger.repo, ledger.reader, entry.drafts)
            if missing and repair.contains(ledger, now.oid, entry.tip):
                done.append(f"{missing} objects of the event {entry.tip[:12]} were written again.")
        journal.drop(path)
    return done


def _kept_orphans(ledger: View, tip: objects.Commit | None) -> list[str]:
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
        change = keeping(ledger, oid)
        refs.transaction(repo, [change], "gittasks: keep what the branch has lost")
        kept = refs.list(repo, layout.PRE_REPLAY).values()
        done.append(
            f"The commit {oid[:12]} is no longer part of the ledger; it is kept at {change.name}."
        )
    return done


def _restored_quarantine(ledger: View, tip: str) -> list[str]:
    """Looks at the whole ledger for what arrived and does not count, if anything ever arrived."""
    from gittasks.ledger import origins

    if not origins.shared_tips(ledger):
        return []
    from gittasks.ledger.verify import Checker, oldest_first

    checker = Checker(ledger.repo, ledger.reader)
    for commit in oldest_first(ledger.repo, ledger.reader, tip):
        if isinstance(commit, str):
            return []
        checker.check(commit)
    strays = tuple(checker.strays.values())
    if not origins.restore(ledger, tip, strays, checker.touched):
        return []
    words = [stray.words for stray in strays]
    return words or ["No document keeps an earlier text any more."]


def _without_old_tips(ledger: View) -> list[str]:
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


def _rebuild_cache(ledger: View) -> None:
    """Makes the read cache anew, and removes what a process that was killed made beside it."""
    with os.scandir(ledger.state_dir) as files:
        for file in files:
            process = file.name.removeprefix("cache.db.").partition(".")[0]
            if file.name.startswith("cache.db.") and process.isdecimal():
                from gittasks.plumbing.processes import process_identity

                if process_identity(int(process)) is None:
                    os.unlink(file.path)
    ledger.snapshot.rebuild()
