"""Leases in their whole length: what the documents say, and what was renewed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.times import seconds_of, timestamp
from gittasks.ledger import leases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project
    from gittasks.workspaces.records import ClaimRecord


def still_held(project: Project, tasks: Sequence[Task], now: str) -> frozenset[str]:
    """Returns which of these tasks, whose leases look expired by now, were renewed beyond it."""
    claims = {task.id: task.claim for task in tasks if task.claim is not None}
    ends = leases.renewed_of(project.ledger.reader, claims)
    return frozenset(task for task, end in ends.items() if end > now)


def renew_own(project: Project, task: Task, record: ClaimRecord) -> bool:
    """Renews the lease of a claim held in this clone once less than half of it is left.

    It gets its whole length again, counted from now; tells whether it did.
    """
    if task.claim != record.claim or task.lease_expires is None or task.claimed_at is None:
        return False
    now = project.clock()
    length = seconds_of(task.lease_expires) - seconds_of(task.claimed_at)
    half = now + length // 2
    if length <= 0 or task.lease_expires >= timestamp(half):
        return False
    reader = project.ledger.reader
    if (leases.renewed(reader, task.id, record.claim) or "") >= timestamp(half):
        return False
    leases.renew(project.repo, reader, task.id, record.claim, now + length)
    return True
