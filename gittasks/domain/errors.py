"""Every refusal: a sentence, a hint that starts with a verb, and an exit code."""

from __future__ import annotations


class GittasksError(Exception):
    """Base of all errors; carries the exit code and the JSON fields of `interface` errors."""

    exit_code = 1
    name = "FAIL"
    retryable = False

    def __init__(self, message: str, hint: str | None = None, task: str | None = None) -> None:
        """Keeps the sentence, the way out and the id of the task it is about."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.task = task


class UsageFault(GittasksError):
    """Wrong arguments or malformed input; exit 2."""

    exit_code = 2
    name = "USAGE"


class NoLedger(GittasksError):
    """No repository, or no ledger in it; exit 3."""

    exit_code = 3
    name = "NOREPO"


class UnknownTask(GittasksError):
    """An unknown or ambiguous id; exit 4."""

    exit_code = 4
    name = "NOTFOUND"


class Refused(GittasksError):
    """A transition that is not allowed here; exit 5."""

    exit_code = 5
    name = "STATE"


class NotAllowed(Refused):
    """The state has no such transition."""


class WrongRole(Refused):
    """The state belongs to another role."""


class Cycle(Refused):
    """A dependency would close a ring; `path` lists the ids edge by edge."""

    def __init__(self, path: tuple[str, ...], task: str | None = None) -> None:
        """Spells the ring out: each task needs the next one."""
        self.path = path
        steps = ", ".join(f"{a} needs {b}" for a, b in zip(path, path[1:], strict=False))
        super().__init__(
            f"This would make a ring of dependencies: {steps}.",
            "Remove one of these edges with `git tasks dep rm`.",
            task,
        )


class GuardBroken(Refused):
    """The worktree or the assignment is not as the stage requires; `issue` names how."""

    def __init__(
        self, issue: str, message: str, hint: str | None = None, task: str | None = None
    ) -> None:
        """Keeps the issue name (for example `uncommitted`) beside the sentence."""
        super().__init__(message, hint, task)
        self.issue = issue


class Taken(GittasksError):
    """Somebody else holds it or was first; exit 6."""

    exit_code = 6
    name = "TAKEN"


class AlreadyClaimed(Taken):
    """Another actor holds the claim."""


class NotClaimed(Taken):
    """Nobody holds the claim that the caller speaks for."""


class StaleClaim(Taken):
    """The claim presented is not the task's present claim."""


class CheckFailed(GittasksError):
    """A check or the merged result failed; exit 7."""

    exit_code = 7
    name = "CHECKFAIL"


class SyncRefused(GittasksError):
    """The remote refused, or histories disagree; exit 8."""

    exit_code = 8
    name = "SYNC"


class Corrupt(GittasksError):
    """A document or the ledger does not verify; exit 9."""

    exit_code = 9
    name = "CORRUPT"


class NothingFound(GittasksError):
    """A search for one task found none; exit 10."""

    exit_code = 10
    name = "EMPTY"


class Busy(GittasksError):
    """A lock or the network took too long; exit 75."""

    exit_code = 75
    name = "TEMP"
    retryable = True


class Unconfirmed(Busy):
    """The remote could not be asked whether it has got what was sent; it may have."""


class Interrupted(GittasksError):
    """The user interrupted; exit 130."""

    exit_code = 130
    name = "INT"


EXIT_CODES: dict[int, tuple[str, str]] = {
    0: ("OK", "done, or already so"),
    1: ("FAIL", "anything else, with a report file when it is our bug"),
    2: ("USAGE", "wrong arguments, or a prompt was needed without a terminal"),
    3: ("NOREPO", "no repository, not initialised, ledger not fetched"),
    4: ("NOTFOUND", "unknown or ambiguous id"),
    5: ("STATE", "transition not allowed, wrong role, guard broken"),
    6: ("TAKEN", "lost the race, held by another, stale claim"),
    7: ("CHECKFAIL", "a check or the merged result failed"),
    8: ("SYNC", "remote refused, histories disagree; local work is safe"),
    9: ("CORRUPT", "a document or the ledger does not verify"),
    10: ("EMPTY", "nothing was found to take"),
    75: ("TEMP", "lock or network time-out; try again"),
    130: ("INT", "interrupted"),
}


def in_a_sentence(text: str) -> str:
    """Returns a sentence as it goes on after a comma or a colon, without its full stop."""
    is_word = text[:1].isupper() and not text[1:2].isupper()
    return (text[:1].lower() + text[1:] if is_word else text).removesuffix(".")
