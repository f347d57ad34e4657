"""What an agent did where it had no business: refs, settings and hooks compared, refusals found.

Below the sandbox nothing hinders an agent; then what stood before a run is compared with what
stands after it. The tool's own moves and those of the user's checkout are told from others by the
reflog, which somebody who means harm can write too: this finds accidents and carelessness.

In the sandbox every attempt fails, and git says so; `attempts` finds that in an agent's output.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from gittasks.plumbing import objects, refs
from gittasks.plumbing.errors import GitError
from gittasks.workspaces.branch import HEADS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gittasks.plumbing.repository import Repository

_OURS = "gittasks: "
"""How every line begins that the tool itself writes into a reflog."""

_WATCHED = (HEADS, "refs/tags/", "refs/notes/", "refs/replace/")
_SETTINGS = ("config", "config.worktree", "info/attributes", "info/grafts", "shallow")
_LARGEST = 1 << 20
_MOST_MOVES = 1000

_MOST_SENTENCES = 20
_READ_AT_MOST = 16 << 20
_NEAR = 300


class Seen(NamedTuple):
    """Refs by name, and a mark of each file that settings or hooks are in."""

    refs: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    head: str | None = None
    """What HEAD of the user's checkout says."""


def remember(repo: Repository) -> Seen:
    """Returns what an agent must leave alone, as it is now."""
    found = repo.ref_ids([prefix.rstrip("/") for prefix in _WATCHED])
    return Seen(tuple(sorted(found.items())), tuple(_files(repo)), _head(repo))


def compare(
    repo: Repository,
    before: Seen,
    now: Seen,
    *,
    ledger: str,
    base: str,
    prefix: str,
    free: Collection[str] = (),
    landed: Collection[str] = (),
) -> list[str]:
    """Returns a sentence for everything that moved in between and should not have.

    All names are full. `prefix` is what work branches begin with, `free` are those that may have
    moved: the agent's own, and those of tasks that somebody held or that have closed. `landed` are
    commits that landings have made.
    """
    told = []
    was, is_now = dict(before.refs), dict(now.refs)
    for name in sorted(was.keys() | is_now.keys()):
        old, new = was.get(name), is_now.get(name)
        if old == new or name in free:
            continue
        if name == ledger:
            told += _of_ledger(repo, name, old, new)
        elif name == base and new in landed:
            continue
        elif not _is_explained(repo, name, old, new):
            told.append(_moved(name, old, new, base, HEADS + prefix))
    told += _of_files(dict(before.files), dict(now.files))
    if before.head != now.head and not _is_logged(repo, "HEAD"):
        told.append(f"HEAD of the checkout is at {now.head} now, not at {before.head}.")
    return told


def attempts(log: str, offset: int, common_dir: str, root: str, own: str) -> list[str]:
    """Returns a sentence for every attempt that an agent's output says was refused.

    Looked at is what was appended to the log since `offset`; `root` holds the folders of all
    tasks, `own` is that of the agent. What an agent kept to itself is not found.
    """
    told: dict[str, None] = {}
    for path in _refused_paths(_appended(log, offset), own):
        sentence = _attempt(path, common_dir, root, own)
        if sentence is not None:
            told[sentence] = None
    return list(told)[:_MOST_SENTENCES]


def log_size(log: str) -> int:
    """Returns where a log ends now, for `attempts` to begin there."""
    try:
        return os.stat(log).st_size
    except OSError:
        return 0


# Comparing.


def _files(repo: Repository) -> Iterator[tuple[str, str]]:
    home = repo.common_dir
    hooks = os.path.join(home, "hooks")
    names = sorted(os.listdir(hooks)) if os.path.isdir(hooks) else []
    for path in (*_SETTINGS, *(f"hooks/{name}" for name in names)):
        mark = _mark(os.path.join(home, path))
        if mark:
            yield path, mark


