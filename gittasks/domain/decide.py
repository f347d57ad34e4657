"""`decide`: from the graph, a request and facts to events, or to a refusal that names the way out.

Pure and total: whoever loses a race calls it again on the fresh graph. Checks come in one order:
malformed input, unknown id, state and role, claim, guard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from gittasks.domain import dependencies, guards, machine
from gittasks.domain.errors import (
    AlreadyClaimed,
    Busy,
    Cycle,
    GuardBroken,
    NotAllowed,
    NotClaimed,
    Refused,
    StaleClaim,
    Taken,
    UnknownTask,
    UsageFault,
    WrongRole,
)
from gittasks.domain.events import (
    Aborted,
    Change,
    CheckPassed,
    CheckRefuted,
    Claimed,
    Created,
    Edited,
    Event,
    EventRole,
    FeedbackGiven,
    Held,
    Noted,
    Released,
    Reordered,
    Reparented,
    Resumed,
    Submitted,
    Unblocked,
)
from gittasks.domain.fields import TITLE_LIMIT, is_extra, is_name
from gittasks.domain.ids import is_id, key_between
from gittasks.domain.machine import STAGE
from gittasks.domain.requests import (
    Abort,
    Claim,
    Create,
    Edit,
    Facts,
    Feedback,
    Hold,
    Note,
    RecordCheck,
    Release,
    Reorder,
    Reparent,
    Request,
    Resume,
    Submit,
)
from gittasks.domain.task import Draft, Task
from gittasks.domain.task_graph import Graph, Overlay, evolve, gap, next_id
from gittasks.domain.times import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gittasks.domain.task import State


class Decision:
    """A decision in the making: the graph with the events so far applied, and those events."""

    def __init__(self, graph: Graph, facts: Facts) -> None:
        """Starts on a graph without events."""
        self.graph = Overlay(graph)
        self.facts = facts
        self.events: list[Event] = []

    def task(self, task_id: str) -> Task:
        """Returns a task, or raises UnknownTask."""
        task = self.graph.get(task_id)
        if task is None:
            raise UnknownTask(
                f"There is no task {task_id}.", "Run `git tasks list --all` to see them.", task_id
            )
        return task

    def add(
        self,
        task: Task,
        change: Change,
        target: State | None = None,
        *,
        role: EventRole | None = None,
        **details: Any,
    ) -> Event:
        """Adds one event about an existing task and applies it."""
        event = Event(
            event_id="",
            at=self.facts.now,
            actor=self.facts.speaker.actor,
            role=role or self.facts.speaker.role or "none",
            host=self.facts.host,
            change=change,
            task=task.id,
            uid=task.uid,
            source=task.state,
            target=target or task.state,
            revision=self.graph.revision(task.id),
            **details,
        )
        self._apply(event, task)
        return event

    def create(self, task_id: str, uid: str, body: bytes, change: Created) -> None:
        """Adds the event that begins a task."""
        event = Event(
            event_id="",
            at=self.facts.now,
            actor=self.facts.speaker.actor,
            role=self.facts.speaker.role or "none",
            host=self.facts.host,
            change=change,
            task=task_id,
            uid=uid,
            source=None,
            target="NEW",
            body=body,
        )
        self._apply(event, None)

    def _apply(self, event: Event, task: Task | None) -> None:
        body = b"" if task is None else self.graph.body(task.id)
        after, body_after = evolve(task, body, event)
        self.graph.put(after, None if body_after is body and task is not None else body_after)
        self.events.append(event)


def decide(graph: Graph, request: Request, facts: Facts) -> list[Event]:
    """Returns the events that carry a request out, none when it is done already, or refuses."""
    return decide_all(graph, (request,), facts)


def decide_all(graph: Graph, requests: Iterable[Request], facts: Facts) -> list[Event]:
    """Returns the events of several requests, each decided on what the ones before have made."""
    decision = Decision(graph, facts)
    for request in requests:
        carry_out(decision, request)
    return decision.events


def carry_out(decision: Decision, request: Request) -> None:
    """Adds a request's events to a decision, or raises a refusal, which ends the decision."""
    try:
        _carry_out(decision, request)
    except (Refused, Taken) as refusal:
        if isinstance(refusal, GuardBroken) or not _is_repeat(decision, request):
            raise


