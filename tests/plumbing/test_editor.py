"""The editor that git would take, run on a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gittasks.plumbing import editor
from gittasks.plumbing.errors import GitError
from gittasks.plumbing.repository import Repository
from tests.support.git import git


@pytest.fixture
def repo(home: Path) -> Repository:
    git(home, "init", "-q", "project")
    return Repository.open(str(home / "project"))


def script(home: Path, text: str) -> str:
    path = home / "an editor"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return f'"{path}"'


def test_the_editor_of_the_environment_comes_before_the_one_of_the_settings(
    repo: Repository,
) -> None:
    git(repo.worktree or "", "config", "core.editor", "settings")
    asked = {**os.environ, "GIT_EDITOR": "mine --wait"}
    assert editor.chosen(repo, asked) == "mine --wait"


def test_the_editor_of_the_settings_comes_before_visual_and_editor(repo: Repository) -> None:
    git(repo.worktree or "", "config", "core.editor", "settings")
    assert editor.chosen(repo, {**os.environ, "EDITOR": "theirs"}) == "settings"


def test_no_editor_is_an_error_in_the_words_of_git(repo: Repository) -> None:
    with pytest.raises(GitError, match="EDITOR unset"):
        editor.chosen(repo, {**os.environ, "TERM": "dumb"})


def test_the_editor_gets_the_file_and_is_waited_for(repo: Repository, home: Path) -> None:
    file = home / "a text with 'quotes'.md"
    file.write_text("before\n", encoding="utf-8")
    command = script(home, 'sleep 0.1; echo "$1 after" >> "$2"')
    editor.edit(repo, str(file), {**os.environ, "GIT_EDITOR": f"{command} one"})
    assert file.read_text(encoding="utf-8") == "before\none after\n"


def test_an_editor_that_fails_is_an_error_with_its_status(repo: Repository, home: Path) -> None:
    with pytest.raises(GitError, match=r"The editor .* ended with status 3\."):
        editor.edit(repo, str(home / "x"), {**os.environ, "GIT_EDITOR": script(home, "exit 3")})


def test_a_colon_edits_nothing(repo: Repository, home: Path) -> None:
    editor.edit(repo, str(home / "missing"), {**os.environ, "GIT_EDITOR": ":"})
    assert not (home / "missing").exists()
