"""What one clone has done alone, decided again on top of what the others have done meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from gittasks.domain.config import Project
from gittasks.domain.events import (
    Aborted,
    Change,
    CheckRefuted,
    Claimed,
    Configured,
    Created,
    Edited,
    Event,
    ExternallyChanged,
    FeedbackGiven,
    Held,
    Initialized,
    Noted,
    Rejected,
    Released,
    Renumbered,
    Reordered,
    Reparented,
    Submitted,
    Unblocked,
)
from gittasks.domain.fields import DOCUMENT_LIMIT
from gittasks.domain.frontmatter import render
from gittasks.domain.ids import LAST_ID
from gittasks.domain.machine import STAGE
from gittasks.domain.replay import TEXT_LIMIT, derived, replay
from gittasks.domain.replayed import Local, Lost, Renaming
from gittasks.domain.requests import (
    Abort,
    Claim,
    Create,
    Edit,
    Feedback,
    Hold,
    Note,
    RecordCheck,
    Release,
    Reorder,
    Reparent,
    Resume,
    Submit,
)
from gittasks.domain.task import Attention, Cost, State, Task
from gittasks.domain.task_graph import TaskGraph
from gittasks.domain.times import timestamp
from tests.support.builders import NOW, hexadecimal
from tests.support.decisions import (
    BASE,
    BODY,
    LEASE,
    TIP,
    clean,
    finish,
    task_at,
)
from tests.support.meetings import Clone, Meeting, applied, check_ids, meets

ONE, TWO, THREE, FOUR = "000001", "000002", "000003", "000004"


def _apart(*tasks: Task, **fields: Any) -> tuple[Clone, Clone]:
    """Returns two clones that have had the same so far: the others, and ours."""
    ours = Clone(*tasks, **fields)
    return ours.twin(), ours


def _create(number: int = 1, **fields: Any) -> Create:
    return Create(f"Task {number}", hexadecimal(f"mine {number}"), BODY, **fields)


def _by_hand(clone: Clone, task: Task | None, change: Change, **fields: Any) -> Event:
    """Takes an event over as the clone's own, as no request would make it."""
    base: dict[str, Any] = {
        "event_id": "", "at": 0, "actor": "ada", "role": "manager", "host": clone.host,
        "change": change,
    }  # fmt: skip
    if task is not None:
        base |= {"task": task.id, "uid": task.uid, "source": task.state, "target": task.state}
    return clone.has(Event(**{**base, **fields}))[0]


def _kept(meeting: Meeting) -> list[tuple[str, bool]]:
    """Returns why events were not applied, and whether that is nothing for the manager."""
    changes = [event.change for event in meeting.events]
    return [(c.reason, c.quiet) for c in changes if isinstance(c, Rejected)]


# ------------------------------------------------------------------------------------- new tasks


def test_a_task_of_this_clone_alone_is_created_as_it_was() -> None:
    theirs, ours = _apart(task_at("NEW"))
    ours.creates(2, priority=1)
    met = meets(theirs, ours)
    assert (met.events, met.task(2), met.replayed.renamed) == (ours.past, ours.task(2), ())


def test_a_task_whose_number_is_taken_gets_the_next_free_one() -> None:
    theirs, ours = _apart()
    theirs.says(Create("Theirs", hexadecimal("theirs"), b"Theirs.\n"))
    ours.says(_create())
    met = meets(theirs, ours)
    assert [(e.kind, e.task, e.change) for e in met.events] == [
        ("create", TWO, Created("Task 1", former_ids=(ONE,))),
        ("renumber", TWO, Renumbered(ONE, TWO)),
    ]
    assert met.task(1).title == "Theirs"
    assert met.replayed.renamed == (Renaming(hexadecimal("mine 1"), ONE, TWO),)


def test_what_is_said_of_a_task_with_another_number_follows_it() -> None:
    theirs, ours = _apart(task_at("NEW"))
    theirs.says(_create(9))
    ours.says(_create(2))
    ours.says(_create(3, depends_on=(TWO,), parent=TWO))
    ours.says(_create(4, follows=TWO, supersedes=ONE))
    ours.says(Note(TWO, "Mine."))
    ours.says(Edit(FOUR, add_dependencies=(TWO,)))
    ours.says(Reparent(FOUR, TWO))
    met = meets(theirs, ours)
    assert met.told == [
        ("create", "000005"), ("renumber", "000005"), ("create", THREE), ("create", FOUR),
        ("abort", ONE), ("note", "000005"), ("edit", FOUR), ("reparent", FOUR),
    ]  # fmt: skip
    assert (met.task(3).depends_on, met.task(3).parent) == (("000005",), "000005")
    assert (met.task(4).depends_on, met.task(4).parent) == (("000005",), "000005")
    assert (met.task(4).follows, met.task(4).supersedes) == ("000005", ONE)


def test_a_chain_of_new_tasks_keeps_its_order() -> None:
    theirs, ours = _apart()
    for number in (7, 8):
        theirs.says(_create(number))
    for number in (1, 2, 3):
        needs = (f"{number - 1:06d}",) if number > 1 else ()
        ours.says(_create(number, depends_on=needs))
    met = meets(theirs, ours)
    tasks = met.clone.graph.tasks
    assert {t.title: (t.id, t.depends_on, t.former_ids) for t in tasks.values()} == {
        "Task 7": (ONE, (), ()),
        "Task 8": (TWO, (), ()),
        "Task 1": (FOUR, (), (ONE,)),
        "Task 2": ("000005", (FOUR,), (TWO,)),
        "Task 3": (THREE, ("000005",), ()),
    }


def test_a_number_that_is_taken_again_is_remembered_with_all_before() -> None:
    theirs, ours = _apart()
    theirs.says(_create(7))
    ours.says(_create(1))
    met = meets(theirs, ours)
    faster = theirs.twin("c")
    faster.says(_create(8))
    again = meets(faster, met.clone)
    assert [(e.kind, e.task, e.change) for e in again.events] == [
        ("create", THREE, Created("Task 1", former_ids=(ONE, TWO))),
        ("renumber", THREE, Renumbered(TWO, THREE)),
        ("renumber", THREE, Renumbered(ONE, THREE)),
    ]


@pytest.mark.parametrize(
    ("unreadable", "number"),
    [({ONE}, TWO), ({ONE, TWO}, THREE), ({TWO}, ONE)],
    ids=["its own", "the next one too", "another one"],
)
def test_the_number_of_a_document_that_cannot_be_read_is_taken(
    unreadable: set[str], number: str
) -> None:
    theirs, ours = _apart()
    theirs.unreadable = unreadable
    ours.says(_create())
    assert list(meets(theirs, ours).clone.graph.tasks) == [number]


def test_a_number_at_which_something_invalid_has_arrived_is_taken() -> None:
    theirs, ours = _apart()
    theirs.quarantined = {ONE: "it is bad", TWO: "it is bad"}
    ours.says(_create())
    assert meets(theirs, ours).told == [("create", THREE), ("renumber", THREE)]


def test_where_the_highest_number_is_taken_a_low_one_is_given_that_no_task_has() -> None:
    former = task_at("NEW", 3, former_ids=(TWO,))
    theirs, ours = _apart(task_at("NEW"), former)
    theirs.says(_create(7))
    theirs.graph = theirs.graph.with_task(task_at("NEW", LAST_ID), BODY)
    for number in (1, 2):
        ours.says(_create(number))
    met = meets(theirs, ours)
    assert [(met.task(n).title, met.task(n).former_ids) for n in (5, 6)] == [
        ("Task 2", ()),
        ("Task 1", (FOUR,)),
    ]


class _Full(TaskGraph):
    def free_id(self, first: int) -> int:  # there is none at all
        return LAST_ID + 1


def test_a_task_for_which_no_number_is_left_is_not_created_and_nothing_names_it() -> None:
    theirs, ours = _apart(task_at("NEW"), task_at("NEW", LAST_ID - 1))
    theirs.says(_create(7))
    theirs.graph = _Full(theirs.graph.tasks, theirs.graph.bodies)
    ours.says(_create(1))
    ours.says(Note(f"{LAST_ID}", "Mine."))
    ours.says(Edit(ONE, add_dependencies=(f"{LAST_ID}",)))
    met = meets(theirs, ours)
    assert [(event.kind, event.task) for event in met.events] == [
        ("rejected", None),
        ("rejected", None),
        ("rejected", ONE),
    ]
    assert _kept(met) == [
        ("its number is taken, and all up to 999999 are used up", False),
        ("the task 999999 does not exist", False),
        ("it names 999999, which could not be created", False),
    ]
    assert "    Mine." in met.events[1].text
    assert met.events[0].text.endswith("\nDo it.\n")


def test_one_idempotency_key_in_two_clones_is_one_task() -> None:
    theirs, ours = _apart()
    theirs.says(_create())
    ours.says(_create())
    ours.says(Submit(ONE))
    met = meets(theirs, ours)
    assert (_kept(met), met.replayed.renamed) == ([("the task is 000001 already", True)], ())
    assert met.task().state == "DESIGN"


def test_one_idempotency_key_under_two_numbers_is_the_number_of_the_others() -> None:
    theirs, ours = _apart()
    for number in (7, 1):
        theirs.says(_create(number))
    ours.says(_create(1))
    ours.says(_create(2, depends_on=(ONE,)))
    met = meets(theirs, ours)
    uid = hexadecimal("mine 1")
    assert met.replayed.renamed[0] == Renaming(uid, ONE, TWO)
    assert met.task(3).depends_on == (TWO,)


