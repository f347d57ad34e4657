"""Every task at one commit of the ledger, in one SQLite file beside the repository.

The file is derived: deleting it loses nothing. It remembers the commit it is true for. At that
commit no git object is read; at another one the two trees are compared, folder by folder, and
only the documents that differ are read. What cannot be used is built anew, beside, and put in
place whole; where nothing can be written, everything works from memory and only takes longer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, cast

try:
    # The package around it brings `datetime`, which nobody here needs.
    import _sqlite3 as sqlite3
except ImportError:  # pragma: no cover
    import sqlite3  # type: ignore[no-redef]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from sqlite3 import Connection

    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph
    from gittasks.plumbing.objects import Entry, Reader

__all__ = ["COLUMNS", "Filter", "InboxRow", "Problem", "ReadyRow", "Snapshot", "changed_paths"]

VERSION = 1
_ROUNDS = 20
_WAIT_SECONDS = 5.0
_CHUNK = 500
_FILE_MODE = "100644"
_TREE_MODE = "40000"

COLUMNS = (
    "id", "uid", "title", "state", "role", "open", "enters", "outcome", "priority", "position",
    "parent", "supersedes", "claimed_by", "lease_expires", "assignee", "entered_at", "branch",
    "proposed_by", "labels", "blob", "queue_rank", "inbox_rank", "open_deps", "blocking",
)  # fmt: skip
"""What `listing` can give; labels come as lines."""

_TABLES = """
CREATE TABLE meta (version INTEGER, tip TEXT, tree TEXT);
CREATE TABLE texts (path TEXT PRIMARY KEY, data BLOB) WITHOUT ROWID;
CREATE TABLE tasks (
    n INTEGER PRIMARY KEY, id TEXT, uid TEXT, title TEXT, state TEXT, role TEXT, open INTEGER,
    enters TEXT, outcome TEXT, priority INTEGER, position TEXT, parent TEXT, supersedes TEXT,
    claimed_by TEXT, lease_expires TEXT, assignee TEXT, entered_at TEXT, branch TEXT,
    proposed_by TEXT, labels TEXT, blob TEXT, queue_rank INTEGER, own_rank INTEGER,
    inbox_rank INTEGER, open_deps INTEGER DEFAULT 0, blocking INTEGER DEFAULT 0);
CREATE TABLE documents (n INTEGER PRIMARY KEY, header TEXT);
CREATE TABLE deps (task TEXT, dep TEXT, PRIMARY KEY (task, dep)) WITHOUT ROWID;
CREATE TABLE problems (
    path TEXT PRIMARY KEY, id TEXT, oid TEXT, message TEXT, lines TEXT) WITHOUT ROWID;
