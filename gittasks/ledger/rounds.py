"""What came back of one task, and its last check run: told from its history, and remembered.

Whatever sends a task back changes its document, so that for the same document nothing has to be
read again, and for another one only what is newer than the last look. Derived: a file for each
task that was looked at, which may go at any time.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gittasks.domain.task import Task
    from gittasks.ledger.view import View

__all__ = ["Checked", "Result", "Round", "Rounds", "rounds_of"]

VERSION = 1


class Round(NamedTuple):
    """One time that work came back: which round of which review, the findings, who, when."""

    round: int
    review: str
    findings: tuple[str, ...]
    actor: str
    at: int


class Result(NamedTuple):
    """How one command of a check run ended."""

    command: str
    exit: int
    seconds: int
    timed_out: bool


class Checked(NamedTuple):
    """One check run: pass or fail, of which commit, when, with which results."""

    outcome: str
    commit: str | None
    at: int
    results: tuple[Result, ...]


class Rounds(NamedTuple):
    """All rounds, oldest first, and the last check run."""

    rounds: tuple[Round, ...] = ()
    checked: Checked | None = None


class _Kept(NamedTuple):
    """What was found at the last look: at which tip, for which document."""

    tip: str
    blob: str
    found: Rounds


def rounds_of(ledger: View, task: Task) -> Rounds:
    """Returns what came back of a task."""
    # Nobody has ever started on it, so nothing can have come back.
    if task.branch is None and task.findings is None:
        return Rounds()
    blob = ledger.snapshot.blob(task.id) or ""
    path = os.path.join(ledger.state_dir, "rounds", f"{task.id}.json")
    kept = _read(path, task.uid)
    if kept is not None and kept.blob == blob:
        return kept.found
    found = _looked_up(ledger, task.id, kept)
    _write(path, task.uid, _Kept(ledger.tip, blob, found))
    return found


def _looked_up(ledger: View, task: str, kept: _Kept | None) -> Rounds:
    from gittasks.domain.events import CheckPassed, CheckRefuted, FeedbackGiven
    from gittasks.ledger import history, quarantine
    from gittasks.plumbing.merging import is_ancestor

    tip = ledger.tip
    wanted = ["--fixed-strings", f"--grep=Task: {task}", tip]
    known = Rounds()
    if kept is not None and _is_there(ledger, kept.tip) and is_ancestor(ledger.repo, kept.tip, tip):
        wanted.append(f"^{kept.tip}")
        known = kept.found
    rounds: list[Round] = []
    checked: Checked | None = None
    invalid = quarantine.invalid(ledger.state_dir)
    for recorded in history.commits(ledger.repo, wanted, invalid=invalid):
        event = recorded.event
        change = event.change
        # The words may also stand in a text.
        if event.task != task:
            continue
        if checked is None and isinstance(change, CheckPassed | CheckRefuted):
            results = tuple(
                Result(r.command, r.exit, r.seconds, r.timed_out) for r in change.results
            )
            checked = Checked(event.kind, event.commit, event.at, results)
        if isinstance(change, FeedbackGiven | CheckRefuted):
            number = change.round if isinstance(change, FeedbackGiven) else change.failures
            rounds.append(Round(number, event.source or "", change.findings, event.actor, event.at))
    return Rounds((*known.rounds, *reversed(rounds)), checked or known.checked)


def _is_there(ledger: View, commit: str) -> bool:
    return ledger.reader.get(commit) is not None


def _read(path: str, uid: str) -> _Kept | None:
    """Returns what is remembered of the task with this uid; None for anything unusable."""
    try:
        with open(path, encoding="utf-8") as file:
            version, known, tip, blob, rounds, checked = json.load(file)
        if version != VERSION or known != uid:
            return None
        return _Kept(tip, blob, Rounds(tuple(map(_round, rounds)), checked and _checked(checked)))
    except (OSError, ValueError, TypeError, LookupError):
        return None


def _round(fields: Iterable[Any]) -> Round:
    number, review, findings, actor, at = fields
    return Round(number, review, tuple(findings), actor, at)


def _checked(fields: Iterable[Any]) -> Checked:
    outcome, commit, at, results = fields
    return Checked(outcome, commit, at, tuple(Result(*result) for result in results))


def _write(path: str, uid: str, kept: _Kept) -> None:
    """Remembers it; where nothing can be written, the next look takes as long as this one."""
    beside = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(beside, "w", encoding="utf-8") as file:
            json.dump((VERSION, uid, kept.tip, kept.blob, *kept.found), file)
        os.replace(beside, path)
    except OSError:
        pass
