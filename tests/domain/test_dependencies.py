"""Which task waits on which, what ends the waiting, and rings."""

from __future__ import annotations

from typing import Any

import pytest

from gittasks.domain import dependencies, machine
from gittasks.domain.decide import decide
from gittasks.domain.errors import Cycle, NotAllowed, Refused, UnknownTask, UsageFault
from gittasks.domain.events import Event, Unblocked
from gittasks.domain.requests import Abort, Create, Edit, Landing, Resume, Submit
from gittasks.domain.task import State, Task
from gittasks.domain.task_graph import TaskGraph
from gittasks.domain.times import timestamp
from tests.support.builders import NOW, hexadecimal
from tests.support.decisions import (
    LANDED,
    TIP,
    Story,
    a_graph,
    after,
    decided,
    facts,
    task_at,
)

ONE, TWO, THREE, FOUR, FIVE = (f"{number:06d}" for number in range(1, 6))
UID = hexadecimal("new")
LAND_ONE = Submit(ONE, landing=Landing(TIP, LANDED, "merge"))


def _new(**fields: object) -> Create:
    return Create("New", UID)._replace(**fields)  # type: ignore[arg-type]


def aborted(number: int, **fields: Any) -> Task:
    return task_at("CLOSED", number, outcome="aborted", **fields)


def _told(events: list[Event]) -> list[tuple[str | None, str, State | None]]:
    return [(event.task, event.kind, event.target) for event in events]


# Satisfaction.


@pytest.mark.parametrize("state", [s for s in machine.STAGE if s != "CLOSED"])
def test_a_dependency_on_an_open_task_is_open(state: State) -> None:
    assert dependencies.open_dependencies(a_graph(task_at(state)), (ONE,)) == (ONE,)


def test_only_landed_dependencies_are_satisfied_and_the_others_keep_their_order() -> None:
    graph = a_graph(task_at("CLOSED"), aborted(2), task_at("WORK", 3))
    assert dependencies.open_dependencies(graph, (THREE, ONE, TWO, FIVE)) == (THREE, TWO, FIVE)


@pytest.mark.parametrize(
    ("tasks", "is_satisfied"),
    [
        ((aborted(1),), False),
        ((aborted(1), task_at("WORK", 2, supersedes=ONE)), False),
        ((aborted(1), task_at("CLOSED", 2, supersedes=ONE)), True),
        ((aborted(1), aborted(2, supersedes=ONE)), False),
        ((aborted(1), aborted(2, supersedes=ONE), task_at("CLOSED", 3, supersedes=TWO)), True),
        ((aborted(1), aborted(2, supersedes=ONE), task_at("CLOSED", 3, supersedes=ONE)), True),
        ((task_at("WORK"), task_at("CLOSED", 2, supersedes=ONE)), False),
        ((aborted(1, supersedes=TWO), aborted(2, supersedes=ONE)), False),
    ],
)
def test_an_aborted_dependency_is_satisfied_by_what_replaced_it(
    tasks: tuple[Task, ...], is_satisfied: bool
) -> None:
    assert dependencies.is_satisfied(a_graph(*tasks), ONE) is is_satisfied


def test_an_aborted_dependency_is_lost_until_its_replacement_has_landed() -> None:
    tasks = (aborted(1), aborted(2), task_at("WORK", 3), task_at("CLOSED", 4))
    graph = a_graph(*tasks, task_at("CLOSED", 5, supersedes=TWO))
    needs = (ONE, TWO, THREE, FOUR, "000099")
    assert dependencies.aborted_dependencies(graph, needs) == (ONE,)


# Dispatch.


@pytest.mark.parametrize(
    ("enter", "entered"), [(None, "DESIGN"), ("PLAN", "PLAN"), ("WORK", "WORK")]
)
def test_a_dispatch_with_an_open_dependency_waits_and_says_for_what(
    enter: State | None, entered: State
) -> None:
    graph = a_graph(task_at("NEW", depends_on=(TWO,)), task_at("WORK", 2))
    now, _text = decided(graph, Submit(ONE, enter=enter), facts())
    assert (now.state, now.enters) == ("BLOCKED", entered)


