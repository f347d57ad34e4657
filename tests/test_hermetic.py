"""The tests' own machine: what a test sees, and what it cannot reach."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import guard
from tests.support.cli import tasks_process
from tests.support.git import git, make_repository


def test_git_knows_no_settings_and_no_identity(tmp_path: Path) -> None:
    make_repository(tmp_path, commit=False)
    scopes = git(tmp_path, "config", "--show-scope", "--list").splitlines()
    assert {line.split("\t")[0] for line in scopes} == {"local"}
    refused = subprocess.run(
        ["git", "-c", "user.useConfigOnly=true", "commit", "--allow-empty", "-m", "x"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert b"no email was given and auto-detection is disabled" in refused.stderr


@pytest.mark.parametrize("first", ["one", "two"])
def test_every_test_starts_with_an_empty_home(home: Path, first: str) -> None:
    assert os.environ["HOME"] == str(home)
    assert list(home.iterdir()) == []
    (home / first).mkdir()


def test_the_guard_refuses_to_read_the_repository_of_this_checkout() -> None:
    with pytest.raises(guard.OutsideTheTest, match="repository of this checkout"):
        (guard.CHECKOUT / ".git" / "HEAD").read_text()


def test_the_guard_refuses_git_in_this_checkout() -> None:
    with pytest.raises(guard.OutsideTheTest, match="ran git in this checkout"):
        git(guard.CHECKOUT, "status")


def test_the_guard_refuses_git_sent_to_this_checkout(tmp_path: Path) -> None:
    with pytest.raises(guard.OutsideTheTest, match="ran git in this checkout"):
        git(tmp_path, "-C", str(guard.CHECKOUT), "status")


def test_the_guard_refuses_a_process_given_the_repository_of_this_checkout(tmp_path: Path) -> None:
    with pytest.raises(guard.OutsideTheTest, match="named the repository"):
        git(tmp_path, f"--git-dir={guard.CHECKOUT}/.git", "status")


def test_the_guard_refuses_the_command_itself_in_this_checkout() -> None:
    with pytest.raises(guard.OutsideTheTest, match="in this checkout"):
        tasks_process(guard.CHECKOUT, "status")


def test_the_guard_refuses_the_settings_of_the_real_home() -> None:
    with pytest.raises(guard.OutsideTheTest, match="real home"):
        Path(guard.REAL_HOME, ".gitconfig").read_text()


def test_the_guard_refuses_to_write_into_the_real_home() -> None:
    with pytest.raises(guard.OutsideTheTest, match="real home"):
        Path(guard.REAL_HOME, "left-by-a-test").write_text("")


def test_the_guard_lets_a_test_write_into_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    assert (tmp_path / "file").read_text() == "text"


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
@pytest.mark.parametrize("bare", [True, False], ids=["bare", "with a worktree"])
def test_a_made_repository_holds_one_commit(
    tmp_path: Path, object_format: str, *, bare: bool
) -> None:
    path = make_repository(tmp_path / "r", branch="main", object_format=object_format, bare=bare)
    assert git(path, "log", "--format=%s", "--name-only", "main") == "Start\n\napp.txt"
    assert git(path, "config", "core.bare") == str(bare).lower()
    assert git(path, "rev-parse", "--show-object-format") == object_format
