"""`git tasks review-packet`, and the task graph in it and in `status`, on one real project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import tasks_inprocess, tasks_process
from tests.support.git import git, make_repository
from tests.support.task_graphs import SECRETS, conforms, leaks

EVERY = " | ".join(SECRETS.values())
NOTES = "## Implementation Notes\n\nDone.\n"
BOB = ("--as", "bob", "--role", "worker")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task with rework behind it that waits to be landed, one that needs it, hostile ones."""
    folder = make_repository(tmp_path_factory.mktemp("packet") / "project")
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        git(folder, "config", key, value)

    def says(*words: str, at: Path = folder) -> str:
        return tasks_inprocess(at, *words).out.strip()

    says("init", "-q")
    says("new", "Lay the ground", "--check", "test -f ground", "--enter", "work", "-m", "Level.")
    says("new", "Build on it", "--dep", "1", "--enter", "work")
    tree = Path(says("start", "1", *BOB))
    commit(tree, "ground", "flat\n", "Level it")
    says("submit", "1", "-m", NOTES, *BOB, at=tree)
    says("claim", "1", "--as", "eve", "--role", "reviewer")
    says("feedback", "1", "-m", "Too steep.", "--as", "eve", "--role", "reviewer")
    tree = Path(says("start", "1", *BOB))
    commit(tree, "ground", "flatter\n", "Level it again")
    says("submit", "1", "-m", NOTES, *BOB, at=tree)
    says("claim", "1", "--as", "eve", "--role", "reviewer")
    says("submit", "1", "--as", "eve", "--role", "reviewer")
    says("note", "1", "--artifact", "report=out/report.html")
    says("new", EVERY, "-m", EVERY)
    says("new", EVERY, "-m", EVERY, "--enter", "work", "--check", f"echo {EVERY}")
    commit(folder, "other", "moved on\n", "Go on")
    return folder


def commit(folder: Path, name: str, text: str, message: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", name)
    git(folder, "commit", "-q", "-m", message)


def data(folder: Path, *words: str) -> Any:
    return tasks_inprocess(folder, *words, "--json").json()["data"]


def test_the_packet_has_all_about_the_task(project: Path) -> None:
    packet = data(project, "review-packet", "1")
    tip = git(project, "rev-parse", "gittasks")
    work = git(project, "rev-parse", "task/000001")
    assert packet["packet_id"] == f"packet:000001:{tip[:12]}"
    assert packet["task"]["state"] == "MANAGER_REVIEW"
    assert packet["body"].startswith("Level.\n")
    assert packet["next"] == {
        "role": "manager",
        "reason": "ready for the final review",
        "command": "git tasks submit 000001",
    }
    assert [(row["review"], row["findings"]) for row in packet["rounds"]] == [
        ("WORK_REVIEW", ["Too steep."])
    ]
    assert [row["accepted"] for row in packet["verdicts"]] == [False, True]
    assert [run["passed"] for run in packet["checks"]] == [True, True]
    assert [row["subject"] for row in packet["change"]["commits"]] == ["Level it again", "Level it"]
    assert packet["change"]["files"] == [{"status": "A", "path": "ground"}]
    assert packet["change"]["tip"] == work
    assert packet["merge_preview"] == {
        "base_branch": "master",
        "base_tip": git(project, "rev-parse", "master"),
        "behind": 1,
        "ahead": 2,
        "is_up_to_date": False,
        "changed_on_both_count": 0,
        "changed_on_both": [],
    }
    assert [(row["name"], row["value"]) for row in packet["artifacts"]] == [
        ("report", "out/report.html")
    ]
    assert [(row["actor"], row["ended_by"]) for row in packet["stints"]] == [
        ("bob", "submit"), ("eve", "feedback"), ("bob", "submit"), ("eve", "submit"),
    ]  # fmt: skip
    assert [row["state"] for row in packet["dependents"]] == ["BLOCKED"]


def test_the_graph_of_the_packet_is_the_one_of_the_status(project: Path) -> None:
    items = data(project, "status", "--include-task-graph")["attention_queue"]["items"]
    graphs = {item["id"]: item["task_graph_projection"] for item in items}
    assert sorted(graphs) == ["000001", "000003"]
    for task, graph in graphs.items():
        conforms(graph)
        assert data(project, "review-packet", task)["task_graph_projection"] == graph
        words = ("graph", "--format", "task_graph_projection_v0", "--task", task)
        assert data(project, *words)["task_graph_projection_v0"] == graph


def test_every_gate_of_the_graph_is_in_the_inbox(project: Path) -> None:
    limits = data(project, "review-packet", "1")["task_graph_projection"]["limits"]
    assert limits["user_gate_open_count"] == len(data(project, "inbox")) == 2


def test_more_or_fewer_gates_are_drawn_where_that_is_asked_for(project: Path) -> None:
    for words in (("review-packet", "1"), ("status", "--include-task-graph")):
        found = data(project, *words, "--gate-limit", "0")
        graph = (found if "attention_queue" not in found else found["attention_queue"]["items"][0])[
            "task_graph_projection"
        ]
        assert graph["limits"]["user_gate_truncated_count"] == 2


def test_the_graph_is_absent_where_nobody_asked_for_it(project: Path) -> None:
    for words in (("status",), ("review-packet", "1", "--handoff-only")):
        assert "task_graph_projection" not in json.dumps(data(project, *words))


def test_nothing_is_written(project: Path) -> None:
    refs = git(project, "for-each-ref")
    tasks_inprocess(project, "review-packet", "1")
    tasks_inprocess(project, "status", "--include-task-graph", "--json")
    assert git(project, "for-each-ref") == refs


def test_the_packet_is_read_at_an_earlier_commit(project: Path) -> None:
    past = git(project, "rev-parse", "gittasks~3")
    graph = data(project, "review-packet", "1", "--at", past)["task_graph_projection"]
    conforms(graph)
    assert graph["derived_from"]["ledger_commit"] == past


def test_without_a_task_it_is_the_one_that_waits_first(project: Path) -> None:
    assert data(project, "review-packet")["task"]["id"] == "000001"


def test_it_reads_well_as_markdown(project: Path) -> None:
    text = tasks_inprocess(project, "review-packet", "1").out
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# 000001 Lay the ground",
        "## Document",
        "## Rounds",
        "## Verdicts",
        "## Checks",
        "## Change",
        "## Artifacts",
        "## Needed by",
        "## Graph",
    ]
    assert "\n> ## Implementation Notes\n" in text
    assert "\nmaster has gone on by 1 commit; 0 files changed on both sides.\n" in text


