"""The one boundary: whatever goes wrong becomes a sentence, a hint and an exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gittasks.cli.output import AnswerLost
from gittasks.domain.errors import GittasksError, Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.cli.frame import Session
    from gittasks.cli.output import Output


def guarded(call: Callable[[], int | None], session: Session, words: Sequence[str]) -> int:
    """Makes the call and returns the exit status; no exception leaves this function."""
    try:
        status = call() or 0
        session.out.finish()
        return status
    except BrokenPipeError:
        return _reader_left(session)
    except BaseException as error:  # noqa: BLE001 - the last one who can tell the user
        return _failed(error, session, words)


def _reader_left(session: Session) -> int:
    """Ends quietly: whoever read the output has seen enough."""
    _silence()
    try:
        session.out.finish()
    except (OSError, AnswerLost):
        pass
    return 0


def _silence() -> None:
    """Sends what is still buffered nowhere, so that the interpreter does not complain about it."""
    silent = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(silent, sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass
    os.close(silent)


def _failed(error: BaseException, session: Session, args: Sequence[str]) -> int:
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code
    refusal = _refusal(error, session, args)
    is_lost = isinstance(error, AnswerLost)
    if is_lost:
        # Half a document may be held back, and nothing more can be said there.
        _silence()
    out = session.out
    wants_json = out.json or _asks_for_json(args)
    try:
        if wants_json and not is_lost:
            from gittasks.workflow.answers import as_error

            out.error_envelope(as_error(refusal), _ledger(session))
        out.finish()
    except (OSError, AnswerLost):
        _silence()
    _tell(out, refusal)
    return refusal.exit_code


def words_of(error: BaseException, session: Session, args: Sequence[str]) -> str:
    """Returns what a failure is, in a sentence; leaves a report of a defect."""
    return _refusal(error, session, args).message


def _tell(out: Output, refusal: GittasksError) -> None:
    out.warn(f"error: {refusal.message}")
    if refusal.hint:
        out.warn(f"hint: {refusal.hint}")


def _ledger(session: Session) -> str | None:
    try:
        return session.ledger
    except Exception:  # noqa: BLE001 - the first failure is the one to tell
        return None


def _asks_for_json(args: Sequence[str]) -> bool:
    """Tells whether JSON was asked for, also where the arguments cannot be parsed."""
    words = list(args)
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _refusal(error: BaseException, session: Session, args: Sequence[str]) -> GittasksError:
    if isinstance(error, GittasksError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("Interrupted.")
    clicked = sys.modules.get("gittasks.cli.clicked")
    usage = None if clicked is None else clicked.refusal(error)
    if isinstance(usage, GittasksError):
        return usage
    from gittasks.workflow.failures import told

    known = told(error)
    if known is not None:
        return known
    if isinstance(error, OSError) and error.errno is not None:
        return _system(error)
    return _bug(error, session, args)


def _system(error: OSError) -> GittasksError:
    """Names the cause that the system gave: a full disk, a missing permission."""
    where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
    cause = error.strerror or type(error).__name__
    return GittasksError(
        f"The system refused: {where}{cause}.",
        "Free space, or correct the permissions, and run the command again.",
    )


def _bug(error: BaseException, session: Session, args: Sequence[str]) -> GittasksError:
    told = f"{type(error).__name__}: {error}".strip()
    path = _write_report(error, session, args)
    where = f"the report is in {path}" if path else "a report could not be written"
    return GittasksError(
        f"This is a defect of git tasks ({told}); {where}.",
        "Send the report with the words of the command that failed.",
    )


def _write_report(error: BaseException, session: Session, args: Sequence[str]) -> str | None:
    import tempfile
    import traceback

    folders = [tempfile.gettempdir()]
    if session.has_project:
        folders.insert(0, os.path.join(session.project.state_dir, "reports"))
    text = _report(args, "".join(traceback.format_exception(error)))
    for folder in folders:
        try:
            os.makedirs(folder, exist_ok=True)
            handle, path = tempfile.mkstemp(".txt", "gittasks-", folder)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return path
    return None


def _report(args: Sequence[str], trace: str) -> str:
    from gittasks import __version__

    # The words of the user may hold what must not be passed on; their shape is enough.
    words = " ".join(word if word.startswith("-") else "…" for word in args[1:])
    return (
        f"git tasks {__version__}, Python {sys.version.split()[0]}, {sys.platform}, "
        f"click {_click_version()}\n"
        f"command: git tasks {args[0] if args else ''} {words}\n\n{trace}"
    )


def _click_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("click")
    except PackageNotFoundError:
        # A report is worth more than the number that is missing in it.
        return "unknown"
