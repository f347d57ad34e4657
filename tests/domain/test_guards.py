"""The verdict on branch and tree, from facts."""

from __future__ import annotations

from typing import Any

import pytest

from gittasks.domain import guards
from gittasks.domain.errors import GuardBroken
from gittasks.domain.requests import GuardReport, Snapshot
from gittasks.domain.task import State
from tests.support.decisions import BASE, TIP, branch_of, clean, task_at

BRANCH = branch_of(1)
THERE = Snapshot(f"refs/heads/{BRANCH}", BASE, BASE, (" M old.txt",))
UNTOUCHED = GuardReport(BASE, THERE, THERE)


def _verdict(state: State, report: GuardReport, **fields: Any) -> tuple[str, str, str | None]:
    """Returns issue, sentence and hint of a refusal."""
    task = task_at(state, **{"dispatched": BASE, **fields})
    with pytest.raises(GuardBroken) as refused:
        guards.require(task, report)
    assert refused.value.task == task.id
    return refused.value.issue, refused.value.message, refused.value.hint


@pytest.mark.parametrize("state", ["DESIGN", "DESIGN_REVIEW", "PLAN", "PLAN_REVIEW", "WORK_REVIEW"])
@pytest.mark.parametrize(
    "report", [UNTOUCHED, UNTOUCHED._replace(now=None), UNTOUCHED._replace(dispatched=None)]
)
def test_a_tree_as_it_was_handed_out_is_untouched(state: State, report: GuardReport) -> None:
    guards.require(task_at(state, dispatched=BASE), report)


@pytest.mark.parametrize("state", ["NEW", "CHECK", "MANAGER_REVIEW"])
def test_other_states_ask_nothing_of_a_tree(state: State) -> None:
    guards.require(task_at(state), GuardReport(None))


def test_facts_that_nobody_has_are_not_judged() -> None:
    guards.require(task_at("WORK"), None)


def test_a_branch_that_moved_is_not_untouched() -> None:
    assert _verdict("DESIGN", UNTOUCHED._replace(tip=TIP)) == (
        "modified-worktree",
        f"The branch {BRANCH} has moved since this stage was handed out: "
        "at DESIGN nothing is committed.",
        f"Put the branch back to {BASE[:12]}, then submit again.",
    )


@pytest.mark.parametrize("tip", [TIP, None])
def test_a_branch_that_moved_is_told_without_a_tree_too(tip: str | None) -> None:
    report = UNTOUCHED._replace(tip=tip, now=None)
    assert _verdict("WORK_REVIEW", report)[0] == "modified-worktree"


def test_another_head_is_not_untouched() -> None:
    detached = THERE._replace(branch=None)
    assert _verdict("PLAN", UNTOUCHED._replace(now=detached)) == (
        "modified-worktree",
        f"HEAD of the worktree is at {BASE[:12]} (detached), not at refs/heads/{BRANCH} as "
        "handed out.",
        f"Run `git switch {BRANCH}` in the worktree, then submit again.",
    )


def test_a_tree_that_was_detached_goes_back_to_its_commit() -> None:
    detached = Snapshot(None, BASE, BASE)
    hint = _verdict("PLAN", GuardReport(BASE, THERE, detached))[2]
    assert hint == f"Run `git switch --detach {BASE[:12]}` in the worktree, then submit again."


def test_a_head_without_a_commit_is_called_nothing() -> None:
    unborn = Snapshot(None, None, None)
    assert "nothing (detached)" in _verdict("PLAN", UNTOUCHED._replace(now=unborn))[1]


def test_a_changed_file_is_not_untouched() -> None:
    changed = THERE._replace(status=("?? new.txt", "?? b.txt"))
    assert _verdict("DESIGN", UNTOUCHED._replace(now=changed)) == (
        "modified-worktree",
        "The worktree was changed, and at DESIGN nothing is written there: "
        "M old.txt, ?? b.txt, ?? new.txt.",
        "Undo these changes, then submit again.",
    )


