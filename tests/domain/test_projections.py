"""The order of the queue and of the inbox, and what their rows say."""

from __future__ import annotations

from typing import Any

import pytest

from gittasks.domain import machine
from gittasks.domain.projections.inbox import InboxRow, inbox, rank_of
from gittasks.domain.projections.queue import QueueRow, queue
from gittasks.domain.task import STATES, Attention, Role, State, Task
from tests.support.builders import NOW
from tests.support.decisions import a_graph, task_at

REJECTED = (Attention("e" * 32, "edit", "an older one"), Attention("f" * 32, "claim", "claim lost"))


def fresh(state: State, number: int, **fields: Any) -> Task:
    return task_at(state, number, branch=None, base=None, dispatched=None, **fields)


def _queue(*tasks: Task, **options: Any) -> list[str]:
    graph = a_graph(*tasks)
    return [row.id for row in queue(graph, tasks[::-1], **options)]


# Queue.


def test_what_is_closest_to_closed_comes_first() -> None:
    tasks = (
        fresh("DESIGN", 1),
        task_at("DESIGN", 2),
        task_at("DESIGN_REVIEW", 3),
        fresh("PLAN", 4),
        task_at("PLAN", 5),
        task_at("PLAN_REVIEW", 6),
        fresh("WORK", 7),
        task_at("WORK", 8),
        task_at("WORK_REVIEW", 9),
        task_at("WORK", 10),
    )
    order = ["000010", *(f"{number:06d}" for number in range(9, 0, -1))]
    assert _queue(*tasks, resumes=("000010", "000009")) == order


@pytest.mark.parametrize(
    "state", [s for s in machine.STAGE if s not in machine.CLAIMABLE or s == "CHECK"]
)
def test_other_states_are_in_nobodys_queue(state: State) -> None:
    assert _queue(task_at(state)) == []


@pytest.mark.parametrize("state", machine.CLAIMABLE)
def test_a_claimed_task_is_in_nobodys_queue(state: State) -> None:
    assert _queue(task_at(state, held_by="bob"), role=machine.STAGE[state].role) == []


@pytest.mark.parametrize(
    ("role", "states"),
    [
        ("designer", ["DESIGN"]),
        ("planner", ["PLAN"]),
        ("worker", ["WORK"]),
        ("checker", ["CHECK"]),
        ("reviewer", ["WORK_REVIEW", "PLAN_REVIEW", "DESIGN_REVIEW"]),
        ("manager", []),
    ],
)
def test_a_role_sees_its_own_queue(role: Role, states: list[State]) -> None:
    tasks = [task_at(state, number) for number, state in enumerate(STATES, 1)]
    graph = a_graph(*tasks)
    rows = queue(graph, tasks, role=role)
    assert [graph.tasks[row.id].state for row in rows] == states


def test_ties_go_by_priority_then_by_who_waits_then_by_id() -> None:
    tasks = (
        task_at("WORK", 1),
        task_at("WORK", 2),
        task_at("WORK", 3),
        task_at("WORK", 4, priority=0),
        task_at("BLOCKED", 5, depends_on=("000003",)),
        task_at("BLOCKED", 6, depends_on=("000005",)),
        task_at("BLOCKED", 7, depends_on=("000002",)),
    )
    assert _queue(*tasks) == ["000004", "000003", "000002", "000001"]


def test_a_row_says_its_rank_priority_and_who_waits() -> None:
    tasks = (task_at("WORK", priority=1), task_at("BLOCKED", 2, depends_on=("000001",)))
    assert queue(a_graph(*tasks), tasks) == [QueueRow(3, 1, 1, "000001")]


def test_what_is_assigned_to_another_one_is_left_out() -> None:
    tasks = (
        task_at("WORK", 1, assignee="bob"),
        task_at("WORK", 2, assignee="eve"),
        task_at("WORK", 3),
    )
    assert (_queue(*tasks), _queue(*tasks, actor="bob")) == (
        ["000001", "000002", "000003"],
        ["000001", "000003"],
    )


# Inbox.


def _inbox(*tasks: Task, **options: Any) -> list[tuple[int, str, str, str]]:
    rows = inbox(a_graph(*tasks), tasks, NOW, **options)
    return [(row.rank, row.id, row.reason, row.command) for row in rows]


@pytest.mark.parametrize(
    ("task", "command"),
    [
        (task_at("WORK"), "git tasks edit 000001"),
        (task_at("CLOSED"), "git tasks note 000001 --seen"),
    ],
    ids=["open", "closed"],
)
def test_what_does_not_verify_is_repaired_while_the_task_is_open(task: Task, command: str) -> None:
    row = Attention("a" * 32, "invalid", "it was moved by hand")
    assert _inbox(task._replace(attention=(row,))) == [
        (7, "000001", "it was moved by hand", command)
    ]


