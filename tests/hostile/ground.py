"""Repositories in which a task is on its way, driven through the real command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.cli import tasks
from tests.support.git import git, make_repository


def begun(folder: Path, *titles: str, files: Mapping[str, str] | None = None) -> Path:
    """Makes a repository with a ledger and these tasks at WORK."""
    make_repository(folder, files=files)
    tasks(folder, "init")
    for title in titles:
        tasks(folder, "new", title, "--enter", "work")
    return folder


def reviewed(repo: Path, task: str, files: Mapping[str, str | None]) -> None:
    """Brings a task to the manager, with these files written or (None) removed."""
    tree = Path(tasks(repo, "start", task, "--as", "sam").out.strip())
    for name, text in files.items():
        if text is None:
            git(tree, "rm", "-q", name)
        else:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text, encoding="utf-8")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "Work")
    tasks(tree, "submit", "--as", "sam", "-m", "Done.")
    tasks(repo, "claim", task, "--as", "rita", "--no-worktree")
    tasks(repo, "submit", task, "--as", "rita")


def status(repo: Path) -> list[str]:
    """Returns what git says about the checkout."""
    return git(repo, "status", "--porcelain").splitlines()
