"""Everything about one task: its document, what came back, what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import UnknownTask
from gittasks.workflow.queries import snapshot_of, task_of

if TYPE_CHECKING:
    from gittasks.domain.events import CheckResult, Event
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project


class Round(NamedTuple):
    """One time that work came back: which round of which review, the findings, who, when."""

    round: int
    review: str
    findings: tuple[str, ...]
    actor: str
    at: int


class Shown(NamedTuple):
    """All there is to say about one task."""

    task: Task
    body: bytes
    rounds: tuple[Round, ...]
    checked: Event | None
    """The last event of a check run, with its results."""
    needs: tuple[Task, ...]
    open_needs: tuple[str, ...]
    lost_needs: tuple[str, ...]
    """Dependencies that were aborted and that nothing open or landed supersedes."""
    needed_by: tuple[Task, ...]
    children: tuple[Task, ...]
    blocking: int


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
    rounds, checked = _rounds(project, task)
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
    )


def _rounds(project: Project, task: Task) -> tuple[tuple[Round, ...], Event | None]:
    """Returns the rounds, oldest first, and the last check run, from the task's history."""
    # Nobody has ever started on it, so nothing can have come back.
    if task.branch is None and task.findings is None:
        return (), None
    from gittasks.domain.events import CheckPassed, CheckRefuted, FeedbackGiven
    from gittasks.ledger import history

    rounds: list[Round] = []
    checked: Event | None = None
    for recorded in history.of_task(project.repo, project.ledger.tip, task.id):
        event = recorded.event
        change = event.change
        if isinstance(change, CheckPassed | CheckRefuted) and checked is None:
            checked = event
        if isinstance(change, FeedbackGiven):
            number = change.round
        elif isinstance(change, CheckRefuted):
            number = change.failures
        else:
            continue
        rounds.append(Round(number, event.source or "", change.findings, event.actor, event.at))
    return tuple(reversed(rounds)), checked


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


def results_of(event: Event) -> tuple[CheckResult, ...]:
    """Returns the results that an event of a check run recorded."""
    results: tuple[CheckResult, ...] = getattr(event.change, "results", ())
    return results
