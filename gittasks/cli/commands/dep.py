"""`git tasks dep`: what waits for what."""

from __future__ import annotations

from gittasks.cli import frame

command = frame.Group("dep", help="Add, remove or look at dependencies.")


@command.verb("add")
@frame.argument("task")
@frame.argument("needs", nargs=-1, required=True)
def add(session: frame.Session, task: str, needs: tuple[str, ...]) -> None:
    """Make TASK wait for NEEDS too."""
    from gittasks.workflow import dependencies

    session.outcome(dependencies.add(session.project, task, needs))


@command.verb("rm")
@frame.argument("task")
@frame.argument("needs", nargs=-1, required=True)
def remove(session: frame.Session, task: str, needs: tuple[str, ...]) -> None:
    """Make TASK wait for NEEDS no longer."""
    from gittasks.workflow import dependencies

    session.outcome(dependencies.remove(session.project, task, needs))


@command.verb("tree", past=True)
@frame.argument("task", required=False)
def tree(session: frame.Session, task: str | None) -> None:
    """Show what TASK needs, and what that needs in turn."""
    from gittasks.domain.frontmatter import task_dict
    from gittasks.workflow import queries

    project = session.project
    nodes = queries.dependency_tree(project, project.resolve(task))
    data = [
        {**task_dict(node.task), "depth": node.depth, "repeated": node.repeated} for node in nodes
    ]
    if not session.answer("dependencies", data):
        session.out.rows(
            [
                f"{'  ' * node.depth}{node.task.id} {node.task.state} {node.task.title}"
                + (" (shown above)" if node.repeated else "")
                for node in nodes
            ]
        )


@command.verb("cycles", past=True)
def cycles(session: frame.Session) -> None:
    """Show the rings of dependencies among open tasks; commands refuse to make one."""
    from gittasks.workflow import queries

    rings = queries.cycles(session.project)
    if not session.answer("cycles", [list(ring) for ring in rings]):
        session.out.rows([" needs ".join(ring) for ring in rings])
        if not rings:
            session.out.say("There is no ring of dependencies.")
