"""Who is given what: slots that two runners share, numbers that change, agents that come back."""

from __future__ import annotations

import threading

import pytest

from gittasks.agents.base import Usage
from gittasks.domain.errors import Busy, Taken
from gittasks.runner.loop import Runner
from gittasks.workflow import steering
from gittasks.workflow.claim import claim
from gittasks.workflow.edit import edit
from gittasks.workflow.resume import resume
from tests.support.teams import PUPPET, Puppet, Team, puppet

SECOND = "pi-north-m-2"
SOUTH = "pi-south-m-1"


def start_elsewhere(team: Team) -> Runner:
    """Starts a runner whose slots are held by a thread of its own, as by another process."""
    is_there, is_over = threading.Event(), threading.Event()

    def work() -> None:
        team.start()
        is_there.set()
        is_over.wait()

    threading.Thread(target=work, daemon=True).start()
    assert is_there.wait(10)
    return team.runners[-1]


def slots_of(runner: Runner) -> list[str]:
    return [seat.name for seat in runner.seats]


def slot_of(agent: Puppet) -> str:
    return agent.spec.env["GITTASKS_AGENT"]


# -- slots


def test_a_second_runner_takes_the_numbers_that_are_free_and_a_third_is_refused(
    team: Team,
) -> None:
    team.pool(puppet(slots=1, maxSlots=2))
    first = start_elsewhere(team)
    second = start_elsewhere(team)
    assert (slots_of(first), slots_of(second)) == ([PUPPET], [SECOND])
    with pytest.raises(Busy, match=f"every slot of the pool: {PUPPET} is held by process"):
        team.start()
    assert Busy("").exit_code == 75
    team.end(first)
    assert slots_of(start_elsewhere(team)) == [PUPPET]


def test_slots_are_those_of_the_pool_file_in_its_order(team: Team) -> None:
    team.pool(puppet("south", slots=2), puppet(), puppet("west", enabled=False))
    assert slots_of(team.start()) == [SOUTH, "pi-south-m-2", PUPPET, "pi-west-m-1"]
    assert team.slots()["pi-west-m-1"] == ("DISABLED", "the agent is disabled")


def test_more_slots_of_an_agent_are_taken_at_once_and_not_beyond_the_most(team: Team) -> None:
    team.pool(puppet(maxSlots=3))
    runner = team.start()
    steering.scale(team.project(), "pi-north-m", 3)
    team.advance(1)
    assert slots_of(runner) == [PUPPET, SECOND, "pi-north-m-3"]


def test_fewer_slots_drop_the_highest_idle_one_and_let_the_others_finish(team: Team) -> None:
    team.pool(puppet(slots=3))
    for title in ("One", "Two"):
        team.task(title)
    runner = team.start()
    first, second = team.agents(2)
    steering.scale(team.project(), "pi-north-m", 1)
    team.advance(1)
    assert slots_of(runner) == [PUPPET, SECOND]
    first.settle()
    team.until_told(first, 2)
    first.submit()
    team.until(lambda: slots_of(runner) == [SECOND])
    assert (team.state(), second.is_alive()) == ("DESIGN_REVIEW", True)


def test_slots_that_were_to_go_stay_when_the_number_rises_again(team: Team) -> None:
    team.pool(puppet(slots=2))
    for title in ("One", "Two"):
        team.task(title)
    runner = team.start()
    agents = team.agents(2)
    for count in (1, 2):
        steering.scale(team.project(), "pi-north-m", count)
        team.advance(1)
    for agent in agents:
        agent.submit()
    team.until(lambda: len(team.heard("settled")) == 2)
    team.rest()
    assert slots_of(runner) == [PUPPET, SECOND]


def test_a_disabled_agent_finishes_and_is_given_no_more_until_it_is_enabled(team: Team) -> None:
    for title in ("One", "Two"):
        team.task(title)
    team.start()
    agent = team.agent()
    steering.enable(team.project(), "pi-north-m", enabled=False)
    team.advance(1)
    assert agent.is_alive()
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    team.advance(5)
    assert team.slots() == {PUPPET: ("DISABLED", "the agent is disabled")}
    steering.enable(team.project(), "pi-north-m", enabled=True)
    team.advance(1)
    team.advance(2)
    assert team.agent().task == "000001"


def test_what_was_switched_is_forgotten_with_the_last_runner(team: Team) -> None:
    team.pool(puppet(maxSlots=2))
    runner = team.start()
    steering.scale(team.project(), "pi-north-m", 2)
    team.advance(1)
    team.end(runner)
    assert slots_of(team.start()) == [PUPPET]


# -- who is given what


def test_a_task_is_given_to_its_assignee_and_to_nobody_else(team: Team) -> None:
    team.pool(puppet(slots=2), puppet("south"))
    team.task("One", assignee="Ada")
    team.task("Two", assignee="pi-south-m")
    team.task("Three", assignee=SECOND)
    team.start()
    given = {agent.task: slot_of(agent) for agent in team.agents(2)}
    team.advance(3)
    assert given == {"000002": SOUTH, "000003": SECOND}
    assert (team.holder(), len(team.stage.puppets)) == (None, 2)


