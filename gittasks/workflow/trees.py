"""The trees of tasks on this host: where they are, in which shape, and away with them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Refused, UnknownTask
from gittasks.workspaces import quarantine, records, runs, worktree

if TYPE_CHECKING:
    from gittasks.workflow.project import Project
    from gittasks.workspaces.leftovers import Kept


_PATIENCE = 30.0


class Place(NamedTuple):
    """The tree of a task and who works in it; `problem` is None for a sound one."""

    task: str
    path: str
    branch: str | None
    head: str | None
    state: str | None
    claimed_by: str | None
    problem: str | None


class Gone(NamedTuple):
    """A tree that was removed, and what was put aside in sentences."""

    task: str
    path: str
    notes: tuple[str, ...]


def path(project: Project, spelling: str | None) -> str:
    """Returns the absolute path of a task's tree; raises Refused where there is none."""
    task = project.resolve(spelling)
    project.task(task)
    found = project.places.tree(task)
    if not os.path.isdir(found):
        raise Refused(
            f"The task {task} has no worktree on this host.",
            f"Run `git tasks start {task}` to take it and make one.",
            task,
        )
    return found


def places(project: Project) -> list[Place]:
    """Returns the trees of all tasks on this host, sound or not."""
    graph = project.ledger.graph()
    found = []
    for tree in worktree.list_trees(project.repo, project.places):
        task = graph.get(tree.task)
        found.append(
            Place(
                tree.task,
                tree.path,
                tree.branch,
                tree.head,
                task.state if task else None,
                task.claimed_by if task else None,
                tree.problem,
            )
        )
    return found


def repair(project: Project) -> tuple[str, ...]:
    """Connects moved trees again and removes half-made ones; returns what was done.

    What an agent has committed apart is brought in where nobody looks after it any more.
    """
    done = list(worktree.repair(project.repo, project.places))
    for task in left_apart(project):
        with worktree.locked(project.places, _PATIENCE):
            told = quarantine.close(project.repo, project.places, task)
        done += (f"Brought in what an agent has left in the worktree of {task}.", *told)
    return tuple(done)


def left_apart(project: Project) -> list[str]:
    """Returns the tasks whose trees are kept apart for an agent that nobody looks after."""
    places = project.places
    at_work = {run.task for run in runs.all(project.state_dir) if runs.is_looked_after(run)}
    found = (places.task_of(os.path.join(places.root, name)) for name in quarantine.names(places))
    return [task for task in found if task is not None and task not in at_work]


def remove(project: Project, spelling: str | None, *, force: bool = False) -> Gone:
    """Removes the tree of a task; its branch stays, and so does what nobody committed."""
    task = project.resolve(spelling)
    found = project.task(task)
    tree = project.places.tree(task)
    if not os.path.lexists(tree):
        raise UnknownTask(f"The task {task} has no worktree on this host.", task=task)
    if found.claimed_by is not None and not force:
        raise Refused(
            f"The task {task} is held by {found.claimed_by}, who may be working in its tree.",
            f"Run `git tasks release {task}` first, or give --force.",
            task,
        )
    return take_away(project, task)


def take_away(project: Project, task: str) -> Gone:
    """Removes the tree of a task without asking; says where leftovers are."""
    record = next((one for one in records.all(project.state_dir) if one.task == task), None)
    removed = worktree.remove(
        project.repo,
        project.places,
        task,
        now=project.clock(),
        assignment_sent=record.assignment if record and record.assignment else None,
    )
    return Gone(task, project.places.tree(task), told(task, removed.kept))


def told(task: str, kept: Kept) -> tuple[str, ...]:
    """Returns the sentences that say where leftovers of a task are."""
    notes = []
    if kept.folder:
        notes.append(f"What was not committed in {task} is kept in {kept.folder}.")
    if kept.ref:
        notes.append(f"Commits of no branch in {task} are kept at {kept.ref}.")
    return tuple(notes)
