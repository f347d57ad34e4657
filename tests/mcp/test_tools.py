"""Every tool over a real connection: what it does, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gittasks.mcp import tools
from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository
from tests.support.mcp_clients import PERSON, Manager, managing

SECRET = "ghp_0123456789abcdefghijABCDEF"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_repository(tmp_path_factory.mktemp("tools") / "repo")
    tasks_inprocess(made, "init", "-q", env=PERSON)
    return made


@pytest.fixture(scope="module")
def manager(folder: Path) -> Iterator[Manager]:
    with managing(folder) as connected:
        yield connected


def new(manager: Manager, title: str = "Task", **given: Any) -> str:
    return str(manager.data("task_create", title=title, **given)["id"])


def agent(folder: Path, *words: str, name: str = "wim") -> str:
    return tasks_inprocess(folder, *words, env={**PERSON, "GITTASKS_AGENT": name}).out.strip()


def at_work_review(manager: Manager, folder: Path) -> str:
    task = new(manager, enter="work")
    tree = Path(agent(folder, "start", task))
    (tree / f"{task}.txt").write_text("x\n", encoding="utf-8")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "Work")
    agent(tree, "submit", "-m", "Done.")
    return task


def tip(folder: Path) -> str:
    return git(folder, "rev-parse", "gittasks")


# ------------------------------------------------------------------------------------- the list


def test_the_list_is_short_enough_for_every_session(manager: Manager) -> None:
    listed = manager.run(manager.client.list_tools).tools
    text = json.dumps([one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in listed])  # fmt: skip
    assert len(text) / 3.5 < 2500
    assert [one.name for one in listed] == [one.name for one in tools.TOOLS]
    reads = ["task_show", "task_list", "inbox", "inbox_wait", "queue", "graph", "pool_status"]
    assert [one.name for one in listed if one.annotations] == reads


def test_every_tool_says_what_it_needs(manager: Manager) -> None:
    for one in manager.run(manager.client.list_tools).tools:
        needed = one.input_schema.get("required", [])
        assert set(needed) <= set(one.input_schema["properties"])
        if needed:
            assert manager.refused(one.name)["message"].startswith("The argument ")


def test_the_server_says_what_it_is_for(manager: Manager) -> None:
    assert "inbox" in (manager.client.instructions or "")
    assert manager.client.protocol_version == "2026-07-28"


# --------------------------------------------------------------------------------- writing down


def test_a_task_is_written_down_with_all_its_fields(manager: Manager, folder: Path) -> None:
    first = new(manager, "First")
    given = {"labels": ["ui", "big"], "checks": ["true"], "priority": 0, "assignee": "wim"}
    found = manager.call(
        "task_create", title="Second", body="Do it.\n", depends_on=[int(first)], enter="plan",
        **given,
    )  # fmt: skip
    task = found["data"]
    assert found["ledger"] == task["commit"] == tip(folder)
    assert (task["state"], task["depends_on"]) == ("BLOCKED", [first])
    assert {name: task[name] for name in given} == given
    assert manager.data("task_show", id=task["id"])["body"] == "Do it.\n"


def test_the_same_key_gives_the_same_task(manager: Manager) -> None:
    first = manager.call("task_create", title="Once", key="k")
    again = manager.call("task_create", title="Once", key="k")
    assert again["data"]["id"] == first["data"]["id"]
    assert "nothing to do" in again["notes"][0]


def test_a_blank_title_is_refused(manager: Manager) -> None:
    assert manager.refused("task_create", title="  ")["name"] == "USAGE"


def test_fields_are_changed_and_emptied(manager: Manager) -> None:
    task = new(manager, labels=["old"], assignee="wim")
    given = {"title": "New", "labels": ["a"], "depends_on": [], "priority": "1"}
    found = manager.data("task_edit", id=task, assignee=None, **given)
    assert (found["title"], found["labels"], found["priority"]) == ("New", ["a"], 1)
    assert found["assignee"] is None
    assert manager.data("task_edit", id=task, labels=None)["labels"] == []


def test_a_change_of_nothing_is_refused(manager: Manager) -> None:
    assert manager.refused("task_edit", id=new(manager))["name"] == "USAGE"


def test_the_text_is_replaced(manager: Manager) -> None:
    task = new(manager, body="Old.\n")
    manager.call("task_write_body", id=task, body="New é.\n")
    assert manager.data("task_show", id=task)["body"] == "New é.\n"


def test_a_secret_is_taken_and_warned_about(manager: Manager) -> None:
    found = manager.call("task_create", title="Use it", body=SECRET)
    assert "looks like a secret" in found["notes"][0]


# ------------------------------------------------------------------------------------- deciding


def test_a_new_task_is_dispatched(manager: Manager) -> None:
    found = manager.data("task_submit", id=new(manager), enter="design")
    assert (found["from"], found["to"]) == ("NEW", "DESIGN")


def test_a_parent_is_closed(manager: Manager) -> None:
    parent = new(manager)
    manager.call("task_abort", id=new(manager, parent=parent))
    delivered = manager.refused("task_submit", id=parent, close=True)
    assert (delivered["name"], delivered["task"]) == ("STATE", parent)


def test_work_of_an_agent_is_not_submitted(manager: Manager) -> None:
    refusal = manager.refused("task_submit", id=new(manager, enter="work"))
    assert (refusal["code"], refusal["name"], refusal["retryable"]) == (5, "STATE", False)


def test_a_task_is_held_resumed_and_thrown_away(manager: Manager) -> None:
    task = new(manager, enter="work")
    assert manager.data("task_hold", id=task, reason="Wait.")["state"] == "HELD_WORK"
    assert manager.refused("task_hold", id=task, reason=" ")["name"] == "USAGE"
    assert manager.data("task_resume", id=task, remark="Go on.")["state"] == "WORK"
    manager.call("task_hold", id=task, reason="No.")
    assert manager.data("task_abort", id=task, reason="No.")["outcome"] == "aborted"


def test_findings_go_back_at_the_managers_own_review_only(manager: Manager, folder: Path) -> None:
    task = at_work_review(manager, folder)
    refusal = manager.refused("task_feedback", id=task, findings=["No."])
    assert refusal["message"] == (
        f"The task {task} is at WORK_REVIEW, which belongs to the reviewer; your findings are asked"
        " for at MANAGER_REVIEW only."
    )
    agent(folder, "start", task, name="rita")
    held = manager.refused("task_feedback", id=task, findings=["No."])
    assert held["message"] == refusal["message"]
    agent(folder, "submit", task, name="rita")
    assert manager.data("task_show", id=task, diff=True)["change"]["files"] == [
        {"status": "A", "path": f"{task}.txt"}
    ]
    assert manager.refused("task_feedback", id=task, findings=[])["name"] == "USAGE"
    assert manager.data("task_feedback", id=task, findings="More tests.")["state"] == "WORK"
    assert manager.data("task_show", id=task)["findings"]["items"] == ["More tests."]


# --------------------------------------------------------------------------------------- asking


def test_a_task_is_named_in_any_spelling(manager: Manager) -> None:
    task = new(manager, "Here")
    number = int(task)
    for spelling in (number, float(number), str(number), task, f"#{number}", f"task/{task}"):
        assert manager.data("task_show", id=spelling)["id"] == task


@pytest.mark.parametrize(
    ("spelling", "words"),
    [
        (999_999, "There is no task 999999."),
        ("nine", "There is no task 'nine': a task id is a number such as 42."),
        (1.5, "There is no task 1.5: the argument id is a number such as 42."),
        (True, "There is no task True: the argument id is a number such as 42."),
        ("", "The task id is blank."),
    ],
)
def test_an_unknown_task_is_named(manager: Manager, spelling: Any, words: str) -> None:
    assert manager.refused("task_show", id=spelling)["message"] == words


def test_what_nobody_asked_for_is_ignored(manager: Manager) -> None:
    assert manager.data("task_list", limit=0, colour="red") == []


def test_lists_are_filtered_and_cut(manager: Manager) -> None:
    new(manager, labels=["rare"])
    task = new(manager, labels=["rare"], enter="work")
    assert [one["id"] for one in manager.data("task_list", labels="rare", state="work")] == [task]
    assert manager.call("task_list", labels=["rare"], limit=1)["truncated"] == 1
    assert manager.refused("task_list", state=["DONE"])["name"] == "USAGE"
    assert manager.refused("task_list", limit="many")["name"] == "USAGE"


def test_inbox_and_queue_say_what_comes_next(manager: Manager) -> None:
    waiting, ready = new(manager), new(manager, enter="design", priority=0)
    (row,) = [one for one in manager.data("inbox") if one["id"] == waiting]
    assert row["command"] == f"git tasks submit {waiting}"
    assert ready in [one["id"] for one in manager.data("queue", role="designer")]
    assert manager.refused("queue", role="boss")["name"] == "USAGE"


def test_the_graph_shows_what_is_connected(manager: Manager) -> None:
    first = new(manager)
    second = new(manager, depends_on=first)
    found = manager.data("graph", id=second)
    assert found["edges"] == [{"kind": "depends_on", "from": second, "to": first}]


def test_what_others_may_read_has_no_secrets_and_paths(manager: Manager) -> None:
    task = new(manager, f"Use {SECRET} in /home/ada/.netrc")
    for name in ("inbox", "graph"):
        text = json.dumps(manager.call(name))
        assert SECRET not in text
        assert "/home/ada" not in text
    assert SECRET in manager.data("task_show", id=task)["title"]


def test_a_text_that_is_no_text_comes_through(manager: Manager, folder: Path) -> None:
    task = new(manager)
    (folder.parent / "body").write_bytes(b"caf\xe9 \xe2\x80\xae\n")
    tasks_inprocess(folder, "edit", task, "-F", str(folder.parent / "body"), env=PERSON)
    result = manager.result("task_show", id=task)
    assert (result.structured_content or {})["data"]["body"] == "caf\ufffd \u202e\n"
    assert "\u202e" not in getattr(result.content[0], "text", "\u202e")


# ---------------------------------------------------------------------- the remote and the pool


def test_without_a_remote_there_is_nothing_to_exchange(manager: Manager) -> None:
    assert manager.refused("sync")["hint"]


def test_events_are_exchanged(manager: Manager, folder: Path) -> None:
    remote = make_repository(folder.parent / "remote.git", bare=True, commit=False)
    git(folder, "remote", "add", "origin", str(remote))
    try:
        found = manager.call("sync")
        assert found["data"]["pending"] == 0
        assert found["ledger"] == git(remote, "rev-parse", "gittasks")
        new(manager, "Published at once")
        assert tip(folder) == git(remote, "rev-parse", "gittasks")
    finally:
        git(folder, "config", "--unset", "gittasks.remote")
        git(folder, "remote", "remove", "origin")


def test_the_pool_is_shown_and_not_steered_without_a_runner(manager: Manager) -> None:
    (slot,) = manager.data("pool_status")["slots"]
    given: dict[str, dict[str, Any]] = {
        "pool_scale": {"agent": slot["agent"], "slots": 1},
        "pool_enable": {"agent": slot["agent"], "enabled": False},
        "pool_send": {"slot": slot["slot"], "text": "Hurry."},
        "pool_kill": {"slot": slot["slot"]},
    }
    assert {manager.refused(name, **asked)["message"] for name, asked in given.items()} == {
        "No runner works here."
    }
