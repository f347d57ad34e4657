"""Taking a task, giving it back, and giving the same command twice."""

from __future__ import annotations

import pytest

from gittasks.domain import machine
from gittasks.domain.decide import decide
from gittasks.domain.errors import (
    AlreadyClaimed,
    GittasksError,
    NotAllowed,
    NotClaimed,
    Refused,
    StaleClaim,
    Taken,
    WrongRole,
)
from gittasks.domain.events import Claimed, Event, Released, ReleaseReason
from gittasks.domain.machine import STAGE
from gittasks.domain.requests import (
    Abort,
    Claim,
    Feedback,
    Hold,
    Release,
    Request,
    Resume,
    SpeakingRole,
    Submit,
)
from gittasks.domain.rules.claim import is_expired
from gittasks.domain.task import Cost, State
from gittasks.domain.times import timestamp
from tests.support.builders import NOW, hexadecimal
from tests.support.decisions import (
    BASE,
    BODY,
    LEASE,
    TIP,
    Story,
    a_graph,
    after,
    branch_of,
    claim_of,
    decided,
    facts,
    finish,
    task_at,
)

ONE = "000001"
NEW_CLAIM = hexadecimal("mine")
TAKE = Claim(ONE, NEW_CLAIM, NOW + LEASE, branch_of(1), BASE, TIP, "f" * 40)


# Claim.


def test_a_claim_records_who_until_when_and_from_where() -> None:
    task = task_at("DESIGN", branch=None, base=None, dispatched=None)
    now, text = decided(a_graph(task), TAKE, facts("designer", "bob"))
    assert text == BODY
    assert now == task._replace(
        claimed_by="bob",
        claim=NEW_CLAIM,
        claimed_at=timestamp(NOW),
        lease_expires=timestamp(NOW + LEASE),
        branch=branch_of(1),
        base=BASE,
        dispatched=TIP,
    )


def test_the_event_of_a_claim_names_token_tip_and_assignment() -> None:
    (event,) = decide(a_graph(task_at("DESIGN")), TAKE, facts("designer", "bob"))
    assert (event.claim, event.commit) == (NEW_CLAIM, TIP)
    assert event.change == Claimed(timestamp(NOW + LEASE), branch_of(1), BASE, TIP, "f" * 40)


def test_the_loser_of_a_race_is_told_who_won() -> None:
    graph = a_graph(task_at("DESIGN"))
    graph = after(graph, decide(graph, TAKE, facts("designer", "bob")))
    with pytest.raises(AlreadyClaimed, match="held by bob"):
        decide(graph, TAKE._replace(claim=hexadecimal("late")), facts("designer", "eve"))


def test_what_the_speaker_holds_already_is_nothing_to_do() -> None:
    task = task_at("DESIGN", held_by="bob")
    assert decide(a_graph(task), TAKE, facts("designer", "bob", task.claim)) == []


def test_the_same_name_without_the_claim_is_somebody_else() -> None:
    with pytest.raises(AlreadyClaimed):
        decide(a_graph(task_at("DESIGN", held_by="bob")), TAKE, facts("designer", "bob"))


@pytest.mark.parametrize("actor", ["eve", "bob"])
def test_an_expired_claim_is_released_by_whoever_takes_the_task(actor: str) -> None:
    task = task_at("WORK", held_by="bob", expires=0)
    events = decide(a_graph(task), TAKE, facts("worker", actor, task.claim))
    now = after(a_graph(task), events).tasks[ONE]
    assert [(e.kind, e.role, e.claim) for e in events] == [
        ("release", "tool", task.claim),
        ("claim", "worker", NEW_CLAIM),
    ]
    assert events[0].change == Released("expired")
    assert (now.claimed_by, now.entered_at) == (actor, task.entered_at)


@pytest.mark.parametrize(("left", "expired"), [(-1, True), (0, True), (1, False)])
def test_a_lease_runs_out_at_its_second(left: int, expired: bool) -> None:
    assert is_expired(task_at("WORK", held_by="bob", expires=left), NOW) is expired


