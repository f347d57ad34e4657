"""`git tasks check`: runs the checks of a task."""

from __future__ import annotations

from gittasks.cli import frame
from gittasks.domain.errors import UsageFault


@frame.command("check")
@frame.argument("task", required=False)
@frame.option("--merged", is_flag=True, help="on the result of merging it into the base")
@frame.option("--record", is_flag=True, help="as the checker: record the result at CHECK")
def command(session: frame.Session, task: str | None, merged: bool, record: bool) -> None:
    """Run a task's checks in its tree; the task does not move unless --record is given."""
    from gittasks.workflow.check import check

    if merged and record:
        raise UsageFault(
            "--record is for the submitted commit, not for a merge.", "Give one of the two."
        )
    session.outcome(check(session.project, task, merged=merged, record=record))
