"""A tree of one commit on no branch, with all that its checks need, gone again afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.workspaces import provisions, worktree

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository
    from gittasks.workspaces.places import Places


class Spare:
    """Holds the tree while the block runs; one that a crash has left is replaced."""

    def __init__(self, repo: Repository, places: Places, task: str, commit: str) -> None:
        """Names the task it is for, and the commit to check out."""
        self._repo = repo
        self._places = places
        self._task = task
        self._commit = commit

    def __enter__(self) -> str:
        tree = worktree.add_spare(self._repo, self._places, self._task, self._commit)
        try:
            provisions.copy_files(self._repo, tree)
            provisions.set_up(self._repo, self._places, self._task, tree)
        except BaseException:
            self.__exit__()
            raise
        return tree

    def __exit__(self, *_: object) -> None:
        worktree.drop_spare(self._repo, self._places, self._task)