CREATE TABLE counts (kind TEXT, value, n INTEGER, PRIMARY KEY (kind, value)) WITHOUT ROWID
"""

# Made after the bulk of the rows.
_INDEXES = """
CREATE INDEX dependents ON deps (dep, task);
CREATE INDEX uids ON tasks (uid);
CREATE INDEX children ON tasks (parent, n);
CREATE INDEX heirs ON tasks (supersedes, n) WHERE supersedes IS NOT NULL;
CREATE INDEX states ON tasks (state, n) WHERE open = 1;
CREATE INDEX opens ON tasks (n) WHERE open = 1;
CREATE INDEX queue ON tasks (queue_rank, priority, blocking DESC, n) WHERE queue_rank > 0;
CREATE INDEX assigned ON tasks (assignee) WHERE queue_rank > 0 AND assignee IS NOT NULL;
CREATE INDEX inbox ON tasks (inbox_rank, blocking DESC, entered_at, n) WHERE inbox_rank > 0;
CREATE INDEX leases ON tasks (lease_expires) WHERE lease_expires IS NOT NULL;
CREATE INDEX bad ON problems (id)
"""

_COUNTED = ("state", "queue_rank", "inbox_rank")

_SORTS = {
    "id": "n",
    "position": "position, n",
    "priority": "priority, n",
    "state": "state, n",
    "entered": "entered_at, n",
    "blocking": "blocking DESC, n",
    "title": "title COLLATE NOCASE, n",
}

_DOCUMENT_COLUMNS = (
    "n", *COLUMNS[:20], "queue_rank", "own_rank", "inbox_rank",
)  # fmt: skip
_UPSERT = (
    f"INSERT INTO tasks ({', '.join(_DOCUMENT_COLUMNS)})"
    f" VALUES ({', '.join('?' * len(_DOCUMENT_COLUMNS))})"
    " ON CONFLICT (n) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _DOCUMENT_COLUMNS[1:])
)


class Problem(NamedTuple):
    """A file of the tree that could not be used: where, which task, which blob, why.

    `lines` are line, field, value and sentence of each thing wrong with a document.
    """

    path: str
    task: str | None
    oid: str
    message: str
    lines: tuple[tuple[int, str, str, str], ...] = ()


class Filter(NamedTuple):
    """Which tasks a list has; what is not said does not matter, but closed ones are left out."""

    states: Sequence[str] | None = None
    roles: Sequence[str] | None = None
    mine: str | None = None
    """Who has claimed the task or is assigned to it."""
    labels: Sequence[str] = ()
    parent: str | None = None
    roots: bool = False
    blocked: bool | None = None
    """Whether some dependency is not satisfied."""
    claimed: bool | None = None
    include_closed: bool = False


class ReadyRow(NamedTuple):
    """One place in the queue of agents."""

    rank: int
    priority: int
    blocking: int
    id: str
    state: str
    role: str
    title: str
    assignee: str | None
    entered_at: str
    parent: str | None


class InboxRow(NamedTuple):
    """One decision that waits for the manager."""

    rank: int
    blocking: int
    waiting_since: str
    id: str


class Snapshot:
    """The tasks at the commit of the last `refresh`."""

    __slots__ = ("_db", "_folder", "_in_memory", "_path", "_reader", "tip")

    def __init__(self, folder: str, reader: Reader) -> None:
        """Keeps the file in a folder, which need not exist; reads what it lacks through git."""
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
        """Makes everything below true for this commit."""
        if self._db is not None and self.tip == tip:
            return
        self.tip = tip
        if self._db is not None and not self._in_memory:
            self.close()
        if self._in_memory and self._db is not None:
            self._catch_up(self._db)
        else:
            self._open()

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
        self.tip = tip
        db = self._db
        if db is None:
            return
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                if _meta(db)[0] == before:
                    rows = {path: oid and (_FILE_MODE, oid) for path, oid in changes.items()}
                    _Update(db, self._reader, known).apply(cast("Any", rows))
                    db.execute("UPDATE meta SET tip = ?, tree = ?", (tip, tree))
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise
        except sqlite3.Error:
            self.close()
            self._in_memory = False

    # ------------------------------------------------------------------------------------- tasks

    def task(self, task: str) -> Task | None:
        """Returns the task with this id, None where there is none that verifies."""
        found = self._rows("SELECT header FROM documents WHERE n = ?", (_number(task),))
        return _task(found[0][0]) if found else None

    def tasks(self, ids: Iterable[str]) -> list[Task]:
        """Returns the tasks of these ids that exist, in the order asked."""
        wanted = [_number(task) for task in ids]
        found: dict[int, str] = {}
        for at in range(0, len(wanted), _CHUNK):
            part = wanted[at : at + _CHUNK]
            marks = ",".join("?" * len(part))
            found.update(self._rows(f"SELECT n, header FROM documents WHERE n IN ({marks})", part))
        return [_task(found[n]) for n in wanted if n in found]

    def all_tasks(self, *, include_closed: bool = True) -> list[Task]:
        """Returns every task, lowest id first."""
        if include_closed:
            rows = self._rows("SELECT header FROM documents ORDER BY n")
        else:
            rows = self._rows(
                "SELECT header FROM tasks JOIN documents USING (n) WHERE open = 1 ORDER BY n"
            )
        return [_task(row[0]) for row in rows]

    def blob(self, task: str) -> str | None:
        """Returns the blob of the task's document."""
        found = self._rows("SELECT blob FROM tasks WHERE n = ?", (_number(task),))
        return found[0][0] if found else None

    def with_uid(self, uid: str) -> str | None:
        """Returns the id of the task with this uid."""
        found = self._rows("SELECT id FROM tasks WHERE uid = ? ORDER BY n LIMIT 1", (uid,))
        return found[0][0] if found else None

    def dependents(self, task: str) -> list[str]:
        """Returns the ids of tasks that name the task in `depends_on`, lowest first."""
        rows = self._rows("SELECT task FROM deps WHERE dep = ? ORDER BY task", (task,))
        return [row[0] for row in rows]

    def children(self, task: str | None) -> list[str]:
        """Returns the ids of the direct children; of None, the tasks without a parent."""
        rows = self._rows("SELECT id FROM tasks WHERE parent IS ? ORDER BY n", (task,))
        return [row[0] for row in rows]

    def superseders(self, task: str) -> list[str]:
        """Returns the ids of tasks that name the task in `supersedes`."""
        rows = self._rows("SELECT id FROM tasks WHERE supersedes = ? ORDER BY n", (task,))
        return [row[0] for row in rows]

    def last_id(self) -> int:
        """Returns the highest number in use, be it by a document that does not verify."""
        rows = self._rows(
            "SELECT max(n) FROM tasks UNION ALL SELECT CAST(max(id) AS INTEGER) FROM problems"
        )
        return max(row[0] or 0 for row in rows)

    def blocking(self, task: str) -> int:
        """Returns how many open tasks wait on a task, transitively."""
        found = self._rows("SELECT blocking FROM tasks WHERE n = ?", (_number(task),))
        return found[0][0] if found else 0

    def open_dependencies(self, task: str) -> int:
        """Returns how many dependencies of an open task are not satisfied."""
        found = self._rows("SELECT open_deps FROM tasks WHERE n = ?", (_number(task),))
        return found[0][0] if found else 0

    # ------------------------------------------------------------------------------------- lists

    def ready(
        self,
        roles: Sequence[str] | None = None,
        limit: int | None = None,
        assignee: str | None = None,
    ) -> list[ReadyRow]:
        """Returns the queue in order, for all roles or some; the checker's queue comes first.

        `assignee` leaves out what is assigned to somebody else. CHECK is nobody's but the
        checker's, and is there only if that role is asked for.
        """
        rows: list[ReadyRow] = []
        own = "" if assignee is None else " AND (assignee IS NULL OR assignee = ?)"
        arguments = () if assignee is None else (assignee,)
        for where, sort in _queues(roles):
            left = -1 if limit is None else limit - len(rows)
            if left == 0:
                break
            found = self._rows(
                "SELECT queue_rank, priority, blocking, id, state, role, title, assignee,"
                f" entered_at, parent FROM tasks WHERE {where}{own} ORDER BY {sort} LIMIT ?",
                (*arguments, left),
            )
            rows += map(ReadyRow._make, found)
        return rows

    def ready_count(self, roles: Sequence[str] | None = None, assignee: str | None = None) -> int:
        """Returns how many rows `ready` has without a limit."""
        if roles is not None:
            return len(self.ready(roles, None, assignee))
        total = int(
            self._rows("SELECT sum(n) FROM counts WHERE kind = 'queue_rank' AND value > 0")[0][0]
            or 0
        )
        if assignee is None:
            return total
        others = self._rows(
            "SELECT count(*) FROM tasks"
            " WHERE queue_rank > 0 AND assignee IS NOT NULL AND assignee != ?",
            (assignee,),
        )
        return total - int(others[0][0])

    def inbox(self, now: str, limit: int | None = None) -> list[InboxRow]:
        """Returns what waits for the manager, first to last; `now` as documents spell times.

        What waits for trust in this clone is not known here.
        """
        from gittasks.domain.machine import INBOX_LEASE_EXPIRED

        columns = "blocking, entered_at, id FROM tasks"
        expired = self._rows(
            f"SELECT {INBOX_LEASE_EXPIRED}, {columns} WHERE lease_expires <= ?", (now,)
        )
        most = -1 if limit is None else limit + len(expired)
        rows = self._rows(
            f"SELECT inbox_rank, {columns} WHERE inbox_rank > 0"
            " ORDER BY inbox_rank, blocking DESC, entered_at, n LIMIT ?",
            (most,),
        )
        if not expired:
            return [InboxRow._make(row) for row in rows]
        first: dict[str, InboxRow] = {}
        for row in map(InboxRow._make, (*rows, *expired)):
            if row.id not in first or row.rank < first[row.id].rank:
                first[row.id] = row
        ordered = sorted(first.values(), key=lambda r: (r.rank, -r.blocking, r.waiting_since, r.id))
        return ordered[:limit]

    def inbox_count(self, now: str) -> int:
        """Returns how many rows `inbox` has without a limit."""
        return int(
            self._rows(
                "SELECT (SELECT coalesce(sum(n), 0) FROM counts"
                " WHERE kind = 'inbox_rank' AND value > 0)"
                " + (SELECT count(*) FROM tasks WHERE lease_expires <= ? AND inbox_rank = 0)",
                (now,),
            )[0][0]
        )

    def listing(
        self,
        columns: Sequence[str] = COLUMNS[:4],
        where: Filter | None = None,
        *,
        sort: str = "id",
        limit: int | None = None,
    ) -> list[tuple[Any, ...]]:
        """Returns plain rows of some of `COLUMNS`.

        `sort` is one of id, position, priority, state, entered, blocking and title.
        """
        unknown = [name for name in columns if name not in COLUMNS]
        if unknown:
            raise ValueError(f"There is no column {unknown[0]!r}.")
        condition, arguments = _condition(where or Filter())
        return self._rows(
            f"SELECT {', '.join(columns)} FROM tasks{condition} ORDER BY {_SORTS[sort]} LIMIT ?",
            (*arguments, -1 if limit is None else limit),
        )

    def count(self, where: Filter | None = None) -> int:
        """Returns how many rows `listing` has with the same filter."""
        condition, arguments = _condition(where or Filter())
        return int(self._rows(f"SELECT count(*) FROM tasks{condition}", arguments)[0][0])

    def counts(self) -> dict[str, int]:
        """Returns how many tasks each state has, without those that have none."""
        return dict(self._rows("SELECT value, n FROM counts WHERE kind = 'state' AND n > 0"))

    def problems(self) -> tuple[Problem, ...]:
        """Returns the files that could not be used."""
        return tuple(map(_problem, self._rows("SELECT * FROM problems ORDER BY path")))

    def problem(self, task: str) -> Problem | None:
        """Returns what is wrong with the document of a task that has none that verifies."""
        found = self._rows(
            "SELECT * FROM problems WHERE id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM tasks WHERE id = ?1) ORDER BY path DESC LIMIT 1",
            (task,),
        )
        return _problem(found[0]) if found else None

    def text(self, path: str) -> bytes | None:
        """Returns a shared file: the settings, the template or a prompt."""
        found = self._rows("SELECT data FROM texts WHERE path = ?", (path,))
        return found[0][0] if found else None

    # ------------------------------------------------------------------------------------ the file

    def _rows(self, sql: str, arguments: Sequence[Any] = ()) -> list[Any]:
        """Returns the answer at our commit, whatever other processes do to the file meanwhile."""
        for _ in range(_ROUNDS):
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
            except sqlite3.Error:
                self.close()
                self._build_in_memory()
        self.close()
        self._build_in_memory()
        assert self._db is not None
        return self._db.execute(sql, arguments).fetchall()

    def _open(self) -> None:
        self._in_memory = False
        try:
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
        db = _connect(self._path)
        try:
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
        from gittasks.plumbing.errors import ObjectMissing

        if _meta(db)[0] == self.tip:
            return
        tree = self._tree()
        db.execute("BEGIN IMMEDIATE")
        try:
            tip, before = _meta(db)
            if tip != self.tip:
                try:
                    changes = dict(changed_paths(self._reader, before, tree))
                except ObjectMissing as error:
                    # The commit that the file is true for is gone: it has to be built anew.
                    raise sqlite3.DatabaseError(str(error)) from None
                _Update(db, self._reader, {}).apply(changes)
                db.execute("UPDATE meta SET tip = ?, tree = ?", (self.tip, tree))
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise

    def _tree(self) -> str:
        tree = self._reader.commit(self.tip).tree
        names = {entry.name for entry in self._reader.tree(tree)}
        if names and "project.yaml" not in names:
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

        from gittasks.domain.task import STATES

        tree = self._tree()
        collecting = gc.isenabled()
        gc.disable()
        try:
            db.execute("BEGIN")
            for statement in _TABLES.split(";\n"):
                db.execute(statement)
            db.executemany(
                "INSERT INTO counts VALUES (?, ?, 0)",
                [("state", s) for s in STATES]
                + [(kind, n) for kind in _COUNTED[1:] for n in range(16)],
            )
            _Update(db, self._reader, {}).fill(changed_paths(self._reader, None, tree))
            db.execute("INSERT INTO meta VALUES (?, ?, ?)", (VERSION, self.tip, tree))
            db.execute("COMMIT")
        finally:
            if collecting:
                gc.enable()