def test_a_new_task_that_others_have_taken_further_is_not_taken_back() -> None:
    theirs, ours = _apart()
    theirs.says(_create())
    theirs.goes_to("PLAN")
    ours.says(_create())
    ours.says(Submit(ONE, enter="WORK"))
    met = meets(theirs, ours)
    assert _kept(met) == [
        ("the task is 000001 already", True),
        ("the task is at PLAN now, not at NEW", True),
    ]


def test_a_number_that_was_told_of_a_task_the_others_have_too_is_told_no_more() -> None:
    theirs, ours = _apart()
    theirs.says(_create(7))
    ours.says(_create(1))
    met = meets(theirs, ours)
    same = theirs.twin("c")
    same.says(_create(1))
    again = meets(same, met.clone)
    assert _kept(again) == [("the task is 000002 already", True)] * 2


def test_a_parent_that_was_closed_meanwhile_is_followed() -> None:
    theirs, ours = _apart(task_at("NEW"))
    theirs.says(Abort(ONE))
    ours.says(_create(2, parent=ONE))
    ours.says(_create(3, parent=ONE, follows=TWO))
    met = meets(theirs, ours)
    assert (met.task(2).parent, met.task(2).follows) == (None, ONE)
    assert (met.task(3).parent, met.task(3).follows) == (None, TWO)
    assert met.rows(2) == ["its parent 000001 was closed meanwhile"]


def test_a_task_that_landed_meanwhile_is_followed_and_not_superseded() -> None:
    theirs, ours = _apart(task_at("MANAGER_REVIEW"))
    theirs.lands()
    ours.says(_create(2, supersedes=ONE))
    met = meets(theirs, ours)
    assert (met.task(2).supersedes, met.task(2).follows) == (None, ONE)
    assert met.rows(2) == ["it was to supersede 000001, but that has landed meanwhile"]
    assert _kept(met) == [("the task has landed already", False)]


def test_a_task_that_was_aborted_meanwhile_is_superseded() -> None:
    theirs, ours = _apart(task_at("MANAGER_REVIEW"))
    theirs.says(Abort(ONE))
    ours.says(_create(2, supersedes=ONE))
    met = meets(theirs, ours)
    assert (met.task(2).supersedes, met.rows(2)) == (ONE, [])
    assert _kept(met) == [("the task was aborted already", True)]


def test_a_task_that_would_wait_for_itself_does_not_supersede() -> None:
    theirs, ours = _apart(task_at("NEW"), task_at("NEW", 2))
    theirs.says(Edit(TWO, add_dependencies=(ONE,)))
    ours.says(_create(3, supersedes=ONE, depends_on=(TWO,)))
    met = meets(theirs, ours)
    ring = "this would make a ring of dependencies: 000003 needs 000002, 000002 needs 000003"
    assert (met.task(3).depends_on, met.task(3).supersedes) == ((TWO,), None)
    assert met.rows(3) == [f"it was to supersede 000001, but {ring}"]
    assert (met.task(1).state, _kept(met)) == ("NEW", [(f"it is not superseded: {ring}", False)])


def test_a_task_that_was_dispatched_meanwhile_is_superseded_all_the_same() -> None:
    theirs, ours = _apart(task_at("NEW"))
    theirs.says(_create(7))
    theirs.says(Submit(ONE))
    theirs.claims()
    ours.says(_create(2, supersedes=ONE))
    met = meets(theirs, ours)
    assert (met.task(3).supersedes, met.task(1).outcome, met.task(1).claim) == (
        ONE,
        "aborted",
        None,
    )
    aborted = met.events[-1]
    assert (aborted.change, aborted.text) == (Aborted(aborted.text), "superseded by 000003")


def test_a_link_to_a_document_that_cannot_be_read_is_left_out() -> None:
    theirs, ours = _apart(task_at("NEW"), task_at("NEW", 2), task_at("NEW", 3))
    tasks = {ONE: theirs.graph.tasks[ONE]}
    theirs.graph = type(theirs.graph)(tasks, {ONE: BODY})
    theirs.unreadable = {TWO, THREE}
    ours.says(_create(4, depends_on=(ONE, TWO), parent=THREE))
    ours.says(Note(TWO, "Lost?"))
    met = meets(theirs, ours)
    assert (met.task(4).depends_on, met.task(4).parent) == ((ONE,), None)
    assert met.rows(4) == [
        "its depends_on named 000002, which cannot be read now; "
        "its parent named 000003, which cannot be read now"
    ]
    assert _kept(met) == [("the task 000002 cannot be read", False)]


def _adopts(clone: Clone, number: str, **fields: Any) -> None:
    values = {"title": "By hand", **fields}
    change = ExternallyChanged(tuple(values.items()), body=True, created=True)
    task = Task(number, hexadecimal("by hand"), "")
    _by_hand(clone, task, change, role="tool", source=None, target="NEW", body=b"By hand.\n")


def test_a_document_made_by_hand_gets_a_free_number_too() -> None:
    theirs, ours = _apart(task_at("NEW"))
    theirs.says(_create(7))
    _adopts(ours, TWO, depends_on=(ONE,))
    ours.says(_create(4, depends_on=(TWO,)))
    met = meets(theirs, ours)
    assert met.told == [("external", FOUR), ("note", FOUR), ("create", THREE)]
    assert met.events[1].text == "It was 000002 in the clone where it was written down."
    assert (met.task(4).title, met.task(4).depends_on) == ("By hand", (ONE,))
    assert met.task(3).depends_on == (FOUR,)


def test_a_document_made_by_hand_loses_a_closed_parent_too() -> None:
    theirs, ours = _apart(task_at("NEW"))
    theirs.says(Abort(ONE))
    _adopts(ours, TWO, parent=ONE)
    met = meets(theirs, ours)
    assert (met.task(2).parent, met.task(2).follows) == (None, ONE)


def test_a_proposal_stays_a_proposal() -> None:
    theirs, ours = _apart()
    theirs.says(_create(7))
    ours.says(_create(1), "worker", "pi")
    assert meets(theirs, ours).task(2).proposed_by == "pi"


# ---------------------------------------------------------------------------------------- claims


def _lost(claim: str, reason: str) -> Lost:
    return Lost(ONE, task_at("NEW").uid, claim, "bob", "task/000001", reason)


def _claimed_by_eve(theirs: Clone) -> None:
    theirs.claims(actor="eve")


def _moved_on(theirs: Clone) -> None:
    theirs.finishes()


def _closed(theirs: Clone) -> None:
    theirs.holds()
    theirs.says(Abort(ONE))


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        (_claimed_by_eve, "the task 000001 is held by eve"),
        (_moved_on, "the task is at CHECK now, not at WORK"),
        (_closed, "the task is closed"),
    ],
)
def test_a_claim_is_lost_where_others_were_first(does: Any, reason: str) -> None:
    theirs, ours = _apart(task_at("WORK"))
    does(theirs)
    claim = ours.claims()
    met = meets(theirs, ours)
    assert met.replayed.lost == (_lost(claim, reason),)
    assert (met.told, _kept(met), met.rows()) == ([("rejected", ONE)], [(reason, True)], [])


def _submits(clone: Clone, claim: str) -> None:
    clone.says(finish(clone.task()), "worker", "bob", claim)


def _sends_back(clone: Clone, claim: str) -> None:
    clone.says(Feedback(ONE, ("Again.",), clean(TIP)), "reviewer", "bob", claim)


def _asks(clone: Clone, claim: str) -> None:
    clone.says(Hold(ONE, "Which?"), "worker", "bob", claim)


def _gives_back(clone: Clone, claim: str) -> None:
    clone.says(Release(ONE), "worker", "bob", claim)


def _passes(clone: Clone, claim: str) -> None:
    clone.says(RecordCheck(ONE, TIP), "checker", "bob", claim)


@pytest.mark.parametrize(
    ("state", "says", "is_row"),
    [
        ("WORK", _submits, True),
        ("WORK_REVIEW", _sends_back, True),
        ("WORK", _asks, True),
        ("WORK", _gives_back, False),
        ("CHECK", _passes, True),
    ],
)
def test_what_is_said_under_a_lost_claim_is_not_applied(
    state: State, says: Any, is_row: bool
) -> None:
    theirs, ours = _apart(task_at(state))
    theirs.claims(actor="eve")
    says(ours, ours.claims())
    met = meets(theirs, ours)
    held = "the task 000001 is held by eve"
    assert _kept(met) == [(held, True), (f"its claim was lost: {held}", not is_row)]
    assert (met.task().claimed_by, len(met.rows())) == ("eve", is_row)


def test_a_section_that_was_written_under_a_lost_claim_is_kept_in_the_message() -> None:
    theirs, ours = _apart(task_at("WORK"))
    theirs.claims(actor="eve")
    _submits(ours, ours.claims())
    text = meets(theirs, ours).events[-1].text
    assert text.startswith("000001 submit WORK -> CHECK (worker bob)\n\nEvent: submit\n")
    assert text.endswith("\n\n## Implementation Notes\n\nAs said.\n")


@pytest.mark.parametrize(
    ("request_", "state"), [(Hold(ONE, "Stop."), "HELD_WORK"), (Abort(ONE), "CLOSED")]
)
def test_the_manager_ends_a_claim_of_others_that_was_one_of_this_clone(
    request_: Hold | Abort, state: State
) -> None:
    theirs, ours = _apart(task_at("WORK"))
    theirs.claims(actor="eve")
    ours.claims()
    recursive = request_._replace(recursive=True) if isinstance(request_, Abort) else request_
    ours.says(recursive)
    met = meets(theirs, ours)
    assert (met.task().state, met.task().claim) == (state, None)


def test_a_note_under_a_lost_claim_is_still_a_note() -> None:
    theirs, ours = _apart(task_at("WORK"))
    theirs.claims(actor="eve")
    ours.claims()
    ours.says(Note(ONE, "Look."), None, "bob")
    assert meets(theirs, ours).told == [("rejected", ONE), ("note", ONE)]


