"""Starts git and does not wait for it: what nobody needs the answer of."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.plumbing import repository

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository

# Those of this process that may still run; one that has ended waits here to be forgotten.
_started: list[int] = []


def start(repo: Repository, *args: str) -> int:
    """Starts git on a repository, in a session of its own and without a terminal."""
    _forget_ended()
    git = repository.find_git(os.environ.get("PATH", os.defpath))
    where = ("-C", repo.common_dir, f"--git-dir={repo.common_dir}")
    pid = os.posix_spawn(
        git,
        [git, *where, *args],
        repository.clean_environment(os.environ),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
        setsid=True,
    )
    repo.calls += 1
    _started.append(pid)
    return pid


def _forget_ended() -> None:
    for pid in list(_started):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            _started.remove(pid)
