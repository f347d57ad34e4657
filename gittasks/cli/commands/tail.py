"""`git tasks tail`: what agents write."""

from __future__ import annotations

from gittasks.cli import frame, team


@frame.command("tail")
@team.tail_options
def command(session: frame.Session, target: str | None, count: int, follow: bool) -> int:
    """Print the end of what the agent of a slot or task has written; of nobody, of all at work.

    It is the agent's own output as it came, line by line.
    """
    from gittasks.workflow import transcripts

    found = transcripts.transcripts(session.project, target)
    return team.tail(session, found, target, count, follow)
