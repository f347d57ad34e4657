"""`git tasks init`: creates the ledger, or takes over the remote's."""

from __future__ import annotations

from gittasks.cli import frame


@frame.command("init")
@frame.option("--base", metavar="BRANCH", help="the branch that tasks land on")
@frame.option("--branch", metavar="NAME", help="the name of the ledger's branch; gittasks")
@frame.option("--remote", metavar="NAME", help="share the ledger through the remote NAME")
def command(
    session: frame.Session, base: str | None, branch: str | None, remote: str | None
) -> None:
    """Create the ledger in this repository, or take over that of the remote."""
    from gittasks.workflow.init import init

    begun = init(session.project, base=base, branch=branch, remote=remote)
    if session.answer("init", begun._asdict(), begun.commit):
        return
    out = session.out
    for note in begun.notes:
        out.say(note)
    if begun.adopted:
        out.line(f"Took over the ledger of {begun.adopted} as the branch {begun.branch}.")
    elif begun.created:
        out.line(f"Created the ledger on the branch {begun.branch}.")
    else:
        rest = "" if begun.remote else "; nothing to do"
        out.line(f"Already initialised: the ledger is the branch {begun.branch}{rest}.")
    if out.quiet:
        return
    out.line(f"Tasks land on {begun.base}.")
    out.line(f"Worktrees of tasks stand in {begun.worktrees}.")
    if begun.created or begun.adopted:
        out.line("Not touched: your files, index, current branch, hooks and settings.")
    if begun.remote:
        out.line(f"Shared through the remote {begun.remote}.")
    if begun.created:
        out.line('Next: git tasks new "What has to be done"')
