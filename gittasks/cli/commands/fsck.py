"""`git tasks fsck`: is every commit of the ledger one event, and every document well?"""

from __future__ import annotations

from gittasks.cli import frame
from gittasks.domain.errors import Corrupt
from gittasks.workflow import verify


@frame.command("fsck")
def command(session: frame.Session) -> int:
    """Verify every document and every commit of the ledger.

    Each message is carried out again on its parent's tree. Exit 9 if anything is wrong.
    """
    report = verify.fsck(session.project)
    data = {
        "tip": report.tip,
        "commits": report.commits,
        "tasks": report.tasks,
        "findings": [finding._asdict() for finding in report.findings],
        "notes": list(report.notes),
    }
    if not session.answer("fsck", data, report.tip):
        session.out.table(
            [
                (finding.kind, finding.commit[:10], finding.task or "-", finding.message)
                for finding in report.findings
            ],
            ("red", "yellow"),
        )
        for note in report.notes:
            session.out.say(f"note: {note}")
    if report.findings:
        count = len(report.findings)
        session.out.warn(f"error: {count} {'thing is' if count == 1 else 'things are'} wrong.")
        session.out.warn(f"hint: {report.hint}")
        return Corrupt.exit_code
    session.out.say(f"{report.commits} commits and {report.tasks} tasks verify.")
    return 0
