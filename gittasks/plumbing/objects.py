"""Reads git's objects through one process, and builds and writes new ones without an index.

New objects are made in memory as drafts, so that several commits can stand on each other before
any of them is written; then all go to git as one pack.
"""

from __future__ import annotations

import os
import sys
import time
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.plumbing.errors import GitError, ObjectMissing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol

    from gittasks.plumbing.process import Child
    from gittasks.plumbing.repository import Repository

    class Trees(Protocol):
        """Something that knows the rows of a tree."""

        def tree(self, oid: str) -> tuple[Entry, ...]:
            """Returns the rows of the tree."""
            ...


TREE = "40000"
FILE = "100644"

# From here on one pack is better than many loose files.
_LOOSE_LIMIT = 100
_SMALL_PACK = 2000
_WRITE_TRIES = 5
_PACK_TYPES = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}

# The functions that hash, by the name of the format, as they are first needed.
_hashes: dict[str, Any] = {}

# What a gc beside us can do to a write: it removes folders of objects that are empty for a moment.
_TRANSIENT = (
    "unable to write file",
    "unable to write loose object",
    "unable to create temporary file",
    "No such file or directory",
)


class Object(NamedTuple):
    """An object as git keeps it."""

    oid: str
    kind: str
    data: bytes


class Draft(NamedTuple):
    """A new object that is not yet written."""

    oid: str
    kind: str
    data: bytes


class Entry(NamedTuple):
    """One row of a tree."""

    mode: str
    name: str
    oid: str


class Signature(NamedTuple):
    """Who did something, and when."""

    name: str
    mail: str
    time: int
    zone: str = "+0000"


