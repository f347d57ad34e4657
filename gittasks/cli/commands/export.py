"""`git tasks export`: every task as JSON lines."""

from __future__ import annotations

from gittasks.cli import frame, rows

_CORRUPT = 9


@frame.command("export", past=True)
@frame.option("--jsonl", is_flag=True, help="one JSON object a line; it is never anything else")
def command(session: frame.Session, jsonl: bool) -> int:
    """Print every task, one JSON object a line with all that its document says.

    `git tasks import` takes such a file. What cannot be read is named, and the exit status is 9.
    """
    from gittasks.workflow import export
    from gittasks.workflow.answers import announced

    found = export.export(session.project)
    if session.out.json and not jsonl:
        session.answer("export", list(found.tasks), more=announced(found.unread))
    else:
        for task in found.tasks:
            session.out.json_line(task)
    rows.tell(session, found.unread)
    return _CORRUPT if found.unread.problems else 0
