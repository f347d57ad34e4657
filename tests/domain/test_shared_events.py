"""What a meeting of clones leaves behind: other numbers, events that did not fit, texts kept."""

from __future__ import annotations

from typing import Any

import pytest

from gittasks.domain import machine
from gittasks.domain.decide import decide
from gittasks.domain.errors import NotAllowed
from gittasks.domain.events import Change, Created, Event, Noted, Rejected, Renumbered
from gittasks.domain.requests import Note
from gittasks.domain.task import Attention, Task
from gittasks.domain.task_graph import evolve
from tests.support.builders import hexadecimal
from tests.support.decisions import BODY, HOST, a_graph, facts, task_at

ROW = Attention(hexadecimal("earlier"), "rejected", "an edit was not applied")


def _event(task: Task, change: Change, **fields: Any) -> Event:
    base: dict[str, Any] = {
        "event_id": hexadecimal("event"), "at": 1_800_000_000, "actor": "Ada", "role": "tool",
        "host": HOST, "change": change, "task": task.id, "uid": task.uid,
        "source": task.state, "target": task.state,
    }  # fmt: skip
    return Event(**{**base, **fields})


def test_what_did_not_fit_becomes_a_row_for_the_manager() -> None:
    task = task_at("WORK")
    after, body = evolve(task, BODY, _event(task, Rejected("edit", "the task is closed")))
    words = "edit by Ada was not applied: the task is closed"
    assert (after, body) == (
        task._replace(attention=(Attention(hexadecimal("event"), "rejected", words),)),
        BODY,
    )


@pytest.mark.parametrize("change", [Rejected("claim", "taken", quiet=True), Rejected("note", "x", part=2, parts=2)])  # fmt: skip
def test_a_lost_claim_and_a_second_part_are_no_row(change: Rejected) -> None:
    task = task_at("WORK")
    assert evolve(task, BODY, _event(task, change)) == (task, BODY)


def test_a_text_kept_from_a_conflict_becomes_a_row() -> None:
    task = task_at("WORK")
    after, _ = evolve(task, BODY, _event(task, Noted(attention="kept"), role="manager"))
    assert after.attention == (Attention(hexadecimal("event"), "note", "kept"),)


def test_a_task_remembers_the_numbers_it_has_had() -> None:
    event = _event(task_at("NEW"), Created("Fix", former_ids=("000007",)), source=None)
    assert evolve(None, b"", event)[0].former_ids == ("000007",)


@pytest.mark.parametrize(
    ("change", "objection"),
    [
        (Renumbered("000007", "000001"), None),
        (Renumbered("000008", "000001"), "it tells of other numbers than the task has had"),
        (Renumbered("000007", "000002"), "it tells of other numbers than the task has had"),
    ],
)
def test_a_new_number_is_told_of_the_task_that_has_it(
    change: Renumbered, objection: str | None
) -> None:
    task = task_at("NEW")._replace(former_ids=("000007",))
    assert machine.objection(a_graph(task), _event(task, change)) == objection


@pytest.mark.parametrize("change", [Rejected("edit", "closed"), Noted(attention="kept")])
def test_a_closed_task_takes_what_did_not_fit(change: Change) -> None:
    task = task_at("CLOSED")
    assert machine.objection(a_graph(task), _event(task, change)) is None


def test_a_closed_task_takes_no_other_note() -> None:
    task = task_at("CLOSED")
    assert machine.objection(a_graph(task), _event(task, Noted())) == "the task is closed"


def test_what_did_not_fit_may_be_about_no_task_at_all() -> None:
    event = _event(task_at("NEW"), Rejected("edit", "gone"))
    event = event._replace(task=None, uid=None, source=None, target=None)
    assert (event.is_about_a_task, machine.objection(a_graph(), event)) == (False, None)


def test_only_the_tool_says_that_something_did_not_fit() -> None:
    task = task_at("WORK")
    event = _event(task, Rejected("edit", "closed"), role="manager")
    assert machine.objection(a_graph(task), event) == "the manager may not rejected at WORK"


def test_a_number_that_is_none_is_no_former_one() -> None:
    event = _event(task_at("NEW"), Created("Fix", former_ids=("7",)), source=None, role="manager")
    assert machine.objection(a_graph(), event) == "it has had a number that is none"


def test_what_a_new_task_brings_is_called_x_something() -> None:
    change = Created("Fix", extra=(("x-a", " 1"), ("state", " CLOSED")))
    event = _event(task_at("NEW"), change, source=None, role="manager")
    assert machine.objection(a_graph(), event) == "it has a key that is nobody's own"


def test_the_manager_clears_the_row_of_a_closed_task() -> None:
    graph = a_graph(task_at("CLOSED")._replace(attention=(ROW,)))
    events = decide(graph, Note(task_at("CLOSED").id, seen=True), facts("manager"))
    assert [event.change for event in events] == [Noted(seen=True)]


def test_the_manager_says_nothing_more_about_a_closed_task() -> None:
    graph = a_graph(task_at("CLOSED")._replace(attention=(ROW,)))
    with pytest.raises(NotAllowed):
        decide(graph, Note(task_at("CLOSED").id, "Late.", seen=True), facts("manager"))
