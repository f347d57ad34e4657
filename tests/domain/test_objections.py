"""What the machine objects to in a recorded event that nobody decided here."""

from __future__ import annotations

from typing import Any

import pytest

from gittasks.domain import machine
from gittasks.domain.decide import decide
from gittasks.domain.events import (
    Aborted,
    Change,
    CheckPassed,
    CheckRefuted,
    Claimed,
    Configured,
    Created,
    Edited,
    Event,
    EventRole,
    ExternallyChanged,
    FeedbackGiven,
    Held,
    Initialized,
    Noted,
    Rejected,
    Released,
    Reordered,
    Reparented,
    Resumed,
    Submitted,
    Unblocked,
)
from gittasks.domain.requests import Create
from gittasks.domain.task import ROLES, Draft, State, Task
from gittasks.domain.task_graph import TaskGraph
from tests.support.builders import NOW, hexadecimal
from tests.support.decisions import (
    BASE,
    BODY,
    HOST,
    LANDED,
    LATER_TIP,
    TIP,
    a_graph,
    branch_of,
    claim_of,
    facts,
    task_at,
)

ONE, TWO, THREE, FOUR = (f"{number:06d}" for number in range(1, 5))
UID = hexadecimal("new")
LEASE = "2099-01-01T00:00:00Z"
STALE = hexadecimal("stale")
DESIGN = Draft("## Design", len(BODY))


def _event(about: Task, change: Change, target: State | None = None, **fields: Any) -> Event:
    """Returns an event of a task's owner who presents the present claim."""
    base: dict[str, Any] = {
        "role": machine.STAGE[about.state].role or "manager",
        "claim": about.claim,
        "source": about.state,
        "target": target or about.state,
        "task": about.id,
        "uid": about.uid,
    }
    return Event("e" * 32, NOW, "bob", host=HOST, change=change, **{**base, **fields})


def _new(change: Change, **fields: Any) -> Event:
    base: dict[str, Any] = {"role": "manager", "task": THREE, "uid": UID, "target": "NEW"}
    return Event("e" * 32, NOW, "ada", host=HOST, change=change, body=b"", **{**base, **fields})


def _adopted(*set_: tuple[str, Any], **fields: Any) -> Event:
    return _new(ExternallyChanged(set_, created=True), **{"role": "tool", **fields})


BOB = "bob"
NEW, WORK, REVIEW = (
    task_at("NEW"),
    task_at("WORK", held_by=BOB),
    task_at("WORK_REVIEW", held_by=BOB),
)
CHECK, FINAL = task_at("CHECK"), task_at("MANAGER_REVIEW")
AUTHOR = task_at("DESIGN", held_by=BOB)
DRAFTED = task_at("DESIGN_REVIEW", held_by=BOB)
WAITS = task_at("BLOCKED", depends_on=(TWO,))
FREE = task_at("BLOCKED")
HELD = task_at("HELD_PLAN")
FAIL = CheckRefuted(("make: 1",))

# Beside task 1, which the event is about, there are an open one, a landed one and an aborted one.
OTHERS = (task_at("NEW", 2), task_at("CLOSED", 5), task_at("CLOSED", 6, outcome="aborted"))

