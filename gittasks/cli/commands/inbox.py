"""`git tasks inbox`: the decisions that wait for the manager, each with its command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.cli import frame, rows
from gittasks.workflow import queries

if TYPE_CHECKING:
    from gittasks.workflow.queries import Waiting


@frame.command("inbox")
@frame.option("--limit", type=frame.IntRange(min=0), metavar="N", help="at most N rows (100)")
def command(session: frame.Session, limit: int | None) -> None:
    """List the decisions that wait for the manager, most urgent first."""
    found = queries.inbox(session.project, queries.ROW_LIMIT if limit is None else limit)
    if session.out.json:
        objects = [as_object(row) for row in found.rows]
        session.answer("inbox", objects, more=rows.announced(found, redacted=True))
        return
    session.out.table([cells(session, row) for row in found.rows], ("yellow", None, "dim"))
    rows.tell(session, found, redacted=True)


def as_object(row: Waiting) -> dict[str, Any]:
    """Returns one row as JSON has it: the task, and why and since when it waits."""
    from gittasks.domain.redact import redact

    return {
        **rows.as_objects((row.task,), redacted=True)[0],
        "rank": row.rank,
        "reason": redact(row.reason),
        "command": row.command,
        "blocking": row.blocking,
        "waiting_since": row.waiting_since,
    }


def cells(session: frame.Session, row: Waiting) -> tuple[str, ...]:
    """Returns one row as a table has it: id, state, age, command, title with the reason."""
    from gittasks.domain.redact import redact

    task = row.task
    reason = queries.shortened(redact(row.reason))
    return (
        task.id,
        task.state,
        rows.ago(session, row.waiting_since),
        row.command,
        f"{redact(task.title)} ({reason})",
    )
