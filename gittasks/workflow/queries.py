"""What can be asked without changing anything: every answer is true for one ledger commit.

Lists come from the read cache; a git object is read only where a document's body or the history
is asked for.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain.errors import UnknownTask, UsageFault
from gittasks.ledger import snapshot as _cache

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gittasks.domain.events import CheckResult, Event
    from gittasks.domain.task import Task
    from gittasks.ledger.snapshot import Problem, Snapshot
    from gittasks.workflow.project import Project

Filter = _cache.Filter
"""Which tasks a list has."""

SORTS = ("id", "position", "priority", "state", "age", "blocking", "title")
ROW_LIMIT = 100
"""The most rows that `ready` and `inbox` give without being asked for more."""
_QUEUE_LIMIT = 5
_TEXT_LIMIT = 160
_CHILDREN_LIMIT = 20


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


class Entry(NamedTuple):
    """One event of the ledger: its commit, the event, and the subject that people read."""

    oid: str
    event: Event
    subject: str


class Change(NamedTuple):
    """What a task changes: from where, to where, which files, and the diff."""

    base: str
    tip: str
    files: tuple[tuple[str, str], ...]
    """Status letter and path of each file."""
    stat: str
    patch: str

    def as_object(self) -> dict[str, Any]:
        """Returns the change as JSON has it."""
        files = [{"status": status, "path": path} for status, path in self.files]
        return {"base": self.base, "tip": self.tip, "files": files, "patch": self.patch}


class Overview(NamedTuple):
    """Where the project stands."""

    here: Task | None
    mine: tuple[Task, ...]
    mine_count: int
    counts: dict[str, int]
    inbox: Rows
    inbox_count: int
    ready_count: int
    running: int
    working: dict[str, int]
    """For each parent of running tasks how many of its direct children run."""
    waiting_on: str
    problems: int


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


# ------------------------------------------------------------------------------------------ lists


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
    found = snapshot.inbox(now, limit)
    total = snapshot.inbox_count(now)
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
        reason, command = explained(graph, tasks[task_id], rank)
        waiting.append(Waiting(tasks[task_id], rank, reason, command, -blocking, since))
    return Rows(waiting, total - len(waiting), snapshot.problems())


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


# --------------------------------------------------------------------------------------- one task


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


def change(
    project: Project, task: Task, *, patch: bool = True, tests: bool = False
) -> Change | None:
    """Returns what a task changes against the merge base, None when it has no commits."""
    ends = _ends(project, task)
    if ends is None:
        return None
    base, tip = ends
    repo = project.repo
    listed = repo.text("diff", "--name-status", "--no-renames", "-z", base, tip, "--")
    words = listed.split("\0")
    files = [pair for pair in zip(words[::2], words[1::2], strict=False) if pair[1]]
    if tests:
        files = [pair for pair in files if is_test_file(pair[1])]
    paths = [f":(top,literal){path}" for _, path in files] if tests else []
    stat = text = ""
    if files and patch:
        text = repo.text("diff", "--no-ext-diff", "--no-textconv", base, tip, "--", *paths)
    elif files:
        stat = repo.text("diff", "--stat=80", "--no-ext-diff", base, tip, "--", *paths)
    return Change(base, tip, tuple(files), stat, text)


def _ends(project: Project, task: Task) -> tuple[str, str] | None:
    """Returns the two commits between which the task's change lies."""
    from gittasks.plumbing import merging, refs

    repo = project.repo
    branch = f"refs/heads/{task.branch}" if task.branch else None
    tip = refs.read(repo, branch) if branch else None
    if tip is not None:
        trunk = refs.read(repo, project.base) or task.base
        base = merging.merge_base(repo, trunk, tip) if trunk else None
        if base is not None and base != tip:
            return base, tip
    # Once landed the branch may be gone; the merge itself says what came in.
    landed = task.landed
    if landed is None:
        return None
    parent = repo.text("rev-parse", "--verify", "--quiet", f"{landed}^1^{{commit}}", check=False)
    return (parent, landed) if parent else None