def test_a_claim_counts_where_others_have_given_theirs_back() -> None:
    theirs, ours = _apart(task_at("WORK"))
    theirs.says(Release(ONE), "worker", "eve", theirs.claims(actor="eve"))
    claim = ours.claims()
    met = meets(theirs, ours)
    assert (met.task().claim, met.replayed.lost) == (claim, ())


def _claims_for(clone: Clone, lease: int, actor: str = "eve") -> None:
    claim = Claim(ONE, hexadecimal(actor), clone.now + lease, "task/000001", BASE, BASE)
    clone.says(claim, "worker", actor)


def test_an_expired_claim_of_others_is_released_and_taken() -> None:
    theirs, ours = _apart(task_at("WORK"))
    _claims_for(theirs, 1)
    ours.now += 60
    claim = ours.claims()
    ours.says(Release(ONE), "worker", "bob", claim)
    met = meets(theirs, ours)
    assert [(event.kind, event.claim) for event in met.events] == [
        ("release", hexadecimal("eve")),
        ("claim", claim),
        ("release", claim),
    ]
    assert met.events[0].change == Released("expired")


def test_an_expired_claim_that_was_renewed_is_not_taken() -> None:
    theirs, ours = _apart(task_at("WORK"))
    _claims_for(theirs, 1)
    theirs.renewed = {hexadecimal("eve"): timestamp(NOW + LEASE)}
    ours.now += 60
    ours.claims()
    assert _kept(meets(theirs, ours)) == [("the task 000001 is held by eve", True)]


def _taken_over() -> tuple[Clone, Clone]:
    """Returns the others, and a clone that has released an expired claim and taken the task."""
    theirs, ours = _apart(task_at("WORK", held_by="eve", expires=1))
    ours.now += 60
    ours.claims()
    return theirs, ours


def test_a_release_of_an_expired_claim_and_the_new_one_stay_as_they_are() -> None:
    theirs, ours = _taken_over()
    assert meets(theirs, ours).events == ours.past


def test_a_release_of_a_claim_that_was_renewed_is_not_applied() -> None:
    theirs, ours = _taken_over()
    theirs.renewed = {theirs.task().claim: timestamp(NOW + LEASE)}
    assert _kept(meets(theirs, ours)) == [
        ("the claim was renewed meanwhile", True),
        ("the task 000001 is held by eve", True),
    ]


def test_a_release_of_a_claim_that_has_ended_is_not_applied() -> None:
    theirs, ours = _taken_over()
    theirs.says(Release(ONE, why="forced"))
    met = meets(theirs, ours)
    assert (_kept(met), met.told) == (
        [("the claim has ended already", True)],
        [("rejected", ONE), ("claim", ONE)],
    )


def test_what_was_said_after_others_took_the_claim_away_is_not_applied() -> None:
    ours = Clone(task_at("WORK"))
    claim = ours.claims()
    ours.local.clear()
    theirs = ours.twin()
    theirs.says(Release(ONE, why="forced"))
    _submits(ours, claim)
    met = meets(theirs, ours)
    reason = "its claim is stale: the task is at WORK, not held by anybody"
    assert (_kept(met), met.rows()) == (
        [(reason, False)],
        [f"submit by bob was not applied: {reason}"],
    )


def test_what_was_said_after_another_one_took_the_claim_names_the_holder() -> None:
    ours = Clone(task_at("WORK"))
    claim = ours.claims()
    ours.local.clear()
    theirs = ours.twin()
    theirs.says(Release(ONE, why="forced"))
    theirs.claims(actor="eve")
    _submits(ours, claim)
    assert _kept(meets(theirs, ours)) == [
        ("its claim is stale: the task is at WORK, held by eve", False)
    ]


def test_a_claim_that_is_there_already_is_not_lost() -> None:
    theirs, ours = _apart(task_at("WORK"))
    ours.claims()
    theirs.has(*(event._replace(event_id=hexadecimal("twice")) for event in ours.past))
    met = replay(theirs.common(), ours.local)
    said = met.steps[0].event.change
    assert (met.lost, said) == ((), Rejected("claim", "it is so already", quiet=True))


def test_a_claim_of_a_task_that_is_not_there_is_lost() -> None:
    ours = Clone(task_at("WORK"))
    claim = ours.claims()
    met = meets(Clone(name="a"), ours)
    assert met.replayed.lost == (_lost(claim, "the task 000001 does not exist"),)


# -------------------------------------------------------------------------------------- branches


def _worked_on_a_new_task(theirs: Clone, ours: Clone) -> Meeting:
    ours.says(_create(1))
    ours.says(Submit(ONE, enter="PLAN"))
    ours.finishes()
    ours.claims()
    return meets(theirs, ours)


def test_a_task_with_a_new_number_keeps_its_branch() -> None:
    theirs, ours = _apart()
    theirs.says(_create(7))
    met = _worked_on_a_new_task(theirs, ours)
    assert (met.task(2).branch, met.task(2).state) == ("task/000001", "PLAN_REVIEW")
    assert met.replayed.renamed == (Renaming(hexadecimal("mine 1"), ONE, TWO),)


def test_a_task_whose_branch_is_taken_too_gets_one_of_its_own() -> None:
    theirs, ours = _apart()
    theirs.says(_create(7))
    theirs.says(Submit(ONE, enter="WORK"))
    theirs.claims()
    met = _worked_on_a_new_task(theirs, ours)
    uid = hexadecimal("mine 1")
    name = f"task/000002-{uid[:4]}"
    assert (met.task(2).branch, met.task(1).branch) == (name, "task/000001")
    assert met.replayed.renamed == (
        Renaming(uid, ONE, TWO),
        Renaming(uid, TWO, TWO, ("task/000001", name)),
    )


def test_a_task_that_others_have_given_a_branch_has_that_one() -> None:
    theirs, ours = _apart(task_at("WORK")._replace(branch=None))
    claim = Claim(ONE, hexadecimal("eve"), theirs.now + LEASE, "task/other", BASE, BASE)
    theirs.says(claim, "worker", "eve")
    theirs.says(Release(ONE), "worker", "eve", hexadecimal("eve"))
    ours.claims()
    met = meets(theirs, ours)
    uid = task_at("WORK").uid
    assert met.replayed.renamed == (Renaming(uid, ONE, ONE, ("task/000001", "task/other")),)


# ---------------------------------------------------------------------- verdicts, submits, checks


def _edited(**fields: Any) -> Any:
    body = fields.pop("body", None)
    return lambda clone: clone.says(Edit(ONE, tuple(fields.items()), body=body, force=True))


def _noted(clone: Clone) -> None:
    clone.says(Note(ONE, "Look.", (("pr", "7"),)), None)


def _rowed(clone: Clone) -> None:
    _by_hand(clone, clone.task(), Rejected("edit", "no"), role="tool")


NEW_TITLE = _edited(title="Other")
NEW_BODY = _edited(body=b"Do that.\n")
NEW_CHECKS = _edited(checks=("make",))
MEANWHILE = {
    "note": _noted, "row": _rowed, "title": NEW_TITLE, "text": NEW_BODY, "checks": NEW_CHECKS,
}  # fmt: skip
CHANGED = "assignment-changed: the text or the checks were changed by others meanwhile"
LOOK_AGAIN = "the document was changed by others, so it must be looked at again"


@pytest.mark.parametrize(
    ("state", "meanwhile", "reason"),
    [
        ("WORK", "note", None),
        ("WORK", "row", None),
        ("WORK", "title", None),
        ("WORK", "text", CHANGED),
        ("WORK", "checks", CHANGED),
        ("DESIGN", "title", None),
        ("DESIGN", "text", CHANGED),
        ("PLAN", "checks", CHANGED),
        ("PLAN_REVIEW", "note", None),
        ("PLAN_REVIEW", "title", LOOK_AGAIN),
        ("WORK_REVIEW", "row", None),
        ("WORK_REVIEW", "text", LOOK_AGAIN),
        ("WORK_REVIEW", "checks", LOOK_AGAIN),
    ],
)
def test_a_submit_counts_where_nothing_that_it_is_about_was_changed(
    state: State, meanwhile: str, reason: str | None
) -> None:
    ours = Clone(task_at(state))
    claim = ours.claims()
    ours.local.clear()
    theirs = ours.twin()
    MEANWHILE[meanwhile](theirs)
    task = ours.task()
    ours.says(finish(task), STAGE[task.state].role, "bob", claim)
    met = meets(theirs, ours)
    assert [why for why, _ in _kept(met)] == ([] if reason is None else [reason])
    assert met.task().state == (state if reason else ours.task().state)


@pytest.mark.parametrize(
    ("meanwhile", "reason"), [("note", None), ("row", None), ("title", LOOK_AGAIN)]
)
def test_a_landing_counts_where_the_document_is_the_one_that_was_landed(
    meanwhile: str, reason: str | None
) -> None:
    theirs, ours = _apart(task_at("MANAGER_REVIEW"))
    MEANWHILE[meanwhile](theirs)
    ours.lands()
    met = meets(theirs, ours)
    assert [why for why, _ in _kept(met)] == ([] if reason is None else [reason])
    assert met.task().outcome == (None if reason else "landed")


def test_a_landing_with_a_child_that_others_have_made_is_not_applied() -> None:
    theirs, ours = _apart(task_at("MANAGER_REVIEW"))
    theirs.says(_create(7, parent=ONE))
    ours.lands()
    assert _kept(meets(theirs, ours)) == [("a child is open", False)]


