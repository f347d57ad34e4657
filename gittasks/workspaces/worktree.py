"""The worktree a task's branch is checked out in: made, verified, restored, taken away.

Everything that changes worktrees happens under one lock of the clone; a tree is handed out only
when it is whole, and goes only after what nobody committed has been put aside.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Busy, GittasksError, Refused
from gittasks.domain.requests import Snapshot
from gittasks.plumbing import refs, worktrees
from gittasks.plumbing.errors import GitError, GitTimeout, LockTimeout, NotARepository
from gittasks.plumbing.locks import FileLock
from gittasks.workspaces import disposal, leftovers, provisions, quarantine
from gittasks.workspaces.branch import HEADS, LOCK_REASON
from gittasks.workspaces.leftovers import Kept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.plumbing.repository import Repository
    from gittasks.workspaces.places import Places

_INITIALIZING = "initializing"
_LARGE_INDEX = 256 << 10
"""From this size of its index on, a few thousand files, nobody waits for a tree to be removed."""
_ABANDONED = 10.0
"""For how many seconds something half made may still be in the making."""


class Tree(NamedTuple):
    """A worktree of a task as it stands on this host; `problem` is None for a sound one."""

    task: str
    path: str
    branch: str | None
    head: str | None
    problem: str | None = None


class Removed(NamedTuple):
    """What became of a tree: whether there was one, and where leftover work was put."""

    existed: bool
    kept: Kept = Kept()


def ensure(
    repo: Repository,
    places: Places,
    task: str,
    branch: str,
    *,
    fresh: bool = True,
    lock_timeout: float = 30,
    now: int = 0,
    notes: list[str] | None = None,
) -> str:
    """Returns the path of a whole tree of the task on its branch, made or restored if need be.

    With `fresh` the tree is for a new holder: one that stands elsewhere than on the branch, or in
    the middle of a merge or rebase, is put aside and made anew. Without, the holder's own state
    is left as it is. `notes` gets a sentence for everything that was put aside.
    """
    path = places.tree(task)
    with locked(places, lock_timeout):
        if fresh:
            told = quarantine.close(repo, places, task)
            if notes is not None:
                notes += told
        usable = _is_usable(repo, path, HEADS + branch, fresh=fresh)
        if not usable and _reconnect(repo, path):
            usable = _is_usable(repo, path, HEADS + branch, fresh=fresh)
        made = not usable
        if made:
            kept = _make(repo, places, task, branch, now)
            if notes is not None:
                notes += kept.sentences
        else:
            _catch_up(repo, path, HEADS + branch)
    if made:
        provisions.copy_files(repo, path)
    _set_up(repo, places, task, new=made)
    return path


def is_whole(repo: Repository, path: str) -> bool:
    """Tells whether a tree of this repository stands there and is not half made."""
    git_dir = _git_dir(repo, path)
    return git_dir is not None and not _half_made(git_dir)


def locked(places: Places, timeout: float) -> _Locked:
    """Returns the lock around everything that changes the worktrees of this clone."""
    return _Locked(FileLock(places.worktree_lock(), timeout, "lock for worktrees"))


class _Locked:
    """A file lock whose time-out is told the way commands tell it."""

    __slots__ = ("_lock",)

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        try:
            self._lock.acquire()
        except LockTimeout as error:
            raise Busy(str(error), "Try again in a moment.") from None

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _is_usable(repo: Repository, path: str, ref: str, *, fresh: bool) -> bool:
    """Tells whether a tree is registered, whole and, for a new holder, on its branch."""
    git_dir = _git_dir(repo, path)
    if git_dir is None or _half_made(git_dir):
        return False
    if not fresh:
        return True
    return _head_of(git_dir) == ref and worktrees.in_progress(git_dir) is None


def _git_dir(repo: Repository, path: str) -> str | None:
    """Returns the git directory of a registered tree of this repository, None of anything else."""
    try:
        git_dir = worktrees.git_dir_of(repo, path)
    except (NotARepository, OSError):
        return None
    home = os.path.join(repo.common_dir, "worktrees")
    if os.path.dirname(git_dir) != home or not os.path.isdir(git_dir):
        return None
    return git_dir


def _half_made(git_dir: str) -> bool:
    """Tells whether making the tree was interrupted; its files would all count as deleted."""
    return _is_initializing(git_dir) or not os.path.exists(os.path.join(git_dir, "index"))


def _is_initializing(git_dir: str) -> bool:
    return _text(os.path.join(git_dir, "locked")) == _INITIALIZING


def _head_of(git_dir: str) -> str | None:
    return (_text(os.path.join(git_dir, "HEAD")) or "").removeprefix("ref: ") or None


def _text(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read()).strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _make(repo: Repository, places: Places, task: str, branch: str, now: int) -> Kept:
    path = places.tree(task)
    kept = _clear(repo, places, task, now)
    os.makedirs(places.folder(task), exist_ok=True)
    try:
        try:
            worktrees.add(repo, path, HEADS + branch, lock_reason=LOCK_REASON + task)
        except GitError:
            if not _forget_another_s(repo, HEADS + branch):
                raise
            worktrees.add(repo, path, HEADS + branch, lock_reason=LOCK_REASON + task)
    except GitTimeout:
        # What it has begun is made anew the next time.
        raise
    except GitError as error:
        raise _not_made(repo, branch, path, error, task) from None
    return kept


def _forget_another_s(repo: Repository, ref: str) -> bool:
    """Drops the registration of a branch that a copy of a repository took from the original."""
    home = os.path.join(repo.common_dir, "worktrees")
    for name in sorted(os.listdir(home)) if os.path.isdir(home) else ():
        folder = os.path.join(home, name)
        registered = _text(os.path.join(folder, "gitdir"))
        if registered and _head_of(folder) == ref:
            path = os.path.dirname(os.path.join(folder, registered))
            if worktrees.is_of_another(repo, path):
                _unregister(folder)
                return True
    return False


def _not_made(
    repo: Repository, branch: str, path: str, error: GitError, task: str
) -> GittasksError:
    for one in worktrees.list(repo):
        if one.branch == HEADS + branch and one.path != path:
            return Refused(
                f"The branch {branch} is checked out in {one.path}.",
                f"Check another branch out there: git -C {one.path} switch --detach.",
                task,
            )
    return GittasksError(
        f"The worktree {path} cannot be made: {error}",
        "Run `git tasks worktree repair` when the cause is gone.",
        task,
    )


def _clear(repo: Repository, places: Places, task: str, now: int) -> Kept:
    """Frees the place of a tree: what is broken goes, what is foreign stays and is refused."""
    path = places.tree(task)
    if _reconnect(repo, path):
        git_dir = _git_dir(repo, path)
        kept = _saved(repo, places, task, now)
        _take_away(places, path, git_dir)
        return kept
    for registered in _registrations(repo, path):
        # The folder is gone, or only its .git; other trees that are gone keep their registration.
        _unregister(registered)
    if not os.path.lexists(path) or (os.path.isdir(path) and not os.listdir(path)):
        return Kept()
    if _names_our_worktree(repo, path):
        return Kept(leftovers.set_aside(places, task, now))
    raise Refused(
        f"The folder {path} exists and is not a worktree of this repository.",
        f"Move it away: mv {path} {path}.old.",
        task,
    )


def _saved(repo: Repository, places: Places, task: str, now: int) -> Kept:
    """Puts aside what a tree holds that is nowhere else."""
    path = places.tree(task)
    git_dir = _git_dir(repo, path)
    if git_dir is None or _is_initializing(git_dir):
        return Kept()
    if _half_made(git_dir):
        # It was whole once: there may be work in it that nothing can be compared with.
        return Kept(leftovers.set_aside(places, task, now))
    return leftovers.keep(repo, places, task, now)


def _reconnect(repo: Repository, path: str) -> bool:
    """Connects a tree again that was moved with its repository, or that lost its `.git` file.

    Tells whether it is a tree of this repository now.
    """
    if _git_dir(repo, path) is not None:
        return True
    git_dir = _former_git_dir(repo, path)
    if git_dir is None or not os.path.exists(os.path.join(git_dir, "HEAD")):
        return False
    worktrees.connect(path, git_dir)
    return _git_dir(repo, path) is not None


def _former_git_dir(repo: Repository, path: str) -> str | None:
    """Returns the git directory here that was a tree's before the two lost each other."""
    if os.path.isdir(path) and not os.path.lexists(os.path.join(path, ".git")):
        # Whatever stands there now, git takes it for the worktree; an empty folder is made anew.
        return next(_registrations(repo, path), None) if os.listdir(path) else None
    folder, name = _named_in(path)
    moved = os.path.join(repo.common_dir, "worktrees", name)
    if os.path.exists(folder) or not name or not os.path.isdir(moved):
        return None
    registered = _text(os.path.join(moved, "gitdir"))
    used = registered and os.path.exists(os.path.join(moved, registered))
    return None if used else moved


