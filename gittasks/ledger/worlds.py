"""The projections at any commit of the ledger, folded from its messages, and their checkpoints.

A checkpoint is the world after a commit, in a file of this clone named like that commit. It is
derived: deleting it only costs time. The file is one line of JSON and then the world as Python's
own bytes:

    {"version": …, "code": …, "oid": …, "commits": …, "invalid": …, "digest": …}

`version` and `code` are those of the folds that made it, `invalid` a digest of the commits that
were known to count for nothing, `digest` that of what follows. A commit names all of its history,
so a checkpoint is good for every commit above it, and for no other: what is read after it has to
begin with a child of its commit. What does not fit is as good as absent.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain.errors import Corrupt
from gittasks.domain.projections import table
from gittasks.domain.projections.table import Fact, World
from gittasks.ledger import history, quarantine
from gittasks.plumbing.errors import GitError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.domain.projections.signals import Signals
    from gittasks.ledger.view import View

__all__ = ["at", "told"]

FOLDER = "worlds"
WORTH = 256
"""How many commits are folded before a checkpoint pays for itself."""
STRIDE = 32
"""After how many times as many one is kept on the way, where a long history is folded."""
KEPT = 8
"""How many checkpoints one clone keeps."""
LEFT_OVER = 3600
"""After how many seconds a file that was never put in place is one that a crash has left."""
FORMAT = 1

_HEADER_LIMIT = 2048


class _Header(NamedTuple):
    oid: str
    commits: int
    digest: str


def at(view: View, oid: str, *, worth: int = WORTH) -> World:
    """Returns the world after a commit of the ledger; keeps it where `worth` commits were folded."""
    store = _Store(view)
    world, begun = store.nearest(oid)
    if world is None:
        world, begun = World(), history.facts(view.repo, oid, invalid=store.invalid)
    before = world.commits
    for fact in begun:
        world, _ = table.fold(world, fact)
        if world.commits % (worth * STRIDE) == 0:
            # Whoever looks far back finds one that is not too far away.
            store.save(world)
    if world.commits - before >= worth:
        store.save(world)
    return world


def told(view: View, after: str | None, oid: str) -> Iterator[tuple[World, Fact, Signals]]:
    """Yields the world after each commit behind `after`, up to another one, with its signals."""
    world = World() if after is None else at(view, after)
    invalid = quarantine.invalid(view.state_dir)
    facts = history.facts(view.repo, oid, world.oid, invalid=invalid)
    yield from table.told(world, facts)


class _Store:
    """The checkpoints of one clone."""

    def __init__(self, view: View) -> None:
        self._repo = view.repo
        self._folder = os.path.join(view.state_dir, FOLDER)
        self._long_ago = view.clock() - LEFT_OVER
        self.invalid = quarantine.invalid(view.state_dir)
        self._marks: dict[str, Any] = {
            "version": f"{FORMAT}.{table.STATE_VERSION}",
            "code": _code(),
            "invalid": _digest("\n".join(sorted(self.invalid)).encode()),
        }

    def nearest(self, oid: str) -> tuple[World | None, Iterator[Fact]]:
        """Returns the latest world on the way to a commit, with all that comes after it."""
        for header in sorted(self._headers(), key=lambda one: (one.oid != oid, -one.commits)):
            facts = history.facts(self._repo, oid, header.oid, invalid=self.invalid)
            try:
                first = next(facts, None)
            except GitError:
                # git has its commit no more.
                continue
            # What has another parent comes from another history.
            fits = header.oid == oid if first is None else first.parent == header.oid
            world = self._load(header) if fits else None
            if world is not None:
                return world, _chained(first, facts)
        return None, iter(())

    def save(self, world: World) -> None:
        """Keeps a world, best effort, and lets go of the one that is missed least."""
        import json
        import pickle

        assert world.oid is not None
        data = pickle.dumps(world, pickle.HIGHEST_PROTOCOL)
        told = {
            **self._marks, "oid": world.oid, "commits": world.commits, "digest": _digest(data),
        }  # fmt: skip
        path = os.path.join(self._folder, world.oid)
        beside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            os.makedirs(self._folder, exist_ok=True)
            with open(beside, "wb") as file:
                file.write(json.dumps(told).encode("ascii") + b"\n" + data)
            os.replace(beside, path)
            self._thin_out()
        except OSError:
            _remove(beside)

    def _thin_out(self) -> None:
        kept = {header.oid: header for header in self._headers()}
        for name in os.listdir(self._folder):
            path = os.path.join(self._folder, name)
            # What somebody is writing at this moment is left alone, what a crash has left is not.
            if name not in kept and ("." not in name or os.stat(path).st_mtime < self._long_ago):
                _remove(path)
        rows = sorted(kept.values(), key=lambda one: one.commits)
        while len(rows) > KEPT:
            # The one whose successor is nearest, measured by what has to be folded for either.
            gaps = [
                (later.commits - one.commits, number)
                for number, (one, later) in enumerate(zip(rows, rows[1:], strict=False))
            ]
            _remove(os.path.join(self._folder, rows.pop(min(gaps)[1]).oid))

    def _headers(self) -> Iterator[_Header]:
        try:
            names = os.listdir(self._folder)
        except OSError:
            return
        for name in names:
            header = None if "." in name else self._header(name)
            if header is not None:
                yield header

    def _header(self, name: str) -> _Header | None:
        import json

        try:
            with open(os.path.join(self._folder, name), "rb") as file:
                told = json.loads(file.readline(_HEADER_LIMIT))
            header = _Header(str(told["oid"]), int(told["commits"]), str(told["digest"]))
        except Exception:  # noqa: BLE001 - whatever a file holds, the ledger is read instead
            return None
        fits = all(told.get(name) == value for name, value in self._marks.items())
        return header if fits and header.oid == name else None

    def _load(self, header: _Header) -> World | None:
        try:
            with open(os.path.join(self._folder, header.oid), "rb") as file:
                file.readline(_HEADER_LIMIT)
                data = file.read()
            if _digest(data) != header.digest:
                return None
            world = _unpickled(data)
        except Exception:  # noqa: BLE001 - whatever a file holds, the ledger is read instead
            return None
        is_ours = isinstance(world, World) and world.oid == header.oid
        return world if is_ours else None


def _chained(first: Fact | None, rest: Iterator[Fact]) -> Iterator[Fact]:
    if first is not None:
        yield first
        yield from rest


def _unpickled(data: bytes) -> Any:
    """Returns what was stored; only our own values are made, nothing is ever called."""
    import io
    import pickle

    from gittasks.domain.projections.persistent import Persistent

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module.startswith("gittasks.domain."):
                found = getattr(__import__(module, fromlist=[name]), name)
                if found is Persistent or (isinstance(found, type) and issubclass(found, tuple)):
                    return found
            raise Corrupt(f"A checkpoint names {module}.{name}.")

    return Unpickler(io.BytesIO(data)).load()


def _digest(data: bytes) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()


def _code() -> str:
    """Returns what tells the code of the folds from another one: size and time of their files."""
    from gittasks import __version__
    from gittasks.domain import projections

    marks = [__version__]
    folder = os.path.dirname(os.path.abspath(projections.__file__ or ""))
    for place in (folder, os.path.dirname(folder)):
        try:
            with os.scandir(place) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    if entry.name.endswith(".py"):
                        found = entry.stat()
                        marks.append(f"{entry.name} {found.st_size} {found.st_mtime_ns}")
        except OSError:
            marks.append("")
    return _digest("\n".join(marks).encode())


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