def _carry_out(decision: Decision, request: Request) -> None:
    match request:
        case Create():
            _create(decision, request)
        case Submit():
            _submit(decision, request)
        case Feedback():
            _feedback(decision, request)
        case RecordCheck():
            _record_check(decision, request)
        case Hold():
            _hold(decision, request)
        case Resume():
            _resume(decision, request)
        case Abort():
            _abort(decision, request)
        case Claim():
            _claim(decision, request)
        case Release():
            _release(decision, request)
        case Edit():
            _edit(decision, request)
        case Note():
            _note(decision, request)
        case Reparent():
            _reparent(decision, request)
        case Reorder():
            _reorder(decision, request)
        case _:
            assert_never(request)


# Repetition: a command given twice has the effect of once.


def _is_repeat(decision: Decision, request: Request) -> bool:
    if isinstance(request, Create):
        return False
    task = decision.task(request.task)
    match request:
        case Submit():
            return _is_repeated_submit(decision, task)
        case Hold() if task.state in machine.HELD:
            return _latest_is(decision, task, "hold")
        case Abort() if task.outcome == "aborted":
            return decision.facts.speaker.role == "manager"
        case Release() if task.claim is None:
            return _was_last_holder(decision, task)
        case Resume():
            return decision.facts.speaker.role == "manager" and _latest_is(decision, task, "resume")
        case _:
            return False


def _latest_transition(decision: Decision, task: Task, skipped: Sequence[str] = ()) -> Event | None:
    for event in decision.facts.history(task.id):
        if event.is_transition and event.kind not in skipped:
            return event
    return None


def _latest_is(decision: Decision, task: Task, kind: str) -> bool:
    latest = _latest_transition(decision, task)
    return (
        latest is not None and latest.kind == kind and latest.actor == decision.facts.speaker.actor
    )


def _is_repeated_submit(decision: Decision, task: Task) -> bool:
    if decision.facts.speaker.role == "manager":
        return task.is_landed
    latest = _latest_transition(decision, task, machine.REPEATABLE_AFTER)
    return latest is not None and latest.kind == "submit" and _is_own(decision, latest)


def _was_last_holder(decision: Decision, task: Task) -> bool:
    claims = (e for e in decision.facts.history(task.id) if e.claim is not None)
    latest = next(claims, None)
    return latest is not None and _is_own(decision, latest)


def _is_own(decision: Decision, event: Event) -> bool:
    """Tells whether the speaker ended a claim with this event, by the claim presented or by name.

    The same name in another clone is somebody else.
    """
    speaker = decision.facts.speaker
    if event.claim is None or (speaker.claim is not None and speaker.claim != event.claim):
        return False
    return event.actor == speaker.actor and event.host == decision.facts.host


# Who may speak.


def _require_open(task: Task, verb: str) -> None:
    if not task.is_open:
        how = "has landed" if task.is_landed else "was aborted"
        raise NotAllowed(f"The task {task.id} {how}; it cannot {verb}.", task=task.id)


def _require_manager(decision: Decision, task: Task, verb: str) -> None:
    role = decision.facts.speaker.role
    if role == "manager":
        return
    who = f"the {role}" if role else "nobody in particular"
    raise WrongRole(
        f"Only the manager may {verb} {task.id}; you speak as {who}. "
        f"{machine.moves_from(task.state)}",
        "Run `git tasks whoami` to see why, or give --role.",
        task.id,
    )


def _not_allowed(task: Task, verb: str, hint: str | None = None) -> NotAllowed:
    return NotAllowed(
        f"The task {task.id} is at {task.state}, where there is no {verb}. "
        f"{machine.moves_from(task.state)}",
        hint or f"Run `git tasks show {task.id}` to see where it stands.",
        task.id,
    )


def _require_owner(decision: Decision, task: Task, verb: str) -> None:
    """Refuses a speaker whose role does not own the task's state."""
    speaker, owner = decision.facts.speaker, STAGE[task.state].role
    if speaker.role != owner:
        who = f"the {speaker.role}" if speaker.role else "nobody in particular"
        raise WrongRole(
            f"You speak as {who} and cannot {verb} {task.id} at {task.state}: "
            f"{machine.moves_from(task.state)}",
            "Run `git tasks whoami` to see who you are, or give --as and --role.",
            task.id,
        )


def _require_holder(decision: Decision, task: Task, verb: str) -> None:
    """Refuses a speaker who does not hold the task's present claim."""
    speaker = decision.facts.speaker
    if task.claim is not None and speaker.claim == task.claim:
        return
    if speaker.claim is not None:
        holder = f"held by {task.claimed_by}" if task.claimed_by else "not held by anybody"
        raise StaleClaim(
            f"Your claim on {task.id} is stale: the task is at {task.state}, {holder}.",
            f"Run `git tasks claim {task.id}` if you want to go on with it.",
            task.id,
        )
    if task.claim is None:
        raise NotClaimed(
            f"Nobody holds {task.id}; who wants to {verb} it has to claim it first.",
            f"Run `git tasks start {task.id}`.",
            task.id,
        )
    raise AlreadyClaimed(
        f"The task {task.id} is held by {task.claimed_by}, and you present no claim on it.",
        "Give --as with the holder's name in the holder's clone, or --claim.",
        task.id,
    )


