"""Whether the ledger may have moved, for whoever asks all the time, and what moves it from afar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.plumbing import refs
from gittasks.workflow.watch import FETCH_INTERVAL, TICK, from_remote

if TYPE_CHECKING:
    from gittasks.workflow.project import Project

__all__ = ["FETCH_INTERVAL", "fetch", "mark"]


def mark(project: Project) -> bytes | None:
    """Returns what differs whenever the ledger may have moved, None where only git can tell."""
    return refs.mark(project.repo, project.branch)


def fetch(project: Project) -> float:
    """Takes over what others did where this clone shares; returns how many seconds to wait then."""
    refresh = from_remote(project, lambda _words: None)
    if refresh is not None:
        refresh()
    return max(project.config.get_seconds("gittasks.watchInterval", FETCH_INTERVAL), TICK)
