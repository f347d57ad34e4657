"""What finishing, sending back, checking, holding and resuming do to a task and its text."""

from __future__ import annotations

from typing import Any

import pytest

from gittasks.domain.decide import decide
from gittasks.domain.errors import Busy, GuardBroken, NotAllowed, Refused, WrongRole
from gittasks.domain.events import CheckResult
from gittasks.domain.machine import STAGE
from gittasks.domain.requests import (
    Abort,
    Edit,
    Feedback,
    Hold,
    Landing,
    RecordCheck,
    Resume,
    Submit,
)
from gittasks.domain.task import Cost, Draft, Findings, State
from gittasks.domain.task_graph import draft_of
from gittasks.domain.times import timestamp
from tests.support.builders import NOW
from tests.support.decisions import (
    BASE,
    BODY,
    LANDED,
    LATER_TIP,
    TIP,
    Story,
    a_graph,
    body_of,
    decided,
    facts,
    finish,
    section,
    task_at,
)

SACRED = (
    b"\n\n    indented()\n---\n----\n+++\n\n```yaml\nid: 000042\n```\n\n\nlast\n\n\n",
    b"no newline at the end",
    b"",
    b"\xff\xfe\x00 any bytes\r\n",
    b"## Design\n\nnot the own one\n",
)
BOUNCED: dict[State, tuple[State, State, str]] = {
    "DESIGN": ("DESIGN_REVIEW", "HELD_DESIGN", "## Design"),
    "PLAN": ("PLAN_REVIEW", "HELD_PLAN", "## Todos"),
}


# Submit.


@pytest.mark.parametrize("state", BOUNCED)
@pytest.mark.parametrize("body", SACRED)
def test_a_section_goes_below_the_text_as_the_draft_under_review(state: State, body: bytes) -> None:
    review, _held, heading = BOUNCED[state]
    task = task_at(state, held_by="bob")
    graph = a_graph(task, bodies={task.id: body})
    now, text = decided(graph, finish(task), facts(STAGE[state].role, "bob", task.claim))
    assert (now.state, now.draft) == (review, Draft(heading, len(body)))
    assert text.startswith(body)
    assert draft_of(Draft(heading, len(body)), text).strip(b"\n") == section(heading).strip(b"\n")


@pytest.mark.parametrize("body", SACRED)
def test_a_heading_stands_alone_below_any_text(body: bytes) -> None:
    task = task_at("DESIGN", held_by="bob")
    graph = a_graph(task, bodies={task.id: body})
    _now, text = decided(graph, finish(task), facts("designer", "bob", task.claim))
    above = text.removesuffix(section("## Design"))
    assert above in (body, body + b"\n", body + b"\n\n")
    assert above == b"" or above.endswith(b"\n\n")


@pytest.mark.parametrize("state", BOUNCED)
@pytest.mark.parametrize("body", SACRED)
def test_a_draft_that_is_sent_back_leaves_no_trace(state: State, body: bytes) -> None:
    story = Story(task_at(state))
    story.graph = a_graph(story.task(), bodies={"000001": body})
    story.finishes()
    claim = story.claims(actor="rev")
    story.says(Feedback("000001", ("No.",)), "reviewer", "rev", claim)
    assert (story.task().state, story.task().draft, story.body()) == (state, None, body)


@pytest.mark.parametrize("state", BOUNCED)
@pytest.mark.parametrize("body", SACRED)
def test_a_draft_that_is_held_leaves_no_trace(state: State, body: bytes) -> None:
    story = Story(task_at(state))
    story.graph = a_graph(story.task(), bodies={"000001": body})
    story.finishes()
    story.holds()
    assert (story.task().draft, story.body()) == (None, body)


@pytest.mark.parametrize("state", BOUNCED)
def test_an_accepted_draft_becomes_text_for_good(state: State) -> None:
    story = Story(task_at(state))
    story.finishes()
    text = story.body()
    story.finishes(actor="rev")
    assert (story.task().draft, story.body()) == (None, text)


