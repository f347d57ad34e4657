"""`git tasks resume`: lets a held task go on."""

from __future__ import annotations

from gittasks.cli import frame, texts


@frame.command("resume")
@frame.argument("task", required=False)
@frame.option("-m", "--reason", "messages", multiple=True, metavar="TEXT", help="a remark")
@frame.option("-F", "file", metavar="FILE", help="read the remark from FILE, - is stdin")
def command(
    session: frame.Session, task: str | None, messages: tuple[str, ...], file: str | None
) -> None:
    """Let a held task go on, at the beginning of its phase."""
    from gittasks.workflow.resume import resume

    session.outcome(resume(session.project, task, texts.words(session, messages, file)))