class Commit(NamedTuple):
    """A commit, taken apart; author and committer are "Name <mail>"."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    author: str
    author_time: int
    author_zone: str
    committer: str
    committer_time: int
    committer_zone: str
    message: bytes


class Reader:
    """Reads objects through one long-lived `git cat-file --batch`, started on first use."""

    __slots__ = ("_child", "_repo")

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._child: Child | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, name: str) -> Object | None:
        """Returns the object of an id or of an expression such as `<id>:<path>`."""
        return self.many((name,))[0]

    def many(self, names: Iterable[str]) -> list[Object | None]:
        """Returns the objects in order, None for each that is missing; asks for all at once."""
        asked = tuple(names)
        for name in asked:
            if not name or "\n" in name:
                raise ValueError(f"{name!r} cannot be asked for.")
        if not asked:
            return []
        child = self._running()
        try:
            child.write(b"".join(os.fsencode(name) + b"\n" for name in asked))
            return [self._answer(child, name) for name in asked]
        except BaseException:
            # What is still unread belongs to no later question.
            self.kill()
            raise

    def blob(self, name: str) -> bytes:
        """Returns the content of a file."""
        return self._need(name, "blob").data

    def tree(self, oid: str) -> tuple[Entry, ...]:
        """Returns the rows of a tree; a commit stands for its tree."""
        return parse_tree(self.raw_tree(oid), self._repo.oid_length // 2)

    def raw_tree(self, oid: str) -> bytes:
        """Returns the raw bytes of a tree; a commit stands for its tree."""
        found = self._need(oid, "tree", "commit")
        if found.kind == "commit":
            found = self._need(parse_commit(found.oid, found.data).tree, "tree")
        return found.data

    def apart(
        self, before: str | None, after: str | None
    ) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """Returns the rows of two trees, none for None."""
        return (
            () if before is None else self.tree(before),
            () if after is None else self.tree(after),
        )

    def commit(self, oid: str) -> Commit:
        """Returns a commit."""
        found = self._need(oid, "commit")
        return parse_commit(found.oid, found.data)

    def close(self) -> None:
        """Ends the process, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def kill(self) -> None:
        """Ends the process at once."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def _running(self) -> Child:
        if self._child is None:
            self._child = self._repo.start("cat-file", "--batch")
        return self._child

    def _answer(self, child: Child, name: str) -> Object | None:
        header = os.fsdecode(child.read_line())
        oid, _, rest = header.partition(" ")
        kind, _, size = rest.partition(" ")
        if kind in _PACK_TYPES and size.isdigit():
            data = child.read_exactly(int(size) + 1)
            return Object(oid, kind, data[:-1])
        if header.endswith(" missing"):
            return None
        if not header:
            raise child.failure()
        raise GitError(("cat-file", name), 128, header)

    def _need(self, name: str, *kinds: str) -> Object:
        found = self.get(name)
        if found is None:
            raise ObjectMissing(("cat-file", name), 128, f"the object {name} is missing")
        if found.kind not in kinds:
            words = f"the object {name} is a {found.kind}, not a {kinds[0]}"
            raise ObjectMissing(("cat-file", name), 128, words)
        return found


def parse_tree(data: bytes, oid_bytes: int) -> tuple[Entry, ...]:
    """Takes the raw bytes of a tree apart."""
    entries = []
    at, end = 0, len(data)
    while at < end:
        blank = data.index(b" ", at)
        zero = data.index(b"\0", blank)
        at_next = zero + 1 + oid_bytes
        mode = data[at:blank].decode("ascii")
        name = os.fsdecode(data[blank + 1 : zero])
        entries.append(Entry(mode, name, data[zero + 1 : at_next].hex()))
        at = at_next
    return tuple(entries)


def tree_bytes(entries: Iterable[Entry]) -> bytes:
    """Returns the raw bytes of a tree, sorted as git sorts."""
    return Rows(entries).data()


class Rows:
    """The rows of a tree in the making, raw, in git's order: a folder as if it ended in a slash."""

    __slots__ = ("_keys", "_rows")

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        rows = sorted((_row_key(e.mode, e.name), _row(e.mode, e.name, e.oid)) for e in entries)
        self._keys = [key for key, _ in rows]
        self._rows = [row for _, row in rows]

    def __bool__(self) -> bool:
        return bool(self._rows)

    def data(self) -> bytes:
        """Returns the raw bytes of the tree."""
        return b"".join(self._rows)

    def folder(self, name: str) -> str | None:
        """Returns the tree of the folder of this name, None where there is none."""
        key = _row_key(TREE, name)
        at = bisect_left(self._keys, key)
        if at == len(self._keys) or self._keys[at] != key:
            return None
        # The name ends at the NUL; the id may hold others.
        return self._rows[at].split(b"\0", 1)[1].hex()

    def put(self, mode: str, name: str, oid: str) -> None:
        """Adds a row, or replaces what has this name."""
        key = _row_key(mode, name)
        row = _row(mode, name, oid)
        at = bisect_left(self._keys, key)
        if at < len(self._keys) and self._keys[at] == key:
            self._rows[at] = row
            return
        # A folder and a file of one name stand in different places, and only one may be there.
        self._drop(_row_key(FILE if mode == TREE else TREE, name))
        at = bisect_left(self._keys, key)
        self._keys.insert(at, key)
        self._rows.insert(at, row)

    def drop(self, name: str) -> None:
        """Removes what has this name, if there is something."""
        self._drop(_row_key(FILE, name))
        self._drop(_row_key(TREE, name))

    def _drop(self, key: bytes) -> None:
        at = bisect_left(self._keys, key)
        if at < len(self._keys) and self._keys[at] == key:
            del self._keys[at], self._rows[at]


def _row_key(mode: str, name: str) -> bytes:
    return os.fsencode(name) + b"/" if mode == TREE else os.fsencode(name)


def _row(mode: str, name: str, oid: str) -> bytes:
    return b"%s %s\0%s" % (mode.encode("ascii"), os.fsencode(name), bytes.fromhex(oid))


def parse_commit(oid: str, data: bytes) -> Commit:
    """Takes the raw bytes of a commit apart."""
    head, _, message = data.partition(b"\n\n")
    tree = ""
    parents: list[str] = []
    people: dict[str, tuple[str, int, str]] = {}
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"tree" and not tree:
            tree = value.decode("ascii", "replace")
        elif key == b"parent":
            parents.append(value.decode("ascii", "replace"))
        elif key in (b"author", b"committer"):
            people.setdefault(key.decode("ascii"), _parse_person(value))
    author, author_time, author_zone = people.get("author", ("", 0, "+0000"))
    committer, committer_time, committer_zone = people.get("committer", ("", 0, "+0000"))
    return Commit(
        oid,
        tree,
        tuple(parents),
        author,
        author_time,
        author_zone,
        committer,
        committer_time,
        committer_zone,
        message,
    )


