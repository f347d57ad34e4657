"""Resuming a held task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.requests import Resume

if TYPE_CHECKING:
    from gittasks.workflow.project import Outcome, Project


def resume(project: Project, spelling: str | None, remark: str | None = None) -> Outcome:
    """Lets a held task go on in the first state of its phase, or wait for its dependencies."""
    task_id = project.resolve(spelling)
    project.task(task_id)
    speaker = project.speaker("resume", task_id)
    return project.outcome(task_id, project.apply(Resume(task_id, remark), speaker))
