"""The entry point of `git tasks`: reads plain command lines itself, leaves the others to click."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from gittasks.cli import catalogue, errors, frame

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(words: Sequence[str], session: frame.Session) -> int | None:
    """Runs one command line; what is not plain is left to click."""
    if list(words) in (["-h"], ["--help"]):
        session.out.block(catalogue.overview())
        return 0
    said = frame.Session()
    call = plain_call(words, said)
    if call is None:
        from gittasks.cli import clicked

        return clicked.run(words, session)
    session.take(said)
    command, values = call
    return command.call(session, values)


def plain_call(
    words: Sequence[str], session: frame.Session
) -> tuple[frame.Command, dict[str, Any]] | None:
    """Returns the command meant and its parameters; None where click has to look at the words."""
    at = frame.read_globals(words, session)
    if at is None:
        return None
    word = words[at] if at < len(words) else "status"
    rest = words[at + 1 :]
    if catalogue.is_task_word(word):
        word, rest = "show", words[at:]
    name = catalogue.ALIASES.get(word, word)
    if name not in catalogue.COMMANDS:
        return None
    command = catalogue.load(name)
    if isinstance(command, frame.Group):
        skipped = frame.read_globals(rest, session)
        verb = (
            None if skipped is None or skipped >= len(rest) else command.commands.get(rest[skipped])
        )
        if skipped is None or verb is None:
            return None
        command, rest = verb, rest[skipped + 1 :]
    values = command.read(rest, session)
    return None if values is None else (command, values)


def main() -> NoReturn:
    """Runs the command line of this process and ends it as Python ends."""
    sys.exit(_done())


def process() -> NoReturn:
    """Runs the command line of this process and ends it at once; the installed command."""
    status = _done()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        sys.exit(status)
    # Nothing waits for the end of the interpreter, and taking it apart costs half its start.
    os._exit(status)


def _done() -> int:
    words = sys.argv[1:]
    session = frame.Session()
    # A process that lives for milliseconds needs no collector of rings.
    was_on = gc.isenabled()
    gc.disable()
    try:
        status = errors.guarded(lambda: _run_and_close(words, session), session, words)
        if session.has_project and session.project.has_news:
            _publish(session, words)
        return status
    finally:
        if was_on:
            gc.enable()


def _publish(session: frame.Session, words: Sequence[str]) -> None:
    """Gives others what this run has written; its success was told, so nothing here is an error."""
    if session.project.remote is None:
        return
    from gittasks.workflow.sync import publish_quietly

    try:
        _flush()
        try:
            said = publish_quietly(session.project)
        except Exception as error:  # noqa: BLE001 - what was written stays written
            why = errors.words_of(error, session, words)
            said = f"Not published yet: {why} `git tasks sync` does it later."
        if said is not None:
            session.out.say(said)
    except KeyboardInterrupt:
        pass
    finally:
        session.close()


def _flush() -> None:
    """Lets whoever reads see the answer, if somebody still does."""
    try:
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):
        pass


def _run_and_close(words: Sequence[str], session: frame.Session) -> int | None:
    try:
        return run(words, session)
    except Exception:
        if session.has_project:
            # What has happened already is news, whatever became of the rest.
            for news in dict.fromkeys(session.project.unsaid):
                session.out.say(news)
        raise
    finally:
        if session.has_project:
            for warning in dict.fromkeys(session.project.warnings):
                session.out.say(warning)
        session.close()
