"""Verifies every document and every commit of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gittasks.ledger.verify import Report
    from gittasks.workflow.project import Project


__all__ = ["Report", "fsck"]


def fsck(project: Project) -> Report:
    """Returns what the whole ledger looks like; raises NoLedger before `init`."""
    from gittasks.ledger.verify import verify

    project.require_ledger()
    return verify(project.ledger)
