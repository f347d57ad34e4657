"""The refs of the ledger, when they name what they should not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.hostile.ground import begun
from tests.support.cli import tasks
from tests.support.git import git

NOWHERE = "12345678" * 5


@pytest.fixture
def repo(once: Path, tmp_path: Path) -> Path:
    """Returns a repository with a ledger and a task."""
    return Path(shutil.copytree(once, tmp_path / "repo", symlinks=True))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns what each test copies."""
    return begun(tmp_path_factory.mktemp("once") / "repo", "First")


def _loose(repo: Path, oid: str) -> Path:
    return repo / ".git" / "objects" / oid[:2] / oid[2:]


def _empty(repo: Path, oid: str) -> None:
    """Leaves the file of an object as a power cut does."""
    file = _loose(repo, oid)
    file.chmod(0o644)
    file.write_bytes(b"")


def _forget_journal(repo: Path) -> None:
    for entry in (repo / ".git" / "gittasks" / "journal").iterdir():
        entry.unlink()


def test_recovering_a_symbolic_ledger_leaves_the_branch_that_it_names_alone(repo: Path) -> None:
    main, good = git(repo, "rev-parse", "master"), git(repo, "rev-parse", "gittasks")
    git(repo, "symbolic-ref", "refs/heads/gittasks", "refs/heads/master")
    tasks(repo, "recover")
    now = (git(repo, "rev-parse", "master"), git(repo, "rev-parse", "gittasks"))
    assert now == (main, good)


def test_a_write_to_a_symbolic_ledger_does_not_move_the_branch_that_it_names(repo: Path) -> None:
    git(repo, "branch", "old", "gittasks~1")
    old = git(repo, "rev-parse", "old")
    git(repo, "symbolic-ref", "refs/heads/gittasks", "refs/heads/old")
    said = tasks(repo, "new", "Second", check=9)
    assert said.err.startswith("error: The branch gittasks is a symbolic ref")
    assert git(repo, "rev-parse", "old") == old


def test_a_ledger_at_an_object_that_is_not_there_goes_back_to_the_last_good_one(
    repo: Path,
) -> None:
    good = git(repo, "rev-parse", "gittasks")
    (repo / ".git" / "refs" / "heads" / "gittasks").write_text(NOWHERE + "\n")
    tasks(repo, "new", "Second", check=9)
    said = tasks(repo, "recover")
    assert said.out == (
        f"The branch gittasks is at its last good commit {good[:12]} again; "
        "what came after it could not be read.\n"
    )
    assert tasks(repo, "new", "Second").out == "000002\n"


def test_a_ledger_at_a_file_goes_back_to_the_last_good_commit(repo: Path) -> None:
    good = git(repo, "rev-parse", "gittasks")
    blob = git(repo, "hash-object", "-w", "--stdin", stdin="no commit\n")
    (repo / ".git" / "refs" / "heads" / "gittasks").write_text(blob + "\n")
    tasks(repo, "recover")
    assert git(repo, "rev-parse", "gittasks") == good
    tasks(repo, "fsck")


def test_the_last_event_survives_a_power_cut_that_emptied_its_commit(repo: Path) -> None:
    _empty(repo, git(repo, "rev-parse", "gittasks"))
    assert tasks(repo, "new", "Second").out == "000002\n"
    assert tasks(repo, "fsck").err == "5 commits and 2 tasks verify.\n"
    assert git(repo, "fsck", "--no-dangling") == ""


def test_without_a_journal_an_emptied_tip_is_refused_and_left_behind_by_recover(
    repo: Path,
) -> None:
    good, tip = git(repo, "rev-parse", "gittasks@{1}"), git(repo, "rev-parse", "gittasks")
    _empty(repo, tip)
    _forget_journal(repo)
    tasks(repo, "new", "Second", check=9)
    tasks(repo, "recover")
    assert git(repo, "rev-parse", "gittasks", "refs/gittasks/backup").split() == [good, good]
    assert tasks(repo, "new", "First again").out == "000001\n"


def test_a_backup_that_names_nothing_does_not_stop_writers(repo: Path) -> None:
    (repo / ".git" / "refs" / "gittasks" / "backup").write_text(NOWHERE + "\n")
    tasks(repo, "new", "Second")
    tip = git(repo, "rev-parse", "gittasks")
    assert git(repo, "rev-parse", "refs/gittasks/backup") == tip
