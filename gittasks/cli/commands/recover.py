"""`git tasks recover`: finishes or undoes what a crash left."""

from __future__ import annotations

from gittasks.cli import frame


@frame.command("recover")
def command(session: frame.Session) -> None:
    """Finish or undo what a crash left; every command that writes does it in short form too."""
    from gittasks.workflow.recover import recover

    done = recover(session.project)
    if not session.answer("recover", {"done": list(done)}):
        session.out.rows(done)
        if not done:
            session.out.say("There was nothing to recover.")
