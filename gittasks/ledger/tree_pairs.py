"""What differs between the trees of commits that follow each other, without taking both apart.

A folder that thousands of commits have each added one file to would be read thousands of times
from its first row to its last. Here the rows at both ends that two trees have in common are
compared as bytes, and only those between are taken apart.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from gittasks.plumbing.objects import parse_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.plumbing.objects import Entry, Reader

__all__ = ["BadTree", "TreePairs"]

_STEP = 64
_MOST = 16_000_000
"""How many bytes of trees are kept."""


class BadTree(Exception):
    """A tree with two entries of one name, which everybody reads in another way."""


class _Raw(NamedTuple):
    """A tree as bytes, and where some of its rows begin, in order."""

    data: bytes
    marks: list[int]


class TreePairs:
    """Reads the trees of commits that follow each other, as a rule each once."""

    def __init__(self, reader: Reader, oid_bytes: int) -> None:
        """Starts without any tree; `oid_bytes` is how long an id is in a tree."""
        self._reader = reader
        self._oid_bytes = oid_bytes
        self._kept: dict[str, _Raw] = {}
        self._size = 0

    def tree(self, oid: str) -> tuple[Entry, ...]:
        """Returns the rows of a tree; raises BadTree for one that names something twice."""
        return parse_tree(self._whole(oid).data, self._oid_bytes)

    def apart(
        self, before: str | None, after: str | None
    ) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Returns the rows of two trees without most of those that both have."""
        if before is None or after is None:
            return (
                () if before is None else self.tree(before),
                () if after is None else self.tree(after),
            )
        old = self._whole(before)
        known = self._known(after)
        new = self._reader.raw_tree(after) if known is None else known.data
        start, old_end, new_end = self._middle(old, new)
        rows = parse_tree(new[start:new_end], self._oid_bytes)
        if known is None:
            self._require_once(new, rows)
            shift = len(new) - len(old.data)
            rest = old.marks[bisect_right(old.marks, max(start, old_end - 1)) :]
            marks = old.marks[: bisect_right(old.marks, start)]
            marks += [mark + shift for mark in rest]
            self._keep(after, _Raw(new, marks))
        return parse_tree(old.data[start:old_end], self._oid_bytes), rows

    def _known(self, oid: str) -> _Raw | None:
        found = self._kept.pop(oid, None)
        if found is not None:
            # What was asked for last goes last.
            self._kept[oid] = found
        return found

    def _keep(self, oid: str, raw: _Raw) -> None:
        self._kept[oid] = raw
        self._size += len(raw.data)
        while self._size > _MOST and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            self._size -= len(self._kept.pop(oldest).data)

    def _whole(self, oid: str) -> _Raw:
        found = self._known(oid)
        if found is None:
            data = self._reader.raw_tree(oid)
            _require_distinct(parse_tree(data, self._oid_bytes))
            found = _Raw(data, self._marks(data))
            self._keep(oid, found)
        return found

    def _marks(self, data: bytes) -> list[int]:
        marks = []
        at = row = 0
        while at < len(data):
            if row % _STEP == 0:
                marks.append(at)
            at = self._next(data, at)
            row += 1
        return marks or [0]

    def _next(self, data: bytes, at: int) -> int:
        """Returns where the row after the one that begins here begins."""
        return data.index(b"\0", at) + 1 + self._oid_bytes

    def _middle(self, old: _Raw, new: bytes) -> tuple[int, int, int]:
        """Returns from where to where two trees are not the same, at whole rows."""
        data = old.data
        same = _same_from_start(data, new)
        near = bisect_right(old.marks, same)
        at = old.marks[near - 1]
        rows = 0
        while at < len(data) and (after := self._next(data, at)) <= same:
            at = after
            rows += 1
        if rows > _STEP:
            old.marks.insert(near, at)
        alike = _same_to_end(data[at:], new[at:])
        ends = [at, at]
        while (left := len(data) - ends[0]) != (right := len(new) - ends[1]) or left > alike:
            # The one that has more left goes on, so that both come to where they are the same.
            which = 0 if left >= right else 1
            ends[which] = self._next((data, new)[which], ends[which])
        return at, ends[0], ends[1]

    def _require_once(self, data: bytes, rows: Sequence[Entry]) -> None:
        """Raises BadTree where one of some rows has a name that is in the tree twice."""
        for row in rows:
            if data.count(b" " + os.fsencode(row.name) + b"\0") > 1:
                # It may be just an id that looks like it.
                _require_distinct(parse_tree(data, self._oid_bytes))
                return


def _require_distinct(rows: Sequence[Entry]) -> None:
    seen: set[str] = set()
    for row in rows:
        if row.name in seen:
            raise BadTree(row.name)
        seen.add(row.name)


def _same_from_start(one: bytes, other: bytes) -> int:
    """Returns how many bytes at the beginning are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same_to_end(one: bytes, other: bytes) -> int:
    """Returns how many bytes at the end are the same."""
    low, high = 0, min(len(one), len(other))
    size, size_of_other = len(one), len(other)
    while low < high:
        middle = (low + high + 1) // 2
        if one[size - middle : size - low] == other[size_of_other - middle : size_of_other - low]:
            low = middle
        else:
            high = middle - 1
    return low
