"""Waiting for the inbox: which rows of an answer an earlier one did not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.mcp import reads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gittasks.mcp.desk import Answer, Desk
    from gittasks.workflow.project import Project

Key = tuple[str, int, str]
_UNKNOWN = 4
_BUSY = 75


def known_rows(desk: Desk, since: str | None) -> frozenset[Key] | dict[str, Any]:
    """Returns the rows of an earlier answer, or of now; the envelope of what went wrong else.

    A commit that a sync has replaced by others has left nothing that is known.
    """
    found = desk.ask(_inbox)
    # The past costs more to read than the present, and most have seen the present.
    if "error" not in found and since not in (None, found["ledger"]):
        found = desk.ask(_inbox, at=since)
    if "error" not in found:
        return frozenset(map(_key, found["data"]))
    if since is not None and found["error"]["code"] == _UNKNOWN:
        return frozenset()
    return found


def news(desk: Desk, known: frozenset[Key], *, is_last: bool) -> dict[str, Any] | None:
    """Returns the envelope with the new rows, None where there are none yet."""
    found = desk.ask(_inbox)
    if "error" in found:
        return found if is_last or found["error"]["code"] != _BUSY else None
    rows = [row for row in found["data"] if _key(row) not in known]
    if not rows and not is_last:
        return None
    return {**found, "data": rows, "waiting": len(found["data"]), "timed_out": not rows}


def _inbox(project: Project) -> Answer:
    return reads.inbox_of(project, None)


def _key(row: Mapping[str, Any]) -> Key:
    return row["id"], row["rank"], row["waiting_since"]
