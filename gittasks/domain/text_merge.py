"""Merges two changed versions of one text, line by line; git never merges a text of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINES_LIMIT = 4000
"""The most lines of a changed part that are compared: the time grows with their square."""

# A part of the old text, [from, to), and the lines that stand there now.
_Edit = tuple[int, int, list[bytes]]


def merged(old: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Returns the text with both changes, None where both have changed the same place.

    Changes that touch each other count as the same place unless they are equal.
    """
    if ours in (old, theirs):
        return theirs
    if theirs == old:
        return ours
    base = old.splitlines(keepends=True)
    mine = _edits(base, ours.splitlines(keepends=True))
    other = _edits(base, theirs.splitlines(keepends=True))
    if mine is None or other is None:
        return None
    edits = _woven(mine, other)
    return None if edits is None else _applied(base, edits)


def _edits(old: list[bytes], new: list[bytes]) -> list[_Edit] | None:
    """Returns the changes from one text to another, in order; None where there are too many."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    most = min(len(old), len(new)) - head
    while tail < most and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if min(len(left), len(right)) > _LINES_LIMIT:
        return None
    if not left or not right:
        return [(head, head + len(left), right)]
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return [
        (head + low, head + high, right[start:end])
        for tag, low, high, start, end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _woven(mine: Sequence[_Edit], other: Sequence[_Edit]) -> list[_Edit] | None:
    """Returns both lists of changes as one, None where two of them meet."""
    found: list[_Edit] = []
    for edit in sorted([*mine, *other], key=lambda one: (one[0], one[1])):
        if found and found[-1] == edit:
            continue
        if found and edit[0] <= found[-1][1]:
            return None
        found.append(edit)
    return found


def _applied(base: Sequence[bytes], edits: Sequence[_Edit]) -> bytes:
    lines: list[bytes] = []
    at = 0
    for low, high, new in edits:
        lines += base[at:low]
        lines += new
        at = high
    lines += base[at:]
    return b"".join(lines)
