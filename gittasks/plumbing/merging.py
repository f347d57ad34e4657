"""Compares and merges commits without touching anybody's checkout."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.plumbing import versions
from gittasks.plumbing.errors import GitError

if TYPE_CHECKING:
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


def _error(command: str, done: Completed) -> GitError:
    return GitError((command,), done.status, os.fsdecode(done.stderr))
