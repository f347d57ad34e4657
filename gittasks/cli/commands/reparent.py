"""`git tasks reparent`: moves a task below another one."""

from __future__ import annotations

from gittasks.cli import frame
from gittasks.domain.errors import UsageFault


@frame.command("reparent")
@frame.argument("task")
@frame.argument("parent", required=False)
@frame.option("--root", is_flag=True, help="move it to the top")
def command(session: frame.Session, task: str, parent: str | None, root: bool) -> None:
    """Move a task below another one, or to the top."""
    from gittasks.workflow.hierarchy import reparent

    if root == (parent is not None):
        raise UsageFault("Where the task shall stand is not clear.", "Name a parent, or --root.")
    session.outcome(reparent(session.project, task, parent))
