"""A repository with a base, and what the tests of workspaces say about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gittasks.domain.task import Task
from gittasks.plumbing.objects import Reader
from gittasks.plumbing.refs import transaction
from gittasks.plumbing.repository import Repository
from gittasks.workspaces import branch, places, worktree
from tests.support.git import git, make_repository

BASE = "refs/heads/master"
NOW = 1_700_000_000


class Clone:
    """One repository with the folders a clone has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repo = Repository.open(str(folder))
        self.places = places.Places(places.worktree_root(self.repo), places.state_dir(self.repo))

    def git(self, *args: str, at: Path | None = None, check: bool = True) -> str:
        """Runs git in the checkout, or in another folder."""
        return git(at or self.folder, *args, check=check)

    def configure(self, *args: str) -> None:
        """Changes a setting of the repository."""
        self.git("config", *args)
        self.repo.forget_config()

    def repo_files(self, name: str) -> Iterator[Path]:
        """Returns what has a name anywhere in the git directory."""
        return (self.folder / ".git").rglob(name)

    def tree(self, task: str = "000042") -> Path:
        """Returns where the tree of a task stands."""
        return Path(self.places.tree(task))

    def plan(self, task: Task) -> branch.Branch:
        """Plans the branch of a task on the base."""
        with Reader(self.repo) as reader:
            return branch.plan_branch(self.repo, reader, task, BASE)

    def claim(self, task: Task) -> Task:
        """Moves the branch as a claim does and returns the task that knows it."""
        planned = self.plan(task)
        if planned.change:
            transaction(self.repo, [planned.change], "gittasks: 000042 claim WORK (worker pi-1)")
        return task._replace(branch=planned.name, base=planned.base, dispatched=planned.tip)

    def start(self, task: Task) -> Task:
        """Claims a task and makes its tree."""
        claimed = self.claim(task)
        assert claimed.branch is not None
        worktree.ensure(self.repo, self.places, task.id, claimed.branch, now=NOW)
        return claimed

    def commit(self, at: Path, **files: str) -> str:
        """Commits files, named without their `.txt`, and returns the commit."""
        for name, text in files.items():
            (at / f"{name}.txt").write_text(text)
        git(at, "add", "-A")
        git(at, "commit", "-q", "--allow-empty", "-m", f"Change {' '.join(files) or 'nothing'}")
        return git(at, "rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(make_repository(tmp_path / "repo"))


@pytest.fixture
def task() -> Task:
    return Task("000042", "abcd1234", "Do it", state="WORK")
