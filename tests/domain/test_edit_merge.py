"""What is left of an edit when others have changed the task meanwhile."""

from __future__ import annotations

from typing import Any

from gittasks.domain.edit_merge import Before, Plan, merge_edit
from gittasks.domain.events import Edited, Event
from tests.support.builders import NOW
from tests.support.decisions import HOST, a_graph, task_at

ONE, TWO, THREE = "000001", "000002", "000003"
TEXT = b"one\ntwo\nthree\nfour\nfive\n"


def _merged(change: Edited, now: dict[str, Any], body: bytes | None = None) -> Plan:
    """Merges an edit of a new task with what it is now, with its number of now."""
    before = task_at("NEW")
    after = before._replace(**{key: value for key, value in now.items() if key != "body"})
    graph = a_graph(
        after, task_at("NEW", 2), task_at("NEW", 3), bodies={ONE: now.get("body", TEXT)}
    )
    event = Event(
        "e" * 32, NOW, "ada", "manager", HOST, change, ONE, before.uid, "NEW", "NEW", body=body
    )
    return merge_edit(graph, event, change, Before(before, TEXT), after, lambda _, value: value)


def test_a_field_that_others_have_not_changed_is_set() -> None:
    plan = _merged(Edited((("priority", 0), ("title", "Ours"))), {"title": "Theirs"})
    assert (plan.fields, plan.reason, plan.is_applied) == (
        {"priority": 0},
        "others have changed its title too",
        True,
    )


def test_a_dependency_is_added_to_those_of_the_others() -> None:
    plan = _merged(Edited((("depends_on", (TWO,)),)), {"depends_on": (THREE,)})
    assert (plan.fields, plan.reason) == ({"depends_on": (THREE, TWO)}, "")


def test_texts_are_merged_place_by_place() -> None:
    plan = _merged(
        Edited(body=True), {"body": TEXT.replace(b"five", b"5")}, TEXT.replace(b"one", b"1")
    )
    assert (plan.body, plan.kept) == (b"1\ntwo\nthree\nfour\n5\n", None)


def test_where_both_have_changed_one_place_ours_is_kept_beside() -> None:
    plan = _merged(
        Edited(body=True), {"body": TEXT.replace(b"two", b"2")}, TEXT.replace(b"two", b"TWO")
    )
    assert (plan.body, plan.kept, plan.is_applied) == (
        None,
        "others have changed the same place of its text",
        False,
    )


def test_nothing_is_set_in_a_task_that_was_closed() -> None:
    plan = _merged(Edited((("priority", 0),)), {"state": "CLOSED", "outcome": "aborted"})
    assert plan == Plan({}, None, [], "the task was closed meanwhile")
