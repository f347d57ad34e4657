"""`git tasks hold`: stops a task and asks the manager."""

from __future__ import annotations

from gittasks.cli import frame, texts


@frame.command("hold")
@frame.argument("task", required=False)
@frame.option("-m", "--reason", "messages", multiple=True, metavar="TEXT", help="what is wrong")
@frame.option("-F", "file", metavar="FILE", help="read the reason from FILE, - is stdin")
def command(
    session: frame.Session, task: str | None, messages: tuple[str, ...], file: str | None
) -> None:
    """Stop a task and ask the manager; a reason is needed."""
    from gittasks.workflow.hold import hold

    session.outcome(hold(session.project, task, texts.words(session, messages, file) or ""))