@pytest.mark.parametrize(
    "report",
    [
        clean(),
        clean(now=None),
        clean(now=Snapshot(None, TIP, TIP)),
        clean(dispatched=None),
    ],
)
def test_work_that_is_committed_is_committed(report: GuardReport) -> None:
    guards.require(task_at("WORK"), report)


def test_a_branch_that_is_gone_is_not_committed() -> None:
    assert _verdict("WORK", clean()._replace(tip=None)) == (
        "uncommitted",
        f"The branch {BRANCH} does not exist.",
        "Run `git tasks start 000001` to bring it back.",
    )


@pytest.mark.parametrize(
    ("now", "where"),
    [
        (Snapshot("refs/heads/main", TIP, TIP), "refs/heads/main"),
        (Snapshot(None, BASE, TIP), f"{BASE[:12]} (detached)"),
    ],
)
def test_work_elsewhere_is_not_committed(now: Snapshot, where: str) -> None:
    assert _verdict("WORK", clean(now=now)) == (
        "uncommitted",
        f"HEAD of the worktree is at {where}, not on {BRANCH}.",
        f"Run `git switch {BRANCH}` in the worktree and commit there.",
    )


def test_who_cannot_move_a_branch_has_to_leave_it() -> None:
    stuck = clean()._replace(is_stuck=True)
    assert _verdict("WORK", stuck) == (
        "uncommitted",
        f"HEAD of the worktree is on refs/heads/{BRANCH}, and from here no branch can be moved.",
        "Run `git switch --detach` and commit there: it is brought to the branch of the task.",
    )


def test_uncommitted_files_are_named() -> None:
    dirty = Snapshot(f"refs/heads/{BRANCH}", TIP, TIP, (" M a.txt", "?? b.txt"))
    assert _verdict("WORK", clean(now=dirty)) == (
        "uncommitted",
        "The worktree has uncommitted changes: M a.txt, ?? b.txt.",
        "Commit them, or list build output in .gitignore, then submit again.",
    )


def test_only_so_many_files_are_named() -> None:
    lines = tuple(f"?? {number:02d}" for number in range(25))
    assert guards.listed(lines) == ", ".join(lines[:20]) + " and 5 more"


def test_a_history_that_was_rewritten_is_called_that() -> None:
    issue, message, hint = _verdict("WORK", clean(descends=False))
    assert (issue, hint) == (
        "rewritten",
        f"Run `git reset --soft {BASE[:12]}` and commit again: your files stay.",
    )
    assert f"no longer contains {BASE[:12]}" in message


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        ({"commits": 0}, "has no commit of its own."),
        ({"commits": 0, "differs": False}, "has no commit of its own."),
        ({"commits": 2, "differs": False}, "has commits, but the same files."),
    ],
)
def test_nothing_done_is_no_change_against_base(facts: dict[str, Any], what: str) -> None:
    assert _verdict("WORK", clean(**facts)) == (
        "uncommitted",
        f"There is no change against base: the branch {BRANCH} {what}",
        "Commit the work in the task's worktree, then submit again.",
    )


def test_uncommitted_files_are_told_before_missing_commits() -> None:
    dirty = Snapshot(f"refs/heads/{BRANCH}", TIP, TIP, ("?? b.txt",))
    assert "?? b.txt" in _verdict("WORK", clean(now=dirty, commits=0))[1]


def test_a_redo_wants_a_new_commit() -> None:
    assert _verdict("WORK", clean(), submitted_tip=TIP) == (
        "uncommitted",
        f"The branch {BRANCH} has no new commit since it was last submitted.",
        "Commit the rework, or submit with --no-change and the reason in the notes.",
    )


def test_a_redo_may_say_that_nothing_had_to_change() -> None:
    guards.require(task_at("WORK", submitted_tip=TIP), clean(), no_change=True)


def test_files_of_the_users_own_checkout_are_named_too() -> None:
    message = _verdict("WORK", clean(commits=0, user_changes=("app.txt", "b.txt")))[1]
    assert message.endswith(
        "has no commit of its own. Files of your own checkout have changed since the start: "
        "app.txt, b.txt."
    )
