"""`git tasks log`: the ledger as history, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.cli import frame
from gittasks.workflow import log, queries

if TYPE_CHECKING:
    from gittasks.workflow.log import Entry


@frame.command("log", past=True)
@frame.argument("task", required=False)
@frame.option("--since", metavar="WHEN", help="only what is newer: a date, an age or a commit")
@frame.option("--limit", type=frame.IntRange(min=0), metavar="N", help="at most N events")
@frame.option("--jsonl", is_flag=True, help="one JSON object a line")
def command(
    session: frame.Session, task: str | None, since: str | None, limit: int | None, jsonl: bool
) -> None:
    """Show the ledger as history, newest first; with TASK, only that task's."""
    project = session.project
    task_id = None if task is None else queries.task_of(project, project.resolve(task)).id
    found = log.log(project, task_id, since=since, limit=limit)
    if jsonl:
        for entry in found:
            session.out.json_line(as_object(entry))
        return
    if session.out.json:
        session.answer("log", [as_object(entry) for entry in found])
        return
    out = session.out
    out.page()
    for entry in found:
        when = queries.time_text(entry.event.at)
        title = getattr(entry.event.change, "title", None)
        about = f": {title}" if title and entry.event.kind == "create" else ""
        out.headed(entry.oid[:10], f" {when[:10]} {when[11:16]}  {entry.subject}{about}")
        if entry.event.text:
            out.block("    " + entry.event.text.strip("\n").replace("\n", "\n    "))


def as_object(entry: Entry) -> dict[str, Any]:
    """Returns one event as JSON has it."""
    event = entry.event
    return {
        "commit": entry.oid,
        "at": queries.time_text(event.at),
        "event": event.kind,
        "task": event.task,
        "from": event.source,
        "to": event.target,
        "actor": event.actor,
        "role": event.role,
        "text": event.text,
        "work_commit": event.commit,
    }
