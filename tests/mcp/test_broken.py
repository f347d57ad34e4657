"""What is broken is told, by everything that needs it, and is served again once it is mended."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gittasks.mcp import resources, tools
from gittasks.mcp.arguments import Arguments
from gittasks.mcp.desk import Answer, Desk
from gittasks.workflow import pool
from gittasks.workflow.project import Options, Project
from gittasks.workspaces import records
from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository
from tests.support.mcp_clients import PERSON, managing

READS = [tool for tool in tools.TOOLS if tool.kind in ("read", "wait")]
VERBS = [tool for tool in tools.TOOLS if tool.kind in ("verb", "submit")]
GIVEN: dict[str, Any] = {
    "id": "1", "title": "T", "body": "B", "findings": ["F"], "reason": "R", "agent": "a", "slots": 1,
    "slot": "s", "text": "T",
}  # fmt: skip
NAMES = [one.name for one in resources.RESOURCES]


@pytest.fixture
def folder(home: Path) -> Path:
    made = make_repository(home / "repo")
    tasks_inprocess(made, "init", "-q", env=PERSON)
    tasks_inprocess(made, "new", "First", env=PERSON)
    return made


def desk(folder: Path, **env: str) -> Desk:
    return Desk(Options(str(folder)), {**os.environ, **PERSON, **env})


def asked(at: Desk, tool: tools.Tool) -> dict[str, Any]:
    ask = at.ask if tool in READS else at.manage
    return ask(lambda project: tool.call(project, Arguments(GIVEN)))


def refusals(at: Desk, some: list[tools.Tool]) -> dict[str, str]:
    """Returns what each tool says that refuses."""
    found = {tool.name: asked(at, tool) for tool in some}
    return {name: one["error"]["message"] for name, one in found.items() if "error" in one}


def failures(at: Desk) -> set[str]:
    """Returns the names of the resources that cannot be read."""
    return {name for name in NAMES if "error" in (resources.read(at, f"gittasks://{name}") or {})}


def broken(at: Desk) -> list[tuple[str, str]]:
    """Returns what the resource `error` names."""
    found = resources.read(at, "gittasks://error") or {}
    return [(one["part"], one["message"]) for one in found["data"]]


# --------------------------------------------------------------------------------- broken parts


def test_without_a_ledger_everything_says_so_until_there_is_one(home: Path) -> None:
    made = make_repository(home / "repo")
    with managing(made) as manager:
        words = "There is no ledger in this repository yet."
        for tool in tools.TOOLS:
            assert manager.refused(tool.name)["message"] == words
        assert manager.unread("inbox") == (-32603, words)
        assert [one["part"] for one in manager.read("error")["data"]] == ["ledger"]
        assert manager.read("paths")["data"]["checkout"] == str(made)
        tasks_inprocess(made, "init", "-q", env=PERSON)
        assert manager.data("inbox") == manager.read("error")["data"] == []


def test_without_a_repository_everything_says_so(home: Path) -> None:
    (home / "empty").mkdir()
    at = desk(home / "empty")
    told = refusals(at, list(tools.TOOLS))
    assert len(told) == len(tools.TOOLS)
    assert len(set(told.values())) == 1
    assert failures(at) == {*NAMES} - {"error"}
    assert [part for part, _ in broken(at)] == ["repository"]


def test_a_ledger_that_does_not_verify_stops_everything(folder: Path) -> None:
    at = desk(folder)
    tip = git(folder, "rev-parse", "gittasks")
    git(folder, "update-ref", "refs/heads/gittasks", git(folder, "rev-parse", "master"))
    assert set(refusals(at, READS)) == {tool.name for tool in READS}
    assert [part for part, _ in broken(at)] == ["ledger"]
    git(folder, "update-ref", "refs/heads/gittasks", tip)
    assert refusals(at, READS) == {}
    assert broken(at) == []


def test_a_faulty_pool_file_stops_the_pool_alone(folder: Path) -> None:
    at = desk(folder)
    (folder / ".git" / "gittasks" / "agents.json").write_text("{", encoding="utf-8")
    told = refusals(at, READS)
    assert set(told) == {"pool_status"}
    assert failures(at) == {"slots", "checks"}
    assert broken(at) == [("pool", told["pool_status"])]
    (folder / ".git" / "gittasks" / "agents.json").unlink()
    assert failures(at) == set()


def test_a_defect_reaches_the_client_with_its_text(folder: Path) -> None:
    def fail(_project: Project) -> Answer:
        raise ValueError("It is odd.")

    error = desk(folder).ask(fail)["error"]
    words, _, path = error["message"].removesuffix(".").partition("; the report is in ")
    assert words == "This is a defect of git tasks (ValueError: It is odd.)"
    assert "It is odd." in Path(path).read_text(encoding="utf-8")
    assert (error["code"], error["name"], error["retryable"]) == (1, "FAIL", False)


def test_what_the_system_refuses_is_told(folder: Path) -> None:
    def fail(_project: Project) -> Answer:
        raise OSError(28, "No space left on device", "/data/x")

    error = desk(folder).ask(fail)["error"]
    assert error["message"] == "The system refused: /data/x: No space left on device."


def test_the_agents_of_a_runner_are_steered(folder: Path) -> None:
    slot = {"slot": "command-1", "agent": "command", "index": 1, "total": 1, "max": 3, "enabled": True,
            "state": "BUSY", "task": "000001", "activity": {"tool": "bash", "target": "/home/ada/x"}}  # fmt: skip
    at = desk(folder)
    project = at.open()
    view = {"process": records.own_process(), "scheduling": True, "slots": [slot]}
    pool.write_view(project, "aa", view)

    def asked_for(name: str, **given: Any) -> Any:
        tool = next(one for one in tools.TOOLS if one.name == name)
        found = at.manage(lambda project: tool.call(project, Arguments(given)))
        assert "data" in found, found
        return found["data"]

    def serve() -> None:
        for _ in range(2):
            while not (orders := list(pool.take_orders(project, lambda _verb, _data: True))):
                time.sleep(0.01)
            done = {"done": True, "slot": "command-1", "task": "000001", "text": orders[0].verb}
            pool.answer(project, orders[0], done)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert asked_for("pool_scale", agent="command", slots="2") == {
        "agent": "command", "slots": 2, "max": 3,
    }  # fmt: skip
    assert asked_for("pool_enable", agent="command", enabled=False)["enabled"] is False
    assert pool.control(project) == pool.Control({"command": 2}, {"command": False})
    sent = asked_for("pool_send", slot="command-1", text="Hurry.")
    assert sent == {"slot": "command-1", "task": "000001"}
    assert asked_for("pool_kill", slot="command-1")["task"] == "000001"
    thread.join()
    (row,) = [
        one
        for one in (resources.read(at, "gittasks://slots") or {})["data"]
        if one["slot"] == "command-1"
    ]
    assert (row["wanted"], row["activity"]["target"]) == (2, "[path]")


# -------------------------------------------------------------------------------- agents at work


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (f"GITTASKS_{word}", f"GITTASKS_{word} is set")
        for word in ("CLAIM", "TASK", "AGENT", "ROLE")
    ],
)
def test_an_agent_may_read_and_nothing_else(folder: Path, name: str, why: str) -> None:
    at = desk(folder, **{name: "worker" if name.endswith("ROLE") else "1"})
    words = f"You are an agent at work ({why}), and only the manager may do this."
    assert refusals(at, VERBS) == {tool.name: words for tool in VERBS}
    assert refusals(at, READS) == {}
    assert failures(at) == set()


def test_in_the_worktree_of_a_task_there_is_no_manager(folder: Path) -> None:
    tasks_inprocess(folder, "submit", "1", "--enter", "work", env=PERSON)
    tree = tasks_inprocess(folder, "start", "1", "--as", "wim", env=PERSON).out.strip()
    words = (
        "You are an agent at work (this is the worktree of 000001), and only the manager may do"
        " this."
    )
    at = desk(Path(tree))
    assert refusals(at, VERBS) == {tool.name: words for tool in VERBS}
    assert refusals(at, READS) == {}


def test_the_manager_is_no_holder_of_a_claim_of_the_same_name(folder: Path) -> None:
    tasks_inprocess(folder, "submit", "1", "--enter", "work", env=PERSON)
    tasks_inprocess(folder, "start", "1", "--as", "Ada", env=PERSON)
    git(folder, "config", "user.name", "Ada")
    submit = next(tool for tool in tools.TOOLS if tool.name == "task_submit")
    assert asked(desk(folder), submit)["error"]["name"] == "STATE"
