"""Submits with nothing in them, and checks that do not end."""

from __future__ import annotations

import shlex
import subprocess
import time
from pathlib import Path

import pytest

from tests.cases.ground import Team, error_of
from tests.support.cli import CHECKOUT, COMMAND


def nothing(team: Team, tree: Path) -> None:
    """Leaves the tree as it was handed out."""


def an_empty_commit(team: Team, tree: Path) -> None:
    team.git("commit", "-q", "--allow-empty", "-m", "Nothing", at=tree)


def a_reverted_commit(team: Team, tree: Path) -> None:
    team.commit(tree, {"new.txt": "new\n"})
    team.git("revert", "--no-edit", "HEAD", at=tree)


def what_the_base_has(team: Team, tree: Path) -> None:
    team.commit(team.folder, {"base.txt": "base\n"})
    team.git("merge", "-q", "master", at=tree)


def a_merge_without_work(team: Team, tree: Path) -> None:
    team.commit(team.folder, {"base.txt": "base\n"})
    team.git("merge", "-q", "--no-ff", "-m", "Merge", "master", at=tree)


def only_staged(team: Team, tree: Path) -> None:
    (tree / "new.txt").write_text("new\n", encoding="utf-8")
    team.git("add", "new.txt", at=tree)


def only_stashed(team: Team, tree: Path) -> None:
    only_staged(team, tree)
    team.git("stash", "-q", at=tree)


def on_another_branch(team: Team, tree: Path) -> None:
    team.git("switch", "-q", "-c", "mine", at=tree)
    team.commit(tree, {"new.txt": "new\n"})


NOTHING_DONE = [
    nothing, an_empty_commit, a_reverted_commit, what_the_base_has, a_merge_without_work,
    only_staged, only_stashed, on_another_branch,
]  # fmt: skip


@pytest.mark.parametrize("done", NOTHING_DONE, ids=lambda one: one.__name__)
def test_a_submit_without_a_change_is_refused(team: Team, done: object) -> None:
    """Guards against agents that say they are done and have done nothing."""
    task = team.new("One")
    tree = team.start(task)
    assert callable(done)
    done(team, tree)
    before = team.tip()
    refused = team.agent("wim", "submit", "-m", "Done.", "--json", at=tree, check=5)
    assert error_of(refused)["task"] == task
    shown = team.show(task)
    assert (shown["state"], shown["claimed_by"], team.tip()) == ("WORK", "wim", before)


@pytest.mark.parametrize("status", ["untracked", "modified", "staged", "deleted", "hidden"])
def test_a_submit_names_what_is_not_committed(team: Team, status: str) -> None:
    """Guards against half of the work staying behind in the tree."""
    task = team.new("One")
    tree = team.start(task)
    team.commit(tree, {"done.txt": "done\n", "b.txt": "b\n"})
    name = "b.txt" if status == "deleted" else "app.txt"
    if status in ("untracked", "hidden"):
        name = "new.txt"
        if status == "hidden":
            team.git("config", "status.showUntrackedFiles", "no")
    if status == "deleted":
        (tree / name).unlink()
    else:
        (tree / name).write_text("changed\n", encoding="utf-8")
    if status == "staged":
        team.git("add", name, at=tree)
    refused = team.agent("wim", "submit", "-m", "Done.", at=tree, check=5)
    assert name in refused.err
    assert team.state(task) == "WORK"


@pytest.mark.parametrize("how", ["amend", "rebase", "reset"])
def test_a_rework_may_not_rewrite_what_was_handed_out(team: Team, how: str) -> None:
    """Guards against a reviewed history that is replaced by another one."""
    task = team.new("One")
    team.work(task, {"new.txt": "new\n"})
    team.reject(task, "Do it again.")
    tree = team.start(task)
    match how:
        case "amend":
            team.git("commit", "-q", "--amend", "-m", "Other", at=tree)
        case "rebase":
            team.commit(team.folder, {"base.txt": "base\n"})
            team.git("rebase", "-q", "master", at=tree)
        case _:
            team.git("reset", "-q", "--hard", "master", at=tree)
    team.commit(tree, {"more.txt": "more\n"})
    refused = team.agent("wim", "submit", "-m", "Again.", at=tree, check=5)
    assert "rewritten" in refused.err
    assert team.state(task) == "WORK"


def test_a_rework_without_a_new_commit_says_why(team: Team) -> None:
    """Guards against the same work coming back to the reviewer unread."""
    task = team.new("One")
    team.work(task, {"new.txt": "new\n"})
    team.reject(task, "Do it again.")
    tree = team.start(task)
    refused = team.agent("wim", "submit", "-m", "It is right.", at=tree, check=5)
    assert "--no-change" in refused.err
    team.agent("wim", "submit", "--no-change", "-m", "It is right as it is.", at=tree)
    assert team.state(task) == "WORK_REVIEW"


def test_commits_of_an_agent_that_died_count_for_the_next(team: Team) -> None:
    """Guards against finished work that nobody can submit because its author is gone."""
    task = team.new("One")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    team.manager("release", task, "--force")
    assert team.start(task, "wanda") == tree
    team.agent("wanda", "submit", "-m", "Found it finished.", at=tree)
    assert team.state(task) == "WORK_REVIEW"


