"""Where the tree of the ledger is not what valid events make of it, and what counts there.

A commit that does not verify and that came from a remote stays in the history, but what it did to
a document counts for nothing: the last good text does. The paths concerned are kept in one file
beside the read cache. It is derived: a look at the whole ledger makes it again. An entry holds
wherever the tree has at its path what the bad commit left there; so an event that writes the path
anew ends it, and nobody has to remember that. What belongs to no task is put right by whichever
event is written next.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.ledger.layout import PROJECT_FILE, is_shared_text, parse_path
from gittasks.ledger.trees import DEEPEST
from gittasks.plumbing.objects import FILE, TREE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gittasks.plumbing.objects import Entry, Reader

    # The mode and the id that a tree has at a path, None where it has nothing.
    Row = tuple[str, str] | None

__all__ = [
    "MARK",
    "Kept",
    "Stray",
    "belongs",
    "in_one_line",
    "invalid",
    "laid_over",
    "lifted",
    "load",
    "read",
    "row_of",
    "save",
]

VERSION = 1
MARK = "invalid"
"""The kind of the inbox row that a quarantined task has in the read cache, and nowhere else."""

_NAME = "quarantine.json"
_NEWER = "Install a newer gittasks."
_SHOWN = 12


class Stray(NamedTuple):
    """A path at which the tree does not have what counts, since which commit, and why.

    `lifted` are commits of valid events after which what the tree has does count.
    """

    path: str
    task: str | None
    bad: Row
    good: str | None
    """The blob that counts, None where there is no such file."""
    commit: str
    reason: str
    lifted: tuple[str, ...] = ()

    @property
    def row(self) -> Row:
        """Returns what counts as a row of a tree."""
        return row_of(self.good)

    @property
    def is_newer(self) -> bool:
        """Tells whether it may be well for a newer tool, so that only a repair undoes it."""
        return self.reason.endswith(_NEWER)

    @property
    def words(self) -> str:
        """Returns the sentence for people."""
        short = self.commit[:_SHOWN]
        if self.good is None:
            return f"The commit {short} is not valid, so {self.path} does not count: {self.reason}"
        return (
            f"The commit {short} is not valid, so {self.path} keeps its last good text:"
            f" {self.reason}"
        )


def in_one_line(words: str) -> str:
    """Returns a message of several lines in one."""
    first, *more = (line.strip() for line in words.splitlines() or [""])
    return "; ".join((first.removesuffix(".") if more else first, *more))


def belongs(path: str) -> bool:
    """Tells whether a path is one that events write."""
    return parse_path(path) is not None or path == PROJECT_FILE or is_shared_text(path)


class Kept(NamedTuple):
    """What the file says: the strays, and every commit that is known to count for nothing."""

    strays: tuple[Stray, ...] = ()
    invalid: tuple[str, ...] = ()


def load(folder: str) -> tuple[Stray, ...]:
    """Returns the strays that are kept in a folder."""
    return read(folder).strays


def invalid(folder: str) -> frozenset[str]:
    """Returns the commits that are known to count for nothing."""
    return frozenset(read(folder).invalid)


def read(folder: str) -> Kept:
    """Returns what is kept in a folder, nothing where that cannot be used."""
    try:
        with open(os.path.join(folder, _NAME), encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError):
        return Kept()
    import json

    try:
        kept = json.loads(text)
        if kept["version"] != VERSION:
            return Kept()
        return Kept(tuple(map(_stray, kept["entries"])), tuple(kept["invalid"]))
    except (ValueError, TypeError, LookupError):
        return Kept()


def _stray(fields: Mapping[str, Any]) -> Stray:
    bad = fields["bad"]
    return Stray(
        fields["path"],
        fields["task"],
        None if bad is None else (bad["mode"], bad["oid"]),
        fields["good"],
        fields["commit"],
        fields["reason"],
        tuple(fields["lifted"]),
    )


def save(folder: str, kept: Kept) -> None:
    """Replaces what is kept; where nothing is there is no file."""
    path = os.path.join(folder, _NAME)
    if kept == Kept():
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        return
    import json

    entries = [
        {
            **stray._asdict(),
            "bad": None if stray.bad is None else {"mode": stray.bad[0], "oid": stray.bad[1]},
        }
        for stray in kept.strays
    ]
    os.makedirs(folder, exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w", encoding="utf-8") as file:
        told = {"version": VERSION, "entries": entries, "invalid": list(kept.invalid)}
        json.dump(told, file, indent=1)
    os.replace(beside, path)


def laid_over(
    reader: Reader,
    strays: Iterable[Stray],
    tip: str,
    tree: str,
    changes: Mapping[str, Row],
    before: Iterable[str] = (),
) -> tuple[dict[str, Row], dict[str, Stray]]:
    """Returns the changes up to a commit as they count, and the strays that hold there.

    `before` are paths that strays held at where the changes begin.
    """
    result = dict(changes)
    holding: dict[str, Stray] = {}
    by_path: dict[str, list[Stray]] = {path: [] for path in before}
    for stray in strays:
        by_path.setdefault(stray.path, []).append(stray)
    trees = _Trees(reader)
    for path, known in by_path.items():
        now = result[path] if path in result else trees.row_at(tree, path)
        result[path] = now
        for stray in reversed(known):
            if stray.bad == now and not _is_lifted(reader, stray, tip):
                holding[path] = stray
                result[path] = stray.row
                break
    return result, holding


class _Trees:
    """Reads each tree once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[str, dict[str, Entry]] = {}

    def row_at(self, tree: str, path: str) -> Row:
        """Returns the file that a tree has at a path."""
        *folders, name = path.split("/")
        for folder in folders:
            found = self._rows(tree).get(folder)
            if found is None or found.mode != TREE:
                return None
            tree = found.oid
        found = self._rows(tree).get(name)
        if found is None or (found.mode == TREE and len(folders) < DEEPEST):
            return None
        return found.mode, found.oid

    def _rows(self, oid: str) -> dict[str, Entry]:
        if oid not in self._known:
            # Of two with one name the first counts.
            self._known[oid] = {row.name: row for row in reversed(self._reader.tree(oid))}
        return self._known[oid]


def _is_lifted(reader: Reader, stray: Stray, tip: str) -> bool:
    """Tells whether a valid event has made up to a tip what the bad commit made before it."""
    current: str | None = tip if stray.lifted else None
    while current is not None and current != stray.commit:
        if current in stray.lifted:
            return True
        parents = reader.commit(current).parents
        current = parents[0] if parents else None
    return False


def lifted(
    strays: Sequence[Stray], changes: Mapping[str, str | None], commit: str
) -> tuple[Stray, ...]:
    """Returns the strays after valid events up to a commit have written some paths.

    Where they have written just what was bad, only this tells it from before.
    """
    return tuple(
        stray._replace(lifted=(*stray.lifted, commit))
        if stray.path in changes and stray.bad == row_of(changes[stray.path])
        else stray
        for stray in strays
    )


def row_of(oid: str | None) -> Row:
    """Returns the row that a tree has for a plain file, None for none."""
    return None if oid is None else (FILE, oid)
