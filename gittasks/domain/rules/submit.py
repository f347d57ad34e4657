"""Submit, in all its forms: dispatch, close, finish a stage, land."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain import dependencies, guards, machine
from gittasks.domain.errors import Busy, GuardBroken, NotAllowed, Refused, UsageFault
from gittasks.domain.events import Submitted
from gittasks.domain.machine import STAGE
from gittasks.domain.rules.decision import (
    Decision,
    not_allowed,
    require_holder,
    require_manager,
    require_no_ring,
    require_open,
    require_owner,
    require_same_assignment,
    unblock_after,
)
from gittasks.domain.task import Draft, State, Task
from gittasks.domain.task_graph import gap

if TYPE_CHECKING:
    from gittasks.domain.requests import Submit


def submit(decision: Decision, request: Submit) -> None:
    """Dispatches, closes, finishes a stage or lands, as the state of the task asks."""
    if request.enter is not None and request.enter not in machine.ENTRIES.values():
        raise UsageFault(
            f"There is no entry {request.enter}.", f"Give one of {', '.join(machine.ENTRIES)}."
        )
    if request.close and request.enter:
        raise UsageFault("A task is closed or enters a state, not both.", "Leave one out.")
    task = decision.task(request.task)
    require_open(task, "be submitted")
    state = task.state
    if state in ("NEW", "BLOCKED"):
        require_manager(decision, task, "submit")
        if request.close:
            _close(decision, task, request)
        else:
            _dispatch(decision, task, request)
        return
    if request.close or request.enter:
        option = "--close" if request.close else "--enter"
        raise not_allowed(task, f"submit {option}", "It is for tasks at NEW and BLOCKED.")
    if state == "MANAGER_REVIEW":
        require_manager(decision, task, "land")
        _land(decision, task, request)
    elif state in machine.HELD:
        raise not_allowed(task, "submit", f"Run `git tasks resume {task.id}` as the manager.")
    elif state == "CHECK":
        raise not_allowed(task, "submit", f"Run `git tasks check {task.id} --record`.")
    else:
        require_owner(decision, task, "submit")
        require_holder(decision, task, "submit")
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
    unblock_after(decision, task.id)


def _dispatch(decision: Decision, task: Task, request: Submit) -> None:
    present = task.enters
    entry: State = request.enter or present or "DESIGN"
    if request.has_commits and present is not None and _is_earlier(entry, present):
        raise Refused(
            f"The branch of {task.id} has commits; it cannot enter {entry} any more.",
            f"Submit it with --enter {STAGE[present].phase}.",
            task.id,
        )
    require_no_ring(decision, task.id, task.depends_on)
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
    require_same_assignment(decision, task, request)
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
    unblock_after(decision, task.id)
