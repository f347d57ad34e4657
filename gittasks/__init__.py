"""Tasks for a team of agents, kept as commits in the repository they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gittasks.workflow.opened import Opened

__version__ = "0.1.0"


def open(path: str | None = None) -> Opened:
    """Returns the ledger of a repository for programs that ask; raises NotARepository."""
    from gittasks.workflow.opened import Opened
    from gittasks.workflow.project import Options, Project

    return Opened(Project.open(Options(path)))
