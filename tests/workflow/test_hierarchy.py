"""Moving tasks below each other and among their siblings; notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.domain.errors import NotAllowed, UnknownTask, UsageFault, WrongRole
from gittasks.workflow import create, hierarchy
from gittasks.workflow.note import note
from gittasks.workflow.project import Project
from tests.support.git import git
from tests.workflow.ground import begun, reopened


@pytest.fixture
def project(home: Path) -> Project:
    project = begun(home / "project")
    create.create_all(project, b"# One\n\n# Two\n\n# Three\n\n# Four\nparent: 1\n", "plan")
    return project


def tip(project: Project) -> str:
    return git(project.repo.common_dir, "rev-parse", "refs/heads/gittasks")


def order(project: Project) -> list[str]:
    graph = project.ledger.graph()
    tasks = [task for task in map(graph.get, graph.children(None)) if task is not None]
    return [task.title for task in sorted(tasks, key=lambda task: task.sort_key)]


def test_a_task_moves_below_another_and_back_to_the_top(project: Project) -> None:
    assert hierarchy.reparent(project, "2", "#1").task.parent == "000001"
    assert hierarchy.reparent(project, "2", None).task.parent is None


def test_a_move_to_where_it_stands_writes_nothing(project: Project) -> None:
    before = tip(project)
    assert not hierarchy.reparent(project, "4", "1").changed
    assert not hierarchy.reorder(project, "1", "first").changed
    assert not hierarchy.reorder(project, "2", "before", "3").changed
    assert tip(project) == before


def test_three_parents_that_cannot_be_have_three_messages(project: Project) -> None:
    messages = set()
    for parent, refusal in (("1", NotAllowed), ("4", NotAllowed), ("9", UnknownTask)):
        with pytest.raises(refusal) as caught:
            hierarchy.reparent(project, "1", parent)
        messages.add(str(caught.value))
    assert len(messages) == 3


def test_siblings_are_put_in_order(project: Project) -> None:
    hierarchy.reorder(project, "3", "first")
    assert order(project) == ["Three", "One", "Two"]
    hierarchy.reorder(project, "3", "after", "1")
    assert order(project) == ["One", "Three", "Two"]
    hierarchy.reorder(project, "1", "last")
    assert order(project) == ["Three", "Two", "One"]
    hierarchy.reorder(project, "1", "before", "2")
    assert order(project) == ["Three", "One", "Two"]


def test_only_siblings_are_put_in_order(project: Project) -> None:
    with pytest.raises(NotAllowed):
        hierarchy.reorder(project, "4", "before", "2")
    with pytest.raises(UsageFault):
        hierarchy.reorder(project, "2", "before", "2")


def test_only_the_manager_moves(project: Project) -> None:
    agent = reopened(project, environ={"GITTASKS_AGENT": "bot"})
    with pytest.raises(WrongRole):
        hierarchy.reparent(agent, "2", "1")
    with pytest.raises(WrongRole):
        hierarchy.reorder(agent, "2", "first")


def test_anyone_adds_a_note_to_the_history(project: Project) -> None:
    agent = reopened(project, environ={"GITTASKS_AGENT": "bot"})
    outcome = note(agent, "2", "It is\nslow.")
    message = git(project.repo.common_dir, "log", "-1", "--format=%an|%s|%b", "gittasks", "--")
    assert outcome.kind == "note"
    assert message.startswith("bot|000002 note NEW (none bot)|    It is\n    slow.\n")


def test_a_note_records_artifacts(project: Project) -> None:
    note(project, "2", artifacts=["report=build/a=b.html"])
    assert note(project, "2", artifacts=["log=x", "report=y"]).task.artifacts == (
        ("report", "y"), ("log", "x"),
    )  # fmt: skip


@pytest.mark.parametrize("artifact", ["report", "=x", " =x", "a\nb=x"])
def test_an_artifact_has_a_name_and_a_value(project: Project, artifact: str) -> None:
    with pytest.raises(UsageFault, match="not spelled NAME=VALUE"):
        note(project, "2", artifacts=[artifact])


def test_a_blank_note_is_refused(project: Project) -> None:
    before = tip(project)
    with pytest.raises(UsageFault, match="The note is blank"):
        note(project, "2", " \n")
    assert tip(project) == before


def test_a_note_goes_to_the_outbox_where_a_runner_writes(project: Project, home: Path) -> None:
    outbox = home / "outbox"
    outbox.mkdir()
    agent = reopened(project, environ={"GITTASKS_AGENT": "bot", "GITTASKS_OUTBOX": str(outbox)})
    before = tip(project)
    outcome = note(agent, "2", "Slow.", artifacts=["a=b"])
    (entry,) = outbox.iterdir()
    import json

    data = json.loads(entry.read_text(encoding="utf-8"))
    assert (data["verb"], data["task"], data["text"], data["artifacts"]) == (
        "note", "000002", "Slow.", {"a": "b"},
    )  # fmt: skip
    assert (outcome.extra["outbox"], tip(project)) == (entry.stem, before)