def _names_our_worktree(repo: Repository, path: str) -> bool:
    """Tells whether a `.git` file points at a worktree of this repository, even a lost one."""
    folder, name = _named_in(path)
    if not name:
        return False
    if os.path.realpath(folder) == os.path.join(repo.common_dir, "worktrees"):
        return True
    # The repository was moved, so that what the file names is nowhere.
    moved = os.path.join(repo.common_dir, "worktrees", name)
    return not os.path.exists(folder) and os.path.isdir(moved)


def _named_in(path: str) -> tuple[str, str]:
    """Returns folder and name of the worktree that a `.git` file points at, else nothing twice."""
    target = (_text(os.path.join(path, ".git")) or "").removeprefix("gitdir: ")
    folder, name = os.path.split(os.path.join(path, target))
    if not target or os.path.basename(folder) != "worktrees":
        return "", ""
    return folder, name


def _registrations(repo: Repository, path: str) -> Iterator[str]:
    """Yields every git directory that is registered for a path."""
    home = os.path.join(repo.common_dir, "worktrees")
    wanted = os.path.realpath(os.path.join(path, ".git"))
    for name in sorted(os.listdir(home)) if os.path.isdir(home) else ():
        registered = _text(os.path.join(home, name, "gitdir"))
        # Since 2.48 git can write it relative to where it stands.
        if registered and os.path.realpath(os.path.join(home, name, registered)) == wanted:
            yield os.path.join(home, name)


