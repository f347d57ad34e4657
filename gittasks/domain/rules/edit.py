"""Edits and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain import machine
from gittasks.domain.errors import AlreadyClaimed, NotAllowed, UsageFault
from gittasks.domain.events import Edited, Noted
from gittasks.domain.fields import is_extra, is_name
from gittasks.domain.rules.create import checked_title, require_value, shown
from gittasks.domain.rules.decision import (
    Decision,
    require_few,
    require_known,
    require_manager,
    require_no_ring,
    require_open,
    unblock,
)
from gittasks.domain.task import Task

if TYPE_CHECKING:
    from gittasks.domain.requests import Edit, Note


def edit(decision: Decision, request: Edit) -> None:
    """Changes fields, dependencies or the body; unblocks what waits for nothing any more."""
    wanted = _wanted(request)
    task = decision.task(request.task)
    wanted |= _needs_after(task, request, wanted)
    named = (*wanted.get("depends_on", ()), *request.remove_dependencies)
    require_known(decision, (other for other in named if other not in task.depends_on))
    require_open(task, "be edited")
    require_manager(decision, task, "edit")
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
        require_no_ring(decision, task.id, wanted.get("depends_on", ()))
    change = Edited(changes, dropped, body is not None, bool(task.attention))
    decision.add(task, change, body=body)
    unblock(decision, task.id, None)


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
        require_few(wanted["depends_on"])
    for name, value in wanted.items():
        require_value(name, value)
    return wanted


def _needs_after(task: Task, request: Edit, wanted: dict[str, Any]) -> dict[str, Any]:
    """Returns the dependencies after additions and removals, nothing where there are none."""
    if not request.add_dependencies and not request.remove_dependencies:
        return {}
    before = () if "depends_on" in request.unset else task.depends_on
    kept = [n for n in wanted.get("depends_on", before) if n not in request.remove_dependencies]
    needs = tuple(dict.fromkeys((*kept, *request.add_dependencies)))
    require_few(needs)
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


def note(decision: Decision, request: Note) -> None:
    """Records a remark, artifacts, or that the manager has seen the rows of the task."""
    text = request.text.strip()
    if not text and not request.artifacts and not request.seen:
        raise UsageFault("The note is blank.", "Give some text, --artifact or --seen.")
    for name, _ in request.artifacts:
        if not is_name(name):
            raise UsageFault(
                f"An artifact cannot be called {shown(name)}.", "Give --artifact NAME=VALUE."
            )
    task = decision.task(request.task)
    if text or request.artifacts or not task.attention:
        require_open(task, "take a note")
    if request.seen:
        require_manager(decision, task, "mark as seen")
    if not text and not request.artifacts and not task.attention:
        return
    decision.add(task, Noted(tuple(dict(request.artifacts).items()), request.seen), text=text)