def _mark(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return os.readlink(path) if os.path.islink(path) else ""
    with open(fd, "rb") as file:
        mode = os.fstat(fd).st_mode & 0o777
        try:
            data = file.read(_LARGEST)
        except OSError:
            return "unreadable"
    return f"{mode:o} {objects.digest('sha256', data).hex()}"


def _head(repo: Repository) -> str | None:
    try:
        with open(os.path.join(repo.common_dir, "HEAD"), "rb") as file:
            return os.fsdecode(file.read(_NEAR)).strip()
    except OSError:
        return None


def _of_ledger(repo: Repository, name: str, old: str | None, new: str | None) -> list[str]:
    short = name.removeprefix(HEADS)
    if new is None:
        return [f"The ledger {short} is gone; it was at {(old or '')[:12]}."]
    if old is not None and not _is_forward(repo, old, new):
        return [f"The ledger {short} did not go forward: from {old[:12]} to {new[:12]}."]
    if not _is_explained(repo, name, old, new):
        return [f"The ledger {short} was moved to {new[:12]}, and not by git tasks."]
    return []


def _moved(name: str, old: str | None, new: str | None, base: str, work: str) -> str:
    short = name.removeprefix(HEADS).removeprefix("refs/")
    what = "branch" if name.startswith(HEADS) else "ref"
    if name == base:
        what = "base"
    elif name.startswith(work):
        what = "work branch"
    if new is None:
        return f"The {what} {short} is gone; it was at {(old or '')[:12]}."
    if old is None:
        return f"The {what} {short} was made at {new[:12]}."
    return f"The {what} {short} was moved from {old[:12]} to {new[:12]}."


def _of_files(was: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    for path in sorted(was.keys() | now.keys()):
        if was.get(path) == now.get(path):
            continue
        how = "is gone" if path not in now else "is new" if path not in was else "was changed"
        yield f"The file {path} of the repository {how}."


def _is_forward(repo: Repository, old: str, new: str) -> bool:
    from gittasks.plumbing import merging

    try:
        return merging.is_ancestor(repo, old, new)
    except GitError:
        return False


def _is_explained(repo: Repository, name: str, old: str | None, new: str | None) -> bool:
    """Tells whether each move of a ref was the tool's, or made in the user's own checkout."""
    if new is None or not name.startswith(HEADS):
        return False
    # Whoever commits, merges or resets says so; who writes a ref by its name says nothing.
    entries = refs.reflog_file(_main(repo), "HEAD")
    there = {(entry.old, entry.new) for entry in entries if entry.message}
    start = repo.null_oid if old is None else old
    for entry in refs.reflog(repo, name)[:_MOST_MOVES]:
        is_ours = entry.message.startswith(_OURS)
        if not is_ours and (entry.old, entry.new) not in there:
            return _was_made_here(repo, name, entry.old) and entry.old == start
        if entry.old == start:
            return True
    return False


def _was_made_here(repo: Repository, name: str, old: str) -> bool:
    """Tells whether a new branch was made by switching to it, which moves HEAD and nothing else."""
    if old != repo.null_oid:
        return False
    short = name.removeprefix(HEADS)
    entries = refs.reflog_file(_main(repo), "HEAD")
    return any(entry.message.endswith(f" to {short}") for entry in entries[:_MOST_MOVES])


def _is_logged(repo: Repository, name: str) -> bool:
    """Tells whether where HEAD stands is where its reflog says that somebody went."""
    main = _main(repo)
    head = _head(repo) or ""
    entries = refs.reflog_file(main, name)
    if not entries:
        return True
    if not head.startswith("ref: "):
        return entries[0].new == head
    short = head.removeprefix("ref: ").removeprefix(HEADS)
    went = next((e.message for e in entries if e.message.startswith("checkout: ")), None)
    return went is not None and went.endswith(f" to {short}")


def _main(repo: Repository) -> Repository:
    """Returns the repository as its own checkout sees it."""
    from gittasks.plumbing.repository import Repository

    return Repository(
        git_dir=repo.common_dir,
        common_dir=repo.common_dir,
        worktree=None,
        bare=repo.bare,
        object_format=repo.object_format,
    )


# What was refused.

_REFUSAL = re.compile(
    r"Read-only file system|Device or resource busy|Permission denied|unable to create directory for"
)
_PATH = re.compile(r"(?<![\w.-])(?:\.\./|/)[^\s'\"`:\\<>|;]+")


def _appended(log: str, offset: int) -> str:
    parts = []
    for path, start in _pieces(log, offset):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        with open(fd, "rb") as file:
            file.seek(start)
            parts.append(file.read(_READ_AT_MOST))
    return b"\n".join(parts).decode("utf-8", "replace")


def _pieces(log: str, offset: int) -> Iterator[tuple[str, int]]:
    """Yields the files that what was appended is in: a log that grew too large was renamed."""
    if log_size(log) < offset:
        yield f"{log}.1", offset
        offset = 0
    yield log, offset


def _refused_paths(text: str, own: str) -> Iterator[str]:
    """Yields the paths that stand beside a refusal of the system, in the same words or message."""
    for found in _REFUSAL.finditer(text):
        before = text[max(0, found.start() - _NEAR) : found.start()]
        # In a stream of JSON the lines of a message are marked, not ended.
        line = re.split(r"\n|\\n", before)[-1]
        paths = _PATH.findall(line)
        if not paths:
            paths = _PATH.findall(re.split(r"\n|\\n", text[found.end() : found.end() + _NEAR])[0])
        for path in paths[-1:]:
            yield os.path.normpath(os.path.join(own, "tree", path))


def _attempt(path: str, common_dir: str, root: str, own: str) -> str | None:
    inside = _below(path, common_dir)
    if inside is not None:
        name = inside.removesuffix(".lock")
        if name.startswith("refs/heads/"):
            return f"It tried to move the branch {name.removeprefix('refs/heads/')}."
        if name.startswith("refs/") or name == "packed-refs":
            return f"It tried to move {name}."
        if name.startswith("hooks"):
            return f"It tried to change the hook {name.removeprefix('hooks/')}."
        if name.startswith("config"):
            return "It tried to change the configuration of the repository."
        return f"It tried to write {name} in the repository."
    other = _below(path, root)
    if other is not None and _below(path, own) is None:
        return f"It tried to write {other} among the folders of other tasks."
    return None


def _below(path: str, folder: str) -> str | None:
    return path[len(folder) + 1 :] if path.startswith(folder + os.sep) else None