def test_the_draft_is_dropped_from_the_header_of_an_aborted_task() -> None:
    task = task_at("DESIGN_REVIEW")
    now, _text = decided(a_graph(task), Abort(task.id, recursive=True), facts())
    assert (now.outcome, now.draft) == ("aborted", None)


@pytest.mark.parametrize(
    ("state", "issue"),
    [("DESIGN", "missing-design"), ("PLAN", "missing-todos"), ("WORK", "missing-notes")],
)
def test_nothing_written_is_refused_by_name(state: State, issue: str) -> None:
    task = task_at(state, held_by="bob")
    said = facts(STAGE[state].role, "bob", task.claim)
    with pytest.raises(GuardBroken) as refused:
        decide(a_graph(task), finish(task, section=None), said)
    assert refused.value.issue == issue


def test_work_records_its_tip_and_puts_the_notes_below_the_text() -> None:
    task = task_at("WORK", held_by="bob", checked_tip=BASE)
    now, text = decided(a_graph(task), finish(task), facts("worker", "bob", task.claim))
    assert (now.state, now.submitted_tip, now.checked_tip, now.draft) == ("CHECK", TIP, None, None)
    assert text == BODY + b"\n" + section("## Implementation Notes")


def test_a_further_round_leaves_the_earlier_notes_where_they_are() -> None:
    story = Story(task_at("WORK"))
    story.finishes()
    story.is_checked(1, "make test: 1")
    before = story.body()
    story.finishes(section=section("## Implementation Notes", "Again."))
    assert story.body() == before + b"\n" + section("## Implementation Notes", "Again.")


def test_a_redo_without_a_new_commit_needs_to_be_said() -> None:
    task = task_at("WORK", held_by="bob", submitted_tip=TIP)
    with pytest.raises(GuardBroken, match="no new commit since"):
        decide(a_graph(task), finish(task, TIP), facts("worker", "bob", task.claim))


def test_a_redo_without_a_new_commit_is_taken_when_it_is_said() -> None:
    task = task_at("WORK", held_by="bob", submitted_tip=TIP)
    (event,) = decide(
        a_graph(task), finish(task, TIP, no_change=True), facts("worker", "bob", task.claim)
    )
    assert (event.target, event.commit) == ("CHECK", TIP)


@pytest.mark.parametrize("state", ["WORK", "WORK_REVIEW"])
def test_a_branch_that_nobody_looked_at_is_looked_at_first(state: State) -> None:
    task = task_at(state, held_by="bob")
    role = STAGE[state].role
    with pytest.raises(Busy):
        decide(a_graph(task), finish(task, guard=None), facts(role, "bob", task.claim))


def test_a_review_of_work_wants_the_checked_tip() -> None:
    task = task_at("WORK_REVIEW", held_by="rev", checked_tip=LATER_TIP)
    with pytest.raises(GuardBroken, match="not at the commit that was checked"):
        decide(a_graph(task), finish(task), facts("reviewer", "rev", task.claim))


@pytest.mark.parametrize("changed", [{"body_dispatched": b"Old.\n"}, {"checks_dispatched": ("x",)}])
@pytest.mark.parametrize("state", ["DESIGN", "DESIGN_REVIEW", "WORK", "WORK_REVIEW"])
def test_who_works_from_an_old_text_reads_the_new_one_first(
    state: State, changed: dict[str, Any]
) -> None:
    task = task_at(state, held_by="bob")
    role = STAGE[state].role
    with pytest.raises(GuardBroken) as refused:
        decide(
            a_graph(task),
            finish(task, **changed),
            facts(role, "bob", task.claim),
        )
    assert refused.value.issue == "assignment-changed"


def test_who_works_from_the_present_text_is_not_stopped() -> None:
    task = task_at("WORK", held_by="bob", checks=("make test",))
    request = finish(task, body_dispatched=BODY, checks_dispatched=("make test",))
    (event,) = decide(a_graph(task), request, facts("worker", "bob", task.claim))
    assert event.target == "CHECK"


