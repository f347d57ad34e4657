"""Compares and merges commits without touching anybody's checkout."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from gittasks.plumbing import versions
from gittasks.plumbing.errors import GitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gittasks.plumbing.process import Completed
    from gittasks.plumbing.repository import Repository

# Whoever merges in a temporary worktree commits nothing there, but git asks for a name.
_NOBODY = {
    "GIT_AUTHOR_NAME": "nobody",
    "GIT_AUTHOR_EMAIL": "nobody@localhost.invalid",
    "GIT_COMMITTER_NAME": "nobody",
    "GIT_COMMITTER_EMAIL": "nobody@localhost.invalid",
}


class MergeResult(NamedTuple):
    """The tree of a merge, or the paths that stand against it."""

    tree: str | None
    conflicts: tuple[str, ...]


class ChangedPath(NamedTuple):
    """A path that differs between two commits: added, deleted, modified or of another type."""

    status: str
    path: str


def merge_base(repo: Repository, a: str, b: str) -> str | None:
    """Returns the best common ancestor, None for unrelated histories."""
    done = repo.git("merge-base", a, b, check=False)
    if done.status > 1 or done.status < 0:
        raise _error("merge-base", done)
    return os.fsdecode(done.stdout).split("\n", 1)[0] or None


def is_ancestor(repo: Repository, a: str, b: str) -> bool:
    """Returns whether `a` is `b` or among its ancestors."""
    done = repo.git("merge-base", "--is-ancestor", a, b, check=False)
    if done.status not in (0, 1):
        raise _error("merge-base", done)
    return done.status == 0


def commits_between(repo: Repository, old: str, new: str) -> tuple[str, ...]:
    """Returns the commits of `new` that are not in `old`, oldest first."""
    text = repo.text("rev-list", "--topo-order", "--reverse", new, f"^{old}", "--")
    return tuple(text.split())


def changed_paths(repo: Repository, a: str, b: str) -> tuple[ChangedPath, ...]:
    """Returns what differs between two commits or trees, renames as deletion and addition."""
    done = repo.git("diff-tree", "-r", "-z", "--no-renames", "--name-status", a, b, "--")
    words = os.fsdecode(done.stdout).split("\0")
    return tuple(map(ChangedPath, words[0:-1:2], words[1::2]))


def merge_tree(repo: Repository, ours: str, theirs: str) -> MergeResult:
    """Merges two commits; the result is a tree that stands on no branch yet.

    A git without `merge-tree --write-tree` merges in a temporary worktree instead; the caller
    holds the lock that worktrees need.
    """
    if not versions.supports(repo, "merge-tree"):
        return merge_in_worktree(repo, ours, theirs)
    done = repo.git(
        "merge-tree",
        "--write-tree",
        "-z",
        "--name-only",
        "--no-messages",
        ours,
        theirs,
        check=False,
    )
    tree, *paths = os.fsdecode(done.stdout).split("\0")
    # Before 2.40 an unknown commit ends with 1 too, as a conflict does; then nothing is printed.
    if done.status not in (0, 1) or not tree:
        raise _error("merge-tree", done)
    if done.status:
        return MergeResult(None, tuple(dict.fromkeys(path for path in paths if path)))
    return MergeResult(tree, ())


def merge_in_worktree(repo: Repository, ours: str, theirs: str) -> MergeResult:
    """Merges two commits in a temporary worktree: slow, but every git can do it."""
    from gittasks.plumbing import worktrees

    path = os.path.join(repo.common_dir, "gittasks", f"merge-{os.getpid()}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    worktrees.add_detached(repo, path, ours, "gittasks: a merge")
    try:
        command = ("merge", "--no-commit", "--no-ff", "--no-verify-signatures", "-q", theirs)
        done = repo.git(*command, at=path, env=_NOBODY, check=False)
        unmerged = repo.git("diff", "--name-only", "-z", "--diff-filter=U", at=path)
        conflicts = tuple(path for path in os.fsdecode(unmerged.stdout).split("\0") if path)
        if conflicts:
            return MergeResult(None, conflicts)
        if done.status:
            raise _error("merge", done)
        return MergeResult(repo.text("write-tree", at=path), ())
    finally:
        worktrees.remove(repo, path, force=True)


def read_tree_update(
    repo: Repository, worktree_path: str, old: str, new: str, dry_run: bool
) -> None:
    """Moves index and files of a checkout from one commit to another, keeping local changes.

    Raises GitError, having changed nothing, where a local change or file stands in the way.
    """
    # Files that were only touched would count as changed.
    repo.git("update-index", "-q", "--refresh", at=worktree_path, check=False)
    only_look = ("-n",) if dry_run else ()
    repo.git("read-tree", *only_look, "-m", "-u", old, new, at=worktree_path)


def resume_read_tree(repo: Repository, worktree_path: str, old: str, new: str) -> None:
    """Ends a `read_tree_update` that was cut short, as by a kill or a full disk.

    git writes the index last, so files that have arrived look like somebody's own. Whatever has
    exactly the new content counts as arrived; a file that was cut off is written again. The
    index changes when all is done, so what fails can be tried once more.
    """
    import shutil

    where = ("rev-parse", "--path-format=absolute", "--git-path", "index")
    index = repo.text(*where, at=worktree_path)
    beside = f"{index}.gittasks-{os.getpid()}"
    _drop_dead_lock(f"{index}.lock")
    before = _signature(index)
    try:
        shutil.copyfile(index, beside)
        coming = _new_entries(repo, old, new)
        arrived = _arrived(repo, worktree_path, beside, coming)
        for row in coming:
            if row not in arrived and row.mode in _FILES:
                _drop_if_cut_off(repo, os.path.join(worktree_path, row.path), row.oid)
        env = {"GIT_INDEX_FILE": beside}
        shutil.copyfile(index, beside)
        _stage(repo, worktree_path, arrived, env)
        middle = _tree_with(repo, worktree_path, f"{beside}.tree", old, arrived)
        repo.git("update-index", "-q", "--refresh", at=worktree_path, env=env, check=False)
        repo.git("read-tree", "-m", "-u", middle, new, at=worktree_path, env=env)
        _install(beside, index, before)
    finally:
        for name in (beside, f"{beside}.lock", f"{beside}.tree", f"{beside}.tree.lock"):
            _unlink(name)


class _Entry(NamedTuple):
    mode: str
    oid: str
    path: str


_GONE = "000000"
_FILES = ("100644", "100755")
_DEAD_SECONDS = 10.0


def _new_entries(repo: Repository, old: str, new: str) -> list[_Entry]:
    done = repo.git("diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", old, new, "--")
    words = os.fsdecode(done.stdout).split("\0")
    rows = (line.split(" ") for line in words[0:-1:2])
    return [_Entry(row[1], row[3], path) for row, path in zip(rows, words[1::2], strict=True)]


def _stage(repo: Repository, at: str, rows: Sequence[_Entry], env: Mapping[str, str]) -> None:
    # Deletions first: a file may stand where a folder was.
    ordered = sorted(rows, key=lambda row: row.mode != _GONE)
    lines = b"".join(os.fsencode(f"{row.mode} {row.oid}\t{row.path}") + b"\0" for row in ordered)
    repo.git("update-index", "-z", "--index-info", stdin=lines, at=at, env=env)


def _arrived(repo: Repository, at: str, index: str, rows: Sequence[_Entry]) -> list[_Entry]:
    """Returns which files are as in these rows already, compared as git does it, filters and all."""
    env = {"GIT_INDEX_FILE": index}
    _stage(repo, at, rows, env)
    repo.git("update-index", "-q", "--refresh", at=at, env=env, check=False)
    done = repo.git("diff-files", "-z", "--name-only", at=at, env=env)
    differing = set(os.fsdecode(done.stdout).split("\0"))
    return [
        row
        for row in rows
        if (
            not os.path.lexists(os.path.join(at, row.path))
            if row.mode == _GONE
            else row.path not in differing
        )
    ]


def _tree_with(repo: Repository, at: str, index: str, old: str, rows: Sequence[_Entry]) -> str:
    """Returns the tree of a commit with some of its paths changed."""
    env = {"GIT_INDEX_FILE": index}
    repo.git("read-tree", old, at=at, env=env)
    _stage(repo, at, rows, env)
    return repo.text("write-tree", at=at, env=env)


def _install(beside: str, index: str, before: tuple[int, ...]) -> None:
    """Replaces an index as git does it, unless somebody else holds or has changed it."""
    lock = f"{index}.lock"
    try:
        os.link(beside, lock)
    except FileExistsError:
        words = f"{lock} exists: another git process works there, or was killed."
        raise GitError(("read-tree",), 128, words) from None
    if _signature(index) != before:
        os.unlink(lock)
        raise GitError(("read-tree",), 128, "Somebody else changed the index meanwhile.")
    os.rename(lock, index)


def _drop_dead_lock(path: str) -> None:
    """Removes the lock that a killed git has left: empty, and not touched for long."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return
    # Whoever waits for an editor under this lock has written the whole index into it.
    if not found.st_size and time.time() - found.st_mtime > _DEAD_SECONDS:
        _unlink(path)


def _signature(path: str) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _drop_if_cut_off(repo: Repository, path: str, oid: str) -> None:
    """Removes a file that holds only the beginning of a blob: nothing in it is anybody's own."""
    from gittasks.plumbing.objects import Reader

    if os.path.islink(path) or not os.path.isfile(path):
        return
    with Reader(repo) as reader:
        whole = reader.blob(oid)
    if os.path.getsize(path) < len(whole):
        with open(path, "rb") as file:
            begun = file.read()
        if whole.startswith(begun):
            os.unlink(path)


def _error(command: str, done: Completed) -> GitError:
    return GitError((command,), done.status, os.fsdecode(done.stderr))
