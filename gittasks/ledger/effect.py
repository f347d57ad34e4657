"""What one event does to the files of the tree; writing, verifying and recovering share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain.errors import Corrupt, UsageFault
from gittasks.domain.events import Configured, Initialized, Rejected
from gittasks.domain.frontmatter import render
from gittasks.domain.task_graph import evolve
from gittasks.ledger.layout import DOCUMENT_LIMIT, PROJECT_FILE, is_shared_text, path_of
from gittasks.ledger.quarantine import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gittasks.domain.config import Project
    from gittasks.domain.events import Event, JsonPairs
    from gittasks.domain.task import Task

__all__ = ["Effect", "of_project_event", "of_task_event"]


class Effect(NamedTuple):
    """The files that an event writes (None: removes), which of them is its document, the task."""

    files: dict[str, bytes | None]
    document: str | None
    task: Task | None = None
    body: bytes = b""


def of_task_event(
    event: Event, task: Task | None, body: bytes, strays: Iterable[str] = ()
) -> Effect:
    """Returns the effect of an event about a task, given the task and its body before.

    `strays` are the paths of the task at which the tree does not count: they are put in order too.
    """
    if task is not None and task.attention:
        rows = tuple(row for row in task.attention if row.kind != MARK)
        task = task._replace(attention=rows)
    after, body_after = evolve(task, body, event)
    document = render(after, body_after)
    if len(document) > DOCUMENT_LIMIT:
        raise UsageFault(
            f"The document of task {after.id} would have {len(document)} bytes"
            f" and at most {DOCUMENT_LIMIT} are allowed.",
            "Shorten it, or put the text into a file of the work.",
            after.id,
        )
    path = path_of(after)
    files: dict[str, bytes | None] = {path: document}
    if task is not None and path_of(task) != path:
        files[path_of(task)] = None
    for stray in strays:
        files.setdefault(stray, None)
    return Effect(files, path, after, body_after)


def of_project_event(event: Event, settings: bytes | None) -> Effect:
    """Returns the effect of an event about no task, given what `project.yaml` holds before."""
    from gittasks.domain.config import Project, parse_project, render_project

    match event.change:
        case Initialized(project=pairs):
            if settings is not None:
                raise Corrupt("The ledger is initialised twice.")
            return _settings(render_project(_with(Project(base=""), pairs, ())))
        case Configured(path=None, set=pairs, unset=unset):
            if settings is None:
                raise Corrupt("The ledger has no project.yaml.")
            return _settings(render_project(_with(parse_project(settings), pairs, unset)))
        case Configured(path=str(path)) if is_shared_text(path):
            return Effect({path: event.body}, path if event.body is not None else None)
        case Rejected():
            return Effect({}, None)
        case _:
            raise Corrupt(f"The event {event.event_id} writes a file that is no shared text.")


def _settings(data: bytes) -> Effect:
    return Effect({PROJECT_FILE: data}, PROJECT_FILE)


def _with(project: Project, pairs: JsonPairs, unset: tuple[str, ...]) -> Project:
    from gittasks.domain.config import parse_project, render_project

    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in pairs
    }
    for name in unset:
        fields[name] = type(project)._field_defaults.get(name)
    unknown = [name for name in fields if name not in project._fields]
    if unknown:
        raise Corrupt(f"There is no setting {unknown[0]!r}.", "Install a newer gittasks.")
    changed = project._replace(**fields)
    # What is written can be read again: a value of a wrong kind shows here.
    return parse_project(render_project(changed))
