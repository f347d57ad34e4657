"""Landing: green alone and red together, conflicts, and branches that are not what was reviewed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cases.ground import Team, error_of
from tests.support.cli import tasks_process

SUM = "total=0; for f in *.num; do total=$((total + $(cat $f))); done; test $total -lt 10"


def test_green_alone_and_red_together_does_not_land(team: Team) -> None:
    """Guards against a base that is broken by two changes that each passed."""
    team.commit(team.folder, {"zero.num": "0\n"})
    six = team.reviewed("Six", {"six.num": "6\n"}, "--check", SUM)
    seven = team.reviewed("Seven", {"seven.num": "7\n"}, "--check", SUM)
    team.manager("submit", six)
    base, branch = team.git("rev-parse", "master"), team.git("rev-parse", f"task/{seven}")
    refused = team.manager("submit", seven, "--json", check=7)
    assert "total" in error_of(refused)["message"]
    assert team.state(seven) == "MANAGER_REVIEW"
    assert team.git("rev-parse", "master", f"task/{seven}").split() == [base, branch]
    subprocess.run(["sh", "-c", SUM], cwd=team.folder, check=True)
    team.manager("feedback", seven, "--from-landing")
    shown = team.show(seven)
    assert shown["state"] == "WORK"
    assert "total" in shown["findings"]["items"][0]
    tree = team.start(seven)
    team.git("merge", "-q", "master", at=tree)
    team.commit(tree, {"seven.num": "3\n"})
    team.agent("wim", "submit", "-m", "Made it smaller.", at=tree)
    team.approve(seven)
    team.manager("submit", seven)
    assert team.show(seven)["outcome"] == "landed"


def conflicts(team: Team, kind: str) -> tuple[str, str, str]:
    """Returns two reviewed tasks that cannot both land as they are, and the path they fight for."""
    team.commit(team.folder, {"a.txt": "old\n", "gone.txt": "old\n", "sub dir/ü.txt": "old\n"})
    match kind:
        case "same line":
            return (
                team.reviewed("One", {"a.txt": "one\n"}),
                team.reviewed("Two", {"a.txt": "two\n"}),
                "a.txt",
            )
        case "both add":
            return (
                team.reviewed("One", {"new.txt": "one\n"}),
                team.reviewed("Two", {"new.txt": "two\n"}),
                "new.txt",
            )
        case "odd name":
            return (
                team.reviewed("One", {"sub dir/ü.txt": "one\n"}),
                team.reviewed("Two", {"sub dir/ü.txt": "two\n"}),
                "sub dir/ü.txt",
            )
        case "delete and change":
            first = team.new("One")
            tree = team.start(first)
            team.git("rm", "-q", "gone.txt", at=tree)
            team.commit(tree, {})
            team.agent("wim", "submit", "-m", "Removed.", at=tree)
            team.approve(first)
            return first, team.reviewed("Two", {"gone.txt": "two\n"}), "gone.txt"
        case _:
            first = team.reviewed("One", {"place/inside.txt": "one\n"})
            return first, team.reviewed("Two", {"place": "a file\n"}), "place"


@pytest.mark.parametrize(
    "kind", ["same line", "both add", "odd name", "delete and change", "file and folder"]
)
def test_a_conflict_is_named_and_leaves_no_trace(team: Team, kind: str) -> None:
    """Guards against conflict markers in anybody's files, and half a merge left behind."""
    first, second, path = conflicts(team, kind)
    team.manager("submit", first)
    base, before = team.git("rev-parse", "master"), team.checkout()
    refused = team.manager("submit", second, "--json", check=7)
    assert path in error_of(refused)["message"]
    assert team.state(second) == "MANAGER_REVIEW"
    assert team.git("rev-parse", "master") == base
    assert team.checkout() == before
    assert list(team.folder.rglob("MERGE_HEAD")) == []
    marked = subprocess.run(["grep", "-rlE", "^(<<<<<<<|>>>>>>>)", team.folder.parent], check=False)
    assert marked.returncode == 1
    assert team.git("for-each-ref", "refs/gittasks/landing") == ""


def test_a_conflict_lands_after_it_was_resolved_in_the_tree(team: Team) -> None:
    """Guards against a task that can never leave the manager's review again."""
    first, second, _ = conflicts(team, "same line")
    team.manager("submit", first)
    team.manager("submit", second, check=7)
    team.manager("feedback", second, "--from-landing")
    assert "a.txt" in team.show(second)["findings"]["items"][0]
    tree = team.start(second)
    assert "base" in team.agent("wim", "prime", at=tree).out
    team.git("merge", "-q", "master", at=tree, check=False)
    team.commit(tree, {"a.txt": "one and two\n"}, "Merge master")
    team.agent("wim", "submit", "-m", "Both.", at=tree)
    team.approve(second)
    team.manager("submit", second)
    assert (team.folder / "a.txt").read_text(encoding="utf-8") == "one and two\n"


