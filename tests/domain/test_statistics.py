"""Every number of a small ledger, reckoned by hand."""

from __future__ import annotations

import pytest

from gittasks.domain.events import CheckResult
from gittasks.domain.projections import table
from gittasks.domain.projections.costs import Spent
from gittasks.domain.projections.statistics import (
    Done,
    InProgress,
    Spread,
    Standing,
    Statistics,
    Yield,
    spread,
    statistics,
)
from gittasks.domain.projections.table import Fact, World
from gittasks.domain.requests import Abort, Feedback, RecordCheck, Submit
from gittasks.domain.task import Cost, Role, State
from gittasks.domain.times import seconds_of
from tests.support.builders import hexadecimal
from tests.support.decisions import Story, finish

# A Sunday, so that the second day begins another week.
START = seconds_of("2026-11-29T00:00:00Z")
NEXT_DAY = 24 * 60


def minute(number: int) -> int:
    return START + 60 * number


class Ledger(Story):
    """A story in which every event has its minute, and stages have a cost."""

    def at(self, number: int) -> Ledger:
        self.now = minute(number)
        return self

    def creates_one(self, number: int) -> None:
        self.creates(number)

    def dispatches(self, number: int) -> None:
        self.says(Submit(f"{number:06d}", enter="WORK"))

    def submits(self, number: int, actor: str, claim: str, cost: Cost | None = None) -> None:
        task = self.task(number)
        role: Role = "reviewer" if task.state == "WORK_REVIEW" else "worker"
        self.says(finish(task, cost=cost), role, actor, claim)

    def checks(self, number: int, *findings: str, ran: bool = True) -> None:
        tip = self.task(number).submitted_tip or ""
        results = (CheckResult("test", len(findings), "0" * 64),) if ran else ()
        self.says(RecordCheck(f"{number:06d}", tip, results, findings), "checker", "runner")

    def world(self, until: int) -> World:
        """Returns the world of all that happened before a minute."""
        events = [event for event in self.past if event.at < minute(until)]
        oids = [hexadecimal(f"commit {number}", 40) for number in range(len(events) + 1)]
        return table.resume(
            World(),
            (
                Fact(oid, event.at, event, parent=parent)
                for oid, parent, event in zip(oids[1:], oids, events, strict=False)
            ),
        )


def cost(state: State, minutes: int, dollars: float, tokens: int) -> Cost:
    return Cost(state, "one", minutes * 60, dollars, tokens)


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    """Three tasks: one lands after a failing check and a rejection, one comes back, one is aborted."""
    story = Ledger()
    story.at(0).creates_one(1)
    story.at(5).creates_one(2)
    story.at(10).dispatches(1)
    story.at(15).dispatches(2)
    claim = story.at(20).claims(1, "bob")
    other = story.at(30).claims(2, "eve")
    story.at(40).submits(1, "bob", claim, cost("WORK", 20, 0.5, 1000))
    story.at(41).checks(1, "It fails.")
    claim = story.at(45).claims(1, "bob")
    story.at(55).submits(1, "bob", claim, cost("WORK", 10, 0.25, 500))
    story.at(56).checks(1)
    claim = story.at(60).claims(1, "rita")
    review = Feedback("000001", ("Too short.",), cost=cost("WORK_REVIEW", 10, 0.1, 200))
    story.at(70).says(review, "reviewer", "rita", claim)
    claim = story.at(71).claims(1, "bob")
    story.at(81).submits(1, "bob", claim, cost("WORK", 10, 0.25, 500))
    story.at(82).checks(1)
    claim = story.at(84).claims(1, "rita")
    story.at(92).submits(1, "rita", claim, cost("WORK_REVIEW", 8, 0.05, 100))
    story.at(100).lands(1)
    story.at(NEXT_DAY).submits(2, "eve", other)
    story.at(NEXT_DAY + 1).checks(2)
    other = story.at(NEXT_DAY + 2).claims(2, "rita")
    story.at(NEXT_DAY + 10).submits(2, "rita", other)
    story.at(NEXT_DAY + 20).says(Feedback("000002", ("Not this.",)))
    story.at(NEXT_DAY + 60).creates_one(3)
    story.at(NEXT_DAY + 90).says(Abort("000003"))
    return story


