"""`git tasks ready`: what could be taken, first to last."""

from __future__ import annotations

import os

from gittasks.cli import frame, rows
from gittasks.domain.errors import NothingFound
from gittasks.workflow import queries
from gittasks.workflow.answers import announced, as_tasks


@frame.command("ready", past=True)
@frame.option("--limit", type=frame.IntRange(min=0), metavar="N", help="at most N tasks (100)")
@frame.option("--one", is_flag=True, help="only the first; exit 10 if there is none")
def command(session: frame.Session, limit: int | None, one: bool) -> None:
    """List what could be taken, in dispatch order.

    With --role, only what that role could take; with --as, nothing assigned to somebody else.
    """
    project = session.project
    said = session.options
    most = 1 if one else queries.ROW_LIMIT if limit is None else limit
    found = queries.ready(
        project,
        said.role or os.environ.get("GITTASKS_ROLE") or None,
        most,
        said.actor or os.environ.get("GITTASKS_AGENT") or None,
    )
    if one:
        found = found._replace(left_out=0)
        if not found.rows:
            raise NothingFound("Nothing is ready.", "Run `git tasks status` to see what waits.")
    if session.out.json:
        tasks = queries.tasks_of(project, (row.id for row in found.rows))
        objects = as_tasks(tasks, redacted=True)
        session.answer("ready", objects, more=announced(found, redacted=True))
        return
    from gittasks.domain.redact import redact

    session.out.rows(
        [f"{row.id}  {row.state:<13}  {redact(row.title)}" for row in found.rows], head=6
    )
    rows.tell(session, found, redacted=True)
