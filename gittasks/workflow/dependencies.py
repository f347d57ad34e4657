"""Adds and removes what a task waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.requests import Edit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.workflow.project import Outcome, Project


def add(project: Project, spelling: str | None, needs: Sequence[str]) -> Outcome:
    """Makes the task wait for others too; a ring is refused, edge by edge."""
    needed = tuple(map(project.resolve, needs))
    return _edit(project, Edit(project.resolve(spelling), add_dependencies=needed))


def remove(project: Project, spelling: str | None, needs: Sequence[str]) -> Outcome:
    """Makes the task wait for others no longer, which may free it at once."""
    dropped = tuple(map(project.resolve, needs))
    return _edit(project, Edit(project.resolve(spelling), remove_dependencies=dropped))


def _edit(project: Project, request: Edit) -> Outcome:
    appended = project.apply(request, project.speaker("edit", request.task))
    return project.outcome(request.task, appended)
