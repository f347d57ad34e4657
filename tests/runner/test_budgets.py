"""What may be spent, and what was: in money, tokens and time, by a task and in a day."""

from __future__ import annotations

from typing import Any

import pytest

from gittasks.domain.task import Cost
from tests.support.teams import PUPPET, Puppet, Team, puppet

DAY = 86_400
NOTHING: dict[str, Any] = {}


def spend(team: Team, agent: Puppet, seconds: float = 60, **used: Any) -> None:
    """Lets an agent use something, and time pass."""
    agent.uses(**used)
    team.advance(seconds)


@pytest.mark.parametrize(
    ("budget", "reached"),
    [
        ({"cost": 1.5}, "the cost has reached 1.5 of 1.5 dollars"),
        ({"tokens": 1000}, "1000 of 1000 tokens are used"),
        ({"time": "2m"}, "120 of 120 seconds are used"),
    ],
)
@pytest.mark.parametrize("whose", ["agent", "pool"])
def test_a_task_that_has_used_up_its_budget_is_held_and_says_which(
    team: Team, budget: dict[str, Any], reached: str, whose: str
) -> None:
    own: dict[str, Any] = {"budget": {"task": budget}}
    team.pool(
        puppet(**(own if whose == "agent" else NOTHING)), **(own if whose == "pool" else NOTHING)
    )
    team.task()
    team.start()
    agent = team.agent()
    spend(team, agent, cost=1.4, tokens=999)
    assert team.holder() == PUPPET
    spend(team, agent, cost=1.5, tokens=1000)
    team.until(team.is_held)
    assert team.seen().held_reason == f"budget: one task may not cost more: {reached}"
    assert team.seen().costs == (Cost("DESIGN", PUPPET, 120, 1.5, 1000),)
    assert not agent.is_alive()


def test_what_a_task_has_cost_before_counts_too(team: Team) -> None:
    team.pool(puppet(budget={"task": {"tokens": 1000}}))
    team.task()
    team.start()
    agent = team.agent()
    agent.uses(tokens=600)
    agent.submit()
    other = team.agent()
    spend(team, other, tokens=399)
    assert team.holder() == PUPPET
    spend(team, other, tokens=400)
    team.until(team.is_held)
    assert [cost.tokens for cost in team.seen().costs] == [600, 400]


def test_what_was_handed_in_when_the_budget_ended_is_not_lost(team: Team) -> None:
    team.pool(puppet(budget={"task": {"tokens": 1000}}))
    team.task()
    team.start()
    agent = team.agent()
    agent.leave("note", text="Read it all.")
    agent.leave("submit", text="As asked.")
    spend(team, agent, tokens=1000)
    team.until(lambda: team.state() != "DESIGN")
    assert team.kinds()[2:5] == ["claim", "note", "submit"]
    assert team.seen().costs[0].tokens == 1000


@pytest.mark.parametrize("whose", ["agent", "pool"])
def test_a_day_whose_budget_is_used_up_lets_nobody_begin_until_the_next_one(
    team: Team, whose: str
) -> None:
    own: dict[str, Any] = {"budget": {"day": {"cost": 2}}}
    team.pool(
        puppet(slots=2, roles=["designer"], **(own if whose == "agent" else NOTHING)),
        **(own if whose == "pool" else NOTHING),
    )
    for title in ("One", "Two", "Three"):
        team.task(title)
    team.start()
    first, second = team.agents(2)
    spend(team, first, cost=1.5)
    spend(team, second, cost=1.0)
    spend(team, second, cost=1.25)
    first.submit()
    second.submit()
    team.until(lambda: team.state("000002") == "DESIGN_REVIEW")
    team.rest()
    team.advance(3)
    name = "pi-north-m" if whose == "agent" else "the pool"
    why = f"the day's budget of {name} is spent: the cost has reached "
    assert team.slots() == dict.fromkeys(
        (PUPPET, "pi-north-m-2"), ("LIMITED", f"{why}2.75 of 2 dollars")
    )
    by = {"agent": name} if whose == "agent" else {}
    assert team.heard("paused") == [{**by, "why": f"{why}2.5 of 2 dollars"}]
    team.advance(DAY)
    third = team.agent()
    assert third.task == "000003"
    spend(team, third, cost=2.0)
    assert len(team.heard("paused")) == 2


def test_the_budget_of_one_agent_lets_the_others_go_on(team: Team) -> None:
    team.pool(puppet(budget={"day": {"tokens": 10}}), puppet("south"))
    team.task()
    team.start()
    agent = team.agent()
    agent.uses(tokens=10)
    agent.submit()
    assert team.agent().spec.env["GITTASKS_AGENT"] == "pi-south-m-1"


def test_what_others_have_spent_today_counts_and_what_was_spent_yesterday_does_not(
    team: Team,
) -> None:
    team.pool(puppet(budget={"day": {"tokens": 10}}, roles=["designer"]))
    team.task()
    team.task("Two")
    runner = team.start()
    agent = team.agent()
    agent.uses(tokens=10)
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    team.end(runner)
    team.start()
    team.advance(1)
    assert team.slots()[PUPPET][0] == "LIMITED"
    team.end(team.runners[0])
    team.now += DAY
    team.start()
    assert team.agent().task == "000002"


def test_a_clock_that_is_slow_somewhere_hides_nothing_of_what_was_spent(team: Team) -> None:
    team.now += 16.1 * 3600
    team.pool(puppet(budget={"day": {"tokens": 10}}, roles=["designer"]))
    team.task()
    runner = team.start()
    agent = team.agent()
    agent.uses(tokens=10)
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    team.end(runner)
    team.now -= 600
    team.task("Two")
    team.now += 600
    team.start()
    team.advance(1)
    assert team.slots()[PUPPET][0] == "LIMITED"


def test_what_a_claim_has_cost_is_what_the_provider_asks_for(team: Team) -> None:
    team.pool(puppet(wattage=500, costPerKwh=0.4))
    team.task()
    team.start()
    agent = team.agent()
    spend(team, agent, 1800, cost=0.25, tokens=1234)
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    assert team.seen().costs == (Cost("DESIGN", PUPPET, 1800, 0.25, 1234),)
    assert team.heard("settled")[0] | {"task": None} == {
        "slot": PUPPET, "task": None, "verb": "submit", "source": "DESIGN",
        "target": "DESIGN_REVIEW", "cost": 0.25, "tokens": 1234,
    }  # fmt: skip


def test_without_a_price_it_is_what_the_electricity_costs(team: Team) -> None:
    team.pool(puppet(wattage=500, costPerKwh=0.4))
    team.task()
    team.start()
    agent = team.agent()
    spend(team, agent, 1800, tokens=1234)
    agent.leave("hold", reason="Which colour?")
    agent.settle()
    team.until_told(agent, 2)
    spend(team, agent, 1800, tokens=2000)
    agent.leave("hold", reason="Which colour?")
    agent.settle()
    team.until(team.is_held)
    assert team.seen().costs == (Cost("DESIGN", PUPPET, 3600, 0.2, 2000),)


def test_a_claim_that_was_given_back_has_cost_something_too(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    spend(team, agent, 30, cost=0.5, tokens=10)
    agent.die()
    team.until(lambda: team.kinds()[-1] == "release")
    assert team.seen().costs == (Cost("DESIGN", PUPPET, 30, 0.5, 10),)