def test_a_remark_at_a_review_is_kept_in_the_event() -> None:
    task = task_at("DESIGN_REVIEW", held_by="rev")
    (event,) = decide(
        a_graph(task), finish(task, remark="Fine."), facts("reviewer", "rev", task.claim)
    )
    assert event.text == "Fine."


LANDING = Landing(TIP, LANDED, "merge")


@pytest.mark.parametrize("remark", ["All there.", None])
@pytest.mark.parametrize(
    ("state", "request_"),
    [
        ("NEW", Submit("000001")),
        ("NEW", Submit("000001", close=True)),
        ("MANAGER_REVIEW", Submit("000001", landing=LANDING)),
        ("HELD_WORK", Resume("000001")),
    ],
)
def test_a_remark_of_the_manager_is_the_text_of_the_event(
    state: State, request_: Submit | Resume, remark: str | None
) -> None:
    graph = a_graph(task_at(state), task_at("CLOSED", 2, parent="000001"))
    (event,) = decide(graph, request_._replace(remark=remark), facts())
    assert event.text == (remark or "")


@pytest.mark.parametrize("option", [{"close": True}, {"enter": "WORK"}])
def test_the_options_of_a_dispatch_are_refused_elsewhere(option: dict[str, Any]) -> None:
    task = task_at("MANAGER_REVIEW")
    with pytest.raises(NotAllowed):
        decide(a_graph(task), Submit(task.id)._replace(**option), facts())


@pytest.mark.parametrize(("state", "way"), [("HELD_WORK", "resume"), ("CHECK", "check")])
def test_a_submit_that_is_another_verb_here_names_it(state: State, way: str) -> None:
    task = task_at(state)
    with pytest.raises(NotAllowed) as refused:
        decide(a_graph(task), Submit(task.id), facts())
    assert f"git tasks {way} 000001" in (refused.value.hint or "")


def test_the_manager_is_told_whose_state_it_is() -> None:
    task = task_at("PLAN", held_by="bob")
    with pytest.raises(WrongRole, match="PLAN belongs to the planner"):
        decide(a_graph(task), Submit(task.id), facts())


# A transition ends the claim, starts the clock and clears the reason.


def test_a_transition_ends_the_claim_starts_the_clock_and_charges_the_cost() -> None:
    task = task_at("DESIGN", held_by="bob")
    cost = Cost("DESIGN", "pi-1", 60, 0.5, 1000)
    now, _text = decided(
        a_graph(task),
        finish(task, cost=cost),
        facts("designer", "bob", task.claim, now=NOW + 5),
    )
    assert now == task._replace(
        state="DESIGN_REVIEW",
        entered_at=timestamp(NOW + 5),
        claimed_by=None,
        claim=None,
        claimed_at=None,
        lease_expires=None,
        draft=Draft("## Design", len(BODY)),
        costs=(cost,),
    )


def test_a_resume_clears_the_reason() -> None:
    task = task_at("HELD_PLAN")
    now, _text = decided(a_graph(task), Resume(task.id, "Go on."), facts())
    assert (now.state, now.held_reason, now.enters) == ("PLAN", None, None)


def test_a_resume_with_an_open_dependency_waits_for_its_phase() -> None:
    task = task_at("HELD_PLAN", depends_on=("000002",))
    now, _text = decided(a_graph(task, task_at("WORK", 2)), Resume(task.id), facts())
    assert (now.state, now.enters) == ("BLOCKED", "PLAN")


# Feedback.


def _bounce(story: Story, *findings: str) -> None:
    """Takes a task through its author and back from the review."""
    story.finishes()
    if story.task().state == "CHECK":
        story.is_checked()
    claim = story.claims(actor="rev")
    story.says(Feedback("000001", findings), "reviewer", "rev", claim)