def _require_text(text: str, what: str) -> str:
    if not text.strip():
        raise UsageFault(f"The {what} is blank.", "Give some text with -m.")
    return text.strip()


# Create.


def _create(decision: Decision, request: Create) -> None:
    title = checked_title(request.title)
    needs = tuple(dict.fromkeys(request.depends_on))
    _require_few(needs)
    for name in ("labels", "priority", "checks", "assignee"):
        _require_value(name, getattr(request, name))
    if decision.graph.with_uid(request.uid) is not None:
        return
    _require_known(decision, (*needs, request.parent, request.supersedes, request.follows))
    task_id = next_id(decision.graph)
    if request.parent is not None:
        objection = machine.objection_to_parent(decision.graph, task_id, request.parent)
        if objection is not None:
            raise NotAllowed(
                f"The task cannot stand below {request.parent}: {objection}.",
                f"Use `--follows {request.parent}` for work that comes after it.",
            )
    replaced = decision.task(request.supersedes) if request.supersedes else None
    if replaced is not None:
        _require_replaceable(decision, replaced, task_id, needs)
    manager = decision.facts.speaker.role == "manager"
    change = Created(
        title=title,
        labels=tuple(dict.fromkeys(request.labels)),
        priority=request.priority,
        checks=request.checks,
        depends_on=needs,
        parent=request.parent,
        supersedes=request.supersedes,
        follows=request.follows,
        assignee=request.assignee,
        proposed_by=None if manager else decision.facts.speaker.actor,
    )
    decision.create(task_id, request.uid, request.body, change)
    if replaced is not None and replaced.is_open:
        _abort_one(decision, replaced, f"superseded by {task_id}", frozenset())


def _require_replaceable(
    decision: Decision, replaced: Task, task_id: str, needs: Iterable[str]
) -> None:
    """Refuses to supersede what has landed, or what the new task itself would wait for."""
    if replaced.is_landed:
        raise NotAllowed(
            f"The task {replaced.id} has landed and cannot be superseded.",
            f"Use `--follows {replaced.id}`.",
            replaced.id,
        )
    _require_manager(decision, replaced, "supersede")
    # The new task stands where the old one stood: a way to the old one is a way to itself.
    path = dependencies.ring(decision.graph, replaced.id, needs)
    if path is not None:
        raise Cycle((task_id, *path[1:], task_id), task_id)


def checked_title(title: str) -> str:
    """Returns a title without blanks around it; raises UsageFault where it cannot be stored."""
    text = title.strip()
    if not text:
        raise UsageFault("The title is blank.", 'Give a title, for example "Fix the login".')
    if len(text) > TITLE_LIMIT:
        raise UsageFault(
            f"The title has {len(text)} characters; {TITLE_LIMIT} are allowed.",
            "Put the rest into the body with -m or -F.",
        )
    if len(text.splitlines()) > 1:
        raise UsageFault(
            "The title has more than one line.", "Put the rest into the body with -m or -F."
        )
    if not machine.is_value("title", text):
        raise UsageFault("The title has control characters.", "Write it without them.")
    return text


def _require_value(name: str, value: Any) -> None:
    """Refuses what a field cannot hold, before anything is asked of the ledger."""
    if machine.is_value(name, value):
        return
    match name:
        case "priority":
            hint = "Give 0, 1, 2, 3 or 4; 0 is first."
        case "labels" | "checks":
            hint = "Give a list of texts, none of them blank."
        case "depends_on":
            hint = "Give a list of ids such as 000042."
        case _:
            hint = "Give a text that is not blank."
    raise UsageFault(f"The field {name} cannot be {_shown(value)}.", hint)


def _shown(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)[:80]


def _require_known(decision: Decision, named: Iterable[str | None]) -> None:
    for other in named:
        if other is not None and (not is_id(other) or decision.graph.get(other) is None):
            raise UnknownTask(
                f"There is no task {other}.", "Run `git tasks list --all` to see them.", other
            )


