"""Finishes or undoes what a crash left: in the ledger, of landings, and of worktrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.workflow import trees

if TYPE_CHECKING:
    from gittasks.workflow.project import Project


def recover(project: Project) -> tuple[str, ...]:
    """Brings everything of this clone into order; returns what was done, in sentences."""
    from gittasks.ledger import recover as ledger
    from gittasks.workflow.finish import recover_landings

    done = list(ledger.recover(project.ledger))
    project.ledger.refresh()
    # Whether a landing is to be finished or undone stands in the ledger.
    done += recover_landings(project)
    done += trees.repair(project)
    return tuple(done)