def test_a_review_of_a_task_whose_links_have_other_numbers_counts() -> None:
    theirs, ours = _apart(task_at("HELD_WORK"))
    theirs.says(_create(7))
    ours.says(_create(2))
    ours.says(Edit(ONE, add_dependencies=(TWO,)))
    ours.says(Submit(TWO, enter="WORK"))
    ours.goes_to("CLOSED", 2)
    ours.says(Resume(ONE))
    ours.goes_to("CLOSED")
    met = meets(theirs, ours)
    assert (met.task(1).outcome, met.task(3).outcome, _kept(met)) == ("landed", "landed", [])


def test_a_review_counts_whatever_claims_before_it_have_cost() -> None:
    cost = Cost("WORK_REVIEW", "pi", 60, 0.5, 7)
    theirs, ours = _apart(task_at("WORK_REVIEW"), task_at("WORK_REVIEW", 2))
    claim = Claim(ONE, hexadecimal("eve"), theirs.now + 90, "task/000001", BASE, TIP)
    theirs.says(claim, "reviewer", "eve")
    theirs.says(Reorder(ONE, "last"))
    ours.says(Release(ONE, cost=cost), "reviewer", "bob", ours.claims())
    _sends_back(ours, ours.claims())
    met = meets(theirs, ours)
    assert (met.task().costs, met.task().state, len(_kept(met))) == ((), "WORK", 2)


def test_a_verdict_on_a_task_that_moved_on_is_not_applied() -> None:
    theirs, ours = _apart(task_at("MANAGER_REVIEW"))
    theirs.says(Feedback(ONE, ("Again.",)))
    ours.lands()
    assert _kept(meets(theirs, ours)) == [("the task is at WORK now, not at MANAGER_REVIEW", False)]


def test_a_second_rejection_holds_the_task_as_it_did_alone() -> None:
    ours = Clone(task_at("WORK_REVIEW")._replace(rejections=1))
    theirs = ours.twin()
    _noted(theirs)
    claim = ours.claims()
    _sends_back(ours, claim)
    met = meets(theirs, ours)
    change = met.events[-1].change
    assert isinstance(change, FeedbackGiven)
    assert (change.rejections, met.task().state) == (2, "HELD_WORK")


def test_what_follows_from_a_landing_keeps_what_it_was_called() -> None:
    waiting = [task_at("BLOCKED", number)._replace(depends_on=(ONE,)) for number in (2, 3)]
    theirs, ours = _apart(task_at("MANAGER_REVIEW"), *waiting)
    theirs.says(Note(TWO, "Look."))
    ours.lands()
    assert meets(theirs, ours).events == ours.past


def test_what_follows_from_a_landing_only_now_gets_a_name_that_follows_too() -> None:
    theirs, ours = _apart(task_at("MANAGER_REVIEW"), task_at("NEW", 2))
    theirs.says(Edit(TWO, add_dependencies=(ONE,)))
    theirs.says(Submit(TWO))
    ours.lands()
    met = meets(theirs, ours)
    assert met.told == [("submit", ONE), ("unblock", TWO)]
    uid = task_at("NEW", 2).uid
    assert met.events[1].event_id == derived(ours.past[0].event_id, f"unblock {uid}")


def test_what_followed_from_a_landing_that_others_forestalled_is_not_applied() -> None:
    theirs, ours = _apart(
        task_at("MANAGER_REVIEW"), task_at("BLOCKED", 2)._replace(depends_on=(ONE,))
    )
    NEW_TITLE(theirs)
    ours.lands()
    assert _kept(meets(theirs, ours)) == [
        (LOOK_AGAIN, False),
        ("the task is at BLOCKED now", True),
    ]


def test_an_unblock_that_stands_alone_is_decided_again() -> None:
    theirs, ours = _apart(
        task_at("CLOSED")._replace(outcome="landed"),
        task_at("NEW", 2),
        task_at("BLOCKED", 3)._replace(depends_on=(ONE,), enters="PLAN"),
    )
    _by_hand(ours, ours.task(3), Unblocked(ONE), role="tool", target="PLAN")
    met = meets(theirs, ours)
    assert (met.events, met.task(3).state) == (ours.past, "PLAN")


def test_a_design_that_was_reviewed_here_is_reviewed() -> None:
    theirs, ours = _apart(task_at("DESIGN"))
    theirs.says(Note(ONE, "Look."))
    ours.finishes()
    ours.finishes()
    met = meets(theirs, ours)
    assert (met.task().state, met.clone.body()) == ("PLAN", ours.body())


def test_the_same_check_in_two_clones_counts_once() -> None:
    theirs, ours = _apart(task_at("CHECK"))
    theirs.is_checked()
    ours.is_checked()
    met = meets(theirs, ours)
    assert (_kept(met), met.rows()) == (
        [("the task is at WORK_REVIEW now, not at CHECK", True)], [],
    )  # fmt: skip


@pytest.mark.parametrize(("findings", "is_quiet"), [(("make: 1",), True), ((), False)])
def test_a_check_that_failed_for_others_counts_once(
    findings: tuple[str, ...], is_quiet: bool
) -> None:
    theirs, ours = _apart(task_at("CHECK"))
    theirs.is_checked(1, "make: 1")
    ours.is_checked(1, *findings)
    assert _kept(meets(theirs, ours)) == [("the task is at WORK now, not at CHECK", is_quiet)]


def test_a_check_of_a_task_that_others_check_is_not_applied() -> None:
    theirs, ours = _apart(task_at("CHECK"))
    theirs.claims(actor="eve")
    ours.is_checked()
    assert _kept(meets(theirs, ours)) == [("the check of 000001 is held by eve", False)]


def test_a_check_of_other_commands_is_not_applied() -> None:
    theirs, ours = _apart(task_at("CHECK"))
    NEW_CHECKS(theirs)
    ours.is_checked()
    assert _kept(meets(theirs, ours)) == [("the checks were changed by others meanwhile", False)]


def test_a_check_of_a_task_with_another_text_counts() -> None:
    theirs, ours = _apart(task_at("CHECK"))
    NEW_BODY(theirs)
    ours.is_checked()
    assert meets(theirs, ours).task().state == "WORK_REVIEW"


def test_a_check_that_fails_too_often_by_now_holds_the_task() -> None:
    theirs, ours = _apart(task_at("CHECK"))
    theirs.settings = theirs.settings._replace(check_failure_limit=1)
    ours.is_checked(1, "make: 1")
    met = meets(theirs, ours)
    assert (ours.task().state, met.task().state) == ("WORK", "HELD_WORK")
    assert met.events[0].text == "- make: 1"


# ----------------------------------------------------------------------------------------- edits


def _in_a_note(actor: str, reason: str) -> str:
    return f"{actor} edited 000001, but {reason}; what was written is in a note"


SAME_PLACE = "others have changed the same place of its text"


@pytest.mark.parametrize(
    ("ours_", "theirs_", "after"),
    [
        ({"title": "Mine"}, {"priority": 0}, {"title": "Mine", "priority": 0}),
        ({"labels": ("a",)}, {"labels": ("a",)}, {"labels": ("a",)}),
        ({"assignee": "pi", "x-n": " 1"}, {"x-m": " 2"},
         {"assignee": "pi", "extra": (("x-m", " 2"), ("x-n", " 1"))}),
    ],
    ids=["different fields", "the same", "own keys"],
)  # fmt: skip
def test_fields_that_others_have_not_changed_are_set(
    ours_: dict[str, Any], theirs_: dict[str, Any], after: dict[str, Any]
) -> None:
    theirs, ours = _apart(task_at("NEW"))
    _edited(**theirs_)(theirs)
    _edited(**ours_)(ours)
    met = meets(theirs, ours)
    assert met.task() == task_at("NEW")._replace(**after)


def test_a_field_that_others_have_changed_stays_theirs() -> None:
    theirs, ours = _apart(task_at("NEW"))
    _edited(labels=("a",))(theirs)
    _edited(labels=("b",))(ours)
    met = meets(theirs, ours)
    assert (met.task().labels, _kept(met)) == (
        ("a",), [("others have changed its labels too", False)],
    )  # fmt: skip
    assert 'Data: {"set":{"labels":["b"]}}' in met.events[0].text


def test_of_several_fields_those_that_others_have_not_changed_are_set() -> None:
    theirs, ours = _apart(task_at("NEW"))
    _edited(labels=("a",), priority=0)(theirs)
    _edited(labels=("b",), priority=1, title="Mine")(ours)
    met = meets(theirs, ours)
    reason = "others have changed its labels too and others have changed its priority too"
    assert [event.change for event in met.events] == [
        Edited((("title", "Mine"),)),
        Rejected("edit", reason),
    ]
    assert met.rows() == [f"edit by ada was not applied: {reason}"]
    assert met.replayed.rejected == ((ours.past[0], reason),)


def test_a_rest_of_any_length_is_kept_whole() -> None:
    theirs, ours = _apart(task_at("NEW"))
    _edited(labels=("a",))(theirs)
    _edited(labels=("b" * 600_000,), title="Mine")(ours)
    met = meets(theirs, ours)
    assert "".join(event.text for event in met.events[1:]) == ours.local[0].message
    assert len(met.events) == 3


def test_a_rest_that_is_left_again_has_another_name() -> None:
    theirs, ours = _apart(task_at("NEW"))
    _edited(labels=("a",))(theirs)
    _edited(labels=("b",), priority=1, title="Mine")(ours)
    met = meets(theirs, ours)
    faster = theirs.twin("c")
    _edited(priority=0)(faster)
    again = meets(faster, met.clone)
    assert [event.change for event in again.events] == [
        Edited((("title", "Mine"),)),
        Rejected("edit", "others have changed its priority too"),
        Rejected("edit", "others have changed its labels too"),
    ]


