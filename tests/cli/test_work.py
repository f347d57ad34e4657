"""The commands of those who work on tasks, and of whoever keeps their trees in order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository

ANN = ("--as", "ann")


@pytest.fixture
def project(home: Path) -> Path:
    folder = make_repository(home / "project")
    tasks_inprocess(folder, "init", "-q")
    tasks_inprocess(folder, "new", "One", "--enter", "work", "--check", "test -e done.txt")
    return folder


def tip(folder: Path) -> str:
    return git(folder, "rev-parse", "refs/heads/gittasks")


def started(project: Path) -> Path:
    return Path(tasks_inprocess(project, "start", "1", *ANN).out.strip())


def commit(tree: Path, name: str = "done.txt") -> None:
    (tree / name).write_text("done\n", encoding="utf-8")
    git(tree, "add", name)
    git(tree, "commit", "-q", "-m", "Work")


def test_start_prints_only_the_folder_to_work_in(project: Path, home: Path) -> None:
    result = tasks_inprocess(project, "start", "1", *ANN)
    tree = home / "project.tasks/000001/tree"
    assert (result.out, result.err) == (f"{tree}\n", "")
    assert git(tree, "symbolic-ref", "HEAD") == "refs/heads/task/000001"
    assert (tree.parent / "ASSIGNMENT.md").exists()
    assert tasks_inprocess(project, "start", "1", *ANN).out == f"{tree}\n"


def test_claim_prints_only_the_id(project: Path, home: Path) -> None:
    result = tasks_inprocess(project, "claim", "1", *ANN, "--no-worktree")
    assert (result.out, result.err) == ("000001\n", "")
    assert not (home / "project.tasks").exists()


def test_a_claim_tells_machines_the_secret_and_the_places(project: Path, home: Path) -> None:
    data = tasks_inprocess(project, "claim", "--next", *ANN, "--json").json()["data"]
    assert data["id"] == "000001"
    assert len(data["claim_secret"]) == 32
    assert data["tree"] == f"{home}/project.tasks/000001/tree"
    assert data["assignment"] == f"{home}/project.tasks/000001/ASSIGNMENT.md"
    assert (data["claimed_by"], data["from"], data["to"]) == ("ann", "WORK", "WORK")


def test_whoever_comes_second_is_refused_with_the_name(project: Path) -> None:
    tasks_inprocess(project, "claim", "1", *ANN)
    result = tasks_inprocess(project, "claim", "1", "--as", "bob", "--json", check=6)
    error = result.json()["error"]
    assert (error["code"], error["name"], error["task"]) == (6, "TAKEN", "000001")
    assert "ann" in error["message"]


def test_an_empty_queue_is_exit_10(project: Path) -> None:
    tasks_inprocess(project, "claim", "1", *ANN)
    for words in (("claim", "--next"), ("start",), ("start", "--next")):
        assert tasks_inprocess(project, *words, "--as", "bob", check=10).out == ""


def test_an_id_and_next_together_are_wrong(project: Path) -> None:
    for verb in ("claim", "start"):
        tasks_inprocess(project, verb, "1", "--next", check=2)


def test_prime_tells_what_to_do_in_two_thousand_bytes(project: Path) -> None:
    tree = started(project)
    result = tasks_inprocess(tree, "prime", *ANN)
    assert "000001" in result.out
    assert "git tasks submit" in result.out
    assert len(result.out.encode()) <= 2048
    data = tasks_inprocess(tree, "prime", *ANN, "--json").json()["data"]
    assert (data["id"], data["actor"], data["role"]) == ("000001", "ann", "worker")


def test_a_task_is_given_back(project: Path) -> None:
    started(project)
    assert tasks_inprocess(project, "release", "1", *ANN, "-m", "tired").out == ("000001 release\n")
    assert tasks_inprocess(project, "release", "1", *ANN).out == "000001 WORK: nothing to do\n"


def test_the_manager_takes_a_task_back_by_force(project: Path) -> None:
    started(project)
    tasks_inprocess(project, "release", "1", check=6)
    assert tasks_inprocess(project, "release", "1", "--force").out == "000001 release\n"
    tasks_inprocess(project, "submit", "1", *ANN, "-m", "Done.", check=6)


def test_a_submit_runs_the_checks_and_says_where_the_task_went(project: Path) -> None:
    tree = started(project)
    commit(tree)
    result = tasks_inprocess(tree, "submit", *ANN, "-m", "It is done.")
    assert result.out == "000001 submit WORK -> WORK_REVIEW\n"


def test_a_failing_check_is_exit_7_and_the_task_is_back_at_work(project: Path) -> None:
    tree = started(project)
    commit(tree, "other.txt")
    result = tasks_inprocess(tree, "submit", *ANN, "-m", "Done.", "--json", check=7)
    error = result.json()["error"]
    assert "test -e done.txt" in error["message"]
    assert tasks_inprocess(project, "show", "1", "--json").json()["data"]["state"] == "WORK"


def test_checks_may_be_left_for_later(project: Path) -> None:
    tree = started(project)
    commit(tree)
    result = tasks_inprocess(tree, "submit", *ANN, "-m", "Done.", "--no-check")
    assert result.out == "000001 submit WORK -> CHECK\n"


def test_a_dry_run_writes_nothing(project: Path) -> None:
    tree = started(project)
    commit(tree)
    before = tip(project)
    tasks_inprocess(tree, "submit", *ANN, "-m", "Done.", "--dry-run")
    assert tip(project) == before


def test_findings_are_given_one_by_one_or_as_bullets(project: Path) -> None:
    tree = started(project)
    commit(tree)
    tasks_inprocess(tree, "submit", *ANN, "-m", "Done.")
    tasks_inprocess(project, "claim", "1", "--as", "rita")
    result = tasks_inprocess(
        project, "feedback", "1", "--as", "rita", "-m", "One.", "-F", "-",
        stdin="- Two.\n  More.\n- Three.\n",
    )  # fmt: skip
    assert result.out == "000001 feedback WORK_REVIEW -> WORK\n"
    data = tasks_inprocess(project, "show", "1", "--json").json()["data"]
    assert data["findings"]["items"] == ["One.", "Two.\nMore.", "Three."]


def test_feedback_without_a_finding_is_wrong(project: Path) -> None:
    tasks_inprocess(project, "reject", "1", check=2)


def test_a_task_is_held_and_resumed(project: Path) -> None:
    tasks_inprocess(project, "hold", "1", check=2)
    assert tasks_inprocess(project, "hold", "1", "--reason", "Stop.").out == (
        "000001 hold WORK -> HELD_WORK\n"
    )
    assert tasks_inprocess(project, "hold", "1", "-m", "x").out == (
        "000001 HELD_WORK: nothing to do\n"
    )
    assert tasks_inprocess(project, "resume", "1").out == "000001 resume HELD_WORK -> WORK\n"
    assert tasks_inprocess(project, "resume", "1").out == "000001 WORK: nothing to do\n"


def test_an_abort_says_where_uncommitted_work_is(project: Path) -> None:
    tree = started(project)
    (tree / "app.txt").write_text("changed\n", encoding="utf-8")
    (tree / "new.txt").write_text("new\n", encoding="utf-8")
    tasks_inprocess(project, "hold", "1", "-m", "Stop.")
    result = tasks_inprocess(project, "abort", "1", "-m", "No.")
    assert result.out == "000001 abort HELD_WORK -> CLOSED\n"
    (note,) = [line for line in result.err.splitlines() if "kept in" in line]
    folder = Path(note.partition("kept in ")[2].rstrip("."))
    assert (folder / "files/new.txt").read_text(encoding="utf-8") == "new\n"
    assert "+changed" in (folder / "changes.patch").read_text(encoding="utf-8")
    data = tasks_inprocess(project, "show", "1", "--json").json()["data"]
    assert (data["outcome"], data["claimed_by"]) == ("aborted", None)
    assert not tree.exists()


def test_an_abort_takes_children_with_it_when_asked(project: Path) -> None:
    tasks_inprocess(project, "new", "Child", "--parent", "1")
    tasks_inprocess(project, "hold", "1", "-m", "Stop.")
    tasks_inprocess(project, "abort", "1", check=5)
    data = tasks_inprocess(project, "abort", "1", "--recursive", "--json").json()["data"]
    assert (data["outcome"], sorted(data["aborted"])) == ("aborted", ["000001", "000002"])


def test_superseding_an_open_task_aborts_it(project: Path) -> None:
    tasks_inprocess(project, "new", "Better", "--supersedes", "1")
    data = tasks_inprocess(project, "show", "1", "--json").json()["data"]
    assert (data["state"], data["outcome"]) == ("CLOSED", "aborted")


def test_superseding_a_started_task_puts_its_tree_away(project: Path) -> None:
    tree = started(project)
    commit(tree)
    work = git(tree, "rev-parse", "HEAD")
    result = tasks_inprocess(project, "new", "Better", "--supersedes", "1")
    assert result.out == "000002\n"
    assert "refs/gittasks/aborted/000001" in result.err
    assert git(project, "rev-parse", "refs/gittasks/aborted/000001") == work
    assert not tree.exists()


def test_trees_are_found_and_listed(project: Path) -> None:
    tree = started(project)
    assert tasks_inprocess(project, "worktree", "path", "1").out == f"{tree}\n"
    assert tasks_inprocess(tree, "worktree", "path").out == f"{tree}\n"
    assert tasks_inprocess(project, "worktree", "list").out == (f"000001  WORK  ann  {tree}\n")
    (one,) = tasks_inprocess(project, "worktree", "list", "--json").json()["data"]
    assert one == {
        "task": "000001", "path": str(tree), "branch": "task/000001",
        "head": git(tree, "rev-parse", "HEAD"), "state": "WORK", "claimed_by": "ann",
        "problem": None,
    }  # fmt: skip


def test_a_tree_that_is_not_there_is_a_refusal(project: Path) -> None:
    tasks_inprocess(project, "worktree", "path", "1", check=5)
    tasks_inprocess(project, "worktree", "remove", "1", check=4)


def test_a_held_tree_is_removed_only_by_force_and_comes_back(project: Path) -> None:
    tree = started(project)
    commit(tree)
    (tree / "left.txt").write_text("left\n", encoding="utf-8")
    tasks_inprocess(project, "worktree", "remove", "1", check=5)
    result = tasks_inprocess(project, "worktree", "remove", "1", "--force")
    assert result.out == f"{tree}\n"
    folder = Path(result.err.partition("is kept in ")[2].strip().rstrip("."))
    assert (folder / "files/left.txt").exists()
    assert not tree.exists()
    assert started(project) == tree
    assert (tree / "done.txt").exists()


def test_repair_says_what_it_did(project: Path) -> None:
    assert tasks_inprocess(project, "worktree", "repair").out == "There was nothing to repair.\n"


def test_commands_of_a_proposal_wait_for_trust(project: Path) -> None:
    bot = {"GITTASKS_AGENT": "bot"}
    tasks_inprocess(project, "new", "Two", "--check", "curl x", env=bot)
    waiting = tasks_inprocess(project, "trust")
    assert waiting.out == "000002  curl x\n"
    tasks_inprocess(project, "trust", "2", env=bot, check=5)
    assert tasks_inprocess(project, "trust", "2").out == "approved: curl x\n"
    assert tasks_inprocess(project, "trust", "2").out == ""
    assert sorted(tasks_inprocess(project, "trust", "--list").out.splitlines()) == [
        "curl x", "test -e done.txt",
    ]  # fmt: skip
    assert tasks_inprocess(project, "trust", "2", "--revoke").out == "revoked: curl x\n"
    assert tasks_inprocess(project, "trust", "--json").json()["data"] == [
        {"task": "000002", "commands": ["curl x"]}
    ]


def test_a_clone_may_trust_nothing(project: Path) -> None:
    git(project, "config", "gittasks.trust", "never")
    tasks_inprocess(project, "new", "Two", "--check", "true")
    tasks_inprocess(project, "trust", "2", check=5)
    assert tasks_inprocess(project, "trust").out.splitlines() == [
        "000001  test -e done.txt", "000002  true",
    ]  # fmt: skip


def test_nothing_is_left_for_gc_after_an_abort(project: Path) -> None:
    started(project)
    tasks_inprocess(project, "hold", "1", "-m", "Stop.")
    tasks_inprocess(project, "abort", "1")
    result = tasks_inprocess(project, "gc")
    assert (result.out, result.err) == ("", "There is nothing to remove.\n")


def test_gc_removes_what_a_closed_task_left_and_keeps_its_commits(project: Path) -> None:
    tree = started(project)
    commit(tree)
    work = git(tree, "rev-parse", "HEAD")
    tasks_inprocess(project, "hold", "1", "-m", "Stop.")
    tasks_inprocess(project, "abort", "1")
    git(project, "branch", "task/000001", work)
    git(project, "worktree", "add", "-q", str(tree), "task/000001")
    (tree / "left.txt").write_text("left\n", encoding="utf-8")
    (project / ".git/gittasks/checks/000001").mkdir(parents=True)
    (project / ".git/gittasks/agents/000001").mkdir(parents=True)
    dry = tasks_inprocess(project, "gc", "--dry-run")
    assert [line.split()[:3] for line in dry.out.splitlines()] == [
        ["would", "remove", "worktree"],
        ["would", "remove", "branch"],
        ["would", "remove", "check"],
        ["would", "remove", "agent"],
    ]
    assert tree.exists()
    result = tasks_inprocess(project, "gc")
    assert [line.split()[:2] for line in result.out.splitlines()] == [
        ["removed", "worktree"], ["removed", "branch"], ["removed", "check"],
        ["removed", "agent"],
    ]  # fmt: skip
    assert "left" not in os.listdir(project)
    assert git(project, "rev-parse", "refs/gittasks/aborted/000001") == work
    assert git(project, "branch", "--list", "task/*") == ""
    assert tasks_inprocess(project, "gc").out == ""


def test_gc_leaves_open_tasks_alone(project: Path) -> None:
    tree = started(project)
    assert tasks_inprocess(project, "gc").out == ""
    assert tree.exists()


def test_gc_deletes_the_branch_of_a_landed_task(project: Path) -> None:
    tree = started(project)
    commit(tree)
    work = git(tree, "rev-parse", "HEAD")
    tasks_inprocess(tree, "submit", *ANN, "-m", "Done.")
    tasks_inprocess(project, "claim", "1", "--as", "rita")
    tasks_inprocess(project, "submit", "1", "--as", "rita")
    tasks_inprocess(project, "submit", "1")
    git(project, "branch", "task/000001", work)
    git(project, "branch", "task/000001-mine", work)
    result = tasks_inprocess(project, "gc")
    logs = f"{project}/.git/gittasks/checks/000001"
    assert (result.out.splitlines(), result.err) == (
        ["removed branch task/000001 (000001)", f"removed check logs {logs} (000001)"], "",
    )  # fmt: skip
    assert git(project, "branch", "--list", "task/*") == "  task/000001-mine"


def test_gc_keeps_commits_that_came_after_the_end(project: Path) -> None:
    tree = started(project)
    commit(tree)
    tasks_inprocess(project, "hold", "1", "-m", "Stop.")
    tasks_inprocess(project, "abort", "1")
    git(project, "branch", "task/000001", "refs/gittasks/aborted/000001")
    git(project, "switch", "-q", "task/000001")
    commit(project, "late.txt")
    late = git(project, "rev-parse", "HEAD")
    checked_out = tasks_inprocess(project, "gc")
    assert (checked_out.out, git(project, "rev-parse", "task/000001")) == ("", late)
    git(project, "switch", "-q", "master")
    result = tasks_inprocess(project, "gc", "--json")
    (one,) = result.json()["data"]["removed"]
    kept = f"refs/gittasks/kept/000001/{late[:12]}"
    assert (one["name"], one["notes"]) == (
        "task/000001", [f"The commits of task/000001 are kept at {kept}."],
    )  # fmt: skip
    assert git(project, "rev-parse", kept) == late


def test_checks_run_without_moving_the_task(project: Path) -> None:
    tree = started(project)
    before = tip(project)
    failed = tasks_inprocess(project, "check", "1", *ANN, check=7)
    assert "test -e done.txt" in failed.err
    commit(tree)
    assert tasks_inprocess(tree, "check", *ANN).status == 0
    assert tasks_inprocess(project, "check", "1", "--merged").status == 0
    assert tip(project) == before


def test_the_result_of_checks_is_recorded_later(project: Path) -> None:
    tree = started(project)
    commit(tree)
    tasks_inprocess(tree, "submit", *ANN, "-m", "Done.", "--no-check")
    assert tasks_inprocess(project, "check", "1", "--record").out == (
        "000001 pass CHECK -> WORK_REVIEW\n"
    )
    tasks_inprocess(project, "check", "1", "--record", "--merged", check=2)


@pytest.mark.parametrize(
    ("words", "data"),
    [
        (("worktree", "list"), []),
        (("worktree", "repair"), {"done": []}),
        (("gc",), {"dry_run": False, "removed": []}),
        (("trust", "--list"), [{"command": "test -e done.txt"}]),
        (("trust", "1"), {"approved": []}),
        (("dep", "tree", "1"), [{"id": "000001", "depth": 0, "repeated": False}]),
        (("config", "base"), {"base": "master"}),
        (("config", "base", "master"), {"base": "master", "commit": None}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_machines_get_one_document(project: Path, words: tuple[str, ...], data: object) -> None:
    result = tasks_inprocess(project, *words, "--json")
    found = result.json()["data"]
    if isinstance(data, list):
        found = [{name: row[name] for name in want} for row, want in zip(found, data, strict=True)]
    elif isinstance(data, dict):
        found = {name: found[name] for name in data}
    assert found == data


def test_bytes_that_are_no_text_are_refused_as_reason_and_note(project: Path) -> None:
    (project / "bytes").write_bytes(b"\xff")
    for verb in ("hold", "note", "feedback"):
        result = tasks_inprocess(project, verb, "1", "-F", "bytes", check=2)
        assert result.err.splitlines()[0] == "error: The text is not UTF-8."
