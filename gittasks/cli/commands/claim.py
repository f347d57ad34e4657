"""`git tasks claim`: takes a task."""

from __future__ import annotations

from gittasks.cli import frame
from gittasks.domain.errors import UsageFault


@frame.command("claim")
@frame.argument("task", required=False)
@frame.option("--next", "take_next", is_flag=True, help="take the first of the queue")
@frame.option("--no-worktree", is_flag=True, help="make no tree to work in")
def command(session: frame.Session, task: str | None, take_next: bool, no_worktree: bool) -> None:
    """Take a task and print its id; with --role only from that role's queue."""
    from gittasks.workflow.claim import claim

    if take_next and task is not None:
        raise UsageFault("A task is named and --next is given.", "Give one of them.")
    outcome = claim(session.project, task, take_next=take_next, with_tree=not no_worktree)
    session.outcome(outcome, outcome.task.id)
