"""`git tasks list`: many tasks, one line each."""

from __future__ import annotations

from gittasks.cli import frame, rows
from gittasks.domain.errors import UsageFault
from gittasks.workflow import queries
from gittasks.workflow.answers import announced, as_tasks


@frame.command("list", past=True)
@frame.option("--state", "states", multiple=True, metavar="STATE", help="only tasks at STATE")
@frame.option("--mine", is_flag=True, help="only tasks you hold or that are assigned to you")
@frame.option("--label", "labels", multiple=True, metavar="LABEL", help="only tasks with LABEL")
@frame.option("--parent", metavar="TASK", help="only the children of TASK")
@frame.option("--roots", is_flag=True, help="only tasks without a parent")
@frame.option("--blocked", is_flag=True, help="only tasks with open dependencies")
@frame.option("--all", "everything", is_flag=True, help="closed tasks too")
@frame.option("--sort", type=frame.Choice(queries.SORTS), default="id", help="what to sort by")
@frame.option("--limit", type=frame.IntRange(min=0), metavar="N", help="at most N tasks")
def command(
    session: frame.Session,
    states: tuple[str, ...],
    mine: bool,
    labels: tuple[str, ...],
    parent: str | None,
    roots: bool,
    blocked: bool,
    everything: bool,
    sort: str,
    limit: int | None,
) -> None:
    """List tasks.

    With --role, only those whose state belongs to that role.
    """
    project = session.project
    where = queries.Filter(
        states=states_named(states) or None,
        roles=(session.options.role,) if session.options.role else None,
        mine=project.speaker("list").actor if mine else None,
        labels=labels,
        parent=None if parent is None else queries.task_of(project, project.resolve(parent)).id,
        roots=roots,
        blocked=True if blocked else None,
        include_closed=everything,
    )
    if session.out.json:
        found = queries.list_tasks(project, where, sort, limit)
        session.answer("tasks", as_tasks(found.rows), more=announced(found))
        return
    found = queries.list_columns(
        project, where, ("id", "state", "claimed_by", "title"), sort, limit
    )
    session.out.page()
    session.out.rows(rows.as_lines(found.rows), head=6)
    rows.tell(session, found)


def states_named(words: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the states that the words name, in any case and with any dash."""
    if not words:
        return ()
    from gittasks.domain.task import STATES

    named = [part for word in words for part in word.replace("-", "_").upper().split(",") if part]
    for name in named:
        if name not in STATES:
            raise UsageFault(f"{name!r} is not a state.", f"Give one of {', '.join(STATES)}.")
    return tuple(named)
