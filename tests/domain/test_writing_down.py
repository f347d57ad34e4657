"""Creating, superseding, editing and noting."""

from __future__ import annotations

from typing import Any

import pytest

from gittasks.domain import machine
from gittasks.domain.decide import decide, decide_all
from gittasks.domain.errors import (
    AlreadyClaimed,
    Corrupt,
    NotAllowed,
    Refused,
    UsageFault,
    WrongRole,
)
from gittasks.domain.events import Edited, Noted
from gittasks.domain.requests import Create, Edit, Note, Request, SpeakingRole, Submit
from gittasks.domain.task import ROLES, Attention, State, Task
from gittasks.domain.task_graph import TaskGraph
from gittasks.domain.times import timestamp
from tests.support.builders import NOW, hexadecimal
from tests.support.decisions import BODY, Story, a_graph, after, decided, facts, task_at

ONE, TWO, THREE = "000001", "000002", "000003"
UID = hexadecimal("new")
ATTENTION = (Attention("e" * 32, "rejected", "claim lost"),)
CLOSED_TASKS = a_graph(task_at("CLOSED"), task_at("CLOSED", 2, outcome="aborted"))


def _new(**fields: Any) -> Create:
    return Create("New", UID)._replace(**fields)


# Create.


def test_a_new_task_has_all_that_was_said() -> None:
    request = Create(
        "  Fix the login  ",
        UID,
        b"Do it.\n",
        labels=("ui", "ui", "auth"),
        priority=0,
        checks=("make test", "make test"),
        depends_on=(ONE, ONE),
        parent=TWO,
        follows=ONE,
        assignee="bob",
    )
    graph = a_graph(task_at("NEW"), task_at("NEW", 2))
    now, text = decided(graph, request, facts(actor="ada"))
    assert text == b"Do it.\n"
    assert now == Task(
        id=THREE,
        uid=UID,
        title="Fix the login",
        entered_at=timestamp(NOW),
        depends_on=(ONE,),
        parent=TWO,
        follows=ONE,
        labels=("ui", "auth"),
        priority=0,
        checks=("make test", "make test"),
        assignee="bob",
        created_at=timestamp(NOW),
        created_by="ada",
    )


def test_a_new_task_brings_keys_of_its_own() -> None:
    now, _text = decided(a_graph(), _new(extra=(("x-from", ' "there"'),)), facts())
    assert now.extra == (("x-from", ' "there"'),)


def test_a_key_that_is_ours_is_nobodys_own() -> None:
    with pytest.raises(UsageFault, match="A task has no field 'state'"):
        decide(a_graph(), _new(extra=(("state", " CLOSED"),)), facts())


def test_ids_count_on_from_the_highest() -> None:
    now, _text = decided(a_graph(task_at("NEW", 41)), _new(), facts())
    assert now.id == "000042"


def test_after_the_highest_id_of_all_come_the_lowest_that_are_free() -> None:
    graph = a_graph(task_at("NEW"), task_at("NEW", 3), task_at("NEW", 999_999))
    many = [_new(uid=hexadecimal(f"{number}")) for number in range(3)]
    events = decide_all(graph, many, facts())
    assert [event.task for event in events] == [TWO, "000004", "000005"]


class _Full(TaskGraph):
    def last_id(self) -> int:
        return 999_999

    def free_id(self, first: int) -> int:  # there is none at all
        return 1_000_000


def test_six_digits_can_be_used_up() -> None:
    with pytest.raises(Corrupt, match="used up all ids up to 999999"):
        decide(_Full(), _new(), facts())


def test_several_requests_are_decided_one_after_the_other() -> None:
    requests = (
        _new(),
        _new(uid=hexadecimal("other"), depends_on=(ONE,)),
        Submit(TWO, enter="WORK"),
    )
    later = after(TaskGraph(), decide_all(TaskGraph(), requests, facts()))
    assert (later.tasks[TWO].state, later.tasks[TWO].depends_on) == ("BLOCKED", (ONE,))