def changed_paths(
    reader: Reader, before: str | None, after: str | None, prefix: str = ""
) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Yields each path that differs between two trees: mode and id now, None if it is gone."""
    if before == after:
        return
    old: dict[str, Entry] = {} if before is None else {e.name: e for e in reader.tree(before)}
    new: dict[str, Entry] = {} if after is None else {e.name: e for e in reader.tree(after)}
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        path = prefix + name
        # Deeper than any path of the layout, a folder counts as one thing.
        nested = path.count("/") < 3
        was_tree = was.oid if was is not None and was.mode == _TREE_MODE and nested else None
        now_tree = now.oid if now is not None and now.mode == _TREE_MODE and nested else None
        if was is not None and was_tree is None and (now is None or now_tree is not None):
            yield path, None
        if was_tree is not None or now_tree is not None:
            yield from changed_paths(reader, was_tree, now_tree, path + "/")
        if now is not None and now_tree is None:
            yield path, (now.mode, now.oid)


class _Node(NamedTuple):
    """What the rules about dependencies look at."""

    id: str
    is_open: bool
    is_landed: bool
    outcome: str | None
    supersedes: str | None
    depends_on: tuple[str, ...]


class _Web:
    """The dependencies as the tables have them; read when asked for, or all at once."""

    def __init__(self, db: Connection, *, whole: bool = False) -> None:
        self._db = db
        self._nodes: dict[str, _Node | None] = {}
        self._dependents: dict[str, list[str]] = {}
        self._heirs: dict[str, list[str]] = {}
        self._whole = whole
        if whole:
            self._load()

    def _load(self) -> None:
        needs: dict[str, list[str]] = {}
        for task, dependency in self._db.execute("SELECT task, dep FROM deps ORDER BY task"):
            needs.setdefault(task, []).append(dependency)
            self._dependents.setdefault(dependency, []).append(task)
        rows = self._db.execute("SELECT id, open, outcome, supersedes FROM tasks ORDER BY n")
        for task, is_open, outcome, supersedes in rows:
            needed = tuple(needs.get(task, ()))
            self._nodes[task] = _Node(
                task, bool(is_open), outcome == "landed", outcome, supersedes, needed
            )
            if supersedes is not None:
                self._heirs.setdefault(supersedes, []).append(task)

    def get(self, task: str) -> _Node | None:
        """Returns the node of a task."""
        if task in self._nodes or self._whole:
            return self._nodes.get(task)
        found = self._db.execute(
            "SELECT open, outcome, supersedes FROM tasks WHERE n = ?", (_number(task),)
        ).fetchone()
        node = None
        if found is not None:
            needs = self._db.execute("SELECT dep FROM deps WHERE task = ?", (task,)).fetchall()
            node = _Node(
                task,
                bool(found[0]),
                found[1] == "landed",
                found[1],
                found[2],
                tuple(row[0] for row in needs),
            )
        self._nodes[task] = node
        return node

    def dependents(self, task: str) -> Sequence[str]:
        """Returns who names the task in `depends_on`."""
        if task in self._dependents or self._whole:
            return self._dependents.get(task, ())
        rows = self._db.execute("SELECT task FROM deps WHERE dep = ?", (task,)).fetchall()
        return self._dependents.setdefault(task, [row[0] for row in rows])

    def superseders(self, task: str) -> Sequence[str]:
        """Returns who names the task in `supersedes`."""
        if task in self._heirs or self._whole:
            return self._heirs.get(task, ())
        rows = self._db.execute("SELECT id FROM tasks WHERE supersedes = ?", (task,)).fetchall()
        return self._heirs.setdefault(task, [row[0] for row in rows])

    def waited_on(self) -> Iterable[str]:
        """Returns every task that somebody may wait on, once all is loaded."""
        return {*self._dependents, *(heir for heirs in self._heirs.values() for heir in heirs)}

    def waiting(self) -> Iterable[str]:
        """Returns every open task that has dependencies, once all is loaded."""
        return [n.id for n in self._nodes.values() if n is not None and n.is_open and n.depends_on]

    def with_heirs(self, tasks: Iterable[str]) -> set[str]:
        """Returns the tasks and all that supersede them, directly or through others."""
        found: set[str] = set()
        queue = list(tasks)
        while queue:
            task = queue.pop()
            if task not in found:
                found.add(task)
                queue.extend(self.superseders(task))
        return found

    def above(self, tasks: Iterable[str]) -> set[str]:
        """Returns the tasks and all that these open tasks wait on, directly or through others."""
        found: set[str] = set()
        queue = list(tasks)
        while queue:
            task = queue.pop()
            if task in found:
                continue
            found.add(task)
            node = self.get(task)
            if node is not None and node.is_open and node.depends_on:
                queue.extend(self.with_heirs(node.depends_on))
        return found


class _Update:
    """Carries changed files into the tables."""

    def __init__(self, db: Connection, reader: Reader, known: Mapping[str, Task]) -> None:
        self._db = db
        self._reader = reader
        self._known = known

    def fill(self, files: Iterable[tuple[str, tuple[str, str] | None]]) -> None:
        """Writes every row of an empty database."""
        candidates = self._sorted_out(dict(files))
        for rows in _in_chunks(candidates.items()):
            for task, _ in self._chosen(dict(rows)):
                if task is not None:
                    self._put(*task)
        for statement in _INDEXES.split(";\n"):
            self._db.execute(statement)
        web = _Web(self._db, whole=True)
        self._set_open_dependencies(web, web.waiting())
        self._set_blocking(web, web.waited_on())
        for kind in _COUNTED:
            self._db.execute(
                f"UPDATE counts SET n = (SELECT count(*) FROM tasks WHERE {kind} = value)"
                f" WHERE kind = '{kind}' AND value IN (SELECT DISTINCT {kind} FROM tasks)"
            )
        self._make_triggers()

    def apply(self, changes: Mapping[str, tuple[str, str] | None]) -> None:
        """Carries the changes of some paths into the rows."""
        candidates = self._sorted_out(changes)
        for task in candidates:
            self._add_unchanged(task, candidates[task], changes)
        before = _Web(self._db)
        old = {task: before.get(task) for task in candidates}
        for rows in _in_chunks(candidates.items()):
            for chosen, task in self._chosen(dict(rows)):
                if chosen is None:
                    self._drop(task)
                else:
                    self._put(*chosen)
        after = _Web(self._db)
        new = {task: after.get(task) for task in candidates}
        moved = [(old[task], new[task]) for task in candidates if old[task] != new[task]]
        # A row written anew has lost what only its neighbours know.
        self._set_open_dependencies(after, {*candidates, *_waiting_on(after, moved)})
        self._set_blocking(after, after.above(_sources(after, moved)))

    def _sorted_out(
        self, changes: Mapping[str, tuple[str, str] | None]
    ) -> dict[str, dict[str, str]]:
        """Returns for each task concerned the paths that have a document; notes strange files."""
        from gittasks.ledger.layout import PROJECT_FILE, is_shared_text, parse_path

        candidates: dict[str, dict[str, str]] = {}
        for path, now in changes.items():
            self._db.execute("DELETE FROM problems WHERE path = ?", (_utf8(path),))
            place = parse_path(path)
            if place is not None:
                paths = candidates.setdefault(place[0], {})
                if now is not None and now[0] == _FILE_MODE:
                    paths[path] = now[1]
                    continue
            elif path == PROJECT_FILE or is_shared_text(path):
                self._keep_text(path, now)
                continue
            if now is None:
                continue
            if now[0] != _FILE_MODE:
                self._note(path, place and place[0], now[1], f"The file {path} is no plain file.")
            elif place is None:
                self._note(path, None, now[1], f"The file {path} does not belong in a ledger.")
        return candidates

    def _keep_text(self, path: str, now: tuple[str, str] | None) -> None:
        self._db.execute("DELETE FROM texts WHERE path = ?", (path,))
        if now is not None and now[0] == _FILE_MODE:
            data = self._reader.blob(now[1])
            self._db.execute("INSERT INTO texts VALUES (?, ?)", (path, data))
        elif now is not None:
            self._note(path, None, now[1], f"The file {path} is no plain file.")

    def _add_unchanged(
        self, task: str, paths: dict[str, str], changes: Mapping[str, tuple[str, str] | None]
    ) -> None:
        """Adds what the other folder holds under the same number."""
        from gittasks.ledger.layout import task_path

        for closed in (False, True):
            path = task_path(task, closed=closed)
            if path in changes:
                continue
            found = self._db.execute(
                "SELECT blob FROM tasks WHERE n = ?1 AND open = ?2"
                " UNION ALL SELECT oid FROM problems WHERE path = ?3",
                (_number(task), int(not closed), path),
            ).fetchone()
            if found is not None:
                self._db.execute("DELETE FROM problems WHERE path = ?", (path,))
                paths[path] = found[0]

    def _chosen(
        self, candidates: Mapping[str, Mapping[str, str]]
    ) -> Iterator[tuple[tuple[Task, str] | None, str]]:
        """Yields for each number the one document that counts, with its blob, and the number."""
        wanted = [
            oid for paths in candidates.values() for oid in paths.values() if oid not in self._known
        ]
        found = dict(zip(wanted, self._reader.many(wanted), strict=True))
        for number, paths in candidates.items():
            chosen: tuple[Task, str] | None = None
            for path in sorted(paths, reverse=True):
                oid = paths[path]
                task = self._known.get(oid)
                if task is None:
                    blob = found[oid]
                    task = self._parsed(path, number, oid, None if blob is None else blob.data)
                if task is None:
                    continue
                if task.is_open is not path.startswith("tasks/"):
                    words = f"The document {path} stands in the wrong folder: it is {task.state}."
                    self._note(path, number, oid, words)
                elif chosen is not None:
                    self._note(path, number, oid, f"There are two documents of task {number}.")
                else:
                    chosen = (task, oid)
            yield chosen, number

    def _parsed(self, path: str, number: str, oid: str, data: bytes | None) -> Task | None:
        from gittasks.domain.fields import BadDocument
        from gittasks.domain.frontmatter import parse

        if data is None:
            self._note(path, number, oid, f"The document {path} is missing in the repository.")
            return None
        try:
            return parse(data, path)[0]
        except BadDocument as error:
            self._note(path, number, oid, error.message, error.problems)
            return None

    def _note(
        self, path: str, task: str | None, oid: str, message: str, lines: Sequence[Any] = ()
    ) -> None:
        import json

        self._db.execute(
            "INSERT OR REPLACE INTO problems VALUES (?, ?, ?, ?, ?)",
            (_utf8(path), task, oid, message, json.dumps(lines)),
        )

    def _put(self, task: Task, blob: str) -> None:
        from gittasks.domain import machine
        from gittasks.domain.frontmatter import header_json

        number = int(task.id)
        own_rank = machine.inbox_rank(task)
        labels = "\n".join(("", *task.labels, "")) if task.labels else ""
        self._db.execute(
            _UPSERT,
            (
                number, task.id, task.uid, task.title, task.state, machine.STAGE[task.state].role,
                int(task.is_open), task.enters, task.outcome, task.priority, task.sort_key,
                task.parent, task.supersedes, task.claimed_by, task.lease_expires, task.assignee,
                task.entered_at, task.branch, task.proposed_by, labels, blob,
                machine.queue_rank(task), own_rank, own_rank,
            ),
        )  # fmt: skip
        self._db.execute(
            "INSERT OR REPLACE INTO documents VALUES (?, ?)", (number, header_json(task))
        )
        self._db.execute("DELETE FROM deps WHERE task = ?", (task.id,))
        if task.depends_on:
            self._db.executemany(
                "INSERT OR IGNORE INTO deps VALUES (?, ?)",
                [(task.id, dependency) for dependency in task.depends_on],
            )

    def _drop(self, task: str) -> None:
        self._db.execute("DELETE FROM tasks WHERE n = ?", (_number(task),))
        self._db.execute("DELETE FROM documents WHERE n = ?", (_number(task),))
        self._db.execute("DELETE FROM deps WHERE task = ?", (task,))

    def _set_open_dependencies(self, web: _Web, tasks: Iterable[str]) -> None:
        from gittasks.domain import dependencies
        from gittasks.domain.machine import INBOX_ABORTED_DEPENDENCY

        graph = cast("Graph", web)
        rows = []
        for task in tasks:
            node = web.get(task)
            if node is None:
                continue
            waits = node.is_open and bool(node.depends_on)
            still = len(dependencies.open_dependencies(graph, node.depends_on)) if waits else 0
            lost = still > 0 and bool(dependencies.aborted_dependencies(graph, node.depends_on))
            rows.append((still, int(lost), _number(task)))
        self._db.executemany(
            "UPDATE tasks SET open_deps = ?1, inbox_rank = CASE"
            f" WHEN ?2 AND state = 'BLOCKED' AND (own_rank = 0 OR own_rank > {INBOX_ABORTED_DEPENDENCY})"
            f" THEN {INBOX_ABORTED_DEPENDENCY} ELSE own_rank END WHERE n = ?3",
            rows,
        )

    def _set_blocking(self, web: _Web, tasks: Iterable[str]) -> None:
        from gittasks.domain import dependencies

        graph = cast("Graph", web)
        counted = _reach(tasks, lambda task: dependencies.waiters(graph, task))
        self._db.executemany(
            "UPDATE tasks SET blocking = ?1 WHERE n = ?2 AND blocking != ?1",
            [(count, _number(task)) for task, count in counted.items()],
        )

    def _make_triggers(self) -> None:
        for kind in _COUNTED:
            less = f"UPDATE counts SET n = n - 1 WHERE kind = '{kind}' AND value = old.{kind};"
            more = f"UPDATE counts SET n = n + 1 WHERE kind = '{kind}' AND value = new.{kind};"
            for name, event, steps in (
                ("more", "INSERT", more),
                ("less", "DELETE", less),
                ("move", f"UPDATE OF {kind}", less + more),
            ):
                self._db.execute(
                    f"CREATE TRIGGER {name}_{kind} AFTER {event} ON tasks BEGIN {steps} END"
                )


def _waiting_on(web: _Web, moved: Iterable[tuple[_Node | None, _Node | None]]) -> set[str]:
    """Returns the tasks whose dependencies may be satisfied or lost by what moved."""
    concerned: set[str] = set()
    queue: list[str] = []
    for old, new in moved:
        node = new or old
        assert node is not None
        queue += [node.id, *(n.supersedes for n in (old, new) if n is not None and n.supersedes)]
    while queue:
        task = queue.pop()
        if task in concerned:
            continue
        concerned.add(task)
        node = web.get(task)
        if node is not None and node.supersedes:
            queue.append(node.supersedes)
    return {dependent for task in concerned for dependent in web.dependents(task)}


def _sources(web: _Web, moved: Iterable[tuple[_Node | None, _Node | None]]) -> set[str]:
    """Returns the tasks on which others begin or cease to wait directly."""
    found: set[str] = set()
    for old, new in moved:
        node = new or old
        assert node is not None
        if old is None or new is None or _inherits(old) != _inherits(new):
            found |= web.with_heirs((node.id,))
        needs = {*(old.depends_on if old else ()), *(new.depends_on if new else ())}
        found |= web.with_heirs(needs)
    return found


def _inherits(node: _Node) -> tuple[str | None, bool]:
    """Returns what decides for whom this task stands, and who may stand for it."""
    return node.supersedes, node.outcome == "aborted"


def _reach(sources: Iterable[str], waiters: Callable[[str], Sequence[str]]) -> dict[str, int]:
    """Returns for each source, and all behind it, how many wait on it, directly or not.

    Sets are the bits of one number for each group of tasks that hang together; they are made from
    the ends, and dropped once everything in front has taken them over.
    """
    behind = _gathered(sources, waiters)
    before: dict[str, list[str]] = {}
    for task, waiting in behind.items():
        for one in waiting:
            before.setdefault(one, []).append(task)
    bit = _numbered(behind, before)
    left = {task: len(waiting) for task, waiting in behind.items()}
    wanted = {task: len(tasks) for task, tasks in before.items()}
    counts: dict[str, int] = {}
    sets: dict[str, int] = {}
    queue = [task for task, count in left.items() if count == 0]
    while queue:
        task = queue.pop()
        reached = 0
        for one in behind[task]:
            reached |= sets[one] | 1 << bit[one]
            wanted[one] -= 1
            if not wanted[one]:
                del sets[one]
        counts[task] = reached.bit_count()
        if task in wanted:
            sets[task] = reached
        for one in before.get(task, ()):
            left[one] -= 1
            if not left[one]:
                queue.append(one)
    # In or in front of a ring, which only documents made by hand can have.
    for task in behind:
        if task not in counts:
            counts[task] = _walked(task, behind)
    return counts


def _gathered(
    sources: Iterable[str], waiters: Callable[[str], Sequence[str]]
) -> dict[str, Sequence[str]]:
    behind: dict[str, Sequence[str]] = {}
    queue = list(sources)
    while queue:
        task = queue.pop()
        if task not in behind:
            behind[task] = waiters(task)
            queue.extend(behind[task])
    return behind


def _numbered(
    behind: Mapping[str, Sequence[str]], before: Mapping[str, Sequence[str]]
) -> dict[str, int]:
    """Returns a number for each task, counted from 0 in each group that hangs together."""
    numbers: dict[str, int] = {}
    for start in behind:
        if start in numbers:
            continue
        numbers[start] = 0
        count = 1
        queue = [start]
        while queue:
            task = queue.pop()
            for one in (*behind[task], *before.get(task, ())):
                if one not in numbers:
                    numbers[one] = count
                    count += 1
                    queue.append(one)
    return numbers


def _walked(task: str, behind: Mapping[str, Sequence[str]]) -> int:
    seen: set[str] = set()
    queue = list(behind[task])
    while queue:
        one = queue.pop()
        if one not in seen:
            seen.add(one)
            queue.extend(behind[one])
    return len(seen - {task})


def _queues(roles: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """Yields condition and order of each part of the queue that some roles have."""
    if roles is None:
        yield "queue_rank > 0", "queue_rank, priority, blocking DESC, n"
        return
    from gittasks.domain.machine import STAGES

    if "checker" in roles:
        yield (
            "state = 'CHECK' AND open = 1 AND claimed_by IS NULL",
            "priority, blocking DESC, n",
        )
    ranks = {rank for stage in STAGES if stage.role in roles for rank in stage.rank if rank}
    for rank in sorted(ranks):
        yield f"queue_rank = {rank} AND queue_rank > 0", "priority, blocking DESC, n"


def _condition(where: Filter) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    arguments: list[Any] = []
    for column, words in (("state", where.states), ("role", where.roles)):
        if words is not None:
            conditions.append(f"{column} IN ({','.join('?' * len(words))})")
            arguments += words
    if not where.include_closed and "CLOSED" not in (where.states or ()):
        conditions.append("open = 1")
    if where.mine is not None:
        conditions.append("(claimed_by = ? OR assignee = ?)")
        arguments += [where.mine, where.mine]
    for label in where.labels:
        conditions.append("instr(labels, ?) > 0")
        arguments.append(f"\n{label}\n")
    if where.parent is not None:
        conditions.append("parent = ?")
        arguments.append(where.parent)
    if where.roots:
        conditions.append("parent IS NULL")
    if where.blocked is not None:
        conditions.append("open_deps > 0" if where.blocked else "open_deps = 0")
    if where.claimed is not None:
        conditions.append("claimed_by IS NOT NULL" if where.claimed else "claimed_by IS NULL")
    return (f" WHERE {' AND '.join(conditions)}" if conditions else ""), arguments


def _number(task: str) -> int:
    return int(task) if task.isdecimal() else -1


def _utf8(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _meta(db: Connection) -> tuple[str, str]:
    found = db.execute("SELECT tip, tree FROM meta").fetchone()
    if found is None:
        raise sqlite3.DatabaseError("The cache is empty.")
    return cast("tuple[str, str]", found)


def _task(header: str) -> Task:
    from gittasks.domain.frontmatter import from_header_json

    return from_header_json(header)


def _problem(row: tuple[str, str | None, str, str, str]) -> Problem:
    import json

    lines = tuple(cast("tuple[int, str, str, str]", tuple(line)) for line in json.loads(row[4]))
    return Problem(row[0], row[1], row[2], row[3], lines)


def _connect(path: str) -> Connection:
    db = sqlite3.connect(path, _WAIT_SECONDS, 0, None, False)
    db.execute("PRAGMA synchronous = OFF")
    return db


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


def _in_chunks(
    items: Iterable[tuple[str, dict[str, str]]],
) -> Iterator[list[tuple[str, dict[str, str]]]]:
    chunk: list[tuple[str, dict[str, str]]] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
