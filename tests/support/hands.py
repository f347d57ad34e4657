"""Commits to a ledger as somebody with git and an editor would: any message, any files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gittasks.ledger.ledger import Ledger
from gittasks.plumbing import objects, refs
from tests.support.builders import ACTOR, BRANCH


def a_commit(
    ledger: Ledger,
    message: bytes,
    files: Mapping[str, bytes | None],
    *,
    parent: str | None = None,
    mode: str = objects.FILE,
    more_parents: Sequence[str] = (),
) -> str:
    """Writes a commit on top of another, by default of the branch, which stays where it is."""
    repo = ledger.repo
    above = ledger.reader.commit(parent or refs.read(repo, BRANCH) or "")
    blobs = {
        path: data if data is None else objects.draft(repo, "blob", data)
        for path, data in files.items()
    }
    rows = {path: None if one is None else (mode, one.oid) for path, one in blobs.items()}
    tree, trees = objects.graft(ledger.reader, repo, above.tree, rows)
    parents = [above.oid, *more_parents]
    commit = objects.draft(
        repo, "commit", objects.commit_bytes(tree, parents, ACTOR, ACTOR, message)
    )
    objects.write(repo, [*(b for b in blobs.values() if b is not None), *trees, commit])
    return commit.oid


def commit_by_hand(
    ledger: Ledger,
    message: bytes,
    files: Mapping[str, bytes | None],
    *,
    mode: str = objects.FILE,
    more_parents: Sequence[str] = (),
) -> str:
    """Puts such a commit on the branch."""
    before = refs.read(ledger.repo, BRANCH)
    oid = a_commit(ledger, message, files, mode=mode, more_parents=more_parents)
    refs.compare_and_swap(ledger.repo, BRANCH, oid, before, "by hand")
    return oid
