"""Feedback: findings back to the author."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gittasks.domain.errors import NotAllowed
from gittasks.domain.requests import Feedback
from gittasks.workflow import outbox
from gittasks.workflow.dispatch import (
    assignment_of,
    guard_of,
    holds,
    own_record,
    put_assignment_away,
    require_no_landing,
)
from gittasks.workspaces import records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.workflow.project import Outcome, Project

_BULLET = re.compile(r"[-*+] +|[0-9]+[.)] +")


def feedback(
    project: Project,
    spelling: str | None,
    findings: Sequence[str] = (),
    *,
    from_landing: bool = False,
) -> Outcome:
    """Sends findings back; at a review of an agent the second time in a row holds the task."""
    task_id = project.resolve(spelling)
    task = project.task(task_id)
    speaker = project.speaker("feedback", task_id)
    given = [*findings, *(_landing_findings(project, task_id) if from_landing else ())]
    request = Feedback(task_id, tuple(given))
    if holds(task, speaker):
        record = own_record(project, speaker)
        body, checks = assignment_of(project, task, record)
        request = request._replace(
            guard=guard_of(project, task, record), body_dispatched=body, checks_dispatched=checks
        )
    if outbox.folder_of(project):
        tip = request.guard.tip if request.guard else None
        return outbox.leave(
            project, request, speaker, "feedback", findings=request.findings, tip=tip
        )
    require_no_landing(project, task_id)
    appended = project.apply(request, speaker)
    put_assignment_away(project, speaker, task_id)
    return project.outcome(task_id, appended)


def findings_in(text: str) -> tuple[str, ...]:
    """Returns the findings of a text: each top bullet is one; without bullets the whole is one."""
    items: list[list[str]] = []
    for line in text.strip().splitlines():
        bullet = _BULLET.match(line)
        if bullet:
            items.append([line[bullet.end() :]])
        elif items:
            items[-1].append(line[2:] if line.startswith("  ") else line)
    if not items:
        return (text.strip(),) if text.strip() else ()
    found = ("\n".join(lines).strip() for lines in items)
    return tuple(item for item in found if item)


def _landing_findings(project: Project, task_id: str) -> Sequence[str]:
    refusal = records.refusal(project.state_dir, task_id, project.task(task_id).submitted_tip)
    if refusal is None:
        raise NotAllowed(
            f"No landing of {task_id} has been refused in this clone.",
            "Give the finding with -m.",
            task_id,
        )
    return (refusal,)
