"""Gives every task as one object: all that its document says, the text included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain.fields import read_json, read_text
from gittasks.domain.frontmatter import task_dict
from gittasks.workflow import queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project


class Exported(NamedTuple):
    """The tasks, made one by one as they are asked for, and what could not be read."""

    tasks: Iterator[dict[str, Any]]
    unread: queries.Rows


def export(project: Project) -> Exported:
    """Returns every task of the ledger, open or closed, lowest id first."""
    snapshot = queries.snapshot_of(project)
    graph = project.ledger.graph()
    tasks = snapshot.all_tasks()
    objects = (_as_object(task, graph.body(task.id)) for task in tasks)
    return Exported(objects, queries.Rows((), 0, snapshot.problems()))


def _as_object(task: Task, body: bytes) -> dict[str, Any]:
    told = task_dict(task)
    # Here a number stays a number, so that it is one again after an import.
    told |= {name: _value(text.strip()) for name, text in task.extra}
    return {**told, "body": body.decode("utf-8", "surrogateescape")}


def _value(raw: str) -> Any:
    text = read_text(raw)
    if text is not None:
        return text
    value = read_json(raw)
    is_texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return value if isinstance(value, int) or is_texts else raw