@pytest.mark.parametrize("state", ["WORK", "CHECK"])
def test_a_check_without_a_branch_says_how_it_comes_back(team: Team, state: str) -> None:
    """Guards against a task that is stuck because somebody tidied up its branch."""
    task = team.new("One", "--check", "test -e new.txt")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    if state == "CHECK":
        team.agent("wim", "submit", "-m", "Done.", "--no-check", at=tree)
    team.manager("worktree", "remove", task, "--force")
    team.git("branch", "-q", "-D", f"task/{task}")
    words = ("--record",) if state == "CHECK" else ()
    error = error_of(team.manager("check", task, *words, "--json", check=5))
    assert "does not exist" in error["message"]
    command = error["hint"].removeprefix("Bring it back: git ").removesuffix(".").split()
    team.git(*command)
    assert team.manager("check", task, *words, check=None).status == (0 if words else 7)


def processes(word: str) -> str:
    return subprocess.run(["pgrep", "-f", word], capture_output=True, text=True, check=False).stdout


def endless(kind: str, number: str) -> str:
    """Returns a check that never ends, in one of the ways that are hard to stop."""
    return {
        "plain": f"sleep {number}",
        "deaf": f"trap '' TERM INT HUP; sleep {number}; sleep {number}",
        "children": f"sleep {number} & sleep {number} & wait",
        "own session": f"setsid sleep {number}",
        "in the background": f"(setsid sleep {number} >/dev/null 2>&1 &) ; sleep {number}",
        "loud": f"sleep {number} & yes",
    }[kind]


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("plain", "601.5"), ("deaf", "602.5"), ("children", "603.5"), ("own session", "604.5"),
        ("in the background", "605.5"), ("loud", "606.5"),
    ],
)  # fmt: skip
def test_a_check_that_never_ends_is_a_failure_and_leaves_nothing(
    team: Team, kind: str, number: str
) -> None:
    """Guards against a hung check that holds the task, and against processes that stay for ever."""
    team.git("config", "gittasks.checkTimeout", "1s")
    task = team.new("One", "--check", endless(kind, number), "--check", "true")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    began = time.monotonic()
    refused = team.agent("wim", "submit", "-m", "Done.", "--json", at=tree, check=7)
    assert time.monotonic() - began < 15
    message = error_of(refused)["message"]
    assert "timed out after" in message or (kind == "loud" and "256 MiB" in message)
    assert "true" in message
    shown = team.show(task)
    assert shown["state"] == "WORK"
    assert f"sleep {number}" in shown["findings"]["items"][0]
    assert processes(f"sleep {number}") == ""


def test_a_check_that_prints_without_end_fills_no_memory_and_no_ledger(team: Team) -> None:
    """Guards against a check whose output is kept whole, or written into the history."""
    task = team.new("One", "--check", "head -c 30000000 /dev/zero | tr '\\0' x; exit 1")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    refused = team.agent("wim", "submit", "-m", "Done.", at=tree, check=7)
    assert len(refused.err) < 100_000
    size = int(team.git("cat-file", "-s", "refs/heads/gittasks"))
    assert size < 10_000
    assert len(team.document(task)) < 10_000


@pytest.mark.parametrize("command", ["touch stray.txt", "echo changed > app.txt"])
def test_what_a_check_leaves_in_the_tree_does_not_land(team: Team, command: str) -> None:
    """Guards against build output that becomes part of the work, or stops the review of it."""
    task = team.new("One", "--check", command)
    tree = team.work(task, {"new.txt": "new\n"})
    team.approve(task)
    team.manager("submit", task)
    assert team.git("show", "--stat", "--format=", "master^2").split()[0] == "new.txt"
    assert team.git("diff", "--name-only", "master~1", "master") == "new.txt"
    assert team.git("status", "--porcelain") == ""
    assert not tree.exists()


def test_a_check_that_commits_is_told_and_nothing_is_recorded(team: Team) -> None:
    """Guards against a commit by a check that is reviewed as if somebody had made it."""
    commit = "git -c user.name=x -c user.email=x commit -q --allow-empty -m x"
    task = team.new("One", "--check", commit)
    tree = team.start(task)
    tip = team.commit(tree, {"new.txt": "new\n"})
    refused = team.agent("wim", "submit", "-m", "Done.", at=tree, check=5)
    assert "moved while the checks ran" in refused.err
    shown = team.show(task)
    assert (shown["state"], shown["submitted_tip"], shown["checked_tip"]) == ("CHECK", tip, None)
    team.git("reset", "-q", "--hard", tip, at=tree)
    team.manager("edit", task, "--set", "checks=[]")
    team.manager("check", task, "--record")
    assert team.show(task)["checked_tip"] == tip


def test_a_check_can_start_the_tool_itself(team: Team) -> None:
    """Guards against a check that runs git tasks and waits for a lock its own submit holds."""
    words = shlex.join([*COMMAND, "-C", str(team.folder), "note", "1", "From the check."])
    task = team.new("One", "--check", f"PYTHONPATH={CHECKOUT} {words}")
    team.work(task, {"new.txt": "new\n"})
    assert team.state(task) == "WORK_REVIEW"
    assert [line.split(" (")[0] for line in team.subjects()[:3]] == [
        f"{task} pass CHECK -> WORK_REVIEW", f"{task} note CHECK", f"{task} submit WORK -> CHECK",
    ]  # fmt: skip