OBJECTIONS: dict[str, tuple[Task, Event, str]] = {
    # What every event needs.
    "no task": (NEW, _event(NEW, Noted(), task=None), "it lacks Task, Uid or To"),
    "no uid": (NEW, _event(NEW, Noted(), uid=None), "it lacks Task, Uid or To"),
    "no target": (NEW, _event(NEW, Noted())._replace(target=None), "it lacks Task, Uid or To"),
    "no source": (NEW, _event(NEW, Noted(), source=None), "it lacks From"),
    "an unknown task": (NEW, _event(NEW, Noted(), task="000099"), "the task 000099 does not exist"),
    "another uid": (NEW, _event(NEW, Noted(), uid=UID), "the task 000001 has another uid"),
    "another state": (
        NEW, _event(NEW, Noted(), source="PLAN"), "the task is at NEW, not at PLAN",
    ),
    "a closed task": (
        task_at("CLOSED"), _event(task_at("CLOSED"), Noted(), role="manager"), "the task is closed",
    ),
    # Create.
    "a taken number": (NEW, _new(Created("x"), task=ONE), "the task 000001 exists already"),
    "a taken uid": (NEW, _new(Created("x"), uid=NEW.uid), "a task with this uid exists already"),
    "a start elsewhere": (
        NEW, _new(Created("x"), target="WORK"), "a new task starts at NEW, not with nothing to WORK",
    ),
    "a start from somewhere": (
        NEW, _new(Created("x"), source="NEW"), "a new task starts at NEW, not with NEW to NEW",
    ),
    "a proposal by the manager": (
        NEW, _new(Created("x", proposed_by="ada")),
        "the manager may not create it as if ada proposed it",
    ),
    "a task of the manager by an agent": (
        NEW, _new(Created("x"), role="worker"),
        "the worker may not create it as if None proposed it",
    ),
    "a replacement by an agent": (
        NEW, _new(Created("x", supersedes=ONE, proposed_by="ada"), role="none"),
        "the none may not supersede a task",
    ),
    "a blank title": (NEW, _new(Created(" ")), "it sets title to what it cannot be"),
    "a wrong priority": (NEW, _new(Created("x", priority=7)), "it sets priority to what it cannot be"),
    "a blank label": (NEW, _new(Created("x", labels=("",))), "it sets labels to what it cannot be"),
    "a parent that is no id": (
        NEW, _new(Created("x", parent="1")), "it sets parent to what it cannot be",
    ),
    "a dependency named twice": (
        NEW, _new(Created("x", depends_on=(ONE, ONE))), "it sets depends_on to what it cannot be",
    ),
    "an unknown parent": (
        NEW, _new(Created("x", parent="000099")), "it names 000099, which does not exist",
    ),
    "an unknown dependency": (
        NEW, _new(Created("x", depends_on=("000099",))), "it names 000099, which does not exist",
    ),
    "a closed parent": (NEW, _new(Created("x", parent="000005")), "the task 000005 is closed"),
    "a landed task replaced": (
        NEW, _new(Created("x", supersedes="000005")), "the task 000005 has landed",
    ),
    "a replacement that waits for itself": (
        NEW._replace(depends_on=(TWO,)), _new(Created("x", supersedes=TWO, depends_on=(ONE,))),
        "it closes a ring of dependencies",
    ),
    # A document made by hand.
    "a document that somebody adopts": (
        NEW, _adopted(("title", "x"), role="manager"), "only the tool may adopt a task",
    ),
    "a document without a title": (NEW, _adopted(), "it sets title to what it cannot be"),
    "a document in another state": (
        NEW, _adopted(("title", "x"), ("state", "WORK")), "the field state is not edited by hand",
    ),
    "a document below an unknown parent": (
        NEW, _adopted(("title", "x"), ("parent", "000099")), "it names 000099, which does not exist",
    ),
    # Claims.
    "a claim of a claimed task": (
        WORK, _event(WORK, Claimed(LEASE, "b", BASE, BASE), claim=STALE), "the task is claimed by bob",
    ),
    "a claim without a token": (
        task_at("WORK"), _event(task_at("WORK"), Claimed(LEASE, "b", BASE, BASE)), "it lacks Claim",
    ),
    "a release of what nobody holds": (
        task_at("WORK"), _event(task_at("WORK"), Released()), "the task is not claimed",
    ),
    "a stale release": (WORK, _event(WORK, Released(), claim=STALE), "its claim is stale"),
    "a plain release by the manager": (
        WORK, _event(WORK, Released(), role="manager"), "it is not the holder's",
    ),
    "a release by force of the holder": (
        WORK, _event(WORK, Released("forced")), "only the manager releases by force",
    ),
    "an expiry said by the holder": (
        WORK, _event(WORK, Released("expired")), "only the tool says that it expired",
    ),
    "a death said by the manager": (
        WORK, _event(WORK, Released("died"), role="manager"), "only the tool says that it died",
    ),
    "a stale submit": (
        WORK, _event(WORK, Submitted(), "CHECK", claim=STALE, commit=TIP), "its claim is stale",
    ),
    "a submit without a claim": (
        task_at("WORK"), _event(task_at("WORK"), Submitted(), "CHECK", commit=TIP),
        "its claim is stale",
    ),
    "a stale hold": (WORK, _event(WORK, Held("x"), "HELD_WORK", claim=STALE), "its claim is stale"),
    "a stale feedback": (
        REVIEW, _event(REVIEW, FeedbackGiven(("x",), 1, 1), "WORK", claim=STALE),
        "its claim is stale",
    ),
    "a check that another one holds": (
        task_at("CHECK", held_by=BOB),
        _event(task_at("CHECK", held_by=BOB), CheckPassed(), "WORK_REVIEW", claim=None, commit=TIP),
        "CHECK is claimed by bob",
    ),
    # Dispatch.
    "a dispatch past an open dependency": (
        NEW._replace(depends_on=(TWO,)), _event(NEW, Submitted(), "WORK"), "a dependency is open",
    ),
    "a wait for nothing": (
        NEW, _event(NEW, Submitted(enters="WORK"), "BLOCKED"), "no dependency is open",
    ),
    "a wait without a goal": (
        WAITS, _event(WAITS, Submitted(), "BLOCKED"),
        "a task says what it enters exactly while it is BLOCKED",
    ),
    "a goal without a wait": (
        NEW, _event(NEW, Submitted(enters="WORK"), "WORK"),
        "a task says what it enters exactly while it is BLOCKED",
    ),
    "an outcome of an open task": (
        NEW, _event(NEW, Submitted(outcome="landed"), "WORK"), "a task with an outcome is closed",
    ),
    "a close without an outcome": (NEW, _event(NEW, Submitted(), "CLOSED"), "it lacks the outcome"),
    "a close that throws away": (
        NEW, _event(NEW, Submitted(outcome="aborted"), "CLOSED"), "it lacks the outcome",
    ),
    "a close without children": (
        NEW, _event(NEW, Submitted(outcome="landed"), "CLOSED"), "it has no children",
    ),
    # Unblock and resume.
    "an unblock before its time": (
        WAITS, _event(WAITS, Unblocked(), "WORK", role="tool"), "a dependency is open",
    ),
    "an unblock to another state": (
        FREE, _event(FREE, Unblocked(), "PLAN", role="tool"), "the task enters WORK",
    ),
    "a resume before its time": (
        HELD._replace(depends_on=(TWO,)), _event(HELD, Resumed(), "PLAN"), "a dependency is open",
    ),
    "a resume that waits for nothing": (
        HELD, _event(HELD, Resumed(), "BLOCKED"), "no dependency is open",
    ),
    # Submit.
    "work without a tip": (WORK, _event(WORK, Submitted(), "CHECK"), "it lacks the work tip"),
    "work with a draft": (
        WORK, _event(WORK, Submitted(draft=Draft("## Implementation Notes", 0)), "CHECK", commit=TIP),
        "a draft belongs to a review of a section",
    ),
    "a design without a draft": (
        AUTHOR, _event(AUTHOR, Submitted(), "DESIGN_REVIEW"),
        "a draft belongs to a review of a section",
    ),
    "a design with another draft": (
        AUTHOR, _event(AUTHOR, Submitted(draft=Draft("## Todos", 1)), "DESIGN_REVIEW"),
        "a draft belongs to a review of a section",
    ),
    "a review that leaves a draft": (
        DRAFTED, _event(DRAFTED, Submitted(draft=DESIGN), "PLAN"),
        "a draft belongs to a review of a section",
    ),
    "work that has landed": (
        WORK, _event(WORK, Submitted(outcome="landed"), "CHECK", commit=TIP),
        "a task has landed exactly when it is closed by a submit",
    ),
    "a landing without an outcome": (
        FINAL, _event(FINAL, Submitted(), "CLOSED", commit=LANDED),
        "a task has landed exactly when it is closed by a submit",
    ),
    "a landing without a commit": (
        FINAL, _event(FINAL, Submitted(outcome="landed"), "CLOSED"), "it lacks the landed commit",
    ),
    "a landing past an open dependency": (
        FINAL._replace(depends_on=(TWO,)),
        _event(FINAL, Submitted(outcome="landed"), "CLOSED", commit=LANDED), "a dependency is open",
    ),
    # Feedback.
    "feedback without findings": (
        REVIEW, _event(REVIEW, FeedbackGiven((), 1, 1), "WORK"), "it has no findings",
    ),
    "feedback that is not counted": (
        REVIEW, _event(REVIEW, FeedbackGiven(("x",)), "WORK"), "it counts 0 rejections and not 1",
    ),
    "feedback of the manager that is counted": (
        FINAL, _event(FINAL, FeedbackGiven(("x",), 1, 1), "WORK"),
        "it counts 1 rejections and not 0",
    ),
    "a bounce with a reason to hold": (
        REVIEW, _event(REVIEW, FeedbackGiven(("x",), 1, 1, "stuck"), "WORK"),
        "a reason to hold belongs to a task that is held",
    ),
    "a rejection that holds without a reason": (
        REVIEW, _event(REVIEW, FeedbackGiven(("x",), 1, 1), "HELD_WORK"),
        "a reason to hold belongs to a task that is held",
    ),
    "a hold without a reason": (WORK, _event(WORK, Held(" "), "HELD_WORK"), "it gives no reason"),
    # Checks.
    "a pass of another commit": (
        CHECK, _event(CHECK, CheckPassed(), "WORK_REVIEW", commit=LATER_TIP),
        "it checked another commit than the submitted one",
    ),
    "a fail of another commit": (
        CHECK, _event(CHECK, FAIL, "WORK", commit=LATER_TIP),
        "it checked another commit than the submitted one",
    ),
    "a fail without findings": (
        CHECK, _event(CHECK, CheckRefuted(()), "WORK", commit=TIP), "it has no findings",
    ),
    "a fail that is not counted": (
        CHECK, _event(CHECK, FAIL._replace(failures=3), "WORK", commit=TIP),
        "it counts 3 failures and not 1",
    ),
    "a fail that holds without a reason": (
        CHECK, _event(CHECK, FAIL, "HELD_WORK", commit=TIP),
        "a reason to hold belongs to a task that is held",
    ),
    # Edits.
    "an edit of the state": (
        NEW, _event(NEW, Edited((("state", "WORK"),))), "the field state is not edited by hand",
    ),
    "an edit that takes the title away": (
        NEW, _event(NEW, Edited(unset=("title",))), "a task has a title",
    ),
    "an edit by hand of the state": (
        NEW, _event(NEW, ExternallyChanged(unset=("state",)), role="tool"),
        "the field state is not edited by hand",
    ),
    "an edit to a wrong value": (
        NEW, _event(NEW, Edited((("labels", "ui"),))), "it sets labels to what it cannot be",
    ),
    "an edit of x- to no text": (
        NEW, _event(NEW, Edited((("x-a", 1),))), "it sets x-a to what it cannot be",
    ),
    "an edit of dependencies in work": (
        AUTHOR, _event(AUTHOR, Edited((("depends_on", (TWO,)),)), role="manager"),
        "dependencies do not change at DESIGN",
    ),
    "an edit that unsets dependencies in work": (
        AUTHOR, _event(AUTHOR, Edited(unset=("depends_on",)), role="manager"),
        "dependencies do not change at DESIGN",
    ),
    "an edit of the text under review": (
        DRAFTED, _event(DRAFTED, Edited(body=True), role="manager"), "a draft is under review",
    ),
    "an edit of the checks under review": (
        DRAFTED, _event(DRAFTED, Edited(unset=("checks",)), role="manager"),
        "a draft is under review",
    ),
    "an edit to an unknown dependency": (
        NEW, _event(NEW, Edited((("depends_on", ("000099",)),))),
        "it names 000099, which does not exist",
    ),
    "an edit that closes a ring": (
        NEW, _event(NEW, Edited((("depends_on", (ONE,)),))), "it closes a ring of dependencies",
    ),
    "a note on an artifact without a name": (
        NEW, _event(NEW, Noted(((" ", "x"),))), "an artifact has no name",
    ),
    # Hierarchy.
    "a move below itself": (
        NEW, _event(NEW, Reparented(ONE)), "a task cannot be its own parent",
    ),
    "a position that is none": (NEW, _event(NEW, Reordered("A")), "it is no position"),
}  # fmt: skip


