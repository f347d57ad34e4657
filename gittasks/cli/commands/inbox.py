"""`git tasks inbox`: the decisions that wait for the manager, each with its command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.cli import frame, rows
from gittasks.workflow import queries
from gittasks.workflow.answers import announced, as_waiting

if TYPE_CHECKING:
    from gittasks.workflow.queries import Rows


@frame.command("inbox", past=True)
@frame.option("--limit", type=frame.IntRange(min=0), metavar="N", help="at most N rows (100)")
@frame.option("--watch", is_flag=True, help="stay, and print the inbox again whenever it changed")
def command(session: frame.Session, limit: int | None, watch: bool) -> int:
    """List the decisions that wait for the manager, most urgent first."""
    most = queries.ROW_LIMIT if limit is None else limit

    def look() -> tuple[Rows, list[str]]:
        return queries.inbox(session.project, most), queries.kept_tips(session.project)

    if not watch:
        _print(session, *look())
        return 0
    from gittasks.cli import following  # whoever looks once does not pay for it

    return following.repeated(session, look, lambda seen: _print(session, *seen))


def _print(session: frame.Session, found: Rows, kept: list[str]) -> None:
    if session.out.json:
        objects = [as_waiting(row) for row in found.rows]
        more = announced(found, redacted=True)
        session.answer("inbox", objects, more={**more, "kept_tips": kept} if kept else more)
        return
    session.out.table(
        [rows.waiting_cells(session, row) for row in found.rows], ("yellow", None, "dim")
    )
    rows.tell(session, found, redacted=True)
    if len(kept) == 1:
        session.out.say(f"An earlier tip of the ledger is kept at {kept[0]}; see `git tasks fsck`.")
    elif kept:
        # A clone that shares keeps one at each replay.
        session.out.say(f"{len(kept)} earlier tips of the ledger are kept; see `git tasks fsck`.")
