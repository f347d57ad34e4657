"""Looks at commits that arrive, and sees to it that a bad one touches nothing but its own task.

Only what is new is read: the rest comes from the read cache, at whatever commit that stands, and
from the documents that differ between there and what was known. A bad commit stays in the history
and counts for nothing; `quarantine` keeps what counts instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Corrupt
from gittasks.domain.fields import BadDocument
from gittasks.domain.frontmatter import parse
from gittasks.ledger import origins, quarantine
from gittasks.ledger.graph import LedgerGraph
from gittasks.ledger.layout import BACKUP, parse_path, path_of
from gittasks.ledger.locking import unwritable
from gittasks.ledger.snapshot import Snapshot
from gittasks.ledger.trees import changed_paths
from gittasks.ledger.verify import Checker, Fold, is_root, oldest_first
from gittasks.plumbing import merging, objects
from gittasks.plumbing.errors import GitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.ledger.quarantine import Kept, Stray
    from gittasks.ledger.verify import Finding
    from gittasks.ledger.view import View

__all__ = ["Accepted", "accept", "checker_at", "inspect", "judge"]

_SHOWN = 12


class Accepted(NamedTuple):
    """What was accepted of commits that nobody has looked at: up to which, and what was wrong.

    The checker stands there.
    """

    last: objects.Commit
    findings: tuple[Finding, ...]
    checker: Checker


def inspect(ledger: View, known: str | None, new: str) -> tuple[Finding, ...]:
    """Verifies the commits up to `new` on top of those up to `known`, and keeps what counts.

    To be called before the branch moves there. Without `known` everything is looked at. Raises
    Corrupt where it is no history of a ledger, or where it cannot be read.
    """
    kept = quarantine.read(ledger.state_dir)
    if not kept.strays and known is not None and _is_own(ledger, new):
        return ()
    base, checker, findings = _judged(ledger, known, new, kept.strays)
    _keep(ledger, kept, base, checker)
    return findings


def judge(ledger: View, known: str | None, new: str) -> tuple[Finding, ...]:
    """Verifies the commits up to `new` on top of those up to `known`, and keeps nothing."""
    kept = quarantine.read(ledger.state_dir)
    findings = _judged(ledger, known, new, kept.strays)[2]
    if findings and known is not None and kept == quarantine.Kept():
        # What was pushed before anybody looked may be just what these commits put right.
        findings = _judged(ledger, known, new, (), whole=True)[2]
    return findings


def accept(ledger: View, good: str, tip: str) -> Accepted:
    """Looks at what is on the branch above the last good tip, however it came there.

    What a remote has is accepted whatever it is, and kept apart; the first commit that only this
    clone has and that does not verify is the end.
    """
    kept = quarantine.read(ledger.state_dir)
    checker, base = checker_at(ledger, good, kept.strays)
    last = ledger.reader.commit(good)
    findings: list[Finding] = []
    own: set[str] | None = None
    for commit in oldest_first(ledger.repo, ledger.reader, tip, good):
        if isinstance(commit, str):
            break
        before = dict(checker.strays)
        found = checker.check(commit)
        if found:
            if own is None:
                own = _own(ledger, good, tip)
            if commit.oid in own:
                # What it did is turned into events, or left out.
                checker.strays.clear()
                checker.strays.update(before)
                checker.touched.pop(commit.oid, None)
                break
            findings += found
        last = commit
    checker.start_at(last)
    _keep(ledger, kept, base, checker)
    return Accepted(last, tuple(findings), checker)


def checker_at(
    ledger: View, known: str, kept: Sequence[Stray]
) -> tuple[Checker, tuple[Stray, ...]]:
    """Returns a checker that stands at a commit, and the strays that hold there."""
    reader = ledger.reader
    graph = _graph(ledger, known)
    commit = reader.commit(known)
    here = reader.commit(graph.tip).tree
    fold = Fold(reader, graph)
    changes = dict(changed_paths(reader, here, commit.tree))
    # What holds there may not be kept in the file any more, but still in the rows of the cache.
    rows = graph.every_stray()
    held = {stray.path for stray in kept}
    every = (*(stray for stray in rows if stray.path not in held), *kept)
    counting, holding = quarantine.laid_over(
        reader, every, known, commit.tree, changes, (stray.path for stray in rows)
    )
    for path, now in counting.items():
        _place(fold, reader, path, now)
    fold.strays_by_path.update(holding)
    checker = Checker(ledger.repo, reader, fold)
    checker.start_at(commit)
    return checker, tuple(holding.values())


def _graph(ledger: View, known: str) -> LedgerGraph:
    try:
        return ledger.graph()
    except Corrupt:
        # A hand has left there what is no ledger.
        snapshot = Snapshot(ledger.state_dir, lambda: ledger.reader)
        snapshot.refresh(known)
        return LedgerGraph(snapshot, lambda: ledger.reader)


def _place(fold: Fold, reader: objects.Reader, path: str, now: tuple[str, str] | None) -> None:
    """Says in a fold what counts at a path, which is not what the graph below it has."""
    oid = now[1] if now is not None and now[0] == objects.FILE else None
    place = parse_path(path)
    if place is None:
        fold.set_file(path, oid)
        return
    task = fold.get(place[0])
    if oid is None:
        fold.set_file(path, None)
        if task is not None and path_of(task) == path:
            fold.drop(task.id)
        return
    try:
        found, _ = parse(reader.blob(oid), path)
    except BadDocument:
        fold.set_file(path, None)
        if task is not None and path_of(task) == path:
            fold.drop(task.id)
        return
    fold.set_file(path, oid)
    if path_of(found) == path:
        fold.put(found)


def _judged(
    ledger: View, known: str | None, new: str, kept: Sequence[Stray], *, whole: bool = False
) -> tuple[tuple[Stray, ...], Checker, tuple[Finding, ...]]:
    reader = ledger.reader
    base: tuple[Stray, ...] = ()
    findings: list[Finding] = []
    try:
        if known is not None and ledger.is_there and not whole:
            checker, base = checker_at(ledger, known, kept)
            commits = oldest_first(ledger.repo, reader, new, known)
        else:
            checker = Checker(ledger.repo, reader)
            commits = oldest_first(ledger.repo, reader, new)
        is_old = known is not None and checker.last is None
        for commit in commits:
            if isinstance(commit, str):
                raise Corrupt(f"The commit {commit[:_SHOWN]} is missing.")
            if checker.last is None and not is_root(ledger.repo, commit.oid):
                raise Corrupt(
                    f"The history of {new[:_SHOWN]} is not one of a ledger: it begins with"
                    f" {commit.oid[:_SHOWN]}."
                )
            found = checker.check(commit)
            if not is_old:
                findings += found
            elif commit.oid == known:
                is_old = False
    except GitError as error:
        raise Corrupt(f"The history of {new[:_SHOWN]} cannot be read: {error}") from None
    return base, checker, tuple(findings)


def _keep(ledger: View, kept: Kept, base: Sequence[Stray], checker: Checker) -> None:
    """Keeps what holds where the checker began, where it is now, and where it has not been yet."""
    same = {one.stray: one.commit for one in checker.settled if one.is_same}
    before = [
        stray._replace(lifted=(*stray.lifted, same[stray])) if stray in same else stray
        for stray in base
    ]
    known = frozenset(base)
    new = [stray for stray in checker.strays.values() if stray not in known]
    # What has been fetched and is not on the branch yet holds neither there nor here.
    waiting = [
        stray
        for stray in kept.strays
        if stray not in known
        and checker.last is not None
        and not merging.is_ancestor(ledger.repo, stray.commit, checker.last)
    ]
    commits = dict.fromkeys((*kept.invalid, *checker.touched))
    after = quarantine.Kept(tuple(dict.fromkeys((*before, *waiting, *new))), tuple(commits))
    if after == kept:
        return
    try:
        quarantine.save(ledger.state_dir, after)
    except OSError as error:
        raise unwritable(error) from None
    if ledger.is_there:
        try:
            ledger.snapshot.renew()
        except Corrupt:
            # What is there now is no ledger; whoever goes on from here looks at another commit.
            pass


def _is_own(ledger: View, new: str) -> bool:
    """Tells whether it is what this clone has written or looked at before."""
    backup = ledger.reader.get(BACKUP)
    return backup is not None and backup.oid == new


def _own(ledger: View, good: str, tip: str) -> set[str]:
    """Returns the commits above a good one that no remote has, as far as is known here."""
    others = [f"^{oid}" for oid in origins.shared_tips(ledger)]
    return set(ledger.repo.text("rev-list", tip, f"^{good}", *others, "--").split())
