"""Removes folders: small ones at once, large ones out of the way at once and later for good.

Removing ten thousand files can take longer than a landing; nobody has to wait for that.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = ".gone-"
_SCRIPT = '{ rm -rf -- "$@"; rmdir -- "$0" 2>/dev/null; } &'


def remove(path: str) -> None:
    """Removes a folder with all that is in it; one that is not there is fine."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def remove_later(path: str, root: str) -> None:
    """Moves a folder out of the way at once and lets a process of its own remove it."""
    gone = os.path.join(root, f"{_PREFIX}{os.urandom(8).hex()}")
    try:
        os.rename(path, gone)
    except FileNotFoundError:
        return
    except OSError:
        # Another file system, or a mount: then somebody has to wait.
        remove(path)
        return
    _start(root, (gone,))


def sweep(root: str) -> int:
    """Removes what processes that were killed have left; returns how many folders that were."""
    left = tuple(left_in(root))
    if left:
        _start(root, left)
    return len(left)


def left_in(root: str) -> Iterator[str]:
    """Yields the folders that are on their way out."""
    for name in sorted(os.listdir(root)) if os.path.isdir(root) else ():
        if name.startswith(_PREFIX):
            yield os.path.join(root, name)


def _start(root: str, paths: tuple[str, ...]) -> None:
    """Starts a process that removes folders, and the one they stand in if it is empty then."""
    # Whoever reads our output must not have to wait for what goes on behind it.
    nowhere: list[tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    argv = ("/bin/sh", "-c", _SCRIPT, root, *paths)
    try:
        pid = os.posix_spawn(argv[0], argv, {"PATH": os.defpath}, file_actions=nowhere)
    except OSError:
        for path in paths:
            remove(path)
        return
    os.waitpid(pid, 0)