def test_a_field_that_both_have_taken_back_is_so_already() -> None:
    theirs, ours = _apart(task_at("NEW")._replace(assignee="pi"))
    for clone in (theirs, ours):
        clone.says(Edit(ONE, unset=("assignee",)))
    assert _kept(meets(theirs, ours)) == [("it is so already", True)]


def test_a_field_is_taken_back_as_it_was_here() -> None:
    theirs, ours = _apart(task_at("NEW")._replace(assignee="pi", extra=(("x-n", " 1"),)))
    _noted(theirs)
    ours.says(Edit(ONE, unset=("assignee", "x-n")))
    assert meets(theirs, ours).events == ours.past


def test_dependencies_that_both_have_added_are_both_there() -> None:
    theirs, ours = _apart(*(task_at("NEW", number) for number in (1, 2, 3, 4)))
    theirs.says(Edit(ONE, add_dependencies=(TWO,)))
    ours.says(Edit(ONE, add_dependencies=(THREE, FOUR)))
    ours.says(Edit(ONE, remove_dependencies=(THREE,)))
    met = meets(theirs, ours)
    assert (met.task().depends_on, _kept(met)) == ((TWO, FOUR), [])


def test_a_dependency_that_was_taken_away_stays_away() -> None:
    theirs, ours = _apart(
        task_at("NEW")._replace(depends_on=(TWO, THREE)), task_at("NEW", 2), task_at("NEW", 3)
    )
    theirs.says(Edit(ONE, remove_dependencies=(TWO,)))
    ours.says(Edit(ONE, unset=("depends_on",)))
    assert meets(theirs, ours).task().depends_on == ()


def test_all_dependencies_are_taken_away_but_those_that_others_have_added() -> None:
    theirs, ours = _apart(
        task_at("NEW")._replace(depends_on=(TWO,)), task_at("NEW", 2), task_at("NEW", 3)
    )
    theirs.says(Edit(ONE, add_dependencies=(THREE,)))
    ours.says(Edit(ONE, unset=("depends_on",)))
    met = meets(theirs, ours)
    assert (met.task().depends_on, met.events[0].change) == (
        (THREE,), Edited((("depends_on", (THREE,)),)),
    )  # fmt: skip


def test_a_ring_across_two_clones_is_spelled_out_and_the_rest_is_added() -> None:
    theirs, ours = _apart(*(task_at("NEW", number) for number in (1, 2, 3)))
    theirs.says(Edit(TWO, add_dependencies=(ONE,)))
    ours.says(Edit(ONE, add_dependencies=(TWO, THREE)))
    met = meets(theirs, ours)
    assert (met.task().depends_on, _kept(met)) == (
        (THREE,),
        [
            (
                "this would make a ring of dependencies: 000001 needs 000002, 000002 needs 000001",
                False,
            )
        ],
    )


@pytest.mark.parametrize("is_added", [True, False])
def test_dependencies_of_a_task_that_is_worked_on_by_now_do_not_change(is_added: bool) -> None:
    theirs, ours = _apart(
        task_at("HELD_WORK")._replace(depends_on=(TWO,)), task_at("CLOSED", 2), task_at("NEW", 3)
    )
    theirs.says(Resume(ONE))
    change = Edit(ONE, add_dependencies=(THREE,), set=(("title", "Mine"),))
    ours.says(
        change if is_added else change._replace(add_dependencies=(), remove_dependencies=(TWO,))
    )
    met = meets(theirs, ours)
    assert (met.task().title, _kept(met)) == (
        "Mine", [("its dependencies do not change at WORK", False)],
    )  # fmt: skip


def test_a_dependency_that_both_have_taken_away_is_no_news_at_work() -> None:
    theirs, ours = _apart(task_at("HELD_WORK")._replace(depends_on=(TWO,)), task_at("CLOSED", 2))
    for clone in (theirs, ours):
        clone.says(Edit(ONE, remove_dependencies=(TWO,)))
    theirs.says(Resume(ONE))
    assert _kept(meets(theirs, ours)) == [("it is so already", True)]


def test_a_dependency_that_was_taken_away_lets_the_task_go_on() -> None:
    blocked = task_at("BLOCKED")._replace(depends_on=(TWO,))
    theirs, ours = _apart(blocked, task_at("NEW", 2))
    NEW_TITLE(theirs)
    ours.says(Edit(ONE, remove_dependencies=(TWO,)))
    met = meets(theirs, ours)
    assert [event.event_id for event in met.events] == [event.event_id for event in ours.past]
    assert met.task().state == "WORK"


def test_a_dependency_that_was_taken_away_keeps_waiting_for_one_that_others_added() -> None:
    theirs, ours = _apart(
        task_at("BLOCKED")._replace(depends_on=(TWO,)), task_at("NEW", 2), task_at("NEW", 3)
    )
    theirs.says(Edit(ONE, add_dependencies=(THREE,)))
    ours.says(Edit(ONE, remove_dependencies=(TWO,)))
    met = meets(theirs, ours)
    assert (met.task().state, met.task().depends_on) == ("BLOCKED", (THREE,))
    assert _kept(met) == [("the task is at BLOCKED now", True)]


LONG = b"one\ntwo\nthree\nfour\n"


def _with_text(text: bytes, state: State = "NEW", **fields: Any) -> tuple[Clone, Clone]:
    """Returns two clones of one task with this text."""
    ours = Clone(task_at(state, **fields))
    ours.graph = ours.graph.with_task(ours.task(), text)
    return ours.twin(), ours


def test_texts_that_were_changed_at_different_places_are_merged() -> None:
    theirs, ours = _with_text(LONG)
    _edited(body=LONG + b"five\n")(theirs)
    _edited(body=b"zero\n" + LONG)(ours)
    met = meets(theirs, ours)
    assert (met.clone.body(), met.rows()) == (b"zero\n" + LONG + b"five\n", [])


def test_the_same_text_in_both_is_so_already() -> None:
    theirs, ours = _with_text(LONG)
    for clone in (theirs, ours):
        _edited(body=LONG + b"five\n")(clone)
    assert _kept(meets(theirs, ours)) == [("it is so already", True)]


def test_a_text_that_others_have_changed_too_becomes_a_note() -> None:
    theirs, ours = _with_text(LONG)
    _edited(body=LONG.replace(b"two", b"zwei"))(theirs)
    _edited(body=LONG.replace(b"two", b"deux"))(ours)
    met = meets(theirs, ours)
    words = _in_a_note("ada", SAME_PLACE)
    assert met.clone.body() == LONG.replace(b"two", b"zwei")
    assert [(e.event_id, e.change, e.text) for e in met.events] == [
        (ours.past[0].event_id, Noted(attention=words), "one\ndeux\nthree\nfour\n")
    ]
    assert met.replayed.notes == (f"A{words[1:]}.",)
    assert met.replayed.rejected == ()


def test_of_an_edit_with_a_text_in_conflict_the_fields_are_set() -> None:
    theirs, ours = _with_text(LONG)
    _edited(body=LONG.replace(b"two", b"zwei"), labels=("a",))(theirs)
    _edited(body=LONG.replace(b"two", b"deux"), title="Mine", labels=("b",))(ours)
    met = meets(theirs, ours)
    words = _in_a_note("ada", f"others have changed its labels too and {SAME_PLACE}")
    assert [event.change for event in met.events] == [
        Edited((("title", "Mine"),)),
        Noted(attention=words),
    ]
    assert met.events[1].text.startswith("000001 edit NEW (manager ada)\n")
    assert met.events[1].text.endswith("\none\ndeux\nthree\nfour\n")


def test_a_text_that_is_no_text_is_kept_with_every_byte() -> None:
    theirs, ours = _with_text(b"a\n")
    _edited(body=b"b\n")(theirs)
    _edited(body=b"\xff\x00\n")(ours)
    assert meets(theirs, ours).events[0].text == "\\xff\x00\n"


def _huge(letter: str) -> bytes:
    """Returns more than one message takes: plain lines, one long line, and odd characters."""
    lines = f"{letter} plain\n" * 60_000 + letter * 1_200_000 + "\n" + "\x1b\\" * 60_000
    return lines.encode()


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_text_of_any_length_is_kept_whole(is_closed: bool) -> None:
    theirs, ours = _with_text(b"a\n")
    _edited(body=b"b\n")(theirs)
    if is_closed:
        theirs.says(Abort(ONE))
    _edited(body=_huge("x"))(ours)
    met = meets(theirs, ours)
    assert "".join(event.text for event in met.events).encode() == _huge("x")
    assert len(met.events) == 7
    assert all(len(event.text) <= TEXT_LIMIT for event in met.events)
    rows = [f"part {number} of that note" for number in range(2, 8)] if is_closed else []
    assert met.rows()[1:] == rows


def test_a_section_of_any_length_is_kept_whole() -> None:
    theirs, ours = _apart(task_at("WORK"))
    theirs.claims(actor="eve")
    claim = ours.claims()
    ours.says(finish(ours.task(), section=b"## Implementation Notes\n\n" + _huge("x")), "worker",
              "bob", claim)  # fmt: skip
    met = meets(theirs, ours)
    said = [event for event in met.events if event.source is not None][1:]
    assert "".join(event.text for event in said).encode().endswith(_huge("x"))
    changes = [e.change for e in said if isinstance(e.change, Rejected)]
    assert [(c.part, c.parts) for c in changes] == [(number, 7) for number in range(1, 8)]
    assert len(met.rows()) == 1


