"""Merges two changed versions of one text, line by line; git never merges a text of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_EDITS_LIMIT = 500
_LINES_LIMIT = 10_000
"""The most lines added and taken away, and compared at all: the time grows with their product."""

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
    edits = _woven(mine, other)
    return None if edits is None else _applied(base, edits)


def _edits(old: Sequence[bytes], new: Sequence[bytes]) -> list[_Edit]:
    """Returns the changes from one text to another, in order, as one where there are too many."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    most = min(len(old), len(new)) - head
    while tail < most and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    edits: list[_Edit] = []
    at, start = 0, 0
    for low, high in [*_common(left, right), (len(left), len(right))]:
        if (at, start) != (low, high):
            edits.append((head + at, head + low, list(right[start:high])))
        at, start = low + 1, high + 1
    return edits


def _common(left: Sequence[bytes], right: Sequence[bytes]) -> list[tuple[int, int]]:
    """Returns the places of a longest run of lines that both have, none where it is too far.

    For each number of edits this goes as far as possible on every diagonal, a difference of
    places in both; the first way that arrives at the end is a shortest one.
    """
    if max(len(left), len(right)) > _LINES_LIMIT:
        return []
    reached = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(len(left) + len(right), _EDITS_LIMIT) + 1):
        trail.append(reached)
        reached = {}
        for diagonal in range(-edits, edits + 1, 2):
            x = _start(trail[-1], edits, diagonal)
            while x < len(left) and x - diagonal < len(right) and left[x] == right[x - diagonal]:
                x += 1
            reached[diagonal] = x
            if x >= len(left) and x - diagonal >= len(right):
                return _walked(trail, len(left), len(right))
    return []


def _start(before: dict[int, int], edits: int, diagonal: int) -> int:
    """Returns where a way begins on a diagonal, one edit after the ways `before`."""
    is_added = diagonal == -edits or (
        diagonal != edits and before[diagonal - 1] < before[diagonal + 1]
    )
    return before[diagonal + 1] if is_added else before[diagonal - 1] + 1


def _walked(trail: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """Returns the lines that both have on the way that ends at (x, y), in order."""
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trail) - 1, -1, -1):
        diagonal = x - y
        start = _start(trail[edits], edits, diagonal)
        while x > start:
            x -= 1
            pairs.append((x, x - diagonal))
        is_added = x == trail[edits].get(diagonal + 1)
        x, y = (x, x - diagonal - 1) if is_added else (x - 1, x - diagonal)
    return pairs[::-1]


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
