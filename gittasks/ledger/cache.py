"""Every task at one commit of the ledger, in one SQLite file beside the repository.

The file is derived: deleting it loses nothing. It remembers the commit it is true for. At that
commit no git object is read; at another one the two trees are compared, folder by folder, and
only the documents that differ are read. What cannot be used is built anew, beside, and put in
place whole; where nothing can be written, everything works from memory and only takes longer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

try:
    # The package around it brings `datetime`, which nobody here needs.
    import _sqlite3 as sqlite3
except ImportError:  # pragma: no cover
    import sqlite3  # type: ignore[no-redef]

from gittasks.ledger.schema import VERSION, storable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from sqlite3 import Connection

    from gittasks.domain.task import Task
    from gittasks.ledger.quarantine import Row, Stray
    from gittasks.plumbing.objects import Reader

__all__ = ["Cache"]

_ROUNDS = 20
_WAIT_SECONDS = 5.0


class Cache:
    """The tables at the commit of the last `refresh`."""

    __slots__ = ("_db", "_folder", "_has_file", "_in_memory", "_path", "_reader", "tip")

    def __init__(
        self, folder: str, reader: Callable[[], Reader], *, in_memory: bool = False
    ) -> None:
        """Keeps the file in a folder, which need not exist; asks for a reader when it lacks one.

        With `in_memory` the file is left to those who look at the present.
        """
        self._has_file = not in_memory
        self._folder = folder
        self._path = os.path.join(folder, "cache.db")
        self._reader = reader
        self._db: Connection | None = None
        self._in_memory = False
        self.tip = ""

    def close(self) -> None:
        """Lets go of the file."""
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def refresh(self, tip: str) -> None:
        """Makes every answer true for this commit."""
        if self._db is not None and self.tip == tip:
            return
        self.tip = tip
        if self._db is not None and not self._in_memory:
            self.close()
        if self._db is None:
            self._open()
            return
        try:
            self._catch_up(self._db)
        except sqlite3.Error:
            self._db.close()
            self._build_in_memory()

    def rebuild(self) -> None:
        """Makes everything anew, whatever the file says."""
        self.close()
        if not self._in_memory:
            for path in (self._path, self._path + "-journal"):
                try:
                    _remove(path)
                except OSError:
                    pass
        self._open()

    def advance(
        self,
        before: str,
        tip: str,
        tree: str,
        changes: Mapping[str, str | None],
        known: Mapping[str, Task],
    ) -> None:
        """Goes from the commit `before` to `tip`, which changed only these paths (None: removed).

        Best effort, after the ledger itself has moved; `known` gives the task of a blob.
        """
        from gittasks.ledger import quarantine, rows
        from gittasks.plumbing.objects import FILE

        self.tip = tip
        strays = quarantine.load(self._folder)
        if strays:
            self._lift(changes, tip)
        db = self._db
        if db is None:
            return
        try:
            if strays:
                # What stood in the way may have gone with it.
                self._catch_up(db)
                return
            db.execute("BEGIN IMMEDIATE")
            try:
                if _meta(db)[0] == before:
                    files = {
                        path: None if oid is None else (FILE, oid) for path, oid in changes.items()
                    }
                    rows.Update(db, self._reader(), known).apply(files)
                    db.execute("UPDATE meta SET tip = ?, tree = ?", (tip, tree))
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise
        except sqlite3.Error:
            self.close()
            self._in_memory = False

    def renew(self) -> None:
        """Takes over what is kept about strays by now, at whatever commit the file is true for."""
        from gittasks.ledger import quarantine

        self.refresh(self.tip)
        db = self._db
        assert db is not None
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                self._carry(db, *_meta(db), {}, quarantine.load(self._folder))
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise
        except sqlite3.Error:
            self.rebuild()

    def select(self, sql: str, arguments: Sequence[Any] = ()) -> list[Any]:
        """Returns the answer at our commit, whatever other processes do to the file meanwhile."""
        arguments = tuple(map(storable, arguments))
        for tried in range(_ROUNDS):
            db = self._db
            if db is None:
                self._open()
                continue
            if self._in_memory:
                return db.execute(sql, arguments).fetchall()
            try:
                db.execute("BEGIN")
                try:
                    if _meta(db)[0] == self.tip:
                        return db.execute(sql, arguments).fetchall()
                finally:
                    db.execute("COMMIT")
                self._catch_up(db)
            except sqlite3.Error as error:
                if tried or isinstance(error, sqlite3.OperationalError):
                    self.close()
                    self._build_in_memory()
                else:
                    self.rebuild()
        self.close()
        self._build_in_memory()
        assert self._db is not None
        return self._db.execute(sql, arguments).fetchall()

    def _open(self) -> None:
        self._in_memory = False
        try:
            if not self._has_file:
                self._build_in_memory()
                return
            for replace in (False, True):
                if replace or not _is_there(self._path):
                    self._build_file(replace=replace)
                if self._use_file():
                    return
        except (sqlite3.Error, OSError):
            pass
        self._build_in_memory()

    def _use_file(self) -> bool:
        """Tells whether the file could be used; raises if the reason may be over in a moment."""
        db = sqlite3.connect(*_settings(self._path))
        try:
            db.execute("PRAGMA synchronous = OFF")
            if self._is_ours(db):
                self._catch_up(db)
                self._db = db
                return True
        except sqlite3.DatabaseError as error:
            if "locked" in str(error):
                raise
        finally:
            if self._db is not db:
                db.close()
        return False

    def _is_ours(self, db: Connection) -> bool:
        found = db.execute("SELECT version FROM meta").fetchone()
        return bool(found and found[0] == VERSION)

    def _catch_up(self, db: Connection) -> None:
        if _meta(db)[0] == self.tip:
            return
        from gittasks.ledger import quarantine
        from gittasks.ledger.trees import changed_paths
        from gittasks.plumbing.errors import ObjectMissing

        strays = quarantine.load(self._folder)
        tree = self._tree(strays)
        db.execute("BEGIN IMMEDIATE")
        try:
            tip, before = _meta(db)
            if tip != self.tip:
                try:
                    changes = dict(changed_paths(self._reader(), before, tree))
                except ObjectMissing as error:
                    # The commit that the file is true for is gone: it has to be built anew.
                    raise sqlite3.DatabaseError(str(error)) from None
                self._carry(db, self.tip, tree, changes, strays)
                db.execute("UPDATE meta SET tip = ?, tree = ?", (self.tip, tree))
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise

    def _carry(
        self,
        db: Connection,
        tip: str,
        tree: str,
        changes: Mapping[str, Row],
        strays: Sequence[Stray],
    ) -> None:
        """Carries what differs at a commit into the tables, as it counts there."""
        from gittasks.ledger import quarantine, rows

        holding: Mapping[str, Stray] = {}
        before = [os.fsdecode(row[0]) for row in db.execute("SELECT path FROM quarantine")]
        if strays or before:
            changes, holding = quarantine.laid_over(
                self._reader(), strays, tip, tree, changes, before
            )
        rows.Update(db, self._reader(), strays=holding).apply(changes)

    def _lift(self, changes: Mapping[str, str | None], tip: str) -> None:
        from gittasks.ledger import quarantine

        kept = quarantine.read(self._folder)
        after = quarantine.lifted(kept.strays, changes, tip)
        if after != kept.strays:
            try:
                quarantine.save(self._folder, kept._replace(strays=after))
            except OSError:
                pass

    def _tree(self, strays: Sequence[Stray]) -> str:
        tree = self._reader().commit(self.tip).tree
        names = {entry.name for entry in self._reader().tree(tree)}
        is_known = any(stray.path == "project.yaml" and stray.good for stray in strays)
        if names and "project.yaml" not in names and not is_known:
            from gittasks.domain.errors import Corrupt

            raise Corrupt(
                f"The commit {self.tip[:12]} is not of a ledger: it has no project.yaml.",
                "Run `git tasks recover` to go back to the last good state.",
            )
        return tree

    def _build_in_memory(self) -> None:
        self._db = _connect(":memory:")
        self._in_memory = True
        self._build(self._db)

    def _build_file(self, *, replace: bool) -> None:
        os.makedirs(self._folder, exist_ok=True)
        beside = f"{self._path}.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            db = _connect(beside)
            try:
                db.execute("PRAGMA journal_mode = OFF")
                self._build(db)
            finally:
                db.close()
            if replace:
                for path in (self._path, self._path + "-journal"):
                    _remove(path)
            try:
                # Unlike a rename this never takes the file away from under others.
                os.link(beside, self._path)
            except FileExistsError:
                pass
            except OSError:
                os.rename(beside, self._path)
        finally:
            _remove(beside)
            _remove(beside + "-journal")

    def _build(self, db: Connection) -> None:
        import gc

        from gittasks.ledger import quarantine, rows
        from gittasks.ledger.trees import changed_paths

        strays = quarantine.load(self._folder)
        tree = self._tree(strays)
        collecting = gc.isenabled()
        gc.disable()
        try:
            db.execute("BEGIN")
            files = dict(changed_paths(self._reader(), None, tree))
            holding: Mapping[str, Stray] = {}
            if strays:
                files, holding = quarantine.laid_over(self._reader(), strays, self.tip, tree, files)
            rows.Update(db, self._reader(), strays=holding).fill(files.items())
            db.execute("INSERT INTO meta VALUES (?, ?, ?)", (VERSION, self.tip, tree))
            db.execute("COMMIT")
        finally:
            if collecting:
                gc.enable()


def _meta(db: Connection) -> tuple[str, str]:
    found = db.execute("SELECT tip, tree FROM meta").fetchone()
    if found is None:
        raise sqlite3.DatabaseError("The cache is empty.")
    return cast("tuple[str, str]", found)


def _connect(path: str) -> Connection:
    db = sqlite3.connect(*_settings(path))
    db.execute("PRAGMA synchronous = OFF")
    return db


def _settings(path: str) -> tuple[str, float, int, None, bool]:
    """Returns where to connect, how long to wait; no types, transactions by hand, any thread."""
    return path, _WAIT_SECONDS, 0, None, False


def _is_there(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except FileNotFoundError:
        return False


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
