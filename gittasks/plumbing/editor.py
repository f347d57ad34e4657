"""Lets the person at the keyboard change a file, with the editor that git would take."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.plumbing import repository
from gittasks.plumbing.errors import GitError
from gittasks.plumbing.process import run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gittasks.plumbing.repository import Repository

_SECONDS = 30.0


def chosen(repo: Repository, environ: Mapping[str, str]) -> str:
    """Returns the command line of the editor; raises GitError where git knows none."""
    # Git is asked in the caller's own environment: the cleaned one names an editor that does
    # nothing, so that git itself never waits for a person.
    command = ("var", "GIT_EDITOR")
    argv = [repository.GIT, f"--git-dir={repo.git_dir}", *command]
    done = run(argv, env=dict(environ), timeout=_SECONDS)
    if done.status:
        raise GitError(command, done.status, os.fsdecode(done.stderr))
    return os.fsdecode(done.stdout).removesuffix("\n")


def edit(repo: Repository, path: str, environ: Mapping[str, str]) -> None:
    """Opens the file in the editor and waits until it is closed, however long that takes."""
    editor = chosen(repo, environ)
    if editor == ":":
        return
    # The shell splits the command line as git would have it split.
    argv = ["/bin/sh", "-c", f'{editor} "$@"', editor, path]
    status = os.spawnve(os.P_WAIT, argv[0], argv, dict(environ))
    if status:
        raise GitError((editor,), status, f"The editor {editor} ended with status {status}.")
