"""What somebody at another terminal asks of a runner while it works."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest

from gittasks.domain.errors import GittasksError, Refused
from gittasks.plumbing.processes import with_variable
from gittasks.workflow import steering
from tests.support.cli import COMMAND, environment
from tests.support.teams import PUPPET, Team, puppet


def ordered(team: Team, order: Callable[[], Any]) -> Any:
    """Gives an order from elsewhere while the runners tick; returns or raises what came of it."""
    came: list[Any] = []

    def give() -> None:
        try:
            came.append(order())
        except GittasksError as error:
            came.append(error)

    thread = threading.Thread(target=give)
    thread.start()
    team.until(lambda: came, 15)
    thread.join()
    if isinstance(came[0], Exception):
        raise came[0]
    return came[0]


def test_what_is_sent_reaches_the_agent_in_the_middle_of_its_turn(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    manager = team.project()
    assert ordered(team, lambda: steering.send(manager, "1", "Look at app.txt.")) == {
        "slot": PUPPET,
        "task": "000001",
    }
    assert (agent.steered, len(agent.prompts)) == (["Look at app.txt."], 1)
    assert team.heard("sent") == [{"slot": PUPPET, "task": "000001"}]


def test_what_is_sent_to_an_agent_that_waits_is_refused(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.settle("error", "overloaded")
    team.until_heard("retry")
    with pytest.raises(
        Refused, match=f"{PUPPET} hears nothing now: the provider failed: overloaded"
    ):
        ordered(team, lambda: steering.send(team.project(), PUPPET, "Look."))
    assert agent.steered == []


def test_nothing_is_sent_to_a_slot_where_nobody_works(team: Team) -> None:
    team.start()
    with pytest.raises(Refused, match=f"Nobody works at {PUPPET}"):
        ordered(team, lambda: steering.send(team.project(), PUPPET, "Look."))


def test_an_agent_that_is_killed_gives_its_task_back_and_leaves_nothing(team: Team) -> None:
    team.pool(team.script("sleep 600 & sleep 600\n"))
    team.task()
    runner = team.start()
    team.until(lambda: team.record() and os.path.exists(team.folder.parent / "told" / "000001/1"))
    steering.enable(team.project(), "command", enabled=False)
    team.advance(1)
    answer = ordered(team, lambda: steering.kill(team.project("Ada"), "1"))
    assert answer == {"slot": "command-1", "task": "000001"}
    team.until(lambda: team.kinds()[-1] == "release")
    assert team.history()[-1].text == "The agent was ended by Ada."
    assert (team.holder(), with_variable("GITTASKS_RUN", runner.project.host)) == (None, {})
    assert runner.seats[0].state == "IDLE"


def test_what_an_agent_had_handed_in_when_it_was_killed_is_recorded(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.leave("note", text="Read it all.")
    agent.leave("submit", text="As asked.")
    ordered(team, lambda: steering.kill(team.project(), PUPPET))
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    assert team.kinds()[2:5] == ["claim", "note", "submit"]


def test_a_runner_that_is_stopped_records_what_is_there_and_gives_the_rest_back(
    team: Team,
) -> None:
    team.pool(puppet(slots=3))
    for title in ("One", "Two", "Three"):
        team.task(title)
    runner = team.start()
    first, second, third = team.agents(3)
    first.leave("submit", text="As asked.")
    third.is_stubborn = True
    runner.stop("by order")
    team.tick(2)
    for _ in range(2):
        team.advance(3.5)
    team.until(lambda: all(seat.state == "IDLE" for seat in runner.seats))
    assert [team.state(task) for task in ("000001", "000002", "000003")] == [
        "DESIGN_REVIEW",
        "DESIGN",
        "DESIGN",
    ]
    assert [team.kinds(task)[-1] for task in ("000002", "000003")] == ["release", "release"]
    assert team.history("000002")[-1].text == "The runner was stopped: by order."
    assert [one.ways for one in (second, third)] == [
        ["interrupt", "close"],
        ["interrupt", "close", "terminate", "kill"],
    ]
    assert (runner.killed, len(team.stage.puppets)) == (1, 3)


def test_a_runner_that_is_stopped_twice_waits_for_nobody(team: Team) -> None:
    team.task()
    runner = team.start()
    agent = team.agent()
    agent.is_stubborn = True
    runner.stop("by SIGINT")
    runner.stop("by SIGINT", at_once=True)
    team.tick(2)
    assert agent.ways == ["kill", "interrupt"]
    assert (runner.seats[0].state, team.kinds()[-1]) == ("IDLE", "release")


def test_pool_stop_ends_the_runner_of_another_process_and_counts_whom_it_killed(
    team: Team,
) -> None:
    team.pool(team.script("trap '' TERM INT\nhand note\nwhile :; do sleep 1; done\n"))
    team.task()
    process = subprocess.Popen(
        [*COMMAND, "run"], cwd=team.folder, env=environment(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "dispatch":
            break
    team.until(lambda: os.path.exists(team.folder.parent / "told" / "000001/1"))
    stopped = steering.stop(team.project("Ada"), at_once=True)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, stopped.killed) == (0, 1)
    assert err == "Of the agents, 1 had to be killed.\n"
    assert json.loads(out.splitlines()[-1])["why"] == "ended by Ada"
    assert team.kinds()[-1] == "release"
    assert with_variable("GITTASKS_RUN", team.project().host) == {}