@pytest.mark.parametrize(
    ("enter", "entered"), [(None, "DESIGN"), ("PLAN", "PLAN"), ("WORK", "WORK")]
)
def test_a_dispatch_without_an_open_dependency_enters_at_once(
    enter: State | None, entered: State
) -> None:
    graph = a_graph(task_at("NEW", depends_on=(TWO,)), task_at("CLOSED", 2))
    now, _text = decided(graph, Submit(ONE, enter=enter), facts())
    assert (now.state, now.enters) == (entered, None)


def test_a_blocked_task_may_enter_elsewhere_and_its_clock_goes_on() -> None:
    task = task_at("BLOCKED", depends_on=(TWO,), enters="DESIGN")
    graph = a_graph(task, task_at("WORK", 2))
    now, _text = decided(graph, Submit(ONE, enter="WORK"), facts(now=NOW + 99))
    assert now == task._replace(enters="WORK")


@pytest.mark.parametrize("enter", [None, "WORK"])
def test_a_blocked_task_that_would_enter_where_it_enters_has_nothing_to_do(
    enter: State | None,
) -> None:
    graph = a_graph(task_at("BLOCKED", depends_on=(TWO,)), task_at("WORK", 2))
    assert decide(graph, Submit(ONE, enter=enter), facts()) == []


@pytest.mark.parametrize(
    ("enters", "enter"), [("PLAN", "DESIGN"), ("WORK", "DESIGN"), ("WORK", "PLAN")]
)
def test_a_branch_with_commits_does_not_go_back_to_an_earlier_phase(
    enters: State, enter: State
) -> None:
    graph = a_graph(task_at("BLOCKED", depends_on=(TWO,), enters=enters), task_at("WORK", 2))
    with pytest.raises(Refused) as refused:
        decide(graph, Submit(ONE, enter=enter, has_commits=True), facts())
    assert refused.value.hint == f"Submit it with --enter {enters.lower()}."


def test_a_branch_without_commits_goes_to_any_phase() -> None:
    graph = a_graph(task_at("BLOCKED", depends_on=(TWO,), enters="WORK"), task_at("WORK", 2))
    now, _text = decided(graph, Submit(ONE, enter="DESIGN"), facts())
    assert now.enters == "DESIGN"


def test_a_branch_with_commits_goes_to_a_later_phase() -> None:
    graph = a_graph(task_at("BLOCKED", depends_on=(TWO,), enters="PLAN"), task_at("WORK", 2))
    now, _text = decided(graph, Submit(ONE, enter="WORK", has_commits=True), facts())
    assert now.enters == "WORK"


# Unblocking.


def test_a_landing_unblocks_in_the_same_decision_whoever_waited_for_nothing_else() -> None:
    graph = a_graph(
        task_at("MANAGER_REVIEW"),
        task_at("BLOCKED", 2, depends_on=(ONE,), enters="PLAN"),
        task_at("BLOCKED", 3, depends_on=(ONE, FIVE)),
        task_at("NEW", 4, depends_on=(ONE,)),
        task_at("DESIGN", 5),
    )
    events = decide(graph, LAND_ONE, facts())
    assert _told(events) == [(ONE, "submit", "CLOSED"), (TWO, "unblock", "PLAN")]
    assert (events[1].change, events[1].role) == (Unblocked(ONE), "tool")


def test_only_the_clock_of_who_is_unblocked_starts() -> None:
    waiting = task_at("BLOCKED", 3, depends_on=(ONE, FOUR))
    graph = a_graph(
        task_at("MANAGER_REVIEW"),
        task_at("BLOCKED", 2, depends_on=(ONE,)),
        waiting,
        task_at("DESIGN", 4),
    )
    later = after(graph, decide(graph, LAND_ONE, facts(now=NOW + 9)))
    assert later.tasks[TWO].entered_at == timestamp(NOW + 9)
    assert later.tasks[THREE] == waiting


