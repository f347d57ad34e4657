"""Parents and children: moving, ordering, closing, and aborting whole families."""

from __future__ import annotations

import pytest

from gittasks.domain import machine
from gittasks.domain.decide import decide
from gittasks.domain.errors import NotAllowed, Refused, WrongRole
from gittasks.domain.events import Event
from gittasks.domain.requests import Abort, Create, Reorder, Reparent, Submit
from gittasks.domain.task import State, Task
from tests.support.builders import hexadecimal
from tests.support.decisions import Story, a_graph, after, decided, facts, task_at

ONE, TWO, THREE, FOUR = (f"{number:06d}" for number in range(1, 5))


# Moving.


def _family() -> tuple[Task, ...]:
    """Returns 1 above 2 above 3, and 4 beside them."""
    return (
        task_at("NEW"),
        task_at("NEW", 2, parent=ONE),
        task_at("NEW", 3, parent=TWO),
        task_at("NEW", 4),
    )


def test_a_task_moves_below_another_one() -> None:
    now, _text = decided(a_graph(*_family()), Reparent(FOUR, THREE), facts())
    assert now.parent == THREE


def test_a_task_moves_to_the_top() -> None:
    now, _text = decided(a_graph(*_family()), Reparent(THREE, None), facts())
    assert now.parent is None


def test_a_task_that_is_there_already_does_not_move() -> None:
    assert decide(a_graph(*_family()), Reparent(TWO, ONE), facts()) == []


def test_a_place_among_siblings_is_not_taken_along() -> None:
    graph = a_graph(*_family()[:3], task_at("NEW", 4, position="000001i"))
    now, _text = decided(graph, Reparent(FOUR, ONE), facts())
    assert now.position is None


@pytest.mark.parametrize(
    ("task", "parent", "why"),
    [
        (ONE, ONE, "a task cannot be its own parent"),
        (ONE, THREE, "000003 stands below 000001 itself"),
        (ONE, TWO, "000002 stands below 000001 itself"),
        (ONE, "000005", "the task 000005 is closed"),
    ],
)
def test_a_move_that_cannot_be_says_why(task: str, parent: str, why: str) -> None:
    graph = a_graph(*_family(), task_at("CLOSED", 5))
    with pytest.raises(NotAllowed, match=f"cannot move: {why}"):
        decide(graph, Reparent(task, parent), facts())


def test_a_family_ring_made_by_hand_ends_the_search() -> None:
    graph = a_graph(task_at("NEW", parent=TWO), task_at("NEW", 2, parent=ONE), task_at("NEW", 3))
    assert machine.objection_to_parent(graph, THREE, ONE) is None


def test_a_parent_that_is_lost_ends_the_search() -> None:
    graph = a_graph(task_at("NEW", parent="000009"), task_at("NEW", 2))
    assert machine.objection_to_parent(graph, TWO, ONE) is None
    assert machine.objection_to_parent(graph, TWO, "000009") == "the task 000009 does not exist"


# Ordering.


def _order(story: Story) -> list[str]:
    tasks = [story.graph.tasks[child] for child in story.graph.children(None)]
    return [task.id for task in sorted(tasks, key=lambda task: task.sort_key)]


@pytest.mark.parametrize(
    ("request_", "order"),
    [
        (Reorder(THREE, "first"), [THREE, ONE, TWO, FOUR]),
        (Reorder(ONE, "last"), [TWO, THREE, FOUR, ONE]),
        (Reorder(FOUR, "before", TWO), [ONE, FOUR, TWO, THREE]),
        (Reorder(ONE, "after", THREE), [TWO, THREE, ONE, FOUR]),
        (Reorder(FOUR, "after", ONE), [ONE, FOUR, TWO, THREE]),
    ],
)
def test_a_task_is_placed_among_its_siblings(request_: Reorder, order: list[str]) -> None:
    story = Story(*(task_at("NEW", n) for n in range(1, 5)))
    story.says(request_)
    assert _order(story) == order


@pytest.mark.parametrize(
    "request_",
    [
        Reorder(ONE, "first"),
        Reorder(FOUR, "last"),
        Reorder(TWO, "before", THREE),
        Reorder(THREE, "after", TWO),
        Reorder("000005", "last"),
    ],
)
def test_a_task_that_stands_there_already_is_nothing_to_do(request_: Reorder) -> None:
    tasks = (*(task_at("NEW", n) for n in range(1, 5)), task_at("NEW", 5, parent=ONE))
    assert decide(a_graph(*tasks), request_, facts()) == []


def test_there_is_always_room_between_two() -> None:
    story = Story(*(task_at("NEW", n) for n in range(1, 4)))
    for number in range(40):
        moved, stays = (TWO, THREE) if number % 2 else (THREE, TWO)
        story.says(Reorder(moved, "before", stays))
        story.says(Reorder(ONE, "first"))
    assert _order(story) == [ONE, TWO, THREE]


def test_a_task_is_placed_beside_a_sibling_only() -> None:
    graph = a_graph(task_at("NEW"), task_at("NEW", 2, parent=ONE), task_at("NEW", 3))
    with pytest.raises(NotAllowed, match="have different parents"):
        decide(graph, Reorder(THREE, "after", TWO), facts())


