"""Facts about a task's branch, its tree and the user's checkout."""

from __future__ import annotations

from gittasks.domain.requests import GuardReport, Snapshot
from gittasks.domain.task import Task
from gittasks.workspaces import guard, worktree
from gittasks.workspaces.records import ClaimRecord
from tests.workspaces.conftest import Clone

BRANCH = "task/000042"


def record(clone: Clone) -> ClaimRecord:
    """Returns what the claim of the task has recorded at dispatch."""
    return ClaimRecord(
        claim="c" * 32, secret="s", task="000042", uid="abcd1234", actor="pi-1", role="worker",
        tree=str(clone.tree()),
        snapshot=worktree.snapshot(clone.repo, str(clone.tree()), BRANCH),
        user_status=guard.user_status(clone.repo),
    )  # fmt: skip


def report(clone: Clone, task: Task, claim: ClaimRecord | None) -> GuardReport:
    base = clone.git("rev-parse", "master")
    return guard.report(clone.repo, task, claim, base)


def test_nothing_done_is_told_as_it_is(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    claim = record(clone)
    assert report(clone, claimed, claim) == GuardReport(
        claimed.dispatched, claim.snapshot, claim.snapshot
    )


def test_committed_work_is_counted_against_the_present_base(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    claim = record(clone)
    clone.commit(clone.tree(), a="work\n")
    tip = clone.commit(clone.tree(), a="more work\n")
    clone.commit(clone.folder, b="two\n")
    now = Snapshot(f"refs/heads/{BRANCH}", tip, tip, ())
    assert report(clone, claimed, claim) == GuardReport(
        tip, now, claim.snapshot, commits=2, differs=True
    )


def test_a_base_that_was_merged_in_is_no_work(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    clone.commit(clone.tree(), a="work\n")
    clone.commit(clone.folder, b="two\n")
    clone.git("merge", "-q", "--no-edit", "master", at=clone.tree())
    clone.git("rm", "-q", "a.txt", at=clone.tree())
    clone.git("commit", "-qm", "Take it back", at=clone.tree())
    found = report(clone, claimed, None)
    assert (found.commits, found.differs, found.descends) == (3, False, True)


def test_an_empty_commit_and_a_reverted_one_differ_in_nothing(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    clone.commit(clone.tree())
    empty = report(clone, claimed, None)
    clone.commit(clone.tree(), a="work\n")
    clone.git("revert", "--no-edit", "HEAD", at=clone.tree())
    reverted = report(clone, claimed, None)
    assert [(one.commits, one.differs) for one in (empty, reverted)] == [(1, False), (3, False)]


def test_a_rewritten_branch_does_not_descend_from_what_was_dispatched(
    clone: Clone, task: Task
) -> None:
    claimed = clone.start(task)
    dispatched = clone.commit(clone.tree(), a="work\n")
    clone.git("reset", "-q", "--hard", "HEAD~1", at=clone.tree())
    clone.commit(clone.tree(), a="other work\n")
    assert not report(clone, claimed._replace(dispatched=dispatched), None).descends


def test_a_dispatched_commit_that_is_gone_counts_as_rewritten(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    clone.commit(clone.tree(), a="work\n")
    assert not report(clone, claimed._replace(dispatched="1" * 40), None).descends


def test_without_a_tree_only_the_branch_is_told(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    tip = clone.commit(clone.tree(), a="work\n")
    claim = record(clone)._replace(snapshot=None)
    worktree.remove(clone.repo, clone.places, "000042")
    assert report(clone, claimed, claim) == GuardReport(tip, commits=1, differs=True)


def test_a_branch_that_is_gone_has_no_tip(clone: Clone, task: Task) -> None:
    claimed = clone.claim(task)
    clone.git("branch", "-q", "-D", BRANCH)
    assert report(clone, claimed, None) == GuardReport(None, descends=False)


def test_uncommitted_and_switched_is_told(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    claim = record(clone)
    clone.git("switch", "-q", "-c", "mine", at=clone.tree())
    head = clone.commit(clone.tree(), a="work\n")
    (clone.tree() / "app.txt").write_text("changed\n")
    found = report(clone, claimed, claim).now
    assert found == Snapshot("refs/heads/mine", head, claimed.dispatched, (" M app.txt",))


def test_what_was_changed_in_the_users_own_checkout_is_named(clone: Clone, task: Task) -> None:
    for name in ("before", "again", "gone"):
        (clone.folder / f"{name}.txt").write_text("mine\n")
    claimed = clone.start(task)
    claim = record(clone)
    (clone.folder / "app.txt").write_text("from the agent\n")
    (clone.folder / "again.txt").write_text("from the agent\n")
    (clone.folder / "gone.txt").unlink()
    assert report(clone, claimed, claim).user_changes == ("app.txt", "again.txt")


def test_work_that_is_in_order_needs_no_look_at_the_users_checkout(
    clone: Clone, task: Task
) -> None:
    claimed = clone.start(task)
    claim = record(clone)
    clone.commit(clone.tree(), a="work\n")
    (clone.folder / "app.txt").write_text("the user goes on\n")
    before = clone.repo.calls
    assert report(clone, claimed, claim).user_changes == ()
    assert clone.repo.calls - before <= 5
