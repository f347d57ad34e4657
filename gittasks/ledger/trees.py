"""What differs between two trees of the ledger, read folder by folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gittasks.plumbing.objects import TREE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gittasks.plumbing.objects import Entry


class Pairs(Protocol):
    """Whatever gives the rows of two trees, without some of those that both have or with all."""

    def apart(
        self, before: str | None, after: str | None
    ) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Returns the rows of two trees, none for None."""
        ...


__all__ = ["DEEPEST", "changed_paths"]

DEEPEST = 3
"""How many folders the deepest path of the layout may have around it; a folder there is one thing."""


def changed_paths(
    reader: Pairs, before: str | None, after: str | None, prefix: str = ""
) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Yields each path that differs between two trees: mode and id now, None if it is gone."""
    if before == after:
        return
    there, here = reader.apart(before, after)
    old = {row.name: row for row in there}
    new = {row.name: row for row in here}
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        path = prefix + name
        # Deeper than any path of the layout, a folder counts as one thing.
        nested = path.count("/") < DEEPEST
        was_tree = was.oid if was is not None and was.mode == TREE and nested else None
        now_tree = now.oid if now is not None and now.mode == TREE and nested else None
        if was is not None and was_tree is None and (now is None or now_tree is not None):
            yield path, None
        if was_tree is not None or now_tree is not None:
            yield from changed_paths(reader, was_tree, now_tree, path + "/")
        if now is not None and now_tree is None:
            yield path, (now.mode, now.oid)