def test_findings_of_work_are_appended_to_the_text_and_kept_for_the_worker() -> None:
    task = task_at("WORK_REVIEW", held_by="rev")
    now, text = decided(
        a_graph(task),
        Feedback(task.id, (" Too\nlong. ", "", "Too short.")),
        facts("reviewer", "rev", task.claim),
    )
    assert text == BODY + b"\n# Review findings\n\n- Too\n  long.\n- Too short.\n"
    assert (now.state, now.rejections) == ("WORK", 1)
    assert now.findings == Findings("WORK", 1, ("Too\nlong.", "Too short."))


@pytest.mark.parametrize("state", BOUNCED)
def test_findings_of_a_draft_are_kept_for_its_author_alone(state: State) -> None:
    story = Story(task_at(state))
    _bounce(story, "No.")
    assert story.task().findings == Findings(state, 1, ("No.",))
    assert story.body() == BODY


@pytest.mark.parametrize("state", ["DESIGN", "PLAN", "WORK"])
def test_findings_go_when_the_state_they_are_for_submits(state: State) -> None:
    story = Story(task_at(state))
    _bounce(story, "No.")
    story.finishes(tip=LATER_TIP if state == "WORK" else None)
    assert story.task().findings is None


def test_findings_for_another_state_stay() -> None:
    findings = Findings("WORK", 1, ("Later.",))
    task = task_at("PLAN", held_by="bob", findings=findings)
    now, _text = decided(a_graph(task), finish(task), facts("planner", "bob", task.claim))
    assert now.findings == findings


@pytest.mark.parametrize("state", ["DESIGN", "PLAN", "WORK"])
def test_the_second_rejection_holds_with_the_last_findings_first(state: State) -> None:
    story = Story(task_at(state))
    _bounce(story, "One.", "Two.")
    _bounce(story, "Three.")
    task = story.task()
    assert task.state == f"HELD_{state}"
    assert task.held_reason == (
        f"Rejected 2 times at {state}_REVIEW. Last findings:\n- Three.\n"
        "Earlier findings:\n- One.\n- Two."
    )
    assert (task.rejections, task.findings) == (2, Findings(state, 2, ("Three.",)))


def test_the_findings_of_a_second_rejection_are_in_the_text_too() -> None:
    story = Story(task_at("WORK"))
    _bounce(story, "One.")
    _bounce(story, "Two.")
    assert story.body().endswith(b"\n# Review findings\n\n- Two.\n")


def test_earlier_findings_are_those_of_the_rounds_counted_newest_first() -> None:
    story = Story(task_at("DESIGN"), rejection_limit=3)
    for findings in ("One.", "Two.", "Three."):
        _bounce(story, findings)
    assert (story.task().held_reason or "").endswith("Earlier findings:\n- Two.\n- One.")


def test_a_limit_of_one_has_no_earlier_findings() -> None:
    story = Story(task_at("DESIGN"), rejection_limit=1)
    _bounce(story, "One.")
    assert story.task().held_reason == ("Rejected 1 times at DESIGN_REVIEW. Last findings:\n- One.")


def test_a_past_that_is_not_known_is_not_told() -> None:
    task = task_at("DESIGN_REVIEW", held_by="rev", rejections=1)
    now, _text = decided(
        a_graph(task), Feedback(task.id, ("Two.",)), facts("reviewer", "rev", task.claim)
    )
    assert now.held_reason == "Rejected 2 times at DESIGN_REVIEW. Last findings:\n- Two."


def test_reviews_of_different_phases_count_apart() -> None:
    story = Story(task_at("DESIGN"))
    _bounce(story, "Design.")
    story.goes_to("PLAN")
    _bounce(story, "Plan.")
    story.goes_to("WORK")
    _bounce(story, "Work.")
    assert (story.task().state, story.task().rejections) == ("WORK", 1)


def test_the_count_starts_again_after_a_resume() -> None:
    story = Story(task_at("DESIGN"))
    _bounce(story, "One.")
    story.holds()
    story.says(Resume("000001"))
    _bounce(story, "Two.")
    assert (story.task().state, story.task().rejections) == ("DESIGN", 1)


