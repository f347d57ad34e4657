"""Create: writing a task down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain import dependencies, machine
from gittasks.domain.errors import Cycle, NotAllowed, UsageFault
from gittasks.domain.events import Created
from gittasks.domain.fields import TITLE_LIMIT, is_extra
from gittasks.domain.rules.decision import Decision, require_few, require_known, require_manager
from gittasks.domain.rules.stop import abort_one
from gittasks.domain.task_graph import next_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gittasks.domain.requests import Create
    from gittasks.domain.task import Task


def create(decision: Decision, request: Create) -> None:
    """Writes a task down; what it supersedes is aborted with it."""
    title = checked_title(request.title)
    needs = tuple(dict.fromkeys(request.depends_on))
    require_few(needs)
    for name in ("labels", "priority", "checks", "assignee"):
        require_value(name, getattr(request, name))
    for name, text in request.extra:
        require_extra(name, text)
    if decision.graph.with_uid(request.uid) is not None:
        return
    require_known(decision, (*needs, request.parent, request.supersedes, request.follows))
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
        extra=request.extra,
        proposed_by=None if manager else decision.facts.speaker.actor,
    )
    decision.create(task_id, request.uid, request.body, change)
    if replaced is not None and replaced.is_open:
        abort_one(decision, replaced, f"superseded by {task_id}", frozenset())


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
    require_manager(decision, replaced, "supersede")
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
        raise UsageFault("The title has characters that are no text.", "Write it in UTF-8.")
    return text


def require_extra(name: str, text: str) -> None:
    """Refuses a key of the user's own that is not called `x-` something."""
    if not is_extra(name) or not machine.is_value(name, text):
        raise UsageFault(
            f"A task has no field {shown(name)}.", "Call a key of your own x-SOMETHING."
        )


def require_value(name: str, value: Any) -> None:
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
    raise UsageFault(f"The field {name} cannot be {shown(value)}.", hint)


def shown(value: Any) -> str:
    """Returns a value as a refusal quotes it, cut short."""
    return repr(list(value) if isinstance(value, tuple) else value)[:80]
