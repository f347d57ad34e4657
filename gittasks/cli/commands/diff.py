"""`git tasks diff`: what a task changes."""

from __future__ import annotations

from gittasks.cli import frame
from gittasks.workflow import diff, queries


@frame.command("diff", past=True)
@frame.argument("task", required=False)
@frame.option("--stat", is_flag=True, help="only the files and how much of them")
@frame.option("--tests", is_flag=True, help="only files of tests")
def command(session: frame.Session, task: str | None, stat: bool, tests: bool) -> None:
    """Show what a task changes, against the point where its branch left the base."""
    project = session.project
    about = queries.task_of(project, project.resolve(task))
    change = diff.change(project, about, patch=not stat, tests=tests)
    if session.out.json:
        session.answer("change", change.as_object() if change is not None else None)
        return
    if change is None:
        session.out.say(f"{about.id} has no commits of its own yet.")
        return
    session.out.page()
    if stat:
        session.out.block(change.stat)
    else:
        session.out.patch(change.patch)
