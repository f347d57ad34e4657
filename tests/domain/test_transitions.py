"""Every pair of state and event, by every role, with every kind of claim."""

from __future__ import annotations

from typing import Literal, NamedTuple

import pytest

from gittasks.domain import machine
from gittasks.domain.decide import decide
from gittasks.domain.errors import (
    AlreadyClaimed,
    GittasksError,
    NotAllowed,
    NotClaimed,
    StaleClaim,
    WrongRole,
)
from gittasks.domain.events import (
    Aborted,
    Change,
    CheckPassed,
    CheckRefuted,
    Claimed,
    Edited,
    Event,
    FeedbackGiven,
    Held,
    Noted,
    Reordered,
    Reparented,
    Resumed,
    Submitted,
)
from gittasks.domain.machine import STAGE
from gittasks.domain.requests import (
    Abort,
    Claim,
    Edit,
    Feedback,
    Hold,
    Landing,
    Note,
    RecordCheck,
    Release,
    Reorder,
    Reparent,
    Request,
    Resume,
    SpeakingRole,
)
from gittasks.domain.task import ROLES, STATES, State, Task
from gittasks.domain.task_graph import TaskGraph
from tests.support.builders import NOW, hexadecimal
from tests.support.decisions import (
    BASE,
    HOST,
    LANDED,
    LEASE,
    TIP,
    a_graph,
    after,
    branch_of,
    claim_of,
    facts,
    finish,
    task_at,
)

SPEAKERS: tuple[SpeakingRole | None, ...] = (*ROLES, "tool", None)

Verb = Literal[
    "submit", "feedback", "pass", "fail", "hold", "resume", "abort", "claim", "release",
    "release --force", "edit", "note", "reparent", "reorder",
]  # fmt: skip
VERBS: tuple[Verb, ...] = (
    "submit", "feedback", "pass", "fail", "hold", "resume", "abort", "claim", "release",
    "release --force", "edit", "note", "reparent", "reorder",
)  # fmt: skip


class Row(NamedTuple):
    """What the rules say about a verb at a state: where to, who, and whether by claim."""

    target: State
    roles: tuple[SpeakingRole | None, ...]
    needs_claim: tuple[SpeakingRole | None, ...] = ()


def _agent(state: State, target: State) -> Row:
    role = STAGE[state].role
    return Row(target, (role,), (role,))


OWNERS: dict[State, str] = {
    "NEW": "the manager",
    "BLOCKED": "nobody",
    "DESIGN": "the designer",
    "DESIGN_REVIEW": "the reviewer",
    "PLAN": "the planner",
    "PLAN_REVIEW": "the reviewer",
    "WORK": "the worker",
    "CHECK": "the checker",
    "WORK_REVIEW": "the reviewer",
    "MANAGER_REVIEW": "the manager",
    "HELD_DESIGN": "the manager",
    "HELD_PLAN": "the manager",
    "HELD_WORK": "the manager",
    "CLOSED": "nobody",
}

# The rules once more, as prose has them and not as the machine has them: what is not here is
# refused. Submits of the manager are those of a task without dependencies.
RULES: dict[tuple[State, Verb], Row] = {
    ("NEW", "submit"): Row("DESIGN", ("manager",)),
    ("BLOCKED", "submit"): Row("WORK", ("manager",)),
    ("DESIGN", "submit"): _agent("DESIGN", "DESIGN_REVIEW"),
    ("DESIGN_REVIEW", "submit"): _agent("DESIGN_REVIEW", "PLAN"),
    ("PLAN", "submit"): _agent("PLAN", "PLAN_REVIEW"),
    ("PLAN_REVIEW", "submit"): _agent("PLAN_REVIEW", "WORK"),
    ("WORK", "submit"): _agent("WORK", "CHECK"),
    ("WORK_REVIEW", "submit"): _agent("WORK_REVIEW", "MANAGER_REVIEW"),
    ("MANAGER_REVIEW", "submit"): Row("CLOSED", ("manager",)),
    ("DESIGN_REVIEW", "feedback"): _agent("DESIGN_REVIEW", "DESIGN"),
    ("PLAN_REVIEW", "feedback"): _agent("PLAN_REVIEW", "PLAN"),
    ("WORK_REVIEW", "feedback"): _agent("WORK_REVIEW", "WORK"),
    ("MANAGER_REVIEW", "feedback"): Row("WORK", ("manager",)),
    ("CHECK", "pass"): Row("WORK_REVIEW", ("checker",), ("checker",)),
    ("CHECK", "fail"): Row("WORK", ("checker",), ("checker",)),
    ("HELD_DESIGN", "resume"): Row("DESIGN", ("manager",)),
    ("HELD_PLAN", "resume"): Row("PLAN", ("manager",)),
    ("HELD_WORK", "resume"): Row("WORK", ("manager",)),
    ("MANAGER_REVIEW", "abort"): Row("CLOSED", ("manager",)),
    ("HELD_DESIGN", "abort"): Row("CLOSED", ("manager",)),
    ("HELD_PLAN", "abort"): Row("CLOSED", ("manager",)),
    ("HELD_WORK", "abort"): Row("CLOSED", ("manager",)),
    ("NEW", "abort"): Row("CLOSED", ("manager",)),
    ("BLOCKED", "abort"): Row("CLOSED", ("manager",)),
}
HOLDS: dict[State, State] = {
    "DESIGN": "HELD_DESIGN",
    "DESIGN_REVIEW": "HELD_DESIGN",
    "PLAN": "HELD_PLAN",
    "PLAN_REVIEW": "HELD_PLAN",
    "WORK": "HELD_WORK",
    "CHECK": "HELD_WORK",
    "WORK_REVIEW": "HELD_WORK",
}
ANYWHERE: dict[Verb, tuple[SpeakingRole | None, ...]] = {
    "edit": ("manager",),
    "note": SPEAKERS,
    "reparent": ("manager",),
    "reorder": ("manager",),
}
for _state, _held in HOLDS.items():
    _owner = STAGE[_state].role
    RULES[_state, "hold"] = Row(_held, ("manager", "tool", _owner), (_owner,))
    RULES[_state, "claim"] = Row(_state, (_owner,))
