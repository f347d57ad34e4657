"""Moves a task below another one, or among its siblings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gittasks.domain.requests import Reorder, Reparent

if TYPE_CHECKING:
    from gittasks.workflow.project import Outcome, Project


def reparent(project: Project, spelling: str | None, parent: str | None) -> Outcome:
    """Moves the task below a parent, or to the top where there is none."""
    task = project.resolve(spelling)
    if parent is not None:
        parent = project.resolve(parent)
    appended = project.apply(Reparent(task, parent), project.speaker("reparent", task))
    return project.outcome(task, appended)


def reorder(
    project: Project,
    spelling: str | None,
    where: Literal["before", "after", "first", "last"],
    sibling: str | None = None,
) -> Outcome:
    """Moves the task before or after a sibling, or to one end."""
    task = project.resolve(spelling)
    if sibling is not None:
        sibling = project.resolve(sibling)
    appended = project.apply(Reorder(task, where, sibling), project.speaker("reorder", task))
    return project.outcome(task, appended)
