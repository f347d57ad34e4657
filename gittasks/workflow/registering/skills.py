"""The skills that come with the tool, each in a file with a mark that tells whether it was changed."""

from __future__ import annotations

import os
import re

from gittasks.domain.errors import GittasksError

NAMES = ("gittasks-inbox", "gittasks-watch", "gittasks-worker")

_MARK = re.compile(rb"\n<!-- git tasks setup: ([0-9a-f]{16}) -->\n\Z")


def text_of(name: str) -> bytes:
    """Returns a skill as it is written into a project."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        with open(os.path.join(package, "skills", f"{name}.md"), "rb") as file:
            text = file.read()
    except FileNotFoundError:
        raise GittasksError(
            f"The skill {name} is missing in this installation.", "Install it again."
        ) from None
    return text + b"\n<!-- git tasks setup: %s -->\n" % _digest(text)


def is_ours(text: bytes) -> bool:
    """Tells whether a skill was written by some version of the tool, and not changed since."""
    mark = _MARK.search(text)
    return mark is not None and mark[1] == _digest(text[: mark.start()])


def _digest(text: bytes) -> bytes:
    from gittasks.plumbing.objects import digest

    return digest("sha256", text).hex()[:16].encode()