def test_the_same_key_makes_one_task() -> None:
    graph = a_graph(task_at("NEW"))
    assert decide(graph, _new(uid=graph.tasks[ONE].uid), facts()) == []


def test_the_same_key_twice_in_one_decision_makes_one_task() -> None:
    assert len(decide_all(TaskGraph(), (_new(), _new()), facts())) == 1


@pytest.mark.parametrize("role", [role for role in (*ROLES, None) if role != "manager"])
def test_whoever_is_not_the_manager_proposes(role: SpeakingRole | None) -> None:
    now, _text = decided(TaskGraph(), _new(), facts(role, "bob"))
    assert (now.state, now.proposed_by) == ("NEW", "bob")


@pytest.mark.parametrize(
    ("title", "problem"),
    [
        ("", "blank"),
        (" \n\t", "blank"),
        ("a\nb", "more than one line"),
        ("a\rb", "more than one line"),
        ("a\u2028b", "more than one line"),
        ("a\udcffb", "no text"),
        ("x" * 501, "501 characters; 500 are allowed"),
    ],
)
def test_a_title_that_cannot_be_stored_is_refused(title: str, problem: str) -> None:
    for request in (_new(title=title), Edit(ONE, set=(("title", title),))):
        with pytest.raises(UsageFault, match=problem):
            decide(a_graph(task_at("NEW")), request, facts())


@pytest.mark.parametrize("title", ["no", "2026-01-02", "  ~  ", "000042", "x" * 500, "\u202eolleh"])
def test_a_title_is_a_text_whatever_it_looks_like(title: str) -> None:
    now, _text = decided(TaskGraph(), _new(title=title), facts())
    assert now.title == title.strip()


@pytest.mark.parametrize(
    "fields",
    [
        {"priority": -1},
        {"priority": 5},
        {"priority": True},
        {"labels": ("ok", " ")},
        {"labels": ["list"]},
        {"labels": (1,)},
        {"checks": ("",)},
        {"assignee": " "},
    ],
)
def test_a_value_that_a_field_cannot_hold_is_refused(fields: dict[str, Any]) -> None:
    for request in (_new(**fields), Edit(ONE, set=tuple(fields.items()))):
        with pytest.raises(UsageFault, match="cannot be"):
            decide(a_graph(task_at("NEW")), request, facts())


def test_nothing_is_created_below_a_closed_parent() -> None:
    with pytest.raises(NotAllowed) as refused:
        decide(CLOSED_TASKS, _new(parent=ONE), facts())
    assert refused.value.hint == "Use `--follows 000001` for work that comes after it."


def test_a_task_may_follow_a_closed_one() -> None:
    now, _text = decided(CLOSED_TASKS, _new(follows=ONE), facts())
    assert now.follows == ONE


# Supersede.


@pytest.mark.parametrize("state", [s for s in machine.STAGE if s != "CLOSED"])
def test_an_open_task_that_is_superseded_is_aborted_in_the_same_decision(state: State) -> None:
    claimed = state in machine.CLAIMABLE
    graph = a_graph(task_at(state, held_by="bob" if claimed else None))
    events = decide(graph, _new(supersedes=ONE), facts())
    later = after(graph, events)
    assert [(e.task, e.kind, e.target) for e in events] == [
        (TWO, "create", "NEW"),
        (ONE, "abort", "CLOSED"),
    ]
    assert (later.tasks[ONE].outcome, later.tasks[ONE].claim) == ("aborted", None)
    assert events[1].text == "superseded by 000002"


def test_an_aborted_task_is_superseded_as_it_is() -> None:
    events = decide(CLOSED_TASKS, _new(supersedes=TWO), facts())
    assert [(e.task, e.kind) for e in events] == [(THREE, "create")]


def test_a_landed_task_cannot_be_superseded() -> None:
    with pytest.raises(NotAllowed, match="has landed and cannot be superseded"):
        decide(CLOSED_TASKS, _new(supersedes=ONE), facts())


