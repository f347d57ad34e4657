"""`git tasks release`: gives a task back unfinished."""

from __future__ import annotations

from gittasks.cli import frame, texts


@frame.command("release")
@frame.argument("task", required=False)
@frame.option("-m", "--reason", "messages", multiple=True, metavar="TEXT", help="why")
@frame.option("--force", is_flag=True, help="as the manager, whoever holds it")
def command(
    session: frame.Session, task: str | None, messages: tuple[str, ...], force: bool
) -> None:
    """Give a task back unfinished; its tree and branch stay."""
    from gittasks.workflow.claim import release

    reason = texts.words(session, messages)
    session.outcome(release(session.project, task, reason, force=force))
