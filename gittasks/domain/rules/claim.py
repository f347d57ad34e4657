"""Claim and release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import AlreadyClaimed, NotClaimed
from gittasks.domain.events import Claimed, EventRole, Released
from gittasks.domain.machine import STAGE
from gittasks.domain.rules.decision import (
    Decision,
    not_allowed,
    require_manager,
    require_open,
    require_owner,
)
from gittasks.domain.times import timestamp

if TYPE_CHECKING:
    from gittasks.domain.requests import Claim, Release
    from gittasks.domain.task import Task


def claim(decision: Decision, request: Claim) -> None:
    """Gives a task to who asks, after an expired claim has been released."""
    task = decision.task(request.task)
    require_open(task, "be claimed")
    stage = STAGE[task.state]
    if not stage.claimable:
        raise not_allowed(task, "claim")
    require_owner(decision, task, "claim")
    if task.claim is not None:
        if not _has_expired(decision, task):
            if decision.facts.speaker.claim == task.claim:
                return
            raise AlreadyClaimed(
                f"The task {task.id} is held by {task.claimed_by}.",
                "Take another one with `git tasks claim --next`.",
                task.id,
            )
        decision.add(task, Released("expired"), role="tool", claim=task.claim)
        task = decision.task(task.id)
    change = Claimed(
        timestamp(request.lease_expires),
        request.branch,
        request.base,
        request.dispatched,
        request.assignment,
        request.sandbox,
        request.prompts,
    )
    decision.add(task, change, claim=request.claim, commit=request.dispatched)


def is_expired(task: Task, now: int, renewed: str | None = None) -> bool:
    """Tells whether the lease of a task's claim has run out at a time in seconds since 1970.

    `renewed` is the end that the claim was given later, if it was; the later one counts.
    """
    if task.lease_expires is None:
        return False
    return max(task.lease_expires, renewed or "") <= timestamp(now)


def _has_expired(decision: Decision, task: Task) -> bool:
    """Tells whether a lease has run out, and asks for renewals only where it looks like it."""
    facts = decision.facts
    return is_expired(task, facts.now) and is_expired(task, facts.now, facts.renewed(task))


def release(decision: Decision, request: Release) -> None:
    """Ends a claim unfinished: by its holder, by force, by time, or because its process died."""
    task = decision.task(request.task)
    require_open(task, "be released")
    speaker = decision.facts.speaker
    if request.why == "forced":
        require_manager(decision, task, "release by force")
    if task.claim is None:
        raise NotClaimed(f"Nobody holds {task.id}.", task=task.id)
    match request.why:
        case "expired":
            if not _has_expired(decision, task):
                raise AlreadyClaimed(
                    f"The lease of {task.claimed_by} on {task.id} has not run out.", task=task.id
                )
        case "forced" | "died":
            pass
        case _:
            if speaker.claim != task.claim:
                raise AlreadyClaimed(
                    f"The task {task.id} is held by {task.claimed_by}, not by you.",
                    "The manager may take it away with --force.",
                    task.id,
                )
    role: EventRole | None = None
    if request.why in ("expired", "died"):
        role = "tool"
    elif request.why == "released":
        role = STAGE[task.state].role
    change = Released(request.why, request.reason, request.cost)
    decision.add(task, change, role=role, claim=task.claim, text=request.reason or "")
