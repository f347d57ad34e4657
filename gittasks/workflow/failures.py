"""Says in the product's own words what git, a lock or the system refused."""

from __future__ import annotations

import os
import re
import sys

from gittasks.domain.errors import Busy, Corrupt, GittasksError, NoLedger, UsageFault
from gittasks.plumbing.errors import (
    BadSetting,
    GitError,
    GitTimeout,
    LockTimeout,
    NotARepository,
    ObjectMissing,
    RefMoved,
)

_DAMAGED = re.compile(r"is corrupt|missing (object|blob|tree)|unable to read (sha1|tree)")


def told(error: BaseException) -> GittasksError | None:
    """Returns the refusal that an error of the layers below means, None when it is our bug."""
    match error:
        case GittasksError():
            return error
        case NotARepository():
            return NoLedger(
                _sentence(error), "Go to a git repository, or make one with `git init`."
            )
        case BadSetting():
            return UsageFault(_sentence(error), "Correct it with `git config`.")
        case GitTimeout():
            return Busy(_sentence(error), "Try again, or raise `git config gittasks.gitTimeout`.")
        case LockTimeout():
            return Busy(_sentence(error), "Try again when the holder has finished.")
        case RefMoved():
            return Busy(_sentence(error), "Try again: somebody else was faster.")
        case GitError() if isinstance(error, ObjectMissing) or _DAMAGED.search(error.stderr):
            return Corrupt(
                f"The repository is damaged: {_sentence(error)}",
                "Run `git tasks recover`; what it cannot restore may be in another clone.",
            )
        case GitError():
            return GittasksError(
                f"git failed: {_sentence(error)}", "Set GITTASKS_TRACE=1 to see each git call."
            )
        case _:
            return None


def _sentence(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text if text.endswith((".", "!", "?")) else text + "."


def report(state_dir: str, error: BaseException, command: str) -> str | None:
    """Writes down a defect for whoever mends it; returns where, None where nothing can be written."""
    import tempfile
    import traceback

    from gittasks import __version__

    head = f"git tasks {__version__}, Python {sys.version.split()[0]}, {sys.platform}\n"
    text = f"{head}command: git tasks {command}\n\n{''.join(traceback.format_exception(error))}"
    folder = os.path.join(state_dir, "reports")
    try:
        os.makedirs(folder, exist_ok=True)
        handle, path = tempfile.mkstemp(".txt", "gittasks-", folder)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return None
    return path
