"""`git tasks kill`: ends an agent at work."""

from __future__ import annotations

from gittasks.cli import frame, team


@frame.command("kill")
@frame.argument("target", metavar="SLOT|ID")
def command(session: frame.Session, target: str) -> None:
    """End the agent of a slot or task; the task is given back."""
    from gittasks.workflow import steering

    team.kill(session, steering.kill, target)