def test_two_texts_that_are_too_long_together_are_not_merged() -> None:
    theirs, ours = _with_text(LONG)
    half = b"x" * (DOCUMENT_LIMIT // 2) + b"\n"
    _edited(body=half + LONG)(theirs)
    _edited(body=LONG + half)(ours)
    met = meets(theirs, ours)
    assert _kept(met)[0] == (f"its document would have more than {DOCUMENT_LIMIT} bytes", False)
    assert met.clone.body() == half + LONG


def test_what_a_full_document_has_no_room_for_is_said_of_no_task() -> None:
    task = task_at("NEW")
    room = DOCUMENT_LIMIT - len(render(task._replace(title="Theirs"), b""))
    theirs, ours = _with_text(b"x" * (room - 50))
    _edited(title="Theirs")(theirs)
    _edited(title="Mine")(ours)
    met = meets(theirs, ours)
    assert (met.told, met.rows()) == ([("rejected", None)], [])


def test_an_edit_of_a_task_that_was_closed_becomes_a_note() -> None:
    theirs, ours = _with_text(LONG)
    theirs.says(Abort(ONE))
    _edited(body=LONG + b"five\n", title="Mine")(ours)
    _edited(title="Mine too")(ours)
    met = meets(theirs, ours)
    words = _in_a_note("ada", "the task was closed meanwhile")
    assert [event.change for event in met.events] == [Noted(attention=words)] * 2
    assert met.events[0].text.endswith("\none\ntwo\nthree\nfour\nfive\n")
    assert met.events[1].text.startswith("000001 edit NEW (manager ada)\n")
    assert met.clone.body() == LONG


def test_an_edit_that_a_closed_task_has_already_is_none() -> None:
    theirs, ours = _apart(task_at("NEW"))
    for clone in (theirs, ours):
        NEW_TITLE(clone)
    theirs.says(Abort(ONE))
    assert _kept(meets(theirs, ours)) == [("it is so already", True)]


def test_an_abort_wins_over_an_edit_that_others_made() -> None:
    theirs, ours = _apart(task_at("NEW"))
    NEW_TITLE(theirs)
    ours.says(Abort(ONE))
    met = meets(theirs, ours)
    assert (met.task().outcome, met.task().title) == ("aborted", "Other")


def test_a_text_does_not_change_under_the_hands_of_who_claimed_it_meanwhile() -> None:
    theirs, ours = _with_text(LONG, "WORK")
    theirs.claims(actor="eve")
    ours.says(Edit(ONE, (("checks", ("make",)), ("title", "Mine")), body=LONG + b"five\n"))
    met = meets(theirs, ours)
    why = "eve has claimed it meanwhile"
    assert [event.change for event in met.events] == [
        Edited((("title", "Mine"),)),
        Noted(attention=_in_a_note("ada", f"its checks stay: {why} and {why}")),
    ]
    assert (met.task().checks, met.clone.body()) == ((), LONG)


def test_a_text_that_was_changed_by_force_here_changes_by_force() -> None:
    ours = Clone(task_at("WORK", held_by="eve"))
    theirs = ours.twin()
    _noted(theirs)
    NEW_BODY(ours)
    met = meets(theirs, ours)
    assert (met.events, met.clone.body()) == (ours.past, b"Do that.\n")


@pytest.mark.parametrize("name", ["checks", "title"])
def test_checks_do_not_change_while_a_draft_is_under_review(name: str) -> None:
    theirs, ours = _apart(task_at("DESIGN"))
    theirs.finishes()
    _edited(**{name: ("make",) if name == "checks" else "Mine"})(ours)
    met = meets(theirs, ours)
    why = "its checks stay: a draft of it is under review"
    assert _kept(met) == ([(why, False)] if name == "checks" else [])


def test_a_text_in_conflict_is_kept_while_a_draft_is_under_review() -> None:
    theirs, ours = _apart(task_at("DESIGN"))
    theirs.finishes()
    _edited(body=BODY + b"Mine.\n", checks=("make",))(ours)
    met = meets(theirs, ours)
    reason = f"its checks stay: a draft of it is under review and {SAME_PLACE}"
    assert met.rows() == [_in_a_note("ada", reason)]


def _changed_by_hand(clone: Clone, *pairs: tuple[str, Any], body: bytes | None = None) -> None:
    change = ExternallyChanged(pairs, body=body is not None)
    _by_hand(clone, clone.task(), change, role="tool", body=body)


def test_a_change_by_hand_is_merged_too() -> None:
    theirs, ours = _with_text(LONG)
    _edited(body=LONG + b"five\n", labels=("a",))(theirs)
    _changed_by_hand(ours, ("labels", ("b",)), ("title", "Mine"), body=b"zero\n" + LONG)
    met = meets(theirs, ours)
    assert met.clone.body() == b"zero\n" + LONG + b"five\n"
    assert [event.change for event in met.events] == [
        ExternallyChanged((("title", "Mine"),), body=True),
        Rejected("external", "others have changed its labels too"),
    ]


def test_a_change_by_hand_of_a_claimed_text_becomes_a_note() -> None:
    theirs, ours = _with_text(LONG, "WORK", held_by="eve")
    _noted(theirs)
    _changed_by_hand(ours, body=b"zero\n" + LONG)
    met = meets(theirs, ours)
    assert met.rows() == [_in_a_note("ada", "eve has claimed it meanwhile")]


def test_an_edit_of_an_unknown_text_is_kept_and_not_applied() -> None:
    theirs, ours = _apart(task_at("NEW"))
    NEW_BODY(ours)
    ours.local[0] = ours.local[0]._replace(task=None)
    replayed = replay(theirs.common(), ours.local)
    assert [why for _, why in replayed.rejected] == ["it is not known what it acted on"]
    assert replayed.steps[0].event.text.endswith("\nDo that.\n")


# ------------------------------------------------------------------------------------- inbox rows


ROW = Attention(hexadecimal("row"), "rejected", "an edit was not applied")


@pytest.mark.parametrize(
    "request_",
    [Note(ONE, seen=True), Note(ONE, "Seen.", seen=True), Edit(ONE, (("title", "Mine"),))],
    ids=["seen", "a note", "an edit"],
)
def test_a_row_that_the_manager_has_seen_goes(request_: Note | Edit) -> None:
    theirs, ours = _apart(task_at("NEW")._replace(attention=(ROW,)))
    ours.says(request_)
    assert meets(theirs, ours).rows() == []


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (Note(ONE, seen=True), [("note", ONE), ("note", ONE)]),
        (Edit(ONE, (("title", "Mine"),)), [("edit", ONE), ("note", ONE)]),
        (Submit(ONE), [("submit", ONE), ("note", ONE)]),
        (Abort(ONE), [("abort", ONE), ("note", ONE)]),
    ],
    ids=["seen", "edit", "submit", "abort"],
)
def test_a_row_that_nobody_here_has_seen_stays(request_: Any, told: list[Any]) -> None:
    theirs, ours = _apart(task_at("NEW")._replace(attention=(ROW,)))
    _rowed(theirs)
    ours.says(request_)
    met = meets(theirs, ours)
    assert (met.told, met.rows()) == (told, ["edit by ada was not applied: no"])


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (Note(ONE, seen=True), [("rejected", ONE)]),
        (Note(ONE, "Seen.", seen=True), [("note", ONE)]),
        (Edit(ONE), [("rejected", ONE)]),
        (Edit(ONE, (("title", "Mine"),)), [("edit", ONE)]),
    ],
    ids=["seen", "a note", "an edit of nothing", "an edit"],
)
def test_only_the_rows_that_were_there_are_seen(request_: Any, told: list[Any]) -> None:
    theirs, ours = _apart(task_at("NEW")._replace(attention=(ROW,)))
    theirs.says(Note(ONE, seen=True))
    _rowed(theirs)
    ours.says(request_)
    met = meets(theirs, ours)
    assert (met.told, met.rows()) == (told, ["edit by ada was not applied: no"])


def test_a_row_of_no_event_is_not_put_back() -> None:
    theirs, ours = _apart(task_at("NEW")._replace(attention=(ROW,)))
    odd = theirs.task()._replace(attention=(ROW, Attention("x", "invalid", "Broken.")))
    theirs.graph = theirs.graph.with_task(odd, BODY)
    ours.says(Note(ONE, seen=True))
    assert meets(theirs, ours).rows() == []


# ------------------------------------------------------------------------------ the other verbs


def test_a_dispatch_is_decided_again() -> None:
    theirs, ours = _apart(task_at("NEW"), task_at("NEW", 2))
    theirs.says(Edit(ONE, add_dependencies=(TWO,)))
    ours.says(Submit(ONE, enter="PLAN", remark="Go."))
    met = meets(theirs, ours)
    assert (met.task().state, met.task().enters, met.events[0].text) == ("BLOCKED", "PLAN", "Go.")


def test_a_dispatch_that_waited_here_goes_on_where_others_have_landed() -> None:
    theirs, ours = _apart(task_at("NEW")._replace(depends_on=(TWO,)), task_at("MANAGER_REVIEW", 2))
    theirs.lands(2)
    ours.says(Submit(ONE, enter="PLAN"))
    assert meets(theirs, ours).task().state == "PLAN"


@pytest.mark.parametrize(("enter", "is_quiet"), [("DESIGN", True), ("WORK", False)])
def test_a_task_is_dispatched_once(enter: State, is_quiet: bool) -> None:
    theirs, ours = _apart(task_at("NEW"))
    theirs.says(Submit(ONE))
    ours.says(Submit(ONE, enter=enter))
    assert _kept(meets(theirs, ours)) == [("the task is at DESIGN now, not at NEW", is_quiet)]


def test_a_task_that_waits_for_both_waits_once() -> None:
    theirs, ours = _apart(task_at("NEW")._replace(depends_on=(TWO,)), task_at("NEW", 2))
    for clone in (theirs, ours):
        clone.says(Submit(ONE))
    assert _kept(meets(theirs, ours)) == [("it is so already", True)]


