"""The outbox of an agent under a runner: one file an entry, instead of a ref that moves.

`<Event-Id>.json` in the folder named by GITTASKS_OUTBOX holds one object with `verb` (submit,
feedback, hold, note), `task`, `uid`, `claim` (the claim's id), `text` (the section or the note),
`findings` (a list), `reason`, `tip` (the branch's commit), `no_change`, `artifacts` and `at`
(RFC 3339 UTC). It is written under a temporary name and renamed. The runner, the only writer for
its agents, validates each entry again and commits it; of several in one turn the last valid counts.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from gittasks.domain.decide import decide_all
from gittasks.domain.errors import GuardBroken, Refused
from gittasks.domain.times import timestamp
from gittasks.workflow import dispatch
from gittasks.workflow.project import Outcome

if TYPE_CHECKING:
    from gittasks.domain.requests import Request, Speaker
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project

VERBS = ("submit", "feedback", "hold", "note")


def folder_of(project: Project) -> str | None:
    """Returns the outbox of this process, None where the command itself is the writer."""
    return project.environ.get("GITTASKS_OUTBOX") or None


def leave(project: Project, request: Request, speaker: Speaker, verb: str, **entry: Any) -> Outcome:
    """Validates a request on the present graph and leaves it in the outbox; refuses as usual."""
    folder = folder_of(project)
    assert folder is not None
    assert verb in VERBS
    task = project.task(request.task)  # type: ignore[union-attr]  # the four verbs are about a task
    graph = project.ledger.graph()
    try:
        events = decide_all(graph, (request,), project.facts(speaker))
    except GuardBroken as refusal:
        if refusal.issue == "assignment-changed" and not dispatch.may_record(project):
            # Only the runner can hand it out again; it meets the same refusal and does.
            _write(folder, os.urandom(16).hex(), _entry(project, task, speaker, verb, entry))
        raise
    if not events:
        return Outcome(task, "none", task.state, task.state, changed=False)
    event_id = os.urandom(16).hex()
    _write(folder, event_id, _entry(project, task, speaker, verb, entry))
    return Outcome(
        task,
        verb,
        events[0].source,
        events[0].target,
        notes=("Left for the runner, which records it.",),
        extra={"outbox": event_id},
    )


def _entry(
    project: Project, task: Task, speaker: Speaker, verb: str, entry: dict[str, Any]
) -> dict[str, Any]:
    return {
        "verb": verb,
        "task": task.id,
        "uid": task.uid,
        "claim": speaker.claim or task.claim,
        "text": entry.pop("text", ""),
        "findings": list(entry.pop("findings", ())),
        "reason": entry.pop("reason", ""),
        "tip": entry.pop("tip", None),
        "at": timestamp(project.clock()),
        **entry,
    }


def _write(folder: str, event_id: str, data: dict[str, Any]) -> None:
    path = os.path.join(folder, f"{event_id}.json")
    beside = os.path.join(folder, f".{event_id}.part")
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except (FileNotFoundError, NotADirectoryError):
        raise Refused(
            f"The outbox {folder} does not exist.", "Ask whoever started the agent."
        ) from None
    with open(fd, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.rename(beside, path)