def test_the_inbox_has_its_ranks() -> None:
    tasks = (
        task_at("NEW", 1),
        task_at("NEW", 2, proposed_by="bob"),
        task_at("CHECK", 3),
        task_at("WORK", 4, attention=REJECTED),
        task_at("PLAN", 5, held_by="bob", expires=0),
        task_at("BLOCKED", 6, depends_on=("000011",)),
        task_at("HELD_DESIGN", 7, held_reason="Which?"),
        task_at("HELD_PLAN", 8),
        task_at("HELD_WORK", 9),
        task_at("MANAGER_REVIEW", 10),
        task_at("CLOSED", 11, outcome="aborted"),
    )
    assert _inbox(*tasks, untrusted=("000003", "000004")) == [
        (1, "000010", "ready for the final review", "git tasks submit 000010"),
        (2, "000009", "stuck", "git tasks resume 000009"),
        (3, "000008", "stuck", "git tasks resume 000008"),
        (4, "000007", "Which?", "git tasks resume 000007"),
        (5, "000006", "000011 was aborted", "git tasks dep rm 000006 000011"),
        (6, "000005", "the lease of bob ran out", "git tasks release 000005 --force"),
        (7, "000004", "claim lost", "git tasks note 000004 --seen"),
        (8, "000003", "its checks wait for your approval", "git tasks trust 000003"),
        (9, "000002", "proposed by bob", "git tasks submit 000002"),
        (10, "000001", "not dispatched yet", "git tasks submit 000001"),
    ]


@pytest.mark.parametrize(
    "task",
    [
        task_at("CHECK"),
        task_at("WORK", held_by="bob"),
        task_at("BLOCKED", depends_on=("000002",)),
        task_at("DESIGN", depends_on=("000003",)),
        task_at("CLOSED"),
    ],
)
def test_what_waits_for_nobody_is_not_in_the_inbox(task: Task) -> None:
    graph = a_graph(task, task_at("WORK", 2), task_at("CLOSED", 3, outcome="aborted"))
    assert inbox(graph, [task], NOW) == []


@pytest.mark.parametrize(
    ("task", "rank"),
    [
        (task_at("NEW", attention=REJECTED), 7),
        (task_at("NEW", attention=REJECTED, proposed_by="bob"), 7),
        (task_at("HELD_WORK", attention=REJECTED), 2),
        (task_at("HELD_DESIGN", proposed_by="bob"), 4),
        (task_at("BLOCKED", attention=REJECTED, depends_on=("000002",)), 5),
        (task_at("WORK", held_by="bob", expires=-9, attention=REJECTED), 6),
    ],
)
def test_a_task_that_waits_for_several_things_has_the_first_rank(task: Task, rank: int) -> None:
    graph = a_graph(task, task_at("CLOSED", 2, outcome="aborted"))
    assert [row.rank for row in inbox(graph, [task], NOW)] == [rank]


def test_a_check_waits_for_trust_only_where_that_is_said() -> None:
    task = task_at("CHECK")
    graph = a_graph(task)
    waits = rank_of(graph, task, NOW, waits_for_trust=True)
    assert (rank_of(graph, task, NOW), waits) == (0, 8)


@pytest.mark.parametrize(
    ("children", "reason", "command"),
    [
        (["WORK"], "1 of its children is open", "git tasks list --parent 000001"),
        (["WORK", "NEW", "CLOSED"], "2 of its children are open", "git tasks list --parent 000001"),
        (["CLOSED", "aborted"], "its children have closed", "git tasks submit 000001 --close"),
        (["aborted"], "not dispatched yet", "git tasks submit 000001"),
        ([], "not dispatched yet", "git tasks submit 000001"),
    ],
)
def test_a_parent_that_was_never_dispatched_waits_for_its_children(
    children: list[Any], reason: str, command: str
) -> None:
    parent = task_at("NEW")
    below = [
        task_at("CLOSED", number, parent="000001", outcome="aborted")
        if state == "aborted"
        else task_at(state, number, parent="000001")
        for number, state in enumerate(children, 2)
    ]
    rows = inbox(a_graph(parent, *below), [parent], NOW)
    assert [(row.reason, row.command) for row in rows] == [(reason, command)]


def test_an_aborted_dependency_is_shown_until_its_replacement_has_landed() -> None:
    waiting = task_at("BLOCKED", depends_on=("000002", "000003", "000004"))
    graph = a_graph(
        waiting,
        task_at("CLOSED", 2, outcome="aborted"),
        task_at("CLOSED", 3, outcome="aborted"),
        task_at("CLOSED", 4, outcome="aborted"),
        task_at("CLOSED", 5, supersedes="000002"),
        task_at("WORK", 6, supersedes="000003"),
        task_at("CLOSED", 7, supersedes="000003", outcome="aborted"),
    )
    assert inbox(graph, [waiting], NOW) == [
        InboxRow(
            5,
            0,
            waiting.entered_at,
            "000001",
            "000003, 000004 were aborted, superseded by 000006",
            "git tasks dep rm 000001 000003",
        )
    ]


def test_ties_go_by_who_waits_then_by_how_long_then_by_id() -> None:
    tasks = (
        task_at("NEW", 1, entered_at="2027-01-15T09:00:00Z"),
        task_at("NEW", 2, entered_at="2027-01-15T08:00:00Z"),
        task_at("NEW", 3, entered_at="2027-01-15T09:00:00Z"),
        task_at("NEW", 4, entered_at="2027-01-15T10:00:00Z"),
        task_at("BLOCKED", 5, depends_on=("000004",)),
    )
    found = [row[1] for row in _inbox(*reversed(tasks))]
    assert found == ["000004", "000002", "000001", "000003"]


@pytest.mark.parametrize("state", machine.HELD)
def test_a_held_task_whose_reason_was_lost_is_held_all_the_same(state: State) -> None:
    assert _inbox(task_at(state, held_reason=None))[0][2] == "held"