def test_a_landing_unblocks_through_what_the_task_superseded() -> None:
    graph = a_graph(
        task_at("MANAGER_REVIEW", supersedes=TWO),
        aborted(2, supersedes=THREE),
        aborted(3),
        task_at("BLOCKED", 4, depends_on=(TWO,)),
        task_at("BLOCKED", 5, depends_on=(THREE,)),
    )
    assert _told(decide(graph, LAND_ONE, facts()))[1:] == [
        (FOUR, "unblock", "WORK"),
        (FIVE, "unblock", "WORK"),
    ]


def test_a_close_unblocks_too() -> None:
    graph = a_graph(
        task_at("NEW"),
        task_at("CLOSED", 2, parent=ONE),
        task_at("BLOCKED", 3, depends_on=(ONE,)),
    )
    events = decide(graph, Submit(ONE, close=True), facts())
    assert _told(events) == [(ONE, "submit", "CLOSED"), (THREE, "unblock", "WORK")]


def test_an_abort_releases_nobody() -> None:
    graph = a_graph(task_at("NEW"), task_at("BLOCKED", 2, depends_on=(ONE,)))
    assert _told(decide(graph, Abort(ONE), facts())) == [(ONE, "abort", "CLOSED")]


@pytest.mark.parametrize(
    "edit",
    [
        Edit(TWO, remove_dependencies=(ONE,)),
        Edit(TWO, set=(("depends_on", ()),)),
        Edit(TWO, set=(("depends_on", (THREE,)),)),
        Edit(TWO, unset=("depends_on",)),
        Edit(TWO, unset=("depends_on",), add_dependencies=(THREE,)),
    ],
)
def test_who_loses_the_last_open_dependency_goes_on_in_the_same_decision(edit: Edit) -> None:
    graph = a_graph(aborted(1), task_at("BLOCKED", 2, depends_on=(ONE,)), task_at("CLOSED", 3))
    events = decide(graph, edit, facts())
    assert _told(events) == [(TWO, "edit", "BLOCKED"), (TWO, "unblock", "WORK")]
    assert events[1].change == Unblocked(None)
    after(graph, events)


def test_who_waits_for_another_one_too_goes_on_waiting() -> None:
    graph = a_graph(aborted(1), task_at("BLOCKED", 2, depends_on=(ONE, THREE)), task_at("NEW", 3))
    events = decide(graph, Edit(TWO, remove_dependencies=(ONE,)), facts())
    assert _told(events) == [(TWO, "edit", "BLOCKED")]


def test_a_prerequisite_that_was_thrown_away_is_let_go_by_hand() -> None:
    story = Story(
        task_at("NEW"),
        task_at("BLOCKED", 2, depends_on=(ONE,)),
        task_at("BLOCKED", 3, depends_on=(TWO,)),
    )
    story.says(Abort(ONE))
    lost = dependencies.aborted_dependencies(story.graph, story.task(2).depends_on)
    story.says(Edit(TWO, remove_dependencies=(ONE,)))
    assert (lost, story.task(2).state, story.task(3).state) == ((ONE,), "WORK", "BLOCKED")


# Rings.


def _chain() -> TaskGraph:
    """Returns 1 that needs 2, which needs 3."""
    return a_graph(
        task_at("NEW", depends_on=(TWO,)), task_at("NEW", 2, depends_on=(THREE,)), task_at("NEW", 3)
    )


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (Edit(THREE, add_dependencies=(ONE,)), (THREE, ONE, TWO, THREE)),
        (Edit(TWO, add_dependencies=(ONE,)), (TWO, ONE, TWO)),
        (Edit(THREE, add_dependencies=(THREE,)), (THREE, THREE)),
        (Edit(THREE, set=(("depends_on", (TWO,)),)), (THREE, TWO, THREE)),
        (Edit(THREE, set=(("depends_on", (THREE,)),)), (THREE, THREE)),
    ],
)
def test_a_ring_is_refused_and_spelled_edge_by_edge(edit: Edit, path: tuple[str, ...]) -> None:
    with pytest.raises(Cycle) as refused:
        decide(_chain(), edit, facts())
    edges = ", ".join(f"{a} needs {b}" for a, b in zip(path, path[1:], strict=False))
    assert refused.value.path == path
    assert refused.value.message == f"This would make a ring of dependencies: {edges}."


