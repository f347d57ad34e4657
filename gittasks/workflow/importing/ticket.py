"""Tickets of `tk`: a folder `.tickets` of Markdown files, each with a header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.workflow.importing import files, headers
from gittasks.workflow.importing.items import (
    Gathering,
    Item,
    Unfit,
    about,
    body,
    line,
    priority,
    text,
    texts,
)

if TYPE_CHECKING:
    from gittasks.workflow.importing.items import Dump

_PLAIN_TYPES = ("task", None)


def find(folder: str) -> str | None:
    """Returns the folder of tickets in a folder, by its path from there."""
    if files.is_folder(folder, ".tickets"):
        return ".tickets"
    return "" if files.base_name(folder) == ".tickets" else None


def read(folder: str, told: str) -> Dump:
    """Returns the tickets of a folder, oldest first."""
    into = Gathering()
    for file, document in files.documents(folder, told, into):
        try:
            into.take(_item(document, file))
        except Unfit as why:
            into.fault(file, 0, str(why))
    into.items.sort(key=lambda item: (item.about.get("created", ""), item.key))
    return into.dump()


def _item(document: str, file: str) -> Item:
    header, below = headers.split(document)
    title, rest = _titled(below)
    kind, status = line(header.get("type"), "type"), line(header.get("status"), "status")
    rank, said = priority(header.get("priority"), {})
    parent = line(header.get("parent"), "parent")
    return Item(
        key=line(header.get("id"), "id") or "",
        title=title,
        file=file,
        body=body(rest),
        labels=(
            *texts(header.get("tags"), "tags"),
            *(() if kind in _PLAIN_TYPES else (text(kind, "type"),)),
        ),
        priority=rank,
        assignee=line(header.get("assignee"), "assignee"),
        needs=texts(header.get("deps"), "deps"),
        parent=parent,
        closed=status == "closed",
        about=about(
            status=None if status in ("open", "closed") else status,
            priority=said,
            reference=line(header.get("external-ref"), "external-ref"),
            created=line(header.get("created"), "created"),
            related=texts(header.get("links"), "links"),
        ),
    )


def _titled(below: str) -> tuple[str, str]:
    """Returns the first heading and the text without it."""
    lines = below.strip("\n").split("\n")
    if not lines[0].startswith("# "):
        raise Unfit("The title is missing; begin the text with a line `# Title`.")
    return lines[0][2:].strip(), "\n".join(lines[1:])
