"""Adds a remark or an artifact to the history of a task, or marks its inbox row as seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import UsageFault
from gittasks.domain.fields import is_name, shown
from gittasks.domain.requests import Note
from gittasks.workflow import outbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.workflow.project import Outcome, Project


def note(
    project: Project,
    spelling: str | None,
    text: str = "",
    *,
    artifacts: Sequence[str] = (),
    seen: bool = False,
) -> Outcome:
    """Writes the note; each artifact is spelled NAME=VALUE."""
    task = project.resolve(spelling)
    project.task(task)
    speaker = project.speaker("note", task)
    request = Note(task, text, tuple(map(_artifact, artifacts)), seen)
    if outbox.folder_of(project):
        return outbox.leave(
            project, request, speaker, "note", text=text, artifacts=dict(request.artifacts)
        )
    return project.outcome(task, project.apply(request, speaker))


def _artifact(spelled: str) -> tuple[str, str]:
    name, equals, value = spelled.partition("=")
    if not equals or not is_name(name):
        raise UsageFault(
            f"The artifact {shown(spelled)!r} is not spelled NAME=VALUE.",
            "Write for example --artifact report=build/report.html.",
        )
    return name.strip(), value