def test_nothing_runs_out_without_a_claim() -> None:
    assert not is_expired(task_at("WORK"), NOW)


# Release.


@pytest.mark.parametrize("state", machine.CLAIMABLE)
def test_a_release_ends_the_claim_and_nothing_else(state: State) -> None:
    task = task_at(state, held_by="bob")
    request = Release(ONE, "Ill.", cost=(cost := Cost(state, "pi", 1, 0.0, 2)))
    (event,) = decide(a_graph(task), request, facts(STAGE[state].role, "bob", task.claim))
    now = after(a_graph(task), [event]).tasks[ONE]
    assert (event.role, event.text) == (STAGE[state].role, "Ill.")
    assert event.change == Released("released", "Ill.", cost)
    assert now == task._replace(
        claimed_by=None, claim=None, claimed_at=None, lease_expires=None, costs=(cost,)
    )


@pytest.mark.parametrize(
    ("why", "role", "written"),
    [("forced", "manager", "manager"), ("died", None, "tool"), ("expired", "worker", "tool")],
)
def test_a_release_records_why_and_for_whom(
    why: ReleaseReason, role: SpeakingRole | None, written: str
) -> None:
    task = task_at("WORK", held_by="bob", expires=0)
    (event,) = decide(a_graph(task), Release(ONE, why=why), facts(role, "eve"))
    assert (event.change, event.role, event.claim) == (Released(why), written, task.claim)


def test_a_lease_that_runs_is_not_expired() -> None:
    with pytest.raises(AlreadyClaimed, match="The lease of bob on 000001 has not run out"):
        decide(a_graph(task_at("WORK", held_by="bob")), Release(ONE, why="expired"), facts(None))


@pytest.mark.parametrize("claim", [None, NEW_CLAIM])
def test_somebody_elses_claim_is_released_by_force_only(claim: str | None) -> None:
    with pytest.raises(AlreadyClaimed, match="held by bob, not by you") as refused:
        decide(a_graph(task_at("WORK", held_by="bob")), Release(ONE), facts("worker", "eve", claim))
    assert refused.value.hint == "The manager may take it away with --force."


# Fencing.


@pytest.mark.parametrize("request_", [Hold(ONE, "wait"), Feedback(ONE, ("No.",)), Submit(ONE)])
def test_a_claim_that_was_lost_speaks_no_more(request_: Request) -> None:
    story = Story(task_at("DESIGN_REVIEW"))
    stale = story.claims(actor="old")
    story.says(Release(ONE, why="forced"))
    with pytest.raises(StaleClaim, match="not held by anybody"):
        story.says(request_, "reviewer", "old", stale)
    story.claims(actor="new")
    with pytest.raises(StaleClaim, match="held by new"):
        story.says(request_, "reviewer", "old", stale)


def test_a_holder_who_shows_no_claim_is_told_how() -> None:
    with pytest.raises(AlreadyClaimed, match="you present no claim on it"):
        decide(a_graph(task_at("DESIGN", held_by="bob")), Submit(ONE), facts("designer", "bob"))


def test_an_agent_without_role_and_claim_is_told_that_it_holds_nothing() -> None:
    with pytest.raises(WrongRole) as refused:
        decide(a_graph(task_at("DESIGN")), Submit(ONE), facts(None, "eve"))
    assert (refused.value.message, refused.value.hint) == (
        "eve holds no claim on 000001, which is at DESIGN and belongs to the designer.",
        "Take it with `git tasks start 000001`, or see who you are with `git tasks whoami`.",
    )


def test_a_submit_without_a_claim_names_the_way_to_one() -> None:
    with pytest.raises(NotClaimed) as refused:
        decide(a_graph(task_at("DESIGN")), Submit(ONE), facts("designer", "bob"))
    assert refused.value.hint == "Run `git tasks start 000001`."


# Twice.


def _submitted(state: State) -> tuple[Story, str]:
    """Returns a story in which bob has just finished a state, and his claim."""
    story = Story(task_at(state))
    claim = story.claims()
    story.says(finish(story.task()), STAGE[state].role, "bob", claim)
    return story, claim


