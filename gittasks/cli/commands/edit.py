"""`git tasks edit`: changes a task by options, or in the editor."""

from __future__ import annotations

from gittasks.cli import frame, texts


@frame.command("edit")
@frame.argument("task", required=False)
@frame.option("--title", metavar="TEXT", help="the new title")
@frame.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="lists as JSON")
@frame.option("--unset", multiple=True, metavar="NAME", help="empty a field")
@frame.option("-m", "messages", multiple=True, metavar="TEXT", help="the new body")
@frame.option("-F", "file", metavar="FILE", help="read the new body from FILE, - is stdin")
@frame.option("--force", is_flag=True, help="also the text and the checks that a holder works from")
def command(
    session: frame.Session,
    task: str | None,
    title: str | None,
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
    messages: tuple[str, ...],
    file: str | None,
    force: bool,
) -> None:
    """Change a task; without options in the editor of git.

    Fields: title, labels, priority, assignee, checks, depends_on, and x-ANYTHING of your own.
    """
    from gittasks.workflow import edit

    body = texts.given(session, messages, file)
    if title is None and not assignments and not unset and body is None:
        texts.require_editor("Use options, such as --title, --set or -F.")
        outcome = edit.in_editor(session.project, task, force=force)
    else:
        outcome = edit.edit(
            session.project, task, title=title, assignments=assignments, unset=unset, body=body,
            force=force,
        )  # fmt: skip
    session.outcome(outcome)