def _parent_with_a_delivered_child() -> tuple[Clone, Clone]:
    return _apart(
        task_at("NEW"),
        task_at("CLOSED", 2)._replace(parent=ONE),
        task_at("BLOCKED", 3)._replace(depends_on=(ONE,)),
    )


def test_a_close_is_decided_again_with_what_it_unblocks() -> None:
    theirs, ours = _parent_with_a_delivered_child()
    NEW_TITLE(theirs)
    ours.says(Submit(ONE, close=True))
    assert meets(theirs, ours).events == ours.past


def test_a_close_with_a_child_that_others_have_made_is_not_applied() -> None:
    theirs, ours = _parent_with_a_delivered_child()
    theirs.says(_create(9, parent=ONE))
    ours.says(Submit(ONE, close=True))
    met = meets(theirs, ours)
    assert [reason for reason, _ in _kept(met)] == [
        "the task 000001 cannot be closed: 000004 still open",
        "the task is at BLOCKED now",
    ]


def test_a_hold_is_decided_again() -> None:
    theirs, ours = _apart(task_at("WORK"))
    theirs.finishes()
    ours.holds()
    met = meets(theirs, ours)
    assert (met.events[0].source, met.task().held_reason) == ("CHECK", "wait")


@pytest.mark.parametrize(("actor", "is_quiet"), [("ada", True), ("eve", False)])
def test_a_task_is_held_once(actor: str, is_quiet: bool) -> None:
    theirs, ours = _apart(task_at("WORK"))
    theirs.holds()
    ours.says(Hold(ONE, "Wait."), actor=actor)
    assert [quiet for _, quiet in _kept(meets(theirs, ours))] == [is_quiet]


def test_a_resume_waits_for_what_others_have_added() -> None:
    theirs, ours = _apart(task_at("HELD_WORK"), task_at("NEW", 2))
    theirs.says(Edit(ONE, add_dependencies=(TWO,)))
    ours.says(Resume(ONE, "Go on."))
    met = meets(theirs, ours)
    assert (met.task().state, met.events[0].text) == ("BLOCKED", "Go on.")


def _family() -> tuple[Clone, Clone]:
    return _apart(
        task_at("NEW"),
        task_at("NEW", 2)._replace(parent=ONE),
        task_at("NEW", 3)._replace(parent=ONE),
    )


def test_a_family_is_aborted_whatever_its_members_do_by_now() -> None:
    theirs, ours = _family()
    theirs.says(Submit(TWO))
    theirs.claims(2)
    theirs.says(Abort(THREE))
    ours.says(Abort(ONE, "No.", recursive=True))
    met = meets(theirs, ours)
    assert [task.outcome for task in met.clone.graph.tasks.values()] == ["aborted"] * 3
    assert _kept(met) == [("the task was aborted already", True)]


def test_the_head_of_a_family_stays_for_a_child_that_others_have_made() -> None:
    theirs, ours = _family()
    theirs.says(_create(9, parent=ONE))
    ours.says(Abort(ONE, "No.", recursive=True))
    met = meets(theirs, ours)
    assert (met.task(1).state, met.task(2).state, _kept(met)) == (
        "NEW", "CLOSED", [("a child is open", False)],
    )  # fmt: skip


def test_two_aborts_at_two_times_are_no_family() -> None:
    theirs, ours = _family()
    theirs.says(Submit(TWO))
    ours.says(Abort(TWO))
    ours.says(Abort(THREE))
    assert _kept(meets(theirs, ours)) == [("the task is at DESIGN now", False)]


def test_a_note_after_the_close_becomes_a_row() -> None:
    theirs, ours = _apart(task_at("NEW"))
    theirs.says(Abort(ONE))
    ours.says(Note(ONE, "Late.", (("pr", "7"),)), None, "bob")
    met = meets(theirs, ours)
    assert (met.rows(), met.events[0].text) == (["a note by bob came after the close"], "Late.")
    assert met.task().artifacts == (("pr", "7"),)


def test_a_task_is_moved_unless_others_have_moved_it() -> None:
    theirs, ours = _apart(*(task_at("NEW", number) for number in (1, 2, 3)))
    theirs.says(Reparent(ONE, TWO))
    ours.says(Reparent(ONE, THREE))
    met = meets(theirs, ours)
    assert (met.task().parent, _kept(met)) == (
        TWO, [("others have changed its parent too", False)],
    )  # fmt: skip


def test_a_task_that_others_have_moved_to_the_same_place_is_there_already() -> None:
    theirs, ours = _apart(task_at("NEW"), task_at("NEW", 2))
    for clone in (theirs, ours):
        clone.says(Reparent(ONE, TWO))
    assert _kept(meets(theirs, ours)) == [("it is so already", True)]


def test_a_move_below_itself_across_two_clones_is_not_applied() -> None:
    theirs, ours = _apart(task_at("NEW"), task_at("NEW", 2))
    theirs.says(Reparent(TWO, ONE))
    ours.says(Reparent(ONE, TWO))
    assert _kept(meets(theirs, ours)) == [
        ("the task 000001 cannot move: 000002 stands below 000001 itself", False)
    ]


def test_two_tasks_that_were_put_at_one_place_stand_side_by_side() -> None:
    theirs, ours = _apart(*(task_at("NEW", number) for number in (1, 2, 3, 4)))
    theirs.says(Reorder(FOUR, "before", TWO))
    ours.says(Reorder(THREE, "before", TWO))
    met = meets(theirs, ours)
    order = sorted(met.clone.graph.tasks.values(), key=lambda task: task.sort_key)
    assert [task.id for task in order] == [ONE, FOUR, THREE, TWO]


def test_a_task_that_others_have_put_elsewhere_stays_there() -> None:
    theirs, ours = _apart(*(task_at("NEW", number) for number in (1, 2, 3)))
    theirs.says(Reorder(THREE, "first"))
    ours.says(Reorder(THREE, "before", TWO))
    assert _kept(meets(theirs, ours)) == [("others have changed its position too", False)]


def test_a_task_that_others_have_put_at_the_same_place_is_there() -> None:
    theirs, ours = _apart(*(task_at("NEW", number) for number in (1, 2, 3)))
    for clone in (theirs, ours):
        clone.says(Reorder(THREE, "before", TWO))
    assert _kept(meets(theirs, ours)) == [("it is so already", True)]


# -------------------------------------------------------------------------- settings and shared texts


def _sets(clone: Clone, *pairs: tuple[str, Any], unset: tuple[str, ...] = ()) -> None:
    change = Configured(pairs, unset)
    _by_hand(clone, None, change)
    defaults = {name: Project._field_defaults[name] for name in unset}
    clone.settings = clone.settings._replace(**{**dict(pairs), **defaults})


def test_a_setting_that_others_have_not_changed_is_set() -> None:
    theirs, ours = _apart(settings=Project("main", labels=("a",)))
    _sets(theirs, ("lease", "2h"))
    _sets(ours, ("rejection_limit", 4), ("labels", ("b",)), unset=("landing",))
    _sets(ours, unset=("labels",))
    met = meets(theirs, ours)
    assert met.clone.settings == Project("main", lease="2h", rejection_limit=4)
    assert [event.change for event in met.events] == [
        Configured((("rejection_limit", 4), ("labels", ("b",)))),
        Configured(unset=("labels",)),
    ]


def test_of_the_settings_those_that_others_have_changed_stay_theirs() -> None:
    theirs, ours = _apart()
    _sets(theirs, ("lease", "2h"))
    _sets(ours, ("lease", "3h"), ("labels", ("a",)))
    met = meets(theirs, ours)
    reason = "others have set lease too: lease stays '2h'"
    assert [event.change for event in met.events] == [
        Configured((("labels", ("a",)),)),
        Rejected("configure", reason),
    ]
    assert '"lease":"3h"' in met.events[1].text
    assert met.replayed.rejected == ((ours.past[0], reason),)


def test_a_setting_that_others_have_changed_stays_theirs() -> None:
    theirs, ours = _apart()
    _sets(theirs, ("labels", ("a", "b")))
    _sets(ours, ("labels", ("c",)))
    met = meets(theirs, ours)
    assert met.told == [("rejected", None)]
    assert _kept(met) == [("others have set labels too: labels stays ['a', 'b']", False)]


def test_a_setting_that_both_have_changed_alike_is_so_already() -> None:
    theirs, ours = _apart()
    for clone in (theirs, ours):
        _sets(clone, ("lease", "2h"))
    assert _kept(meets(theirs, ours)) == [("it is so already", True)]


def test_a_setting_on_top_of_unknown_ones_is_not_set() -> None:
    theirs, ours = _apart()
    _sets(ours, ("lease", "2h"))
    ours.local[0] = ours.local[0]._replace(settings=None)
    assert replay(theirs.common(), ours.local).rejected[0][1] == (
        "others have set lease too: lease stays '24h'"
    )


@pytest.mark.parametrize(
    ("base", "reasons"),
    [
        ("main", [("it is so already", True)]),
        ("trunk", [("others have set base too: base stays 'main'", False)]),
    ],
)
def test_a_ledger_that_began_twice_is_the_one_of_the_others(
    base: str, reasons: list[tuple[str, bool]]
) -> None:
    theirs, ours = _apart()
    _by_hand(ours, None, Initialized((("base", base), ("labels", ()))))
    assert _kept(meets(theirs, ours)) == reasons


def _writes(clone: Clone, text: bytes | None) -> None:
    _by_hand(clone, None, Configured(path="template.md"), body=text)
    clone.texts["template.md"] = text


def test_a_shared_text_that_others_have_not_changed_is_written() -> None:
    theirs, ours = _apart()
    for text in (b"One.\n", b"Two.\n", None):
        _writes(ours, text)
    met = meets(theirs, ours)
    assert (met.events, met.clone.texts) == (ours.past, {"template.md": None})