def _take_away(places: Places, path: str, git_dir: str | None) -> None:
    """Removes a tree and its registration, whole or half made."""
    if git_dir is not None and _size(os.path.join(git_dir, "index")) > _LARGE_INDEX:
        disposal.remove_later(path, places.root)
    else:
        disposal.remove(path)
    if git_dir is not None:
        _unregister(git_dir)


def _unregister(git_dir: str) -> None:
    disposal.remove(git_dir)
    try:
        os.rmdir(os.path.dirname(git_dir))
    except OSError:
        # Other worktrees have theirs in it.
        pass


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _catch_up(repo: Repository, path: str, ref: str) -> None:
    """Takes a tree along whose branch a claim has moved to the present base under it."""
    moves = refs.reflog(repo, ref)
    if not moves or moves[0].old == repo.null_oid or not moves[0].message.startswith("gittasks: "):
        return
    old, new = moves[0].old, moves[0].new
    done = repo.git("diff-index", "--cached", "--quiet", new, "--", at=path, check=False)
    if done.status != 1:
        return
    index = repo.text("write-tree", at=path, check=False)
    if index and index == repo.text("rev-parse", "--verify", "-q", f"{old}^{{tree}}", check=False):
        from gittasks.plumbing import merging

        merging.read_tree_update(repo, path, old, new, dry_run=False)


def _set_up(repo: Repository, places: Places, task: str, *, new: bool) -> None:
    """Runs the clone's set-up command in a new tree, and again until it has succeeded."""
    pending = os.path.join(places.folder(task), ".setup-pending")
    if not provisions.has_command(repo) or not (new or os.path.exists(pending)):
        return
    with open(pending, "wb"):
        pass
    provisions.set_up(repo, places, task, places.tree(task))
    os.unlink(pending)


def snapshot(repo: Repository, path: str, branch: str) -> Snapshot:
    """Returns what a tree looks like now, asked with one process where it is on its branch."""
    done = repo.git(
        *("-c", "status.showUntrackedFiles=all", "status", "--porcelain=v2", "--branch", "-z"),
        *("--untracked-files=all", "--no-renames", "--ignore-submodules=none", "--no-ahead-behind"),
        at=path,
    )
    head = on = None
    lines = []
    for row in os.fsdecode(done.stdout).split("\0"):
        if row.startswith("# branch.oid "):
            head = row.removeprefix("# branch.oid ")
        elif row.startswith("# branch.head "):
            on = row.removeprefix("# branch.head ")
        elif row and not row.startswith("#"):
            lines.append(_status_line(row))
    head = None if head == "(initial)" else head
    on = None if on in (None, "(detached)") else HEADS + on
    tip = head if on == HEADS + branch else refs.read(repo, HEADS + branch)
    return Snapshot(on, head, tip, tuple(sorted(lines)))


def _status_line(row: str) -> str:
    kind, rest = row[0], row[2:]
    if kind in "?!":
        return f"{kind * 2} {rest}"
    fields = rest.split(" ", 9 if kind == "u" else 7)
    return f"{fields[0].replace('.', ' ')} {fields[-1]}"


