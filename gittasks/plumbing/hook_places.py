"""Finds the folder in which git looks for hooks, and reads and writes what stands in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository

Place = Literal["own", "tracked", "shared", "none"]
"""In the git directory, in a checkout, for several repositories, or switched off."""

_NEW_MODE = 0o777


class Folder(NamedTuple):
    """Where git looks for the hooks of a repository, and whose place that is."""

    path: str
    place: Place


class Hook(NamedTuple):
    """A hook as it stands there: its bytes, and what kind of file it is."""

    data: bytes
    is_plain: bool
    is_executable: bool


def hooks_folder(repo: Repository) -> Folder:
    """Returns the folder of hooks, which need not exist."""
    setting = repo.config.get("core.hooksPath")
    if setting is None:
        path = os.path.join(repo.common_dir, "hooks")
    else:
        # git starts hooks at the top of the checkout, so a relative folder counts from there.
        top = repo.worktree or repo.common_dir
        path = os.path.normpath(os.path.join(top, os.path.expanduser(setting)))
    return Folder(path, _place(repo, path, setting))


def _place(repo: Repository, path: str, setting: str | None) -> Place:
    real = os.path.realpath(path)
    if setting == "" or (os.path.lexists(real) and not os.path.isdir(real)):
        return "none"
    if _is_inside(real, repo.common_dir):
        return "own"
    if repo.worktree is not None and _is_inside(real, repo.worktree):
        return "tracked"
    # From a linked worktree the folder may lie in the main one.
    main, name = os.path.split(repo.common_dir)
    return "tracked" if name == ".git" and _is_inside(real, main) else "shared"


def _is_inside(path: str, folder: str) -> bool:
    return path.startswith(os.path.realpath(folder) + os.sep)


def read(path: str) -> Hook | None:
    """Returns what stands at a path, None where nothing does."""
    if not os.path.lexists(path):
        return None
    if os.path.islink(path) or not os.path.isfile(path):
        return Hook(b"", is_plain=False, is_executable=False)
    with open(path, "rb") as file:
        return Hook(file.read(), is_plain=True, is_executable=os.access(path, os.X_OK))


def write(path: str, data: bytes) -> None:
    """Puts a whole hook in place at once; one that was there before keeps its permissions."""
    beside = f"{path}.gittasks-{os.getpid()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _NEW_MODE)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        try:
            os.chmod(beside, os.stat(path).st_mode & 0o7777)
        except FileNotFoundError:
            pass
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