def test_a_task_that_points_into_a_ring_is_not_in_it() -> None:
    graph = a_graph(
        task_at("NEW", depends_on=(TWO,)),
        task_at("NEW", 2, depends_on=(THREE,)),
        task_at("NEW", 3, depends_on=(TWO,)),
    )
    assert dependencies.ring(graph, ONE, (TWO,)) is None


def test_a_shortest_ring_is_told() -> None:
    graph = a_graph(
        task_at("NEW"),
        task_at("NEW", 2, depends_on=(THREE, FOUR)),
        task_at("NEW", 3, depends_on=(FIVE,)),
        task_at("NEW", 4, depends_on=(ONE,)),
        task_at("NEW", 5, depends_on=(ONE,)),
    )
    assert dependencies.ring(graph, ONE, (TWO,)) == (ONE, TWO, FOUR, ONE)


def test_a_landed_task_closes_no_ring() -> None:
    graph = a_graph(task_at("CLOSED", depends_on=(TWO,)), task_at("NEW", 2))
    now, _text = decided(graph, Edit(TWO, add_dependencies=(ONE,)), facts())
    assert now.depends_on == (ONE,)


def test_a_ring_goes_through_what_superseded_a_task() -> None:
    graph = a_graph(
        aborted(1), task_at("NEW", 2, supersedes=ONE), task_at("NEW", 3, depends_on=(ONE,))
    )
    with pytest.raises(Cycle) as refused:
        decide(graph, Edit(TWO, add_dependencies=(THREE,)), facts())
    assert refused.value.path == (TWO, THREE, ONE, TWO)


def test_a_replacement_that_has_landed_closes_no_ring() -> None:
    graph = a_graph(
        aborted(1),
        task_at("NEW", 2, supersedes=ONE),
        task_at("NEW", 3, depends_on=(ONE,)),
        task_at("CLOSED", 4, supersedes=ONE),
    )
    now, _text = decided(graph, Edit(TWO, add_dependencies=(THREE,)), facts())
    assert now.depends_on == (THREE,)


@pytest.mark.parametrize("former", [aborted(1), task_at("NEW")])
@pytest.mark.parametrize(
    ("needs", "path"),
    [((TWO,), (THREE, TWO, ONE, THREE)), ((ONE,), (THREE, ONE, THREE))],
)
def test_a_replacement_cannot_wait_for_who_waits_for_it(
    former: Task, needs: tuple[str, ...], path: tuple[str, ...]
) -> None:
    graph = a_graph(former, task_at("NEW", 2, depends_on=(ONE,)))
    with pytest.raises(Cycle) as refused:
        decide(graph, _new(supersedes=ONE, depends_on=needs), facts())
    assert refused.value.path == path


@pytest.mark.parametrize(("state", "request_"), [("NEW", Submit(ONE)), ("HELD_PLAN", Resume(ONE))])
def test_a_ring_that_is_there_is_found_again_at_submit_and_resume(
    state: State, request_: Submit | Resume
) -> None:
    graph = a_graph(task_at(state, depends_on=(TWO,)), task_at("NEW", 2, depends_on=(ONE,)))
    with pytest.raises(Cycle):
        decide(graph, request_, facts())


# What may be named.


def test_a_dependency_may_have_been_closed_already() -> None:
    graph = a_graph(task_at("CLOSED"), aborted(2))
    later = after(graph, decide(graph, _new(depends_on=(ONE, TWO, ONE)), facts()))
    assert later.tasks[THREE].depends_on == (ONE, TWO)


@pytest.mark.parametrize("named", ["000099", "7", "task/000001"])
@pytest.mark.parametrize("field", ["depends_on", "parent", "supersedes", "follows"])
def test_what_does_not_exist_cannot_be_named(field: str, named: str) -> None:
    value = (named,) if field == "depends_on" else named
    with pytest.raises(UnknownTask, match=f"no task {named}"):
        decide(a_graph(task_at("NEW")), _new(**{field: value}), facts())