@pytest.mark.parametrize("case", OBJECTIONS)
def test_the_machine_objects_to(case: str) -> None:
    task, event, objection = OBJECTIONS[case]
    assert machine.objection(a_graph(task, *OTHERS), event) == objection


def test_the_machine_objects_to_a_landing_or_an_abort_above_an_open_child() -> None:
    graph = a_graph(FINAL, task_at("NEW", 2, parent=ONE))
    landing = _event(FINAL, Submitted(outcome="landed"), "CLOSED", commit=LANDED)
    abort = _event(FINAL, Aborted(), "CLOSED")
    assert [machine.objection(graph, event) for event in (landing, abort)] == [
        "a child is open"
    ] * 2


def test_the_machine_objects_to_an_abort_that_closes_a_ring() -> None:
    graph = a_graph(
        NEW,
        task_at("NEW", 2, supersedes=ONE, depends_on=(THREE,)),
        task_at("NEW", 3, depends_on=(ONE,)),
    )
    objection = machine.objection(graph, _event(NEW, Aborted(), "CLOSED"))
    assert objection == "it closes a ring of dependencies"


def test_events_of_the_project_concern_no_task() -> None:
    roles: tuple[EventRole, ...] = (*ROLES, "tool", "operator", "none")
    legal = [
        (change.__class__, role)
        for change in (Initialized(), Configured(), Rejected("claim", "it is lost"))
        for role in roles
        if machine.objection(TaskGraph(), Event("", NOW, "ada", role, HOST, change)) is None
    ]
    assert legal == [
        (Initialized, "manager"),
        (Initialized, "operator"),
        (Configured, "manager"),
        (Rejected, "tool"),
    ]


