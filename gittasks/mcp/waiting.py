"""Waiting for the inbox: which rows of an answer an earlier one did not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.mcp import reads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gittasks.mcp.desk import Desk

Key = tuple[str, int, str]
_UNKNOWN = 4
_BUSY = 75


def known_rows(desk: Desk, since: str | None) -> frozenset[Key] | dict[str, Any]:
    """Returns the rows of an earlier answer, or of now; the envelope of what went wrong else.

    A commit that a sync has replaced by others has left nothing that is known.
    """
    options: dict[str, Any] = {} if since is None else {"at": since}
    found = desk.ask(lambda project: reads.inbox_of(project, None), **options)
    if "error" not in found:
        return frozenset(map(_key, found["data"]))
    if since is not None and found["error"]["code"] == _UNKNOWN:
        return frozenset()
    return found


def news(desk: Desk, known: frozenset[Key], *, is_last: bool) -> dict[str, Any] | None:
    """Returns the envelope with the new rows, None where there are none yet."""
    found = desk.ask(lambda project: reads.inbox_of(project, None))
    if "error" in found:
        return found if is_last or found["error"]["code"] != _BUSY else None
    rows = [row for row in found["data"] if _key(row) not in known]
    if not rows and not is_last:
        return None
    return {**found, "data": rows, "waiting": len(found["data"]), "timed_out": not rows}


def _key(row: Mapping[str, Any]) -> Key:
    return row["id"], row["rank"], row["waiting_since"]
