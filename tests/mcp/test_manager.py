"""A manager who speaks nothing but MCP clears an inbox, down to what is on master."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository
from tests.support.mcp_clients import PERSON, Manager, managing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = make_repository(tmp_path / "repo")
    tasks_inprocess(made, "init", "-q", env=PERSON)
    return made


@pytest.fixture
def manager(folder: Path) -> Iterator[Manager]:
    with managing(folder, mode="legacy") as connected:
        yield connected


def agent(folder: Path, *words: str) -> str:
    return tasks_inprocess(folder, *words, env={**PERSON, "GITTASKS_AGENT": "wim"}).out.strip()


def work(folder: Path, task: str, text: str) -> None:
    """Plays worker and reviewer of a task."""
    tree = Path(agent(folder, "start", task))
    (tree / f"{task}.txt").write_text(text, encoding="utf-8")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", text)
    agent(tree, "submit", "-m", text)
    agent(folder, "start", task)
    agent(folder, "submit", task)


def drain(manager: Manager) -> list[str]:
    """Decides every row of the inbox once and returns what was decided."""
    decided = []
    for row in manager.data("inbox"):
        task = row["id"]
        match row["state"]:
            case "NEW":
                manager.call("task_submit", id=task, enter="work")
            case "MANAGER_REVIEW":
                change = manager.data("task_show", id=task, diff=True)["change"]
                if "+wrong" in change["patch"]:
                    manager.call("task_feedback", id=task, findings=["It is wrong."])
                else:
                    manager.call("task_submit", id=task)
            case _:
                manager.call("task_resume", id=task, remark="The second one.")
        decided.append(f"{row['state']} {task}")
    return decided


def test_an_inbox_is_drained_to_closed_tasks_on_master(folder: Path, manager: Manager) -> None:
    review, held, new = (
        manager.data("task_create", title=title, enter=enter)["id"]
        for title, enter in (("Review", "work"), ("Held", "work"), ("New", None))
    )
    work(folder, review, "wrong\n")
    agent(folder, "start", held)
    agent(folder, "hold", held, "--reason", "Which?")
    assert drain(manager) == [f"MANAGER_REVIEW {review}", f"HELD_WORK {held}", f"NEW {new}"]
    for task in (review, held, new):
        work(folder, task, "right\n")
    assert len(drain(manager)) == 3
    assert manager.data("inbox") == []
    shown = [manager.data("task_show", id=task) for task in (review, held, new)]
    assert [(one["state"], one["outcome"]) for one in shown] == [("CLOSED", "landed")] * 3
    files = git(folder, "ls-tree", "--name-only", "master").splitlines()
    assert files == ["000001.txt", "000002.txt", "000003.txt", "app.txt"]
    assert tasks_inprocess(folder, "fsck", env=PERSON).status == 0
