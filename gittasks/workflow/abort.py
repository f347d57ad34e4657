"""Aborting a task: nothing is delivered, and what was made stays recoverable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain import dependencies
from gittasks.domain.requests import Abort
from gittasks.plumbing import refs
from gittasks.workflow.dispatch import base_name, branch_tip, has_own_commits
from gittasks.workspaces import records, worktree

if TYPE_CHECKING:
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Outcome, Project


def abort(
    project: Project,
    spelling: str | None,
    reason: str | None = None,
    *,
    recursive: bool = False,
) -> Outcome:
    """Aborts a task, with `recursive` its open children before it, in one ref move.

    The outcome names the dependents, the kept branches and the places of uncommitted files.
    """
    task_id = project.resolve(spelling)
    project.task(task_id)
    speaker = project.speaker("abort", task_id)
    members = _subtree(project, task_id) if recursive else [task_id]
    request = Abort(
        task_id,
        reason,
        recursive,
        delivered=frozenset(m for m in members if _is_delivered(project, project.task(m))),
        landing=frozenset(
            record.task
            for record in records.landings(project.state_dir)
            if records.is_alive(record.process)
        ),
    )
    appended = project.apply(request, speaker)
    aborted = [event.task for event in appended.events if event.kind == "abort" and event.task]
    notes = list(_dependents(project, aborted))
    for member in aborted:
        notes += put_away(project, project.task(member))
    return project.outcome(task_id, appended, notes=notes, aborted=aborted)


def put_away(project: Project, task: Task) -> list[str]:
    """Keeps an aborted task's branch under another ref and removes its worktree; says where."""
    sent = next((r.assignment for r in records.all(project.state_dir) if r.uid == task.uid), None)
    removed = worktree.remove(
        project.repo, project.places, task.id, now=project.clock(), assignment_sent=sent
    )
    notes = list(removed.kept.sentences)
    tip = branch_tip(project, task.branch) if task.branch else None
    if task.branch and tip:
        keep = f"refs/gittasks/aborted/{task.id}"
        here = refs.read(project.repo, f"refs/heads/{task.branch}")
        changes = [] if here is None else [refs.Change(f"refs/heads/{task.branch}", None, here)]
        if has_own_commits(project, task):
            changes.append(refs.Change(keep, tip, refs.read(project.repo, keep)))
            notes.append(f"The branch {task.branch} is kept at {keep}.")
        refs.transaction(project.repo, changes, f"{task.id} abort")
    for record in (*records.all(project.state_dir), *records.ended(project.state_dir)):
        if record.uid == task.uid:
            records.drop(project.state_dir, record.claim)
    return notes


def _subtree(project: Project, root: str) -> list[str]:
    graph = project.ledger.graph()
    found, queue = [], [root]
    while queue:
        current = queue.pop()
        if current not in found:
            found.append(current)
            queue.extend(graph.children(current))
    return found


def _is_delivered(project: Project, task: Task) -> bool:
    """Tells whether a task's own commits are in the base already: aborting would deny that."""
    from gittasks.plumbing import merging  # only where there is a branch

    tip = branch_tip(project, task.branch) if task.branch else None
    found = project.ledger.reader.get(base_name(project))
    base = found and found.oid
    if tip is None or base is None or tip == task.base:
        return False
    if task.base is not None and merging.is_ancestor(project.repo, tip, task.base):
        return False
    return merging.is_ancestor(project.repo, tip, base)


def _dependents(project: Project, aborted: list[str]) -> list[str]:
    graph = project.ledger.graph()
    waiting = {
        waiter for member in aborted for waiter in dependencies.waiters(graph, member)
    } - set(aborted)
    if not waiting:
        return []
    return [f"These tasks depended on it and now wait for you: {', '.join(sorted(waiting))}."]
