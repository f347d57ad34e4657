"""A submit whose process ends while the checks run."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.cli import tasks, tasks_process
from tests.support.git import git, make_repository

CHECK = "touch ../started; while ! test -e ../go; do sleep 0.05; done"


class Work(NamedTuple):
    """A repository, and the tree of its task with a commit to submit."""

    repo: Path
    tree: Path

    def submit(self) -> subprocess.Popen[str]:
        """Starts a submit and returns when its checks run."""
        process = tasks_process(self.tree, "submit", "--as", "sam", "-m", "Done.")
        deadline = time.monotonic() + 20
        while not self.tree.parent.joinpath("started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return process

    def let_go(self) -> None:
        """Lets the checks pass."""
        self.tree.parent.joinpath("go").touch()

    def subjects(self) -> list[str]:
        """Returns the last two events, newest first."""
        return git(self.repo, "log", "-2", "--format=%s", "gittasks", "--").splitlines()


@pytest.fixture
def work(tmp_path: Path) -> Work:
    repo = make_repository(tmp_path / "repo")
    tasks(repo, "init")
    tasks(repo, "new", "First", "--enter", "work", "--check", CHECK)
    tree = Path(tasks(repo, "start", "1", "--as", "sam").out.strip())
    (tree / "new.txt").write_text("new\n", encoding="utf-8")
    git(tree, "add", "new.txt")
    git(tree, "commit", "-q", "-m", "Work")
    return Work(repo, tree)


def test_submitting_again_runs_the_checks_that_a_kill_has_stopped(work: Work) -> None:
    process = work.submit()
    process.kill()
    process.communicate()
    work.let_go()
    said = tasks(work.tree, "submit", "--as", "sam", "-m", "Done.")
    assert said.out == "000001 pass CHECK -> WORK_REVIEW\n"
    assert work.subjects() == [
        "000001 pass CHECK -> WORK_REVIEW (checker sam)",
        "000001 submit WORK -> CHECK (worker sam)",
    ]


def test_submitting_again_while_the_checks_run_does_not_run_them_twice(work: Work) -> None:
    process = work.submit()
    said = tasks(work.tree, "submit", "--as", "sam", "-m", "Done.")
    work.let_go()
    process.communicate(timeout=20)
    assert said.out == "000001 CHECK: nothing to do\n"
    assert "The checks of 000001 are running" in said.err
    assert work.subjects() == [
        "000001 pass CHECK -> WORK_REVIEW (checker sam)",
        "000001 submit WORK -> CHECK (worker sam)",
    ]


def test_recording_a_check_while_another_runs_has_to_wait(work: Work) -> None:
    process = work.submit()
    tasks(work.repo, "check", "1", "--record", check=75)
    work.let_go()
    assert process.wait(20) == 0
    process.communicate()
