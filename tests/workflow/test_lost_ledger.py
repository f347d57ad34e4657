"""A ledger whose branch is gone: reads refuse, the next verb that writes brings it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import tasks
from tests.support.git import git, make_repository


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """Returns a repository whose ledger has one task at WORK and no branch any more."""
    folder = make_repository(tmp_path / "repo")
    tasks(folder, "init")
    tasks(folder, "new", "First", "--enter", "work")
    git(folder, "update-ref", "-d", "refs/heads/gittasks")
    return folder


@pytest.mark.parametrize("line", [("list",), ("show", "1"), ("prime", "1"), ("inbox",)])
def test_reads_refuse_and_name_the_way_out(lost: Path, line: tuple[str, ...]) -> None:
    result = tasks(lost, *line, check=9)
    assert result.err == (
        "error: The branch gittasks of the ledger is missing.\n"
        "hint: Run `git tasks recover` to bring it back.\n"
    )


@pytest.mark.parametrize(
    "line", [("note", "1", "hello"), ("new", "Second"), ("start", "1"), ("hold", "1", "-m", "why")]
)
def test_the_next_write_brings_it_back_and_goes_on(lost: Path, line: tuple[str, ...]) -> None:
    tip = git(lost, "rev-parse", "refs/gittasks/backup")
    tasks(lost, *line)
    assert git(lost, "rev-parse", "gittasks~1") == tip
    tasks(lost, "fsck")


def test_an_id_of_the_clone_that_is_garbage_is_made_again(lost: Path) -> None:
    (lost / ".git" / "gittasks" / "clone-id").write_bytes(b"\xff\xfe nonsense")
    tasks(lost, "note", "1", "hello")
    assert len((lost / ".git" / "gittasks" / "clone-id").read_text(encoding="ascii").strip()) == 16


def test_a_base_that_is_a_second_name_for_a_branch_lands_on_that_branch(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo", branch="main")
    git(folder, "symbolic-ref", "refs/heads/master", "refs/heads/main")
    tasks(folder, "init", "--base", "master")
    tasks(folder, "new", "First", "--enter", "work")
    tree = tasks(folder, "start", "1", "--as", "ada").out.strip()
    Path(tree, "new.txt").write_text("new\n", encoding="utf-8")
    git(tree, "add", "new.txt")
    git(tree, "commit", "-q", "-m", "Add it")
    tasks(tree, "submit", "--as", "ada", "-m", "Done.")
    tasks(folder, "claim", "1", "--as", "rita", "--no-worktree")
    tasks(folder, "submit", "1", "--as", "rita")
    tasks(folder, "submit", "1")
    assert git(folder, "status", "--porcelain") == ""
    assert (folder / "new.txt").exists()
    assert git(folder, "log", "--format=%s", "-1", "main") == "000001: First"


def test_the_inbox_names_the_tip_that_a_recovery_has_put_aside(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo")
    tasks(folder, "init")
    git(folder, "branch", "-f", "gittasks", "master")
    tasks(folder, "recover")
    (kept,) = git(folder, "for-each-ref", "--format=%(refname)", "refs/gittasks/pre-replay").split()
    assert tasks(folder, "inbox").err == (
        f"An earlier tip of the ledger is kept at {kept}; see `git tasks fsck`.\n"
    )
    assert tasks(folder, "inbox", "--json").json()["kept_tips"] == [kept]
