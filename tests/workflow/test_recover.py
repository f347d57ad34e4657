"""`recover` and `fsck` through the workflow: everything of the clone is looked at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gittasks.domain.errors import NoLedger
from gittasks.workflow import create
from gittasks.workflow.create import New
from gittasks.workflow.project import Project
from gittasks.workflow.recover import recover
from gittasks.workflow.verify import fsck
from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository
from tests.workflow.ground import begun, opened


@pytest.fixture
def project(home: Path) -> Project:
    project = begun(home / "project")
    create.create(project, New("One"))
    return project


def test_nothing_is_recovered_where_nothing_broke(project: Project) -> None:
    assert recover(project) == ()


def test_a_lost_ledger_comes_back(project: Project) -> None:
    folder = project.repo.common_dir
    tip = git(folder, "rev-parse", "refs/heads/gittasks")
    os.unlink(os.path.join(folder, "refs/heads/gittasks"))
    done = recover(opened(Path(folder).parent))
    assert len(done) >= 1
    assert git(folder, "rev-parse", "refs/heads/gittasks") == tip


def test_a_repository_that_moved_finds_its_trees_again(project: Project, home: Path) -> None:
    tasks_inprocess(home / "project", "submit", "1", "--enter", "work")
    tasks_inprocess(home / "project", "start", "1", "--as", "ann")
    (home / "new").mkdir()
    for name in ("project", "project.tasks"):
        (home / name).rename(home / "new" / name)
    tree = home / "new/project.tasks/000001/tree"
    assert recover(opened(home / "new/project")) == (f"Connected the worktree {tree} again.",)
    assert git(tree, "symbolic-ref", "HEAD") == "refs/heads/task/000001"


def test_a_sound_ledger_has_no_findings(project: Project) -> None:
    report = fsck(project)
    assert (report.findings, report.tasks, report.commits) == ((), 1, 3)


def test_without_a_ledger_there_is_nothing_to_verify(home: Path) -> None:
    with pytest.raises(NoLedger):
        fsck(opened(make_repository(home / "project")))


def test_recover_says_what_it_did(project: Project, home: Path) -> None:
    assert tasks_inprocess(home / "project", "recover").err == "There was nothing to recover.\n"
    assert tasks_inprocess(home / "project", "recover", "--json").json()["data"] == {"done": []}
