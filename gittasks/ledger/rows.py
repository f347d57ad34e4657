"""Carries documents of the ledger into the tables of the read cache."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, cast

from gittasks.domain import dependencies, machine
from gittasks.domain.fields import BadDocument
from gittasks.domain.frontmatter import header_json, parse
from gittasks.domain.machine import INBOX_ABORTED_DEPENDENCY
from gittasks.domain.task import STATES, Attention
from gittasks.ledger.layout import PROJECT_FILE, is_shared_text, parse_path, task_path
from gittasks.ledger.quarantine import MARK
from gittasks.ledger.schema import COLUMNS, INDEXES, TABLES, storable
from gittasks.ledger.waiting import Node, Web, reach, sources_of, waiting_on
from gittasks.plumbing.objects import FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from sqlite3 import Connection

    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph
    from gittasks.ledger.quarantine import Stray
    from gittasks.plumbing.objects import Reader

__all__ = ["Update"]

_CHUNK = 500
# As many digits of a commit as an event id has.
_EVENT_DIGITS = 32

_COUNTED = ("state", "queue_rank", "inbox_rank")

_DOCUMENT_COLUMNS = (
    "n", *COLUMNS[:20], "queue_rank", "own_rank", "inbox_rank",
)  # fmt: skip
_UPSERT = (
    f"INSERT INTO tasks ({', '.join(_DOCUMENT_COLUMNS)})"
    f" VALUES ({', '.join('?' * len(_DOCUMENT_COLUMNS))})"
    " ON CONFLICT (n) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _DOCUMENT_COLUMNS[1:])
)


class Update:
    """Carries changed files into the tables."""

    def __init__(
        self,
        db: Connection,
        reader: Reader,
        known: Mapping[str, Task] | None = None,
        strays: Mapping[str, Stray] | None = None,
    ) -> None:
        """Works in an open transaction; `known` gives the task of a blob that need not be read.

        `strays` are the paths where the tree does not count; the changes have what does.
        """
        self._db = db
        self._reader = reader
        self._known = known or {}
        self._strays = strays or {}
        self._marks = {stray.task: _mark(stray) for stray in self._strays.values() if stray.task}

    def fill(self, files: Iterable[tuple[str, tuple[str, str] | None]]) -> None:
        """Makes the tables in an empty database, and every row."""

        for statement in TABLES.split(";\n"):
            self._db.execute(statement)
        self._db.executemany(
            "INSERT INTO counts VALUES (?, ?, 0)",
            [("state", s) for s in STATES]
            + [(kind, n) for kind in _COUNTED[1:] for n in range(16)],
        )
        candidates = self._sorted_out(dict(files))
        for rows in _in_chunks(candidates.items()):
            for task, _ in self._chosen(dict(rows)):
                if task is not None:
                    self._put(*task)
        self._keep_strays()
        for statement in INDEXES.split(";\n"):
            self._db.execute(statement)
        web = Web(self._db, whole=True)
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
        before = Web(self._db)
        old = {task: before.get(task) for task in candidates}
        chosen = self._chosen_of_all(candidates)
        moved = [
            (old[task], new) for task in candidates if old[task] != (new := _node(chosen[task]))
        ]
        ends = before.ends(moved)
        for task in candidates:
            found = chosen[task]
            if found is None:
                self._drop(task)
            else:
                self._put(*found)
        self._keep_strays()
        after = Web(self._db)
        # A row written anew has lost what only its neighbours know.
        self._set_open_dependencies(after, {*candidates, *waiting_on(after, moved)})
        steps = None if ends is None else after.steps(moved, ends)
        if steps is None:
            self._set_blocking(after, after.above(sources_of(after, moved)))
        else:
            self._db.executemany(
                "UPDATE tasks SET blocking = blocking + ? WHERE id = ?",
                [(step, task) for task, step in steps.items() if step],
            )

    def _chosen_of_all(
        self, candidates: Mapping[str, dict[str, str]]
    ) -> dict[str, tuple[Task, str] | None]:
        return {
            task: found
            for part in _in_chunks(candidates.items())
            for found, task in self._chosen(dict(part))
        }

    def _sorted_out(
        self, changes: Mapping[str, tuple[str, str] | None]
    ) -> dict[str, dict[str, str]]:
        """Returns for each task concerned the paths that have a document; notes strange files."""

        candidates: dict[str, dict[str, str]] = {}
        for path, now in changes.items():
            self._db.execute("DELETE FROM problems WHERE path = ?", (_utf8(path),))
            place = parse_path(path)
            if place is not None:
                paths = candidates.setdefault(place[0], {})
                if now is not None and now[0] == FILE:
                    paths[path] = now[1]
                    continue
            elif path == PROJECT_FILE or is_shared_text(path):
                self._keep_text(path, now)
                continue
            if now is None:
                continue
            if now[0] != FILE:
                self._note(path, place and place[0], now[1], f"The file {path} is no plain file.")
            elif place is None:
                self._note(path, None, now[1], f"The file {path} does not belong in a ledger.")
        return candidates

    def _keep_text(self, path: str, now: tuple[str, str] | None) -> None:
        self._db.execute("DELETE FROM texts WHERE path = ?", (path,))
        if now is not None and now[0] == FILE:
            data = self._reader.blob(now[1])
            self._db.execute("INSERT INTO texts VALUES (?, ?)", (path, data))
        elif now is not None:
            self._note(path, None, now[1], f"The file {path} is no plain file.")

    def _add_unchanged(
        self, task: str, paths: dict[str, str], changes: Mapping[str, tuple[str, str] | None]
    ) -> None:
        """Adds what the other folder holds under the same number."""

        for closed in (False, True):
            path = task_path(task, closed=closed)
            if path in changes:
                continue
            found = self._db.execute(
                "SELECT blob FROM tasks WHERE n = ?1 AND open = ?2"
                " UNION ALL SELECT oid FROM problems WHERE path = ?3",
                (int(task), int(not closed), path),
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

        self._db.execute(
            "INSERT OR REPLACE INTO problems VALUES (?, ?, ?, ?, ?)",
            (_utf8(path), task, oid, storable(message), json.dumps(lines)),
        )

    def _keep_strays(self) -> None:
        self._db.execute("DELETE FROM quarantine")
        for stray in self._strays.values():
            mode, bad = stray.bad or ("", "")
            self._db.execute(
                "INSERT INTO quarantine VALUES (?, ?, ?, ?, ?, ?, ?)",
                (os.fsencode(stray.path), stray.task, mode, bad, stray.good, stray.commit,
                 storable(stray.reason)),
            )  # fmt: skip
            self._note(stray.path, stray.task, bad, stray.words)

    def _put(self, task: Task, blob: str) -> None:

        if task.id in self._marks:
            task = task._replace(attention=(*task.attention, self._marks[task.id]))
        number = int(task.id)
        own_rank = machine.inbox_rank(task)
        labels = "\n".join(("", *task.labels, "")) if task.labels else ""
        self._db.execute(
            _UPSERT,
            tuple(map(storable, (
                number, task.id, task.uid, task.title, task.state, machine.STAGE[task.state].role,
                int(task.is_open), task.enters, task.outcome, task.priority, task.sort_key,
                task.parent, task.supersedes, task.claimed_by, task.lease_expires, task.assignee,
                task.entered_at, task.branch, task.proposed_by, labels, blob,
                machine.queue_rank(task), own_rank, own_rank,
            ))),
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
        self._db.execute("DELETE FROM tasks WHERE n = ?", (int(task),))
        self._db.execute("DELETE FROM documents WHERE n = ?", (int(task),))
        self._db.execute("DELETE FROM deps WHERE task = ?", (task,))

    def _set_open_dependencies(self, web: Web, tasks: Iterable[str]) -> None:

        graph = cast("Graph", web)
        rows = []
        for task in tasks:
            node = web.get(task)
            if node is None:
                continue
            waits = node.is_open and bool(node.depends_on)
            still = len(dependencies.open_dependencies(graph, node.depends_on)) if waits else 0
            lost = still > 0 and bool(dependencies.aborted_dependencies(graph, node.depends_on))
            rows.append((still, int(lost), int(task)))
        self._db.executemany(
            "UPDATE tasks SET open_deps = ?1, inbox_rank = CASE"
            f" WHEN ?2 AND state = 'BLOCKED' AND (own_rank = 0 OR own_rank > {INBOX_ABORTED_DEPENDENCY})"
            f" THEN {INBOX_ABORTED_DEPENDENCY} ELSE own_rank END WHERE n = ?3",
            rows,
        )

    def _set_blocking(self, web: Web, tasks: Iterable[str]) -> None:

        graph = cast("Graph", web)
        counted = reach(tasks, lambda task: dependencies.waiters(graph, task))
        self._db.executemany(
            "UPDATE tasks SET blocking = ?1 WHERE n = ?2 AND blocking != ?1",
            [(count, int(task)) for task, count in counted.items()],
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


def _mark(stray: Stray) -> Attention:
    words = f"the commit {stray.commit[:12]} is not valid: {stray.reason}"
    return Attention(stray.commit[:_EVENT_DIGITS], MARK, words)


def _node(chosen: tuple[Task, str] | None) -> Node | None:
    if chosen is None:
        return None
    task = chosen[0]
    needs = tuple(sorted(set(task.depends_on)))
    return Node(task.id, task.is_open, task.is_landed, task.outcome, task.supersedes, needs)


def _utf8(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


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