def _require_few(needs: Sequence[str]) -> None:
    if len(needs) > dependencies.DEPENDENCY_LIMIT:
        raise UsageFault(
            f"The task would have {len(needs)} dependencies; "
            f"{dependencies.DEPENDENCY_LIMIT} are allowed.",
            "Group some of them below a parent.",
        )


def _require_no_ring(decision: Decision, task_id: str, needs: Iterable[str]) -> None:
    path = dependencies.ring(decision.graph, task_id, needs)
    if path is not None:
        raise Cycle(path, task_id)


# Submit, in all its forms.


def _submit(decision: Decision, request: Submit) -> None:
    if request.enter is not None and request.enter not in machine.ENTRIES.values():
        raise UsageFault(
            f"There is no entry {request.enter}.", f"Give one of {', '.join(machine.ENTRIES)}."
        )
    if request.close and request.enter:
        raise UsageFault("A task is closed or enters a state, not both.", "Leave one out.")
    task = decision.task(request.task)
    _require_open(task, "be submitted")
    state = task.state
    if state in ("NEW", "BLOCKED"):
        _require_manager(decision, task, "submit")
        if request.close:
            _close(decision, task, request)
        else:
            _dispatch(decision, task, request)
        return
    if request.close or request.enter:
        option = "--close" if request.close else "--enter"
        raise _not_allowed(task, f"submit {option}", "It is for tasks at NEW and BLOCKED.")
    if state == "MANAGER_REVIEW":
        _require_manager(decision, task, "land")
        _land(decision, task, request)
    elif state in machine.HELD:
        raise _not_allowed(task, "submit", f"Run `git tasks resume {task.id}` as the manager.")
    elif state == "CHECK":
        raise _not_allowed(task, "submit", f"Run `git tasks check {task.id} --record`.")
    else:
        _require_owner(decision, task, "submit")
        _require_holder(decision, task, "submit")
        _finish_stage(decision, task, request)


def _close(decision: Decision, task: Task, request: Submit) -> None:
    if request.has_commits:
        raise Refused(
            f"The branch of {task.id} has commits of its own, which --close would lose.",
            f"Dispatch it with `git tasks submit {task.id} --enter work` and land it.",
            task.id,
        )
    objection = machine.objection_to_close(decision.graph, task)
    if objection is not None:
        raise NotAllowed(
            f"The task {task.id} cannot be closed: {objection}.",
            "Close its children first; one of them at least has to land.",
            task.id,
        )
    decision.add(task, Submitted(outcome="landed", remark=request.remark), "CLOSED",
                 text=request.remark or "")  # fmt: skip
    _unblock_after(decision, task.id)


def _dispatch(decision: Decision, task: Task, request: Submit) -> None:
    present = task.enters
    entry: State = request.enter or present or "DESIGN"
    if request.has_commits and present is not None and _is_earlier(entry, present):
        raise Refused(
            f"The branch of {task.id} has commits; it cannot enter {entry} any more.",
            f"Submit it with --enter {STAGE[present].phase}.",
            task.id,
        )
    _require_no_ring(decision, task.id, task.depends_on)
    waits = bool(dependencies.open_dependencies(decision.graph, task.depends_on))
    if waits and task.state == "BLOCKED" and entry == present:
        return
    target: State = "BLOCKED" if waits else entry
    change = Submitted(enters=entry if waits else None, remark=request.remark)
    decision.add(task, change, target, text=request.remark or "")


def _is_earlier(entry: State, present: State) -> bool:
    order = list(machine.ENTRIES.values())
    return order.index(entry) < order.index(present)


def _finish_stage(decision: Decision, task: Task, request: Submit) -> None:
    stage = STAGE[task.state]
    assert stage.next is not None
    body = decision.graph.body(task.id)
    if request.guard is None and stage.phase == "work":
        raise Busy(f"The branch of {task.id} was not looked at.", "Try again.", task.id)
    _require_same_assignment(decision, task, request)
    if stage.heading is None:
        guards.require(task, request.guard)
        tip = request.guard.tip if request.guard else None
        if task.state == "WORK_REVIEW" and tip != task.checked_tip:
            raise GuardBroken(
                "modified-worktree",
                f"The branch {task.branch} is not at the commit that was checked.",
                f"Put it back to {task.checked_tip}, or send it back with feedback.",
                task.id,
            )
        change = Submitted(remark=request.remark, cost=request.cost)
        decision.add(task, change, stage.next, claim=task.claim, text=request.remark or "")
        return
    # The tree first: who has committed nothing has nothing to write notes about.
    guards.require(task, request.guard, no_change=request.no_change)
    if request.section is None:
        assert stage.missing is not None
        raise GuardBroken(
            stage.missing,
            f"Nothing is written under {stage.heading} in ASSIGNMENT.md.",
            "Write it there, or give it with -m or -F, and submit again.",
            task.id,
        )
    offset = len(body)
    is_work = task.state == "WORK"
    change = Submitted(
        draft=None if is_work else Draft(stage.heading, offset),
        no_change=request.no_change,
        cost=request.cost,
    )
    tip = request.guard.tip if request.guard else None
    decision.add(
        task,
        change,
        stage.next,
        claim=task.claim,
        commit=tip if is_work else None,
        body=body + gap(body) + request.section,
    )


