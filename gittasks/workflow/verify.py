"""Verifies every document and every commit of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gittasks.ledger.verify import Finding
    from gittasks.workflow.project import Project


class Verified(NamedTuple):
    """What a check of the whole ledger found, and what to do about it (None: nothing is wrong)."""

    tip: str
    commits: int
    tasks: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    hint: str | None


def fsck(project: Project) -> Verified:
    """Returns what the whole ledger looks like; raises NoLedger before `init`."""
    from gittasks.ledger.verify import verify

    project.require_ledger()
    report = verify(project.ledger)
    return Verified(*report, _hint(report.findings) if report.findings else None)


def _hint(findings: tuple[Finding, ...]) -> str:
    held = sorted({one.task for one in findings if one.kind == "quarantine" and one.task})
    if held:
        return f"Repair what is kept back with `git tasks edit {held[0]}`, as the manager."
    if any(one.kind == "quarantine" for one in findings):
        return "Run any command that writes, which puts it right, for example `git tasks note ID TEXT`."
    return "Run `git tasks recover` to go back to what verifies."