for _state in STATES[:-1]:
    RULES |= {(_state, verb): Row(_state, roles) for verb, roles in ANYWHERE.items()}

ALL: list[tuple[State, Verb]] = [(state, verb) for state in STATES for verb in VERBS]
RELEASES = ("release", "release --force")


def _task(state: State, verb: Verb, *, held: bool | None = None) -> Task:
    """Returns the task at a state, held by bob where the verb wants that."""
    holds = STAGE[state].claimable and verb != "claim" if held is None else held
    task = task_at(state, held_by="bob" if holds else None)
    if state == "BLOCKED" and verb != "submit":
        return task._replace(depends_on=("000003",))
    if state == "CLOSED" and verb == "submit":
        return task._replace(outcome="aborted")
    return task


def _graph(task: Task) -> TaskGraph:
    return a_graph(task, task_at("NEW", 2), task_at("NEW", 3))


def _request(task: Task, verb: Verb) -> Request:
    landing = Landing(TIP, LANDED, "merge")
    requests: dict[Verb, Request] = {
        "submit": finish(task, landing=landing if task.state == "MANAGER_REVIEW" else None),
        "feedback": Feedback(task.id, ("Too long.",)),
        "pass": RecordCheck(task.id, TIP),
        "fail": RecordCheck(task.id, TIP, findings=("make test: 1",)),
        "hold": Hold(task.id, "wait"),
        "resume": Resume(task.id),
        "abort": Abort(task.id),
        "claim": Claim(task.id, hexadecimal("another"), NOW + LEASE, branch_of(1), BASE, BASE),
        "release": Release(task.id),
        "release --force": Release(task.id, why="forced"),
        "edit": Edit(task.id, set=(("priority", 0),)),
        "note": Note(task.id, "Look."),
        "reparent": Reparent(task.id, "000002"),
        "reorder": Reorder(task.id, "last"),
    }
    return requests[verb]


def _refusal(task: Task, verb: Verb, role: SpeakingRole | None, claim: str | None) -> type | None:
    """Returns the kind of refusal that this request meets, None when it is carried out."""
    graph = _graph(task)
    try:
        events = decide(graph, _request(task, verb), facts(role, "bob", claim))
    except GittasksError as refusal:
        return type(refusal)
    assert events
    after(graph, events)
    return None


@pytest.mark.parametrize(("state", "verb"), [p for p in ALL if p[1] not in RELEASES])
def test_a_verb_leads_where_the_rules_say_and_nowhere_else(state: State, verb: Verb) -> None:
    row = RULES.get((state, verb))
    for role in SPEAKERS:
        task = _task(state, verb)
        graph = _graph(task)
        said = facts(role, "bob", task.claim)
        if row is None:
            with pytest.raises(NotAllowed):
                decide(graph, _request(task, verb), said)
        elif role not in row.roles:
            with pytest.raises(WrongRole):
                decide(graph, _request(task, verb), said)
        else:
            events = decide(graph, _request(task, verb), said)
            assert [(e.source, e.target) for e in events] == [(state, row.target)]
            after(graph, events)


@pytest.mark.parametrize("state", STATES)
def test_a_release_is_the_holders_or_by_force_the_managers(state: State) -> None:
    claimable = STAGE[state].claimable
    task = task_at(state, held_by="bob" if claimable else None)
    expected: dict[str, object] = {}
    found: dict[str, object] = {}
    for role in SPEAKERS:
        found[f"{role} holds"] = _refusal(task, "release", role, task.claim)
        found[f"{role}"] = _refusal(task, "release", role, None)
        found[f"{role} forces"] = _refusal(task, "release --force", role, None)
        if state == "CLOSED":
            expected |= {f"{role} holds": NotAllowed, f"{role}": NotAllowed}
            expected[f"{role} forces"] = NotAllowed
            continue
        expected[f"{role} holds"] = None if claimable else NotClaimed
        expected[f"{role}"] = AlreadyClaimed if claimable else NotClaimed
        unforced = None if claimable else NotClaimed
        expected[f"{role} forces"] = unforced if role == "manager" else WrongRole
    assert found == expected