def is_test_file(path: str) -> bool:
    """Tells whether a path is that of a test, by the habits of most languages."""
    *folders, name = path.lower().split("/")
    stem = name.partition(".")[0]
    return (
        any(folder in ("test", "tests", "spec", "specs", "__tests__") for folder in folders)
        or stem.startswith(("test_", "test-"))
        or stem.endswith(("_test", "-test", "_spec", "-spec", "tests"))
        or ".test." in name
        or ".spec." in name
    )


# ---------------------------------------------------------------------------------------- history


def log(
    project: Project, task_id: str | None, *, since: str | None = None, limit: int | None = None
) -> Iterator[Entry]:
    """Yields the events of the ledger or of one task, newest first."""
    from gittasks.ledger import history

    tip = project.ledger.tip
    arguments = [tip] if since is None else [*_newer_than(project, tip, since), tip]
    if task_id is None:
        for one in history.commits(project.repo, arguments, limit=limit):
            yield Entry(one.oid, one.event, one.subject)
        return
    left = limit
    wanted = ("--fixed-strings", f"--grep=Task: {task_id}")
    for one in history.commits(project.repo, (*wanted, *arguments)):
        # The words may also stand in a text.
        if one.event.task != task_id:
            continue
        if left is not None:
            left -= 1
            if left < 0:
                return
        yield Entry(one.oid, one.event, one.subject)


def _newer_than(project: Project, tip: str, since: str) -> tuple[str, ...]:
    """Returns how git is asked for what is newer than a commit, a date or an age."""
    from gittasks.plumbing import merging

    repo = project.repo
    if not since.startswith("-"):
        asked = ("rev-parse", "--verify", "--quiet", f"{since}^{{commit}}")
        commit = repo.text(*asked, check=False)
        if commit and merging.is_ancestor(repo, commit, tip):
            return (f"^{commit}",)
        if commit:
            raise UnknownTask(
                f"The commit {since} is not part of the ledger.",
                "Name a commit of `git tasks log`, a date, or an age such as 2.days.",
            )
    age = repo.text("rev-parse", f"--since={since}").removeprefix("--max-age=")
    # For words that mean nothing git takes the present moment.
    if since.strip().lower() != "now" and abs(int(age) - time.time()) <= 2:  # noqa: TID251
        raise UsageFault(
            f"{since!r} is no date, no age and no commit.",
            "Give a date such as 2026-11-30, an age such as 2.days, or a commit.",
        )
    return (f"--max-age={age}",)


# ----------------------------------------------------------------------------------- dependencies


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


# ----------------------------------------------------------------------------------------- status


def overview(project: Project, actor: str) -> Overview:
    """Returns where the project stands, seen by one actor."""
    snapshot = snapshot_of(project)
    here_id = project.here()
    here = None if here_id is None else snapshot.task(here_id)
    mine = [row[0] for row in snapshot.listing(("id",), Filter(mine=actor))]
    counts = snapshot.counts()
    waiting = inbox(project, _QUEUE_LIMIT)
    claimed = snapshot.listing(("id", "parent"), Filter(claimed=True))
    working: dict[str, int] = {}
    for _, parent in claimed:
        if parent is not None:
            working[parent] = working.get(parent, 0) + 1
    ready_count = snapshot.ready_count()
    waits = len(waiting.rows) + waiting.left_out
    return Overview(
        here=here,
        mine=tuple(snapshot.tasks(mine[:_QUEUE_LIMIT])),
        mine_count=len(mine),
        counts=counts,
        inbox=waiting,
        inbox_count=waits,
        ready_count=ready_count,
        running=len(claimed),
        working=dict(sorted(working.items())[:_CHILDREN_LIMIT]),
        waiting_on=_waiting_on(counts, len(claimed), ready_count, waits),
        problems=len(snapshot.problems()),
    )


def _waiting_on(counts: dict[str, int], running: int, ready_count: int, waits: int) -> str:
    """Says who has the next move: what runs, what could run, the manager, a dependency."""
    if running or ready_count:
        return "agent"
    if counts.get("CHECK"):
        return "checker"
    if waits:
        return "manager"
    return "dependency" if counts.get("BLOCKED") else "none"


def shortened(text: str) -> str:
    """Returns a text of bounded length on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_LIMIT else line[: _TEXT_LIMIT - 3] + "..."


# --------------------------------------------------------------------------------------- versions


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
