"""What a task has brought: tips of its branch, check runs, verdicts, the landing, named artifacts.

Check runs and verdicts carry the commit of the ledger that recorded them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.events import (
    CheckPassed,
    CheckRefuted,
    CheckResult,
    FeedbackGiven,
    Noted,
    Submitted,
)
from gittasks.domain.machine import REVIEWS
from gittasks.domain.projections.persistent import Persistent
from gittasks.domain.projections.signals import Signal, Signals
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.domain.projections.graph import Step
    from gittasks.domain.task import State

NAME = "artifacts"
SIGNALS: tuple[str, ...] = (
    "work_submitted",
    "check_passed",
    "check_failed",
    "review_accepted",
    "review_rejected",
    "task_landed",
    "artifact_recorded",
)

JUDGED = (*REVIEWS, "MANAGER_REVIEW")
"""The states in which somebody gives a verdict."""


class CheckRun(NamedTuple):
    """One run of the checks: ledger commit, time, commit of the work, verdict, each command."""

    oid: str
    at: int
    commit: str | None
    passed: bool
    results: tuple[CheckResult, ...] = ()


class Review(NamedTuple):
    """One verdict: ledger commit, time, who, in which state, accepted or not, the findings."""

    oid: str
    at: int
    actor: str
    state: State
    accepted: bool
    findings: tuple[str, ...] = ()
    round: int = 0


class Merge(NamedTuple):
    """A landing: ledger commit, time, commit on the base branch (None: closed without), mode."""

    oid: str
    at: int
    commit: str | None
    mode: str | None = None


class Recorded(NamedTuple):
    """An artifact that somebody recorded by name: ledger commit, time, who, name, value."""

    oid: str
    at: int
    actor: str
    name: str
    value: str


class Artifact(NamedTuple):
    """All that one task has brought, oldest first."""

    tips: tuple[str, ...] = ()
    checks: tuple[CheckRun, ...] = ()
    reviews: tuple[Review, ...] = ()
    merge: Merge | None = None
    recorded: tuple[Recorded, ...] = ()


class Artifacts(NamedTuple):
    """The artifacts by task; what has brought nothing has none."""

    tasks: Persistent[Artifact] = Persistent()


def fold(state: Artifacts, step: Step) -> tuple[Artifacts, Signals]:
    """Returns the artifacts after a step, and what it has brought."""
    if step.before is None:
        return state, ()
    task = step.after.id
    found = state.tasks.get(task) or Artifact()
    changed = _changed(found, step)
    if changed is found:
        return state, ()
    signals = tuple(_signals(task, found, changed))
    return Artifacts(state.tasks.with_(task, changed)), signals


def _changed(found: Artifact, step: Step) -> Artifact:
    event, before = step.event, step.before
    assert before is not None
    match event.change:
        case CheckPassed(results=results):
            run = CheckRun(step.oid, event.at, event.commit, True, results)
            return found._replace(checks=(*found.checks, run))
        case CheckRefuted(results=results):
            run = CheckRun(step.oid, event.at, event.commit, False, results)
            return found._replace(checks=(*found.checks, run))
        case FeedbackGiven(findings=findings, round=number):
            verdict = Review(step.oid, event.at, event.actor, before.state, False, findings, number)
            return found._replace(reviews=(*found.reviews, verdict))
        case Submitted():
            return _submitted(found, step, event.change)
        case Noted(artifacts=pairs) if pairs:
            new = (Recorded(step.oid, event.at, event.actor, *pair) for pair in pairs)
            return found._replace(recorded=(*found.recorded, *new))
        case _:
            return found


def _submitted(found: Artifact, step: Step, change: Submitted) -> Artifact:
    event, before = step.event, step.before
    assert before is not None
    if before.state in JUDGED:
        verdict = Review(step.oid, event.at, event.actor, before.state, True)
        found = found._replace(reviews=(*found.reviews, verdict))
    if change.outcome == "landed":
        return found._replace(merge=Merge(step.oid, event.at, event.commit, change.mode))
    if before.state == "WORK" and event.commit is not None:
        return found._replace(tips=(*found.tips, event.commit))
    return found


def _signals(task: str, before: Artifact, after: Artifact) -> Iterator[Signal]:
    for tip in after.tips[len(before.tips) :]:
        yield Signal("work_submitted", NAME, task, (("commit", tip),))
    for run in after.checks[len(before.checks) :]:
        name = "check_passed" if run.passed else "check_failed"
        yield Signal(name, NAME, task, (("commit", run.commit),))
    for one in after.reviews[len(before.reviews) :]:
        name = "review_accepted" if one.accepted else "review_rejected"
        about = (("actor", one.actor), ("state", one.state), ("findings", len(one.findings)))
        yield Signal(name, NAME, task, about)
    if after.merge is not None and before.merge is None:
        yield Signal("task_landed", NAME, task, (("commit", after.merge.commit),))
    for thing in after.recorded[len(before.recorded) :]:
        named = (("name", thing.name), ("value", thing.value))
        yield Signal("artifact_recorded", NAME, task, named)
