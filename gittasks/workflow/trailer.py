"""Adds the trailer of a task to the message of a commit in the making, and changes nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# The letters among which git chooses where the setting is "auto".
_LETTERS = b"#;@!$%^&|:"
_CUT = b" ------------------------ >8 ------------------------"
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
# A trailer, its continuation, or what `git cherry-pick -x` adds.
_TRAILER = re.compile(rb"[A-Za-z0-9-]+[ \t]*:|[ \t]+\S|\(cherry picked from commit ")


class Cleanup(NamedTuple):
    """What git will do to a message: the mark of a comment, and whether comments go."""

    mark: bytes = b"#"
    """What a comment begins with; empty where git chooses it by looking at the text."""
    has_comments: bool = True
    """False where nobody saw the message in an editor: then every line is text."""

    def is_comment(self, line: bytes) -> bool:
        """Tells whether git will take the line out."""
        if not self.has_comments:
            return False
        if self.mark:
            return line.startswith(self.mark)
        # No line of the text began with the letter that git chose, and its own have a blank next.
        return line[:1] in _LETTERS and line[1:2] in b" \r\n"

    def is_cut(self, line: bytes) -> bool:
        """Tells whether git will take this line out, and all that follows."""
        begin = line.rstrip(b"\r\n").removesuffix(_CUT)
        if begin == line.rstrip(b"\r\n"):
            return False
        return begin == self.mark if self.mark else len(begin) == 1 and begin in _LETTERS


def with_trailer(text: bytes, task: str, cleanup: Cleanup = Cleanup()) -> bytes:  # noqa: B008  # immutable
    """Returns the message with `Task: 000042` at its end, once; an empty one stays empty."""
    lines = _LINE.findall(text)
    end = _end(lines, cleanup)
    said = [line for line in lines[:end] if not cleanup.is_comment(line)]
    if not said:
        return text
    block = _trailers(said)
    if any(line.lower().startswith(b"task:") for line in block):
        return text
    last = lines[end - 1]
    line_end = b"\r\n" if last.endswith(b"\r\n") else b"\n"
    gap = (b"" if last.endswith(b"\n") else line_end) + (b"" if block else line_end)
    trailer = b"Task: " + task.encode("ascii") + line_end
    return b"".join((*lines[:end], gap, trailer, *lines[end:]))


def is_same(text: bytes, template: bytes, cleanup: Cleanup) -> bool:
    """Tells whether a message says no more than the template that it began with."""
    return _words(text, cleanup) == _words(template, cleanup)


def _words(text: bytes, cleanup: Cleanup) -> list[bytes]:
    lines = _LINE.findall(text)
    kept = (line.strip() for line in lines[: _end(lines, cleanup)] if not cleanup.is_comment(line))
    return [line for line in kept if line]


def _end(lines: Sequence[bytes], cleanup: Cleanup) -> int:
    """Returns how many lines there are up to the last one that is text."""
    # What follows the cut is the patch that `git commit -v` shows.
    cuts = (at for at, line in enumerate(lines) if cleanup.is_cut(line))
    end = next(cuts, len(lines))
    while end and (not lines[end - 1].strip() or cleanup.is_comment(lines[end - 1])):
        end -= 1
    return end


def _trailers(lines: Sequence[bytes]) -> Sequence[bytes]:
    """Returns the last paragraph if it is one of trailers; the first one is the title."""
    start = len(lines)
    while start and lines[start - 1].strip():
        start -= 1
    block = lines[start:]
    if not any(line.strip() for line in lines[:start]) or block[0][:1] in b" \t":
        return ()
    return block if all(map(_TRAILER.match, block)) else ()
