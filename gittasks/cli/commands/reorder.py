"""`git tasks reorder`: moves a task among its siblings."""

from __future__ import annotations

from gittasks.cli import frame
from gittasks.domain.errors import UsageFault


@frame.command("reorder")
@frame.argument("task")
@frame.option("--before", metavar="TASK", help="stand before a sibling")
@frame.option("--after", metavar="TASK", help="stand after a sibling")
@frame.option("--first", is_flag=True, help="stand before all siblings")
@frame.option("--last", is_flag=True, help="stand after all siblings")
def command(
    session: frame.Session,
    task: str,
    before: str | None,
    after: str | None,
    first: bool,
    last: bool,
) -> None:
    """Move a task among its siblings."""
    from gittasks.workflow.hierarchy import reorder

    if [before is not None, after is not None, first, last].count(True) != 1:
        raise UsageFault(
            "The place is not clear.", "Give one of --before, --after, --first and --last."
        )
    project = session.project
    if before is not None:
        outcome = reorder(project, task, "before", before)
    elif after is not None:
        outcome = reorder(project, task, "after", after)
    else:
        outcome = reorder(project, task, "first" if first else "last")
    session.outcome(outcome)
