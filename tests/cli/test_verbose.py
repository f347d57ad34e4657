"""What only the verbose are told."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository


def test_the_verbose_are_told_the_ledger_commit_of_a_write(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo")
    tasks_inprocess(folder, "init")
    tasks_inprocess(folder, "new", "First")
    said = tasks_inprocess(folder, "hold", "1", "-m", "x", "-v", check=5)
    assert "Recorded" not in said.err
    told = tasks_inprocess(folder, "submit", "1", "--enter", "work", "-v")
    tip = git(folder, "rev-parse", "gittasks")
    assert told.err == f"Recorded as the ledger commit {tip}.\n"