BY_CLAIM = [pair for pair, row in RULES.items() if row.needs_claim]


@pytest.mark.parametrize(("state", "verb"), BY_CLAIM)
def test_whoever_speaks_for_a_claim_presents_the_present_one(state: State, verb: Verb) -> None:
    role = STAGE[state].role
    own, other = claim_of(1), hexadecimal("other")
    held, free = task_at(state, held_by="bob"), task_at(state)
    found = {
        "own": _refusal(held, verb, role, own),
        "none": _refusal(held, verb, role, None),
        "other": _refusal(held, verb, role, other),
        "none, unclaimed": _refusal(free, verb, role, None),
        "other, unclaimed": _refusal(free, verb, role, other),
    }
    if verb in ("pass", "fail"):  # needs no claim, and is refused only while another holds CHECK
        assert found == {
            "own": None,
            "none": AlreadyClaimed,
            "other": AlreadyClaimed,
            "none, unclaimed": None,
            "other, unclaimed": None,
        }
    else:
        assert found == {
            "own": None,
            "none": AlreadyClaimed,
            "other": StaleClaim,
            "none, unclaimed": NotClaimed,
            "other, unclaimed": StaleClaim,
        }


@pytest.mark.parametrize("state", machine.CLAIMABLE)
def test_a_claim_is_refused_while_somebody_holds_the_task(state: State) -> None:
    task = task_at(state, held_by="carl")
    with pytest.raises(AlreadyClaimed, match="held by carl"):
        decide(a_graph(task), _request(task, "claim"), facts(STAGE[state].role, "bob"))


def _accepted(graph: TaskGraph, event: Event) -> set[tuple[State, SpeakingRole | None]]:
    """Returns the states and roles with which the machine would take the event."""
    return {
        (target, role)
        for target in STATES
        for role in SPEAKERS
        if machine.objection(graph, event._replace(target=target, role=role or "none")) is None
    }


@pytest.mark.parametrize(("state", "verb"), list(RULES))
def test_the_machine_takes_a_recorded_step_only_from_whom_the_rules_allow(
    state: State, verb: Verb
) -> None:
    row = RULES[state, verb]
    task = _task(state, verb)
    (event,) = decide(_graph(task), _request(task, verb), facts(row.roles[0], "bob", task.claim))
    # A dispatch says where to by its target alone, so there each entry is as good.
    targets = machine.ENTRIES.values() if state in ("NEW", "BLOCKED") and verb == "submit" else ()
    legal = {(target, role) for target in (row.target, *targets) for role in row.roles}
    assert _accepted(_graph(task), event) == legal


CHANGES: dict[Verb, Change] = {
    "submit": Submitted(),
    "feedback": FeedbackGiven(("Too long.",), 1, 1),
    "pass": CheckPassed(),
    "fail": CheckRefuted(("make test: 1",)),
    "hold": Held("wait"),
    "resume": Resumed(),
    "abort": Aborted(),
    "claim": Claimed("2099-01-01T00:00:00Z", branch_of(1), BASE, BASE),
    "edit": Edited((("priority", 0),)),
    "note": Noted(),
    "reparent": Reparented("000002"),
    "reorder": Reordered("000001i"),
}


@pytest.mark.parametrize(
    ("state", "verb"), [p for p in ALL if p not in RULES and p[1] not in RELEASES]
)
def test_the_machine_objects_to_a_recorded_step_that_the_rules_do_not_have(
    state: State, verb: Verb
) -> None:
    task = _task(state, verb)
    event = Event(
        "", NOW, "bob", "manager", HOST, CHANGES[verb], task.id, task.uid, state, state,
        claim=task.claim or claim_of(1), commit=TIP,
    )  # fmt: skip
    # An abort of a task in work is only ever a part of a larger one, which no event shows.
    part = {("CLOSED", "manager")} if verb == "abort" and state in machine.CLAIMABLE else set()
    assert _accepted(_graph(task), event) == part


@pytest.mark.parametrize("state", STATES)
def test_every_state_but_the_last_can_get_to_closed(state: State) -> None:
    reached = {state}
    while True:
        more = {row.target for row in machine.TRANSITIONS if row.source in reached} - reached
        if not more:
            break
        reached |= more
    assert ("CLOSED" in reached, len(reached) == 1) == (True, state == "CLOSED")


def test_every_state_can_be_reached_from_new() -> None:
    reached: set[State] = {"NEW"}
    while more := {r.target for r in machine.TRANSITIONS if r.source in reached} - reached:
        reached |= more
    assert reached == set(STATES)


@pytest.mark.parametrize("state", STATES)
def test_a_refusal_says_whose_state_it_is_and_what_is_allowed(state: State) -> None:
    told = {"submit", "feedback", "hold", "resume", "abort", "claim"}
    listed = sorted({verb for (at, verb), _row in RULES.items() if at == state and verb in told})
    assert machine.moves_from(state) == (
        f"{state} belongs to {OWNERS[state]}; allowed from here: {', '.join(listed) or 'nothing'}."
    )
