"""Feedback of reviews, and the results of checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain import guards
from gittasks.domain.errors import AlreadyClaimed, Refused, UsageFault, WrongRole
from gittasks.domain.events import CheckPassed, CheckRefuted, FeedbackGiven
from gittasks.domain.machine import STAGE
from gittasks.domain.rules.decision import (
    Decision,
    not_allowed,
    require_holder,
    require_manager,
    require_open,
    require_owner,
    require_same_assignment,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.domain.requests import Feedback, RecordCheck
    from gittasks.domain.task import Task


def feedback(decision: Decision, request: Feedback) -> None:
    """Sends findings back; one rejection too many holds the task."""
    findings = tuple(item.strip() for item in request.findings if item.strip())
    if not findings:
        raise UsageFault("There is no finding in this feedback.", "Give one with -m or -F.")
    task = decision.task(request.task)
    require_open(task, "get feedback")
    stage = STAGE[task.state]
    if stage.back is None or task.state == "CHECK":
        raise not_allowed(task, "feedback")
    text = "\n".join(f"- {item}" for item in findings)
    if task.state == "MANAGER_REVIEW":
        require_manager(decision, task, "send back")
        change = FeedbackGiven(findings, 1, task.rejections, None, request.cost)
        decision.add(task, change, stage.back, text=text)
        return
    require_owner(decision, task, "send back")
    require_holder(decision, task, "send back")
    require_same_assignment(decision, task, request)
    guards.require(task, request.guard)
    rejections = task.rejections + 1
    held = None
    if rejections >= decision.facts.rejection_limit:
        held = _rejection_reason(decision, task, findings, rejections)
    change = FeedbackGiven(findings, rejections, rejections, held, request.cost)
    target = stage.held if held else stage.back
    decision.add(task, change, target, claim=task.claim, text=text)


def _rejection_reason(
    decision: Decision, task: Task, findings: Sequence[str], rejections: int
) -> str:
    """Returns the reason of a hold by rejection: the last round's findings, then the earlier."""
    earlier: list[str] = []
    rounds = rejections - 1
    for event in decision.facts.history(task.id):
        if rounds == 0:
            break
        if isinstance(event.change, FeedbackGiven) and event.source == task.state:
            earlier.extend(event.change.findings)
            rounds -= 1
    lines = [f"Rejected {rejections} times at {task.state}. Last findings:"]
    lines += [f"- {item}" for item in findings]
    if earlier:
        lines.append("Earlier findings:")
        lines += [f"- {item}" for item in earlier]
    return "\n".join(lines)


def record_check(decision: Decision, request: RecordCheck) -> None:
    """Records what the checks of the submitted tip have said."""
    task = decision.task(request.task)
    require_open(task, "be checked")
    if task.state != "CHECK":
        raise not_allowed(task, "check to record")
    if decision.facts.speaker.role != "checker":
        raise WrongRole(
            f"Only the checker may record a check of {task.id}.",
            f"Run `git tasks check {task.id} --record`.",
            task.id,
        )
    if task.claim is not None and decision.facts.speaker.claim != task.claim:
        raise AlreadyClaimed(
            f"The check of {task.id} is held by {task.claimed_by}.", "Let it finish.", task.id
        )
    if request.tip != task.submitted_tip:
        raise Refused(
            f"The checks ran on another commit than the one submitted for {task.id}.",
            "Run the checks again.",
            task.id,
        )
    if not request.findings:
        text = "" if request.results else "no checks"
        decision.add(task, CheckPassed(request.results), "WORK_REVIEW", claim=task.claim,
                     commit=request.tip, text=text)  # fmt: skip
        return
    failures = task.check_failures + 1
    held = None
    if failures >= decision.facts.check_failure_limit:
        listed = "\n".join(f"- {item}" for item in request.findings)
        held = f"The checks failed {failures} times in a row. Last findings:\n{listed}"
    change = CheckRefuted(request.findings, request.results, failures, held)
    text = "\n".join(f"- {item}" for item in request.findings)
    decision.add(task, change, "HELD_WORK" if held else "WORK", claim=task.claim,
                 commit=request.tip, text=text)  # fmt: skip
