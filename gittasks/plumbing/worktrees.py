"""Adds, inspects and removes worktrees; a new one is verified before anyone gets it.

None of this is safe in git when done by several at once: callers hold one lock around it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from gittasks.plumbing import refs, versions
from gittasks.plumbing.errors import GitError, NotARepository

if TYPE_CHECKING:
    import builtins

    from gittasks.plumbing.repository import Repository

Operation = Literal["rebase", "am", "merge", "cherry-pick", "revert", "bisect"]

_OPERATIONS: tuple[tuple[str, Operation], ...] = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)

# A setting that hides untracked files makes git delete them with the worktree.
_SHOW_ALL = ("-c", "status.showUntrackedFiles=all")


class Worktree(NamedTuple):
    """A worktree as git registered it; the first of a list is the main one."""

    path: str
    head: str | None
    branch: str | None
    detached: bool
    bare: bool
    locked: str | None
    prunable: str | None


class StatusLine(NamedTuple):
    """One path that differs, with git's two letters for index and files."""

    code: str
    path: str


def list(repo: Repository) -> tuple[Worktree, ...]:
    """Returns every registered worktree, the main one first.

    A repository that was copied with its git directory has registrations of the original's
    worktrees, too; those are not told.
    """
    if versions.supports(repo, "worktree-list-z"):
        blocks = repo.text("worktree", "list", "--porcelain", "-z").split("\0\0")
        separator = "\0"
    else:
        blocks = repo.text("worktree", "list", "--porcelain").split("\n\n")
        separator = "\n"
    found = [
        _worktree(block.split(separator), repo.null_oid) for block in blocks if block.strip("\0\n")
    ]
    if found and found[0].path == repo.common_dir == repo.git_dir and repo.worktree:
        # Of a git directory elsewhere git does not know the checkout, but we stand in it.
        found[0] = found[0]._replace(path=repo.worktree)
    return tuple(one for one in found if not is_of_another(repo, one.path))


def _worktree(lines: builtins.list[str], null_oid: str) -> Worktree:
    facts = dict.fromkeys(("worktree", "HEAD", "branch", "locked", "prunable"), "")
    present = set()
    for line in lines:
        key, _, value = line.partition(" ")
        facts[key] = value
        present.add(key)
    return Worktree(
        path=facts["worktree"],
        head=None if facts["HEAD"] in ("", null_oid) else facts["HEAD"],
        branch=facts["branch"] or None,
        detached="detached" in present,
        bare="bare" in present,
        locked=facts["locked"] if "locked" in present else None,
        prunable=facts["prunable"] if "prunable" in present else None,
    )


def add(
    repo: Repository,
    path: str,
    branch: str,
    *,
    lock_reason: str,
    create_at: str | None = None,
) -> None:
    """Checks a branch, given by its full name, out into a new folder.

    With `create_at`, the id of a commit, the branch is made there first.
    """
    short = branch.removeprefix("refs/heads/")
    if short == branch or not short:
        raise ValueError(f"{branch!r} is not the full name of a branch.")
    if create_at is None:
        # A short name may be a tag as well; git checks the branch out, and we look afterwards.
        _add(repo, path, lock_reason, ("--", path, short))
    else:
        _require_oid(repo, create_at)
        _add(repo, path, lock_reason, ("--no-track", "-b", short, "--", path, create_at))
    verify(repo, path, refs.Head(branch, create_at or refs.read(repo, branch)))


def add_detached(repo: Repository, path: str, oid: str, lock_reason: str) -> None:
    """Checks a commit out into a new folder, on no branch."""
    _require_oid(repo, oid)
    _add(repo, path, lock_reason, ("--detach", "--", path, oid))
    verify(repo, path, refs.Head(None, oid))


def remove(repo: Repository, path: str, force: bool = False) -> None:
    """Removes a worktree; without `force` git refuses if anything in it would be lost."""
    unlock(repo, path)
    arguments = ("--force", "--force") if force else ()
    repo.git(*_SHOW_ALL, "worktree", "remove", *arguments, "--", path)


def lock(repo: Repository, path: str, reason: str) -> None:
    """Protects a worktree from being pruned while its folder is not there."""
    repo.git("worktree", "lock", f"--reason={reason}", "--", path)


def unlock(repo: Repository, path: str) -> None:
    """Takes the lock from a worktree; one without lock is fine."""
    done = repo.git("worktree", "unlock", "--", path, check=False)
    if done.status and b"is not locked" not in done.stderr:
        raise GitError(("worktree", "unlock"), done.status, os.fsdecode(done.stderr))


def prune(repo: Repository) -> None:
    """Forgets the worktrees whose folders are gone, except the locked ones."""
    repo.git("worktree", "prune", "--expire=now")


