"""The tables of the read cache."""

from __future__ import annotations

from typing import Any

__all__ = ["COLUMNS", "INDEXES", "TABLES", "VERSION", "storable"]

VERSION = 3
"""What the file says it is made by; one of another version is built anew."""

COLUMNS = (
    "id", "uid", "title", "state", "role", "open", "enters", "outcome", "priority", "position",
    "parent", "supersedes", "claimed_by", "lease_expires", "assignee", "entered_at", "branch",
    "proposed_by", "labels", "blob", "queue_rank", "inbox_rank", "open_deps", "blocking",
)  # fmt: skip
"""What a list of tasks can show; labels come as lines."""

TABLES = """
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
CREATE TABLE quarantine (
    path BLOB PRIMARY KEY, task TEXT, mode TEXT, bad TEXT, good TEXT, since TEXT, reason TEXT)
    WITHOUT ROWID;
CREATE TABLE counts (kind TEXT, value, n INTEGER, PRIMARY KEY (kind, value)) WITHOUT ROWID
"""

# Made after the bulk of the rows.
INDEXES = """
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


def storable(value: Any) -> Any:
    """Returns a value that SQLite takes: halves of characters, which it cannot hold, become `?`.

    The document keeps them; here they would stop every command that reads the rows.
    """
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "replace").decode("utf-8")
