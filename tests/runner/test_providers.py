"""When an agent is given something: its hours, its health, failures and limits of its provider."""

from __future__ import annotations

import time

from gittasks.domain.times import timestamp
from tests.support.teams import PUPPET, Team, puppet
from tests.workflow.ground import NOW

SOUTH = "pi-south-m-1"


def test_an_agent_is_given_nothing_outside_its_hours_and_finishes_what_it_has(team: Team) -> None:
    team.pool(puppet(schedule=[{"start": "08:00", "end": "08:30"}]))
    for title in ("One", "Two"):
        team.task(title)
    team.start()
    agent = team.agent()
    team.advance(1800)
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    team.advance(3)
    assert team.slots() == {PUPPET: ("OFF_SCHEDULE", "it is outside the agent's hours")}
    team.advance(86_400 - 1803)
    assert team.agent().task == "000001"


def test_a_program_that_is_not_there_gets_nothing_until_it_is(team: Team) -> None:
    team.stage.problem = "There is no program pi here."
    team.task()
    team.start()
    team.tick(2)
    assert team.slots() == {PUPPET: ("UNREACHABLE", "There is no program pi here.")}
    team.stage.problem = None
    team.advance(31)
    team.until(lambda: team.slots() and team.heard("reachable"))
    team.advance(2)
    assert team.agent().task == "000001"
    assert (len(team.heard("unreachable")), len(team.heard("reachable"))) == (1, 1)


def test_a_command_that_asks_for_the_health_decides_whether_something_is_given(
    team: Team,
) -> None:
    sign = team.folder.parent / "up"
    asking = ["/bin/sh", "-c", f"test -e {sign} || {{ echo down for now >&2; exit 1; }}"]
    team.pool(puppet(healthCheck=asking), puppet("south", roles=["planner"]))
    team.task()
    team.start()
    why = "the provider does not answer: down for now"
    team.until(lambda: team.slots()[PUPPET] == ("UNREACHABLE", why))
    assert team.slots()[SOUTH] == ("IDLE", "waiting for a planner task")
    for _ in range(3):
        team.advance(31)
        time.sleep(0.02)
    team.until_heard("unreachable")
    assert team.heard("unreachable") == [{"agent": "pi-north-m", "why": why}]
    sign.touch()
    team.advance(31)
    team.until(lambda: team.slots() and team.heard("reachable"))
    team.advance(2)
    assert team.agent().task == "000001"
    assert team.heard("reachable") == [{"agent": "pi-north-m"}]


def test_a_provider_that_fails_is_left_alone_for_twice_as_long_each_time(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    brief = agent.prompts[0]
    for attempt, pause in enumerate((1, 2, 4, 8, 16, 32, 64, 64), 1):
        agent.settle("error", "overloaded")
        team.until_heard("retry", attempt)
        assert team.heard("retry")[-1]["due"] - team.now == pause
        team.advance(pause - 0.5)
        assert len(agent.prompts) == attempt
        team.advance(0.5)
        assert len(agent.prompts) == attempt + 1
    assert set(agent.prompts) == {brief}
    assert team.holder() == PUPPET


def test_a_good_turn_ends_the_back_off(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    for pause in (1, 2):
        agent.settle("error", "overloaded")
        team.until(lambda: team.slots()[PUPPET] == ("WAITING", "the provider failed: overloaded"))
        team.advance(pause)
    agent.settle()
    team.until_heard("nudge")
    agent.settle("error", "overloaded")
    team.until_heard("retry", 3)
    assert team.heard("retry")[-1]["due"] == team.now + 1


def test_what_is_told_again_after_a_failure_is_what_was_told_last(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.settle()
    team.until_told(agent, 2)
    agent.settle("error", "overloaded")
    team.until_heard("retry")
    team.advance(1)
    assert agent.prompts[2] == agent.prompts[1] != agent.prompts[0]


def test_a_model_that_is_being_loaded_is_waited_for_and_counts_as_no_failure(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    for times in (1, 2):
        agent.settle("error", "503: loading model")
        team.until_heard("retry", times)
        assert team.heard("retry")[-1]["due"] == team.now + 5
        team.advance(5)
    agent.settle("error", "overloaded")
    team.until_heard("retry", 3)
    assert team.heard("retry")[-1]["due"] == team.now + 1


def test_an_agent_that_ended_while_it_waited_is_replaced_in_its_session(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.settle("error", "overloaded")
    team.until_heard("retry")
    agent.die(0)
    team.advance(1)
    other = team.agent()
    assert (other.session, other.prompts) == (agent.session, agent.prompts)
    assert team.kinds().count("claim") == 1


def test_a_short_limit_is_waited_for_with_the_task_while_another_provider_goes_on(
    team: Team,
) -> None:
    team.pool(puppet(slots=2), puppet("south"))
    team.task()
    team.start()
    agent = team.agent()
    agent.settle("limit", "Too many tokens.", until=NOW + 300.0)
    team.until_heard("limit")
    for title in ("Two", "Three"):
        team.task(title)
    team.advance(3)
    assert team.agent().spec.env["GITTASKS_AGENT"] == SOUTH
    assert team.slots() == {
        PUPPET: ("LIMITED", f"the limit of north ends at {timestamp(int(NOW) + 300)}"),
        "pi-north-m-2": ("LIMITED", f"the limit of north ends at {timestamp(int(NOW) + 300)}"),
        SOUTH: ("BUSY", ""),
    }
    assert team.holder() == PUPPET
    team.advance(296)
    assert len(agent.prompts) == 1
    team.advance(1)
    assert len(agent.prompts) == 2
    team.advance(1)
    assert team.agent().task == "000003"


def test_a_long_limit_gives_the_task_back_to_whoever_can_go_on(team: Team) -> None:
    team.pool(puppet(), puppet("south", roles=["designer"]))
    team.task()
    team.start()
    agent = team.agent()
    agent.leave("note", text="Half of it is thought out.")
    agent.settle("limit", "Enough for today.", until=NOW + 301.0)
    other = team.agent()
    assert (other.spec.env["GITTASKS_AGENT"], agent.is_alive()) == (SOUTH, False)
    assert team.kinds()[2:] == ["claim", "note", "release", "claim"]
    assert "Half of it is thought out." in other.prompts[0]
    assert team.slots()[PUPPET] == (
        "LIMITED",
        f"the limit of north ends at {timestamp(int(NOW) + 301)}",
    )


def test_a_limit_that_names_no_end_is_tried_again_after_a_back_off(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    for times, pause in ((1, 1), (2, 2), (3, 4)):
        agent.settle("limit", "Slow down.")
        team.until_heard("limit", times)
        assert team.heard("limit")[-1]["until"] == team.now + pause
        team.advance(pause)
        assert len(agent.prompts) == times + 1


def test_a_script_tells_when_its_limit_ends(team: Team) -> None:
    team.pool(
        team.script('test "$turn" = 1 && { echo gittasks-limit: 60; exit 1; }\nhand submit\n')
    )
    team.task()
    team.start()
    team.until_heard("limit")
    assert team.heard("limit")[0]["until"] == NOW + 60
    team.advance(60)
    team.until(lambda: team.state() == "DESIGN_REVIEW")
