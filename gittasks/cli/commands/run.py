"""`git tasks run`: runs the agents of the pool."""

from __future__ import annotations

from gittasks.cli import frame, team


@frame.command("run")
@team.run_options
def command(
    session: frame.Session,
    once: bool,
    max_tasks: int | None,
    dry_run: bool,
    pool_file: str | None,
    sandbox: str | None,
) -> int:
    """Run the agents of the pool until somebody ends it.

    On a terminal it draws what happens in one line, elsewhere it prints one JSON object for each
    thing that happens. Ctrl-C ends it in order, twice at once; so does `git tasks pool stop`.
    """
    from gittasks.workflow import steering

    steering.require_operator(session.project)
    return team.run(session, once, max_tasks, dry_run, pool_file, sandbox)
