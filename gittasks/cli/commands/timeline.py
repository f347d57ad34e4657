"""`git tasks timeline`: when tasks went from state to state, and how long they stood there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.cli import frame
from gittasks.cli.output import age
from gittasks.workflow import queries, timeline

if TYPE_CHECKING:
    from gittasks.workflow.timeline import Moved, Timeline


@frame.command("timeline", past=True)
@frame.argument("task", required=False)
@frame.option("--limit", type=frame.IntRange(min=0), metavar="N",
              help=f"only the newest N; without TASK {queries.ROW_LIMIT}")  # fmt: skip
def command(session: frame.Session, task: str | None, limit: int | None) -> None:
    """Show the transitions of TASK, or of all tasks, oldest first.

    Each row says how long the task had stood in the state that it left.
    """
    project = session.project
    if task is None:
        found = timeline.of_all(project, queries.ROW_LIMIT if limit is None else limit)
    else:
        found = timeline.of_task(project, project.resolve(task), limit)
    if session.out.json:
        data = [as_object(row, named=task is None) for row in found.rows]
        more = {"truncated": found.left_out} if found.left_out else {}
        session.answer("timeline", data, more=more)
        return
    out = session.out
    out.page()
    out.table([_cells(row, named=task is None) for row in found.rows])
    if found.left_out:
        out.say(f"{found.left_out} older ones; use --limit to see them.")
    if task is not None and not found.left_out:
        _plot(session, found)


def as_object(row: Moved, *, named: bool = False) -> dict[str, Any]:
    """Returns one transition as JSON has it, with the task where it could be any."""
    return {
        "at": queries.time_text(row.at),
        **({"task": row.task} if named else {}),
        "event": row.event,
        "from": row.source,
        "to": row.target,
        "actor": row.actor,
        "role": row.role,
        "seconds": row.seconds,
        "cost": None if row.cost is None else row.cost.cost,
        "commit": row.commit,
    }


def _cells(row: Moved, *, named: bool) -> tuple[str, ...]:
    when = queries.time_text(row.at)
    source = row.source or "-"
    states = source if row.source == row.target else f"{source} -> {row.target}"
    return (
        f"{when[:10]} {when[11:16]}",
        *((row.task,) if named else ()),
        row.event,
        states,
        "" if row.seconds is None else age(row.seconds),
        "" if row.cost is None else f"${row.cost.cost:.2f}",
        row.commit[:10],
        f"{row.actor} ({row.role})",
    )


def _plot(session: frame.Session, found: Timeline) -> None:
    """Prints a bar for each state that the task stood in, as long as it has."""
    from gittasks.cli import drawing
    from gittasks.domain.task import STATES

    seconds: dict[str, int] = {}
    last = None
    for row in found.rows:
        if row.seconds is not None and row.source is not None:
            seconds[row.source] = seconds.get(row.source, 0) + row.seconds
        if row.source != row.target:
            last = row
    standing = None if last is None or last.target == "CLOSED" else last.target
    if standing is not None and last is not None:
        passed = max(session.project.clock() - last.at, 0)
        seconds[standing] = seconds.get(standing, 0) + passed
    if not seconds:
        return
    names = [state for state in STATES if state in seconds]
    shown = drawing.bars((name, seconds[name]) for name in names)
    session.out.line()
    session.out.table(
        [(name, age(seconds[name]), shown[name] + ">" * (name == standing)) for name in names]
    )
