"""`git tasks graph` on ledgers with diamonds, rings, hostile titles and documents that are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gittasks.domain.task import Task
from gittasks.plumbing.repository import Repository
from tests.support.builders import BRANCH, a_task, write_ledger
from tests.support.cli import tasks_inprocess
from tests.support.decisions import task_at
from tests.support.git import make_repository

HOSTILE = 'See /home/mia/plan "]; --> \x1b[31m\u202e </svg> api_key=abcdef123456'
CLOSED = {"state": "CLOSED", "entered_at": "2026-11-30T00:00:00Z"}


def written(folder: Path, *tasks: Task, **files: bytes) -> Path:
    make_repository(folder)
    repo = Repository.open(str(folder), resolve=(BRANCH,))
    write_ledger(repo, tasks, files={f"tasks/0000/{n[1:]}.md": data for n, data in files.items()})
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A diamond below a parent, what it stands on, and what is over."""
    return written(
        tmp_path_factory.mktemp("graph") / "project",
        a_task(1, title="Ground", outcome="landed", landed="d" * 40, **CLOSED),
        a_task(2, title="Whole", entered_at="2026-11-30T00:00:00Z"),
        task_at("WORK", 3, title="Top", parent="000002", depends_on=("000001",), held_by="bob"),
        task_at("BLOCKED", 4, title="Left", parent="000002", depends_on=("000003",)),
        task_at("BLOCKED", 5, title="Right", parent="000002", depends_on=("000003",)),
        task_at("BLOCKED", 6, title="Bottom", depends_on=("000004", "000005")),
        a_task(7, title="Older", outcome="aborted", **CLOSED),
        a_task(8, title="Newer", supersedes="000007"),
        a_task(9, title="Gone", outcome="aborted", **CLOSED),
    )


def ids(project: Path, *words: str) -> str:
    nodes = tasks_inprocess(project, "graph", "--json", *words).json()["data"]["nodes"]
    return " ".join(str(int(node["id"])) for node in nodes)


def test_the_outline_has_the_open_tasks_and_what_they_need(project: Path) -> None:
    done = tasks_inprocess(project, "graph", "--at", "HEAD")
    assert (done.out, done.err) == (
        "000001  LANDED   46 d  Ground\n"
        "000002  NEW      46 d  Whole\n"
        "000003  WORK      0 s    Top (bob) <- 000001\n"
        "000004  BLOCKED   0 s    Left <- 000003\n"
        "000005  BLOCKED   0 s    Right <- 000003\n"
        "000006  BLOCKED   0 s  Bottom <- 000004, 000005\n"
        "000008  NEW       0 s  Newer\n",
        "",
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), "1 2 3 4 5 6 8"),
        (("--history",), "1 2 3 4 5 6 7 8"),
        (("--all",), "1 2 3 4 5 6 7 8 9"),
        (("--task", "4"), "1 2 3 4 6"),
        (("--task", "2"), "2 3 4 5"),
        (("--task", "1"), "1 3 4 5 6"),
        (("--task", "8"), "8"),
        (("--task", "8", "--history"), "7 8"),
        (("--task", "9"), "9"),
    ],
)
def test_what_belongs_to_the_picture(project: Path, words: tuple[str, ...], found: str) -> None:
    assert ids(project, *words) == found


def test_one_task_is_not_everything(project: Path) -> None:
    done = tasks_inprocess(project, "graph", "--task", "1", "--all", check=2)
    assert done.err == (
        "error: The surroundings of one task are not the whole project.\n"
        "hint: Give either --task or --all.\n"
    )


def test_nodes_and_edges_as_json(project: Path) -> None:
    found = tasks_inprocess(project, "graph", "--format", "json", "--task", "3").json()
    assert (found["kind"], found["data"]["about"]) == ("graph", "000003")
    assert found["data"]["nodes"][2] == {
        "id": "000003",
        "title": "Top",
        "state": "WORK",
        "outcome": None,
        "priority": 2,
        "labels": [],
        "claimed_by": "bob",
        "entered_at": "2027-01-15T08:00:00Z",
    }
    edges = [(edge["from"], edge["kind"], edge["to"]) for edge in found["data"]["edges"]]
    assert edges == [
        ("000003", "parent", "000002"),
        ("000003", "depends_on", "000001"),
        ("000004", "parent", "000002"),
        ("000004", "depends_on", "000003"),
        ("000005", "parent", "000002"),
        ("000005", "depends_on", "000003"),
        ("000006", "depends_on", "000004"),
        ("000006", "depends_on", "000005"),
    ]
    assert (found["data"]["unread"], found["data"]["left_out"]) == ([], 3)


@pytest.mark.parametrize("form", ["mermaid", "dot", "svg"])
def test_a_drawing_can_come_in_an_envelope(project: Path, form: str) -> None:
    drawn = tasks_inprocess(project, "graph", "--format", form).out
    found = tasks_inprocess(project, "graph", "--format", form, "--json").json()
    assert found["data"] == {"format": form, "drawing": drawn}


def test_the_projection_stands_alone_or_in_an_envelope(project: Path) -> None:
    words = ("graph", "--format", "task_graph_projection_v0", "--task", "3")
    alone = tasks_inprocess(project, *words).json()
    found = tasks_inprocess(project, *words, "--json").json()
    assert found["kind"] == "graph"
    assert found["data"] == {"task_graph_projection_v0": alone}


def test_an_empty_ledger_has_an_empty_graph(home: Path) -> None:
    empty = written(home / "empty")
    said = tasks_inprocess(empty, "graph")
    assert (said.out, said.err) == ("", "There is nothing to draw.\n")
    assert ids(empty, "--all") == ""
    for form in ("mermaid", "dot", "svg"):
        assert tasks_inprocess(empty, "graph", "--format", form).out != ""


def test_rings_and_bad_documents_stop_no_picture(home: Path) -> None:
    project = written(
        home / "project",
        task_at("BLOCKED", 1, title="One", depends_on=("000002",), parent="000003"),
        task_at("BLOCKED", 2, title="Two", depends_on=("000001",), parent="000001"),
        task_at("BLOCKED", 3, title="Three", depends_on=("000004", "000077"), parent="000002"),
        _000004=b"---\nno header\n",
    )
    done = tasks_inprocess(project, "graph", "--all")
    lines = done.out.splitlines()
    assert [line[:6] for line in lines] == ["000004", "000077", "000001", "000002", "000003"]
    assert lines[-1].endswith("      Three <- 000004, 000077")
    assert "000004" in done.err
    assert done.err.startswith("warning: ")
    found = tasks_inprocess(project, "graph", "--json").json()
    assert found["data"]["unread"] == ["000004", "000077"]
    assert [problem["task"] for problem in found["problems"]] == ["000004"]
    for task in "123":
        assert ids(project, "--task", task) == "1 2 3"
    for form in ("mermaid", "dot", "svg"):
        assert "000077 UNREAD" in tasks_inprocess(project, "graph", "--format", form).out


@pytest.mark.parametrize("form", ["text", "mermaid", "dot", "svg", "json"])
def test_a_hostile_title_is_drawn_without_its_secrets(home: Path, form: str) -> None:
    project = written(home / "project", task_at("WORK", 1, title=HOSTILE, held_by="/home/mia"))
    drawn = tasks_inprocess(project, "graph", "--format", form).out
    assert re.search(r"mia|abcdef|[\x00-\x09\x0b-\x1f\x80-\x9f\u202e]", drawn) is None
    assert "[path]" in drawn or "#91;path#93;" in drawn