def test_a_task_that_was_begun_goes_to_the_agent_that_had_it(team: Team) -> None:
    team.pool(puppet(), puppet("south"))
    had = {team.task("One", assignee=SOUTH): SOUTH, team.task("Two", assignee=PUPPET): PUPPET}
    team.start()
    agents = team.agents(2)
    names = ("pi-north-m", "pi-south-m")
    for name in names:
        steering.enable(team.project(), name, enabled=False)
    team.advance(1)
    for agent in agents:
        agent.submit()
    team.until_heard("settled", 2)
    for task in had:
        edit(team.project(), task, unset=["assignee"])
    for name in names:
        steering.enable(team.project(), name, enabled=True)
    team.advance(3)
    assert {agent.task: slot_of(agent) for agent in team.agents(2)} == had


def test_a_task_goes_to_the_fastest_agent_once_all_were_measured(team: Team) -> None:
    team.pool(puppet(roles=["designer"]), puppet("south", roles=["designer"]))
    for title in ("One", "Two"):
        team.task(title)
    team.start()
    agents = team.agents(2)
    for output in (100, 200):
        for agent, speed in zip(agents, (1, 3), strict=True):
            agent.tell(Usage(output=output * speed))
        team.advance(10)
    for agent in agents:
        agent.submit()
    team.until_heard("settled", 2)
    team.task("Three")
    team.advance(3)
    assert slot_of(team.agent()) == SOUTH


def test_a_role_that_an_agent_has_not_is_given_to_another(team: Team) -> None:
    team.pool(puppet(roles=["designer"]), puppet("south", roles=["reviewer"]))
    team.task()
    team.start()
    agent = team.agent()
    agent.submit()
    assert (slot_of(agent), slot_of(team.agent())) == (PUPPET, SOUTH)


def test_a_task_is_given_to_nobody_while_its_last_agent_leaves_the_tree(team: Team) -> None:
    team.pool(puppet(roles=["designer"]), puppet("south", roles=["reviewer"]))
    team.task()
    team.start()
    first = team.agent()
    first.is_stubborn = True
    first.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    team.advance(2.5)
    with pytest.raises(Taken, match="has just ended, and its runner brings in"):
        claim(team.project("ada"), "000001")
    assert len(team.stage.puppets) == 1
    for _ in range(2):
        team.advance(3.1)
    assert first.ways == ["close", "terminate", "kill"]
    assert slot_of(team.agent()) == SOUTH


# -- sessions


def test_a_failed_check_goes_on_in_the_session_that_submitted(team: Team) -> None:
    team.pool(puppet("south", roles=["worker"]), puppet(roles=["worker"]))
    team.task("One", enter="work")
    team.task("Two", enter="work", checks=["echo So not. >&2; false"])
    team.start()
    other, agent = team.agents(2)
    assert (slot_of(other), slot_of(agent)) == (SOUTH, PUPPET)
    other.submit()
    agent.uses(cost=0.5, tokens=100)
    agent.submit()
    again = team.agent()
    assert (again.task, slot_of(again), again.spec.session) == ("000002", PUPPET, agent.session)
    assert again.prompts[0].startswith("Make these commands succeed in this tree:")
    assert "> So not." in again.prompts[0]
    # The session counts from its beginning; the claim costs only what came since.
    again.uses(cost=0.75, tokens=150)
    again.submit()
    team.until(lambda: len(team.seen("000002").costs) == 2)
    assert [cost[3:] for cost in team.seen("000002").costs] == [(0.5, 100), (0.25, 50)]


def test_a_task_that_heads_the_queue_is_begun_afresh_where_its_agent_is_at_work(
    team: Team,
) -> None:
    sign = team.folder.parent / "sign"
    check = f"while test ! -e {sign}; do sleep 0.01; done; false"
    team.pool(puppet(roles=["worker"]), puppet("south", roles=["worker"]))
    team.task("One", enter="work", checks=[check])
    team.task("Two", enter="work")
    team.start()
    agent, other = team.agents(2)
    agent.submit()
    team.until_heard("check")
    team.task("Three", enter="work")
    team.advance(3)
    assert slot_of(team.agent()) == PUPPET
    sign.touch()
    team.until_heard("checked")
    other.submit()
    fresh = team.agent()
    assert (fresh.task, slot_of(fresh), fresh.spec.session) == ("000001", SOUTH, None)
    assert fresh.prompts[0].startswith("You are the worker")


def test_a_session_is_forgotten_when_its_branch_has_moved_on(team: Team) -> None:
    team.task("One", enter="work", checks=["false"])
    team.start()
    agent = team.agent()
    agent.submit()
    again = team.agent()
    assert again.spec.session == agent.session
    again.leave("hold", reason="Which colour?")
    again.settle()
    team.until_told(again, 2)
    again.leave("hold", reason="Which colour?")
    again.settle()
    team.until(team.is_held)
    resume(team.project(), "000001")
    team.rest()
    team.advance(3)
    assert team.agent().spec.session is None