def test_all_numbers_are_those_reckoned_by_hand(ledger: Ledger) -> None:
    now = NEXT_DAY + 160
    assert statistics(ledger.world(now), minute(now)) == Statistics(
        stages=(
            # 0-10, 5-15 and 1500-1530 minutes: 600, 600, 1800.
            ("NEW", Spread(3, 600, 1800, 1800, 3000)),
            # 10-40, 41-55, 70-81 and 15-1440: 660, 840, 1800, 85500.
            ("WORK", Spread(4, 1320, 85_500, 85_500, 88_800)),
            # 40-41, 55-56, 81-82 and 1440-1441.
            ("CHECK", Spread(4, 60, 60, 60, 240)),
            # 56-70, 82-92 and 1441-1450: 540, 600, 840.
            ("WORK_REVIEW", Spread(3, 600, 840, 840, 1980)),
            # 92-100 and 1450-1460: 480, 600.
            ("MANAGER_REVIEW", Spread(2, 540, 600, 600, 1080)),
        ),
        # Task 1: 0-100.
        lead=Spread(1, 6000, 6000, 6000, 6000),
        reviews=(
            ("DESIGN_REVIEW", Yield()),
            ("PLAN_REVIEW", Yield()),
            # Task 1 was rejected, then accepted; task 2 accepted at once.
            ("WORK_REVIEW", Yield(accepted=2, rejected=1, first=2, first_accepted=1)),
            # Task 1 landed at once; task 2 was sent back.
            ("MANAGER_REVIEW", Yield(accepted=1, rejected=1, first=2, first_accepted=1)),
        ),
        # Task 1: failed, passed, passed; task 2: passed.
        checks=Yield(accepted=3, rejected=1, first=2, first_accepted=1),
        done=Done(created=3, landed=1, aborted=1),
        days=(("2026-11-29", Done(2, 1, 0)), ("2026-11-30", Done(1, 0, 1))),
        weeks=(("2026-11-23", Done(2, 1, 0)), ("2026-11-30", Done(1, 0, 1))),
        # 20 + 10 + 10 minutes of bob, 10 + 8 of rita.
        spent=Spent(5, 3480, 1.15, 2300),
        spent_by_state=(("WORK", Spent(3, 2400, 1.0, 2000)),
                        ("WORK_REVIEW", Spent(2, 1080, 0.15, 300))),
        spent_by_actor=(("bob", Spent(3, 2400, 1.0, 2000)), ("rita", Spent(2, 1080, 0.15, 300))),
        spent_by_day=(("2026-11-29", Spent(5, 3480, 1.15, 2300)),),
        # Task 2 came back to WORK in minute 1460, which is 140 minutes ago.
        in_progress=InProgress(open=1, started=1, claimed=0, states=(("WORK", Standing(1, 8400)),)),
    )  # fmt: skip


def test_since_a_commit_only_what_ended_after_it_counts(ledger: Ledger) -> None:
    now = NEXT_DAY + 160
    assert statistics(ledger.world(now), minute(now), ledger.world(NEXT_DAY)) == Statistics(
        stages=(
            ("NEW", Spread(1, 1800, 1800, 1800, 1800)),
            # It began the day before, and ended today.
            ("WORK", Spread(1, 85_500, 85_500, 85_500, 85_500)),
            ("CHECK", Spread(1, 60, 60, 60, 60)),
            ("WORK_REVIEW", Spread(1, 540, 540, 540, 540)),
            ("MANAGER_REVIEW", Spread(1, 600, 600, 600, 600)),
        ),
        lead=Spread(),
        reviews=(
            ("DESIGN_REVIEW", Yield()),
            ("PLAN_REVIEW", Yield()),
            ("WORK_REVIEW", Yield(accepted=1, first=1, first_accepted=1)),
            ("MANAGER_REVIEW", Yield(rejected=1, first=1)),
        ),
        checks=Yield(accepted=1, first=1, first_accepted=1),
        done=Done(created=1, aborted=1),
        days=(("2026-11-30", Done(1, 0, 1)),),
        weeks=(("2026-11-30", Done(1, 0, 1)),),
        spent=Spent(),
        spent_by_state=(),
        spent_by_actor=(),
        spent_by_day=(),
        in_progress=InProgress(open=1, started=1, claimed=0, states=(("WORK", Standing(1, 8400)),)),
    )


def test_what_was_rejected_before_does_not_pass_at_once_since(ledger: Ledger) -> None:
    found = statistics(ledger.world(101), minute(101), ledger.world(75))
    assert dict(found.reviews)["WORK_REVIEW"] == Yield(accepted=1)
    assert found.checks == Yield(accepted=1)
    # The second half of the day has two of the five claims.
    assert found.spent == Spent(2, 1080, 0.3, 600)


def test_a_task_without_checks_has_passed_none() -> None:
    story = Ledger()
    story.creates_one(1)
    story.dispatches(1)
    story.finishes(1)
    story.checks(1, ran=False)
    assert statistics(story.world(10**6), minute(0)).checks == Yield()


def test_the_rejections_are_those_of_all_who_judge(ledger: Ledger) -> None:
    assert statistics(ledger.world(NEXT_DAY + 160), minute(0)).rejections == 2


def test_a_share_needs_somebody_who_was_judged() -> None:
    assert (Yield().first_pass, Yield(first=3, first_accepted=2).first_pass) == (None, 0.6667)


def test_an_empty_ledger_has_no_numbers() -> None:
    found = statistics(World(), minute(0))
    assert (found.stages, found.lead, found.done, found.days) == ((), Spread(), Done(), ())
    assert (found.checks, found.spent, found.in_progress) == (Yield(), Spent(), InProgress())


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((7,), Spread(1, 7, 7, 7, 7)),
        ((3, 1), Spread(2, 2, 3, 3, 4)),
        ((2, 1), Spread(2, 1, 2, 2, 3)),
        (range(1, 11), Spread(10, 5, 9, 10, 55)),
        (range(11), Spread(11, 5, 9, 10, 55)),
        (range(1, 21), Spread(20, 10, 18, 20, 210)),
    ],
)
def test_medians_and_percentiles(values: list[int], found: Spread) -> None:
    assert spread(values) == found
