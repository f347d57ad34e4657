"""Reads refs, and moves them only from a value that the caller names.

Every name is a full one: with a short one git would guess. There is no way here to write a ref
without its expected value.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.plumbing.errors import GitError, NotARepository, ObjectMissing, RefLocked, RefMoved

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gittasks.plumbing.process import Completed
    from gittasks.plumbing.repository import Repository

# As many names as surely fit on one command line.
_AT_ONCE = 500

# Refs every worktree has for itself.
_PER_WORKTREE = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")


class Head(NamedTuple):
    """Where a checkout stands: on a branch (which may be unborn) or on a commit."""

    branch: str | None
    oid: str | None


class Change(NamedTuple):
    """One ref's move: `new` None deletes it, `old` None says that it must not exist."""

    name: str
    new: str | None
    old: str | None


class ReflogEntry(NamedTuple):
    """One move of a ref; an id of zeros stands for "not there"."""

    old: str
    new: str
    message: str


def read(repo: Repository, name: str) -> str | None:
    """Returns the id a ref holds; None if there is no such ref or it is broken."""
    return read_many(repo, (name,))[name]


def read_many(repo: Repository, names: Iterable[str]) -> dict[str, str | None]:
    """Returns the id of each ref, None for one that is not there."""
    wanted = dict.fromkeys(names)
    for name in wanted:
        _require_full(name)
    result: dict[str, str | None] = dict(wanted)
    if "HEAD" in result:
        result["HEAD"] = head(repo).oid
    patterns = [name for name in result if name != "HEAD"]
    for at in range(0, len(patterns), _AT_ONCE):
        # A pattern also matches what is below it; only the exact names count.
        for name, oid in repo.ref_ids(patterns[at : at + _AT_ONCE]).items():
            if name in result:
                result[name] = oid
    return result


def list(repo: Repository, prefix: str) -> dict[str, str]:
    """Returns every ref below a prefix such as `refs/heads/task/`, sorted by name."""
    _require_full(prefix)
    return {
        name: oid
        for name, oid in repo.ref_ids([prefix.rstrip("/")]).items()
        if name.startswith(prefix)
    }


def head(repo: Repository, at: str | None = None) -> Head:
    """Returns where HEAD stands, here or in the worktree `at`; works on an unborn branch."""
    done = repo.git("rev-parse", "HEAD", "--symbolic-full-name", "HEAD", "--", check=False, at=at)
    lines = os.fsdecode(done.stdout).split("\n")
    if not done.status and (lines[1] == "HEAD" or lines[1].startswith("refs/")):
        return Head(None if lines[1] == "HEAD" else lines[1], lines[0])
    # Unborn, broken, or ambiguous beside another ref of that name.
    oid = repo.git("rev-parse", "--verify", "-q", "HEAD", check=False, at=at)
    found = repo.git("symbolic-ref", "-q", "HEAD", check=False, at=at)
    if found.status not in (0, 1):
        raise _failure(("symbolic-ref", "HEAD"), found)
    branch, commit = (os.fsdecode(one.stdout).removesuffix("\n") or None for one in (found, oid))
    return Head(branch, commit)


def detach(repo: Repository, git_dir: str, oid: str, message: str) -> None:
    """Lets HEAD of a worktree, given by its git directory, leave its branch where it is at `oid`."""
    command = ("update-ref", "--no-deref", "-m", message, "HEAD", oid, oid)
    repo.git(f"--git-dir={git_dir}", *command)


def attach(repo: Repository, git_dir: str, branch: str, message: str) -> None:
    """Puts HEAD of a worktree, given by its git directory, on a branch; no file changes."""
    _require_full(branch)
    repo.git(f"--git-dir={git_dir}", "symbolic-ref", "-m", message, "HEAD", branch)


def followed(repo: Repository, name: str) -> str:
    """Returns the ref that a symbolic ref stands for, in full; any other ref is itself."""
    _require_full(name)
    done = repo.git("symbolic-ref", "-q", name, check=False)
    return os.fsdecode(done.stdout).removesuffix("\n") or name


def compare_and_swap(
    repo: Repository, name: str, new: str | None, old: str | None, message: str
) -> None:
    """Moves one ref from `old` (None: it must not exist) to `new` (None: delete it)."""
    transaction(repo, (Change(name, new, old),), message)


def transaction(repo: Repository, changes: Sequence[Change], message: str) -> None:
    """Moves several refs at once, or none; raises RefMoved or RefLocked where that is why.

    Loose refs are renamed one after the other: a process killed in between has moved only some.
    """
    if not changes:
        return
    for change in changes:
        _require_full(change.name)
        if change.new is None and change.old is None:
            raise ValueError(f"{change.name} would be deleted without an expected value.")
    lines = [b"start\0", *(_instruction(repo, change) for change in changes)]
    lines += [b"prepare\0", b"commit\0"]
    # A reflog message is one line.
    note = " ".join(message.split())
    command = ("update-ref", "--stdin", "-z", "--create-reflog", "-m", note)
    done = repo.git(*command, stdin=b"".join(lines), check=False)
    if done.status:
        raise _why(repo, changes, command, done)


