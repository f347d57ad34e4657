"""What goes wrong in other projections of tasks and agents, and cannot here.

Half records, islands, dead workers that stay, counts that stop at the first level, signals that
depend on the order of handlers: one test each, on the real folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pytest

from gittasks.domain.events import Edited, Event, Released, Reparented
from gittasks.domain.projections import assignments, table
from gittasks.domain.projections.graph import GraphState
from gittasks.domain.projections.persistent import Persistent
from gittasks.domain.projections.signals import Signal
from gittasks.domain.projections.table import Fact, World
from gittasks.domain.requests import Abort, Claim, Feedback, Hold, Release, Reparent, Submit
from gittasks.domain.task import Task
from tests.support.builders import a_task, hexadecimal
from tests.support.decisions import Story, clean, finish

Value = TypeVar("Value")


def _facts(events: Iterable[Event], first: int = 1) -> list[Fact]:
    return [
        Fact(hexadecimal(f"commit {number}", 40), event.at, event)
        for number, event in enumerate(events, first)
    ]


def _world(story: Story) -> World:
    return table.resume(World(), _facts(story.past))


def _signals(story: Story, since: int = 0) -> list[Signal]:
    told = table.told(World(), _facts(story.past))
    return [one for number, (_, _, found) in enumerate(told) if number >= since for one in found]


def _names(signals: Sequence[Signal], task: str | None = None) -> list[str]:
    return [one.name for one in signals if task is None or one.task == task]


def _hand_made(*tasks: Task) -> GraphState:
    """Returns a graph that no command would make."""
    return GraphState(
        tasks=_map({task.id: task for task in tasks}),
        below=_map({p: tuple(t.id for t in tasks if t.parent == p) for p in _parents(tasks)}),
        top=_map({task.id: True for task in tasks if task.parent is None}),
    )


def _map(values: dict[str, Value]) -> Persistent[Value]:
    found: Persistent[Value] = Persistent()
    for key, value in values.items():
        found = found.with_(key, value)
    return found


def _parents(tasks: Sequence[Task]) -> set[str]:
    return {task.parent for task in tasks if task.parent is not None}


@pytest.fixture
def family() -> Story:
    """Returns a grandparent, a parent, and a child at WORK."""
    story = Story()
    story.creates(1)
    story.creates(2, parent="000001")
    story.creates(3, parent="000002")
    story.says(Submit("000003", enter="WORK"))
    return story


def _four(parent: str | None = None) -> Story:
    """Returns four tasks, of which a family knows three by number."""
    story = Story()
    for number in range(1, 4):
        story.creates(number)
    story.creates(4, parent=parent)
    return story


# The graph.


@pytest.mark.parametrize("kind", ["edit", "claim", "release", "abort"])
def test_an_event_for_an_unknown_task_leaves_no_half_record(family: Story, kind: str) -> None:
    story = _four()
    story.says(Submit("000004", enter="WORK"))
    claim = story.claims(4)
    story.says(Release("000004", "no"), "worker", "bob", claim)
    story.says(Hold("000004", "no"))
    story.says(Abort("000004"))
    story.past += [story.past[3]._replace(change=Edited((("title", "x"),)), source="NEW")]
    before = _world(family)
    (stray,) = [one for one in story.past if one.kind == kind][:1]
    after, signals = table.fold(before, _facts([stray])[0])
    assert signals == ()
    assert after.graph.tasks == before.graph.tasks
    assert [one.task for one in after.graph.violations] == ["000004"]


@pytest.mark.parametrize("parent", ["000001", "000003", "000099"])
def test_no_task_vanishes_below_itself_its_own_child_or_nobody(family: Story, parent: str) -> None:
    moved = family.past[0]._replace(change=Reparented(parent), source="NEW", target="NEW")
    after = table.resume(_world(family), _facts([moved], 90))
    assert len(after.graph.violations) == 1
    assert after.graph.subtree("000001") == ("000001", "000002", "000003")


def test_moving_to_where_a_task_is_moves_nothing(family: Story) -> None:
    family.creates(4, parent="000001")
    before = _world(family)
    assert family.says(Reparent("000002", "000001")) == []
    assert _world(family) == before
    assert before.graph.in_order(before.graph.children("000001")) == ("000002", "000004")


def test_a_parent_with_an_open_child_neither_closes_nor_is_aborted_alone(family: Story) -> None:
    before = _world(family)
    assert before.graph.can_close("000001") == (
        "Its children 000002 are open.",
        "It is at NEW, and closes from MANAGER_REVIEW.",
    )
    story = Story()
    story.creates(1)
    (alone,) = story.says(Abort("000001"))
    after = table.resume(before, _facts([alone], 90))
    assert len(after.graph.violations) == 1
    assert after.graph.get("000001") == before.graph.get("000001")


def test_an_abort_of_a_parent_leaves_no_child_without_a_listing(family: Story) -> None:
    family.says(Abort("000001", recursive=True))
    world = _world(family)
    assert world.graph.subtree("000001") == ("000001", "000002", "000003")
    assert {task.outcome for task in world.graph.tasks.values()} == {"aborted"}
    # Children before their parents, so that nothing is ever below what is gone.
    told = [one.task for one in _signals(family) if one.name == "task_cancelled"]
    assert told == ["000003", "000002", "000001"]


def test_no_task_comes_below_a_closed_one(family: Story) -> None:
    late = _four(parent="000001")
    family.says(Abort("000001", recursive=True))
    after = table.resume(_world(family), _facts(late.past[3:], 90))
    assert after.graph.get("000004") is None
    assert len(after.graph.violations) == 1


def test_rings_that_a_hand_has_made_end_every_question() -> None:
    ring = _hand_made(
        a_task(1),
        a_task(2, parent="000003"),
        a_task(3, parent="000002"),
        a_task(4, parent="000004"),
    )
    assert ring.subtree("000002") == ("000002", "000003")
    assert ring.ancestors("000002") == ("000003",)
    assert ring.ancestors("000004") == ()
    assert ring.subtree("000004") == ("000004",)
    assert list(ring.outline(ring.roots())) == [("000001", 0)]


def test_an_unknown_task_has_answers_and_raises_nothing(family: Story) -> None:
    graph = _world(family).graph
    assert graph.get("000099") is None
    assert (graph.subtree("000099"), graph.ancestors("000099")) == ((), ())
    assert graph.can_close("000099") == ("There is no task 000099.",)
    assert (graph.blocking("000099"), list(graph.children("000099"))) == (0, [])


def test_a_subtree_is_in_the_order_of_the_page(family: Story) -> None:
    family.creates(4, parent="000001")
    family.creates(5, parent="000002")
    graph = _world(family).graph
    assert graph.subtree("000001") == ("000001", "000002", "000003", "000005", "000004")
    assert [depth for _, depth in graph.outline(("000001",))] == [0, 1, 2, 2, 1]


# Who works.

Ending = Callable[[Story, str], object]


def _submitted(story: Story, claim: str) -> object:
    return story.says(finish(story.task(3)), "worker", "bob", claim)


def _reviewed(story: Story, claim: str) -> object:
    _submitted(story, claim)
    story.is_checked(3)
    review = story.claims(3, "bob")
    request = Feedback("000003", ("Again.",), clean(story.task(3).dispatched or ""))
    return story.says(request, "reviewer", "bob", review)


ENDINGS: dict[str, tuple[Ending, str]] = {
    "a submit": (_submitted, "submit"),
    "a feedback": (_reviewed, "feedback"),
    "a hold by the holder": (
        lambda s, claim: s.says(Hold("000003", "Which?"), "worker", "bob", claim), "hold",
    ),
    "a hold by the manager": (lambda s, _: s.holds(3), "hold"),
    "a release": (
        lambda s, claim: s.says(Release("000003", "no"), "worker", "bob", claim), "released",
    ),
    "a release by force": (lambda s, _: s.says(Release("000003", "no", "forced")), "forced"),
    "a death": (lambda s, _: s.says(Release("000003", None, "died"), "tool"), "died"),
    "an abort of the parent": (lambda s, _: s.says(Abort("000001", recursive=True)), "abort"),
}  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_however_a_claim_ends_nobody_is_left_working(
    family: Story, ending: tuple[Ending, str]
) -> None:
    claim = family.claims(3, "bob")
    begun = _world(family)
    assert begun.working.worker_count == 1
    end, reason = ending
    end(family, claim)
    world = _world(family)
    assert (world.working.worker_count, world.working.holding.get("bob")) == (0, None)
    idle = world.working.idle.get("bob")
    assert idle is not None
    assert (idle.reason, idle.task) == (reason, "000003")
    last = _signals(family)[-20:]
    assert _names(last).count("session_became_idle") == 1 + (reason == "feedback")
    found = world.assignments.tasks.get("000003")
    assert found is not None
    assert found.current is None
    assert found.stints[-1].reason == reason
    (row,) = (r for r in assignments.rows(world.assignments, world.graph, 0) if r.task == "000003")
    assert (row.actor, row.since) == (None, None)


def test_a_lease_that_ran_out_ends_by_the_same_rule(family: Story) -> None:
    claim = family.claims(3, "bob")
    task = family.task(3)
    family.now += 100_000
    request = Claim("000003", hexadecimal("new"), family.now + 60, task.branch or "", "", "")
    events = family.says(request, "worker", "eve")
    assert [event.kind for event in events] == ["release", "claim"]
    assert isinstance(events[0].change, Released)
    world = _world(family)
    assert {one.actor for one in world.working.claims.values()} == {"eve"}
    found = world.assignments.tasks.get("000003")
    assert found is not None
    assert [(one.actor, one.reason) for one in found.stints] == [("bob", "expired"), ("eve", None)]
    assert found.resumes == 1
    assert claim not in {one.claim for one in world.working.claims.values()}


def test_children_are_counted_directly_and_below_by_name(family: Story) -> None:
    family.claims(3)
    world = _world(family)
    working = world.working
    assert working.working_children(world.graph, "000001") == ()
    assert working.working_children(world.graph, "000001", recursive=True) == ("000003",)
    assert working.working_children(world.graph, "000002") == ("000003",)
    assert working.by_parent(world.graph) == {"000002": 1}
    assert working.is_working(world.graph, "000001")


def test_who_has_two_tasks_works_until_the_second_ends(family: Story) -> None:
    family.creates(4)
    family.says(Submit("000004", enter="WORK"))
    first, second = family.claims(3, "bob"), family.claims(4, "bob")
    family.says(Release("000003", "no"), "worker", "bob", first)
    assert "agent_became_idle" not in _names(_signals(family))
    family.says(Release("000004", "no"), "worker", "bob", second)
    told = _names(_signals(family))
    assert (told.count("agent_became_working"), told.count("agent_became_idle")) == (1, 1)


def test_a_clock_that_goes_back_takes_no_time_away(family: Story) -> None:
    claim = family.claims(3, "bob")
    family.now -= 5_000
    family.says(Release("000003", "no"), "worker", "bob", claim)
    found = _world(family).assignments.tasks.get("000003")
    assert found is not None
    assert (found.accumulated, found.seconds(0)) == (0, 0)


def test_time_is_an_argument_of_questions_only(family: Story) -> None:
    family.claims(3, "bob")
    world = _world(family)
    found = world.assignments.tasks.get("000003")
    assert found is not None
    assert found.current is not None
    start = found.current.start
    assert [found.seconds(start + more) for more in (0, 10, 90)] == [0, 10, 90]
    assert _world(family) == world


# Signals.


def test_an_end_is_told_before_the_change_of_the_state(family: Story) -> None:
    before = len(family.past)
    family.says(Abort("000001", recursive=True))
    told = _names(_signals(family, before), "000002")
    assert told == ["task_cancelled", "task_status_changed", "inbox_cleared"]


def test_each_signal_comes_once_and_in_the_order_of_the_table(family: Story) -> None:
    family.claims(3)
    order = [row.name for row in table.PROJECTIONS]
    for _, _, signals in table.told(World(), _facts(family.past)):
        places = [order.index(one.projection) for one in signals]
        assert places == sorted(places)
        assert len(set(signals)) == len(signals)
        assert {one.name for one in signals} <= set(table.SIGNALS)
