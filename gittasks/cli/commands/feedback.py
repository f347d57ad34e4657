"""`git tasks feedback`: sends findings back to the author."""

from __future__ import annotations

from gittasks.cli import frame, texts


@frame.command("feedback")
@frame.argument("task", required=False)
@frame.option("-m", "messages", multiple=True, metavar="TEXT", help="a finding; may be repeated")
@frame.option("-F", "file", metavar="FILE", help="read findings from FILE, - is stdin")
@frame.option("--from-landing", is_flag=True, help="take the last refusal to land as the finding")
def command(
    session: frame.Session,
    task: str | None,
    messages: tuple[str, ...],
    file: str | None,
    from_landing: bool,
) -> None:
    """Send findings back to the author.

    In a file each bullet is a finding; without bullets the whole text is one.
    """
    from gittasks.workflow.feedback import feedback, findings_in

    found = list(messages)
    if file is not None:
        found += findings_in(texts.words(session, (), file) or "")
    session.outcome(feedback(session.project, task, found, from_landing=from_landing))
