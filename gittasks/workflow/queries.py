"""What can be asked without changing anything: every answer is true for one ledger commit.

Lists come from the read cache; a git object is read only where a document's body or the history
is asked for.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.ledger import snapshot as _cache

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gittasks.domain.task import Task
    from gittasks.ledger.snapshot import Problem, Snapshot
    from gittasks.workflow.project import Project

Filter = _cache.Filter
"""Which tasks a list has."""

SORTS = ("id", "position", "priority", "state", "age", "blocking", "title")
ROW_LIMIT = 100
"""The most rows that `ready` and `inbox` give without being asked for more."""
_TEXT_LIMIT = 160


class Rows(NamedTuple):
    """Some tasks, how many more there are, and the documents that could not be read."""

    rows: Sequence[Any]
    left_out: int
    problems: tuple[Problem, ...]


class Waiting(NamedTuple):
    """One row of the inbox."""

    task: Task
    rank: int
    reason: str
    command: str
    blocking: int
    waiting_since: str


def snapshot_of(project: Project) -> Snapshot:
    """Returns the read cache at the tip; raises NoLedger before `init`."""
    return project.ledger.snapshot


def task_of(project: Project, task_id: str) -> Task:
    """Returns a task; raises UnknownTask, or Corrupt naming what its document has wrong."""
    return project.ledger.graph().need(task_id)


def now_of(project: Project) -> str:
    """Returns the time as documents spell it."""
    return time_text(project.clock())


def time_text(seconds: int) -> str:
    """Returns a point in time as documents spell it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def list_columns(
    project: Project,
    where: Filter,
    columns: Sequence[str],
    sort: str = "id",
    limit: int | None = None,
) -> Rows:
    """Returns plain rows of the columns named."""
    snapshot = snapshot_of(project)
    order = "entered" if sort == "age" else sort
    rows = snapshot.listing(columns, where, sort=order, limit=limit)
    left_out = snapshot.count(where) - len(rows) if len(rows) == limit else 0
    return Rows(rows, left_out, snapshot.problems())


def list_tasks(project: Project, where: Filter, sort: str = "id", limit: int | None = None) -> Rows:
    """Returns whole tasks."""
    found = list_columns(project, where, ("id",), sort, limit)
    return found._replace(rows=tasks_of(project, (row[0] for row in found.rows)))


def ready(project: Project, role: str | None, limit: int | None, actor: str | None) -> Rows:
    """Returns what a role (of None, any) could take, in dispatch order, as rows of the queue."""
    snapshot = snapshot_of(project)
    roles = None if role is None else (role,)
    rows = snapshot.ready(roles, limit, actor)
    left_out = 0
    if limit is not None and len(rows) == limit:
        left_out = snapshot.ready_count(roles, actor) - len(rows)
    return Rows(rows, left_out, snapshot.problems())


def tasks_of(project: Project, ids: Iterable[str]) -> list[Task]:
    """Returns the tasks with these ids, in this order."""
    return snapshot_of(project).tasks(ids)


def inbox(project: Project, limit: int | None) -> Rows:
    """Returns the decisions that wait for the manager, first to last."""
    from gittasks.domain.projections.inbox import explained

    snapshot = snapshot_of(project)
    now = now_of(project)
    renewed = _renewed(project, snapshot, now)
    found = snapshot.inbox(now, limit, renewed)
    total = snapshot.inbox_count(now, renewed)
    rows = [(row.rank, -row.blocking, row.waiting_since, row.id) for row in found]
    untrusted = _waiting_for_trust(project, snapshot)
    known = {row[3] for row in rows}
    for row in untrusted:
        if row[3] not in known:
            rows.append(row)
            total += 1
    if untrusted:
        rows = sorted(rows)[:limit]
    tasks = {task.id: task for task in snapshot.tasks(row[3] for row in rows)}
    graph = project.ledger.graph()
    waiting = []
    for rank, blocking, since, task_id in rows:
        reason, command = _refused(project, tasks[task_id]) or explained(
            graph, tasks[task_id], rank
        )
        waiting.append(Waiting(tasks[task_id], rank, reason, command, -blocking, since))
    return Rows(waiting, total - len(waiting), snapshot.problems())


