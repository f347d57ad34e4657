"""`git tasks trust`: approves commands that came with the ledger."""

from __future__ import annotations

from gittasks.cli import frame
from gittasks.domain.errors import UsageFault


@frame.command("trust")
@frame.argument("task", required=False)
@frame.option("--list", "listed", is_flag=True, help="list what is approved in this clone")
@frame.option("--revoke", is_flag=True, help="take the approval back, without a task all of them")
def command(session: frame.Session, task: str | None, listed: bool, revoke: bool) -> None:
    """Approve the checks of a task; without one list the commands that wait for approval."""
    from gittasks.workflow import trust

    project = session.project
    if listed and (revoke or task is not None):
        raise UsageFault("--list goes alone.", "Leave the rest out.")
    if listed:
        rows = trust.approvals(project)
        if not session.answer("approvals", [row._asdict() for row in rows]):
            session.out.rows([row.command for row in rows])
    elif task is None and not revoke:
        waiting = trust.waiting(project)
        data = [{"task": one.task, "commands": list(one.commands)} for one in waiting]
        if not session.answer("untrusted", data):
            session.out.table([(one.task, command) for one in waiting for command in one.commands])
            if waiting:
                session.out.say("Approve a task's commands with `git tasks trust TASK`.")
    else:
        done = (trust.revoke if revoke else trust.approve)(project, task)
        key = "revoked" if revoke else "approved"
        if not session.answer("trust", {key: list(done)}):
            session.out.rows([f"{key}: {command}" for command in done])
            if not done:
                session.out.say("There is nothing to do.")