@pytest.mark.parametrize("state", [s for s in machine.CLAIMABLE if s != "CHECK"])
@pytest.mark.parametrize("shows", [True, False])
def test_submitting_again_is_nothing_to_do(state: State, shows: bool) -> None:
    story, claim = _submitted(state)
    assert story.says(Submit(ONE), STAGE[state].role, "bob", claim if shows else None) == []


def test_submitting_again_is_nothing_to_do_after_the_check_has_passed() -> None:
    story, claim = _submitted("WORK")
    story.is_checked()
    assert story.says(Submit(ONE), "worker", "bob", claim) == []


def test_submitting_again_is_nothing_to_do_for_an_agent_that_lost_its_role() -> None:
    story, _claim = _submitted("WORK")
    assert story.says(Submit(ONE), None, "bob") == []


def test_submitting_again_is_nothing_to_do_while_the_next_one_works() -> None:
    story, claim = _submitted("DESIGN")
    story.claims(actor="rev")
    assert story.says(Submit(ONE), "designer", "bob", claim) == []


def test_submitting_again_is_refused_after_a_failed_check() -> None:
    story, claim = _submitted("WORK")
    story.is_checked(1, "make: 1")
    with pytest.raises(StaleClaim):
        story.says(Submit(ONE), "worker", "bob", claim)


def test_the_submit_of_another_claim_is_no_repetition() -> None:
    story, _claim = _submitted("WORK")
    with pytest.raises(NotAllowed):
        story.says(Submit(ONE), "worker", "bob", NEW_CLAIM)


@pytest.mark.parametrize(("actor", "host"), [("eve", "host-a"), ("bob", "host-b")])
def test_the_submit_of_another_name_or_clone_is_no_repetition(actor: str, host: str) -> None:
    story, _claim = _submitted("WORK")
    story.host = host
    with pytest.raises(Refused):
        story.says(Submit(ONE), "worker", actor)


def test_the_manager_is_refused_in_an_agents_state_even_after_a_dispatch() -> None:
    story = Story(task_at("NEW"))
    story.says(Submit(ONE))
    with pytest.raises(WrongRole, match="DESIGN belongs to the designer"):
        story.says(Submit(ONE))


def test_who_worked_is_refused_after_the_second_rejection() -> None:
    story, claim = _submitted("WORK")
    story.is_checked()
    review = story.claims(actor="rev")
    story.limits = {"rejection_limit": 1}
    story.says(Feedback(ONE, ("No.",)), "reviewer", "rev", review)
    with pytest.raises(NotAllowed, match="HELD_WORK"):
        story.says(Submit(ONE), "worker", "bob", claim)


def test_landing_what_has_landed_is_nothing_to_do_for_the_manager() -> None:
    story = Story(task_at("MANAGER_REVIEW"))
    story.lands()
    assert story.lands() == []


def test_closing_what_has_landed_is_nothing_to_do_for_the_manager() -> None:
    story = Story(task_at("NEW"), task_at("CLOSED", 2, parent=ONE))
    story.says(Submit(ONE, close=True))
    assert story.says(Submit(ONE, close=True)) == []


def test_a_landed_task_is_closed_for_everybody_else() -> None:
    story = Story(task_at("MANAGER_REVIEW"))
    story.lands()
    with pytest.raises(NotAllowed, match="has landed"):
        story.says(Submit(ONE), "worker", "bob")


def test_submitting_an_aborted_task_is_refused() -> None:
    with pytest.raises(NotAllowed, match="was aborted"):
        decide(a_graph(task_at("CLOSED", outcome="aborted")), Submit(ONE), facts())


def test_holding_again_is_nothing_to_do_for_whoever_held_it() -> None:
    story = Story(task_at("WORK"))
    story.holds()
    assert story.holds(reason="again") == []


@pytest.mark.parametrize("by", ["another name", "rejection"])
def test_a_task_that_another_one_held_is_not_held_again(by: str) -> None:
    story = Story(task_at("DESIGN_REVIEW"), rejection_limit=1)
    claim = story.claims(actor="rev")
    request = Feedback(ONE, ("No.",)) if by == "rejection" else Hold(ONE, "wait")
    story.says(request, "reviewer", "rev", claim)
    with pytest.raises(NotAllowed):
        story.says(Hold(ONE, "again"), "manager", "rev" if by == "rejection" else "ada")


