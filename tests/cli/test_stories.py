"""Stories from the reports of people who run teams: bodies, lost prerequisites, rejections."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository

SACRED = b"\n\n    code\n\n---\n----\n+++\n```yaml\nid: 000001\n```\ntrailing  \n\n\n"


@pytest.fixture
def project(home: Path) -> Path:
    folder = make_repository(home / "project")
    tasks_inprocess(folder, "init", "-q")
    return folder


def body(project: Path, task: str = "000001") -> bytes:
    import subprocess

    path = f"gittasks:tasks/{task[:4]}/{task}.md"
    done = subprocess.run(
        ["git", "cat-file", "blob", path], cwd=project, capture_output=True, check=True
    )
    return done.stdout.partition(b"\n---\n")[2]


def changed_lines(project: Path) -> list[str]:
    """Returns the lines that the last event removed from documents."""
    diff = git(project, "diff", "--unified=0", "gittasks^", "gittasks", "--")
    return [line[1:] for line in diff.splitlines() if line[:1] == "-" and line[:3] != "---"]


def commit(tree: Path, name: str) -> None:
    (tree / name).write_text("x\n", encoding="utf-8")
    git(tree, "add", name)
    git(tree, "commit", "-q", "-m", name)


@pytest.mark.parametrize(
    "text", [SACRED, SACRED.rstrip(b"\n"), b"a\r\nb\r\n", b"\xef\xbb\xbfa\xff\x00", b""],
    ids=["fences", "no last line end", "crlf", "no text", "empty"],
)  # fmt: skip
def test_the_bytes_of_a_body_survive_every_step(project: Path, text: bytes) -> None:
    (project / "body").write_bytes(text)
    tasks_inprocess(project, "new", "One", "-F", "body", "--enter", "work")
    (project / "body").unlink()
    assert body(project) == text
    for words in (
        ("claim", "1", "--as", "ann"),
        ("note", "1", "slow"),
        ("edit", "1", "--title", "Other"),
        ("hold", "1", "-m", "stop"),
        ("resume", "1"),
    ):
        tasks_inprocess(project, *words)
        assert body(project) == text
    tree = Path(tasks_inprocess(project, "start", "1", "--as", "ann").out.strip())
    commit(tree, "a.txt")
    tasks_inprocess(project, "submit", "1", "--as", "ann", "-m", "Done.", "--no-check")
    after = body(project)
    assert after.startswith(text)
    assert after[len(text) :].strip() == b"## Implementation Notes\n\nDone."


def test_a_title_changes_one_line_of_the_document(project: Path) -> None:
    tasks_inprocess(project, "new", "One", "--label", "ui", "-m", "Body")
    tasks_inprocess(project, "edit", "1", "--title", "Two")
    assert changed_lines(project) == ['title: "One"']


def test_a_draft_sent_back_leaves_no_trace(project: Path) -> None:
    (project / "body").write_bytes(SACRED)
    tasks_inprocess(project, "new", "One", "-F", "body", "--enter", "design")
    (project / "body").unlink()
    tasks_inprocess(project, "claim", "1", "--as", "dora")
    tasks_inprocess(project, "submit", "1", "--as", "dora", "-m", "A design.")
    assert body(project) != SACRED
    tasks_inprocess(project, "claim", "1", "--as", "rita")
    tasks_inprocess(project, "feedback", "1", "--as", "rita", "-m", "No.")
    assert body(project) == SACRED


def test_a_prerequisite_that_is_thrown_away_is_told_and_can_be_dropped(project: Path) -> None:
    tasks_inprocess(project, "new", "1")
    tasks_inprocess(project, "new", "2", "--dep", "1", "--enter", "work")
    tasks_inprocess(project, "new", "3", "--dep", "2", "--enter", "work")
    aborted = tasks_inprocess(project, "abort", "1")
    assert "000002" in aborted.err
    assert tasks_inprocess(project, "ready", "--json").json()["data"] == []
    rows = tasks_inprocess(project, "inbox", "--json").json()["data"]
    assert [row["id"] for row in rows] == ["000002"]
    assert "000001 was aborted" in tasks_inprocess(project, "show", "2").out
    assert tasks_inprocess(project, "dep", "rm", "2", "1").out == (
        "000002 unblock BLOCKED -> WORK\n"
    )
    states = {
        row["id"]: row["state"] for row in tasks_inprocess(project, "list", "--json").json()["data"]
    }
    assert states == {"000002": "WORK", "000003": "BLOCKED"}


def test_a_second_rejection_holds_the_task_with_both_findings(project: Path) -> None:
    tasks_inprocess(project, "new", "1", "--enter", "work")
    answers = []
    for turn in ("one", "two"):
        tree = Path(tasks_inprocess(project, "start", "1", "--as", "ann").out.strip())
        commit(tree, f"{turn}.txt")
        tasks_inprocess(tree, "submit", "--as", "ann", "-m", f"Turn {turn}.")
        tasks_inprocess(project, "claim", "1", "--as", "rita")
        told = tasks_inprocess(project, "feedback", "1", "--as", "rita", "-m", f"Wrong {turn}.")
        answers.append(told.out)
    assert answers == [
        "000001 feedback WORK_REVIEW -> WORK\n", "000001 feedback WORK_REVIEW -> HELD_WORK\n",
    ]  # fmt: skip
    held = tasks_inprocess(project, "show", "1", "--json").json()["data"]
    assert "Wrong one." in held["held_reason"]
    assert "Wrong two." in held["held_reason"]
    shown = tasks_inprocess(project, "show", "1").out
    assert "\\n" not in shown
    assert next(line for line in shown.splitlines() if "Wrong two." in line).startswith(" " * 11)
    assert held["held_reason"].index("Wrong two.") < held["held_reason"].index("Wrong one.")
    tasks_inprocess(project, "submit", "1", "--as", "ann", "-m", "Again.", check=5)
    (first, *_) = tasks_inprocess(project, "inbox", "--json").json()["data"]
    assert first["id"] == "000001"
    tasks_inprocess(project, "resume", "1")
    resumed = tasks_inprocess(project, "show", "1", "--json").json()["data"]
    assert (resumed["state"], resumed["rejections"], resumed["held_reason"]) == ("WORK", 0, None)


def test_an_open_task_that_is_superseded_frees_its_dependents_through_the_new_one(
    project: Path,
) -> None:
    tasks_inprocess(project, "new", "Old", "--enter", "work")
    tasks_inprocess(project, "new", "Waits", "--dep", "1", "--enter", "work")
    tasks_inprocess(project, "new", "New", "--supersedes", "1", "--enter", "work")
    tasks_inprocess(project, "dep", "add", "3", "2", check=5)
    (row,) = tasks_inprocess(project, "inbox", "--json").json()["data"]
    assert (row["id"], row["reason"]) == ("000002", "000001 was aborted, superseded by 000003")
    tree = Path(tasks_inprocess(project, "start", "3", "--as", "ann").out.strip())
    commit(tree, "a.txt")
    tasks_inprocess(tree, "submit", "--as", "ann", "-m", "Done.")
    tasks_inprocess(project, "claim", "3", "--as", "rita")
    tasks_inprocess(project, "submit", "3", "--as", "rita")
    landed = tasks_inprocess(project, "submit", "3")
    assert landed.out.splitlines() == ["000003 submit MANAGER_REVIEW -> CLOSED", "000002 unblocked"]


def test_a_parent_closes_when_its_children_have_delivered(project: Path) -> None:
    tasks_inprocess(project, "new", "Parent")
    tasks_inprocess(project, "new", "Child", "--parent", "1", "--enter", "work")
    tasks_inprocess(project, "new", "Waits", "--dep", "1", "--enter", "plan")
    tasks_inprocess(project, "submit", "1", "--close", check=5)
    tree = Path(tasks_inprocess(project, "start", "2", "--as", "ann").out.strip())
    commit(tree, "a.txt")
    tasks_inprocess(tree, "submit", "--as", "ann", "-m", "Done.")
    tasks_inprocess(project, "claim", "2", "--as", "rita")
    tasks_inprocess(project, "submit", "2", "--as", "rita")
    tasks_inprocess(project, "submit", "2")
    closed = tasks_inprocess(project, "submit", "1", "--close")
    assert closed.out.splitlines() == ["000001 submit NEW -> CLOSED", "000003 unblocked"]
    assert tasks_inprocess(project, "fsck").status == 0
