"""`git tasks pull`: takes over what others did."""

from __future__ import annotations

from gittasks.cli import exchange, frame


@frame.command("pull")
@frame.option("--dry-run", is_flag=True, help="only say what would be done")
def command(session: frame.Session, dry_run: bool) -> int:
    """Take over the events of others, and keep our own on top of them."""
    from gittasks.workflow.sync import sync

    return exchange.tell(session, sync(session.project, push=False, pull=True, dry_run=dry_run))
