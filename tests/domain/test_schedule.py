"""Who is given what: one slot for one task, the right role, and what has begun goes on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain import schedule
from gittasks.domain.pool import AGENT_ROLES, Agent, Budget, Hours
from gittasks.domain.schedule import AgentFacts, Row, SlotFacts, Sum

DAY = (Hours(9 * 60, 17 * 60),)
NIGHT = (Hours(22 * 60, 6 * 60),)


@pytest.mark.parametrize(
    ("hours", "minute", "on"),
    [
        ((), 0, True),
        (DAY, 539, False),
        (DAY, 540, True),
        (DAY, 1019, True),
        (DAY, 1020, False),
        (NIGHT, 1319, False),
        (NIGHT, 1320, True),
        (NIGHT, 0, True),
        (NIGHT, 359, True),
        (NIGHT, 360, False),
        ((*DAY, *NIGHT), 1320, True),
        ((Hours(600, 0),), 1439, True),
        ((Hours(600, 0),), 0, False),
    ],
)
def test_hours_begin_with_their_minute_and_end_before_it(
    hours: tuple[Hours, ...], minute: int, on: bool
) -> None:
    assert schedule.is_on(hours, minute) is on


def slot(name: str, *roles: str, free: bool = True, busy: bool = False) -> SlotFacts:
    """Returns a slot of the agent named before the last number."""
    return SlotFacts(name, name.rpartition("-")[0], roles or AGENT_ROLES, free, busy)


ONE = slot("one-1")
TWO = slot("two-1")
BOTH = [AgentFacts("one"), AgentFacts("two")]


def work(task: str, *, started: bool = False, assignee: str | None = None) -> Row:
    return Row(task, "worker", started, assignee)


@pytest.mark.parametrize(
    ("rows", "slots", "agents", "more", "expected"),
    [
        ([], [ONE], BOTH, {}, []),
        ([work("1")], [], [], {}, []),
        ([work("1"), work("2"), work("3")], [ONE, TWO], BOTH, {}, [("1", "one-1"), ("2", "two-1")]),
        ([work("1")], [slot("one-1", "reviewer"), TWO], BOTH, {}, [("1", "two-1")]),
        ([work("1")], [slot("one-1", free=False), TWO], BOTH, {}, [("1", "two-1")]),
        ([work("1"), work("1")], [ONE, TWO], BOTH, {}, [("1", "one-1")]),
        # The fastest first, and whoever was never measured before them.
        ([work("1")], [ONE, TWO], [AgentFacts("one", 5.0), AgentFacts("two", 9.0)], {}, [("1", "two-1")]),
        ([work("1")], [ONE, TWO], [AgentFacts("one", 5.0), AgentFacts("two")], {}, [("1", "two-1")]),
        ([work("1")], [TWO, ONE], [AgentFacts("one", 5.0), AgentFacts("two", 5.0)], {}, [("1", "one-1")]),
        ([work("1")], [TWO, ONE], [AgentFacts("one", 0.0)], {}, [("1", "two-1")]),
        # What has begun goes on where it began, however slow that is, if it is free.
        (
            [work("1", started=True)], [ONE, TWO], [AgentFacts("one", 5.0), AgentFacts("two", 1.0)],
            {"affinity": {"1": "two"}}, [("1", "two-1")],
        ),
        ([work("1")], [ONE, TWO], BOTH, {"affinity": {"1": "two"}}, [("1", "one-1")]),
        (
            [work("1", started=True)], [ONE, slot("two-1", free=False, busy=True)], BOTH,
            {"affinity": {"1": "two"}}, [("1", "one-1")],
        ),
        # A session that can go on waits for its agent, unless it is first in the queue.
        (
            [work("1"), work("2")], [ONE, slot("one-2"), slot("two-1", free=False, busy=True)], BOTH,
            {"resumes": {"2": "two"}}, [("1", "one-1")],
        ),
        (
            [work("2"), work("1")], [ONE, slot("one-2"), slot("two-1", free=False, busy=True)], BOTH,
            {"resumes": {"2": "two"}}, [("2", "one-1"), ("1", "one-2")],
        ),
        ([work("1"), work("2")], [ONE, TWO], BOTH, {"resumes": {"2": "two"}}, [("1", "one-1"), ("2", "two-1")]),
        # Nobody waits for an agent that is not at work.
        (
            [work("1"), work("2")], [ONE, slot("one-2"), slot("two-1", free=False)], BOTH,
            {"resumes": {"2": "two"}}, [("1", "one-1"), ("2", "one-2")],
        ),
        # What nobody of this pool may have is not the head of the queue.
        (
            [work("1", assignee="ann"), work("2")], [ONE, slot("two-1", free=False, busy=True)], BOTH,
            {"resumes": {"2": "two"}}, [("2", "one-1")],
        ),
        ([work("1", assignee="two")], [ONE, TWO], BOTH, {}, [("1", "two-1")]),
        ([work("1", assignee="one-2")], [ONE, slot("one-2")], BOTH, {}, [("1", "one-2")]),
    ],
)  # fmt: skip
def test_the_plan(
    rows: list[Row],
    slots: list[SlotFacts],
    agents: list[AgentFacts],
    more: dict[str, Any],
    expected: list[tuple[str, str]],
) -> None:
    assert schedule.plan(rows, slots, agents, **more) == expected


NAMES = st.sampled_from("abcd")
ROWS = st.builds(
    Row,
    st.integers(1, 9).map(str),
    st.sampled_from(AGENT_ROLES),
    st.booleans(),
    st.sampled_from([None, None, "a", "a-1", "ann"]),
)
SLOTS = st.builds(
    lambda agent, number, roles, free, busy: SlotFacts(
        f"{agent}-{number}", agent, tuple(roles), free, busy and not free
    ),
    NAMES,
    st.integers(1, 3),
    st.sets(st.sampled_from(AGENT_ROLES), min_size=1),
    st.booleans(),
    st.booleans(),
)
TASKS = st.dictionaries(st.integers(1, 9).map(str), NAMES)


@given(
    rows=st.lists(ROWS, max_size=12),
    slots=st.lists(SLOTS, max_size=8, unique_by=lambda one: one.slot),
    rates=st.dictionaries(NAMES, st.none() | st.floats(0, 100)),
    affinity=TASKS,
    resumes=TASKS,
)
def test_no_plan_gives_twice_or_to_the_wrong_one(
    rows: list[Row],
    slots: list[SlotFacts],
    rates: dict[str, float | None],
    affinity: dict[str, str],
    resumes: dict[str, str],
) -> None:
    agents = [AgentFacts(name, rate) for name, rate in rates.items()]
    found = schedule.plan(rows, slots, agents, affinity=affinity, resumes=resumes)
    again = schedule.plan(rows, slots, agents, affinity=affinity, resumes=resumes)
    by_name = {one.slot: one for one in slots}
    assert found == again
    assert len({task for task, _ in found}) == len({name for _, name in found}) == len(found)
    for task, name in found:
        assert by_name[name].is_free
        assert any(schedule.suits(row, by_name[name]) for row in rows if row.task == task)
    # The queue is never held up: whatever may have a slot that is left waits for its own agent.
    left = [one for one in slots if one.is_free and one.slot not in dict(found).values()]
    waiting = [row for row in rows if row.task not in dict(found) and row.task not in resumes]
    assert not any(schedule.suits(row, one) for row in waiting for one in left)


@pytest.mark.parametrize(
    ("one", "rows", "why"),
    [
        (ONE, [], "no task is ready"),
        (ONE, [work("1", assignee="two")], "waiting for a designer, planner, worker or reviewer task"),
        (ONE, [work("1")], "another agent is waited for"),
        (slot("one-1", "reviewer"), [work("1")], "waiting for a reviewer task"),
        (ONE._replace(is_free=False, why="the agent is disabled"), [], "the agent is disabled"),
    ],
)  # fmt: skip
def test_an_idle_slot_says_why(one: SlotFacts, rows: list[Row], why: str) -> None:
    assert schedule.why_idle(one, rows) == why


@pytest.mark.parametrize(
    ("idle", "busy", "count", "maximum", "expected"),
    [
        ({1}, {2}, 2, None, ((), ())),
        ({1}, {4}, 4, None, ((2, 3), ())),
        ((), (), 2, None, ((1, 2), ())),
        ({1, 2, 5}, {3}, 2, None, ((), (5, 2))),
        ({2}, {1, 3}, 1, None, ((), (2,))),
        ((), {1, 2, 3}, 1, None, ((), ())),
        ({1, 2}, (), 0, None, ((), (2,))),
        ({1}, (), 9, 3, ((2, 3), ())),
    ],
)
def test_slots_are_added_in_gaps_and_dropped_from_the_end(
    idle: set[int],
    busy: set[int],
    count: int,
    maximum: int | None,
    expected: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    assert schedule.resize(idle, busy, count, maximum) == expected


def test_pauses_double_up_to_about_a_minute() -> None:
    waits = [schedule.back_off(attempt) for attempt in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10**9)]
    assert waits == [1, 1, 2, 4, 8, 16, 32, 64, 64, 64]


@pytest.mark.parametrize(
    ("error", "loading"),
    [
        ("503: Loading model", True),
        ("HTTP 503", False),
        ("the model is loading", False),
        ("", False),
    ],
)
def test_a_model_that_loads_is_told_from_one_that_fails(error: str, loading: bool) -> None:
    assert schedule.is_loading(error) is loading


@pytest.mark.parametrize(
    ("seconds", "priced", "cost"), [(3600, 0.0, 0.105), (1, 0.0, 0.000029), (3600, 0.1234567, 0.123457)]
)  # fmt: skip
def test_electricity_is_paid_where_the_provider_asks_for_nothing(
    seconds: int, priced: float, cost: float
) -> None:
    agent = Agent("pi", wattage=350, cost_per_kwh=0.3)
    assert schedule.cost_of(agent, seconds, priced) == cost


@pytest.mark.parametrize(
    ("budget", "spent", "told"),
    [
        (Budget(), Sum(9.0, 9, 9), None),
        (Budget(1.0, 100, 60), Sum(0.999, 99, 59), None),
        (Budget(cost=0.5), Sum(cost=0.512), "the cost has reached 0.512 of 0.5 dollars"),
        (Budget(cost=20), Sum(cost=20), "the cost has reached 20 of 20 dollars"),
        (Budget(tokens=100), Sum(tokens=100), "100 of 100 tokens are used"),
        (Budget(time=60), Sum(seconds=75), "75 of 60 seconds are used"),
    ],
)
def test_a_budget_that_is_reached_says_which(budget: Budget, spent: Sum, told: str | None) -> None:
    assert schedule.over_budget(budget, spent) == told
