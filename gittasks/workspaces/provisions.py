"""Gives a new tree what git does not carry: files of the checkout, and the clone's set-up command.

Both are named in this clone's git configuration alone; nothing of it comes with a ledger.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.domain.errors import GittasksError
from gittasks.workspaces.places import checkout_of

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository
    from gittasks.workspaces.places import Places

_LIMIT = 1800.0


def copy_files(repo: Repository, path: str) -> None:
    """Copies what the tree needs and git does not carry, such as `.env`, from the checkout."""
    patterns = repo.config.get_all("gittasks.copyFiles")
    if not patterns:
        return
    import glob
    import shutil

    source = checkout_of(repo)
    if source is None:
        return
    for pattern in patterns:
        for name in sorted(glob.glob(pattern, root_dir=source, recursive=True)):
            there, here = os.path.join(source, name), os.path.join(path, name)
            parts = name.split(os.sep)
            if os.path.isabs(name) or ".." in parts or ".git" in parts or os.path.lexists(here):
                continue
            os.makedirs(os.path.dirname(here), exist_ok=True)
            if os.path.isdir(there) and not os.path.islink(there):
                shutil.copytree(there, here, symlinks=True)
            else:
                shutil.copy2(there, here, follow_symlinks=False)


def has_command(repo: Repository) -> bool:
    """Tells whether new trees are set up by a command here."""
    return bool(repo.config.get("gittasks.setupCommand"))


def set_up(repo: Repository, places: Places, task: str, path: str) -> None:
    """Runs the set-up command in a tree; raises where it fails."""
    command = repo.config.get("gittasks.setupCommand")
    if not command:
        return
    from gittasks.workspaces import checks

    done = checks.run_one(
        command,
        path,
        os.path.join(places.state, "setup", f"{task}.log"),
        limit=repo.config.get_seconds("gittasks.setupTimeout", _LIMIT),
    )
    assert done is not None
    if done.has_failed:
        raise GittasksError(
            f"The set-up command `{checks.printable(command)}` failed in {path}: "
            f"{done.words}.\n{done.tail}".rstrip(),
            f"Look at {done.log}, correct gittasks.setupCommand and try again.",
            task,
        )
