"""Merges an edit that one clone has made alone with what others have done to the task meanwhile.

Three sides are looked at: the task as the edit found it, as the edit leaves it, and as it is now.
A field is set unless others have changed it too; of dependencies each is added or taken away for
itself; texts are merged place by place. What does not fit is told and left as the others have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain import dependencies, machine
from gittasks.domain.errors import Cycle, in_a_sentence
from gittasks.domain.events import Edited
from gittasks.domain.text_merge import merged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.events import Event, ExternallyChanged
    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph


class Plan(NamedTuple):
    """What is left of an edit: the fields and the text to set, and why the rest is not."""

    fields: dict[str, Any]
    body: bytes | None
    missed: list[str]
    kept: str | None = None
    """Why our text is kept beside the document, None where it is in it or there is none."""
    seen: bool = False
    """Whether the edit clears the rows that wait for the manager."""

    @property
    def is_applied(self) -> bool:
        """Tells whether anything of the edit is left."""
        return bool(self.fields or self.body is not None or self.seen)

    @property
    def reason(self) -> str:
        """Returns why the rest is not applied, as a part of a sentence; "" where there is none."""
        return " and ".join((*self.missed, *([self.kept] if self.kept else ())))


class Before(NamedTuple):
    """The task and the text that an edit was made on."""

    task: Task
    body: bytes


def merge_edit(
    graph: Graph,
    event: Event,
    change: Edited | ExternallyChanged,
    before: Before,
    now: Task,
    mapped: Callable[[str, Any], Any],
) -> Plan:
    """Returns what is left of an edit on a task as it is now.

    `mapped` gives a field of `before`, or of the edit, with the numbers that tasks have now.
    """
    fields, missed = _fields(graph, change, before.task, now, mapped)
    plan = _with_text(graph, event, change, before, now, Plan(fields, None, missed))
    is_seen = isinstance(change, Edited) and change.seen and has_seen(before.task, now)
    plan = plan._replace(seen=is_seen)
    if now.is_open:
        return plan
    is_news = plan.fields or plan.missed or plan.body is not None or plan.kept
    return Plan({}, None, [], "the task was closed meanwhile" if is_news else None)


def has_seen(before: Task, now: Task) -> bool:
    """Tells whether a row is there that was already there for the manager of this clone."""
    seen = {row.event for row in before.attention}
    return any(row.event in seen for row in now.attention)


def default_of(name: str) -> Any:
    """Returns what a field holds that was never set."""
    from gittasks.domain.task import Task

    return None if name.startswith("x-") else Task._field_defaults.get(name)


def _field(task: Task, name: str) -> Any:
    return dict(task.extra).get(name) if name.startswith("x-") else getattr(task, name)


def _fields(
    graph: Graph,
    change: Edited | ExternallyChanged,
    then: Task,
    now: Task,
    mapped: Callable[[str, Any], Any],
) -> tuple[dict[str, Any], list[str]]:
    """Returns the fields to set, and why others are not."""
    wanted = dict(change.set)
    wanted |= {name: default_of(name) for name in change.unset}
    fields: dict[str, Any] = {}
    missed: list[str] = []
    for name, value in wanted.items():
        was, present = _field(then, name), _field(now, name)
        if name == "depends_on":
            needs = _needs(graph, now, mapped(name, was), mapped(name, value), missed)
            if needs != present:
                fields[name] = needs
        elif present not in (was, value):
            missed.append(f"others have changed its {name} too")
        elif present != value:
            fields[name] = value
    return fields, missed


def _needs(
    graph: Graph, task: Task, old: Sequence[str], new: Sequence[str], missed: list[str]
) -> tuple[str, ...]:
    """Returns the dependencies with what this clone has added and taken away."""
    present = task.depends_on
    kept = [one for one in present if one in new or one not in old]
    added = [one for one in new if one not in old and one not in kept]
    if task.state not in machine.DEPENDENCIES_EDITABLE:
        if added or len(kept) < len(present):
            missed.append(f"its dependencies do not change at {task.state}")
        return present
    for one in added:
        path = dependencies.ring(graph, task.id, (one,))
        if path is not None:
            missed.append(in_a_sentence(Cycle(path).message))
        else:
            kept.append(one)
    return tuple(kept)


def _with_text(
    graph: Graph,
    event: Event,
    change: Edited | ExternallyChanged,
    before: Before,
    now: Task,
    plan: Plan,
) -> Plan:
    """Returns the plan with the merged text, and without what may not change just now."""
    body, kept = None, None
    if change.body and event.body is not None:
        present = graph.body(now.id)
        both = merged(before.body, event.body, present)
        if both is None:
            kept = "others have changed the same place of its text"
        elif both != present:
            body = both
    why = _objection_to_text(change, before.task, now)
    if why is None or (body is None and "checks" not in plan.fields):
        return plan._replace(body=body, kept=kept)
    fields = {name: value for name, value in plan.fields.items() if name != "checks"}
    missed = [*plan.missed, *([f"its checks stay: {why}"] if "checks" in plan.fields else ())]
    return Plan(fields, None, missed, kept if body is None else why)


def _objection_to_text(change: Edited | ExternallyChanged, then: Task, now: Task) -> str | None:
    """Returns why text and checks of a task do not change now, None when they do."""
    if now.draft is not None:
        return "a draft of it is under review"
    if now.claim is None or (then.claim is not None and isinstance(change, Edited)):
        return None
    return f"{now.claimed_by} has claimed it meanwhile"
