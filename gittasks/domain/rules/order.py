"""Hierarchy: a task below another one, and among its siblings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain import machine
from gittasks.domain.errors import NotAllowed, UsageFault
from gittasks.domain.events import Reordered, Reparented
from gittasks.domain.ids import key_between
from gittasks.domain.rules.decision import Decision, require_known, require_manager, require_open

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.domain.requests import Reorder, Reparent
    from gittasks.domain.task import Task


def reparent(decision: Decision, request: Reparent) -> None:
    """Moves a task below another one, or to the top."""
    task = decision.task(request.task)
    require_known(decision, (request.parent,))
    require_open(task, "move")
    require_manager(decision, task, "move")
    objection = machine.objection_to_parent(decision.graph, task.id, request.parent)
    if objection is not None:
        raise NotAllowed(f"The task {task.id} cannot move: {objection}.", task=task.id)
    if task.parent != request.parent:
        decision.add(task, Reparented(request.parent))


def reorder(decision: Decision, request: Reorder) -> None:
    """Moves a task among its siblings."""
    beside = request.where in ("before", "after")
    if beside and request.sibling in (None, request.task):
        raise UsageFault("A task is placed beside another one.", "Name a sibling.")
    task = decision.task(request.task)
    require_known(decision, (request.sibling if beside else None,))
    require_open(task, "move")
    require_manager(decision, task, "move")
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
