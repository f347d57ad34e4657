"""Claim, start and release: who works on what, and where.

A claim is one ledger event and, in the same ref transaction, the task's branch. Only when it
counts are the worktree and the assignment made. The record with the secret is written before the
event is published, so that a crash in between leaves the holder able to go on.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain import assignment, frontmatter, machine
from gittasks.domain.errors import AlreadyClaimed, NothingFound, Taken, Unconfirmed
from gittasks.domain.events import FeedbackGiven, Held
from gittasks.domain.requests import Claim, Release, Speaker
from gittasks.domain.task_graph import draft_of
from gittasks.plumbing import refs
from gittasks.workflow import dispatch
from gittasks.workflow.project import Outcome, Publishing
from gittasks.workspaces import branch as branches
from gittasks.workspaces import guard, leftovers, records, runs, worktree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gittasks.domain.events import Pairs
    from gittasks.domain.requests import Request
    from gittasks.domain.task import Role, Task
    from gittasks.domain.task_graph import Graph
    from gittasks.plumbing.refs import Change
    from gittasks.workflow.project import Project

TRIED = 20
"""How many heads of the queue a `--next` looks at before it says that there is none."""


class Hired(NamedTuple):
    """An agent that a runner takes a task for, and what the ledger is told of it."""

    actor: str
    role: Role
    lease: int
    """How many seconds the claim lasts unless it is renewed."""
    process: records.Process | None = None
    """The runner, until the agent's own process is known."""
    sandbox: str | None = None
    prompts: Pairs = ()


def claim(
    project: Project,
    spelling: str | None = None,
    *,
    take_next: bool = False,
    with_tree: bool = True,
    hired: Hired | None = None,
) -> Outcome:
    """Takes a task, the one named or the next in the queue, and prepares where it is worked on.

    The outcome's extra has `claim_secret`, `tree` and `assignment`; a task that this actor
    already holds in this clone keeps its claim and gets a lost worktree back. What is taken for
    an agent that was `hired` is always taken anew.
    """
    if project.publishes:
        from gittasks.workflow import exchange  # only a clone that shares

        # Others may have taken it, or made it ready.
        exchange.pull(project)
    attempt = _Attempt(project, None if take_next else project.resolve(spelling), hired)
    if attempt.task_id is not None and hired is None:
        held = _already(project, project.task(attempt.task_id), attempt.speaker)
        if held is not None:
            from gittasks.workflow import leases  # whoever claims it again is still at work

            attempt.bring_branch()
            if leases.renew_own(project, project.task(attempt.task_id), held):
                project.ledger.has_written = True
            return _prepared(project, held, with_tree=with_tree, changed=False, commit=None)
    try:
        appended = project.apply(
            attempt.requests,
            lambda: attempt.speaker,
            also=attempt.changes,
            publishing=attempt.publishing,
        )
    except Unconfirmed:
        # If the remote has it after all, whoever has the record holds the claim.
        raise
    except AlreadyClaimed:
        held = attempt.own_meanwhile()
        if held is None or hired is not None:
            raise
        return _prepared(project, held, with_tree=with_tree, changed=False, commit=None)
    except BaseException:
        attempt.abandon()
        raise
    record = attempt.record if appended.events else attempt.own_meanwhile()
    assert record is not None
    _forget_others(project, record)
    changed = bool(appended.commits)
    commit = appended.commits[-1] if changed else None
    return _prepared(project, record, with_tree=with_tree, changed=changed, commit=commit)


def start(project: Project, spelling: str | None = None) -> Outcome:
    """Takes a task and makes its worktree; without an id outside a tree, the next in the queue."""
    if spelling is None and project.here() is None:
        return claim(project, take_next=True)
    return claim(project, spelling)


def release(
    project: Project, spelling: str | None, reason: str | None = None, *, force: bool = False
) -> Outcome:
    """Gives a task back unfinished; with `force` the manager takes it from whoever holds it."""
    task_id = project.resolve(spelling)
    project.task(task_id)
    speaker = project.speaker("abort" if force else "release", task_id)
    request = Release(task_id, reason, "forced" if force else "released")
    appended = project.apply(request, speaker)
    if not force:
        dispatch.forget_claim(project, speaker, task_id)
    return project.outcome(task_id, appended)


