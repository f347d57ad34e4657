"""The tool works from wherever git works: folders, bare repositories, aliases, GIT_DIR."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import COMMAND, environment, tasks_inprocess
from tests.support.git import git, make_repository

LIST = "000001  NEW             First\n"


@pytest.fixture
def project(home: Path) -> Path:
    folder = make_repository(home / "project", files={"sub/deep/file.txt": "x\n"})
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    tasks_inprocess(folder, "init", "-q")
    tasks_inprocess(folder, "new", "First")
    return folder


@pytest.fixture
def path(home: Path) -> str:
    """A search path on which git finds the tool."""
    script = home / "bin" / "git-tasks"
    script.parent.mkdir()
    words = " ".join(f"'{word}'" for word in COMMAND)
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return f"{script.parent}{os.pathsep}{os.environ['PATH']}"


def by_git(folder: Path, path: str, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=folder, env=environment({"PATH": path}), stdin=subprocess.DEVNULL,
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.decode()


def test_a_bare_repository_can_be_read(project: Path, home: Path) -> None:
    git(home, "clone", "-q", "--bare", str(project), "bare.git")
    bare = home / "bare.git"
    assert tasks_inprocess(bare, "list").out == LIST
    assert tasks_inprocess(bare, "show", "1").out.startswith("000001 First\n")
    assert tasks_inprocess(bare, "status").out.startswith("open     1 NEW\n")
    assert len(tasks_inprocess(bare, "log", "--jsonl").out.splitlines()) == 2


def test_any_folder_of_the_checkout_will_do(project: Path) -> None:
    assert tasks_inprocess(project / "sub" / "deep", "list").out == LIST


def test_a_repository_may_be_named_by_the_environment(project: Path, home: Path) -> None:
    env = {"GIT_DIR": str(project / ".git")}
    assert tasks_inprocess(home, "list", env=env).out == LIST
    assert tasks_inprocess(home, "list", env={**env, "GIT_WORK_TREE": str(project)}).out == LIST


def test_git_finds_the_tool_and_hands_its_settings_over(project: Path, path: str) -> None:
    assert by_git(project / "sub", path, "tasks", "list") == LIST
    assert by_git(project.parent, path, "-C", "project", "tasks", "list") == LIST
    assert by_git(project, path, "-c", "color.ui=always", "tasks", "list") == (
        "\x1b[33m000001\x1b[m  NEW             First\n"
    )


def test_an_alias_of_git_keeps_the_place(project: Path, path: str) -> None:
    deep = project / "sub" / "deep"
    (deep / "body.md").write_text("From the deep.\n", encoding="utf-8")
    git(project, "config", "alias.t", "tasks")
    git(project, "config", "alias.s", "!git-tasks")
    assert by_git(deep, path, "t", "new", "Second", "-F", "body.md") == "000002\n"
    assert by_git(deep, path, "s", "new", "Third", "-F", "body.md") == "000003\n"
    for task in ("2", "3"):
        shown = tasks_inprocess(project, "show", task, "--json").json()
        assert shown["data"]["body"] == "From the deep.\n"


def test_a_file_is_looked_for_where_the_command_was_sent(project: Path, home: Path) -> None:
    (project / "body.md").write_text("From afar.\n", encoding="utf-8")
    tasks_inprocess(home, "-C", "project", "new", "Second", "-F", "body.md")
    shown = tasks_inprocess(project, "show", "2", "--json").json()
    assert shown["data"]["body"] == "From afar.\n"


def test_a_stream_in_ascii_is_written_in_ascii(project: Path) -> None:
    tasks_inprocess(project, "new", "Größe → 日本")
    done = subprocess.run(
        [*COMMAND, "list"], cwd=project, capture_output=True, check=True, timeout=60,
        env=environment({"PYTHONIOENCODING": "ascii"}),
    )  # fmt: skip
    assert done.stdout.splitlines()[1] == (
        b"000002  NEW             Gr\\xf6\\xdfe -> \\u65e5\\u672c"
    )


@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_stream_stops_nothing(project: Path, closed: int) -> None:
    words = " ".join(f"'{word}'" for word in COMMAND)
    done = subprocess.run(
        ["sh", "-c", f"{words} list {closed}>&-"], cwd=project, env=environment(),
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"" if closed == 1 else LIST.encode())
