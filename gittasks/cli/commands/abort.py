"""`git tasks abort`: throws a task away; what was made stays recoverable."""

from __future__ import annotations

from gittasks.cli import frame, texts


@frame.command("abort")
@frame.argument("task", required=False)
@frame.option("-m", "--reason", "messages", multiple=True, metavar="TEXT", help="why")
@frame.option("-F", "file", metavar="FILE", help="read the reason from FILE, - is stdin")
@frame.option("--recursive", is_flag=True, help="with everything below it, children first")
def command(
    session: frame.Session,
    task: str | None,
    messages: tuple[str, ...],
    file: str | None,
    recursive: bool,
) -> None:
    """Throw a task away; its history, its branch and uncommitted files are kept."""
    from gittasks.workflow.abort import abort

    reason = texts.words(session, messages, file)
    session.outcome(abort(session.project, task, reason, recursive=recursive))
