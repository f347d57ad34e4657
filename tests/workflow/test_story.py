"""The whole day of `tests.support.story`, on a small repository, on this project, on a large one."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from tests.support.cli import CHECKOUT, tasks
from tests.support.git import git, make_repository
from tests.support.story import Story, play
from tests.support.worlds import assert_derivations_agree

# The longest story of the suite: about seventy commands, one process each.
pytestmark = pytest.mark.timeout(600)


def _assert_well_ended(story: Story, base: str, before: str) -> None:
    repository = story.repository
    tasks(repository, "fsck")
    assert assert_derivations_agree(repository, every=7) > 100
    subjects = git(repository, "log", "--first-parent", "--format=%s", f"{before}..{base}")
    landed = sorted(line.split(":")[0] for line in subjects.splitlines())
    assert landed == sorted(task for task in story.landed if task != story.landed[-1])
    assert len(landed) == 12
    outcomes = {
        row["id"]: row["outcome"]
        for row in tasks(repository, "list", "--all", "--json").json()["data"]
    }
    assert outcomes == {**dict.fromkeys(story.landed, "landed"), story.aborted: "aborted"}
    assert git(repository, "status", "--porcelain=v2", "--untracked-files=all") == ""
    assert git(repository, "worktree", "list").count("\n") == 0
    assert git(repository, "for-each-ref", "--format=%(refname)", "refs/heads/task") == ""
    assert [str(lock) for lock in (repository / ".git").rglob("*.lock")] == []
    assert _is_soon_gone(Path(f"{repository}.tasks"))
    assert _processes_in(repository) == []


def _is_soon_gone(folder: Path) -> bool:
    """Waits for large trees, which are removed behind the command's back."""
    deadline = time.monotonic() + 30
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not folder.exists()


def _processes_in(repository: Path) -> list[str]:
    found = []
    for entry in os.listdir("/proc"):
        try:
            command = Path("/proc", entry, "cmdline").read_bytes() if entry.isdigit() else b""
            place = os.readlink(f"/proc/{entry}/cwd") if command else ""
        except OSError:
            continue
        if place.startswith(str(repository)) and int(entry) != os.getpid():
            found.append(command.decode(errors="replace"))
    return found


def test_a_day_of_scripts_ends_in_twelve_landings_and_leaves_nothing_over(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", branch="trunk")
    before = git(repository, "rev-parse", "trunk")
    story = play(repository, tmp_path / "scratch")
    _assert_well_ended(story, "trunk", before)
    log = git(repository, "log", "--reverse", "--format=%s", "gittasks", "--").splitlines()
    assert log[:4] == [
        "The root of every task ledger",
        f"init (operator {_person(log)})",
        f"000001 create -> NEW (manager {_person(log)})",
        f"000001 submit NEW -> WORK (manager {_person(log)})",
    ]


def _person(log: list[str]) -> str:
    return log[1].removeprefix("init (operator ").removesuffix(")")


@pytest.mark.real
def test_the_same_day_on_a_clone_of_this_very_project(tmp_path: Path) -> None:
    repository = tmp_path / "project"
    git(tmp_path, "clone", "-q", str(CHECKOUT), str(repository))
    base = git(repository, "symbolic-ref", "--short", "HEAD")
    before = git(repository, "rev-parse", base)
    _assert_well_ended(play(repository, tmp_path / "scratch"), base, before)


@pytest.mark.real
def test_the_same_day_on_a_repository_of_thousands_of_files(tmp_path: Path) -> None:
    archive = _source_archive(tmp_path / "archive")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    (top,) = (tmp_path / "unpacked").iterdir()
    git(top, "init", "-q", "--initial-branch=master")
    git(top, "add", "--all", "--force")
    git(top, "commit", "-q", "-m", "Begin")
    assert git(top, "ls-files").count("\n") >= 2000
    before = git(top, "rev-parse", "master")
    _assert_well_ended(play(top, tmp_path / "scratch"), "master", before)


def _source_archive(folder: Path) -> Path:
    """Downloads the source of a large package; skips where there is no network."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    command += ["--dest", str(folder), "Django==5.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    found = list(folder.glob("*.tar.gz")) if folder.exists() else []
    if not found:
        pytest.skip(f"no source archive to be had: {done.stderr.strip()[-200:]}")
    return found[0]