def test_feedback_of_the_manager_is_never_counted() -> None:
    story = Story(task_at("MANAGER_REVIEW"))
    for number in range(3):
        story.says(Feedback("000001", (f"Round {number}.",)))
        assert story.task().findings == Findings("WORK", 1, (f"Round {number}.",))
        story.goes_to("MANAGER_REVIEW")
    story.says(Feedback("000001", ("Last.",)))
    assert (story.task().state, story.task().rejections) == ("WORK", 0)


def test_findings_of_the_manager_are_appended_to_the_text() -> None:
    task = task_at("MANAGER_REVIEW")
    _now, text = decided(a_graph(task), Feedback(task.id, ("No.",)), facts())
    assert text == BODY + b"\n# Review findings\n\n- No.\n"


def test_who_reviews_an_old_text_reads_the_new_one_first() -> None:
    task = task_at("WORK_REVIEW", held_by="rev")
    request = Feedback(task.id, ("No.",), body_dispatched=b"Old.\n")
    with pytest.raises(GuardBroken) as refused:
        decide(a_graph(task), request, facts("reviewer", "rev", task.claim))
    assert refused.value.issue == "assignment-changed"


# Checks.


RESULT = CheckResult("make test", 1, "0" * 64, 2)


def test_a_pass_records_the_tip_it_was_run_on() -> None:
    task = task_at("CHECK", check_failures=3)
    now, text = decided(
        a_graph(task), RecordCheck(task.id, TIP, (RESULT._replace(exit=0),)), facts("checker")
    )
    assert (now.state, now.checked_tip, now.check_failures) == ("WORK_REVIEW", TIP, 0)
    assert text == BODY


@pytest.mark.parametrize(("results", "text"), [((), "no checks"), ((RESULT._replace(exit=0),), "")])
def test_a_pass_of_nothing_says_so(results: tuple[CheckResult, ...], text: str) -> None:
    (event,) = decide(
        a_graph(task_at("CHECK")), RecordCheck("000001", TIP, results), facts("checker")
    )
    assert event.text == text


def test_a_fail_is_kept_for_the_worker_and_not_in_the_text() -> None:
    task = task_at("CHECK", check_failures=1)
    request = RecordCheck(task.id, TIP, (RESULT,), ("make test: exit 1",))
    now, text = decided(a_graph(task), request, facts("checker"))
    assert (now.state, now.check_failures) == ("WORK", 2)
    assert now.findings == Findings("WORK", 2, ("make test: exit 1",))
    assert text == BODY


def test_the_fifth_fail_in_a_row_holds_with_the_findings_as_reason() -> None:
    task = task_at("CHECK", check_failures=4)
    request = RecordCheck(task.id, TIP, (RESULT,), ("make test: exit 1", "lint: exit 2"))
    now, _text = decided(a_graph(task), request, facts("checker"))
    assert (now.state, now.held_reason) == (
        "HELD_WORK",
        "The checks failed 5 times in a row. Last findings:\n- make test: exit 1\n- lint: exit 2",
    )


def test_fails_are_counted_from_the_last_pass_or_resume() -> None:
    story = Story(task_at("WORK"), check_failure_limit=2)
    counts = []
    for number, step in enumerate(("fail", "pass", "fail", "hold", "fail")):
        if step == "hold":
            story.holds()
            story.says(Resume("000001"))
        else:
            story.finishes(tip=f"{number:040d}")
            story.is_checked(1, *(["make: 1"] if step == "fail" else []))
        counts.append((story.task().state, story.task().check_failures))
        if story.task().state == "WORK_REVIEW":
            claim = story.claims(actor="rev")
            story.says(Feedback("000001", ("No.",)), "reviewer", "rev", claim)
    assert counts == [("WORK", 1), ("WORK_REVIEW", 0), ("WORK", 1), ("WORK", 0), ("WORK", 1)]


def test_a_check_of_another_commit_counts_for_nothing() -> None:
    with pytest.raises(Refused, match="another commit"):
        decide(a_graph(task_at("CHECK")), RecordCheck("000001", LATER_TIP), facts("checker"))


