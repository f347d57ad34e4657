"""`git tasks start`: takes a task and makes the place to work on it."""

from __future__ import annotations

from gittasks.cli import frame
from gittasks.domain.errors import UsageFault


@frame.command("start")
@frame.argument("task", required=False)
@frame.option("--next", "take_next", is_flag=True, help="take the first of the queue")
def command(session: frame.Session, task: str | None, take_next: bool) -> None:
    """Take a task, make its worktree and print the folder, for `cd "$(git tasks start)"`."""
    from gittasks.workflow import claim

    if take_next and task is not None:
        raise UsageFault("A task is named and --next is given.", "Give one of them.")
    if take_next:
        outcome = claim.claim(session.project, take_next=True)
    else:
        outcome = claim.start(session.project, task)
    session.outcome(outcome, str(outcome.extra["tree"]))