def _require_same_assignment(decision: Decision, task: Task, request: Submit | Feedback) -> None:
    """Refuses who works from a text or from checks that the manager has changed meanwhile."""
    body, checks = request.body_dispatched, request.checks_dispatched
    same_body = body is None or body == decision.graph.body(task.id)
    if same_body and (checks is None or checks == task.checks):
        return
    raise GuardBroken(
        "assignment-changed",
        f"The manager has changed the text or the checks of {task.id} since it was handed out.",
        "Read ASSIGNMENT.md again: it has the new text and what you wrote. Submit again.",
        task.id,
    )


def _land(decision: Decision, task: Task, request: Submit) -> None:
    waiting = dependencies.open_dependencies(decision.graph, task.depends_on)
    if waiting:
        raise Refused(
            f"The task {task.id} cannot land while it needs {', '.join(waiting)}.",
            "Land these first, or remove the dependency with `git tasks dep rm`.",
            task.id,
        )
    children = machine.any_open_child(decision.graph, task.id)
    if children:
        raise Refused(
            f"The task {task.id} cannot land while its children are open: {', '.join(children)}.",
            "Close these first, or move them with `git tasks reparent`.",
            task.id,
        )
    landing = request.landing
    if landing is None:
        raise Busy(f"The task {task.id} reached MANAGER_REVIEW only now.", "Try again.", task.id)
    if landing.tip != task.checked_tip or landing.tip != task.submitted_tip:
        raise Refused(
            f"The branch of {task.id} is not at the commit that was reviewed and checked.",
            f"Send it back with `git tasks feedback {task.id}`.",
            task.id,
        )
    change = Submitted(outcome="landed", mode=landing.mode, remark=request.remark)
    decision.add(task, change, "CLOSED", commit=landing.commit, text=request.remark or "")
    _unblock_after(decision, task.id)


def _unblock_after(decision: Decision, landed: str) -> None:
    """Adds the unblock of every task that waited for the landed one and for nothing else."""
    for waiting in dependencies.waiters(decision.graph, landed):
        _unblock(decision, waiting, landed)


def _unblock(decision: Decision, task_id: str, cause: str | None) -> None:
    task = decision.task(task_id)
    if task.state != "BLOCKED" or task.enters is None:
        return
    if dependencies.open_dependencies(decision.graph, task.depends_on):
        return
    decision.add(task, Unblocked(cause), task.enters, role="tool")


# Reviews and checks.


def _feedback(decision: Decision, request: Feedback) -> None:
    findings = tuple(item.strip() for item in request.findings if item.strip())
    if not findings:
        raise UsageFault("There is no finding in this feedback.", "Give one with -m or -F.")
    task = decision.task(request.task)
    _require_open(task, "get feedback")
    stage = STAGE[task.state]
    if stage.back is None or task.state == "CHECK":
        raise _not_allowed(task, "feedback")
    text = "\n".join(f"- {item}" for item in findings)
    if task.state == "MANAGER_REVIEW":
        _require_manager(decision, task, "send back")
        change = FeedbackGiven(findings, 1, task.rejections, None, request.cost)
        decision.add(task, change, stage.back, text=text)
        return
    _require_owner(decision, task, "send back")
    _require_holder(decision, task, "send back")
    _require_same_assignment(decision, task, request)
    guards.require(task, request.guard)
    rejections = task.rejections + 1
    held = None
    if rejections >= decision.facts.rejection_limit:
        held = _rejection_reason(decision, task, findings, rejections)
    change = FeedbackGiven(findings, rejections, rejections, held, request.cost)
    target = stage.held if held else stage.back
    decision.add(task, change, target, claim=task.claim, text=text)


