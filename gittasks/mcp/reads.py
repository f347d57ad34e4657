"""What can be asked: the questions that tools and resources share, answered without a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain.errors import UsageFault
from gittasks.mcp.desk import Answer
from gittasks.workflow import answers, queries

if TYPE_CHECKING:
    from gittasks.mcp.arguments import Arguments
    from gittasks.workflow.project import Project
    from gittasks.workflow.queries import Rows

ROWS = 20
"""The most rows unless more are asked for: a model pays for each."""


def show(project: Project, given: Arguments) -> Answer:
    """Returns everything about one task."""
    from gittasks.workflow import diff
    from gittasks.workflow.show import show

    shown = show(project, project.resolve(given.id()))
    data = answers.as_shown(shown)
    if given.flag("diff"):
        change = diff.change(project, shown.task)
        data["change"] = None if change is None else change.as_object()
    return Answer("task", data)


def list_tasks(project: Project, given: Arguments) -> Answer:
    """Returns many tasks, without their texts."""
    from gittasks.domain.task import STATES

    states = [one.replace("-", "_").upper() for one in given.texts("state")]
    for name in states:
        if name not in STATES:
            raise UsageFault(f"{name!r} is not a state.", f"Give some of {', '.join(STATES)}.")
    parent = given.id_or_none("parent")
    where = queries.Filter(
        states=states or None,
        labels=given.texts("labels"),
        parent=None if parent is None else queries.task_of(project, project.resolve(parent)).id,
        blocked=given.flag("blocked") if given.has("blocked") else None,
        include_closed=given.flag("all") or "CLOSED" in states,
    )
    found = queries.list_tasks(project, where, limit=given.number("limit", ROWS))
    return Answer("tasks", answers.as_tasks(found.rows), answers.announced(found))


def inbox(project: Project, given: Arguments) -> Answer:
    """Returns the decisions that wait."""
    return inbox_of(project, given.number("limit", ROWS))


def inbox_of(project: Project, limit: int | None) -> Answer:
    """Returns the first decisions that wait, or all of them."""
    found = queries.inbox(project, limit)
    more = answers.announced(found, redacted=True)
    kept = queries.kept_tips(project)
    return Answer(
        "inbox",
        [answers.as_waiting(row) for row in found.rows],
        {**more, "kept_tips": kept} if kept else more,
    )


def queue(project: Project, given: Arguments) -> Answer:
    """Returns what could be taken, in the order of dispatch."""
    from gittasks.domain.task import ROLES

    role = given.word("role", ROLES)
    found = queries.ready(project, role, given.number("limit", ROWS), None)
    tasks = queries.tasks_of(project, (row.id for row in found.rows))
    more = answers.announced(found, redacted=True)
    return Answer("ready", answers.as_tasks(tasks, redacted=True), more)


def graph(project: Project, given: Arguments) -> Answer:
    """Returns nodes and edges."""
    from gittasks.workflow import graph_view

    about = given.id_or_none()
    view = graph_view.view(
        project,
        None if about is None else project.resolve(about),
        everything=given.flag("all"),
        history=given.flag("history"),
    )
    more = answers.announced(_without_rows(view.problems), redacted=True)
    return Answer("graph", answers.as_graph(view), more)


def pool_status(project: Project, _given: Arguments) -> Answer:
    """Returns the runners of this host, their slots and checks, and their queue."""
    from gittasks.workflow import pool

    found = pool.status(project)
    data = {name: list(rows) for name, rows in found._asdict().items() if name != "file"}
    return Answer("pool", {"file": found.file, **data})


def _without_rows(problems: Any) -> Rows:
    return queries.Rows((), 0, problems)
