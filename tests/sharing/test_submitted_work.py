"""What others look at is what was submitted, wherever the branch stands by now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.ground import error_of
from tests.sharing import ground
from tests.sharing.ground import Shared, refs_of
from tests.support.git import git
from tests.support.remotes import commit

TASK = "000001"
BRANCH = f"refs/heads/task/{TASK}"
FETCHED = f"refs/gittasks/incoming/heads/task/{TASK}"


@pytest.fixture(scope="module")
def _submitted(tmp_path_factory: pytest.TempPathFactory, _begun: Path) -> Path:
    """Makes a project in which Bob's agent has submitted, and nobody has looked at it."""
    shared = ground.copied(_begun, tmp_path_factory.mktemp("submitted") / "shared")
    assert shared.ready("One") == TASK
    shared.bob.work(TASK, {"new.txt": "new\n"})
    shared.ada.sync("--dry-run")
    return shared.remote.parent


@pytest.fixture
def submitted(home: Path, _submitted: Path) -> Shared:
    """Returns a project in which the work of Bob's agent waits for a review."""
    return ground.copied(_submitted, home / "shared")


def pushed_over(shared: Shared) -> str:
    """Lets somebody push one more commit to the branch under review; returns it."""
    return commit(shared.remote, BRANCH, "unseen\n", parent=git(shared.remote, "rev-parse", BRANCH))


def files_of(shared: Shared) -> list[str]:
    """Returns the names of the files that Ada's `diff` tells of."""
    told = shared.ada.manager("diff", TASK, "--json").json()["data"]
    return [one["path"] for one in told["files"]]


def test_a_diff_under_review_shows_what_was_submitted(submitted: Shared) -> None:
    pushed_over(submitted)
    submitted.ada.sync()
    assert files_of(submitted) == ["new.txt"]


def test_a_diff_shows_the_branch_while_somebody_works(submitted: Shared) -> None:
    submitted.ada.sync()
    submitted.ada.agent("rev", "start", TASK)
    submitted.ada.agent("rev", "feedback", TASK, "-m", "More.")
    submitted.ada.begun(TASK, "carl", "more\n")
    assert files_of(submitted) == ["carl.txt", "new.txt"]


def test_a_review_starts_at_what_was_submitted(submitted: Shared) -> None:
    pushed_over(submitted)
    tree = Path(submitted.ada.agent("rev", "start", TASK).out.strip())
    tip = submitted.ada.show(TASK)["submitted_tip"]
    assert git(tree, "rev-parse", "HEAD") == tip


def test_a_review_after_a_diff_starts_at_what_was_submitted(submitted: Shared) -> None:
    pushed_over(submitted)
    submitted.ada.sync()
    assert files_of(submitted) == ["new.txt"]
    tree = Path(submitted.ada.agent("rev", "start", TASK).out.strip())
    tip = submitted.ada.show(TASK)["submitted_tip"]
    assert {git(tree, "rev-parse", "HEAD"), submitted.ada.refs()[BRANCH]} == {tip}


def moved_on(shared: Shared) -> str:
    """Puts the branch in Ada's clone further on than what was submitted; returns where."""
    shared.ada.sync()
    return commit(
        shared.ada.folder, BRANCH, "unseen\n", parent=git(shared.remote, "rev-parse", BRANCH)
    )


def test_a_review_where_the_branch_has_something_else_is_refused(submitted: Shared) -> None:
    there = moved_on(submitted)
    refused = submitted.unchanged_by(
        lambda: submitted.ada.agent("rev", "start", TASK, "--json", check=5)
    )
    tip = submitted.ada.show(TASK)["submitted_tip"]
    assert error_of(refused)["message"] == (
        f"The branch task/{TASK} is at {there[:12]} here, but {tip[:12]} was submitted of {TASK}."
    )


def without_the_work(shared: Shared) -> None:
    """Takes the branch off the remote before Ada has ever seen it."""
    git(shared.remote, "update-ref", "-d", BRANCH)
    shared.ada.sync()
    assert BRANCH not in shared.ada.refs()


def test_a_review_of_work_that_is_nowhere_is_refused_and_leaves_nothing(submitted: Shared) -> None:
    without_the_work(submitted)
    tip = submitted.ada.show(TASK)["submitted_tip"]
    refused = submitted.unchanged_by(
        lambda: submitted.ada.agent("rev", "start", TASK, "--json", check=5)
    )
    assert error_of(refused)["message"] == (
        f"What was submitted of {TASK}, the commit {tip[:12]}, is not in this clone, and no branch"
        " that was fetched has it."
    )
    assert error_of(refused)["hint"] == (
        "Run `git tasks sync` in the clone that has it, or have it done again:"
        f" git tasks hold {TASK} -m TEXT, git tasks resume {TASK}."
    )
    assert not Path(f"{submitted.ada.folder}.tasks", TASK).exists()


def test_the_clone_that_has_the_work_lets_the_review_begin(submitted: Shared) -> None:
    without_the_work(submitted)
    submitted.bob.sync()
    assert BRANCH in refs_of(submitted.remote)
    tree = Path(submitted.ada.agent("rev", "start", TASK).out.strip())
    assert (tree / "new.txt").read_text() == "new\n"


def test_work_that_is_nowhere_does_not_stop_the_queue(submitted: Shared) -> None:
    other = submitted.bob.new("Two")
    submitted.bob.work(other, {"two.txt": "two\n"})
    without_the_work(submitted)
    tree = Path(submitted.ada.agent("rev", "--role", "reviewer", "start").out.strip())
    assert (tree / "two.txt").exists()


def test_a_diff_of_work_that_is_nowhere_says_so(submitted: Shared) -> None:
    without_the_work(submitted)
    told = submitted.unchanged_by(lambda: submitted.ada.manager("diff", TASK, "--json", check=5))
    assert "is not in this clone" in error_of(told)["message"]


@pytest.mark.parametrize("verb", ["diff", "start"])
def test_a_refusal_makes_no_branch_where_something_else_was_pushed(
    submitted: Shared, verb: str
) -> None:
    without_the_work(submitted)
    commit(submitted.remote, BRANCH, "another\n", parent=submitted.base)
    submitted.unchanged_by(lambda: submitted.ada.agent("rev", verb, TASK, check=5))


def test_work_that_was_sent_back_and_is_nowhere_can_begin_anew(submitted: Shared) -> None:
    without_the_work(submitted)
    submitted.ada.manager("hold", TASK, "-m", "It is lost.")
    submitted.ada.manager("resume", TASK)
    refused = submitted.unchanged_by(
        lambda: submitted.ada.agent("carl", "start", TASK, "--json", check=5)
    )
    way_out = error_of(refused)["hint"].partition("git branch ")[2].rstrip(".")
    submitted.ada.git("branch", *way_out.split())
    tree = Path(submitted.ada.agent("carl", "start", TASK).out.strip())
    assert git(tree, "rev-parse", "HEAD") == submitted.base