def _rejection_reason(
    decision: Decision, task: Task, findings: Sequence[str], rejections: int
) -> str:
    """Returns the reason of a hold by rejection: the last round's findings, then the earlier."""
    earlier: list[str] = []
    rounds = rejections - 1
    for event in decision.facts.history(task.id):
        if rounds == 0:
            break
        if isinstance(event.change, FeedbackGiven) and event.source == task.state:
            earlier.extend(event.change.findings)
            rounds -= 1
    lines = [f"Rejected {rejections} times at {task.state}. Last findings:"]
    lines += [f"- {item}" for item in findings]
    if earlier:
        lines.append("Earlier findings:")
        lines += [f"- {item}" for item in earlier]
    return "\n".join(lines)


def _record_check(decision: Decision, request: RecordCheck) -> None:
    task = decision.task(request.task)
    _require_open(task, "be checked")
    if task.state != "CHECK":
        raise _not_allowed(task, "check to record")
    if decision.facts.speaker.role != "checker":
        raise WrongRole(
            f"Only the checker may record a check of {task.id}.",
            f"Run `git tasks check {task.id} --record`.",
            task.id,
        )
    if task.claim is not None and decision.facts.speaker.claim != task.claim:
        raise AlreadyClaimed(
            f"The check of {task.id} is held by {task.claimed_by}.", "Let it finish.", task.id
        )
    if request.tip != task.submitted_tip:
        raise Refused(
            f"The checks ran on another commit than the one submitted for {task.id}.",
            "Run the checks again.",
            task.id,
        )
    if not request.findings:
        text = "" if request.results else "no checks"
        decision.add(task, CheckPassed(request.results), "WORK_REVIEW", claim=task.claim,
                     commit=request.tip, text=text)  # fmt: skip
        return
    failures = task.check_failures + 1
    held = None
    if failures >= decision.facts.check_failure_limit:
        listed = "\n".join(f"- {item}" for item in request.findings)
        held = f"The checks failed {failures} times in a row. Last findings:\n{listed}"
    change = CheckRefuted(request.findings, request.results, failures, held)
    text = "\n".join(f"- {item}" for item in request.findings)
    decision.add(task, change, "HELD_WORK" if held else "WORK", claim=task.claim,
                 commit=request.tip, text=text)  # fmt: skip


# Hold, resume, abort.


def _hold(decision: Decision, request: Hold) -> None:
    reason = _require_text(request.reason, "reason")
    task = decision.task(request.task)
    _require_open(task, "be held")
    held = STAGE[task.state].held
    if held is None:
        raise _not_allowed(task, "hold")
    speaker = decision.facts.speaker
    if speaker.role not in ("manager", "tool"):
        _require_owner(decision, task, "hold")
        _require_holder(decision, task, "hold")
    decision.add(task, Held(reason, request.cost), held, claim=task.claim, text=reason)


def _resume(decision: Decision, request: Resume) -> None:
    task = decision.task(request.task)
    _require_open(task, "be resumed")
    if task.state not in machine.HELD:
        raise _not_allowed(task, "resume")
    _require_manager(decision, task, "resume")
    _require_no_ring(decision, task.id, task.depends_on)
    waits = bool(dependencies.open_dependencies(decision.graph, task.depends_on))
    target = "BLOCKED" if waits else STAGE[task.state].next
    decision.add(task, Resumed(request.remark), target, text=request.remark or "")


def _abort(decision: Decision, request: Abort) -> None:
    task = decision.task(request.task)
    _require_open(task, "be aborted")
    if task.state not in machine.ABORTABLE and not request.recursive:
        raise _not_allowed(task, "abort", f"Run `git tasks hold {task.id}` first, then abort.")
    _require_manager(decision, task, "abort")
    members = _family(decision, task.id) if request.recursive else [task.id]
    for member in members:
        if member in request.landing:
            raise Refused(
                f"The task {member} is landing right now; nothing was aborted.",
                "Try again when it has landed or failed.",
                member,
            )
    for member in members:
        _abort_one(decision, decision.task(member), request.reason, request.delivered)


def _family(decision: Decision, root: str) -> list[str]:
    """Returns the open tasks of a subtree, children before parents."""
    order: list[str] = []
    stack = [(root, False)]
    seen: set[str] = set()
    while stack:
        current, expanded = stack.pop()
        if expanded:
            order.append(current)
            continue
        if current in seen or not decision.task(current).is_open:
            continue
        seen.add(current)
        stack.append((current, True))
        stack.extend((child, False) for child in reversed(decision.graph.children(current)))
    return order


