"""`git tasks sync`: exchanges events with the remote."""

from __future__ import annotations

from gittasks.cli import exchange, frame


@frame.command("sync")
@frame.option("--dry-run", is_flag=True, help="only say what would be done")
def command(session: frame.Session, dry_run: bool) -> int:
    """Exchange events with the remote: fetch, replay what only this clone has, push."""
    from gittasks.workflow.sync import sync

    return exchange.tell(session, sync(session.project, push=True, pull=True, dry_run=dry_run))
