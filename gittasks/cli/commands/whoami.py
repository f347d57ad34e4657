"""`git tasks whoami`: the effective name and role, and where each comes from."""

from __future__ import annotations

from gittasks.cli import frame


@frame.command("whoami")
def command(session: frame.Session) -> None:
    """Say who is speaking, in which role, and why."""
    project = session.project
    task = project.here()
    speaker = project.speaker("whoami", task)
    actor_why, role_why = speaker.why
    data = {
        "actor": speaker.actor,
        "actor_from": actor_why,
        "role": speaker.role,
        "role_from": role_why,
        "claim": speaker.claim,
        "task": task,
    }
    if session.out.json:
        session.out.envelope("whoami", data)
        return
    session.out.line(f"actor  {speaker.actor}  ({actor_why})")
    session.out.line(f"role   {speaker.role or 'none'}  ({role_why})")
    if task is not None:
        held = "  (you hold it)" if speaker.claim else ""
        session.out.line(f"task   {task}{held}")
