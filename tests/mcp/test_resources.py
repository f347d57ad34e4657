"""Resources, and who is told when they change: in both ways that the protocol has, and by waiting."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.subscriptions import ResourceUpdated

from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository
from tests.support.mcp_clients import PERSON, SECONDS, Manager, managing

# The client of the SDK says that newer revisions listen instead.
pytestmark = pytest.mark.filterwarnings(
    "ignore:resources/:mcp.shared.exceptions.MCPDeprecationWarning"
)

NAMES = ["inbox", "tasks", "queue", "slots", "checks", "graph", "paths", "error"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_repository(tmp_path_factory.mktemp("resources") / "repo")
    tasks_inprocess(made, "init", "-q", env=PERSON)
    tasks_inprocess(made, "new", "First", "--enter", "work", env=PERSON)
    return made


@pytest.fixture(scope="module")
def manager(folder: Path) -> Iterator[Manager]:
    with managing(folder) as connected:
        yield connected


@pytest.fixture(scope="module")
def elder(folder: Path) -> Iterator[Manager]:
    """A client of the revisions that shake hands."""
    with managing(folder, mode="legacy") as connected:
        yield connected


def new(folder: Path, title: str = "Another") -> str:
    return tasks_inprocess(folder, "new", title, env=PERSON).out.strip()


def test_all_of_them_are_listed(manager: Manager) -> None:
    listed = manager.run(manager.client.list_resources).resources
    assert [str(one.uri) for one in listed] == [f"gittasks://{name}" for name in NAMES]
    (template,) = manager.run(manager.client.list_resource_templates).resource_templates
    assert template.uri_template == "gittasks://task/{id}"


def test_each_says_for_which_commit_it_is_true(manager: Manager, folder: Path) -> None:
    tip = git(folder, "rev-parse", "gittasks")
    found = {name: manager.read(name) for name in (*NAMES, "task/1")}
    assert {one["ledger"] for one in found.values()} == {tip}
    assert found["inbox"]["kind"] == "inbox"
    assert [one["id"] for one in found["queue"]["data"]] == ["000001"]
    assert [one["id"] for one in found["graph"]["data"]["nodes"]] == ["000001"]
    assert found["task/1"]["data"]["title"] == "First"
    assert found["error"]["data"] == found["checks"]["data"] == []
    assert [one["state"] for one in found["slots"]["data"]] == ["DISABLED"]
    paths = found["paths"]["data"]
    assert paths["repository"] == str(folder / ".git")
    assert paths["agents_file"] == str(folder / ".git" / "gittasks" / "agents.json")


def test_the_task_that_has_changed_last_comes_first(manager: Manager, folder: Path) -> None:
    newest = new(folder)
    assert manager.read("tasks")["data"][0]["id"] == newest


def test_what_is_not_there_is_refused(manager: Manager) -> None:
    assert manager.unread("nothing") == (-32602, "There is no resource 'gittasks://nothing'.")
    assert manager.unread("task/999999") == (-32602, "There is no task 999999.")


def test_whoever_subscribes_is_told_of_what_changes(elder: Manager, folder: Path) -> None:
    elder.run(elder.client.subscribe_resource, "gittasks://inbox")
    elder.run(elder.client.subscribe_resource, "gittasks://queue")
    new(folder)
    # The queue is what it was, whatever the ledger says.
    assert elder.told.get(timeout=SECONDS) == "gittasks://inbox"
    elder.run(elder.client.unsubscribe_resource, "gittasks://inbox")
    task = new(folder)
    tasks_inprocess(folder, "submit", task, "--enter", "plan", env=PERSON)
    assert elder.told.get(timeout=SECONDS) == "gittasks://queue"
    assert elder.told.empty()


def test_nobody_subscribes_to_what_is_not_there(elder: Manager) -> None:
    with pytest.raises(Exception, match="There is no resource"):
        elder.run(elder.client.subscribe_resource, "gittasks://nothing")


def test_whoever_listens_is_told_of_what_changes(manager: Manager, folder: Path) -> None:
    client = manager.client

    async def listened() -> Any:
        uris = ["gittasks://inbox", "gittasks://paths", "gittasks://task/1", "gittasks://nothing"]
        async with client.listen(resource_subscriptions=uris) as stream:
            new(folder)
            async for event in stream:
                return event
        raise AssertionError("The stream has ended.")

    assert manager.run(listened) == ResourceUpdated(uri="gittasks://inbox")


def test_what_does_not_depend_on_the_ledger_is_told_as_well(elder: Manager, folder: Path) -> None:
    elder.run(elder.client.subscribe_resource, "gittasks://slots")
    file = folder / ".git" / "gittasks" / "agents.json"
    before = file.read_text(encoding="utf-8")
    pool: dict[str, Any] = json.loads(before)
    pool["agents"][0]["slots"] = 2
    file.write_text(json.dumps(pool), encoding="utf-8")
    assert elder.told.get(timeout=SECONDS) == "gittasks://slots"
    elder.run(elder.client.unsubscribe_resource, "gittasks://slots")
    file.write_text(before, encoding="utf-8")


# ----------------------------------------------------------------------------------- inbox_wait


def test_a_wait_ends_with_the_new_row_alone(manager: Manager, folder: Path) -> None:
    waited: list[dict[str, Any]] = []
    thread = threading.Thread(
        target=lambda: waited.append(manager.call("inbox_wait", timeout=SECONDS))
    )
    thread.start()
    time.sleep(0.5)
    begun = time.monotonic()
    task = new(folder, "What we wait for")
    thread.join()
    assert time.monotonic() - begun < 5
    assert [row["id"] for row in waited[0]["data"]] == [task]
    assert waited[0]["timed_out"] is False
    assert waited[0]["waiting"] == len(manager.data("inbox"))


def test_a_wait_from_an_earlier_answer_misses_nothing(manager: Manager, folder: Path) -> None:
    seen = manager.call("inbox")["ledger"]
    task = new(folder)
    found = manager.call("inbox_wait", since=seen, timeout=SECONDS)
    assert [row["id"] for row in found["data"]] == [task]
    everything = manager.call("inbox_wait", since="0" * 40, timeout=SECONDS)
    assert everything["data"] == manager.data("inbox")


def test_a_wait_sees_what_others_have_published(folder: Path) -> None:
    mine, theirs = folder.parent / "mine", folder.parent / "theirs"
    remote = make_repository(folder.parent / "remote.git", bare=True)
    for clone in (mine, theirs):
        git(folder.parent, "clone", "-q", str(remote), str(clone))
        tasks_inprocess(clone, "init", "-q", env=PERSON)
        tasks_inprocess(clone, "sync", "-q", env=PERSON)
    git(mine, "config", "gittasks.watchInterval", "250ms")
    with managing(mine) as manager:
        seen = manager.call("inbox")["ledger"]
        task = new(theirs, "From afar")
        found = manager.call("inbox_wait", since=seen, timeout=SECONDS)
    assert [(row["id"], row["title"]) for row in found["data"]] == [(task, "From afar")]


def test_a_wait_is_bounded(manager: Manager) -> None:
    begun = time.monotonic()
    found = manager.call("inbox_wait", timeout=1)
    assert (found["data"], found["timed_out"]) == ([], True)
    assert 0.9 < time.monotonic() - begun < 5
    assert manager.refused("inbox_wait", timeout="long")["name"] == "USAGE"
