"""Everything about one task: its document, what came back, what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import UnknownTask
from gittasks.ledger.rounds import rounds_of
from gittasks.workflow.queries import snapshot_of, task_of

if TYPE_CHECKING:
    from gittasks.domain.task import Task
    from gittasks.ledger.rounds import Checked, Round
    from gittasks.workflow.project import Project


class Shown(NamedTuple):
    """All there is to say about one task."""

    task: Task
    body: bytes
    rounds: tuple[Round, ...]
    checked: Checked | None
    """The last check run, with its results."""
    needs: tuple[Task, ...]
    open_needs: tuple[str, ...]
    lost_needs: tuple[str, ...]
    """Dependencies that were aborted and that nothing open or landed supersedes."""
    needed_by: tuple[Task, ...]
    children: tuple[Task, ...]
    blocking: int
    provisional: bool = False
    """Whether its claim is known in this clone only."""


def show(project: Project, task_id: str) -> Shown:
    """Returns everything about one task; raises UnknownTask, or Corrupt for a bad document."""
    snapshot = snapshot_of(project)
    task = task_of(project, task_id)
    needs = tuple(snapshot.tasks(task.depends_on))
    children = tuple(snapshot.tasks(snapshot.children(task_id)))
    needed_by = tuple(snapshot.tasks(snapshot.dependents(task_id)))
    still: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    if task.depends_on and task.is_open:
        from gittasks.domain.dependencies import aborted_dependencies, open_dependencies

        graph = project.ledger.graph()
        still = open_dependencies(graph, task.depends_on)
        lost = aborted_dependencies(graph, task.depends_on)
    rounds, checked = rounds_of(project.ledger, task)
    return Shown(
        task=task,
        body=project.ledger.graph().body(task_id),
        rounds=rounds,
        checked=checked,
        needs=needs,
        open_needs=still,
        lost_needs=lost,
        needed_by=needed_by,
        children=children,
        blocking=snapshot.blocking(task_id),
        provisional=task.claim is not None and _is_provisional(project, task),
    )


def _is_provisional(project: Project, task: Task) -> bool:
    from gittasks.workflow.sync import is_provisional  # only where there is a claim

    return is_provisional(project, task)


def document(project: Project, task_id: str) -> bytes:
    """Returns the document of a task byte for byte, also one that does not verify."""
    snapshot = snapshot_of(project)
    problem = snapshot.problem(task_id)
    blob = problem.oid if problem is not None else snapshot.blob(task_id)
    if blob is None:
        raise UnknownTask(
            f"There is no task {task_id}.", "Run `git tasks list --all` to see them.", task_id
        )
    return project.ledger.reader.blob(blob)