@pytest.mark.parametrize("state", ["NEW", "BLOCKED", *machine.HELD, "MANAGER_REVIEW"])
def test_dependencies_change_where_nobody_works(state: State) -> None:
    graph = a_graph(task_at(state, depends_on=(TWO,)), task_at("NEW", 2), task_at("NEW", 3))
    now, _text = decided(graph, Edit(ONE, add_dependencies=(THREE,)), facts())
    assert now.depends_on == (TWO, THREE)


@pytest.mark.parametrize("state", machine.CLAIMABLE)
@pytest.mark.parametrize(
    "edit", [Edit(ONE, add_dependencies=(TWO,)), Edit(ONE, unset=("depends_on",))]
)
def test_dependencies_do_not_change_while_somebody_works(state: State, edit: Edit) -> None:
    graph = a_graph(task_at(state, depends_on=(THREE,)), task_at("NEW", 2), task_at("NEW", 3))
    with pytest.raises(NotAllowed, match=f"do not change at {state}"):
        decide(graph, edit, facts())


@pytest.mark.parametrize(
    "edit",
    [
        Edit(ONE, add_dependencies=(TWO,)),
        Edit(ONE, remove_dependencies=(THREE,)),
        Edit(ONE, set=(("depends_on", (TWO, TWO)),)),
    ],
)
def test_a_dependency_that_is_there_or_gone_already_is_nothing_to_do(edit: Edit) -> None:
    graph = a_graph(task_at("NEW", depends_on=(TWO,)), task_at("NEW", 2), task_at("NEW", 3))
    assert decide(graph, edit, facts()) == []


def test_a_document_names_at_most_a_thousand_dependencies() -> None:
    graph = a_graph(task_at("NEW"), *(task_at("CLOSED", n) for n in range(2, 1003)))
    many = tuple(f"{n:06d}" for n in range(2, 1003))
    requests = (
        _new(depends_on=many),
        Edit(ONE, add_dependencies=many),
        Edit(ONE, set=(("depends_on", many),)),
    )
    for request in requests:
        with pytest.raises(UsageFault, match="1001 dependencies; 1000 are allowed"):
            decide(graph, request, facts())


def test_a_thousand_dependencies_may_be_named() -> None:
    graph = a_graph(*(task_at("CLOSED", n) for n in range(1, 1001)))
    now, _text = decided(graph, _new(depends_on=tuple(graph.tasks)), facts())
    assert len(now.depends_on) == 1000


# Who waits, and how many.


def test_the_tasks_that_wait_are_the_open_ones_also_through_supersession() -> None:
    graph = a_graph(
        task_at("WORK", supersedes=TWO),
        aborted(2),
        task_at("BLOCKED", 3, depends_on=(TWO, ONE)),
        task_at("BLOCKED", 4, depends_on=(ONE,)),
        task_at("CLOSED", 5, depends_on=(ONE,)),
    )
    assert set(dependencies.waiters(graph, ONE)) == {THREE, FOUR}


def test_who_waits_in_several_ways_is_counted_once() -> None:
    graph = a_graph(
        task_at("WORK"),
        task_at("BLOCKED", 2, depends_on=(ONE,)),
        task_at("BLOCKED", 3, depends_on=(ONE,)),
        task_at("BLOCKED", 4, depends_on=(TWO, THREE)),
        task_at("CLOSED", 5, depends_on=(FOUR,)),
    )
    found = [dependencies.blocking(graph, task) for task in (ONE, TWO, THREE, FOUR, FIVE)]
    assert found == [3, 1, 1, 0, 0]


def test_nobody_waits_for_what_does_not_exist() -> None:
    assert dependencies.blocking(a_graph(), ONE) == 0


def test_a_ring_made_by_hand_ends_the_counting() -> None:
    graph = a_graph(task_at("NEW", depends_on=(TWO,)), task_at("NEW", 2, depends_on=(ONE,)))
    assert dependencies.blocking(graph, ONE) == 1


def test_a_ring_of_supersession_made_by_hand_ends_the_search() -> None:
    graph = a_graph(aborted(1, supersedes=TWO), aborted(2, supersedes=ONE))
    assert dependencies.waiters(graph, ONE) == ()
