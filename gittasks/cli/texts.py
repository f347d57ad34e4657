"""Texts a person hands over: with -m, from a file with -F, or in the editor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.domain.errors import UsageFault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.cli.frame import Session


def given(session: Session, messages: Sequence[str], file: str | None) -> bytes | None:
    """Returns the text of -m (each one a paragraph) or of -F, None where neither was given."""
    if messages and file is not None:
        raise UsageFault("The text is given twice, with -m and with -F.", "Give one of them.")
    if file is not None:
        return session.read_text(file)
    if not messages:
        return None
    paragraphs = "\n\n".join(message.rstrip("\n") for message in messages)
    return (paragraphs + "\n" if paragraphs else "").encode("utf-8", "surrogateescape")


def words(session: Session, messages: Sequence[str], file: str | None = None) -> str | None:
    """Returns the text of -m or -F as characters; bytes that are no UTF-8 are refused."""
    data = given(session, messages, file)
    if data is None:
        return None
    try:
        return data.decode().strip("\n")
    except UnicodeDecodeError:
        raise UsageFault(
            "The text is not UTF-8.", "Convert it, for example with iconv -t utf-8."
        ) from None


def require_editor(instead: str) -> None:
    """Refuses to open an editor where no person could answer.

    GIT_EDITOR says that there is an editor also where there is no terminal.
    """
    if not os.environ.get("GIT_EDITOR") and not (os.isatty(0) and os.isatty(1)):
        raise UsageFault("There is no terminal to open an editor in.", instead)
