"""`git tasks submit`: finishes the stage a task is in."""

from __future__ import annotations

from gittasks.cli import frame, texts


@frame.command("submit")
@frame.argument("task", required=False)
@frame.option("--enter", type=frame.Choice(("design", "plan", "work")), help="where NEW goes")
@frame.option("--close", is_flag=True, help="close a parent whose children delivered")
@frame.option("-m", "messages", multiple=True, metavar="TEXT", help="your section, or a remark")
@frame.option("-F", "file", metavar="FILE", help="read it from FILE, - is stdin")
@frame.option("--no-change", is_flag=True, help="redo without a new commit; the notes say why")
@frame.option("--no-check", is_flag=True, help="leave the checks to `git tasks check --record`")
@frame.option("-n", "--dry-run", is_flag=True, help="say what would happen")
def command(
    session: frame.Session,
    task: str | None,
    enter: str | None,
    close: bool,
    messages: tuple[str, ...],
    file: str | None,
    no_change: bool,
    no_check: bool,
    dry_run: bool,
) -> None:
    """Finish the stage; as the manager dispatch a NEW task, or land one at MANAGER_REVIEW.

    At WORK the task's checks run right afterwards.
    """
    from gittasks.workflow.submit import submit

    session.outcome(
        submit(
            session.project,
            task,
            enter=enter,
            close=close,
            text=texts.given(session, messages, file),
            no_change=no_change,
            dry_run=dry_run,
            check=not no_check,
        )
    )