def test_aborting_an_aborted_task_is_nothing_to_do_for_the_manager() -> None:
    graph = a_graph(task_at("CLOSED", outcome="aborted"))
    assert decide(graph, Abort(ONE), facts()) == []


def test_aborting_a_landed_task_is_refused() -> None:
    with pytest.raises(NotAllowed):
        decide(a_graph(task_at("CLOSED")), Abort(ONE), facts())


def test_aborting_an_aborted_task_is_refused_for_others() -> None:
    with pytest.raises(NotAllowed):
        decide(a_graph(task_at("CLOSED", outcome="aborted")), Abort(ONE), facts("worker"))


def test_resuming_again_is_nothing_to_do_for_who_resumed_it() -> None:
    story = Story(task_at("HELD_WORK"))
    story.says(Resume(ONE))
    assert story.says(Resume(ONE)) == []


def test_resuming_again_is_refused_once_the_work_went_on() -> None:
    story = Story(task_at("HELD_DESIGN"))
    story.says(Resume(ONE))
    story.finishes()
    with pytest.raises(NotAllowed):
        story.says(Resume(ONE))


@pytest.mark.parametrize(("role", "actor"), [("worker", "ada"), ("manager", "eve")])
def test_resuming_again_is_refused_for_others(role: SpeakingRole, actor: str) -> None:
    story = Story(task_at("HELD_WORK"))
    story.says(Resume(ONE))
    with pytest.raises(NotAllowed):
        story.says(Resume(ONE), role, actor)


def _releases(story: Story, actor: str, claim: str | None = None) -> list[Event] | type:
    try:
        return story.says(Release(ONE), "worker", actor, claim)
    except GittasksError as refusal:
        return type(refusal)


def test_releasing_again_is_nothing_to_do_for_the_last_holder() -> None:
    story = Story(task_at("WORK"))
    claim = story.claims()
    story.says(Release(ONE), "worker", "bob", claim)
    found = {
        "without the claim": _releases(story, "bob"),
        "with the claim": _releases(story, "bob", claim),
        "with another claim": _releases(story, "bob", NEW_CLAIM),
        "another one": _releases(story, "eve"),
    }
    assert found == {
        "without the claim": [],
        "with the claim": [],
        "with another claim": NotClaimed,
        "another one": NotClaimed,
    }


def test_releasing_after_a_submit_is_nothing_to_do_for_who_submitted() -> None:
    story, _claim = _submitted("WORK")
    assert _releases(story, "bob") == []


def test_releasing_what_was_taken_away_is_refused() -> None:
    story = Story(task_at("WORK"))
    claim = story.claims()
    story.says(Release(ONE, why="forced"))
    assert (_releases(story, "bob", claim), _releases(story, "bob")) == (NotClaimed, NotClaimed)


def test_taking_away_again_is_nothing_to_do_for_who_took_it_away() -> None:
    story = Story(task_at("WORK"))
    story.claims()
    story.says(Release(ONE, why="forced"))
    assert story.says(Release(ONE, why="forced")) == []


def test_releasing_what_nobody_ever_held_is_refused() -> None:
    assert _releases(Story(task_at("WORK")), "bob") == NotClaimed


@pytest.mark.parametrize("request_", [TAKE, Feedback(ONE, ("No.",))])
def test_other_verbs_are_refused_the_second_time(request_: Request) -> None:
    story = Story(task_at("DESIGN_REVIEW"))
    claim = story.claims(actor="rev")
    story.says(Feedback(ONE, ("No.",)), "reviewer", "rev", claim)
    story.claims()
    with pytest.raises((Refused, Taken)):
        story.says(request_, "reviewer", "rev")


def test_the_claim_of_the_builders_is_the_one_that_they_say() -> None:
    assert task_at("WORK", held_by="bob").claim == claim_of(1)