def reflog(repo: Repository, name: str) -> tuple[ReflogEntry, ...]:
    """Returns the moves of a ref, newest first."""
    _require_full(name)
    if not is_reftable(repo):
        # Only the file tells both ids of a line, and it speaks for a broken ref too.
        return reflog_file(repo, name)
    done = repo.git("log", "-g", "-z", "--format=%H%x01%gs", name, "--", check=False)
    lines = [line.partition("\x01") for line in os.fsdecode(done.stdout).split("\0") if line]
    ids = [oid.strip("\n") for oid, _, _ in lines]
    before = [*ids[1:], repo.null_oid]
    return tuple(
        ReflogEntry(old, new, text)
        for old, new, (_, _, text) in zip(before, ids, lines, strict=bool(ids))
    )


def reflog_file(repo: Repository, name: str) -> tuple[ReflogEntry, ...]:
    """Returns what the reflog file of a ref says, newest first; works when the ref is broken."""
    _require_full(name)
    try:
        with open(os.path.join(_home(repo, name), "logs", name), "rb") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return ()
    entries = []
    for line in reversed(lines):
        ids, _, text = line.partition(b"\t")
        words = os.fsdecode(ids).split(" ", 2)
        if len(words) == 3 and all(len(word) == repo.oid_length for word in words[:2]):
            entries.append(ReflogEntry(words[0], words[1], os.fsdecode(text)))
    return tuple(entries)


def stale_locks(repo: Repository, names: Iterable[str]) -> tuple[str, ...]:
    """Returns the lock files that stand in the way of these refs now, whoever holds them."""
    if is_reftable(repo):
        paths = [os.path.join(repo.common_dir, "reftable", "tables.list.lock")]
    else:
        paths = [os.path.join(_home(repo, name), name + ".lock") for name in names]
        paths.append(os.path.join(repo.common_dir, "packed-refs.lock"))
    return tuple(path for path in paths if os.path.lexists(path))


def is_reftable(repo: Repository) -> bool:
    """Returns whether the refs are kept in reftables instead of files."""
    return os.path.isdir(os.path.join(repo.common_dir, "reftable"))


def is_broken(repo: Repository, name: str) -> bool:
    """Returns whether a file stands in the place of a ref that git cannot read."""
    _require_full(name)
    return (
        not is_reftable(repo) and os.path.isfile(ref_file(repo, name)) and read(repo, name) is None
    )


def is_symbolic(repo: Repository, name: str) -> bool:
    """Returns whether a ref is only another name of a second one."""
    _require_full(name)
    return not repo.git("symbolic-ref", "-q", name, check=False).status


def drop_symbolic(repo: Repository, name: str) -> None:
    """Removes a symbolic ref and leaves the one that it names."""
    _require_full(name)
    repo.git("symbolic-ref", "--delete", name)


def ref_file(repo: Repository, name: str) -> str:
    """Returns where the files backend keeps a loose ref."""
    _require_full(name)
    return os.path.join(_home(repo, name), name)


def mark(repo: Repository, name: str) -> bytes | None:
    """Returns what differs whenever a ref may have moved, read without git.

    None where only git can tell: at another name of a second ref.
    """
    if is_reftable(repo):
        # Every write makes a new list of tables.
        return _stamp(os.path.join(repo.common_dir, "reftable", "tables.list"))
    try:
        with open(ref_file(repo, name), "rb") as file:
            content = file.read()
    except OSError:
        return _stamp(os.path.join(repo.common_dir, "packed-refs"))
    return None if content.startswith(b"ref:") else content


def _stamp(path: str) -> bytes:
    try:
        found = os.stat(path)
    except OSError:
        return b""
    return b"%d %d %d" % (found.st_ino, found.st_size, found.st_mtime_ns)


def _require_full(name: str) -> None:
    if name != "HEAD" and not name.startswith("refs/"):
        raise ValueError(f"{name!r} is not the full name of a ref.")
    if "\0" in name or "\n" in name:
        raise ValueError(f"{name!r} cannot be the name of a ref.")


def _home(repo: Repository, name: str) -> str:
    own = name == "HEAD" or name.startswith(_PER_WORKTREE)
    return repo.git_dir if own else repo.common_dir


def _instruction(repo: Repository, change: Change) -> bytes:
    old = repo.null_oid if change.old is None else change.old
    for oid in (old, change.new):
        if oid is not None and len(oid) != repo.oid_length:
            # git takes an empty value for "must not exist", and reads a short one as a name.
            raise ValueError(f"{oid!r} is not the id of an object.")
    if change.new is None:
        text = f"delete {change.name}\0{old}\0"
    else:
        text = f"update {change.name}\0{change.new}\0{old}\0"
    return os.fsencode(text)


def _why(
    repo: Repository, changes: Sequence[Change], command: Sequence[str], done: Completed
) -> GitError:
    """Returns what kind of failure it was: git tells them apart only in its words."""
    words = os.fsdecode(done.stderr)
    try:
        now = read_many(repo, [change.name for change in changes])
    except GitError:
        return GitError(command, done.status, words)
    for change in changes:
        if now[change.name] != change.old:
            return RefMoved(change.name, change.old, now[change.name], command, done.status, words)
    before, quoted, _ = words.partition(".lock': File exists")
    if quoted:
        return RefLocked(before.rpartition("'")[2] + ".lock", command, done.status, words)
    if "nonexistent object" in words:
        return ObjectMissing(command, done.status, words)
    locks = stale_locks(repo, [change.name for change in changes])
    if locks:
        return RefLocked(locks[0], command, done.status, words)
    return GitError(command, done.status, words)


def _failure(command: Sequence[str], done: Completed) -> GitError:
    words = os.fsdecode(done.stderr)
    kind = NotARepository if "not a git repository" in words else GitError
    return kind(command, done.status, words)