def connect(path: str, git_dir: str) -> None:
    """Lets a worktree and its git directory name each other again after one of them was moved.

    `git worktree repair` does it to all worktrees, in a copied repository also to the original's.
    """
    for file, text in (
        (os.path.join(path, ".git"), f"gitdir: {git_dir}\n"),
        (os.path.join(git_dir, "gitdir"), os.path.join(path, ".git") + "\n"),
    ):
        beside = f"{file}.{os.getpid()}"
        with open(beside, "wb") as target:
            target.write(os.fsencode(text))
        os.rename(beside, file)


def is_of_another(repo: Repository, path: str) -> bool:
    """Tells whether what stands at a path is the worktree of another repository."""
    try:
        git_dir = git_dir_of(repo, path)
    except (NotARepository, OSError):
        return False
    if git_dir == repo.common_dir or not os.path.isdir(git_dir):
        return False
    return os.path.dirname(git_dir) != os.path.join(repo.common_dir, "worktrees")


def git_dir_of(repo: Repository, path: str) -> str:
    """Returns the git directory of a worktree, without asking git."""
    place = os.path.join(path, ".git")
    try:
        with open(place, "rb") as file:
            text = os.fsdecode(file.read()).removesuffix("\n")
    except IsADirectoryError:
        return os.path.realpath(place)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.realpath(path) == repo.common_dir:
            return repo.common_dir
        raise NotARepository((), 128, f"{path} is not a worktree") from None
    target = text.removeprefix("gitdir: ")
    if target == text:
        raise NotARepository((), 128, f"{place} does not name a git directory")
    return os.path.realpath(os.path.join(path, target))


def in_progress(git_dir: str) -> Operation | None:
    """Returns what a person or an agent began in the worktree of a git directory."""
    for name, operation in _OPERATIONS:
        if os.path.exists(os.path.join(git_dir, name)):
            return operation
    return None


def status(repo: Repository, path: str, ignored: bool = False) -> tuple[StatusLine, ...]:
    """Returns what differs in a worktree, untracked files included; ignored ones on demand."""
    done = repo.git(
        *_SHOW_ALL,
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        "--no-renames",
        "--ignore-submodules=none",
        f"--ignored={'matching' if ignored else 'no'}",
        at=path,
    )
    lines = os.fsdecode(done.stdout).split("\0")
    return tuple(StatusLine(line[:2], line[3:]) for line in lines if line)


def _add(repo: Repository, path: str, reason: str, arguments: tuple[str, ...]) -> None:
    # The sparse settings of the creating worktree are not for this one.
    repo.git(
        "-c",
        "core.sparseCheckout=false",
        "worktree",
        "add",
        "--quiet",
        "--lock",
        f"--reason={reason}",
        *arguments,
    )
    if repo.config.get_bool("core.sparseCheckout", False):
        _make_whole(repo, path)


def _make_whole(repo: Repository, path: str) -> None:
    """Gives the worktree patterns of its own that take everything."""
    info = os.path.join(git_dir_of(repo, path), "info")
    os.makedirs(info, exist_ok=True)
    with open(os.path.join(info, "sparse-checkout"), "w", encoding="ascii") as file:
        file.write("/*\n")


def verify(repo: Repository, path: str, expected: refs.Head) -> None:
    """Raises GitError unless a worktree is complete and stands where it should."""
    git_dir = git_dir_of(repo, path)
    problem = None
    if _locked_as(git_dir) == "initializing" or os.path.exists(os.path.join(git_dir, "index.lock")):
        problem = "is not complete"
    elif (found := refs.head(repo, at=path)) != expected:
        problem = (
            f"stands at {found.branch or found.oid} instead of {expected.branch or expected.oid}"
        )
    else:
        damaged = _damaged(repo, path)
        if damaged:
            problem = f"was not checked out as a whole: {damaged[0]} differs"
    if problem is not None:
        raise GitError(("worktree", "add"), 128, f"the new worktree {path} {problem}")


def _damaged(repo: Repository, path: str) -> tuple[str, ...]:
    """Returns what is staged or missing in a fresh worktree.

    Line ends and filters may make a fresh file differ, which is no damage; so none is opened, as
    `status` would open each that is as new as the index.
    """
    staged = repo.git("diff-index", "--cached", "--name-only", "-z", "HEAD", "--", at=path)
    gone = repo.git("ls-files", "--deleted", "-z", at=path)
    return tuple(filter(None, os.fsdecode(staged.stdout + gone.stdout).split("\0")))


def _locked_as(git_dir: str) -> str | None:
    try:
        with open(os.path.join(git_dir, "locked"), "rb") as file:
            return os.fsdecode(file.read()).strip()
    except FileNotFoundError:
        return None


def _require_oid(repo: Repository, oid: str) -> None:
    if len(oid) != repo.oid_length:
        raise ValueError(f"{oid!r} is not the id of a commit.")