def test_closed_siblings_keep_their_place() -> None:
    story = Story(task_at("CLOSED"), task_at("NEW", 2), task_at("NEW", 3))
    story.says(Reorder(THREE, "before", ONE))
    assert _order(story) == [THREE, ONE, TWO]


# Closing.


@pytest.mark.parametrize("state", ["NEW", "BLOCKED"])
def test_a_parent_whose_children_delivered_lands_without_a_merge(state: State) -> None:
    needs = (FOUR,) if state == "BLOCKED" else ()
    graph = a_graph(
        task_at(state, depends_on=needs),
        task_at("CLOSED", 2, parent=ONE),
        task_at("CLOSED", 3, parent=ONE, outcome="aborted"),
        task_at("NEW", 4),
    )
    now, _text = decided(graph, Submit(ONE, close=True, remark="All there."), facts())
    assert (now.state, now.outcome, now.landed) == ("CLOSED", "landed", None)


@pytest.mark.parametrize(
    ("children", "why"),
    [
        ((), "it has no children"),
        ((task_at("CLOSED", 2, parent=ONE), task_at("NEW", 3, parent=ONE)), "000003 still open"),
        ((task_at("CLOSED", 2, parent=ONE, outcome="aborted"),), "no child has landed"),
    ],
)
def test_a_parent_that_cannot_be_closed_says_why(children: tuple[Task, ...], why: str) -> None:
    with pytest.raises(NotAllowed, match=f"cannot be closed: {why}"):
        decide(a_graph(task_at("NEW"), *children), Submit(ONE, close=True), facts())


def test_own_commits_are_not_lost_by_a_close() -> None:
    graph = a_graph(task_at("NEW"), task_at("CLOSED", 2, parent=ONE))
    with pytest.raises(Refused, match="has commits of its own"):
        decide(graph, Submit(ONE, close=True, has_commits=True), facts())


def test_only_the_manager_closes() -> None:
    graph = a_graph(task_at("NEW"), task_at("CLOSED", 2, parent=ONE))
    with pytest.raises(WrongRole):
        decide(graph, Submit(ONE, close=True), facts("worker"))


# Aborting.


def _aborted(events: list[Event]) -> list[str | None]:
    assert {event.kind for event in events} <= {"abort"}
    return [event.task for event in events]


@pytest.mark.parametrize("state", machine.CLAIMABLE)
def test_a_task_in_work_is_held_before_it_is_aborted(state: State) -> None:
    with pytest.raises(NotAllowed) as refused:
        decide(a_graph(task_at(state)), Abort(ONE), facts())
    assert refused.value.hint == "Run `git tasks hold 000001` first, then abort."


def test_a_task_with_an_open_child_is_not_aborted_alone() -> None:
    with pytest.raises(Refused, match="open children: 000002") as refused:
        decide(a_graph(*_family()), Abort(ONE), facts())
    assert refused.value.hint == "Abort these first, or give --recursive."


def test_a_task_with_closed_children_is_aborted() -> None:
    graph = a_graph(task_at("NEW"), task_at("CLOSED", 2, parent=ONE))
    assert _aborted(decide(graph, Abort(ONE), facts())) == [ONE]


def test_a_family_is_aborted_children_first_whatever_they_do() -> None:
    graph = a_graph(
        task_at("NEW"),
        task_at("WORK", 2, held_by="bob", parent=ONE),
        task_at("DESIGN_REVIEW", 3, parent=TWO),
        task_at("CLOSED", 4, parent=ONE),
        task_at("CHECK", 5, parent=ONE),
        task_at("NEW", 6),
    )
    events = decide(graph, Abort(ONE, "Not needed.", recursive=True), facts())
    later = after(graph, events)
    assert _aborted(events) == [THREE, TWO, "000005", ONE]
    assert {event.text for event in events} == {"Not needed."}
    assert (later.tasks[TWO].claim, later.tasks[FOUR].outcome) == (None, "landed")


def test_one_task_in_work_is_aborted_recursively() -> None:
    assert _aborted(decide(a_graph(task_at("PLAN")), Abort(ONE, recursive=True), facts())) == [ONE]


@pytest.mark.parametrize("field", ["landing", "delivered"])
@pytest.mark.parametrize("member", [ONE, TWO, THREE])
def test_one_member_that_lands_or_has_delivered_refuses_the_whole(field: str, member: str) -> None:
    request = Abort(ONE, recursive=True)
    found = frozenset((member,))
    request = (
        request._replace(landing=found) if field == "landing" else request._replace(delivered=found)
    )
    with pytest.raises(Refused) as refused:
        decide(a_graph(*_family()), request, facts())
    assert refused.value.task == member


def test_only_the_manager_aborts_a_family() -> None:
    with pytest.raises(WrongRole):
        decide(a_graph(*_family()), Abort(ONE, recursive=True), facts("worker"))


def test_a_family_ring_made_by_hand_ends_the_abort() -> None:
    graph = a_graph(task_at("NEW", parent=TWO), task_at("NEW", 2, parent=ONE))
    with pytest.raises(Refused, match="open children"):
        decide(graph, Abort(ONE, recursive=True), facts())


def test_a_new_child_may_stand_below_any_open_task() -> None:
    graph = a_graph(task_at("WORK", held_by="bob"))
    now, _text = decided(graph, Create("Child", hexadecimal("c"), parent=ONE), facts())
    assert now.parent == ONE
