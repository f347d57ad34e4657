"""`recover` and `fsck` through the workflow: everything of the clone is looked at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gittasks.domain.errors import NoLedger
from gittasks.ledger import arrivals
from gittasks.ledger.layout import BACKUP
from gittasks.workflow import create
from gittasks.workflow.create import New
from gittasks.workflow.project import Project
from gittasks.workflow.recover import recover
from gittasks.workflow.verify import fsck
from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository
from tests.support.hands import a_commit
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


def arrived(project: Project, files: dict[str, bytes | None]) -> Project:
    """Takes over a commit that is no event, as if a remote had it."""
    bad = a_commit(project.ledger, b"edit\n", files)
    arrivals.inspect(project.ledger, project.ledger.tip, bad)
    for name in ("refs/remotes/origin/gittasks", "refs/heads/gittasks", BACKUP):
        git(project.repo.common_dir, "update-ref", name, bad)
    return opened(Path(project.repo.common_dir).parent)


@pytest.mark.parametrize(
    ("path", "hint", "repair"),
    [
        (
            "junk.txt",
            "Run any command that writes, which puts it right, for example"
            " `git tasks note ID TEXT`.",
            ("note", "1", "hello"),
        ),
        (
            "tasks/0000/000001.md",
            "Repair what is kept back with `git tasks edit 000001`, as the manager.",
            ("edit", "1", "--title", "Uno"),
        ),
    ],
)
def test_the_hint_of_a_check_puts_it_right(
    project: Project, home: Path, path: str, hint: str, repair: tuple[str, ...]
) -> None:
    report = fsck(arrived(project, {path: b"x\n"}))
    assert (len(report.findings), report.hint) == (3, hint)
    tasks_inprocess(home / "project", *repair)
    after = fsck(opened(home / "project"))
    assert (after.findings, after.hint, len(after.notes)) == ((), None, 2)
    assert tasks_inprocess(home / "project", "fsck").status == 0


def test_without_a_ledger_there_is_nothing_to_verify(home: Path) -> None:
    with pytest.raises(NoLedger):
        fsck(opened(make_repository(home / "project")))


def test_recover_says_what_it_did(project: Project, home: Path) -> None:
    assert tasks_inprocess(home / "project", "recover").err == "There was nothing to recover.\n"
    assert tasks_inprocess(home / "project", "recover", "--json").json()["data"] == {"done": []}