def test_a_proposal_supersedes_nothing() -> None:
    with pytest.raises(WrongRole):
        decide(a_graph(task_at("NEW")), _new(supersedes=ONE), facts("worker"))


@pytest.mark.parametrize("parent", [None, ONE])
def test_a_task_with_an_open_child_cannot_be_superseded(parent: str | None) -> None:
    graph = a_graph(task_at("NEW"), task_at("NEW", 2, parent=ONE))
    with pytest.raises(Refused, match="open children: 000002"):
        decide(graph, _new(supersedes=ONE, parent=parent), facts())


# Edit.


def test_an_edit_sets_and_unsets_what_differs() -> None:
    task = task_at(
        "WORK", held_by="bob", labels=("old",), assignee="bob", extra=(("x-a", " 1"), ("x-b", " 2"))
    )
    request = Edit(
        ONE,
        set=(("title", " Other "), ("x-c", " 3"), ("priority", 2), ("x-a", " 9")),
        unset=("labels", "x-b", "assignee", "x-none"),
    )
    (event,) = decide(a_graph(task), request, facts())
    assert event.change == Edited(
        set=(("title", "Other"), ("x-a", " 9"), ("x-c", " 3")), unset=("assignee", "labels", "x-b")
    )
    now, _text = decided(a_graph(task), request, facts())
    assert now == task._replace(
        title="Other", labels=(), assignee=None, extra=(("x-a", " 9"), ("x-c", " 3"))
    )


def test_what_is_set_and_unset_at_once_is_set() -> None:
    request = Edit(ONE, set=(("assignee", "eve"),), unset=("assignee",))
    now, _text = decided(a_graph(task_at("NEW", assignee="bob")), request, facts())
    assert now.assignee == "eve"


def test_an_edit_that_changes_nothing_is_nothing_to_do() -> None:
    request = Edit(ONE, set=(("title", "Task 1"), ("priority", 2)), unset=("labels",), body=BODY)
    assert decide(a_graph(task_at("WORK", held_by="bob")), request, facts()) == []


@pytest.mark.parametrize("name", ["state", "id", "outcome", "claim", "parent", "colour", "x-"])
@pytest.mark.parametrize("how", ["set", "unset"])
def test_other_fields_are_not_set_by_hand(name: str, how: str) -> None:
    request = Edit(ONE, set=((name, "x"),)) if how == "set" else Edit(ONE, unset=(name,))
    with pytest.raises(UsageFault, match="is not set by hand"):
        decide(a_graph(task_at("NEW")), request, facts())


def test_a_title_cannot_be_unset() -> None:
    with pytest.raises(UsageFault, match="needs a title"):
        decide(a_graph(task_at("NEW")), Edit(ONE, unset=("title",)), facts())


@pytest.mark.parametrize("value", [("7",), "000002", ("000002", 3), None])
def test_dependencies_are_a_list_of_ids(value: object) -> None:
    with pytest.raises(UsageFault, match="depends_on cannot be"):
        decide(a_graph(task_at("NEW")), Edit(ONE, set=(("depends_on", value),)), facts())


@pytest.mark.parametrize("state", machine.CLAIMABLE)
def test_labels_change_in_any_open_state_under_a_claim(state: State) -> None:
    task = task_at(state, held_by="bob")
    now, _text = decided(a_graph(task), Edit(ONE, set=(("labels", ("a",)),)), facts())
    assert now == task._replace(labels=("a",))


TEXT_OR_CHECKS = (Edit(ONE, body=b"New.\n"), Edit(ONE, set=(("checks", ("make",)),)))


@pytest.mark.parametrize("edit", TEXT_OR_CHECKS)
@pytest.mark.parametrize(
    "state", [s for s in machine.STAGE if s not in ("CLOSED", *machine.DRAFTED)]
)
def test_text_and_checks_change_in_any_open_state_without_a_claim(state: State, edit: Edit) -> None:
    needs = (TWO,) if state == "BLOCKED" else ()
    graph = a_graph(task_at(state, depends_on=needs), task_at("NEW", 2))
    now, text = decided(graph, edit, facts())
    assert (text, now.checks) == (edit.body or BODY, dict(edit.set).get("checks", ()))


