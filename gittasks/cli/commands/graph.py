"""`git tasks graph`: tasks, what they are parts of, and what they wait for, as a picture."""

from __future__ import annotations

from gittasks.cli import frame, rows
from gittasks.workflow import graph_view
from gittasks.workflow.answers import announced, as_graph
from gittasks.workflow.queries import Rows

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
    more = announced(found, redacted=True)
    out = session.out
    if form == "json" or (form == "text" and out.json):
        out.envelope("graph", as_graph(view), session.ledger, more)
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


def _project(
    session: frame.Session, about: str | None, everything: bool, history: bool, gate_limit: int
) -> None:
    from gittasks.workflow import task_graph_view

    found = task_graph_view.projection(
        session.project, about, gate_limit=gate_limit, everything=everything, history=history
    )
    if not session.answer("graph", {PROJECTION: found}):
        session.out.json_line(found)
