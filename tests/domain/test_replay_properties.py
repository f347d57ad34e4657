"""Whatever two clones do alone, each of their events is there once when they have met."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain.config import Project
from gittasks.domain.events import Event
from tests.domain.test_properties import Dice, World, _check_tasks, _check_ways
from tests.support.builders import hexadecimal
from tests.support.examples import examples
from tests.support.meetings import Clone, Meeting, meets

LIMITS = Project("main", check_failure_limit=3)
COMMON, ALONE = 60, 40


class Alone(World):
    """A clone in which anybody asks for anything while nobody else sees it."""

    def __init__(self, dice: Dice, clone: Clone) -> None:
        super().__init__(dice)
        self.clone = clone
        self.graph, self.past, self.now = clone.graph, clone.past, clone.now

    def fresh(self, digits: int = 32) -> str:
        """Returns digits that no clone has had before."""
        self.count += 1
        return hexadecimal(f"{self.clone.name} {len(self.past)} {self.count}", digits)

    def carry_out(self, events: Sequence[Event]) -> None:
        """Takes events over as this clone's own."""
        self.clone.now = self.now
        self.clone.has(*(e._replace(event_id=self.fresh()) for e in events))
        self.graph = self.clone.graph


def _acts(clone: Clone, dice: Dice, steps: int) -> None:
    alone = Alone(dice, clone)
    for _ in range(steps):
        alone.asks()


def _together(dice: Dice) -> Clone:
    clone = Clone(name="all", settings=LIMITS)
    _acts(clone, dice, COMMON)
    clone.local.clear()
    return clone


def _clones(seed: int) -> tuple[Dice, Clone, Clone]:
    dice = Dice(seed)
    common = _together(dice)
    theirs, ours = common.twin("a"), common.twin("b")
    _acts(theirs, dice, ALONE)
    _acts(ours, dice, ALONE)
    return dice, theirs, ours


def _check(meeting: Meeting) -> None:
    graph = meeting.clone.graph
    _check_tasks(graph)
    _check_ways(graph)
    odd = [why for _, why in meeting.replayed.rejected if why.startswith("it cannot be carried")]
    assert odd == []


SEEDS = st.integers(0, 2**32)


@examples(60)
@given(SEEDS)
def test_each_event_of_a_clone_is_there_once_when_it_has_met_another_one(seed: int) -> None:
    _, theirs, ours = _clones(seed)
    _check(meets(theirs, ours))


@examples(30)
@given(SEEDS)
def test_a_clone_that_meets_one_after_the_other_loses_nothing(seed: int) -> None:
    dice, theirs, ours = _clones(seed)
    once = meets(theirs, ours)
    faster = theirs.twin("c")
    _acts(faster, dice, ALONE)
    once.clone.local.clear()
    again = Clone(name="b", settings=LIMITS)
    again.graph, again.past = theirs.graph, list(theirs.past)
    again.now = once.clone.now
    again.has(*once.events)
    _check(meets(faster, again))
