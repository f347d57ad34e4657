"""Settling: what an agent has left in its outbox becomes an event, or a refusal that names an issue.

The runner is the only writer for its agents. It believes nothing of an entry: the claim has to be
the present one, and branch, tree and assignment are looked at again before the event is appended.
An entry has the id that its event gets, so that the same entry twice is one event.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gittasks.domain import assignment, machine
from gittasks.domain.errors import GuardBroken, StaleClaim
from gittasks.domain.events import Released
from gittasks.domain.requests import Feedback, Hold, Note, Release, Speaker, Submit
from gittasks.workflow import dispatch, outbox
from gittasks.workflow.project import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.domain.requests import Request
    from gittasks.domain.task import Cost, Role, Task
    from gittasks.workflow.project import Project
    from gittasks.workspaces import records

RESULTS = ("submit", "feedback", "hold")
"""The verbs that end a stage; of several in one turn the last valid one counts."""

RUNNER_DIED = "Its runner died."
"""Why a task is given back whose agent went down with the runner."""

_SIZE_LIMIT = 8 << 20
_COUNT_LIMIT = 1000
_SUFFIX = ".json"
_ID_LENGTH = 32


class Entry(NamedTuple):
    """One file of an outbox, as it was read: nothing of it is believed yet."""

    id: str
    path: str
    verb: str
    task: str
    claim: str
    text: str = ""
    findings: tuple[str, ...] = ()
    reason: str = ""
    tip: str | None = None
    no_change: bool = False
    artifacts: tuple[tuple[str, str], ...] = ()
    seen: bool = False
    at: str = ""


class Found(NamedTuple):
    """What an outbox holds: entries in the order in which they were left, and faults in words."""

    entries: tuple[Entry, ...] = ()
    faults: tuple[str, ...] = ()


def found_in(folder: str) -> Found:
    """Returns the entries of an outbox, oldest first; what is none is named and moved aside."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return Found()
    entries, faults = [], []
    for name in sorted(names)[:_COUNT_LIMIT]:
        if not name.endswith(_SUFFIX) or name.startswith("."):
            continue
        path = os.path.join(folder, name)
        try:
            entries.append((_written_at(path), _read(path, name.removesuffix(_SUFFIX))))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            faults.append(f"{name} in the outbox is no entry: {error}")
            _put_aside(path)
    entries.sort(key=lambda pair: (pair[0], pair[1].at, pair[1].id))
    return Found(tuple(entry for _, entry in entries), tuple(faults))


def drop(entry: Entry) -> None:
    """Takes an entry out of the outbox: it was recorded, or it counts no more."""
    try:
        os.unlink(entry.path)
    except FileNotFoundError:
        pass


def speaker_for(record: records.ClaimRecord) -> Speaker:
    """Returns the holder of a claim, for whom the runner speaks."""
    return Speaker(record.actor, cast("Role", record.role), record.claim)


def require_present(project: Project, record: records.ClaimRecord) -> Task:
    """Returns the task of a claim; raises StaleClaim where the claim is no longer the present one."""
    task = project.task(record.task)
    if task.claim != record.claim or task.uid != record.uid:
        holder = f"held by {task.claimed_by}" if task.claimed_by else "held by nobody"
        raise StaleClaim(
            f"The claim of {record.actor} on {task.id} is over: it is at {task.state}, {holder}.",
            task=task.id,
        )
    return task


def record_entry(
    project: Project, entry: Entry, record: records.ClaimRecord, cost: Cost | None = None
) -> Outcome:
    """Appends the event of an entry; raises GuardBroken, naming the issue, or another refusal.

    A note ends nothing; a result ends the claim, and what it cost goes with it.
    """
    task = require_present(project, record)
    if entry.claim != record.claim or entry.task != record.task:
        raise StaleClaim(
            f"The entry {entry.id[:12]} was left for another claim than that of {record.actor}.",
            task=task.id,
        )
    speaker = speaker_for(record)
    dispatch.require_no_landing(project, task.id)
    if entry.verb == "note" and _is_recorded(project, entry):
        return Outcome(task, "none", task.state, task.state, changed=False)
    request = _request(project, task, entry, record, cost)
    appended = project.apply(request, speaker, event_id=entry.id)
    if entry.verb != "note":
        if entry.verb == "hold":
            dispatch.forget_claim(project, speaker, task.id)
        else:
            dispatch.put_assignment_away(project, speaker, task.id)
    return project.outcome(task.id, appended)


def require_recordable(project: Project, entry: Entry, record: records.ClaimRecord) -> None:
    """Raises what `record_entry` would raise, and writes nothing."""
    from gittasks.domain.decide import decide

    task = require_present(project, record)
    request = _request(project, task, entry, record, None)
    decide(project.ledger.graph(), request, project.facts(speaker_for(record)))


def hold(
    project: Project, record: records.ClaimRecord, reason: str, cost: Cost | None = None
) -> Outcome:
    """Holds the task of a claim in the name of its slot."""
    task = require_present(project, record)
    speaker = speaker_for(record)
    appended = project.apply(Hold(task.id, reason, cost), speaker)
    dispatch.forget_claim(project, speaker, task.id)
    return project.outcome(task.id, appended)


