"""Whatever clones do alone, each of their events is there once when they have met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain.config import Project
from gittasks.domain.events import CHANGES, Event, Rejected
from gittasks.domain.replay import replay
from gittasks.domain.replayed import Local, Replayed
from gittasks.domain.task import STATES
from tests.domain.test_properties import _check_tasks, _check_ways
from tests.support.anybody import BODIES, Dice, World
from tests.support.builders import hexadecimal
from tests.support.examples import examples
from tests.support.meetings import Clone, Meeting, applied, check_ids, meets

LIMITS = Project("main", check_failure_limit=3)
TOGETHER, ALONE = 60, 40
CLONES, ROUNDS, BUSY = 4, 30, 8


class Alone(World):
    """A clone in which anybody asks for anything while nobody else sees it."""

    def __init__(self, dice: Dice, clone: Clone) -> None:
        super().__init__(dice)
        self.clone = clone
        self.graph, self.past, self.now = clone.graph, clone.past, clone.now

    def fresh(self, digits: int = 32) -> str:
        """Returns digits that no clone has had before."""
        return hexadecimal(f"{self.dice.random.getrandbits(64)}", digits)

    def carry_out(self, events: Sequence[Event]) -> None:
        """Takes events over as this clone's own."""
        self.clone.now = self.now
        self.clone.has(*(event._replace(event_id=self.fresh()) for event in events))
        self.graph = self.clone.graph


def _acts(clone: Clone, dice: Dice, steps: int) -> None:
    alone = Alone(dice, clone)
    for _ in range(steps):
        alone.asks()
    clone.now = alone.now


def _apart(seed: int) -> tuple[Dice, Clone, Clone]:
    """Returns two clones that have had a past together, and have then been alone."""
    dice = Dice(seed)
    common = Clone(name="all", settings=LIMITS)
    _acts(common, dice, TOGETHER)
    theirs, ours = common.twin("a"), common.twin("b")
    _acts(theirs, dice, ALONE)
    _acts(ours, dice, ALONE)
    return dice, theirs, ours


def _check(meeting: Meeting, local: Sequence[Local]) -> None:
    _check_tasks(meeting.clone.graph)
    _check_ways(meeting.clone.graph)
    for event, why in meeting.replayed.rejected:
        assert not why.startswith("it cannot be carried out"), event
    said = "\n".join(event.text for event in meeting.events)
    there = {step.source: step.event for step in meeting.replayed.steps}
    for place, one in enumerate(local):
        if isinstance(there[place].change, Rejected) and one.event.kind != "rejected":
            assert one.message in said
            assert one.event.body is None or _words(one) in said


def _words(one: Local) -> str:
    body = one.event.body or b""
    new = body[len(one.body) :] if body.startswith(one.body) else body
    return new.decode("utf-8", "backslashreplace")


SEEDS = st.integers(0, 2**32)


@examples(60)
@given(SEEDS)
def test_each_event_of_a_clone_is_there_once_when_it_has_met_another_one(seed: int) -> None:
    _, theirs, ours = _apart(seed)
    _check(meets(theirs, ours), ours.local)


@examples(30)
@given(SEEDS)
def test_a_clone_that_others_overtake_loses_nothing(seed: int) -> None:
    dice, theirs, ours = _apart(seed)
    once = meets(theirs, ours)
    faster = theirs.twin("c")
    _acts(faster, dice, ALONE)
    _check(meets(faster, once.clone), once.clone.local)


@examples(20)
@given(SEEDS)
def test_clones_that_meet_at_one_remote_have_the_same_in_the_end(seed: int) -> None:
    dice = Dice(seed)
    remote = Clone(name="remote", settings=LIMITS)
    clones = [remote.twin(name) for name in "abcd"[:CLONES]]
    made: set[str] = set()
    for turn in range(ROUNDS + CLONES):
        at = turn % CLONES if turn >= ROUNDS else dice.number(CLONES)
        clone = clones[at]
        known = len(clone.past)
        _acts(clone, dice, dice.number(BUSY) if turn < ROUNDS else 0)
        made |= {event.event_id for event in clone.past[known:]}
        clones[at] = clone = applied(remote, _met(remote, clone), clone.name)
        if turn >= ROUNDS or dice.likely():
            remote = clone.twin("remote")
            clone.local.clear()
    ends = [applied(remote, _met(remote, clone), clone.name) for clone in clones]
    assert all((end.graph, end.past) == (remote.graph, remote.past) for end in ends)
    names = [event.event_id for event in remote.past]
    assert len(set(names)) == len(names)
    assert made <= set(names)
    _check_tasks(remote.graph)
    _check_ways(remote.graph)


def _met(remote: Clone, clone: Clone) -> Replayed:
    replayed = replay(remote.common(), clone.local)
    check_ids(remote.past, clone.local, replayed)
    return replayed


# ------------------------------------------------------------------------------------- odd events


ODD: dict[str, Sequence[Any]] = {
    "task": (None, "000001", "000003", "", "x"),
    "uid": (None, "", "x"),
    "source": (None, *STATES),
    "target": (None, *STATES),
    "claim": (None, "0" * 32, ""),
    "role": ("manager", "worker", "reviewer", "tool", "operator", "none", "nobody"),
    "actor": ("", "\udcff\n", "x" * 3_000),
    "at": (0, -1, 2**40),
    "commit": (None, "", "b" * 40),
    "text": ("", "\x00\n" * 90, "superseded by 000001"),
    "body": (None, *BODIES),
    "event_id": ("0" * 32,),
}
VALUES: Sequence[Any] = (
    None, "", "x", "000001", "DESIGN", "landed", 0, -1, True, (), ("000001",), ("", ""), (("title", "x"),),
    (("depends_on", ("000002", "000001")),), (("x", 1), ("parent", "000001")), {"a": 1}, b"x", 1.5,
)  # fmt: skip


def _spoiled(dice: Dice, one: Local) -> Local:
    """Returns an event with something in it that no tool writes."""
    event = one.event
    for _ in range(1 + dice.number(2)):
        name = dice.one(list(ODD))
        if dice.likely():
            change = event.change if dice.likely() else _some_change(dice)
            field = dice.one(change._fields) if change._fields else None
            fields = {field: dice.one(VALUES)} if field else {}
            event = event._replace(change=change._replace(**fields))
        else:
            event = event._replace(**{name: dice.one(ODD[name])})
    body = one.body if dice.likely() else dice.one(BODIES)
    return one._replace(event=event, task=one.task if dice.likely() else None, body=body)


def _some_change(dice: Dice) -> Any:
    cls = dice.one(list(CHANGES.values()))
    needed = [name for name in cls._fields if name not in cls._field_defaults]
    return cls(**{name: dice.one(VALUES) for name in needed})


@examples(150)
@given(SEEDS)
def test_no_event_whatever_is_in_it_stops_a_meeting(seed: int) -> None:
    dice, theirs, ours = _apart(seed)
    local = [one if dice.likely() else _spoiled(dice, one) for one in ours.local]
    replayed = replay(theirs.common(), local)
    made = [step.event.event_id for step in replayed.steps]
    assert len(set(made)) == len(made)
    done = [step.source for step in replayed.steps if step.source is not None]
    assert len(set(done)) == len(done)
