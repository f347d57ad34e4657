"""`git tasks send`: says something to an agent at work."""

from __future__ import annotations

from gittasks.cli import frame, team


@frame.command("send")
@team.send_words
def command(
    session: frame.Session, target: str, words: tuple[str, ...], messages: tuple[str, ...]
) -> None:
    """Say something to the agent of a slot or task; - reads it from stdin."""
    from gittasks.workflow import steering

    team.send(session, steering.send, target, words, messages)
