"""Holding a task: stop and ask the manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.requests import Hold
from gittasks.workflow import outbox
from gittasks.workflow.dispatch import forget_claim, require_no_landing

if TYPE_CHECKING:
    from gittasks.workflow.project import Outcome, Project


def hold(project: Project, spelling: str | None, reason: str) -> Outcome:
    """Holds a task with a reason; the claim ends and whoever held it is fenced off."""
    task_id = project.resolve(spelling)
    project.task(task_id)
    speaker = project.speaker("hold", task_id)
    request = Hold(task_id, reason)
    if outbox.folder_of(project):
        return outbox.leave(project, request, speaker, "hold", reason=reason)
    require_no_landing(project, task_id)
    appended = project.apply(request, speaker)
    forget_claim(project, speaker, task_id)
    return project.outcome(task_id, appended)
