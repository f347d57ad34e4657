"""`git tasks resume`: lets a held task go on."""

from __future__ import annotations

import click

from gittasks.cli import frame, texts


@frame.command("resume")
@click.argument("task", required=False)
@click.option("-m", "--reason", "messages", multiple=True, metavar="TEXT", help="a remark")
@click.option("-F", "file", metavar="FILE", help="read the remark from FILE, - is stdin")
def command(
    session: frame.Session, task: str | None, messages: tuple[str, ...], file: str | None
) -> None:
    """Let a held task go on, at the beginning of its phase."""
    from gittasks.workflow.resume import resume

    session.outcome(resume(session.project, task, texts.words(session, messages, file)))
