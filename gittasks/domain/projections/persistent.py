"""A map that never changes: with one entry set it is another map, which shares nearly all of it.

Keys are mostly ids: six digits, or the hex digits of a uid. Two and two characters of a key lead to
a small dictionary, so what is copied for one change stays small among a hundred thousand tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

Value = TypeVar("Value")

_ONE = 2
_TWO = 4


class Persistent(Generic[Value]):
    """An immutable map by id; `get` costs three lookups, `with_` copies three small dictionaries."""

    __slots__ = ("_root", "_size")

    def __init__(
        self, root: dict[str, dict[str, dict[str, Any]]] | None = None, size: int = 0
    ) -> None:
        """Starts empty; whoever loads one gives what `__reduce__` had."""
        self._root: dict[str, dict[str, dict[str, Any]]] = {} if root is None else root
        self._size = size

    def __reduce__(
        self,
    ) -> tuple[type[Persistent[Value]], tuple[dict[str, dict[str, dict[str, Any]]], int]]:
        """Returns how a stored one is made again."""
        return Persistent, (self._root, self._size)

    def __len__(self) -> int:
        """Returns the number of entries."""
        return self._size

    def __contains__(self, key: object) -> bool:
        """Tells whether there is an entry."""
        return isinstance(key, str) and self.get(key) is not None

    def __eq__(self, other: object) -> bool:
        """Compares the entries."""
        if self is other:
            return True
        return isinstance(other, Persistent) and self._root == other._root

    __hash__ = None  # type: ignore[assignment]  # two maps compare by value and are not keys

    def get(self, key: str) -> Value | None:
        """Returns the value of a key, None where there is none."""
        branches = self._root.get(key[:_ONE])
        if branches is None:
            return None
        leaves = branches.get(key[_ONE:_TWO])
        return None if leaves is None else leaves.get(key)

    def with_(self, key: str, value: Value) -> Persistent[Value]:
        """Returns the map with one entry set."""
        one, two = key[:_ONE], key[_ONE:_TWO]
        branches = self._root.get(one, {})
        leaves = branches.get(two, {})
        size = self._size + (key not in leaves)
        changed = {**branches, two: {**leaves, key: value}}
        return Persistent({**self._root, one: changed}, size)

    def without(self, key: str) -> Persistent[Value]:
        """Returns the map without one entry; itself where there is none."""
        one, two = key[:_ONE], key[_ONE:_TWO]
        branches = self._root.get(one, {})
        leaves = branches.get(two, {})
        if key not in leaves:
            return self
        fewer = {name: value for name, value in leaves.items() if name != key}
        changed = {**branches, two: fewer}
        if not fewer:
            del changed[two]
        root = {**self._root, one: changed}
        if not changed:
            del root[one]
        return Persistent(root, self._size - 1)

    def __iter__(self) -> Iterator[str]:
        """Yields the keys in order."""
        return (key for key, _ in self.items())

    def items(self) -> Iterator[tuple[str, Value]]:
        """Yields the entries in the order of their keys."""
        for one in sorted(self._root):
            branches = self._root[one]
            for two in sorted(branches):
                leaves = branches[two]
                for key in sorted(leaves):
                    yield key, leaves[key]

    def values(self) -> Iterator[Value]:
        """Yields the values in the order of their keys."""
        return (value for _, value in self.items())

    def changed_since(self, other: Persistent[Value]) -> Iterator[str]:
        """Yields the keys whose values differ, in order; what is shared is not looked at."""
        for one in sorted({*self._root, *other._root}):
            mine, theirs = self._root.get(one, {}), other._root.get(one, {})
            if mine is theirs:
                continue
            for two in sorted({*mine, *theirs}):
                here, there = mine.get(two, {}), theirs.get(two, {})
                if here is there:
                    continue
                for key in sorted({*here, *there}):
                    if here.get(key) != there.get(key):
                        yield key
