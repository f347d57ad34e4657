"""Turns documents that somebody changed and committed by hand into events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain import machine
from gittasks.domain.errors import GittasksError
from gittasks.domain.events import Edited, Event, ExternallyChanged
from gittasks.domain.fields import BadDocument
from gittasks.domain.frontmatter import parse
from gittasks.domain.task import Task
from gittasks.ledger.build import Builder
from gittasks.ledger.layout import PROJECT_FILE, parse_path, path_of
from gittasks.ledger.quarantine import in_one_line
from gittasks.ledger.trees import changed_paths
from gittasks.plumbing import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.domain.task_graph import Overlay
    from gittasks.ledger.verify import Fold
    from gittasks.ledger.view import View

__all__ = ["adopt"]

_EDITABLE = ("title", "labels", "priority", "assignee", "checks", "depends_on")
_OF_A_NEW_TASK = (*_EDITABLE, "parent", "supersedes", "follows")
_SET_BY_THE_TOOL = ("id", "uid", "state", "entered_at", "created_at", "created_by", "proposed_by")


def adopt(
    ledger: View, good: objects.Commit, fold: Fold, tip: objects.Commit
) -> tuple[Builder | None, list[str]]:
    """Returns the commits that say on top of `good` what `tip` has, and what could not be said.

    The fold has what counts at `good`. Only what an edit may change is taken over, and only where
    the whole document verifies; each other document keeps its last good text.
    """
    reader = ledger.reader
    settings = fold.file(PROJECT_FILE)
    builder = Builder.on(ledger, good, fold, None if settings is None else reader.blob(settings))
    graph = builder.graph
    assert graph is not None
    left: list[str] = []
    author = tip.author.rpartition(" <")[0] or "unknown"
    for path, now in changed_paths(reader, good.tree, tip.tree):
        stray = fold.strays_by_path.get(path)
        if stray is not None and now == stray.row and fold.is_loose(stray):
            left.append(f"The file {path} is put right by the next event that is written.")
            continue
        place = parse_path(path)
        if now is None:
            if place is None or fold.get(place[0]):
                left.append(f"The file {path} was removed by hand; it stays as it was.")
            continue
        if place is None or now[0] != objects.FILE:
            left.append(f"The file {path} was changed by hand; it stays as it was.")
            continue
        words = _adopt_one(builder, graph, tip, author, path, reader.blob(now[1]))
        if words is not None:
            left.append(
                f"What was written by hand in {path} is not taken over: {in_one_line(words)}"
            )
    return (builder if builder.events else None), left


def _adopt_one(
    builder: Builder, graph: Overlay, tip: objects.Commit, author: str, path: str, data: bytes
) -> str | None:
    """Adds the event for one document; returns why there is none."""
    try:
        task, body = parse(data, path)
    except BadDocument as error:
        return error.message
    before = graph.get(task.id)
    if before is None:
        return _adopt_new(builder, graph, tip, author, task, body)
    if path_of(before) != path:
        return f"the task is {before.state} and its document is elsewhere."
    changed = [n for n in Task._fields if n != "extra" and getattr(task, n) != getattr(before, n)]
    fixed = [name for name in changed if name not in _EDITABLE]
    if fixed:
        return f"{', '.join(fixed)} is not edited by hand."
    is_other_body = body != graph.body(task.id)
    set_, unset = _differences(before, task, changed)
    if not set_ and not unset and not is_other_body:
        return None
    if before.claim is not None and (is_other_body or "checks" in changed):
        return f"the task is claimed by {before.claimed_by}."
    event = Event(
        event_id="",
        at=tip.author_time,
        actor=author,
        role="manager",
        host="",
        change=Edited(set_, unset, body=is_other_body),
        task=task.id,
        uid=task.uid,
        source=before.state,
        target=before.state,
        body=body if is_other_body else None,
    )
    objection = machine.objection(graph, event) or _unknown(graph, task)
    if objection is not None:
        return objection + "."
    change = ExternallyChanged(set_, unset, body=is_other_body)
    return _append(
        builder, event._replace(role="tool", change=change, text=f"Committed as {tip.oid}.")
    )


def _adopt_new(
    builder: Builder,
    graph: Overlay,
    tip: objects.Commit,
    author: str,
    task: Task,
    body: bytes,
) -> str | None:
    if graph.with_uid(task.uid) is not None:
        return "another task has this uid."
    ignored = [
        name
        for name in Task._fields
        if name not in (*_OF_A_NEW_TASK, *_SET_BY_THE_TOOL, "extra", "enters", "outcome")
        and getattr(task, name) != Task._field_defaults[name]
    ]
    if ignored:
        return f"{', '.join(ignored)} is not set by hand."
    unknown = _unknown(graph, task) or machine.objection_to_parent(graph, task.id, task.parent)
    if unknown is not None:
        return unknown + "."
    blank = Task(task.id, task.uid, "")
    set_, _ = _differences(blank, task, _OF_A_NEW_TASK)
    return _append(
        builder,
        Event(
            event_id="",
            at=tip.author_time,
            actor=author,
            role="tool",
            host="",
            change=ExternallyChanged(set_, body=True, created=True),
            task=task.id,
            uid=task.uid,
            source=None,
            target="NEW",
            text=f"Committed as {tip.oid}.",
            body=body,
        ),
    )


def _append(builder: Builder, event: Event) -> str | None:
    """Adds an event unless it is larger than an event may be; returns why it is not added."""
    files = dict(builder.files)
    try:
        builder.append(event)
    except GittasksError as error:
        builder.files = files
        return error.message
    return None


def _unknown(graph: Overlay, task: Task) -> str | None:
    for other in (*task.depends_on, task.parent, task.supersedes, task.follows):
        if other is not None and graph.get(other) is None:
            return f"it names {other}, which does not exist"
    return None


def _differences(
    before: Task, after: Task, names: Sequence[str]
) -> tuple[tuple[tuple[str, Any], ...], tuple[str, ...]]:
    """Returns what has to be set and unset to get from one task to another."""
    set_: list[tuple[str, Any]] = []
    unset: list[str] = []
    for name in names:
        value = getattr(after, name)
        if value == getattr(before, name):
            continue
        if name in Task._field_defaults and value == Task._field_defaults[name]:
            unset.append(name)
        else:
            set_.append((name, value))
    old, new = dict(before.extra), dict(after.extra)
    set_ += [(name, text) for name, text in new.items() if old.get(name) != text]
    unset += [name for name in old if name not in new]
    return tuple(set_), tuple(unset)