def _parse_person(value: bytes) -> tuple[str, int, str]:
    who, bracket, when = value.decode("utf-8", "surrogateescape").rpartition(">")
    words = when.split()
    try:
        seconds = int(words[0])
    except (IndexError, ValueError):
        seconds = 0
    return who + bracket, seconds, words[1] if len(words) > 1 else "+0000"


def commit_bytes(
    tree: str,
    parents: Sequence[str],
    author: Signature,
    committer: Signature,
    message: bytes,
) -> bytes:
    """Returns the raw bytes of a commit."""
    if b"\0" in message:
        raise ValueError("The message of a commit cannot hold a NUL.")
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {_person(author)}", f"committer {_person(committer)}"]
    return "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n\n" + message


def _person(who: Signature) -> str:
    name = _clean(who.name) or "unknown"
    mail = _clean(who.mail).replace(" ", "") or "unknown"
    return f"{name} <{mail}> {who.time} {who.zone}"


def _clean(text: str) -> str:
    """Takes away what git would not accept in a name, and what would break its line."""
    kept = "".join(" " if c < " " or c == "\x7f" else c for c in text if c not in "<>")
    # The punctuation that git itself cuts off at the ends of a name.
    return " ".join(kept.split()).strip(" .,:;\"'\\")


def object_id(repo: Repository, kind: str, data: bytes) -> str:
    """Returns the id an object has in this repository."""
    hashed = digest(repo.object_format, b"%s %d\0" % (kind.encode("ascii"), len(data)) + data)
    return hashed.hex()


def draft(repo: Repository, kind: str, data: bytes) -> Draft:
    """Returns a new object with its id."""
    return Draft(object_id(repo, kind, data), kind, data)


def is_path(path: str) -> bool:
    """Tells whether git would take a path into a tree."""
    return not any(part in ("", ".", "..", ".git") or "\0" in part for part in path.split("/"))


def graft(
    reader: Trees,
    repo: Repository,
    root_tree: str | None,
    changes: Mapping[str, tuple[str, str] | None],
    drafts: dict[str, Draft] | None = None,
    rows: dict[str, Rows] | None = None,
) -> tuple[str, list[Draft]]:
    """Replaces or removes (None) paths of a tree; returns the new root and the new trees.

    Folders that become empty disappear. Trees found in `drafts` need not be written yet; the new
    ones are put there as well. `rows` remembers the newest trees by id for the next graft.
    """
    for path in changes:
        if not is_path(path):
            raise ValueError(f"{path!r} cannot be a path in a tree.")
    scion = _Graft(reader, repo, {} if drafts is None else drafts, {} if rows is None else rows)
    root = scion.build(root_tree, changes)
    if root is None:
        root = scion.tree(b"", root_tree)
    return root, scion.made