class _Attempt:
    """One attempt to take a task; decided again, on the fresh graph, whenever a race is lost."""

    def __init__(self, project: Project, task_id: str | None, hired: Hired | None = None) -> None:
        self.project = project
        self.task_id = task_id
        self.hired = hired
        self.speaker = self._speaker()
        self.secret, self.claim = records.new_secret()
        self.record: records.ClaimRecord | None = None
        self.change: Change | None = None
        self.tried = 0
        if task_id is None and self.speaker.role == "manager":
            self.speaker = self.speaker._replace(role=None)

    def requests(self, graph: Graph) -> Iterable[Request]:
        """Returns the claim of the task named, or of the first in the queue that can be taken."""
        task = self._chosen(graph)
        self.abandon()
        project = self.project
        if self.tried and self.task_id is not None:
            # It may belong to another role by now.
            self.speaker = self._speaker()
        self.tried += 1
        _require_no_former_agent(project, task)
        if self.task_id is None:
            # The queue decides the role: whoever takes the task speaks as the owner of its state.
            self.speaker = self.speaker._replace(role=machine.STAGE[task.state].role)
        is_elsewhere = project.remote is not None and task.branch is not None
        if machine.STAGE[task.state].claimable and (task.claim is None or is_elsewhere):
            # Whoever takes over from another clone may not have the branch yet.
            planned = self._planned(task)
            self.change = planned.change
            name, base, tip = planned.name, planned.base, planned.tip
        else:
            self.change = None
            name, base, tip = task.branch or "", task.base or "", task.dispatched or ""
        now = project.clock()
        self.record = records.ClaimRecord(
            claim=self.claim,
            secret=self.secret,
            task=task.id,
            uid=task.uid,
            actor=self.speaker.actor,
            role=self.speaker.role or "",
            state=task.state,
            process=self.hired.process if self.hired else None,
            at=now,
        )
        records.write(project.state_dir, self.record)
        if self.hired is None:
            return (Claim(task.id, self.claim, now + project.lease, name, base, tip),)
        return (
            Claim(
                task.id, self.claim, now + self.hired.lease, name, base, tip,
                sandbox=self.hired.sandbox, prompts=self.hired.prompts,
            ),
        )  # fmt: skip

    def _speaker(self) -> Speaker:
        if self.hired is not None:
            return Speaker(self.hired.actor, self.hired.role)
        return self.project.speaker("claim", self.task_id, claiming=True)

    def _planned(self, task: Task) -> branches.Branch:
        """Returns where the branch of a task has to stand, with what others have done of it."""
        project = self.project
        repo, reader, prefix = project.repo, project.ledger.reader, project.branch_prefix
        if project.remote is None:
            return branches.plan_branch(repo, reader, task, project.base, prefix)
        from gittasks.workflow import work_branches  # only a clone that shares

        base = work_branches.base_of(project)
        if task.claim is not None and task.base is not None and reader.get(task.base) is not None:
            # What is taken over stays on what it was begun on.
            base = task.base
        if task.branch is not None:
            work_branches.complete_history(project, task)
            fetched = work_branches.fetched_tip(project, task.branch)
            return branches.plan_branch(repo, reader, task, base, prefix, fetched=fetched)
        taken = work_branches.names_taken(project, task)
        return branches.plan_branch(repo, reader, task, base, prefix, taken=taken)

    @property
    def publishing(self) -> Publishing:
        """Returns how the claim becomes public; the remote was asked just now."""
        project = self.project
        if not project.publishes:
            return Publishing()
        from gittasks.workflow import sharing  # only a clone that shares

        return Publishing((project.base,), sharing.globs(project), fresh=False)

    def changes(self) -> Sequence[Change]:
        """Returns the move of the task's branch that goes with the claim."""
        return () if self.change is None else (self.change,)

    def bring_branch(self) -> None:
        """Makes the branch of a claim that the remote took while this clone did not hear of it."""
        project = self.project
        task = project.task(str(self.task_id))
        if project.remote is None or task.branch is None:
            return
        if project.ledger.reader.get(branches.HEADS + task.branch) is None:
            change = self._planned(task).change
            refs.transaction(project.repo, [change] if change else [], f"{task.id} claim")

    def own_meanwhile(self) -> records.ClaimRecord | None:
        """Returns the claim that the same actor took in this very moment, in another process."""
        task_id = self.record.task if self.record else self.task_id
        self.abandon()
        return _already(self.project, self.project.task(str(task_id)), self.speaker)

    def abandon(self) -> None:
        """Forgets the record of an attempt that did not succeed."""
        if self.record is not None:
            records.drop(self.project.state_dir, self.record.claim)
            self.record = None

    def _chosen(self, graph: Graph) -> Task:
        if self.task_id is not None:
            task = graph.get(self.task_id)
            assert task is not None
            return task
        roles = (self.speaker.role,) if self.speaker.role else None
        for row in self.project.ledger.ready(roles, TRIED, self.speaker.actor):
            task = graph.get(row.id)
            if task is None or task.claim is not None or not machine.STAGE[task.state].claimable:
                continue
            reader = self.project.ledger.reader
            if branches.lacks_submitted(reader, task):
                continue
            if branches.astray(self.project.repo, reader, task) is None:
                return task
        wanted = f"the {self.speaker.role}" if self.speaker.role else "anybody"
        raise NothingFound(
            f"No task is ready for {wanted}.", "Run `git tasks ready` to see the whole queue."
        )


