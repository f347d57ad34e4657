"""Submit: finish a stage; for the manager, dispatch, close or land.

Which of these it is follows from the task's state. At WORK the checks run right afterwards, as
the checker, unless a runner will do it or the caller asks otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain import assignment, dependencies, machine
from gittasks.domain.decide import decide
from gittasks.domain.errors import (
    Busy,
    NotAllowed,
    SyncRefused,
    UnknownTask,
    UsageFault,
)
from gittasks.domain.requests import Submit
from gittasks.workflow import dispatch, outbox
from gittasks.workflow.project import Outcome

if TYPE_CHECKING:
    from gittasks.domain.requests import Speaker
    from gittasks.domain.task import State, Task
    from gittasks.workflow.project import Project
    from gittasks.workspaces.records import ClaimRecord


def submit(
    project: Project,
    spelling: str | None,
    *,
    enter: str | None = None,
    close: bool = False,
    text: bytes | None = None,
    no_change: bool = False,
    dry_run: bool = False,
    check: bool = True,
) -> Outcome:
    """Finishes what the task's state asks of the speaker; raises a refusal that names the way out.

    `text` is the own section for an author and a remark for anybody else.
    """
    task_id = project.resolve(spelling)
    speaker = project.speaker("submit", task_id)
    task = _known(project, task_id, speaker)
    if task.state == "MANAGER_REVIEW" and speaker.role == "manager" and not (close or enter):
        from gittasks.workflow import land  # only the last submit lands

        return land.land(project, task_id, remark=_remark(text), dry_run=dry_run)
    request = _request(project, task, speaker, _entry(enter), text)
    request = request._replace(close=close, no_change=no_change)
    if dry_run:
        return _foreseen(project, task, request, speaker)
    if outbox.folder_of(project):
        return _left(project, request, speaker)
    dispatch.require_no_landing(project, task_id)
    appended = project.apply(request, speaker)
    dispatch.put_assignment_away(project, speaker, task_id)
    notes = [*_named_aborted(project, task), *_named_children(project, task, request)]
    outcome = project.outcome(task_id, appended, notes=notes)
    if check and any(event.target == "CHECK" for event in appended.events):
        return _checked(project, task_id, outcome)
    if check and not appended.events:
        return _checked_at_last(project, outcome)
    return outcome


def _known(project: Project, task_id: str, speaker: Speaker) -> Task:
    """Returns the task; where it is not the manager's turn here, as the remote knows it by now."""
    try:
        task = project.task(task_id)
        is_known = machine.STAGE[task.state].role in ("manager", None)
    except UnknownTask:
        is_known = False
        if not project.publishes:
            raise
    if project.publishes and speaker.role == "manager" and not is_known:
        from gittasks.workflow import exchange  # only a clone that shares

        try:
            exchange.pull(project)
        except (Busy, SyncRefused) as error:
            project.told += (error.message,)
    return project.task(task_id)


def _entry(enter: str | None) -> State | None:
    if enter is None:
        return None
    if enter.lower() not in machine.ENTRIES:
        raise UsageFault(
            f"There is no entry {enter!r}.", f"Give one of {', '.join(machine.ENTRIES)}."
        )
    return machine.ENTRIES[enter.lower()]


def _remark(text: bytes | None) -> str | None:
    return text.decode("utf-8", "replace").strip() or None if text else None


def _request(
    project: Project, task: Task, speaker: Speaker, enter: State | None, text: bytes | None
) -> Submit:
    """Returns the request with the facts that the task's stage needs."""
    stage = machine.STAGE[task.state]
    request = Submit(task.id, enter=enter)
    if stage.heading is None:
        request = request._replace(remark=_remark(text))
    if task.state in ("NEW", "BLOCKED"):
        return request._replace(has_commits=dispatch.has_own_commits(project, task))
    if not dispatch.holds(task, speaker):
        return request
    record = dispatch.own_record(project, speaker)
    body, checks = dispatch.assignment_of(project, task, record)
    unchanged = record is None or body == project.ledger.graph().body(task.id)
    section = _section(project, task, record, text) if unchanged else None
    return request._replace(
        section=section,
        guard=dispatch.guard_of(project, task, record),
        body_dispatched=body,
        checks_dispatched=checks,
    )


def _section(
    project: Project,
    task: Task,
    record: ClaimRecord | None,
    text: bytes | None,
) -> bytes | None:
    """Returns the author's section, or repairs a changed assignment and refuses."""
    heading = machine.STAGE[task.state].heading
    reading = None if record is None else dispatch.read_assignment(project, task, record)
    written = None if reading is None else reading.section
    return assignment.chosen_section(heading, text, written) if heading else None


def _foreseen(project: Project, task: Task, request: Submit, speaker: Speaker) -> Outcome:
    events = decide(project.ledger.graph(), request, project.facts(speaker))
    target = events[0].target if events else task.state
    unblocked = tuple(e.task for e in events if e.kind == "unblock" and e.task)
    return Outcome(
        task,
        "submit" if events else "none",
        task.state,
        target,
        unblocked=unblocked,
        changed=False,
        extra={"dry_run": True},
    )


def _left(project: Project, request: Submit, speaker: Speaker) -> Outcome:
    section = (request.section or b"").decode("utf-8", "surrogateescape")
    return outbox.leave(
        project,
        request,
        speaker,
        "submit",
        text=section or request.remark or "",
        tip=request.guard.tip if request.guard else None,
        no_change=request.no_change,
    )


def _named_aborted(project: Project, task: Task) -> list[str]:
    lost = dependencies.aborted_dependencies(project.ledger.graph(), task.depends_on)
    return [f"{other} was aborted; {task.id} waits for it until you remove it." for other in lost]


def _checked_at_last(project: Project, repeated: Outcome) -> Outcome:
    """Runs the checks that a submit before this one was killed in; else there is nothing to do."""
    task = project.task(repeated.task.id)
    if task.state != "CHECK" or task.claim is not None:
        return repeated
    from gittasks.workflow.check import record_check

    try:
        return record_check(project, task.id)
    except Busy as error:
        # The other submit is alive.
        return repeated._replace(notes=(*repeated.notes, error.message))
    except NotAllowed:
        # It has just ended.
        return repeated


def _named_children(project: Project, task: Task, request: Submit) -> list[str]:
    """Says what a parent that goes through the pipeline itself can no longer do."""
    if task.state != "NEW" or request.close or not project.ledger.graph().children(task.id):
        return []
    return [f"{task.id} has children; a parent without work of its own is closed with --close."]


def _checked(project: Project, task_id: str, submitted: Outcome) -> Outcome:
    """Runs the task's checks as the checker and returns the whole step."""
    from gittasks.workflow.check import record_check  # only a worker's submit

    checked = record_check(project, task_id)
    return checked._replace(
        kind=submitted.kind,
        source=submitted.source,
        commit=submitted.commit,
        notes=(*submitted.notes, *checked.notes),
        changed=True,
    )
