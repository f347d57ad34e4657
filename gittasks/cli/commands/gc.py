"""`git tasks gc`: removes what closed tasks left on this host."""

from __future__ import annotations

from gittasks.cli import frame


@frame.command("gc")
@frame.option("-n", "--dry-run", is_flag=True, help="say what would go")
def command(session: frame.Session, dry_run: bool) -> None:
    """Remove the worktrees, branches, records and logs of closed tasks."""
    from gittasks.workflow.cleanup import sweep

    swept = sweep(session.project, dry_run=dry_run)
    for one in swept:
        for note in one.notes:
            session.out.say(note)
    data = [{**one._asdict(), "notes": list(one.notes)} for one in swept]
    if not session.answer("gc", {"dry_run": dry_run, "removed": data}):
        verb = "would remove" if dry_run else "removed"
        session.out.rows([f"{verb} {one.kind} {one.name} ({one.task})" for one in swept])
        if not swept:
            session.out.say("There is nothing to remove.")