def _already(project: Project, task: Task, speaker: Speaker) -> records.ClaimRecord | None:
    """Returns the record of the claim that this actor holds in this clone already."""
    if task.claim is None:
        return None
    record = records.with_claim(project.state_dir, task.claim)
    if record is None:
        record = records.bring_back(project.state_dir, task.claim, task.id)
    if record is None or record.actor != speaker.actor or record.uid != task.uid:
        return None
    return record


def _require_no_former_agent(project: Project, task: Task) -> None:
    """Refuses a claim while somebody is in the task's tree for a former one.

    That is its agent, or the runner, which has yet to bring in what a dead agent has left there.
    """
    former = [
        (record.actor, record.process)
        for record in records.of_task(project.state_dir, task.uid)
        if record.claim != task.claim
    ]
    left = [
        run
        for run in runs.all(project.state_dir)
        if run.uid == task.uid and run.claim != task.claim
    ]
    former += [(run.slot, run.process) for run in left]
    for actor, process in former:
        if process is not None and records.is_alive(process):
            raise Taken(
                f"The agent {actor} of a former claim on {task.id} still runs "
                f"(process {process[0]}).",
                f"Stop it first: kill {process[0]}.",
                task.id,
            )
    for run in left:
        if runs.is_looked_after(run):
            raise Taken(
                f"The agent {run.slot} of a former claim on {task.id} has just ended, and its "
                "runner brings in what it has left.",
                "Try again in a moment.",
                task.id,
            )


def _forget_others(project: Project, new: records.ClaimRecord) -> None:
    """Drops this actor's stale records of the task: it has claimed it again."""
    for record in records.of_task(project.state_dir, new.uid):
        if record.actor == new.actor and record.claim != new.claim:
            records.drop(project.state_dir, record.claim)


def _prepared(
    project: Project,
    record: records.ClaimRecord,
    *,
    with_tree: bool,
    changed: bool,
    commit: str | None,
) -> Outcome:
    """Makes or restores worktree and assignment of a claim that counts, and tells where."""
    task = project.task(record.task)
    extra: dict[str, Any] = {"claim_secret": record.secret, "tree": None, "assignment": None}
    notes: list[str] = []
    notes += _own_work(project, task, record)
    if project.remote is not None:
        from gittasks.workflow import sync  # only a clone that shares

        extra["provisional"] = sync.is_provisional(project, task)
        if extra["provisional"]:
            notes.append(f"{task.id} is claimed in this clone only, until `git tasks sync`.")
    if not with_tree and not record.body_oid:
        _remember_assignment(project, task, record)
    if with_tree:
        record = _with_place(project, task, record, notes)
        extra["tree"] = record.tree
        extra["assignment"] = project.places.assignment(task.id)
    return Outcome(
        task,
        "claim" if changed else "none",
        task.state,
        task.state,
        commit,
        (),
        changed,
        tuple(notes),
        extra,
    )


