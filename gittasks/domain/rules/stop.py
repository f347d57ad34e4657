"""Hold, resume and abort: stopping a task, letting it go on, throwing it away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain import dependencies, machine
from gittasks.domain.errors import Refused
from gittasks.domain.events import Aborted, Held, Resumed
from gittasks.domain.machine import STAGE
from gittasks.domain.rules.decision import (
    Decision,
    not_allowed,
    require_holder,
    require_manager,
    require_no_ring,
    require_open,
    require_owner,
    require_text,
)

if TYPE_CHECKING:
    from gittasks.domain.requests import Abort, Hold, Resume
    from gittasks.domain.task import Task


def hold(decision: Decision, request: Hold) -> None:
    """Stops a task for the manager."""
    reason = require_text(request.reason, "reason")
    task = decision.task(request.task)
    require_open(task, "be held")
    held = STAGE[task.state].held
    if held is None:
        raise not_allowed(task, "hold")
    speaker = decision.facts.speaker
    if speaker.role not in ("manager", "tool"):
        require_owner(decision, task, "hold")
        require_holder(decision, task, "hold")
    decision.add(task, Held(reason, request.cost), held, claim=task.claim, text=reason)


def resume(decision: Decision, request: Resume) -> None:
    """Lets a held task go on, or wait for its dependencies."""
    task = decision.task(request.task)
    require_open(task, "be resumed")
    if task.state not in machine.HELD:
        raise not_allowed(task, "resume")
    require_manager(decision, task, "resume")
    require_no_ring(decision, task.id, task.depends_on)
    waits = bool(dependencies.open_dependencies(decision.graph, task.depends_on))
    target = "BLOCKED" if waits else STAGE[task.state].next
    decision.add(task, Resumed(request.remark), target, text=request.remark or "")


def abort(decision: Decision, request: Abort) -> None:
    """Throws a task away, with its open children where that is asked for."""
    task = decision.task(request.task)
    require_open(task, "be aborted")
    if task.state not in machine.ABORTABLE and not request.recursive:
        raise not_allowed(task, "abort", f"Run `git tasks hold {task.id}` first, then abort.")
    require_manager(decision, task, "abort")
    members = _family(decision, task.id) if request.recursive else [task.id]
    for member in members:
        if member in request.landing:
            raise Refused(
                f"The task {member} is landing right now; nothing was aborted.",
                "Try again when it has landed or failed.",
                member,
            )
    for member in members:
        abort_one(decision, decision.task(member), request.reason, request.delivered)


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


def abort_one(
    decision: Decision, task: Task, reason: str | None, delivered: frozenset[str]
) -> None:
    """Adds the abort of one task that has no open child."""
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
