"""`import` and `export`, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gittasks.cli import catalogue, frame
from gittasks.workflow.importing import sources
from tests.support.cli import tasks, tasks_inprocess
from tests.support.git import make_repository

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "importing"
ROWS = (
    '{"id": "a", "title": "One", "status": "open"}\n'
    '{"id": "b", "title": "Two", "status": "open", "dependencies": [{"depends_on_id": "a"}]}\n'
    '{"id": "c", "status": "open"}\n'
    '{"id": "d", "title": "Old", "status": "closed"}\n'
)


@pytest.fixture
def project(home: Path) -> Path:
    folder = make_repository(home / "project")
    tasks_inprocess(folder, "init", "-q")
    return folder


def test_import_prints_the_ids_and_tells_the_rest(project: Path) -> None:
    first = tasks_inprocess(project, "import", "-", stdin=ROWS, check=1)
    fault = "stdin:3: c: The title is missing; give it one.\n"
    rest = "1 closed left out (--all brings them, too); one row left out with a fault.\n"
    assert (first.out, first.err) == (
        "000001\n000002\n", f"{fault}2 tasks were imported from beads; {rest}",
    )  # fmt: skip
    again = tasks_inprocess(project, "import", "-", stdin=ROWS, check=1)
    assert (again.out, again.err) == (
        "", f"{fault}No tasks were imported from beads; 2 are here already; {rest}",
    )  # fmt: skip


def test_import_answers_machines(project: Path) -> None:
    answer = tasks_inprocess(project, "import", "-", "--json", stdin=ROWS, check=1).json()
    created = [
        {"key": "a", "id": "000001", "title": "One"}, {"key": "b", "id": "000002", "title": "Two"},
    ]  # fmt: skip
    problem = {
        "path": "stdin",
        "row": 3,
        "key": "c",
        "message": "The title is missing; give it one.",
    }
    assert (answer["kind"], answer["data"]) == ("import", {
        "source": "beads", "dry_run": False, "created": created, "known": [],
        "ids": {"a": "000001", "b": "000002"}, "closed": ["d"],
        "counts": {"created": 2, "known": 0, "closed": 1, "skipped": 0, "faults": 1},
        "problems": [problem],
    })  # fmt: skip


def test_a_dry_run_names_what_would_come(project: Path) -> None:
    place = str(FIXTURES / "ticket")
    look = tasks_inprocess(project, "import", "--dry-run", place)
    assert (look.out.splitlines()[0], look.err) == (
        "ca-1f0e  Move the depot",
        "3 tasks would be imported from ticket; 1 closed left out (--all brings them, too).\n",
    )
    assert tasks_inprocess(project, "list", "--json").json()["data"] == []


def test_what_cannot_be_read_is_a_usage_fault(project: Path) -> None:
    refused = tasks_inprocess(project, "import", "nowhere", check=2)
    assert refused.err == (
        "error: The file nowhere cannot be read: No such file or directory.\n"
        "hint: Name a readable file or folder, or -.\n"
    )


def test_a_path_is_taken_from_where_the_user_stands(project: Path, home: Path) -> None:
    (home / "rows.jsonl").write_text(ROWS, encoding="utf-8")
    assert (
        tasks(home, "-C", "project", "import", "../rows.jsonl", check=1).out == "000001\n000002\n"
    )


def test_export_prints_a_line_a_task(project: Path) -> None:
    tasks_inprocess(project, "import", "-", stdin=ROWS, check=1)
    lines = tasks_inprocess(project, "export", "--jsonl").out.splitlines()
    whole = tasks_inprocess(project, "export", "--json").json()
    assert whole["kind"] == "export"
    assert [json.loads(line) for line in lines] == whole["data"]
    assert [(one["title"], one["depends_on"], one["x-imported-id"]) for one in whole["data"]] == [
        ("One", [], "a"), ("Two", ["000001"], "b"),
    ]  # fmt: skip


def test_export_answers_for_the_past(project: Path) -> None:
    tasks_inprocess(project, "new", "One")
    tasks_inprocess(project, "new", "Two")
    then = tasks_inprocess(project, "export", "--at", "HEAD~1").out.splitlines()
    assert [json.loads(line)["title"] for line in then] == ["One"]


def test_every_source_can_be_named() -> None:
    command = catalogue.load("import")
    assert isinstance(command, frame.Command)
    choice = command.by_name["--from"].type
    assert isinstance(choice, frame.Choice)
    assert choice.words == tuple(sources.TITLES)