@pytest.mark.parametrize("how", ["commit", "amend", "reset", "delete", "in a missing tree"])
def test_only_what_was_reviewed_lands(team: Team, how: str) -> None:
    """Guards against commits that come to the branch after the review, or by the reviewer."""
    task = team.new("One")
    tree = team.work(task, {"new.txt": "new\n"})
    team.approve(task)
    base = team.git("rev-parse", "master")
    match how:
        case "commit":
            team.commit(tree, {"later.txt": "not reviewed\n"})
        case "amend":
            team.git("commit", "-q", "--amend", "-m", "Something else", at=tree)
        case "reset":
            team.git("reset", "-q", "--hard", "master", at=tree)
        case "delete":
            team.git("switch", "-q", "--detach", at=tree)
            team.git("branch", "-q", "-D", f"task/{task}")
        case _:
            team.manager("worktree", "remove", task)
            team.git("update-ref", f"refs/heads/task/{task}", "master")
    refused = team.manager("submit", task, "--json", check=5)
    assert f"task/{task}" in error_of(refused)["message"]
    assert team.git("rev-parse", "master") == base
    assert team.state(task) == "MANAGER_REVIEW"
    team.manager("feedback", task, "-m", "Look at your branch.")
    assert team.state(task) == "WORK"


def test_a_reviewer_may_not_commit(team: Team) -> None:
    """Guards against the reviewer's own commits that land without a review."""
    task = team.new("One")
    team.work(task, {"new.txt": "new\n"})
    tree = team.start(task, "rita")
    team.commit(tree, {"mine.txt": "by the reviewer\n"})
    refused = team.agent("rita", "submit", at=tree, check=5)
    assert "moved" in refused.err
    team.git("reset", "-q", "--hard", "HEAD~1", at=tree)
    (tree / "scratch.txt").write_text("left over\n", encoding="utf-8")
    refused = team.agent("rita", "submit", at=tree, check=5)
    assert "scratch.txt" in refused.err
    assert team.state(task) == "WORK_REVIEW"


def test_a_lost_tree_skips_no_check(team: Team) -> None:
    """Guards against a landing without a tree that forgets to check the merged result."""
    task = team.reviewed("One", {"new.txt": "new\n"}, "--check", "test ! -e forbidden.txt")
    team.manager("worktree", "remove", task)
    team.commit(team.folder, {"forbidden.txt": "by somebody else\n"})
    refused = team.manager("submit", task, "--json", check=7)
    assert "forbidden.txt" in error_of(refused)["message"]
    assert team.state(task) == "MANAGER_REVIEW"


def test_feedback_waits_while_the_task_lands(team: Team) -> None:
    """Guards against landed work that is sent back to WORK by somebody who was slower."""
    gate = team.folder.parent / "gate"
    check = f"touch {gate}.open; while ! test -e {gate}; do sleep 0.05; done"
    team.manager("new", "One", "--enter", "work")
    gate.touch()
    task = team.new("Two", "--check", check)
    team.work(task, {"new.txt": "new\n"})
    team.approve(task)
    gate.unlink()
    Path(f"{gate}.open").unlink()
    landing = tasks_process(team.folder, "submit", task)
    while not Path(f"{gate}.open").exists():
        assert landing.poll() is None
    refused = team.manager("feedback", task, "-m", "Wait.", "--json", check=75)
    assert error_of(refused)["retryable"] is True
    aborted = team.manager("abort", task, check=None)
    gate.touch()
    out, err = landing.communicate(timeout=30)
    assert landing.returncode == 0, (out, err)
    assert aborted.status in (5, 75)
    assert team.show(task)["outcome"] == "landed"


def test_the_base_may_move_while_the_checks_run(team: Team) -> None:
    """Guards against a landing that throws away a commit that came in between."""
    gate = team.folder.parent / "gate"
    check = f"touch {gate}.open; while ! test -e {gate}; do sleep 0.05; done"
    gate.touch()
    task = team.reviewed("One", {"new.txt": "new\n"}, "--check", check)
    gate.unlink()
    Path(f"{gate}.open").unlink()
    landing = tasks_process(team.folder, "submit", task)
    while not Path(f"{gate}.open").exists():
        assert landing.poll() is None
    between = team.commit(team.folder, {"between.txt": "between\n"})
    gate.touch()
    out, err = landing.communicate(timeout=30)
    assert landing.returncode == 0, (out, err)
    team.git("merge-base", "--is-ancestor", between, "master")
    assert team.git("ls-tree", "--name-only", "master").split() == [
        "app.txt", "between.txt", "new.txt",
    ]  # fmt: skip
    assert team.git("status", "--porcelain") == ""


def test_a_branch_merged_by_hand_closes_the_task(team: Team) -> None:
    """Guards against a task that can neither land nor be aborted once a person has merged it."""
    task = team.reviewed("One", {"new.txt": "new\n"})
    team.git("merge", "-q", "--no-ff", "-m", "By hand", f"task/{task}")
    base = team.git("rev-parse", "master")
    team.manager("submit", task)
    shown = team.show(task)
    assert (shown["outcome"], shown["landed"]) == ("landed", base)
    assert team.git("rev-parse", "master") == base


@pytest.mark.parametrize("hook", ["pre-commit", "commit-msg", "pre-merge-commit", "post-merge"])
def test_hooks_of_the_user_neither_run_nor_stop_a_landing(team: Team, hook: str) -> None:
    """Guards against a formatter in a hook that rewrites files or refuses merges of the tool."""
    task = team.reviewed("One", {"new.txt": "new\n"})
    path = team.folder / ".git/hooks" / hook
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\ntouch hook-ran\nexit 1\n", encoding="utf-8")
    path.chmod(0o755)
    team.manager("submit", task)
    assert team.show(task)["outcome"] == "landed"
    assert not (team.folder / "hook-ran").exists()