class _Graft:
    """Builds the trees from the leaves to the root."""

    __slots__ = ("_drafts", "_reader", "_repo", "_rows", "made")

    def __init__(
        self, reader: Trees, repo: Repository, drafts: dict[str, Draft], rows: dict[str, Rows]
    ) -> None:
        self._reader = reader
        self._repo = repo
        self._drafts = drafts
        self._rows = rows
        self.made: list[Draft] = []

    def build(self, oid: str | None, changes: Mapping[str, tuple[str, str] | None]) -> str | None:
        """Returns the id of the changed tree, None if nothing is left in it."""
        rows = self._rows_of(oid)
        folders: dict[str, dict[str, tuple[str, str] | None]] = {}
        for path, value in changes.items():
            first, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(first, {})[rest] = value
            elif value is None:
                rows.drop(first)
            else:
                rows.put(value[0], first, value[1])
        for name, inside in folders.items():
            before = rows.folder(name)
            below = self.build(before, inside)
            if below is not None:
                rows.put(TREE, name, below)
            elif before is not None:
                rows.drop(name)
        if not rows:
            return None
        made = self.tree(rows.data(), oid)
        self._rows[made] = rows
        return made

    def tree(self, data: bytes, before: str | None) -> str:
        """Returns the id of a tree, and keeps it if it is a new one."""
        new = draft(self._repo, "tree", data)
        if new.oid != before and new.oid not in self._drafts:
            self._drafts[new.oid] = new
            self.made.append(new)
        return new.oid

    def _rows_of(self, oid: str | None) -> Rows:
        """Returns the rows of a tree, to be changed in place: the next graft begins at the new."""
        if oid is None:
            return Rows()
        rows = self._rows.pop(oid, None)
        if rows is not None:
            return rows
        unwritten = self._drafts.get(oid)
        if unwritten is None:
            return Rows(self._reader.tree(oid))
        return Rows(parse_tree(unwritten.data, self._repo.oid_length // 2))


def write(repo: Repository, drafts: Sequence[Draft]) -> None:
    """Writes new objects, all in one stream; tries again where a gc beside it was in the way."""
    unique = {one.oid: one for one in drafts}
    if not unique:
        return
    stream = pack(repo, tuple(unique.values()))
    command = (
        ("unpack-objects", "-q")
        if len(unique) <= _LOOSE_LIMIT
        else ("index-pack", "--stdin", "--threads=1")
    )
    for tried in range(_WRITE_TRIES):
        done = repo.git(*command, stdin=stream, check=False)
        if not done.status:
            return
        words = os.fsdecode(done.stderr)
        last = tried == _WRITE_TRIES - 1
        if last or not any(one in words for one in _TRANSIENT):
            raise GitError(command, done.status, words)
        time.sleep(0.01 * 2**tried)


def pack(repo: Repository, drafts: Sequence[Draft]) -> bytes:
    """Returns objects as a pack stream."""
    import zlib

    # git deflates loose objects itself; of trees only an import of many is worth the time.
    loose = len(drafts) <= _LOOSE_LIMIT
    all_kinds = len(drafts) > _SMALL_PACK
    parts = [b"PACK" + (2).to_bytes(4, "big") + len(drafts).to_bytes(4, "big")]
    for one in drafts:
        parts.append(_pack_header(_PACK_TYPES[one.kind], len(one.data)))
        level = 0 if loose or (one.kind == "tree" and not all_kinds) else 1
        # With little memory it starts ten times faster, and most objects are small.
        small = zlib.compressobj(level, zlib.DEFLATED, zlib.MAX_WBITS, 5)
        parts.append(small.compress(one.data) + small.flush())
    body = b"".join(parts)
    return body + digest(repo.object_format, body)


def _pack_header(kind: int, size: int) -> bytes:
    header = bytearray()
    byte = (kind << 4) | (size & 15)
    size >>= 4
    while size:
        header.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    header.append(byte)
    return bytes(header)


def missing(repo: Repository, oids: Iterable[str]) -> list[str]:
    """Returns which objects are not there, asked of a new process that has cached nothing."""
    asked = tuple(dict.fromkeys(oids))
    if not asked:
        return []
    done = repo.git(
        "cat-file",
        "--batch-check=%(objectname) %(objecttype)",
        stdin=b"".join(os.fsencode(oid) + b"\n" for oid in asked),
        # Nothing is fetched to answer whether it is here.
        env={"GIT_NO_LAZY_FETCH": "1"},
    )
    answers = os.fsdecode(done.stdout).splitlines()
    return [oid for oid, answer in zip(asked, answers, strict=True) if answer.endswith(" missing")]


def digest(object_format: str, data: bytes) -> bytes:
    """Returns the hash of some bytes: sha1 or sha256."""
    hashed = _hashes.get(object_format) or _hashes.setdefault(object_format, _hash(object_format))
    return bytes(hashed(data).digest())


def _hash(object_format: str) -> Any:
    # The interpreter's own hashes import in no time; `hashlib` loads OpenSSL.
    try:
        if object_format == "sha256":
            if sys.version_info >= (3, 12):
                from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]
            else:
                from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
            return sha256
        from _sha1 import sha1  # type: ignore[import-not-found]

        return sha1
    except ImportError:
        import hashlib

        return lambda data: hashlib.new(object_format, data, usedforsecurity=False)
