"""`git tasks inbox`: the decisions that wait for the manager, each with its command."""

from __future__ import annotations

from gittasks.cli import frame, rows
from gittasks.workflow import queries


@frame.command("inbox")
@frame.option("--limit", type=frame.IntRange(min=0), metavar="N", help="at most N rows (100)")
def command(session: frame.Session, limit: int | None) -> None:
    """List the decisions that wait for the manager, most urgent first."""
    found = queries.inbox(session.project, queries.ROW_LIMIT if limit is None else limit)
    kept = queries.kept_tips(session.project)
    if session.out.json:
        objects = [rows.waiting_object(row) for row in found.rows]
        more = rows.announced(found, redacted=True)
        session.answer("inbox", objects, more={**more, "kept_tips": kept} if kept else more)
        return
    session.out.table(
        [rows.waiting_cells(session, row) for row in found.rows], ("yellow", None, "dim")
    )
    rows.tell(session, found, redacted=True)
    for ref in kept:
        session.out.say(f"An earlier tip of the ledger is kept at {ref}; see `git tasks fsck`.")
