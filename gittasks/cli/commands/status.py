"""`git tasks status`, or nothing at all: where things stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.cli import frame, rows
from gittasks.workflow import queries
from gittasks.workflow import status as standing

if TYPE_CHECKING:
    from gittasks.domain.task import Task
    from gittasks.workflow.queries import Waiting
    from gittasks.workflow.status import Overview
    from gittasks.workflow.task_graph_view import Graphs


@frame.command("status", past=True)
@frame.option("--watch", is_flag=True, help="stay, and say it again whenever it changed")
@frame.option("--include-task-graph", is_flag=True, help="draw the graph of what waits, in JSON")
@frame.option("--gate-limit", type=frame.IntRange(min=0), metavar="N",
              help="draw at most N gates in the graph (2)")  # fmt: skip
def command(
    session: frame.Session, watch: bool, include_task_graph: bool, gate_limit: int | None
) -> int:
    """Say where things stand: your task, the inbox, what is ready, what runs."""
    project = session.project
    if include_task_graph and not session.out.json:
        session.out.say("The task graph is in the JSON answer only; add --json.")

    def look() -> tuple[Overview, Graphs | None]:
        found = standing.overview(project, project.speaker("status").actor)
        if not include_task_graph or not session.out.json:
            return found, None
        from gittasks.workflow import task_graph_view  # cold

        waiting = [row.task.id for row in found.inbox.rows]
        return found, task_graph_view.of_items(project, waiting, gate_limit)

    if not watch:
        _print(session, *look())
        return 0
    from gittasks.cli import following  # whoever looks once does not pay for it

    return following.repeated(session, look, lambda seen: _print(session, *seen))


def _print(session: frame.Session, found: Overview, graphs: Graphs | None) -> None:
    if session.out.json:
        session.answer("status", _as_object(found, graphs))
        return
    out = session.out
    if found.here is not None:
        out.line(f"here     {_line(found.here)}")
    for task in found.mine:
        if found.here is None or task.id != found.here.id:
            out.line(f"yours    {_line(task)}")
    if found.mine_count > len(found.mine):
        out.line(f"         and {found.mine_count - len(found.mine)} more of yours")
    states = ", ".join(f"{n} {state}" for state, n in _ordered(found) if state != "CLOSED")
    out.line(f"open     {states or 'none'}")
    out.line(f"running  {found.running}")
    out.line(f"ready    {found.ready_count}")
    if found.remote is not None:
        news = f", {found.unpublished} not published" if found.unpublished else ""
        out.line(f"shared   {found.remote}{news}")
    out.line(f"inbox    {found.inbox_count}")
    out.table(
        [rows.waiting_cells(session, row) for row in found.inbox.rows],
        ("yellow", None, "dim"),
        indent="  ",
    )
    if found.inbox.left_out:
        out.line(f"  and {found.inbox.left_out} more in `git tasks inbox`")
    rows.tell(session, found.inbox._replace(left_out=0), redacted=True)


def _ordered(found: Overview) -> list[tuple[str, int]]:
    """Returns the counts in the order in which tasks go through the states."""
    from gittasks.domain.task import STATES

    return [(state, found.counts[state]) for state in STATES if found.counts.get(state)]


def _line(task: Task) -> str:
    from gittasks.domain.redact import redact

    return f"{task.id} {task.state} {redact(task.title)}"


def _as_object(found: Overview, graphs: Graphs | None) -> dict[str, Any]:
    """Returns an answer whose size does not grow with the project."""
    return {
        "task": None if found.here is None else _brief(found.here),
        "mine": [_brief(task) for task in found.mine],
        "mine_truncated": found.mine_count - len(found.mine),
        "counts": dict(_ordered(found)),
        "ready_count": found.ready_count,
        "running_count": found.running,
        "inbox_count": found.inbox_count,
        "problem_count": found.problems,
        "sync": None
        if found.remote is None
        else {"remote": found.remote, "unpublished": found.unpublished},
        "attention_queue": {
            "items": _items(found, graphs),
            "truncated": found.inbox.left_out,
        },
        "working_state": {
            "_tag": "Working" if found.running else "Idle",
            "workerCount": found.running,
            "waiting_on": found.waiting_on,
            "children": found.working,
            "children_truncated": found.working_left_out,
        },
    }


def _brief(task: Task) -> dict[str, Any]:
    from gittasks.domain.redact import redact

    return {
        "id": task.id,
        "title": queries.shortened(redact(task.title)),
        "state": task.state,
        "claimed_by": task.claimed_by and queries.shortened(redact(task.claimed_by)),
        "parent": task.parent,
        "priority": task.priority,
        "entered_at": task.entered_at,
    }


def _items(found: Overview, graphs: Graphs | None) -> list[dict[str, Any]]:
    """Returns what waits for the manager; with graphs, what goes on where nothing waits."""
    items = [_waiting(row) for row in found.inbox.rows]
    if graphs is None:
        return items
    if not items and graphs.instead is not None:
        items = [_waiting(graphs.instead)]
    for item in items:
        if item["id"] in graphs.by_task:
            item["task_graph_projection"] = graphs.by_task[item["id"]]
    return items


def _waiting(row: Waiting) -> dict[str, Any]:
    from gittasks.domain.redact import redact

    return {
        **_brief(row.task),
        "rank": row.rank,
        "reason": queries.shortened(redact(row.reason)),
        "command": row.command,
        "blocking": row.blocking,
        "waiting_since": row.waiting_since,
    }