def give_back(
    project: Project,
    record: records.ClaimRecord,
    *,
    died: bool,
    reason: str | None = None,
    cost: Cost | None = None,
) -> Outcome:
    """Releases the task of a claim: because its agent is dead, or because the runner stops it."""
    task = require_present(project, record)
    speaker = speaker_for(record)
    request = Release(task.id, reason, "died" if died else "released", cost)
    appended = project.apply(request, speaker)
    dispatch.forget_claim(project, speaker, task.id)
    return project.outcome(task.id, appended)


def deaths_of(project: Project, task_id: str) -> int:
    """Returns how many agents died on a task one after the other, up to now.

    Those that went down with their runner had no chance, and are not counted.
    """
    count = 0
    for event in project.ledger.history(task_id):
        change = event.change
        if isinstance(change, Released) and change.why == "died":
            count += change.reason != RUNNER_DIED
        elif event.kind not in ("claim", "note"):
            return count
    return count


def _is_recorded(project: Project, entry: Entry) -> bool:
    """Tells whether a runner was killed after it had appended a note and before it dropped it."""
    for event in project.ledger.history(entry.task):
        if event.event_id == entry.id:
            return True
        if event.kind == "claim":
            return False
    return False


def _request(
    project: Project,
    task: Task,
    entry: Entry,
    record: records.ClaimRecord,
    cost: Cost | None,
) -> Request:
    match entry.verb:
        case "note":
            return Note(task.id, entry.text, entry.artifacts, entry.seen)
        case "hold":
            return Hold(task.id, entry.reason, cost)
        case "feedback":
            body, checks = dispatch.assignment_of(project, task, record)
            return Feedback(
                task.id,
                entry.findings,
                dispatch.guard_of(project, task, record),
                body,
                checks,
                cost,
            )
        case _:
            return _submit(project, task, entry, record, cost)


def _submit(
    project: Project,
    task: Task,
    entry: Entry,
    record: records.ClaimRecord,
    cost: Cost | None,
) -> Submit:
    body, checks = dispatch.assignment_of(project, task, record)
    if body == project.ledger.graph().body(task.id):
        dispatch.read_assignment(project, task, record)
    guard = dispatch.guard_of(project, task, record)
    if guard is not None and entry.tip is not None and guard.tip != entry.tip:
        raise GuardBroken(
            "uncommitted" if task.state == "WORK" else "modified-worktree",
            f"The branch {task.branch} has moved since {entry.tip[:12]} was submitted.",
            "Look at it and submit again.",
            task.id,
        )
    heading = machine.STAGE[task.state].heading
    text = entry.text.encode("utf-8", "surrogateescape")
    return Submit(
        task.id,
        section=assignment.chosen_section(heading, text, None) if heading and text else None,
        remark=None if heading else entry.text.strip() or None,
        no_change=entry.no_change,
        guard=guard,
        body_dispatched=body,
        checks_dispatched=checks,
        cost=cost,
    )


def _read(path: str, entry_id: str) -> Entry:
    if len(entry_id) != _ID_LENGTH or entry_id.strip("0123456789abcdef"):
        raise ValueError("its name is no id of an event")
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        raw = file.read(_SIZE_LIMIT + 1)
    if len(raw) > _SIZE_LIMIT:
        raise ValueError("it is longer than 8 MiB")
    data = json.loads(raw)
    if not isinstance(data, dict):
        raise TypeError("it is no object")
    if data.get("verb") not in outbox.VERBS:
        raise ValueError(f"its verb is none of {', '.join(outbox.VERBS)}")
    findings = data.get("findings") or []
    artifacts = data.get("artifacts") or {}
    if not isinstance(findings, list) or not isinstance(artifacts, dict | list):
        raise TypeError("its findings or artifacts are no list")
    pairs = artifacts.items() if isinstance(artifacts, dict) else artifacts
    return Entry(
        id=entry_id,
        path=path,
        verb=data["verb"],
        task=_text(data["task"]),
        claim=_text(data["claim"]),
        text=_text(data.get("text")),
        findings=tuple(_text(item) for item in findings),
        reason=_text(data.get("reason")),
        tip=_text(data["tip"]) if data.get("tip") else None,
        no_change=data.get("no_change") is True,
        artifacts=tuple((_text(name), _text(value)) for name, value in pairs),
        seen=data.get("seen") is True,
        at=_text(data.get("at")),
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _written_at(path: str) -> int:
    return os.lstat(path).st_mtime_ns


def _put_aside(path: str) -> None:
    try:
        os.rename(path, f"{path}.bad")
    except OSError:
        pass


def results(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Returns the entries that would end the stage, newest first."""
    return tuple(entry for entry in reversed(entries) if entry.verb in RESULTS)


def notes(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Returns the entries that only remark something, oldest first."""
    return tuple(entry for entry in entries if entry.verb == "note")