def _own_work(project: Project, task: Task, record: records.ClaimRecord) -> list[str]:
    """Says to a reviewer that what is under review is his own."""
    if task.state not in machine.REVIEWS:
        return []
    for event in project.ledger.history(task.id):
        if event.kind == "submit" and event.target in (task.state, "CHECK"):
            own = event.actor == record.actor
            return [f"You review your own work on {task.id}."] if own else []
    return []


def _with_place(
    project: Project, task: Task, record: records.ClaimRecord, notes: list[str]
) -> records.ClaimRecord:
    assert task.branch is not None
    first = record.snapshot is None
    tree = worktree.ensure(
        project.repo,
        project.places,
        task.id,
        task.branch,
        fresh=first,
        now=project.clock(),
        notes=notes,
    )
    path = project.places.assignment(task.id)
    if not first and os.path.exists(path):
        if record.tree != tree:
            # The repository was moved, and its trees with it.
            record = record._replace(tree=tree)
            records.write(project.state_dir, record)
        return record
    body = project.ledger.graph().body(task.id)
    given = assignment.dispatch(body, machine.STAGE[task.state])
    _set_aside(project, task, given, notes)
    dispatch.write_file(path, given.text)
    _write_draft(project, task)
    record = dispatch.with_assignment(project, record, given, body)._replace(
        tree=tree, checks=task.checks, role=_role(task)
    )
    if first:
        record = record._replace(
            snapshot=worktree.snapshot(project.repo, tree, task.branch),
            user_status=guard.user_status(project.repo),
        )
    records.write(project.state_dir, record)
    return record


def _remember_assignment(project: Project, task: Task, record: records.ClaimRecord) -> None:
    """Notes which text and checks a holder without a tree works from."""
    body = project.ledger.graph().body(task.id)
    key = dispatch.assignment_key(project, body)
    records.write(project.state_dir, record._replace(body_oid=key, checks=task.checks))


def _role(task: Task) -> Role:
    role = machine.STAGE[task.state].role
    assert role is not None
    return role


def _set_aside(
    project: Project, task: Task, given: assignment.Dispatched, notes: list[str]
) -> None:
    """Keeps what an earlier holder wrote into the assignment and never submitted."""
    live = dispatch.read_file(project.places.assignment(task.id))
    if live is None or assignment.begins_with(given.text, live):
        return
    if live.rstrip().endswith(tuple(s.heading.encode() for s in machine.STAGES if s.heading)):
        return  # nothing stands below the heading that was handed out
    folder = leftovers.keep_assignment(project.places, task.id, "", None, project.clock())
    notes.append(f"An earlier ASSIGNMENT.md of {task.id} is kept in {folder}.")


def _write_draft(project: Project, task: Task) -> None:
    """Gives the author the section that a review or a hold took out of the document."""
    path = project.places.draft(task.id)
    draft = former_draft(project, task)
    if draft is not None:
        dispatch.write_file(path, draft)
    elif os.path.exists(path):
        os.unlink(path)


def former_draft(project: Project, task: Task) -> bytes | None:
    """Returns the section that a review or a hold took out of the document, for its author."""
    if task.state not in ("DESIGN", "PLAN"):
        return None
    for event in project.ledger.history(task.id):
        if event.kind == "submit" and event.source == task.state:
            return None
        left = isinstance(event.change, FeedbackGiven | Held)
        if left and event.source in machine.DRAFTED and event.revision:
            if machine.STAGE[event.source].back != task.state:
                return None
            found, body = frontmatter.parse(project.ledger.reader.blob(event.revision))
            return draft_of(found.draft, body).lstrip(b"\n") if found.draft else None
    return None
