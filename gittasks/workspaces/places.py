"""Where the things of a task stand on this host.

<repository>.tasks/<id>/tree/            the worktree, on the task's branch
<repository>.tasks/<id>/ASSIGNMENT.md    what its author appends a section to
<repository>.tasks/<id>/DRAFT.md         a section that came back from review
<git common dir>/gittasks/               this clone's own state: claims, landings, checks, …

A task that got another number when it was shared keeps the folder it was made with; which one that
is stands in the clone's own state, in `folders/<id>`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Refused

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository

_NAMES = "folders"


class Places(NamedTuple):
    """The two folders of a clone: one for the trees of its tasks, one for its own state."""

    root: str
    state: str

    def folder(self, task: str) -> str:
        """Returns the folder of a task, which holds its tree and what stands beside it."""
        return os.path.join(self.root, self._name(task))

    def tree(self, task: str) -> str:
        """Returns where the worktree of a task stands."""
        return os.path.join(self.folder(task), "tree")

    def assignment(self, task: str) -> str:
        """Returns the file the holder of a task writes its section into."""
        return os.path.join(self.folder(task), "ASSIGNMENT.md")

    def draft(self, task: str) -> str:
        """Returns the file that holds a section sent back by a review."""
        return os.path.join(self.folder(task), "DRAFT.md")

    def keep_name(self, task: str, name: str) -> None:
        """Lets a task have the folder of this name, because it was made under another number."""
        folder = os.path.join(self.state, _NAMES)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        beside = os.path.join(folder, f".{task}.{os.getpid()}")
        with open(beside, "w", encoding="ascii") as file:
            file.write(name)
        os.replace(beside, os.path.join(folder, task))

    def _name(self, task: str) -> str:
        try:
            with open(os.path.join(self.state, _NAMES, task), encoding="ascii") as file:
                name = file.read()
        except (OSError, ValueError):
            return task
        # Whatever stands there, it names a folder in the root.
        return name if name[:6].isdigit() and os.sep not in name else task

    def worktree_lock(self) -> str:
        """Returns the file of the lock around everything that changes worktrees."""
        return os.path.join(self.state, "worktree.flk")

    def task_of(self, path: str) -> str | None:
        """Returns the id of the task in whose folder a path lies, None elsewhere."""
        root = os.path.realpath(self.root)
        path = os.path.realpath(path)
        if not path.startswith(root + os.sep):
            return None
        name = path[len(root) + 1 :].split(os.sep, 1)[0]
        for task in self._renamed():
            if self._name(task) == name:
                return task
        return name if name.isdigit() and self._name(name) == name else None

    def _renamed(self) -> list[str]:
        try:
            names = os.listdir(os.path.join(self.state, _NAMES))
        except OSError:
            return []
        return [name for name in names if name.isdigit()]


def state_dir(repo: Repository) -> str:
    """Returns the folder of this clone's own state."""
    return os.path.join(repo.common_dir, "gittasks")


def checkout_of(repo: Repository) -> str | None:
    """Returns the top of the user's own checkout, None for a bare repository."""
    known = _recorded_checkout(repo)
    if known is not None or _is_bare(repo):
        return known
    # A git directory elsewhere does not say where its checkout is; the one we stand in is it.
    return repo.worktree if repo.git_dir == repo.common_dir else None


def _recorded_checkout(repo: Repository) -> str | None:
    """Returns the checkout that the git directory itself tells, wherever we stand."""
    folder, name = os.path.split(repo.common_dir)
    configured = repo.config.get("core.worktree")
    if configured:
        return os.path.realpath(os.path.join(repo.common_dir, configured))
    return folder if name == ".git" and not _is_bare(repo) else None


def _is_bare(repo: Repository) -> bool:
    return repo.config.get_bool("core.bare", os.path.basename(repo.common_dir) != ".git")


def worktree_root(repo: Repository) -> str:
    """Returns the folder that holds the tasks' folders; it is never inside the user's checkout."""
    # It must be the same folder from everywhere, so it follows from the git directory alone.
    checkout = _recorded_checkout(repo)
    main = checkout or repo.common_dir.removesuffix(os.sep + ".git").removesuffix(".git")
    configured = repo.config.get("gittasks.worktreeDir")
    if configured:
        root = os.path.join(checkout or repo.common_dir, os.path.expanduser(configured))
        root = os.path.realpath(root)
    else:
        root = os.path.realpath(main) + ".tasks"
    for owner in filter(None, (checkout_of(repo), repo.common_dir)):
        inside = os.path.realpath(owner)
        if root == inside or root.startswith(inside + os.sep):
            raise Refused(
                f"The folder for worktrees {root} lies inside {inside}.",
                "Set gittasks.worktreeDir to a folder outside the repository.",
            )
    return root
