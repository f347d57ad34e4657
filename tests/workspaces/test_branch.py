"""The branch of a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.domain.errors import Refused
from gittasks.domain.task import Task
from gittasks.plumbing.refs import Change
from gittasks.workspaces import branch
from gittasks.workspaces.branch import Branch
from tests.support.git import make_repository
from tests.workspaces.conftest import Clone

REF = "refs/heads/task/000042"


def test_the_first_claim_makes_the_branch_at_the_base(clone: Clone, task: Task) -> None:
    base = clone.git("rev-parse", "master")
    assert clone.plan(task) == Branch("task/000042", base, base, change=Change(REF, base, None))


def test_a_branch_of_that_name_that_is_not_ours_is_left_alone(clone: Clone, task: Task) -> None:
    clone.git("branch", "task/000042")
    assert clone.plan(task).name == "task/000042-abcd"


def test_two_foreign_branches_in_the_way_are_refused(clone: Clone, task: Task) -> None:
    clone.git("branch", "task/000042")
    clone.git("branch", "task/000042-abcd")
    with pytest.raises(Refused, match="both exist"):
        clone.plan(task)


def test_a_branch_in_the_place_of_the_folder_is_refused(clone: Clone, task: Task) -> None:
    clone.git("branch", "task")
    with pytest.raises(Refused, match="A branch task stands in the way"):
        clone.plan(task)


def test_a_branch_without_own_commits_moves_to_the_present_base(clone: Clone, task: Task) -> None:
    claimed = clone.claim(task)
    new = clone.commit(clone.folder, b="two\n")
    change = Change(REF, new, claimed.dispatched)
    assert clone.plan(claimed) == Branch("task/000042", new, new, change=change)


def test_a_branch_with_commits_stays_and_says_that_the_base_moved(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    tip = clone.commit(clone.tree(), a="work\n")
    clone.commit(clone.folder, b="two\n")
    expected = Branch("task/000042", tip, str(claimed.base), behind=True)
    assert clone.plan(claimed) == expected


def test_a_reviewed_tip_that_was_merged_by_hand_stays(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    tip = clone.commit(clone.tree(), a="work\n")
    clone.git("merge", "-q", "--no-ff", "-m", "By hand", "task/000042")
    planned = clone.plan(claimed._replace(submitted_tip=tip))
    assert (planned.tip, planned.change) == (tip, None)


def test_a_branch_a_person_has_checked_out_does_not_move(clone: Clone, task: Task) -> None:
    claimed = clone.claim(task)
    clone.git("worktree", "add", "-q", "../review", "task/000042")
    clone.commit(clone.folder, b="two\n")
    assert clone.plan(claimed).change is None


def test_a_branch_that_is_gone_comes_back_at_the_submitted_tip(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    tip = clone.commit(clone.tree(), a="work\n")
    clone.git("update-ref", "-d", REF)
    planned = clone.plan(claimed._replace(submitted_tip=tip))
    assert planned == Branch("task/000042", tip, str(claimed.base), change=Change(REF, tip, None))


def test_a_base_without_a_commit_is_refused(tmp_path: Path, task: Task) -> None:
    unborn = Clone(make_repository(tmp_path / "unborn", commit=False))
    with pytest.raises(Refused, match="The base master has no commit yet"):
        unborn.plan(task)


def test_a_closed_task_s_branch_goes_only_from_its_tip(clone: Clone, task: Task) -> None:
    tip = str(clone.claim(task).dispatched)
    other = clone.commit(clone.folder, b="two\n")
    moved = branch.delete_branch(clone.repo, "task/000042", other)
    gone = [branch.delete_branch(clone.repo, "task/000042", tip) for _ in range(2)]
    assert (moved, gone) == (
        f"The branch task/000042 stays: it has moved to {tip[:12]}.",
        [None] * 2,
    )
    assert clone.git("branch", "--format=%(refname)") == "refs/heads/master"


def test_a_branch_that_is_checked_out_stays_and_says_where(clone: Clone, task: Task) -> None:
    tip = str(clone.claim(task).dispatched)
    clone.git("switch", "-q", "task/000042")
    said = branch.delete_branch(clone.repo, "task/000042", tip)
    assert said == f"The branch task/000042 stays: it is checked out in {clone.folder}."
