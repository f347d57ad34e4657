"""What the read cache can be asked: tasks, the lists of people and agents, and what is wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gittasks.ledger.cache import Cache
from gittasks.ledger.schema import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from gittasks.domain.task import Task
    from gittasks.ledger.quarantine import Stray

__all__ = ["Filter", "InboxRow", "Problem", "ReadyRow", "Snapshot"]

_CHUNK = 500

_SOUND = "id NOT IN (SELECT task FROM quarantine WHERE task IS NOT NULL)"
"""What nobody can take is not offered: claims of a quarantined task are refused."""

_SORTS = {
    "id": "n",
    "position": "position, n",
    "priority": "priority, n",
    "state": "state, n",
    "entered": "entered_at, n",
    "blocking": "blocking DESC, n",
    "title": "title COLLATE NOCASE, n",
}


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


class Snapshot(Cache):
    """The tasks at the commit of the last `refresh`."""

    __slots__ = ()

    # ------------------------------------------------------------------------------------- tasks

    def task(self, task: str) -> Task | None:
        """Returns the task with this id, None where there is none that verifies."""
        found = self.select("SELECT header FROM documents WHERE n = ?", (_number(task),))
        return _task(found[0][0]) if found else None

    def tasks(self, ids: Iterable[str]) -> list[Task]:
        """Returns the tasks of these ids that exist, in the order asked."""
        wanted = [_number(task) for task in ids]
        found: dict[int, str] = {}
        for at in range(0, len(wanted), _CHUNK):
            part = wanted[at : at + _CHUNK]
            marks = ",".join("?" * len(part))
            found.update(self.select(f"SELECT n, header FROM documents WHERE n IN ({marks})", part))
        return [_task(found[n]) for n in wanted if n in found]

    def all_tasks(self, *, include_closed: bool = True) -> list[Task]:
        """Returns every task, lowest id first."""
        if include_closed:
            rows = self.select("SELECT header FROM documents ORDER BY n")
        else:
            rows = self.select(
                "SELECT header FROM tasks JOIN documents USING (n) WHERE open = 1 ORDER BY n"
            )
        return [_task(row[0]) for row in rows]

    def blob(self, task: str) -> str | None:
        """Returns the blob of the task's document."""
        found = self.select("SELECT blob FROM tasks WHERE n = ?", (_number(task),))
        return found[0][0] if found else None

    def with_uid(self, uid: str) -> str | None:
        """Returns the id of the task with this uid."""
        found = self.select("SELECT id FROM tasks WHERE uid = ? ORDER BY n LIMIT 1", (uid,))
        return found[0][0] if found else None

    def with_branch(self, branch: str) -> str | None:
        """Returns the id of the task that works on a branch, given by its short name."""
        found = self.select("SELECT id FROM tasks WHERE branch = ? ORDER BY n LIMIT 1", (branch,))
        return found[0][0] if found else None

    def with_branches(self, names: Iterable[str]) -> dict[str, str]:
        """Returns the task that has recorded each of these branches, by branch."""
        wanted = list(names)
        found: dict[str, str] = {}
        for at in range(0, len(wanted), _CHUNK):
            part = wanted[at : at + _CHUNK]
            marks = ",".join("?" * len(part))
            rows = self.select(
                f"SELECT branch, id FROM tasks WHERE branch IN ({marks}) ORDER BY n DESC", part
            )
            found.update(rows)
        return found

    def dependents(self, task: str) -> list[str]:
        """Returns the ids of tasks that name the task in `depends_on`, lowest first."""
        rows = self.select("SELECT task FROM deps WHERE dep = ? ORDER BY task", (task,))
        return [row[0] for row in rows]

    def children(self, task: str | None) -> list[str]:
        """Returns the ids of the direct children; of None, the tasks without a parent."""
        rows = self.select("SELECT id FROM tasks WHERE parent IS ? ORDER BY n", (task,))
        return [row[0] for row in rows]

    def superseders(self, task: str) -> list[str]:
        """Returns the ids of tasks that name the task in `supersedes`."""
        rows = self.select("SELECT id FROM tasks WHERE supersedes = ? ORDER BY n", (task,))
        return [row[0] for row in rows]

    def last_id(self) -> int:
        """Returns the highest number in use, be it by a document that does not verify."""
        rows = self.select(
            "SELECT max(n) FROM tasks UNION ALL SELECT CAST(max(id) AS INTEGER) FROM problems"
        )
        return max(row[0] or 0 for row in rows)

    def used_ids(self) -> frozenset[int]:
        """Returns all numbers that mean a task, have meant one, or are those of a bad document."""
        from gittasks.domain.task_graph import numbers_of

        bad = self.select(
            "SELECT id FROM problems WHERE id IS NOT NULL"
            " UNION SELECT task FROM quarantine WHERE task IS NOT NULL"
        )
        tasks = self.all_tasks()
        return frozenset(
            (*(int(row[0]) for row in bad), *(n for task in tasks for n in numbers_of(task)))
        )

    def blocking(self, task: str) -> int:
        """Returns how many open tasks wait on a task, transitively."""
        found = self.select("SELECT blocking FROM tasks WHERE n = ?", (_number(task),))
        return found[0][0] if found else 0

    def open_dependencies(self, task: str) -> int:
        """Returns how many dependencies of an open task are not satisfied."""
        found = self.select("SELECT open_deps FROM tasks WHERE n = ?", (_number(task),))
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
            found = self.select(
                "SELECT queue_rank, priority, blocking, id, state, role, title, assignee,"
                f" entered_at, parent FROM tasks WHERE {where}{own} AND {_SOUND} ORDER BY {sort} LIMIT ?",
                (*arguments, left),
            )
            rows += map(ReadyRow._make, found)
        return rows

    def ready_count(self, roles: Sequence[str] | None = None, assignee: str | None = None) -> int:
        """Returns how many rows `ready` has without a limit."""
        if roles is not None:
            return len(self.ready(roles, None, assignee))
        total = int(
            self.select(
                "SELECT (SELECT coalesce(sum(n), 0) FROM counts"
                " WHERE kind = 'queue_rank' AND value > 0)"
                f" - (SELECT count(*) FROM tasks WHERE queue_rank > 0 AND NOT {_SOUND})"
            )[0][0]
        )
        if assignee is None:
            return total
        others = self.select(
            "SELECT count(*) FROM tasks"
            f" WHERE queue_rank > 0 AND assignee IS NOT NULL AND assignee != ? AND {_SOUND}",
            (assignee,),
        )
        return total - int(others[0][0])

    def expired(self, now: str) -> list[str]:
        """Returns the ids of tasks whose documents name a lease that has run out by then."""
        rows = self.select("SELECT id FROM tasks WHERE lease_expires <= ? ORDER BY n", (now,))
        return [row[0] for row in rows]

    def inbox(
        self, now: str, limit: int | None = None, renewed: Collection[str] = ()
    ) -> list[InboxRow]:
        """Returns what waits for the manager, first to last; `now` as documents spell times.

        `renewed` are ids of tasks whose leases only look expired. What waits for trust in this
        clone is not known here.
        """
        from gittasks.domain.machine import INBOX_LEASE_EXPIRED

        columns = "blocking, entered_at, id FROM tasks"
        expired = self.select(
            f"SELECT {INBOX_LEASE_EXPIRED}, {columns} WHERE lease_expires <= ?", (now,)
        )
        expired = [row for row in expired if row[3] not in renewed]
        most = -1 if limit is None else limit + len(expired)
        rows = self.select(
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

    def claims(self) -> list[tuple[str, str | None, str]]:
        """Returns id, parent and holder of every claimed task, without a look at the others."""
        return self.select(
            "SELECT id, parent, claimed_by FROM tasks INDEXED BY leases"
            " WHERE lease_expires IS NOT NULL ORDER BY n"
        )

    def inbox_count(self, now: str, renewed: Collection[str] = ()) -> int:
        """Returns how many rows `inbox` has without a limit."""
        total = int(
            self.select(
                "SELECT (SELECT coalesce(sum(n), 0) FROM counts"
                " WHERE kind = 'inbox_rank' AND value > 0)"
                " + (SELECT count(*) FROM tasks WHERE lease_expires <= ? AND inbox_rank = 0)",
                (now,),
            )[0][0]
        )
        if not renewed:
            return total
        expired = self.select(
            "SELECT id FROM tasks WHERE lease_expires <= ? AND inbox_rank = 0", (now,)
        )
        return total - sum(row[0] in renewed for row in expired)

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
        return self.select(
            f"SELECT {', '.join(columns)} FROM tasks{condition} ORDER BY {_SORTS[sort]} LIMIT ?",
            (*arguments, -1 if limit is None else limit),
        )

    def count(self, where: Filter | None = None) -> int:
        """Returns how many rows `listing` has with the same filter."""
        condition, arguments = _condition(where or Filter())
        return int(self.select(f"SELECT count(*) FROM tasks{condition}", arguments)[0][0])

    def counts(self) -> dict[str, int]:
        """Returns how many tasks each state has, without those that have none."""
        return dict(self.select("SELECT value, n FROM counts WHERE kind = 'state' AND n > 0"))

    def problems(self) -> tuple[Problem, ...]:
        """Returns the files that could not be used."""
        return tuple(map(_problem, self.select("SELECT * FROM problems ORDER BY path")))

    def problem(self, task: str) -> Problem | None:
        """Returns what is wrong with the document of a task that has none that verifies."""
        found = self.select(
            "SELECT * FROM problems WHERE id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM tasks WHERE id = ?1) ORDER BY path DESC LIMIT 1",
            (task,),
        )
        return _problem(found[0]) if found else None

    def strays(self) -> tuple[Stray, ...]:
        """Returns the paths at which the tree does not count, and why."""
        return tuple(map(_stray, self.select("SELECT * FROM quarantine ORDER BY path")))

    def text(self, path: str) -> bytes | None:
        """Returns a shared file: the settings, the template or a prompt."""
        found = self.select("SELECT data FROM texts WHERE path = ?", (path,))
        return found[0][0] if found else None

    def texts(self, folder: str) -> dict[str, bytes]:
        """Returns the shared files of a folder, by path."""
        rows = self.select(
            "SELECT path, data FROM texts WHERE path > ? AND path < ? ORDER BY path",
            (f"{folder}/", f"{folder}0"),
        )
        return dict(rows)


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


def _task(header: str) -> Task:
    from gittasks.domain.frontmatter import from_header_json

    return from_header_json(header)


def _stray(row: tuple[bytes, str | None, str, str, str | None, str, str]) -> Stray:
    from gittasks.ledger.quarantine import Stray

    path, task, mode, bad, good, commit, reason = row
    return Stray(os.fsdecode(path), task, (mode, bad) if mode else None, good, commit, reason)


def _problem(row: tuple[str, str | None, str, str, str]) -> Problem:
    import json

    lines = tuple(cast("tuple[int, str, str, str]", tuple(line)) for line in json.loads(row[4]))
    return Problem(row[0], row[1], row[2], row[3], lines)
