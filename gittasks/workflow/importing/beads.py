"""Issues of beads: JSON lines, as `bd export` writes them and as they lie in `.beads`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gittasks.workflow.importing import files, rows
from gittasks.workflow.importing.items import (
    Gathering,
    Item,
    Unfit,
    about,
    body,
    line,
    place_below,
    priority,
    remark,
    text,
    texts,
)
from gittasks.workflow.importing.items import rows as rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gittasks.workflow.importing.items import Dump

_FILES = ("issues.jsonl", "beads.jsonl")
_NEEDS = ("blocks", "conditional-blocks", "waits-for")
_GONE = ("tombstone",)
_PLAIN_TYPES = ("task", None)


def find(folder: str) -> str | None:
    """Returns the file of a folder that holds the issues, by its path from there."""
    for inner in ("", ".beads"):
        if inner and not files.is_folder(folder, inner):
            continue
        for name in _FILES:
            if os.path.lexists(os.path.join(folder, inner, name)):
                return os.path.join(inner, name)
    return None


def fits(row: Mapping[str, Any]) -> bool:
    """Tells whether a row looks like an issue of beads."""
    return isinstance(row.get("id"), str) and ("issue_type" in row or "status" in row)


def read(data: bytes, file: str) -> Dump:
    """Returns the issues of a file."""
    into = Gathering()
    for number, row in rows.lines(data, file, into):
        if row.get("_type", "issue") != "issue" or row.get("status") in _GONE:
            into.skipped += 1
            continue
        try:
            into.take(_item(row, file, number))
        except Unfit as why:
            into.fault(
                file, number, str(why), row["id"] if isinstance(row.get("id"), str) else None
            )
    place_below(into.items)
    return into.dump()


def _item(row: Mapping[str, Any], file: str, number: int) -> Item:
    key = text(row.get("id"), "id").strip()
    status = line(row.get("status"), "status") or ""
    kind = line(row.get("issue_type"), "issue_type")
    links = _links(row)
    above = links.pop("parent-child", ())
    rank, told = priority(row.get("priority"), {})
    reference = line(row.get("external_ref"), "external_ref")
    closed = status == "closed"
    return Item(
        key=key,
        title=text(row.get("title"), "title"),
        file=file,
        row=number,
        body=_body(row),
        labels=(*texts(row.get("labels"), "labels"), *(() if kind in _PLAIN_TYPES else (kind,))),
        priority=rank,
        assignee=line(row.get("assignee"), "assignee"),
        needs=tuple(name for kind in _NEEDS for name in links.pop(kind, ())),
        parent=above[0] if above else None,
        closed=closed,
        about=about(
            status="" if status in ("open", "closed") else status,
            priority=told,
            url=reference if (reference or "").startswith(("https://", "http://")) else None,
            reference=None if (reference or "").startswith(("https://", "http://")) else reference,
            created=line(row.get("created_at"), "created_at"),
            reason=line(row.get("close_reason"), "close_reason") if closed else None,
            related=tuple(dict.fromkeys(name for names in links.values() for name in names)),
        ),
    )


def _links(row: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Returns the ids an issue points at, by the kind of link."""
    found: dict[str, tuple[str, ...]] = {}
    for one in rows_of(row.get("dependencies"), "dependencies"):
        kind = text(one.get("type"), "type") or "blocks"
        name = text(one.get("depends_on_id"), "depends_on_id").strip()
        if not name:
            raise Unfit("A dependency names nothing; remove it, or give it a depends_on_id.")
        if name not in found.get(kind, ()):
            found[kind] = (*found.get(kind, ()), name)
    return found


def _body(row: Mapping[str, Any]) -> str:
    remarks = [
        remark(
            text(one.get("author"), "author"),
            text(one.get("created_at"), "created_at")[:10],
            text(one.get("text"), "text"),
        )
        for one in rows_of(row.get("comments"), "comments")
    ]
    return body(
        text(row.get("description"), "description"),
        ("Design", text(row.get("design"), "design")),
        ("Acceptance criteria", text(row.get("acceptance_criteria"), "acceptance_criteria")),
        ("Notes", text(row.get("notes"), "notes")),
        ("Comments", "\n\n".join(remarks)),
    )
