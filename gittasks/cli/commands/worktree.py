"""`git tasks worktree`: the trees of tasks on this host."""

from __future__ import annotations

from gittasks.cli import frame

command = frame.Group("worktree", help="Find, list, repair or remove the trees of tasks.")


@command.verb("path")
@frame.argument("task", required=False)
def path(session: frame.Session, task: str | None) -> None:
    """Print the folder of a task's tree."""
    from gittasks.workflow import trees

    found = trees.path(session.project, task)
    if not session.answer("worktree", {"path": found}):
        session.out.line(found)


@command.verb("list")
def list_(session: frame.Session) -> None:
    """List the trees of all tasks on this host."""
    from gittasks.workflow import trees

    places = trees.places(session.project)
    if not session.answer("worktrees", [place._asdict() for place in places]):
        session.out.table(
            [
                (
                    place.task,
                    place.state or "?",
                    place.claimed_by or "-",
                    place.path + (f": {place.problem}" if place.problem else ""),
                )
                for place in places
            ]
        )


@command.verb("repair")
def repair(session: frame.Session) -> None:
    """Connect moved trees again and remove half-made ones."""
    from gittasks.workflow import trees

    done = trees.repair(session.project)
    if not session.answer("worktrees", {"done": list(done)}):
        for sentence in done or ("There was nothing to repair.",):
            session.out.line(sentence)


@command.verb("remove")
@frame.argument("task", required=False)
@frame.option("--force", is_flag=True, help="also while somebody holds the task")
def remove(session: frame.Session, task: str | None, force: bool) -> None:
    """Remove a task's tree; its branch stays, uncommitted files are kept elsewhere."""
    from gittasks.workflow import trees

    gone = trees.remove(session.project, task, force=force)
    for note in gone.notes:
        session.out.say(note)
    if not session.answer("worktree", {**gone._asdict(), "notes": list(gone.notes)}):
        session.out.line(gone.path)
