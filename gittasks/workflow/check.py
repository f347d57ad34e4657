"""Runs a task's checks: to look, on the merged result, or as the checker whose verdict counts.

A verdict is about one commit, the submitted tip, run in the task's own tree; it is recorded only
if task and tree are still as they were. Output stays on this host.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Busy, CheckFailed, NotAllowed, Refused, Taken
from gittasks.domain.requests import RecordCheck
from gittasks.plumbing import refs
from gittasks.plumbing.errors import LockTimeout
from gittasks.plumbing.locks import FileLock
from gittasks.workflow.project import Outcome
from gittasks.workflow.trust import trust_of
from gittasks.workspaces import checks, landing, quarantine, worktree
from gittasks.workspaces.branch import HEADS
from gittasks.workspaces.spare import Spare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.requests import Speaker
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project

LIMIT = 1800.0
"""How many seconds one command may take where gittasks.checkTimeout says nothing."""

_NO_PATIENCE = 0.05


class Checked(NamedTuple):
    """A run of the checks that moved nothing: on which commit, where, and how it went."""

    task: Task
    commit: str
    tree: str
    run: checks.Run


def check(
    project: Project, spelling: str | None, *, merged: bool = False, record: bool = False
) -> Outcome:
    """Runs the checks of a task; raises CheckFailed where one fails.

    With `merged` they run on the result of merging the task's branch into the base, elsewhere;
    with `record` the verdict moves the task on from CHECK.
    """
    task_id = project.resolve(spelling)
    task = project.task(task_id)
    if record:
        return record_check(project, task_id)
    require_trusted(project, task)
    done = _on_merged(project, task) if merged else _in_tree(project, task)
    if not done.run.has_passed:
        where = f"the merged result {done.commit[:12]}" if merged else done.tree
        raise CheckFailed(
            f"The checks of {task.id} failed in {where}.\n{done.run.report}",
            "Correct what is named and check again.",
            task.id,
        )
    notes = (done.run.report,) if done.run.outcomes else ("There are no checks.",)
    return Outcome(
        task, "check", task.state, task.state, changed=False, notes=notes, extra=_facts(done)
    )


def record_check(project: Project, task_id: str) -> Outcome:
    """Checks the submitted tip as the checker and records the verdict.

    Raises CheckFailed after recording a failure, and Busy while somebody else checks it in this
    clone: two runs in one tree could fail each other. Where the commands are not approved in this
    clone nothing runs, the task stays at CHECK and the outcome says what to do.
    """
    path = os.path.join(project.state_dir, "checks", f"{task_id}.flk")
    lock = FileLock(path, _NO_PATIENCE, f"check of {task_id}")
    try:
        lock.acquire()
    except LockTimeout as error:
        raise Busy(
            f"The checks of {task_id} are running: {error}", "Let them finish.", task_id
        ) from None
    try:
        project.ledger.refresh()
        return _recorded(project, task_id)
    finally:
        lock.release()


def _recorded(project: Project, task_id: str) -> Outcome:
    task = project.task(task_id)
    speaker = _checker(project, task)
    if task.state != "CHECK":
        raise NotAllowed(
            f"The task {task.id} is at {task.state}, so there is no check to record.",
            f"Run `git tasks check {task.id}` to run its checks without recording them.",
            task.id,
        )
    untrusted = trust_of(project).untrusted(task.checks)
    if untrusted:
        return _waits_for_trust(task, untrusted)
    tip = task.submitted_tip
    assert tip is not None
    run = checks.Run() if not task.checks else _verdict(project, task, tip)
    appended = project.apply(RecordCheck(task.id, tip, run.results, run.findings), speaker)
    outcome = project.outcome(
        task.id, appended, report=run.report, output=logs_of(project, task.id)
    )
    if not run.has_passed:
        raise CheckFailed(
            f"The checks of {task.id} failed; it is back at {outcome.target}.\n{run.report}",
            f"Correct it and submit again: git tasks start {task.id}."
            if outcome.target == "WORK"
            else f"Look at it and let it go on: git tasks resume {task.id}.",
            task.id,
        )
    return outcome


def require_trusted(project: Project, task: Task) -> None:
    """Raises Refused for commands that nobody has approved in this clone."""
    untrusted = trust_of(project).untrusted(task.checks)
    if untrusted:
        raise Refused(
            f"The checks of {task.id} are not approved in this clone: {_shown(untrusted)}.",
            f"Read them and approve them with `git tasks trust {task.id}`.",
            task.id,
        )


def limit_of(project: Project) -> float:
    """Returns how many seconds one command may take here."""
    return project.config.get_seconds("gittasks.checkTimeout", LIMIT)


def logs_of(project: Project, task_id: str, *parts: str) -> str:
    """Returns the folder of the outputs of a task's checks on this host."""
    return os.path.join(project.state_dir, "checks", task_id, *parts)