def _renewed(project: Project, snapshot: Snapshot, now: str) -> Collection[str]:
    """Returns the ids of tasks whose leases only look expired."""
    expired = snapshot.expired(now)
    if not expired:
        return ()
    from gittasks.workflow.leases import still_held  # only where a lease looks expired

    return still_held(project, snapshot.tasks(expired), now)


def kept_tips(project: Project) -> list[str]:
    """Returns the refs of ledger tips that a recovery has replaced, oldest first.

    What a sync has replaced was replayed, and is nothing to look at.
    """
    from gittasks.ledger.layout import BY_SYNC, PRE_REPLAY
    from gittasks.plumbing import refs

    return [name for name in refs.list(project.repo, PRE_REPLAY) if BY_SYNC not in name]


def _refused(project: Project, task: Task) -> tuple[str, str] | None:
    """Returns reason and command of a task whose last landing was refused in this clone."""
    if task.state != "MANAGER_REVIEW":
        return None
    from gittasks.workspaces import records  # only where a landing may have been refused

    why = records.refusal(project.state_dir, task.id, task.submitted_tip)
    if why is None:
        return None
    return f"refused: {why}", f"git tasks feedback {task.id} --from-landing"


def _waiting_for_trust(project: Project, snapshot: Snapshot) -> list[tuple[int, int, str, str]]:
    """Returns the rows for tasks at CHECK whose commands nobody here has approved."""
    checking = snapshot.listing(("id", "blocking", "entered_at"), Filter(states=("CHECK",)))
    if not checking:
        return []
    from gittasks.domain.machine import INBOX_UNTRUSTED_CHECK
    from gittasks.workspaces.trust import Trust

    trust = Trust(project.state_dir, project.config.get("gittasks.trust"))
    checks = {task.id: task.checks for task in snapshot.tasks(row[0] for row in checking)}
    return [
        (INBOX_UNTRUSTED_CHECK, -blocking, entered, task)
        for task, blocking, entered in checking
        if trust.untrusted(checks[task])
    ]


class Node(NamedTuple):
    """One line of a dependency tree: how deep, which task, and whether it was shown above."""

    depth: int
    task: Task
    repeated: bool


def dependency_tree(project: Project, task_id: str) -> list[Node]:
    """Returns a task and all that it needs, each subtree once, depth first."""
    snapshot = snapshot_of(project)
    nodes: list[Node] = []
    seen: set[str] = set()
    stack = [(0, task_of(project, task_id))]
    while stack:
        depth, task = stack.pop()
        repeated = task.id in seen and bool(task.depends_on)
        nodes.append(Node(depth, task, repeated))
        if task.id in seen:
            continue
        seen.add(task.id)
        needs = snapshot.tasks(task.depends_on)
        stack.extend((depth + 1, needed) for needed in reversed(needs))
    return nodes


def cycles(project: Project) -> list[tuple[str, ...]]:
    """Returns the rings of dependencies among open tasks, the first id of each repeated last.

    Commands refuse to make one; a document written by hand can.
    """
    snapshot = snapshot_of(project)
    needs = {
        task.id: task.depends_on
        for task in snapshot.all_tasks(include_closed=False)
        if task.depends_on
    }
    rings: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in needs:
        path: list[str] = []
        place: dict[str, int] = {}
        stack: list[tuple[str, int]] = [(start, 0)]
        while stack:
            task, depth = stack.pop()
            for left in path[depth:]:
                del place[left]
                done.add(left)
            del path[depth:]
            if task in place:
                rings.append((*path[place[task] :], task))
                continue
            if task in done or task not in needs:
                continue
            place[task] = depth
            path.append(task)
            stack.extend((needed, depth + 1) for needed in reversed(needs[task]))
        done.update(path)
    return rings


def shortened(text: str) -> str:
    """Returns a text of bounded length on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_LIMIT else line[: _TEXT_LIMIT - 3] + "..."


def versions() -> dict[str, Any]:
    """Returns the versions of the tool, the ledger format, git and Python."""
    import os
    import sys

    from gittasks import __version__
    from gittasks.ledger.layout import FORMAT
    from gittasks.plumbing import repository
    from gittasks.plumbing.process import run

    asked = run([repository.GIT, "--version"], env=os.environ, timeout=10)
    words = os.fsdecode(asked.stdout).split()
    return {
        "gittasks": __version__,
        "ledger_format": FORMAT,
        "git": words[2] if len(words) > 2 else "unknown",
        "python": ".".join(str(part) for part in sys.version_info[:3]),
    }
