"""What a finished turn of an agent means: facts in, one intent out.

| facts, first match wins | intent |
|---|---|
| the same call ten times in a row | nudge `looping`, also where a result lies there |
| a valid submit or feedback | record it |
| a hold | nudge `blocked` once, then record it |
| the last entry was refused | nudge the issue that refused it |
| the agent's process is gone | release the task as died |
| the provider's limit is reached | wait until it ends |
| the provider or the program failed | say the same again after a while; a script's fourth time holds |
| the turn was broken off | nudge `aborted`, naming the command |
| nothing was handed in | nudge `missing-result` |

Every issue has a number of attempts per dispatch; the attempt after the last holds the task,
naming the issue. Errors of a provider and its limits are never an issue and never run out; a
script that fails time and again is broken, and whoever wrote it has to know. Eight attempts for a
missing result, since four have thrown finished work away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Issue = Literal[
    "missing-result",
    "missing-design",
    "missing-todos",
    "missing-notes",
    "modified-assignment",
    "assignment-changed",
    "uncommitted",
    "rewritten",
    "modified-worktree",
    "looping",
    "aborted",
    "blocked",
]
"""What can be wrong with a turn; for each there is a prompt of the same name."""

TurnOutcome = Literal["done", "error", "aborted", "length", "refused", "limit", "died"]
"""How the program ended a turn; `died` where it did not end it."""

Result = Literal["submit", "feedback", "hold"]
"""What an agent can hand in to end its stage."""

LOOP = 10
"""How many equal calls in a row are a loop."""

DEATHS = 5
"""How many agents in a row may die on one task before it is held."""


ERRORS = 4
"""How often in a row a program that asks no provider may fail before its task is held."""


class Rule(NamedTuple):
    """How often an issue is answered in one dispatch, and what is said when that was in vain."""

    attempts: int
    held: str


ISSUES: dict[Issue, Rule] = {
    "missing-result": Rule(8, "stopped without submit, feedback or hold"),
    "missing-design": Rule(4, "submitted without a design"),
    "missing-todos": Rule(4, "submitted without todos"),
    "missing-notes": Rule(4, "submitted without notes"),
    "modified-assignment": Rule(4, "changed parts of the assignment that are not its own"),
    "assignment-changed": Rule(4, "submitted what no longer answers the changed assignment"),
    "uncommitted": Rule(4, "submitted work that is not committed"),
    "rewritten": Rule(4, "rewrote the history of the branch"),
    "modified-worktree": Rule(4, "wrote to the tree in a stage that writes nothing there"),
    "looping": Rule(3, "kept repeating one call"),
    "aborted": Rule(3, "ran a command that had to be stopped"),
    "blocked": Rule(1, "cannot go on"),
}
"""Every issue; what guards refuse has the name that the refusal carries."""


class Refusal(NamedTuple):
    """Why an entry of the outbox cannot be recorded: the issue, and the sentence."""

    issue: Issue
    detail: str


class Turn(NamedTuple):
    """What is known about a turn when it is over."""

    outcome: TurnOutcome
    error: str = ""
    is_retryable: bool = True
    until: float | None = None
    """When the provider's limit ends, in seconds since 1970, where that is known."""
    looping: str | None = None
    """The call that was repeated LOOP times in a row."""
    stopped: str | None = None
    """The command that ran when the turn was broken off."""
    result: Result | None = None
    """The last valid entry of the outbox."""
    reason: str = ""
    """The agent's own words where it wants the task held."""
    refusal: Refusal | None = None
    """Why the last entry is not valid."""
    attempts: Mapping[str, int] = {}
    """How often each issue was answered in this dispatch."""
    deaths: int = 0
    """How many agents before this one died on the task, one after the other."""
    errors: int = 0
    """How many turns before this one failed, one after the other."""
    is_script: bool = False
    """Tells whether the program is a command of the user's own, which asks no provider."""


class Record(NamedTuple):
    """Commit what the agent has handed in."""


class Nudge(NamedTuple):
    """Prompt the same session once more, with the words for an issue."""

    issue: Issue
    detail: str = ""


class Hold(NamedTuple):
    """Hold the task for the manager."""

    reason: str


class Again(NamedTuple):
    """Say the same once more after a back-off: nothing was wrong with what the agent did."""

    error: str


class Wait(NamedTuple):
    """Let the provider rest until its limit ends; None where nobody knows when that is."""

    until: float | None
    error: str


class Release(NamedTuple):
    """Give the task back: its agent is dead."""

    error: str


Intent = Record | Nudge | Hold | Again | Wait | Release


def intent_of(turn: Turn) -> Intent:
    """Returns what a finished turn asks for."""
    if turn.looping is not None:
        return _issue(turn, "looping", turn.looping)
    if turn.result == "hold":
        return Record() if _is_spent(turn, "blocked") else Nudge("blocked", turn.reason)
    if turn.result is not None:
        return Record()
    if turn.refusal is not None and turn.outcome != "died":
        return _issue(turn, turn.refusal.issue, turn.refusal.detail)
    return _without_result(turn)


def _without_result(turn: Turn) -> Intent:
    match turn.outcome:
        case "died":
            return _after_death(turn)
        case "limit":
            return Wait(turn.until, turn.error)
        case "error":
            if turn.is_retryable and not (turn.is_script and turn.errors + 1 >= ERRORS):
                return Again(turn.error)
            often = f" ({turn.errors + 1} times)" if turn.errors else ""
            return Hold(f"The agent cannot be run{often}: {turn.error or 'it failed'}")
        case "aborted":
            return _issue(turn, "aborted", turn.stopped or "")
        case _:
            return _issue(turn, "missing-result", turn.error)


def _after_death(turn: Turn) -> Intent:
    if turn.deaths + 1 < DEATHS:
        return Release(turn.error)
    died = f"{DEATHS} agents in a row died"
    return Hold(f"{died}; the last one said: {turn.error}" if turn.error else f"{died}.")


def _issue(turn: Turn, issue: Issue, detail: str) -> Intent:
    if not _is_spent(turn, issue):
        return Nudge(issue, detail)
    rule = ISSUES[issue]
    reason = f"{issue}: the agent {rule.held}, {rule.attempts + 1} times"
    return Hold(f"{reason}: {detail}" if detail else f"{reason}.")


def _is_spent(turn: Turn, issue: Issue) -> bool:
    return turn.attempts.get(issue, 0) >= ISSUES[issue].attempts