OUTPUTS = (
    ("status",), ("status", "--json"), ("status", "--include-task-graph", "--json"),
    ("inbox",), ("inbox", "--json"), ("ready",), ("ready", "--json"),
    ("graph",), ("graph", "--json"), ("graph", "--format", "mermaid"), ("graph", "--format", "dot"),
    ("graph", "--format", "svg"),
    ("graph", "--all", "--format", "task_graph_projection_v0", "--json"),
    ("review-packet", "3"), ("review-packet", "3", "--json"), ("review-packet", "4", "--json"),
    ("review-packet", "4"), ("review-packet", "4", "--handoff-only"),
    ("review-packet", "4", "--handoff-only", "--json"),
)  # fmt: skip


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_no_secret_and_no_path_leaves(project: Path, words: tuple[str, ...]) -> None:
    text = tasks_inprocess(project, *words, check=None).out
    assert text
    assert [what for what in SECRETS if leaks(text, what)] == []
    assert str(project) not in text


def test_no_secret_and_no_path_is_watched(project: Path) -> None:
    oid = git(project, "rev-parse", "gittasks~2")
    with tasks_process(project, "watch", "--from", oid, "--jsonl") as watching:
        assert watching.stdout is not None
        text = "".join(watching.stdout.readline() for _ in range(3))
        watching.terminate()
    assert "[secret]" in text
    assert [what for what in SECRETS if leaks(text, what)] == []


def test_no_node_goes_for_its_title(project: Path) -> None:
    words = ("graph", "--all", "--format", "task_graph_projection_v0")
    graph = data(project, *words)["task_graph_projection_v0"]
    shown = [one["node_id"] for one in graph["nodes"] if one["kind"] == "deliverable"]
    assert shown == [f"deliverable:00000{number}" for number in (1, 2, 3, 4)]


# Sizes.


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One held task of which everything is as long as it may be."""
    folder = make_repository(tmp_path_factory.mktemp("crowded") / "project")
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        git(folder, "config", key, value)
    long = "\U0001f525" * 500
    tasks_inprocess(folder, "init", "-q")
    tasks_inprocess(folder, "new", long, "--enter", "plan", "--label", "x" * 400, "-m", long * 50)
    plan = ("--as", "p", "--role", "planner")
    review = ("--as", "r", "--role", "reviewer")
    for _ in range(2):
        tasks_inprocess(folder, "claim", "1", "--no-worktree", *plan)
        tasks_inprocess(folder, "submit", "1", "-m", "## Todos\n\n1. Go.\n", *plan)
        tasks_inprocess(folder, "claim", "1", "--no-worktree", *review)
        findings = [word for _ in range(12) for word in ("-m", long * 4)]
        tasks_inprocess(folder, "feedback", "1", *findings, *review)
    return folder


def test_what_is_handed_over_stays_small_whatever_was_written(crowded: Path) -> None:
    done = tasks_inprocess(crowded, "review-packet", "1", "--handoff-only", "--json")
    assert len(done.out.encode()) <= 5_100
    found = done.json()["data"]
    assert found["task"]["state"] == "HELD_PLAN"
    assert (len(found["findings"]), found["findings_truncated"]) == (5, 7)
    assert found["next"]["command"] == "git tasks resume 000001"


def test_the_usual_status_of_one_task_stays_small(crowded: Path) -> None:
    assert len(tasks_inprocess(crowded, "status", "--json").out.encode()) <= 8_000


def test_where_nothing_waits_the_task_that_goes_on_has_the_graph(home: Path) -> None:
    folder = make_repository(home / "project")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    tasks_inprocess(folder, "init", "-q")
    refused = tasks_inprocess(folder, "review-packet", check=2)
    tasks_inprocess(folder, "new", "One", "--enter", "work")
    plain = data(folder, "status")["attention_queue"]["items"]
    (item,) = data(folder, "status", "--include-task-graph")["attention_queue"]["items"]
    conforms(item.pop("task_graph_projection"))
    assert refused.err.startswith("error: No task waits for anybody, and none is named.\n")
    assert plain == []
    assert (item["id"], item["command"]) == ("000001", "git tasks start 000001")