@pytest.mark.parametrize("text", [b"Mine.\n", None])
def test_a_shared_text_that_others_have_changed_stays_theirs_and_ours_is_kept(
    text: bytes | None,
) -> None:
    ours = Clone()
    ours.texts["template.md"] = b"Once.\n"
    theirs = ours.twin()
    _writes(theirs, b"Theirs.\n")
    _writes(ours, text)
    met = meets(theirs, ours)
    assert (met.clone.texts, _kept(met)) == (
        {"template.md": b"Theirs.\n"}, [("others have changed template.md too", False)],
    )  # fmt: skip
    assert met.events[0].text.endswith("\nMine.\n") is (text is not None)


def test_a_shared_text_that_both_have_written_alike_is_so_already() -> None:
    theirs, ours = _apart()
    for clone in (theirs, ours):
        _writes(clone, b"One.\n")
    assert _kept(meets(theirs, ours)) == [("it is so already", True)]


# ---------------------------------------------------------------------- what was replayed before


def test_what_was_not_applied_once_is_kept_as_it_is() -> None:
    theirs, ours = _apart(task_at("WORK"))
    theirs.claims(actor="eve")
    _submits(ours, ours.claims())
    met = meets(theirs, ours)
    faster = theirs.twin("c")
    NEW_TITLE(faster)
    faster.says(Hold(ONE, "Wait."))
    again = meets(faster, met.clone)
    assert [(e.event_id, e.change, e.text) for e in again.events] == [
        (e.event_id, e.change, e.text) for e in met.events
    ]
    assert (again.replayed.lost, again.replayed.rejected) == ((), ())


def test_what_was_not_applied_to_a_task_that_is_not_there_any_more_is_kept() -> None:
    ours = Clone(task_at("NEW"))
    _rowed(ours)
    met = meets(Clone(name="a"), ours)
    assert (met.told, met.events[0].change) == ([("rejected", None)], Rejected("edit", "no"))


def test_what_was_not_applied_to_no_task_is_kept() -> None:
    theirs, ours = _apart()
    _by_hand(ours, None, Rejected("configure", "no"), role="tool", text="Mine.")
    assert meets(theirs, ours).events == ours.past


def test_a_note_kept_from_a_conflict_is_kept_again() -> None:
    theirs, ours = _with_text(LONG)
    _edited(body=b"theirs\n")(theirs)
    _edited(body=b"mine\n")(ours)
    met = meets(theirs, ours)
    faster = theirs.twin("c")
    faster.says(Abort(ONE))
    assert meets(faster, met.clone).rows() == met.rows()


def test_a_name_that_follows_is_not_given_twice() -> None:
    theirs, ours = _apart(task_at("MANAGER_REVIEW"), task_at("NEW", 2))
    theirs.says(_create(9))
    ours.says(_create(3, parent=ONE, supersedes=TWO))
    theirs.lands()
    met = meets(theirs, ours)
    faster = theirs.twin("c")
    faster.says(Submit(TWO, enter="WORK"))
    faster.goes_to("CLOSED", 2)
    again = meets(faster, met.clone)
    names = [event.event_id for event in again.events if event.kind == "note"]
    assert names[0] == derived(names[1], "link")
    assert again.rows(4) == [
        "it was to supersede 000002, but that has landed meanwhile",
        "its parent 000001 was closed meanwhile",
    ]


# ------------------------------------------------------------------- tasks that wait for a repair


BROKEN = "The step is not legal: it gives no reason."
WAITS = (
    "the task 000001 keeps its last good state, because the step is not legal: it gives no reason"
)


def test_a_task_that_waits_for_a_repair_does_not_go_on_and_its_document_is_not_touched() -> None:
    theirs, ours = _apart(task_at("WORK"))
    theirs.quarantined = {ONE: BROKEN}
    claim = ours.claims()
    _submits(ours, claim)
    met = meets(theirs, ours)
    assert met.told == [("rejected", None), ("rejected", None)]
    assert _kept(met) == [(WAITS, True), (f"its claim was lost: {WAITS}", False)]


def test_a_task_that_was_repaired_here_goes_on() -> None:
    theirs, ours = _apart(task_at("WORK"))
    theirs.quarantined = {ONE: BROKEN}
    NEW_TITLE(ours)
    ours.holds()
    assert meets(theirs, ours).events == ours.past


def test_a_landing_that_would_take_on_what_waits_for_a_repair_is_not_applied() -> None:
    waiting = task_at("BLOCKED")._replace(depends_on=(TWO,))
    theirs, ours = _apart(waiting, task_at("MANAGER_REVIEW", 2))
    theirs.quarantined = {ONE: BROKEN}
    ours.lands(2)
    met = meets(theirs, ours)
    assert [reason for reason, _ in _kept(met)] == [WAITS, "the task is at BLOCKED now"]
    assert (met.task(2).state, met.rows(2)) == (
        "MANAGER_REVIEW", [f"submit by ada was not applied: {WAITS}"],
    )  # fmt: skip


# ------------------------------------------------------------------------------------ odd events


def _odd(change: Change, **fields: Any) -> Event:
    task = task_at("WORK", held_by="eve")
    base: dict[str, Any] = {
        "event_id": hexadecimal("odd"), "at": NOW, "actor": "ada", "role": "manager", "host": "b",
        "change": change, "task": ONE, "uid": task.uid, "source": "WORK", "target": "WORK",
    }  # fmt: skip
    return Event(**{**base, **fields})


def _not_applied(*events: Event, settings: Project | None = None) -> list[tuple[str, str | None]]:
    """Replays odd events and returns why they were not applied; all are kept."""
    theirs = Clone(task_at("WORK", held_by="eve"), task_at("CHECK", 2), name="a")
    local = [Local(e, "odd", theirs.task(), BODY, settings or theirs.settings) for e in events]
    replayed = replay(theirs.common(), local)
    check_ids(theirs.past, local, replayed)
    applied(theirs, replayed)
    changes = [step.event.change for step in replayed.steps]
    return [(c.event, c.reason) for c in changes if isinstance(c, Rejected)]


CLAIMED = Claimed("2027-01-15T08:00:00Z", "task/000001", BASE, BASE)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (_odd(Created(""), source=None, target="NEW", uid="new", task=THREE), "it sets title to what it cannot be"),
        (_odd(Created("Fix"), task=None), "it cannot be carried out: AssertionError"),
        (_odd(Created("Fix"), uid=None), "it cannot be carried out: AssertionError"),
        (_odd(Created("Fix"), source=None, target="WORK", uid="new"),
         "a new task starts at NEW, not with nothing to WORK"),
        (_odd(Configured((("lease", "1h"),))), "there is no configure from WORK to WORK"),
        (_odd(Configured((("lease", "1h"),)), uid=None), "the task 000001 does not exist"),
        (_odd(CLAIMED, claim=None), "it is so already"),
        (_odd(CLAIMED._replace(lease_expires="soon"), claim="c" * 32, uid=task_at("CHECK", 2).uid,
              source="CHECK"),
         "it cannot be carried out: ValueError invalid literal for int() with base 10: 'soon'"),
        (_odd(CheckRefuted(()), uid=task_at("CHECK", 2).uid, source="CHECK"), "it has no findings"),
        (_odd(Submitted(), source="NEW"), "the task is at WORK now, not at NEW"),
        (_odd(Submitted(), claim=hexadecimal("claim 1")), "there is no submit from WORK to WORK"),
        (_odd(Edited((("state", "NEW"),))), "the field 'state' is not set by hand"),
        (_odd(Edited((("nothing", 1),))),
         "it cannot be carried out: AttributeError 'Task' object has no attribute 'nothing'"),
        (_odd(Edited((("title", ""),))), "the title is blank"),
        (_odd(Reparented(THREE)), "there is no task 000003"),
        (_odd(Reordered("Z")), "it is no position"),
        (_odd(Noted()), None),
        (_odd(Held("")), "the reason is blank"),
        (_odd(Held("Why?"), role="operator"),
         "you speak as the operator and cannot hold 000001 at WORK: WORK belongs to the worker; "
         "allowed from here: claim, hold, submit"),
        (_odd(Held("Why?"), role="none"),
         "ada holds no claim on 000001, which is at WORK and belongs to the worker"),
        (_odd(Noted(), text="x" * 999_999), "its message would be too long"),
        (_odd(Noted((("pr", "\x1b" * 200_000),))), "its message would be too long"),
    ],
)  # fmt: skip
def test_an_odd_event_is_kept_and_not_applied(event: Event, reason: str | None) -> None:
    assert _not_applied(event) == ([] if reason is None else [(event.kind, reason)])


def test_of_two_events_with_one_name_the_second_gets_another_one() -> None:
    theirs, ours = _apart(task_at("WORK"))
    ours.says(Note(ONE, "Look."))
    replayed = replay(theirs.common(), ours.local * 2)
    name = ours.past[0].event_id
    assert [(step.event.event_id, step.source) for step in replayed.steps] == [
        (name, 0),
        (derived(name, "again"), 1),
    ]


def test_what_was_said_twice_is_so_already() -> None:
    first, again = (_odd(Held("Why?"), event_id=hexadecimal(name)) for name in ("one", "two"))
    other = _odd(Noted(), text="Look.", uid=task_at("CHECK", 2).uid)
    assert _not_applied(first, other, again) == [("hold", "it is so already")]


def test_a_note_about_an_unknown_text_is_a_note() -> None:
    theirs, ours = _apart(task_at("WORK"))
    ours.says(Note(ONE, "Look."))
    ours.local[0] = ours.local[0]._replace(task=None)
    assert [step.event for step in replay(theirs.common(), ours.local).steps] == ours.past