def test_the_machine_objects_to_settings_by_an_agent() -> None:
    event = Event("", NOW, "bob", "worker", HOST, Configured())
    assert machine.objection(TaskGraph(), event) == "the worker may not configure"


def test_a_document_made_by_hand_is_taken_as_a_new_task() -> None:
    event = _adopted(("title", "By hand"), ("depends_on", (ONE,)), ("parent", ONE), ("x-a", " 1"))
    assert machine.objection(a_graph(NEW, *OTHERS), event) is None


def test_a_field_changed_by_hand_is_taken_in_any_open_state() -> None:
    event = _event(WORK, ExternallyChanged((("title", "By hand"),), body=True), role="tool")
    assert machine.objection(a_graph(WORK), event) is None


def test_a_new_task_that_was_decided_is_taken() -> None:
    graph = a_graph(NEW, *OTHERS)
    request = Create("x", UID, depends_on=(ONE,), parent=TWO, supersedes="000006", follows="000005")
    (event,) = decide(graph, request, facts())
    assert machine.objection(graph, event) is None


def test_the_owner_of_a_state_claims_it() -> None:
    task = task_at("PLAN")
    event = _event(task, Claimed(LEASE, branch_of(1), BASE, BASE), claim=claim_of(1))
    assert machine.objection(a_graph(task), event) is None
