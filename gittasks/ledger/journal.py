"""The raw bytes of new objects, kept aside until they are surely part of the ledger.

A `gc --prune=now` beside a writer may take objects that are written but not yet reachable, and
git accepts a commit whose tree is gone. One file an append: a line with the old and the new tip,
then for each object a line with kind, id and size and its bytes, then the word `end`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.plumbing import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.plumbing.repository import Repository

__all__ = [
    "Entry",
    "drop",
    "entries",
    "keep",
    "read",
    "restore",
    "restore_all",
    "restore_entry",
    "sorted_out",
]

_HEADER = b"gittasks-journal 1"
FOLDER = "journal"
_KEPT_NANOSECONDS = 60 * 10**9
_KEPT_ENTRIES = 64
_CHECKED_ENTRIES = 4
_CHECKED_SIZE = 1 << 20
_ROUNDS = 5


class Entry(NamedTuple):
    """What one append was about to do."""

    path: str
    before: str | None
    tip: str
    drafts: tuple[objects.Draft, ...]

    @property
    def process(self) -> int:
        """Returns the id of the process that wrote the entry."""
        pid = self.path.rpartition(".")[2]
        return int(pid) if pid.isdecimal() else 0


def keep(state_dir: str, before: str | None, tip: str, drafts: Sequence[objects.Draft]) -> str:
    """Writes an entry, safe on the disk when this returns, and returns its path."""
    folder = os.path.join(state_dir, FOLDER)
    path = os.path.join(folder, f"{tip}.{os.getpid()}")
    parts = [b"%s %s %s\n" % (_HEADER, (before or "-").encode(), tip.encode())]
    for kind, oid, data in ((one.kind, one.oid, one.data) for one in drafts):
        parts += [f"{kind} {oid} {len(data)}\n".encode(), data, b"\n"]
    parts.append(b"end\n")
    beside = path + ".new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        file = os.open(beside, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)
        file = os.open(beside, flags, 0o600)
    try:
        try:
            left = memoryview(b"".join(parts))
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(beside, path)
    except OSError:
        drop(beside)
        raise
    return path


def entries(state_dir: str) -> list[str]:
    """Returns the paths of all entries, oldest first."""
    return [path for _, path, _ in _dated(state_dir)]


def sorted_out(state_dir: str) -> tuple[list[str], list[str]]:
    """Returns the entries that nobody can need any more, and the newest of the others.

    A gc that looked at the refs before an append may delete after it, so entries stay a while.
    """
    found = _dated(state_dir)
    if not found:
        return [], []
    newest = found[-1][0]
    old = [
        path
        for number, (written, path, _) in enumerate(found)
        if newest - written > _KEPT_NANOSECONDS or len(found) - number > _KEPT_ENTRIES
    ]
    recent = found[len(old) :][-_CHECKED_ENTRIES:]
    # Many events at once went into a pack, which a gc does not take apart so soon.
    return old, [path for _, path, size in recent if size <= _CHECKED_SIZE]


def _dated(state_dir: str) -> list[tuple[int, str, int]]:
    folder = os.path.join(state_dir, FOLDER)
    found = []
    try:
        with os.scandir(folder) as files:
            for file in files:
                try:
                    stat = file.stat()
                    found.append((stat.st_mtime_ns, file.path, stat.st_size))
                except FileNotFoundError:
                    continue
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(one for one in found if not one[1].endswith(".new"))


def read(path: str) -> Entry | None:
    """Returns an entry, None if it is gone or was not finished."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    header, _, rest = data.partition(b"\n")
    words = header.decode("ascii", "replace").split(" ")
    if not header.startswith(_HEADER) or len(words) != 4 or not rest.endswith(b"end\n"):
        return None
    drafts = []
    at = 0
    while rest[at : at + 4] != b"end\n" or at + 4 != len(rest):
        line_end = rest.find(b"\n", at)
        kind, _, oid_size = rest[at:line_end].decode("ascii", "replace").partition(" ")
        oid, _, size = oid_size.partition(" ")
        if line_end < 0 or not size.isdecimal():
            return None
        start = line_end + 1
        at = start + int(size) + 1
        drafts.append(objects.Draft(oid, kind, rest[start : at - 1]))
    return Entry(path, None if words[2] == "-" else words[2], words[3], tuple(drafts))


def drop(path: str) -> None:
    """Removes an entry."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def restore_entry(repo: Repository, reader: objects.Reader, path: str) -> int:
    """Writes again what is missing of one entry; a large one is taken in only if something is."""
    try:
        is_large = os.stat(path).st_size > _CHECKED_SIZE
    except FileNotFoundError:
        return 0
    if is_large and not objects.missing(repo, _ids(path)):
        return 0
    entry = read(path)
    return 0 if entry is None else restore(repo, reader, entry.drafts)


def _ids(path: str) -> list[str]:
    """Returns which objects an entry has, without those that follow a line it cannot read."""
    ids = []
    with open(path, "rb") as file:
        file.readline()
        while len(words := file.readline().split()) == 3 and words[2].isdigit():
            ids.append(words[1].decode("ascii", "replace"))
            file.seek(int(words[2]) + 1, os.SEEK_CUR)
    return ids


def restore(repo: Repository, reader: objects.Reader, drafts: Sequence[objects.Draft]) -> int:
    """Writes again what is missing of these objects; returns how many that were."""
    by_id = {draft.oid: draft for draft in drafts}
    repaired = 0
    for tried in range(_ROUNDS):
        # A reader looks for a loose object each time it is asked.
        if len(by_id) <= 50:
            found = reader.many(by_id)
            gone = [oid for oid, one in zip(by_id, found, strict=True) if one is None]
        else:
            gone = objects.missing(repo, by_id)
        if not gone:
            break
        if tried:
            # git takes an object for written whose file is there, whatever is in it.
            for oid in gone:
                _drop_unreadable(repo, oid)
        repaired += len(gone)
        objects.write(repo, [by_id[oid] for oid in gone])
    return repaired


def _drop_unreadable(repo: Repository, oid: str) -> None:
    try:
        os.unlink(os.path.join(repo.common_dir, "objects", oid[:2], oid[2:]))
    except FileNotFoundError:
        pass


def restore_all(repo: Repository, reader: objects.Reader, state_dir: str) -> int:
    """Writes again what a gc has taken of the latest events; returns how many objects."""
    found = (read(path) for path in entries(state_dir))
    return sum(restore(repo, reader, entry.drafts) for entry in found if entry is not None)