def _abort_one(
    decision: Decision, task: Task, reason: str | None, delivered: frozenset[str]
) -> None:
    if task.id in delivered:
        raise Refused(
            f"The commits of {task.id} are in the base already.",
            f"Let it land with `git tasks submit {task.id}` instead.",
            task.id,
        )
    children = machine.any_open_child(decision.graph, task.id)
    if children:
        raise Refused(
            f"The task {task.id} has open children: {', '.join(children)}.",
            "Abort these first, or give --recursive.",
            task.id,
        )
    decision.add(task, Aborted(reason), "CLOSED", claim=task.claim, text=reason or "")


# Claims.


def _claim(decision: Decision, request: Claim) -> None:
    task = decision.task(request.task)
    _require_open(task, "be claimed")
    stage = STAGE[task.state]
    if not stage.claimable:
        raise _not_allowed(task, "claim")
    _require_owner(decision, task, "claim")
    if task.claim is not None:
        if not is_expired(task, decision.facts.now):
            if decision.facts.speaker.claim == task.claim:
                return
            raise AlreadyClaimed(
                f"The task {task.id} is held by {task.claimed_by}.",
                "Take another one with `git tasks claim --next`.",
                task.id,
            )
        decision.add(task, Released("expired"), role="tool", claim=task.claim)
        task = decision.task(task.id)
    change = Claimed(
        timestamp(request.lease_expires),
        request.branch,
        request.base,
        request.dispatched,
        request.assignment,
    )
    decision.add(task, change, claim=request.claim, commit=request.dispatched)


def is_expired(task: Task, now: int) -> bool:
    """Tells whether the lease of a task's claim has run out at a time in seconds since 1970."""
    return task.lease_expires is not None and task.lease_expires <= timestamp(now)


def _release(decision: Decision, request: Release) -> None:
    task = decision.task(request.task)
    _require_open(task, "be released")
    speaker = decision.facts.speaker
    if request.why == "forced":
        _require_manager(decision, task, "release by force")
    if task.claim is None:
        raise NotClaimed(f"Nobody holds {task.id}.", task=task.id)
    match request.why:
        case "expired":
            if not is_expired(task, decision.facts.now):
                raise AlreadyClaimed(
                    f"The lease of {task.claimed_by} on {task.id} has not run out.", task=task.id
                )
        case "forced" | "died":
            pass
        case _:
            if speaker.claim != task.claim:
                raise AlreadyClaimed(
                    f"The task {task.id} is held by {task.claimed_by}, not by you.",
                    "The manager may take it away with --force.",
                    task.id,
                )
    role: EventRole | None = None
    if request.why in ("expired", "died"):
        role = "tool"
    elif request.why == "released":
        role = STAGE[task.state].role
    change = Released(request.why, request.reason, request.cost)
    decision.add(task, change, role=role, claim=task.claim, text=request.reason or "")


# Edits.


def _edit(decision: Decision, request: Edit) -> None:
    wanted = _wanted(request)
    task = decision.task(request.task)
    wanted |= _needs_after(task, request, wanted)
    named = (*wanted.get("depends_on", ()), *request.remove_dependencies)
    _require_known(decision, (other for other in named if other not in task.depends_on))
    _require_open(task, "be edited")
    _require_manager(decision, task, "edit")
    changes = tuple(sorted((k, v) for k, v in wanted.items() if _present(task, k) != v))
    unset = (name for name in request.unset if name not in wanted)
    dropped = tuple(sorted(n for n in unset if _present(task, n) != _default(n)))
    body = request.body if request.body != decision.graph.body(task.id) else None
    if not changes and not dropped and body is None:
        _clear_attention(decision, task)
        return
    names = {*dict(changes), *dropped}
    _require_editable_now(task, names, body, force=request.force)
    if "depends_on" in names:
        _require_no_ring(decision, task.id, wanted.get("depends_on", ()))
    change = Edited(changes, dropped, body is not None, bool(task.attention))
    decision.add(task, change, body=body)
    _unblock(decision, task.id, None)


def _wanted(request: Edit) -> dict[str, Any]:
    """Returns the fields to set; raises UsageFault for a name or a value that cannot be."""
    wanted = dict(request.set)
    for name in (*wanted, *request.unset):
        if name not in machine.EDITABLE and not is_extra(name):
            raise UsageFault(
                f"The field {name!r} is not set by hand.",
                f"Set one of {', '.join(machine.EDITABLE)}, or a key beginning with x-.",
            )
    if "title" in wanted:
        wanted["title"] = checked_title(wanted["title"])
    elif "title" in request.unset:
        raise UsageFault("A task needs a title.", "Set another one with --title.")
    if isinstance(wanted.get("depends_on"), tuple):
        wanted["depends_on"] = tuple(dict.fromkeys(wanted["depends_on"]))
        _require_few(wanted["depends_on"])
    for name, value in wanted.items():
        _require_value(name, value)
    return wanted


