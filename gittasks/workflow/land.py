"""Landing: the manager's last submit, which moves the base and closes the task in one step.

The intent is recorded on this host before anything is made, so that whoever writes next finishes
or undoes what a crash has left. Base and ledger move in one ref transaction, each from the value
that was seen; the checkouts of the base, the tree and the branch follow afterwards. In a clone
that shares the remote is asked first: it gets base, ledger and the end of the work branch in one
push, or refuses all of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.domain.decide import decide
from gittasks.domain.errors import Busy, CheckFailed, Refused, SyncRefused, Unconfirmed
from gittasks.domain.requests import Landing, Speaker, Submit
from gittasks.plumbing import merging, refs
from gittasks.plumbing.remote import Update
from gittasks.workflow import check, finish
from gittasks.workflow.finish import recover_landings
from gittasks.workflow.project import LOCK_TIMEOUT, Outcome
from gittasks.workspaces import branch as branches
from gittasks.workspaces import landing, records
from gittasks.workspaces.spare import Spare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph
    from gittasks.plumbing.refs import Change
    from gittasks.workflow.project import Project
    from gittasks.workspaces import checks

__all__ = ["land", "recover_landings", "require_no_landing"]

ROUNDS = 3
"""How often a landing merges and checks again because the base has moved meanwhile."""


class _BaseMoved(Exception):
    """The base is no longer where this round began."""


def land(
    project: Project, task_id: str, *, remark: str | None = None, dry_run: bool = False
) -> Outcome:
    """Lands a task at MANAGER_REVIEW; whatever refuses it leaves task, base and files as they were.

    Raises CheckFailed for a conflict or a failed check, Refused for what has to be put right
    first, and Busy where trying again may be enough.
    """
    project.recover()
    _fetch(project, task_id)
    speaker = project.speaker("submit", task_id)
    attempt = _Attempt(project, project.task(task_id), speaker, remark)
    if attempt.task.is_landed:
        return attempt.nothing_to_do()
    if dry_run:
        return attempt.foresee()
    attempt.require_legal()
    check.require_trusted(project, attempt.task)
    patience = project.config.get_seconds("gittasks.lockTimeout", LOCK_TIMEOUT)
    with finish.lock(project, project.base, patience):
        finish.recover_base(project, project.base)
        # Whoever was here before us may have landed it.
        project.ledger.refresh()
        attempt = _Attempt(project, project.task(task_id), speaker, remark)
        if attempt.task.is_landed:
            return attempt.nothing_to_do()
        attempt.require_legal()
        try:
            return attempt.run()
        except CheckFailed as error:
            records.keep_refusal(
                project.state_dir,
                records.Refusal(
                    task_id, attempt.task.submitted_tip or "", error.message, project.clock()
                ),
            )
            raise


def _fetch(project: Project, task_id: str) -> None:
    """Takes over what others did, and the work on the task; raises Busy without the remote."""
    if project.remote is None:
        return
    if project.options.offline:
        raise Busy(
            f"The task {task_id} cannot land offline: the remote {project.remote} has to take it.",
            "Land it without --offline when the remote can be reached.",
            task_id,
        )
    from gittasks.workflow import exchange, work_branches  # only a clone that shares

    try:
        exchange.pull(project)
    except Busy as error:
        raise Busy(error.message, "Land it when the remote can be reached again.") from None
    task = project.task(task_id)
    if task.state == "MANAGER_REVIEW":
        work_branches.follow_branch(project, task)
        _bring_back(project, task)


def _bring_back(project: Project, task: Task) -> None:
    """Makes the branch again that a forge has deleted when it had merged it."""
    from gittasks.workflow import work_branches

    ref, tip = branches.HEADS + str(task.branch), task.submitted_tip
    base = work_branches.fetched_tip(project, project.settings.base)
    if tip is None or base is None or refs.read(project.repo, ref) is not None:
        return
    if project.ledger.reader.get(tip) is None or not merging.is_ancestor(project.repo, tip, base):
        return
    note = f"gittasks: {task.id} was merged elsewhere"
    refs.compare_and_swap(project.repo, ref, tip, None, note)


def require_no_landing(project: Project, task_id: str) -> None:
    """Raises Busy while a living process of this clone lands the task."""
    record = records.landing(project.state_dir, task_id)
    if record is None:
        return
    if not records.is_alive(record.process):
        told = recover_landings(project)
        if records.landing(project.state_dir, task_id) is not None:
            raise Busy(" ".join(told), "Try again when the remote can be reached.", task_id)
    elif record.process and record.process[0] != os.getpid():
        raise Busy(
            f"The task {task_id} is landing right now (process {record.process[0]}).",
            "Try again when it has landed or was refused.",
            task_id,
        )


# One attempt.


class _Attempt:
    """One landing in the making."""

    def __init__(self, project: Project, task: Task, speaker: Speaker, remark: str | None) -> None:
        self.project = project
        self.repo = project.repo
        self.reader = project.ledger.reader
        self.task = task
        self.speaker = speaker
        self.remark = remark
        # A base that is another branch by a second name: the branch moves, and is checked out.
        self.base_ref = refs.followed(project.repo, project.base)
        self.mode: str = project.settings.landing
        self.tip = ""
        self.record: records.LandingRecord | None = None
        self.has_moved = False
        self.there: str | None = None
        """The base of the remote, where this clone shares."""

    def nothing_to_do(self) -> Outcome:
        """Returns the outcome for a task that has landed already."""
        return Outcome(self.task, "none", "CLOSED", "CLOSED", changed=False)

    def require_legal(self) -> None:
        """Raises what the ledger would say in the end, before anything costly is done."""
        graph = self.project.ledger.graph()
        if self.task.state != "MANAGER_REVIEW":
            decide(graph, Submit(self.task.id), self.project.facts(self.speaker))
            raise Busy(f"The task {self.task.id} has just moved on.", "Try again.", self.task.id)
        if self.speaker.role == "manager":
            self.tip = landing.require_reviewed(self.reader, self.task)
        self.events(graph, self.tip, self.mode)

    def foresee(self) -> Outcome:
        """Tells what the landing would do, up to the checks, and does nothing."""
        self.require_legal()
        check.require_trusted(self.project, self.task)
        base = self._present_base()
        if landing.landed_by_hand(self.repo, self.reader, self.tip, base) is None:
            result = merging.merge_tree(self.repo, base, self.tip)
            if result.tree is None:
                raise landing.conflict(self.task, result.conflicts)
            here = landing.require_base(self.reader, self.base_ref)
            landing.require_free(self.repo, self.task, self.base_ref, here, result.tree)
        events = self.events(self.project.ledger.graph(), self.tip, self.mode)
        return Outcome(
            self.task,
            "submit" if events else "none",
            self.task.state,
            events[0].target if events else self.task.state,
            unblocked=tuple(e.task for e in events if e.kind == "unblock" and e.task),
            changed=False,
            extra={"dry_run": True, "base": base, "tip": self.tip, "mode": self.mode},
        )

    def run(self) -> Outcome:
        """Lands, in as many rounds as the base allows."""
        self._record("", "", self.mode)
        try:
            for _ in range(ROUNDS):
                base = self._present_base()
                try:
                    return self._round(base)
                except _BaseMoved:
                    continue
        finally:
            if not self.has_moved and not self._may_have_moved():
                finish.forget(self.project, self.task.id)
        raise Busy(
            f"The base {self.base_ref.removeprefix(branches.HEADS)} moved {ROUNDS} times "
            f"while {self.task.id} was merged and checked.",
            "Try again when it is quieter.",
            self.task.id,
        )

    def events(self, graph: Graph, commit: str, mode: str) -> Sequence[Event]:
        """Returns the close of the task and what it unblocks."""
        found = Landing(self.tip, commit, mode)
        request = Submit(self.task.id, remark=self.remark, landing=found)
        return decide(graph, request, self.project.facts(self.speaker))

    def _present_base(self) -> str:
        """Returns the commit that the landing is made on."""
        if self.project.remote is None:
            return landing.require_base(self.reader, self.base_ref)
        from gittasks.workflow import work_branches  # only a clone that shares

        base, self.there = work_branches.present_base(self.project, self.base_ref)
        return base

    def _may_have_moved(self) -> bool:
        """Tells whether the step may have been done although it ended in an error."""
        record = self.record
        return (
            record is not None
            and record.commit not in ("", record.base_old)
            and refs.read(self.repo, record.base) == record.commit
        )

    def _round(self, base: str) -> Outcome:
        by_hand = landing.landed_by_hand(self.repo, self.reader, self.tip, base)
        if by_hand is not None:
            self._require_green(base, base)
            # The base stays: there is nothing that anybody could have to undo.
            return self._publish(self._record(base, base, finish.BY_HAND), by_hand)
        if self.mode == "rebase":
            with Spare(self.repo, self.project.places, self.task.id, self.tip) as spare:
                record = self._recorded(base, spare)
                run = check.run_in(self.project, self.task, spare, self._logs())
            self._judge(base, run)
        else:
            record = self._recorded(base, None)
            self._require_green(base, record.commit)
        if self.task.checks:
            # Files may have come into the way while these ran.
            self._require_free(record)
        return self._publish(record, record.commit)

    def _recorded(self, base: str, spare: str | None) -> records.LandingRecord:
        record = self._record(base, self._merged(base, spare), self.mode)
        self._require_free(record)
        return record

    def _merged(self, base: str, spare: str | None) -> str:
        who = landing.Identity(*self.project.identity(), self.project.clock())
        return landing.merged(
            self.repo, self.reader, self.task, base, self.tip, self.mode, who, spare
        )

    def _require_free(self, record: records.LandingRecord) -> None:
        landing.require_free(self.repo, self.task, record.base, record.base_old, record.commit)

    def _require_green(self, base: str, commit: str) -> None:
        if self.task.checks:
            with Spare(self.repo, self.project.places, self.task.id, commit) as spare:
                run = check.run_in(self.project, self.task, spare, self._logs())
            self._judge(base, run)

    def _judge(self, base: str, run: checks.Run) -> None:
        if not run.has_passed:
            name = self.base_ref.removeprefix(branches.HEADS)
            raise CheckFailed(
                f"The checks of {self.task.id} fail on the result of merging it into {name} "
                f"({base[:12]}).\n{run.report}",
                f"Send it back with `git tasks feedback {self.task.id} --from-landing`.",
                self.task.id,
            )

    def _logs(self) -> str:
        return check.logs_of(self.project, self.task.id, "landing")

    def _record(self, base: str, commit: str, mode: str) -> records.LandingRecord:
        """Keeps the intent, and the commit, safe from a crash and from gc."""
        # Where ours is behind the remote's, it goes all the way in one step.
        old = landing.require_base(self.reader, self.base_ref) if base else base
        record = records.LandingRecord(
            task=self.task.id,
            uid=self.task.uid,
            base=self.base_ref,
            base_old=old,
            tip=self.tip,
            commit=commit,
            mode=mode,
            branch=self.task.branch,
            process=records.own_process(),
            at=self.project.clock(),
            actor=self.speaker.actor,
            remark=self.remark,
            remote=self.project.remote or "",
        )
        records.write_landing(self.project.state_dir, record)
        self.record = record
        if commit:
            landing.hold_commit(self.repo, self.task.id, commit)
        return record

    def _publish(self, record: records.LandingRecord, landed: str) -> Outcome:
        """Moves base and ledger together, then brings everything else along."""

        def changes() -> Sequence[Change]:
            self._require_unmoved(record.base_old)
            return finish.changes_of(self.repo, record, record.commit)

        def events(graph: Graph) -> Sequence[Event]:
            return self.events(graph, landed, record.mode)

        if self.project.remote is not None:
            return self._share(record, landed, events)
        appended = self.project.ledger.append(events, also=changes)
        notes: list[str] = []
        if appended.events:
            self.has_moved = True
            notes = finish.follow(self.project, record)
            records.drop_refusal(self.project.state_dir, self.task.id)
        return self.project.outcome(self.task.id, appended, notes=notes, landed=landed)

    def _share(
        self,
        record: records.LandingRecord,
        landed: str,
        events: Callable[[Graph], Sequence[Event]],
    ) -> Outcome:
        """Lets the remote have base, ledger and the end of the branch at once, then follows."""
        from gittasks.ledger import publishing
        from gittasks.plumbing import tracking
        from gittasks.workflow import aftermath, exchange, sharing

        project = self.project
        branch = branches.HEADS + str(self.task.branch)
        told: list[str] = []

        def decided(graph: Graph) -> Sequence[Event]:
            self._require_unmoved(record.base_old)
            return events(graph)

        def updates() -> Sequence[Update]:
            return self._updates(record, branch)

        def changes() -> Sequence[Change]:
            return self._followers(record, told)

        try:
            appended = publishing.append(
                sharing.shared_of(project),
                decided,
                also=changes,
                updates=updates,
                optional=(branch,),
                names=(self.base_ref,),
                globs=sharing.globs(project),
                fresh=False,
                patience=sharing.patience(project),
                followed=lambda replayed: aftermath.follow(project, replayed),
            )
        except publishing.NotFollowed as half:
            appended = half.appended
            told.append(
                f"{self.task.id} has landed on {project.remote}, but the base could not follow"
                f" here: {half.error} Run `git tasks recover` to finish it."
            )
        except SyncRefused as error:
            if "--offline" in (error.hint or ""):
                error.hint = (
                    "Have the remote's owner allow it, and land it then; nothing has moved."
                )
            raise
        except Busy as error:
            if "--offline" in (error.hint or ""):
                error.hint = "Land it when the remote can be reached again; nothing has moved."
            if not isinstance(error, Unconfirmed):
                raise
            # Whoever writes next asks the remote and finishes it.
            self.has_moved = True
            raise
        if appended.events:
            self.has_moved = True
            tracking.note(self.repo, str(project.remote), record.base, record.commit)
            if not told:
                told += finish.follow(project, record)
            records.drop_refusal(project.state_dir, self.task.id)
        exchange.note_given(project)
        return project.outcome(self.task.id, appended, notes=told, landed=landed)

    def _updates(self, record: records.LandingRecord, branch: str) -> Sequence[Update]:
        """Returns what moves on the remote with the ledger; raises _BaseMoved where it cannot."""
        from gittasks.workflow import work_branches

        project = self.project
        if (
            work_branches.fetched_tip(project, self.base_ref.removeprefix(branches.HEADS))
            != self.there
        ):
            raise _BaseMoved
        moved = []
        if record.commit != self.there:
            moved.append(Update(self.base_ref, record.commit, self.there))
        work = work_branches.fetched_tip(project, str(self.task.branch))
        if work is None:
            return moved
        if work != self.tip and not merging.is_ancestor(self.repo, work, self.tip):
            raise Refused(
                f"The branch {self.task.branch} of {project.remote} is at {work[:12]}, which nobody"
                f" has reviewed: {self.tip[:12]} was.",
                f"Look at it: git log {self.tip[:12]}..{work[:12]}.",
                self.task.id,
            )
        return [*moved, Update(branch, None, work)]

    def _followers(self, record: records.LandingRecord, told: list[str]) -> Sequence[Change]:
        """Returns the refs that move here once the remote has it; ours may have moved meanwhile."""
        moved = finish.changes_of(self.repo, record, record.commit)
        now = refs.read(self.repo, record.base)
        if now in (record.base_old, record.commit):
            return [one for one in moved if one.name != record.base or now == record.base_old]
        name = record.base.removeprefix(branches.HEADS)
        told.append(
            f"{self.task.id} has landed on {self.project.remote}, and {name} has moved here"
            f" meanwhile. Merge it yourself: git merge {record.commit}."
        )
        return [one for one in moved if one.name != record.base]

    def _require_unmoved(self, base: str) -> None:
        assert self.task.branch is not None
        ref = branches.HEADS + self.task.branch
        now = refs.read_many(self.repo, (self.base_ref, ref))
        if now[self.base_ref] != base:
            raise _BaseMoved
        if now[ref] != self.tip:
            raise Refused(
                f"The branch {self.task.branch} moved while {self.task.id} was landing.",
                f"Look at it: git log {self.tip[:12]}..{self.task.branch}.",
                self.task.id,
            )
