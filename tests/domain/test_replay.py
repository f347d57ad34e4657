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
from gittasks.domain.ids import LAST_ID
from gittasks.domain.replay import (
    TEXT_LIMIT,
    Local,
    Lost,
    Renaming,
    derived,
    replay,
)
from gittasks.domain.requests import (
    Abort,
    Claim,
    Create,
    Edit,
    Feedback,
    Hold,
    Landing,
    Note,
    RecordCheck,
    Release,
    Reorder,
    Reparent,
    Resume,
    Submit,
)
from gittasks.domain.task import Attention, State, Task
from gittasks.domain.times import timestamp
from tests.support.builders import NOW, hexadecimal
from tests.support.decisions import (
    BASE,
    BODY,
    LANDED,
    LEASE,
    TIP,
    clean,
    finish,
    section,
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


def test_a_task_for_which_no_number_is_left_is_not_created_and_nothing_names_it() -> None:
    theirs, ours = _apart(task_at("NEW"), task_at("NEW", LAST_ID - 1))
    theirs.says(_create(7))
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
    assert (met.task(3).supersedes, met.task(1).outcome, met.task(1).claim) == (ONE, "aborted", None)
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


def test_a_claim_that_both_have_seen_expire_is_released_once() -> None:
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
    assert (met.lost, [why for _, why in met.rejected]) == ((), ["it is so already"])


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
