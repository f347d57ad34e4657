"""How tasks look in lists, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.cli.output import age, escape, seconds_of, width_of
from gittasks.workflow.answers import problem_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.cli.frame import Session
    from gittasks.workflow.queries import Rows, Waiting

_STATE_WIDTH = 14
_NAME_WIDTH = 20


_SHOWN = 10
"""The most documents that a list names which could not be read."""


def tell(session: Session, found: Rows, *, redacted: bool = False) -> None:
    """Says on stderr what the lines do not show: what was cut, what could not be read."""
    if found.left_out:
        session.out.say(f"{found.left_out} more; use --limit to see them.")
    for problem in found.problems[:_SHOWN]:
        session.out.warn(f"warning: {problem_text(problem.message, redacted)}")
    if len(found.problems) > _SHOWN:
        more = len(found.problems) - _SHOWN
        session.out.warn(f"warning: {more} more; `git tasks fsck` lists them all.")


def as_lines(rows: Sequence[tuple[str, str, str | None, str]]) -> list[str]:
    """Returns id, state, name of the holder and title as lines with columns."""
    names = {row[2] for row in rows if row[2]}
    if not names:
        return [f"{row[0]}  {row[1]:<{_STATE_WIDTH}}  {row[3]}" for row in rows]
    shown = {name: escape(name) for name in names}
    width = min(max(map(width_of, shown.values())), _NAME_WIDTH)
    cells: dict[str | None, str] = {
        name: text + " " * (width - width_of(text)) for name, text in shown.items()
    }
    cells[None] = " " * width
    return [
        f"{row[0]}  {row[1]:<{_STATE_WIDTH}}  {cells[row[2] or None]}  {row[3]}" for row in rows
    ]


def ago(session: Session, text: str) -> str:
    """Returns how long ago a time of a document was."""
    return age(session.project.clock() - seconds_of(text))


def waiting_cells(session: Session, row: Waiting) -> tuple[str, ...]:
    """Returns one row of the inbox as a table has it: id, state, age, command, title with the reason."""
    from gittasks.domain.redact import redact
    from gittasks.workflow.queries import shortened

    task = row.task
    reason = shortened(redact(row.reason))
    return (
        task.id,
        task.state,
        ago(session, row.waiting_since),
        row.command,
        f"{redact(task.title)} ({reason})",
    )
