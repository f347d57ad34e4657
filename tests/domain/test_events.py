"""What an event says in its one line of data, and how strictly that line is read."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain import machine
from gittasks.domain.errors import Corrupt
from gittasks.domain.events import (
    CHANGES,
    Change,
    CheckPassed,
    CheckResult,
    Created,
    Edited,
    Event,
    ExternallyChanged,
    FeedbackGiven,
    Kind,
    Noted,
    Released,
    ReleaseReason,
    Submitted,
    Unblocked,
    brings_body,
    change_from,
    data_of,
)
from gittasks.domain.task import OUTCOMES, STATES, Cost, Draft, State
from tests.support.examples import examples

TEXT = st.text(st.characters(codec=None), max_size=20)
COUNT = st.integers(0, 10**15 - 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXT,
    "str | None": st.none() | TEXT,
    "int": COUNT,
    "bool": st.booleans(),
    "tuple[str, ...]": st.lists(TEXT, max_size=3).map(tuple),
    "Pairs": st.dictionaries(TEXT, TEXT, max_size=3).map(lambda found: tuple(found.items())),
    "JsonPairs": st.dictionaries(
        TEXT, st.none() | TEXT | COUNT | st.lists(TEXT, max_size=2).map(tuple), max_size=3
    ).map(lambda found: tuple(found.items())),
    "State | None": st.none() | st.sampled_from(["DESIGN", "PLAN", "WORK"]),
    "Outcome | None": st.none() | st.sampled_from(OUTCOMES),
    "Draft | None": st.none() | st.builds(Draft, TEXT, COUNT),
    "Cost | None": st.none()
    | st.builds(Cost, st.sampled_from(STATES), TEXT, COUNT, st.floats(0, 1e14), COUNT),
    "tuple[CheckResult, ...]": st.lists(
        st.builds(CheckResult, TEXT, COUNT, TEXT, COUNT, st.booleans()), max_size=3
    ).map(tuple),
    "ReleaseReason": st.sampled_from(get_args(ReleaseReason)),
}


def _changes(kind: Kind) -> st.SearchStrategy[Change]:
    cls = CHANGES[kind]
    shapes = dict(cls.__annotations__)
    return st.builds(cls, **{name: VALUES[shape] for name, shape in shapes.items()})


ANY_CHANGE = st.one_of([_changes(kind) for kind in CHANGES])


@examples(150)
@given(ANY_CHANGE)
def test_what_an_event_says_is_read_back_as_it_was(change: Change) -> None:
    kind = Event("", 0, "", "tool", "", change).kind
    assert change_from(kind, data_of(change)) == change


@examples(60)
@given(ANY_CHANGE)
def test_an_event_is_said_on_one_line_of_plain_characters(change: Change) -> None:
    line = data_of(change)
    assert (line.isascii(), line.isprintable()) == (True, True)


@examples(60)
@given(ANY_CHANGE)
def test_what_is_read_back_is_said_in_the_same_words(change: Change) -> None:
    kind = Event("", 0, "", "tool", "", change).kind
    line = data_of(change)
    assert data_of(change_from(kind, line)) == line


def test_only_what_differs_from_the_default_is_said() -> None:
    assert data_of(Created("Fix", priority=2, labels=("ui",))) == '{"title":"Fix","labels":["ui"]}'


def test_what_is_left_out_has_the_default_of_the_first_version() -> None:
    defaults = {kind: dict(cls._field_defaults) for kind, cls in CHANGES.items()}
    assert defaults == {
        "create": {
            "labels": (), "priority": 2, "checks": (), "depends_on": (), "parent": None,
            "supersedes": None, "follows": None, "assignee": None, "proposed_by": None,
            "former_ids": (), "extra": (),
        },
        "submit": {
            "enters": None, "outcome": None, "draft": None, "mode": None, "no_change": False,
            "remark": None, "cost": None,
        },
        "unblock": {"cause": None},
        "feedback": {"round": 1, "rejections": 0, "held_reason": None, "cost": None},
        "pass": {"results": ()},
        "fail": {"results": (), "failures": 1, "held_reason": None},
        "hold": {"cost": None},
        "resume": {"remark": None},
        "abort": {"reason": None, "cost": None},
        "claim": {"assignment": None, "sandbox": None, "prompts": ()},
        "release": {"why": "released", "reason": None, "cost": None},
        "edit": {"set": (), "unset": (), "body": False, "seen": False},
        "note": {"artifacts": (), "seen": False, "attention": None},
        "reparent": {"parent": None},
        "reorder": {},
        "init": {"project": ()},
        "configure": {"set": (), "unset": (), "path": None},
        "external": {"set": (), "unset": (), "body": False, "created": False},
        "renumber": {},
        "rejected": {"quiet": False, "part": 1, "parts": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "data", "problem"),
    [
        ("explode", "{}", "an event 'explode' that this version does not know"),
        ("note", "{", "is not JSON"),
        ("note", "[" * 100_000, "is not JSON"),
        ("note", "1" * 5000, "is not JSON"),
        ("note", "[]", "is not an object"),
        ("note", '{"colour":1}', "has an unknown field 'colour'"),
        ("create", "{}", "lacks title"),
        ("claim", "{}", "lacks lease_expires, branch, base, dispatched"),
        ("create", '{"title":7}', "has a wrong title: '7'"),
        ("create", '{"title":null}', "has a wrong title: 'None'"),
        ("create", '{"title":"x","priority":true}', "has a wrong priority"),
        ("create", '{"title":"x","priority":"2"}', "has a wrong priority"),
        ("create", '{"title":"x","labels":"ui"}', "has a wrong labels"),
        ("create", '{"title":"x","labels":[1]}', "has a wrong labels"),
        ("create", '{"title":"x","parent":null}', "has a wrong parent"),
        ("submit", '{"enters":"CHECK"}', "has a wrong enters: 'CHECK'"),
        ("submit", '{"enters":["WORK"]}', "has a wrong enters"),
        ("submit", '{"outcome":"done"}', "has a wrong outcome"),
        ("submit", '{"draft":["## Design",1]}', "has a wrong draft"),
        ("submit", '{"draft":{"section":"## Design"}}', "has a wrong draft"),
        ("submit", '{"no_change":1}', "has a wrong no_change"),
        ("pass", '{"results":{}}', "has a wrong results"),
        ("pass", '{"results":[{"command":"x"}]}', "has a wrong results"),
        ("edit", '{"set":[]}', "has a wrong set"),
        ("note", '{"artifacts":{"a":1}}', "has a wrong artifacts"),
        ("release", '{"why":"bored"}', "has a wrong why: 'bored'"),
        *(
            ("hold", '{"reason":"x","cost":{"state":"WORK","slot":"a","seconds":1,"tokens":1,'
             f'"cost":{money}}}}}', "has a wrong cost")
            for money in ("NaN", "Infinity", "-1", "1e99", '"1"', "true", "null")
        ),
    ],
)  # fmt: skip
def test_data_that_does_not_fit_is_corrupt_and_says_where(
    kind: str, data: str, problem: str
) -> None:
    with pytest.raises(Corrupt, match=problem):
        change_from(kind, data)


def test_a_result_may_leave_out_how_long_it_took() -> None:
    data = json.dumps({"results": [{"command": "make", "exit": 0, "digest": "d"}]})
    assert change_from("pass", data) == CheckPassed((CheckResult("make", 0, "d"),))


@pytest.mark.parametrize(
    ("change", "source", "brings"),
    [
        (Created("x"), None, True),
        *((Submitted(), state, state in machine.AUTHOR_STATES) for state in STATES),
        (Edited(), "NEW", False),
        (Edited(body=True), "NEW", True),
        (ExternallyChanged(), "NEW", False),
        (ExternallyChanged(body=True), "NEW", True),
        (ExternallyChanged(created=True), None, True),
        (FeedbackGiven(("x",)), "WORK_REVIEW", False),
        (Noted(), "NEW", False),
    ],
)
def test_four_kinds_of_events_bring_a_text(
    change: Change, source: State | None, brings: bool
) -> None:
    assert brings_body(change, source) is brings


def test_every_change_has_its_word() -> None:
    assert set(CHANGES.values()) == set(get_args(Change))
    assert set(CHANGES) == set(get_args(Kind))


@pytest.mark.parametrize(
    ("source", "target", "moves"),
    [(None, "NEW", True), ("NEW", "NEW", False), ("NEW", "PLAN", True)],
)
def test_an_event_is_a_transition_when_the_state_changes(
    source: State | None, target: State, moves: bool
) -> None:
    event = Event("", 0, "", "tool", "", Unblocked(), source=source, target=target)
    assert event.is_transition is moves


def test_a_reason_to_release_is_one_of_four() -> None:
    assert {Released(why).why for why in get_args(ReleaseReason)} == {
        "released", "expired", "forced", "died",
    }  # fmt: skip