def last_report(project: Project, task_id: str) -> str | None:
    """Returns how the last recorded check went on this host, with the ends of the outputs."""
    try:
        with open(_report_file(project, task_id), encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _checker(project: Project, task: Task) -> Speaker:
    """Returns the checker; whoever ran the submit speaks for it, and needs no claim."""
    speaker = project.speaker("check", task.id)
    if task.claim is not None and speaker.claim != task.claim:
        raise Taken(
            f"The check of {task.id} is held by {task.claimed_by}.", "Let it finish.", task.id
        )
    return speaker._replace(role="checker", claim=task.claim)


def _waits_for_trust(task: Task, untrusted: Sequence[str]) -> Outcome:
    note = (
        f"The task {task.id} stays at CHECK: these checks are not approved in this clone: "
        f"{_shown(untrusted)}. Read them, approve them with `git tasks trust {task.id}`, "
        f"then run `git tasks check {task.id} --record`."
    )
    extra = {"untrusted": list(untrusted)}
    return Outcome(task, "none", "CHECK", "CHECK", changed=False, notes=(note,), extra=extra)


def _shown(commands: Sequence[str]) -> str:
    return ", ".join(f"`{checks.printable(command)}`" for command in commands)


def _verdict(project: Project, task: Task, tip: str) -> checks.Run:
    """Runs the checks on exactly the submitted tip; raises Refused if anything moves meanwhile."""
    tree = _tree(project, task)
    _require_at(project, task, tree, tip)
    moved = Watch(project, task)
    # Only one records a check at a time: what a killed one has left is nobody's.
    sweep(project, task.id)
    owner = _owner(project, task.id)
    run = run_in(project, task, tree, logs_of(project, task.id), stop=moved, owner=owner)
    if run.stopped:
        raise Refused(
            f"The task {task.id} left CHECK while its checks ran; they were stopped "
            "and nothing was recorded.",
            f"Look at it: git tasks show {task.id}.",
            task.id,
        )
    _require_same_tip(project, task, tree, tip)
    _keep_report(project, task, run)
    return run


def sweep(project: Project, task_id: str) -> None:
    """Kills what a recorded check of a task has left when it was killed itself."""
    checks.sweep(_owner(project, task_id))


def _owner(project: Project, task_id: str) -> str:
    return f"{project.host}.{task_id}.record."


def _in_tree(project: Project, task: Task) -> Checked:
    tree = project.places.tree(task.id)
    logs = logs_of(project, task.id, "looked")
    if quarantine.of_tree(project.state_dir, tree) is None:
        tree = _tree(project, task)
    elif not os.access(project.state_dir, os.W_OK):
        # The agent itself looks, from inside its sandbox.
        logs = os.path.join(os.path.dirname(tree), "agent", "checks")
    commit = refs.head(project.repo, at=tree).oid or ""
    run = run_in(project, task, tree, logs)
    return Checked(task, commit, tree, run)


def _on_merged(project: Project, task: Task) -> Checked:
    reader = project.ledger.reader
    base_name = project.base
    if project.remote is not None:
        from gittasks.workflow import work_branches  # only a clone that shares

        base_name = work_branches.base_of(project)
        work_branches.have_branch(project, task)
    base = landing.require_base(reader, base_name)
    found = reader.get(HEADS + task.branch) if task.branch else None
    if found is None:
        raise Refused(
            f"The task {task.id} has no branch to merge.", f"Run `git tasks start {task.id}`."
        )
    who = landing.Identity(*project.identity(), project.clock())
    commit = landing.merged(project.repo, reader, task, base, found.oid, "merge", who)
    if not task.checks:
        return Checked(task, commit, "", checks.Run())
    with Spare(project.repo, project.places, task.id, commit) as tree:
        run = run_in(project, task, tree, logs_of(project, task.id, "merged"))
    return Checked(task, commit, "", run)


def run_in(
    project: Project,
    task: Task,
    tree: str,
    log_dir: str,
    stop: Callable[[], bool] | None = None,
    owner: str = "",
) -> checks.Run:
    """Runs the checks of a task in a tree, as long and with as much as this clone allows."""
    return checks.run(
        task.checks,
        tree,
        log_dir,
        limit=limit_of(project),
        environ=project.environ,
        stop=stop,
        owner=owner,
    )


def _tree(project: Project, task: Task) -> str:
    """Returns the tree of the task, brought back where it is missing and somebody works on it."""
    if task.branch is None:
        raise Refused(
            f"The task {task.id} has no branch yet, so there is nothing to check.",
            f"Run `git tasks start {task.id}` first.",
            task.id,
        )
    if project.remote is not None:
        from gittasks.workflow import work_branches  # only a clone that shares

        work_branches.have_branch(project, task)
    if project.ledger.reader.get(HEADS + task.branch) is None:
        known = task.submitted_tip or task.dispatched
        raise Refused(
            f"The branch {task.branch} does not exist, so there is nothing to check.",
            f"Bring it back: git branch {task.branch} {known}.",
            task.id,
        )
    return worktree.ensure(
        project.repo, project.places, task.id, task.branch, fresh=False, now=project.clock()
    )


def _require_at(project: Project, task: Task, tree: str, tip: str) -> None:
    assert task.branch is not None
    now = worktree.snapshot(project.repo, tree, task.branch)
    if now.head == tip == now.tip and not now.status:
        return
    what = f"at {(now.head or 'no commit')[:12]}" if now.head != tip else "not clean"
    if now.head == tip != now.tip:
        what = f"behind its branch, which is at {(now.tip or 'no commit')[:12]}"
    raise Refused(
        f"The tree {tree} is {what}; only the submitted commit {tip[:12]} is checked.",
        f"Bring it back there: git -C {tree} status.",
        task.id,
    )


def _require_same_tip(project: Project, task: Task, tree: str, tip: str) -> None:
    """Raises Refused if a check, or somebody beside it, has moved branch or tree to elsewhere."""
    assert task.branch is not None
    now = worktree.snapshot(project.repo, tree, task.branch)
    if now.head != tip or now.tip != tip:
        raise Refused(
            f"The branch {task.branch} moved while the checks ran; nothing was recorded.",
            "Run the checks again on the submitted commit.",
            task.id,
        )


class Watch:
    """Tells, cheaply and often, whether a task has left the state and commit it was checked for."""

    def __init__(self, project: Project, task: Task) -> None:
        """Remembers how the task is now."""
        self._project = project
        self._task = task
        self._tip = project.ledger.tip
        self._seen = self._traces()

    def __call__(self) -> bool:
        """Tells whether the check is about something that is no longer so."""
        traces = self._traces()
        if traces == self._seen:
            return False
        self._seen = traces
        ledger = self._project.ledger
        ledger.refresh()
        if ledger.tip == self._tip:
            return False
        self._tip = ledger.tip
        now = ledger.graph().get(self._task.id)
        return now is None or (now.state, now.submitted_tip, now.claim) != (
            self._task.state,
            self._task.submitted_tip,
            self._task.claim,
        )

    def _traces(self) -> tuple[tuple[int, int] | None, ...]:
        """Returns what a move of the ledger changes in the file system; asking git costs more."""
        repo = self._project.repo
        home = repo.common_dir
        files = (
            refs.ref_file(repo, self._project.branch),
            os.path.join(home, "packed-refs"),
            os.path.join(home, "reftable", "tables.list"),
        )
        return tuple(map(_trace, files))


def _trace(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _keep_report(project: Project, task: Task, run: checks.Run) -> None:
    path = _report_file(project, task.id)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(run.report + "\n")


def _report_file(project: Project, task_id: str) -> str:
    return logs_of(project, task_id, "report.txt")


def _facts(done: Checked) -> dict[str, object]:
    return {
        "checked": done.commit,
        "results": [result._asdict() for result in done.run.results],
        "logs": [outcome.log for outcome in done.run.outcomes],
    }
