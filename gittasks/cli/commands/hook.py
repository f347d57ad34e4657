"""`git tasks hook`: what the scripts in `hooks/` call; people have no use for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.cli import frame
from gittasks.domain.errors import GittasksError, UsageFault

if TYPE_CHECKING:
    from collections.abc import Sequence


@frame.command("hook")
@frame.argument("name", metavar="NAME")
@frame.argument("words", nargs=-1, metavar="[ARGUMENTS]...")
def command(session: frame.Session, name: str, words: tuple[str, ...]) -> int:
    """Answer a git hook: 0 lets git go on, anything else stops it."""
    try:
        _answer(session, name, words)
    except UsageFault:
        raise
    except GittasksError as error:
        # What is said here travels to whoever pushes: the sentence alone, each on one line.
        for start, text in (("error", error.message), ("hint", error.hint)):
            if text:
                session.out.warn(f"{start}: {' '.join(text.split())}")
        return 1
    return 0


def _answer(session: frame.Session, name: str, words: Sequence[str]) -> None:
    from gittasks.workflow import receive

    match name, *words:
        case ["update", ref, old, new]:
            receive.update(session.project, ref, old, new)
        case ["pre-push", ref, old, new]:
            receive.push(session.project, ref, old, new)
        case ["commit-msg", path, *_]:
            receive.complete_message(session.project, path)
        case _:
            raise UsageFault(
                f"There is no hook {name!r} with {len(words)} arguments.",
                "See the scripts in `hooks/` for how they call it.",
            )
