"""`git tasks push`: gives the remote what only this clone has."""

from __future__ import annotations

from gittasks.cli import exchange, frame


@frame.command("push")
@frame.option("--dry-run", is_flag=True, help="only say what would be done")
def command(session: frame.Session, dry_run: bool) -> int:
    """Give the remote the events of this clone; refused while it has others."""
    from gittasks.workflow.sync import sync

    return exchange.tell(session, sync(session.project, push=True, pull=False, dry_run=dry_run))