def add_spare(
    repo: Repository, places: Places, name: str, commit: str, *, lock_timeout: float = 30
) -> str:
    """Makes a tree of a commit on no branch, for work of the tool's own, and returns its path."""
    path = _spare(places, name)
    with locked(places, lock_timeout):
        _clear_spare(repo, places, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        worktrees.add_detached(repo, path, commit, LOCK_REASON + name)
    return path


def drop_spare(repo: Repository, places: Places, name: str, *, lock_timeout: float = 30) -> None:
    """Removes a spare tree with all that was made in it."""
    path = _spare(places, name)
    with locked(places, lock_timeout):
        _clear_spare(repo, places, path)
        for folder in (os.path.dirname(path), places.root):
            try:
                os.rmdir(folder)
            except OSError:
                return


def _spare(places: Places, name: str) -> str:
    return os.path.join(places.root, f"landing-{name}", "tree")


def _clear_spare(repo: Repository, places: Places, path: str) -> None:
    if os.path.lexists(path):
        _take_away(places, path, _git_dir(repo, path))
    for registered in _registrations(repo, path):
        _unregister(registered)


def list_trees(repo: Repository, places: Places) -> tuple[Tree, ...]:
    """Returns the trees of tasks on this host, sound or not."""
    registered = {one.path: one for one in worktrees.list(repo)}
    names = set()
    if os.path.isdir(places.root):
        folders = (os.path.join(places.root, name) for name in os.listdir(places.root))
        names = {task for path in folders if (task := places.task_of(path)) is not None}
        names = {name for name in names if os.path.lexists(places.tree(name))}
    names |= {task for path in registered if (task := places.task_of(path)) is not None}
    found = []
    for name in sorted(names):
        path = places.tree(name)
        one = registered.get(os.path.realpath(path)) or registered.get(path)
        problem = _problem(repo, path, is_registered=one is not None)
        branch = one.branch.removeprefix(HEADS) if one and one.branch else None
        found.append(Tree(name, path, branch, one.head if one else None, problem))
    return tuple(found)


def _problem(repo: Repository, path: str, *, is_registered: bool) -> str | None:
    if not os.path.lexists(path):
        return "its folder is gone"
    git_dir = _git_dir(repo, path)
    if git_dir is None:
        return "it is not connected" if is_registered else "it is no worktree of this repository"
    if _is_initializing(git_dir):
        return "it was left half made"
    return "its index is gone" if _half_made(git_dir) else None


def repair(repo: Repository, places: Places, *, lock_timeout: float = 30) -> tuple[str, ...]:
    """Connects moved trees again and removes half-made ones; returns what was done."""
    done = []
    with locked(places, lock_timeout):
        for tree in list_trees(repo, places):
            if tree.problem is None:
                continue
            git_dir = _git_dir(repo, tree.path)
            if git_dir is not None and _is_initializing(git_dir):
                _take_away(places, tree.path, git_dir)
                done.append(f"Removed the half-made worktree {tree.path}.")
            elif os.path.lexists(tree.path) and _reconnect(repo, tree.path):
                done.append(f"Connected the worktree {tree.path} again.")
        for registered in _abandoned(repo):
            _unregister(registered)
            done.append(f"Removed the registration {registered}, which was never finished.")
        if disposal.sweep(places.root):
            done.append(f"Removed what was left of former worktrees in {places.root}.")
    return tuple(done)


def _abandoned(repo: Repository) -> Iterator[str]:
    """Yields registrations that were interrupted before they said where their tree is."""
    import time

    home = os.path.join(repo.common_dir, "worktrees")
    for name in sorted(os.listdir(home)) if os.path.isdir(home) else ():
        folder = os.path.join(home, name)
        unnamed = _text(os.path.join(folder, "gitdir")) is None
        if unnamed and _text(os.path.join(folder, "locked")) == _INITIALIZING:
            age = time.time() - os.stat(folder).st_mtime  # noqa: TID251 - the age of a file
            if age > _ABANDONED:
                yield folder


def remove(
    repo: Repository,
    places: Places,
    task: str,
    *,
    now: int = 0,
    lock_timeout: float = 30,
    assignment_sent: str | None = None,
) -> Removed:
    """Takes the tree of a task away; what nobody committed, ignored files included, is kept.

    `assignment_sent` is the text ASSIGNMENT.md was dispatched with, where what its author wrote
    since may be nowhere else; without, the file is taken as submitted.
    """
    with locked(places, lock_timeout):
        quarantine.close(repo, places, task)
        path = places.tree(task)
        git_dir = _git_dir(repo, path)
        kept = _saved(repo, places, task, now)
        folder = leftovers.keep_assignment(places, task, assignment_sent, kept.folder, now)
        if git_dir is not None:
            _take_away(places, path, git_dir)
        else:
            for registered in _registrations(repo, path):
                _unregister(registered)
        _remove_own_files(places, task)
    unsent = folder is not None and os.path.exists(os.path.join(folder, "ASSIGNMENT.md"))
    kept = kept._replace(folder=folder, only_ignored=kept.only_ignored and not unsent)
    return Removed(git_dir is not None, kept)


def _remove_scratch(path: str) -> None:
    """Removes what the programs of agents kept beside the tree: temporary files, their own state."""
    if os.path.islink(path) or not os.path.isdir(path):
        return
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def _remove_own_files(places: Places, task: str) -> None:
    for path in (
        places.assignment(task),
        places.draft(task),
        os.path.join(places.folder(task), ".setup-pending"),
    ):
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
    _remove_scratch(os.path.join(places.folder(task), "agent"))
    for folder in (places.folder(task), places.root):
        try:
            os.rmdir(folder)
        except OSError:
            # Something else stands in it.
            return
