"""What commands and runners of one host say to each other, without a runner: files on both sides."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gittasks.domain.errors import Busy, NothingFound, Refused, UnknownTask, UsageFault, WrongRole
from gittasks.domain.pool import Agent, Pool, PoolFault
from gittasks.workflow import pool, steering, transcripts
from gittasks.workflow.claim import claim
from gittasks.workflow.create import New, create
from gittasks.workflow.project import Options, Project
from gittasks.workspaces import records
from tests.support.git import git
from tests.workflow.ground import NOW, begun, reopened

TWO = {
    "agents": [
        {"type": "command", "command": ["a"], "slots": 2, "maxSlots": 4},
        {"type": "claude", "enabled": False},
    ]
}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = begun(tmp_path_factory.mktemp("pool") / "project")
    for title in ("One", "Two", "Three"):
        create(project, New(title, enter="work"))
    claim(reopened(project, Options(project.options.path, "command-2")), "000002", with_tree=False)
    return project


@pytest.fixture
def project(ground: Project) -> Iterator[Project]:
    """Returns the project with a pool of two agents and no runner."""
    import shutil

    write_pool(ground, TWO)
    yield reopened(ground)
    for name in ("runners", "orders", "agents"):
        shutil.rmtree(os.path.join(ground.state_dir, name), ignore_errors=True)
    for name in ("control.json", "agents.json"):
        Path(ground.state_dir, name).unlink(missing_ok=True)


def write_pool(project: Project, pool_file: object) -> Path:
    path = Path(project.state_dir, "agents.json")
    path.write_text(json.dumps(pool_file), encoding="utf-8")
    return path


def row(slot: str, task: str | None = None, **more: Any) -> dict[str, Any]:
    """Returns a slot as a runner shows it."""
    agent, _, number = slot.rpartition("-")
    shown = {
        "slot": slot, "agent": agent, "index": int(number), "total": 2, "max": 4, "enabled": True,
        "state": "BUSY" if task else "IDLE", "task": task, "why": "",
    }  # fmt: skip
    return {**shown, **more}


def live(project: Project, *rows: Mapping[str, Any], run: str = "aa", **more: Any) -> None:
    """Shows a runner that lives: this very process."""
    view = {"process": records.own_process(), "at": NOW, "scheduling": True, "slots": rows}
    pool.write_view(project, run, {**view, **more})


@contextmanager
def runner(project: Project, answer: Mapping[str, Any] | None) -> Iterator[list[pool.Order]]:
    """Answers orders as a runner does, in a thread; with None it leaves instead, without a word."""
    taken: list[pool.Order] = []
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            for order in pool.take_orders(project, lambda _verb, _data: True):
                taken.append(order)
                if answer is None:
                    pool.drop_view(project, "aa", killed=2)
                else:
                    pool.answer(project, order, answer)
            time.sleep(0.01)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield taken
    finally:
        over.set()
        thread.join()


# -- the file


def test_a_missing_file_is_written_once_and_starts_nothing(project: Project) -> None:
    path = Path(project.state_dir, "agents.json")
    path.unlink()
    found = pool.load(project)
    assert found == Pool((Agent("claude", enabled=False),))
    with pytest.raises(PoolFault) as caught:
        pool.require_startable(project, found)
    assert caught.value.message == f"The pool file {path} has a fault.\n  No agent is enabled."


def test_an_empty_pool_starts_nothing(project: Project) -> None:
    path = write_pool(project, {"agents": []})
    with pytest.raises(PoolFault, match=r"agents: There is no agent\."):
        pool.require_startable(project, pool.load(project))
    assert path.read_text(encoding="utf-8") == '{"agents": []}'


@pytest.mark.parametrize(
    ("name", "expected"),
    [("team/pool.json", "{top}/team/pool.json"), ("~/p.json", "{home}/p.json"), ("/p", "/p")],
)
def test_the_file_may_be_elsewhere_and_is_not_made_there(
    project: Project, name: str, expected: str
) -> None:
    top = project.repo.worktree
    assert top is not None
    git(Path(top), "config", "gittasks.pool", name)
    try:
        there = reopened(project)
        path = pool.pool_path(there)
        assert path == expected.format(top=top, home=os.environ["HOME"])
        with pytest.raises(PoolFault, match=r"It is not there\."):
            pool.load(there)
    finally:
        git(Path(top), "config", "--unset", "gittasks.pool")


def test_a_file_that_cannot_be_read_is_a_fault(project: Project) -> None:
    with pytest.raises(PoolFault, match=r"It cannot be read: Is a directory\."):
        pool.load(project, project.state_dir)


def test_who_asks_for_a_sandbox_is_heard_in_order(project: Project) -> None:
    asked = Pool(sandbox="require")
    assert pool.sandbox_wish(project, asked) == "require"
    assert pool.sandbox_wish(project, asked, "off") == "off"
    with pytest.raises(UsageFault):
        pool.sandbox_wish(project, asked, "maybe")


# -- views, control


def test_a_runner_counts_while_its_process_lives(project: Project) -> None:
    own = records.own_process()
    assert own is not None
    live(project, row("command-1"), run="bb")
    live(project, run="cc", process=(own[0], "another one of this number"))
    live(project, run="dd", process="nonsense")
    folder = Path(project.state_dir, "runners")
    for name, at in (("ee.json.7.torn", 0), ("ff.json.7.begun", project.clock())):
        (folder / name).write_text("{", encoding="utf-8")
        os.utime(folder / name, (at, at))
    assert [view["run"] for view in pool.views(project)] == ["bb"]
    pool.clear_control(project)
    assert sorted(os.listdir(folder)) == ["bb.json", "ff.json.7.begun"]


def test_switches_add_up_and_nonsense_among_them_counts_for_nothing(project: Project) -> None:
    path = Path(project.state_dir, "control.json")
    path.write_text(
        '{"agents": {"a": {"slots": true, "enabled": 1}, "b": 3, "c": {"slots": 0}}}',
        encoding="utf-8",
    )
    assert pool.control(project) == pool.Control()
    pool.switch(project, "b", slots=3)
    pool.switch(project, "b", enabled=False)
    pool.switch(project, "b", slots=2)
    assert pool.control(project) == pool.Control({"b": 2}, {"b": False})
    pool.clear_control(project)
    assert pool.control(project) == pool.Control()


# -- steering


def test_counts_and_switches_hold_for_the_agents_of_file_and_runners(project: Project) -> None:
    live(project, row("other-1", max=None))
    assert steering.scale(project, "command", 4) == 4
    assert steering.scale(project, "other", 9) is None
    steering.enable(project, "claude", enabled=True)
    expected = pool.Control({"command": 4, "other": 9}, {"claude": True})
    assert pool.control(project) == expected


@pytest.mark.parametrize(
    ("name", "count", "error", "told"),
    [
        ("command", 0, UsageFault, "An agent has at least one slot."),
        ("command", 5, UsageFault, "5 slots are more than the 4 that maxSlots allows."),
        ("claude", 1001, UsageFault, "1001 slots are more than the 1000 that an agent can have."),
        ("cloud\x1b", 1, steering.UnknownAgent, "There is no agent cloud\\u001b."),
        ("command", 1, pool.NoRunner, "No runner works here."),
    ],
)
def test_a_count_that_cannot_be_is_refused(
    project: Project, name: str, count: int, error: type[Exception], told: str
) -> None:
    with pytest.raises(error) as caught:
        steering.scale(project, name, count)
    assert str(caught.value) == told
    assert pool.control(project) == pool.Control()


@pytest.mark.parametrize("variable", ["GITTASKS_CLAIM", "GITTASKS_RUN"])
def test_an_agent_at_work_steers_nothing(project: Project, variable: str) -> None:
    agent = reopened(project, environ={variable: "ab" * 16})
    for refused in (
        lambda: steering.scale(agent, "command", 1),
        lambda: steering.enable(agent, "command", enabled=False),
        lambda: steering.send(agent, "1", "hello"),
        lambda: steering.kill(agent, "1"),
        lambda: steering.stop(agent),
    ):
        with pytest.raises(WrongRole):
            refused()


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("command-2", {"slot": "command-2"}),
        ("#2", {"slot": "command-2", "task": "000002"}),
        ("task/000002", {"slot": "command-2", "task": "000002"}),
    ],
)
def test_words_reach_the_slot_or_task_that_is_meant(
    project: Project, target: str, meant: dict[str, str]
) -> None:
    live(project, row("command-1"), row("command-2", "000002"))
    said = {"done": True, "slot": "command-2", "task": "000002"}
    with runner(project, said) as taken:
        assert steering.send(project, target, "go on") == {"slot": "command-2", "task": "000002"}
    assert [(one.verb, one.data) for one in taken] == [("send", {**meant, "text": "go on"})]
    assert os.listdir(os.path.join(project.state_dir, "orders")) == []


def test_what_a_runner_refuses_is_told(project: Project) -> None:
    live(project, row("command-1"))
    answer = {"done": False, "slot": "command-1", "why": "Nobody works at command-1."}
    with runner(project, answer), pytest.raises(Refused) as caught:
        steering.kill(project, "command-1")
    assert caught.value.message == "Nobody works at command-1."


@pytest.mark.parametrize(
    ("target", "error", "told"),
    [
        ("1", Refused, "No agent works on 000001."),
        ("3", Refused, "No agent works on 000003; its checks run."),
        ("9", UnknownTask, "There is no task 000009."),
        ("command-9", steering.UnknownAgent, "There is no slot command-9."),
    ],
)
def test_an_order_for_nobody_is_refused(
    project: Project, target: str, error: type[Exception], told: str
) -> None:
    live(project, row("command-2", "000002"), checks=[{"task": "000003"}])
    with pytest.raises(error) as caught:
        steering.kill(project, target)
    assert str(caught.value) == told


def test_an_order_that_nobody_takes_is_taken_back(project: Project) -> None:
    live(project)
    with pytest.raises(Busy, match=r"No runner has answered within 0\.1 seconds"):
        pool.order(project, "send", {}, 0.1)
    assert list(pool.take_orders(project, lambda _verb, _data: True)) == []


def test_without_a_runner_nothing_is_ordered(project: Project) -> None:
    with pytest.raises(pool.NoRunner):
        pool.order(project, "send", {})
    live(project)
    with runner(project, None), pytest.raises(pool.NoRunner):
        pool.order(project, "send", {})


def test_an_order_is_for_one_runner_and_for_somebody_who_waits(project: Project) -> None:
    live(project)
    kept = pool.place(project, "stop", {"runner": "bb"})
    orders = Path(project.state_dir, "orders")
    left = {"verb": "kill", "data": {}, "process": [os.getpid(), "long gone"]}
    (orders / "left.json").write_text(json.dumps(left), encoding="utf-8")
    (orders / "torn.json").write_text("{", encoding="utf-8")
    (orders / "odd.json").write_text(
        json.dumps({"verb": "kill", "data": [1], "process": records.own_process()}), "utf-8"
    )
    assert list(pool.take_orders(project, lambda _verb, data: data["runner"] == "aa")) == []
    (found,) = pool.take_orders(project, lambda _verb, data: data["runner"] == "bb")
    assert found == pool.Order(kept, "stop", {"runner": "bb"})
    assert sorted(os.listdir(orders)) == ["odd.json", "torn.json"]


def test_stopping_waits_for_the_end_and_tells_what_it_took(project: Project) -> None:
    assert steering.stop(project) == steering.Stopped(())
    live(project)
    with runner(project, None) as taken:
        assert steering.stop(project, at_once=True) == steering.Stopped(("aa",), 2)
    told = [(one.verb, one.data["runner"], one.data["at_once"]) for one in taken]
    assert told == [("stop", "aa", True)]
    assert os.listdir(os.path.join(project.state_dir, "runners")) == []


def test_a_runner_that_does_not_end_is_named(project: Project) -> None:
    live(project)
    with pytest.raises(Busy) as caught:
        steering.stop(project, wait=0.1)
    assert str(os.getpid()) in caught.value.message
    assert os.listdir(os.path.join(project.state_dir, "orders")) == []


# -- status


def test_without_a_runner_the_slots_of_the_file_are_shown(project: Project) -> None:
    found = pool.status(project)
    assert [(one["slot"], one["state"], one["why"]) for one in found.slots] == [
        ("command-1", "IDLE", "no runner works here"),
        ("command-2", "IDLE", "no runner works here"),
        ("claude-1", "DISABLED", "the agent is disabled"),
    ]
    assert found.runners == found.checks == found.queue == ()


def test_what_was_switched_shows_before_the_runner_has_heard_it(project: Project) -> None:
    activity = {"tool": "shell", "target": "make", "since": NOW - 5}
    live(
        project, row("command-1"), row("command-2", "000002", activity=activity, started_at=NOW),
        queue=[{"task": "000001"}], checks=[{"task": "000003", "started_at": NOW, "log": "l"}],
    )  # fmt: skip
    pool.switch(project, "command", enabled=False, slots=1)
    found = pool.status(project)
    first, second, third = found.slots
    assert (first["state"], first["enabled"], first["wanted"]) == ("DISABLED", False, 1)
    assert second["state"] == "BUSY"
    assert second["activity"] == {**activity, "since": "2027-01-15T07:59:55Z"}
    assert second["started_at"] == found.checks[0]["started_at"] == "2027-01-15T08:00:00Z"
    assert (third["slot"], third["why"]) == ("claude-1", "the agent is disabled")
    assert found.queue == ({"task": "000001"},)
    assert {set(one) == set(first) for one in found.slots} == {True}


def test_a_faulty_file_hides_no_runner(project: Project) -> None:
    write_pool(project, {"agents": 3})
    with pytest.raises(PoolFault):
        pool.status(project)
    live(project, row("command-1"))
    assert [one["slot"] for one in pool.status(project).slots] == ["command-1"]
    assert steering.scale(project, "command", 3) == 4


# -- logs


def log(project: Project, task: str, slot: str, text: str) -> Path:
    path = Path(project.state_dir, "agents", task, f"{slot}.log")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def texts(lines: list[transcripts.Line]) -> list[str]:
    return [line.text for line in lines]


def test_the_last_lines_go_back_into_the_log_before(project: Project) -> None:
    path = log(project, "000001", "command-1", "d\r\ne")
    path.with_name("command-1.log.1").write_text("a\nb\nc\n", encoding="utf-8")
    found = transcripts.transcripts(project, "1")
    assert texts(transcripts.last_lines(found, 4)) == ["b", "c", "d", "e"]
    assert texts(transcripts.last_lines(found, 99)) == ["a", "b", "c", "d", "e"]
    assert transcripts.last_lines(found, 0) == []


def test_of_a_huge_log_only_the_end_is_read(project: Project) -> None:
    log(project, "000001", "command-1", "x" * 1_048_570 + "\nlast one\n")
    found = transcripts.transcripts(project, "command-1")
    assert texts(transcripts.last_lines(found, 9)) == ["last one"]


def test_whoever_is_meant_is_found(project: Project) -> None:
    old = log(project, "000001", "command-1", "old\n")
    os.utime(old, (1, 1))
    new = log(project, "000002", "command-1", "new\n")
    link = old.with_name("command-2.log")
    link.symlink_to("/etc/passwd")
    one, two = ("command-1", "000001", str(old)), ("command-1", "000002", str(new))
    assert transcripts.transcripts(project, "command-1") == [two]
    assert transcripts.transcripts(project, "task/000001") == [one]
    live(project, row("command-1", "000001", log=str(old)), row("command-2"))
    assert transcripts.transcripts(project, "command-1") == [one]
    assert transcripts.transcripts(project, None) == [one]
    assert transcripts.last_lines([transcripts.Transcript("s", "t", str(link))], 9) == []
    assert transcripts.last_lines([transcripts.Transcript("s", "t", str(link.parent))], 9) == []


@pytest.mark.parametrize(
    ("target", "error"),
    [
        (None, NothingFound),
        ("3", NothingFound),
        ("command-1", NothingFound),
        ("9", UnknownTask),
        ("../x", steering.UnknownAgent),
    ],
)
def test_a_log_that_is_not_there_is_told(
    project: Project, target: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        transcripts.transcripts(project, target)


def test_a_log_is_followed_over_all_that_happens_to_it(project: Project) -> None:
    path = log(project, "000001", "command-1", "a\nb\nbeg")
    live(project, row("command-1", "000001", log=str(path)))

    def append() -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write("un\nc\n")

    def write(text: str) -> Callable[[], None]:
        def replace() -> None:
            if path.is_symlink():
                path.unlink()
            path.write_text(text, encoding="utf-8")

        return replace

    def rename() -> None:
        path.rename(f"{path}.1")

    def link() -> None:
        path.unlink()
        path.symlink_to("/etc/passwd")

    def end() -> None:
        live(project, row("command-1"))

    # Cut short, renamed, begun again, something else in its place, and begun again.
    steps = iter([append, write("d\n"), rename, write("e\n"), link, write("f\nopen end"), end])
    found = transcripts.transcripts(project, "1")

    def wait(_seconds: float) -> None:
        next(steps)()

    lines = list(transcripts.follow(project, "1", found, 1, wait))
    assert texts(lines) == ["b", "begun", "c", "d", "e", "f", "open end"]


def test_of_everybody_whoever_begins_is_followed_until_the_runner_ends(project: Project) -> None:
    one = log(project, "000001", "command-1", "a\n")
    two = log(project, "000002", "command-2", "b\n")
    live(project, row("command-1", "000001", log=str(one)))
    looks = iter(range(1000))

    def wait(_seconds: float) -> None:
        look = next(looks)
        if look == 0:
            live(project, row("command-2", "000002", log=str(two)))
        elif look == 1:
            pool.drop_view(project, "aa")

    found = transcripts.transcripts(project, None)
    lines = list(transcripts.follow(project, None, found, 9, wait))
    assert lines == [("command-1", "000001", "a"), ("command-2", "000002", "b")]