@pytest.mark.parametrize("edit", [*TEXT_OR_CHECKS, Edit(ONE, unset=("checks",))])
def test_text_and_checks_do_not_change_under_a_claim(edit: Edit) -> None:
    task = task_at("WORK", held_by="bob", checks=("old",))
    with pytest.raises(AlreadyClaimed, match="who works from its text and checks"):
        decide(a_graph(task), edit, facts())


@pytest.mark.parametrize("edit", TEXT_OR_CHECKS)
def test_text_and_checks_change_under_a_claim_by_force_and_the_claim_stays(edit: Edit) -> None:
    task = task_at("WORK", held_by="bob")
    now, _text = decided(a_graph(task), edit._replace(force=True), facts())
    assert now.claim == task.claim


@pytest.mark.parametrize("edit", TEXT_OR_CHECKS)
@pytest.mark.parametrize("state", machine.DRAFTED)
@pytest.mark.parametrize("force", [False, True])
def test_text_and_checks_do_not_change_below_a_draft_under_review(
    state: State, edit: Edit, force: bool
) -> None:
    with pytest.raises(NotAllowed, match="is under review"):
        decide(a_graph(task_at(state)), edit._replace(force=force), facts())


# Attention and notes.


@pytest.mark.parametrize(
    "request_",
    [
        Edit(ONE),
        Edit(ONE, set=(("priority", 0),)),
        Note(ONE, seen=True),
        Note(ONE, "Looked.", seen=True),
        Submit(ONE),
    ],
)
def test_what_the_manager_does_clears_the_rows_to_look_at(request_: Request) -> None:
    now, _text = decided(a_graph(task_at("NEW", attention=ATTENTION)), request_, facts())
    assert now.attention == ()


def test_a_note_leaves_the_rows_to_look_at() -> None:
    now, _text = decided(a_graph(task_at("NEW", attention=ATTENTION)), Note(ONE, "x"), facts())
    assert now.attention == ATTENTION


def test_nothing_to_look_at_is_nothing_to_do() -> None:
    assert decide(a_graph(task_at("NEW")), Note(ONE, seen=True), facts()) == []


def test_only_the_manager_has_seen_a_row() -> None:
    with pytest.raises(WrongRole):
        decide(a_graph(task_at("NEW", attention=ATTENTION)), Note(ONE, seen=True), facts(None))


def test_a_note_is_a_text_and_artifacts_in_the_event() -> None:
    request = Note(ONE, "  Look.\n", (("pr", "12"), ("log", "a\nb")))
    (event,) = decide(a_graph(task_at("WORK", held_by="bob")), request, facts(None, "eve"))
    assert (event.text, event.role, event.change) == ("Look.", "none", Noted(request.artifacts))


def test_an_artifact_that_is_named_twice_is_recorded_once() -> None:
    request = Note(ONE, artifacts=(("pr", "1"), ("pr", "2")))
    (event,) = decide(a_graph(task_at("NEW")), request, facts())
    assert event.change == Noted((("pr", "2"),))


def test_the_last_value_of_an_artifact_counts() -> None:
    task = task_at("WORK", artifacts=(("pr", "1"), ("log", "a")))
    now, text = decided(a_graph(task), Note(ONE, artifacts=(("pr", "2"),)), facts(None))
    assert (now, text) == (task._replace(artifacts=(("pr", "2"), ("log", "a"))), BODY)


def test_a_closed_task_takes_no_note() -> None:
    for task, how in ((ONE, "has landed"), (TWO, "was aborted")):
        with pytest.raises(NotAllowed, match=how):
            decide(CLOSED_TASKS, Note(task, "x"), facts())


def test_a_story_of_a_proposal() -> None:
    story = Story()
    story.says(_new(), "worker", "bob")
    story.says(Submit(ONE))
    assert (story.task().state, story.task().proposed_by) == ("DESIGN", "bob")
