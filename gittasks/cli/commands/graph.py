"""`git tasks graph`: tasks, what they are parts of, and what they wait for, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.cli import frame, rows
from gittasks.workflow import graph_view
from gittasks.workflow.queries import Rows

if TYPE_CHECKING:
    from gittasks.workflow.graph_view import GraphView

PROJECTION = "task_graph_projection_v0"
FORMATS = ("text", "mermaid", "dot", "svg", "json", PROJECTION)
_GATE_LIMIT = 2


@frame.command("graph", past=True)
@frame.option("--format", "form", type=frame.Choice(FORMATS), default="text", metavar="FORMAT",
              help=f"one of {', '.join(FORMATS)}")  # fmt: skip
@frame.option("--task", metavar="TASK", help="only TASK and what is connected with it")
@frame.option("--all", "everything", is_flag=True, help="the whole project, closed tasks too")
@frame.option("--history", is_flag=True, help="also what is done and belongs to it")
@frame.option("--gate-limit", type=frame.IntRange(min=0), default=_GATE_LIMIT, metavar="N",
              help=f"in the projection at most N gates ({_GATE_LIMIT})")  # fmt: skip
def command(
    session: frame.Session,
    form: str,
    task: str | None,
    everything: bool,
    history: bool,
    gate_limit: int,
) -> None:
    """Draw the open tasks and what they need.

    With --task, what is above that task, below it, needed by it and waiting for it.
    """
    project = session.project
    about = None if task is None else project.resolve(task)
    if form == PROJECTION:
        _project(session, about, everything, history, gate_limit)
        return
    view = graph_view.view(project, about, everything=everything, history=history)
    found = Rows((), 0, view.problems)
    more = rows.announced(found, redacted=True)
    out = session.out
    if form == "json" or (form == "text" and out.json):
        out.envelope("graph", as_object(view), session.ledger, more)
        return
    from gittasks.cli import drawing

    picture = drawing.picture(view, project.clock())
    if form == "text":
        out.page()
        out.rows(drawing.outline(picture), head=6)
        if not picture.boxes:
            out.say("There is nothing to draw.")
        rows.tell(session, found, redacted=True)
        return
    draw = {"mermaid": drawing.mermaid, "dot": drawing.dot, "svg": drawing.svg}[form]
    drawn = draw(picture)
    if session.answer("graph", {"format": form, "drawing": drawn}, more=more):
        return
    out.block(drawn)
    rows.tell(session, found, redacted=True)


def as_object(view: GraphView) -> dict[str, Any]:
    """Returns nodes and edges as JSON has them; an edge goes from a task to one that it names."""
    from gittasks.domain.redact import redact

    return {
        "about": view.about,
        "nodes": [
            {
                "id": task.id,
                "title": redact(task.title),
                "state": task.state,
                "outcome": task.outcome,
                "priority": task.priority,
                "labels": [redact(label) for label in task.labels],
                "claimed_by": task.claimed_by and redact(task.claimed_by),
                "entered_at": task.entered_at,
            }
            for task in view.tasks
        ],
        "edges": [{"kind": edge.kind, "from": edge.task, "to": edge.named} for edge in view.edges],
        "unread": list(view.unread),
        "left_out": view.left_out,
    }


def _project(
    session: frame.Session, about: str | None, everything: bool, history: bool, gate_limit: int
) -> None:
    from gittasks.workflow import task_graph_view

    found = task_graph_view.projection(
        session.project, about, gate_limit=gate_limit, everything=everything, history=history
    )
    if not session.answer("graph", {PROJECTION: found}):
        session.out.json_line(found)