def test_a_check_by_a_runner_ends_its_claim() -> None:
    task = task_at("CHECK", held_by="runner")
    now, _text = decided(
        a_graph(task), RecordCheck(task.id, TIP), facts("checker", "runner", task.claim)
    )
    assert (now.state, now.claim) == ("WORK_REVIEW", None)


# Hold.


def test_a_hold_by_the_holder_ends_the_claim_and_keeps_the_reason() -> None:
    task = task_at("PLAN", held_by="bob")
    now, _text = decided(
        a_graph(task), Hold(task.id, " Which one? "), facts("planner", "bob", task.claim)
    )
    assert (now.state, now.held_reason, now.claim) == ("HELD_PLAN", "Which one?", None)


# Landing, as far as it is decided here.


def test_a_landed_task_says_with_which_commit() -> None:
    task = task_at("MANAGER_REVIEW")
    now, text = decided(
        a_graph(task), Submit(task.id, landing=Landing(TIP, LANDED, "squash")), facts()
    )
    assert (now.state, now.outcome, now.landed, text) == ("CLOSED", "landed", LANDED, BODY)


def test_a_landing_that_was_not_prepared_is_tried_again() -> None:
    with pytest.raises(Busy):
        decide(a_graph(task_at("MANAGER_REVIEW")), Submit("000001"), facts())


@pytest.mark.parametrize("tips", [{"checked_tip": LATER_TIP}, {"submitted_tip": LATER_TIP}])
def test_only_the_reviewed_and_checked_tip_lands(tips: dict[str, Any]) -> None:
    task = task_at("MANAGER_REVIEW", **tips)
    with pytest.raises(Refused, match="not at the commit that was reviewed and checked"):
        decide(a_graph(task), Submit(task.id, landing=Landing(TIP, LANDED, "merge")), facts())


def test_nothing_lands_while_a_dependency_is_open() -> None:
    task = task_at("MANAGER_REVIEW", depends_on=("000002", "000003"))
    graph = a_graph(task, task_at("WORK", 2), task_at("CLOSED", 3))
    with pytest.raises(Refused, match="while it needs 000002"):
        decide(graph, Submit(task.id, landing=Landing(TIP, LANDED, "merge")), facts())


def test_nothing_lands_while_a_child_is_open() -> None:
    graph = a_graph(task_at("MANAGER_REVIEW"), task_at("NEW", 2, parent="000001"))
    with pytest.raises(Refused, match="children are open: 000002"):
        decide(graph, Submit("000001", landing=Landing(TIP, LANDED, "merge")), facts())


# The straight way, and the way of a body that must not change.


def test_a_task_goes_the_straight_way_from_new_to_landed() -> None:
    story = Story()
    story.creates()
    story.goes_to("CLOSED")
    assert [event.target for event in story.past if event.is_transition] == [
        "NEW", "DESIGN", "DESIGN_REVIEW", "PLAN", "PLAN_REVIEW", "WORK", "CHECK", "WORK_REVIEW",
        "MANAGER_REVIEW", "CLOSED",
    ]  # fmt: skip


@pytest.mark.parametrize("body", SACRED)
def test_what_was_given_as_text_stays_the_beginning_of_it(body: bytes) -> None:
    story = Story()
    story.creates(body=body)
    seen = [story.body()]
    story.says(Edit("000001", set=(("title", "Another"),)))
    story.says(Submit("000001"))
    seen.append(story.body())
    story.claims()
    story.holds()
    story.says(Resume("000001"))
    seen.append(story.body())
    story.goes_to("WORK_REVIEW")
    seen.append(story.body()[: len(body)])
    assert seen == [body] * 4


def test_the_text_of_a_review_is_that_of_its_author() -> None:
    task = task_at("DESIGN_REVIEW")
    assert draft_of(task.draft or Draft("", 0), body_of(task)) == b"\n" + section("## Design")