def _needs_after(task: Task, request: Edit, wanted: dict[str, Any]) -> dict[str, Any]:
    """Returns the dependencies after additions and removals, nothing where there are none."""
    if not request.add_dependencies and not request.remove_dependencies:
        return {}
    before = () if "depends_on" in request.unset else task.depends_on
    kept = [n for n in wanted.get("depends_on", before) if n not in request.remove_dependencies]
    needs = tuple(dict.fromkeys((*kept, *request.add_dependencies)))
    _require_few(needs)
    return {"depends_on": needs}


def _clear_attention(decision: Decision, task: Task) -> None:
    if task.attention:
        decision.add(task, Edited(seen=True))


def _require_editable_now(task: Task, names: set[str], body: bytes | None, *, force: bool) -> None:
    if "depends_on" in names and task.state not in machine.DEPENDENCIES_EDITABLE:
        raise NotAllowed(
            f"The dependencies of {task.id} do not change at {task.state}.",
            f"Run `git tasks hold {task.id}` first.",
            task.id,
        )
    if body is None and "checks" not in names:
        return
    if task.draft is not None:
        raise NotAllowed(
            f"A draft of {task.id} is under review; its text and checks do not change meanwhile.",
            "Wait for the review, or hold the task.",
            task.id,
        )
    if task.claim is not None and not force:
        raise AlreadyClaimed(
            f"The task {task.id} is held by {task.claimed_by}, who works from its text and checks.",
            "Give --force to change them all the same; the holder is told at submit.",
            task.id,
        )


def _present(task: Task, name: str) -> Any:
    return dict(task.extra).get(name) if name.startswith("x-") else getattr(task, name)


def _default(name: str) -> Any:
    return None if name.startswith("x-") else Task._field_defaults[name]


def _note(decision: Decision, request: Note) -> None:
    text = request.text.strip()
    if not text and not request.artifacts and not request.seen:
        raise UsageFault("The note is blank.", "Give some text, --artifact or --seen.")
    for name, _ in request.artifacts:
        if not is_name(name):
            raise UsageFault(
                f"An artifact cannot be called {_shown(name)}.", "Give --artifact NAME=VALUE."
            )
    task = decision.task(request.task)
    _require_open(task, "take a note")
    if request.seen:
        _require_manager(decision, task, "mark as seen")
    if not text and not request.artifacts and not task.attention:
        return
    decision.add(task, Noted(tuple(dict(request.artifacts).items()), request.seen), text=text)


# Hierarchy.


def _reparent(decision: Decision, request: Reparent) -> None:
    task = decision.task(request.task)
    _require_known(decision, (request.parent,))
    _require_open(task, "move")
    _require_manager(decision, task, "move")
    objection = machine.objection_to_parent(decision.graph, task.id, request.parent)
    if objection is not None:
        raise NotAllowed(f"The task {task.id} cannot move: {objection}.", task=task.id)
    if task.parent != request.parent:
        decision.add(task, Reparented(request.parent))


def _reorder(decision: Decision, request: Reorder) -> None:
    beside = request.where in ("before", "after")
    if beside and request.sibling in (None, request.task):
        raise UsageFault("A task is placed beside another one.", "Name a sibling.")
    task = decision.task(request.task)
    _require_known(decision, (request.sibling if beside else None,))
    _require_open(task, "move")
    _require_manager(decision, task, "move")
    rows = [decision.task(other) for other in decision.graph.children(task.parent)]
    siblings = sorted((t for t in rows if t.id != task.id), key=lambda t: (t.sort_key, t.id))
    keys = [sibling.sort_key for sibling in siblings]
    match request.where:
        case "first":
            place = 0
        case "last":
            place = len(keys)
        case _:
            place = _place_beside(task, request, [s.id for s in siblings])
    low = keys[place - 1] if place > 0 else ""
    high = keys[place] if place < len(keys) else ""
    if (not low or low < task.sort_key) and (not high or task.sort_key < high):
        return
    decision.add(task, Reordered(key_between(low, high)))


def _place_beside(task: Task, request: Reorder, siblings: Sequence[str]) -> int:
    other = request.sibling
    if other is None or other not in siblings:
        raise NotAllowed(
            f"The tasks {task.id} and {other} have different parents.",
            f"Move it first with `git tasks reparent {task.id}`.",
            task.id,
        )
    place = siblings.index(other)
    return place if request.where == "before" else place + 1
