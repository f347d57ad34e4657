"""Approves commands that came with the ledger, for this clone alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import WrongRole
from gittasks.workspaces.trust import Approval, Trust

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.workflow.project import Project


class Waiting(NamedTuple):
    """The commands of one task that nobody here has approved."""

    task: str
    commands: tuple[str, ...]


def trust_of(project: Project) -> Trust:
    """Returns the approvals of this clone."""
    return Trust(project.state_dir, project.config.get("gittasks.trust"))


def approve(project: Project, spelling: str | None) -> tuple[str, ...]:
    """Approves the checks of a task as they stand now; returns those that were new."""
    actor = _require_person(project)
    task = project.task(project.resolve(spelling))
    return trust_of(project).approve(task.checks, actor, project.clock())


def approve_own(project: Project, commands: Sequence[str], actor: str) -> None:
    """Approves what the manager typed here, where this clone approves anything."""
    trust = trust_of(project)
    if commands and not trust.never:
        trust.approve(commands, actor, project.clock())


def revoke(project: Project, spelling: str | None) -> tuple[str, ...]:
    """Takes the approval of a task's checks back, without a task every approval."""
    _require_person(project)
    if spelling is None:
        return trust_of(project).revoke()
    return trust_of(project).revoke(project.task(project.resolve(spelling)).checks)


def approvals(project: Project) -> tuple[Approval, ...]:
    """Returns everything that was approved in this clone, oldest first."""
    return trust_of(project).approvals()


def waiting(project: Project) -> list[Waiting]:
    """Returns the open tasks with commands that nobody here has approved."""
    from gittasks.workflow.queries import snapshot_of

    trust = trust_of(project)
    found = []
    for task in snapshot_of(project).all_tasks(include_closed=False):
        commands = trust.untrusted(task.checks)
        if commands:
            found.append(Waiting(task.id, commands))
    return found


def _require_person(project: Project) -> str:
    speaker = project.speaker("trust")
    if speaker.role != "manager":
        raise WrongRole(
            "Only the person at this machine may approve commands.",
            "Run `git tasks whoami` to see why you are somebody else.",
        )
    return speaker.actor
