"""`git tasks prime`: tells whoever works here what to do, and how to end."""

from __future__ import annotations

from gittasks.cli import frame


@frame.command("prime")
@frame.argument("task", required=False)
def command(session: frame.Session, task: str | None) -> None:
    """Say who works here on what, with which findings, and how to end."""
    from gittasks.domain.frontmatter import task_dict
    from gittasks.workflow.prime import prime

    brief = prime(session.project, task)
    who = {"actor": brief.actor, "role": brief.role, "text": brief.text}
    if not session.answer("prime", {**task_dict(brief.task), **who}):
        session.out.block(brief.text)
