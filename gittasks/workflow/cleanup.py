"""Removes what closed tasks left on this host: trees, branches, records, logs, and old leases."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from gittasks.ledger import leases
from gittasks.plumbing import refs, worktrees
from gittasks.workflow import trees
from gittasks.workspaces import branch, records, runs, worktree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph
    from gittasks.workflow.project import Project

_ID = re.compile(r"[0-9]{6}")


class Swept(NamedTuple):
    """One thing that went, or would go: what it is, its name, its task, what was kept."""

    kind: str
    name: str
    task: str
    notes: tuple[str, ...] = ()


def sweep(project: Project, *, dry_run: bool = False) -> list[Swept]:
    """Removes what closed tasks left behind; nothing that holds work of its own is lost."""
    project.recover()
    graph = project.ledger.graph()
    swept = list(_trees(project, graph, dry_run=dry_run))
    # A branch can go only after the tree that has it checked out.
    swept += _branches(project, graph, dry_run=dry_run)
    swept += _records(project, graph, dry_run=dry_run)
    swept += _logs(project, graph, dry_run=dry_run)
    swept += _leases(project, graph, dry_run=dry_run)
    return swept


def _closed(graph: Graph, name: str) -> Task | None:
    task = graph.get(name)
    return task if task is not None and not task.is_open else None


def _trees(project: Project, graph: Graph, *, dry_run: bool) -> Iterator[Swept]:
    for tree in worktree.list_trees(project.repo, project.places):
        if _closed(graph, tree.task) is None:
            continue
        notes = () if dry_run else trees.take_away(project, tree.task).notes
        yield Swept("worktree", tree.path, tree.task, notes)


def _branches(project: Project, graph: Graph, *, dry_run: bool) -> Iterator[Swept]:
    prefix = branch.HEADS + project.branch_prefix
    places = {one.branch: one.path for one in worktrees.list(project.repo)}
    for ref, tip in refs.list(project.repo, prefix).items():
        name = ref.removeprefix(branch.HEADS)
        found = _ID.match(ref.removeprefix(prefix))
        task = _closed(graph, found[0]) if found else None
        if task is None or task.branch != name:
            continue
        if places.get(ref) not in (None, os.path.realpath(project.places.tree(task.id))):
            # The user works on it.
            continue
        notes = [] if dry_run else _drop_branch(project, task, name, tip)
        if notes is not None:
            yield Swept("branch", name, task.id, tuple(notes))


def _drop_branch(project: Project, task: Task, name: str, tip: str) -> list[str] | None:
    """Deletes a closed task's branch; commits that nothing else holds get a ref that keeps them."""
    notes = []
    if not _is_held(project, tip):
        kind = "landed" if task.is_landed else "aborted"
        keep = f"refs/gittasks/{kind}/{task.id}"
        if refs.read(project.repo, keep) not in (None, tip):
            keep = f"refs/gittasks/kept/{task.id}/{tip[:12]}"
        if refs.read(project.repo, keep) is None:
            refs.compare_and_swap(project.repo, keep, tip, None, f"{task.id} gc")
        notes.append(f"The commits of {name} are kept at {keep}.")
    return None if branch.delete_branch(project.repo, name, tip) else notes


def _is_held(project: Project, tip: str) -> bool:
    """Tells whether the base or a ref of ours holds a commit anyway."""
    # What was fetched of the branches of others goes when theirs does.
    passing = f"refs/gittasks/incoming/heads/{project.branch_prefix}"
    held = [f"--exclude={passing}*", "--glob=refs/gittasks/"]
    if refs.read(project.repo, project.base) is not None:
        held.append(project.base)
    return not project.repo.text("rev-list", "--max-count=1", tip, "--not", *held, "--")


def _records(project: Project, graph: Graph, *, dry_run: bool) -> Iterator[Swept]:
    for record in (*records.all(project.state_dir), *records.ended(project.state_dir)):
        if _closed(graph, record.task) is None:
            continue
        if not dry_run:
            records.drop(project.state_dir, record.claim)
        yield Swept("claim record", record.claim, record.task)


def _leases(project: Project, graph: Graph, *, dry_run: bool) -> Iterator[Swept]:
    for kept in leases.kept(project.repo, project.ledger.reader):
        task = None if kept.task is None else graph.get(kept.task)
        if kept.task is not None and (task is None or (task.claim or "") == kept.claim):
            # What is not known here yet may have been renewed elsewhere.
            continue
        if not dry_run:
            leases.forget(project.repo, ((kept.ref, kept.oid),))
        yield Swept("lease", kept.ref, kept.ref.rpartition("/")[2])


def _logs(project: Project, graph: Graph, *, dry_run: bool) -> Iterator[Swept]:
    import shutil

    for kind, folder in (("check logs", "checks"), ("agent logs", "agents")):
        home = os.path.join(project.state_dir, folder)
        for name in sorted(os.listdir(home)) if os.path.isdir(home) else ():
            task = _closed(graph, name)
            if task is None:
                continue
            if not dry_run:
                shutil.rmtree(os.path.join(home, name), ignore_errors=True)
                runs.drop_session(project.state_dir, task.uid)
            yield Swept(kind, os.path.join(home, name), name)
