"""Tasks of Backlog.md: a folder `backlog` with one Markdown file a task."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from gittasks.workflow.importing import files, headers
from gittasks.workflow.importing.items import (
    Gathering,
    Item,
    Unfit,
    about,
    body,
    line,
    place_below,
    priority,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gittasks.workflow.importing.items import Dump

_OVER = ("done", "closed", "complete", "completed")
_PLAIN = ("to do", "todo", "open", "")
_RANKS = {"critical": 0, "urgent": 0, "high": 1, "medium": 2, "low": 3}
_FOLDERS = (
    ("tasks", False), ("completed", True), (os.path.join("archive", "tasks"), True),
)  # fmt: skip
"""Where tasks lie, and whether all of them there are over."""
_MARK = re.compile(r"^<!-- (?:SECTION:\w+|AC|DOD|\w+):(?:BEGIN|END) -->\n?", re.MULTILINE)
_KEY = re.compile(r"(?:[A-Za-z]+-)?(\d{1,18}(?:\.\d{1,18})*)")


def find(folder: str) -> str | None:
    """Returns the folder of the backlog in a folder, by its path from there."""
    for inner in ("backlog", ".backlog"):
        if files.is_folder(folder, inner) and files.is_folder(folder, inner, "tasks"):
            return inner
    is_one = files.is_folder(folder, "tasks") and any(
        os.path.lexists(os.path.join(folder, name))
        for name in ("config.yml", "completed", "drafts")
    )
    return "" if is_one else None


def read(folder: str, told: str) -> Dump:
    """Returns the tasks of a backlog in the order of their numbers; drafts are none yet."""
    into = Gathering()
    for inner, is_over in _FOLDERS:
        if not all(files.is_folder(folder, inner[: n.end()]) for n in re.finditer(r"[^/]+", inner)):
            continue
        place = os.path.join(folder, inner)
        for file, document in files.documents(place, os.path.join(told, inner), into):
            try:
                into.take(_item(document, file, is_over=is_over))
            except Unfit as why:
                into.fault(file, 0, str(why))
    drafts = os.path.join(folder, "drafts")
    if files.is_folder(drafts):
        into.skipped += sum(name.endswith(".md") for name in os.listdir(drafts))
    into.items.sort(key=lambda item: _number(item.key) or (0,))
    _spell_alike(into.items)
    place_below(into.items)
    return into.dump()


def _item(document: str, file: str, *, is_over: bool) -> Item:
    header, below = headers.split(document)
    status = line(header.get("status"), "status") or ""
    rank, told = priority(header.get("priority"), _RANKS)
    names = [name.lstrip("@") for name in texts(header.get("assignee"), "assignee")]
    goal, kind = line(header.get("milestone"), "milestone"), line(header.get("type"), "type")
    key = (line(header.get("id"), "id") or "").upper()
    parent = line(header.get("parent_task_id") or header.get("parent"), "parent_task_id")
    return Item(
        key=key,
        title=line(header.get("title"), "title") or "",
        file=file,
        body=body(_MARK.sub("", below)),
        labels=(
            *texts(header.get("labels"), "labels"),
            *((f"milestone:{goal}",) if goal else ()),
            *((kind,) if kind and kind != "task" else ()),
        ),
        priority=rank,
        assignee=next(iter(names), None) or None,
        needs=texts(header.get("dependencies"), "dependencies"),
        parent=parent,
        closed=is_over or status.lower() in _OVER,
        about=about(
            status="" if is_over or status.lower() in (*_OVER, *_PLAIN) else status,
            priority=told,
            created=line(header.get("created_date"), "created_date"),
            assignees=tuple(names[1:]),
            references=texts(header.get("references"), "references"),
        ),
    )


def _number(key: str) -> tuple[int, ...] | None:
    """Returns the number in an id: task-7.02 and BACK-7.2 are the same task."""
    found = _KEY.fullmatch(key)
    return tuple(int(part) for part in found[1].split(".")) if found else None


def _spell_alike(items: list[Item]) -> None:
    """Has links name a task as the task calls itself, whatever prefix and zeros they have."""
    known: Mapping[Any, str] = {_number(item.key) or item.key: item.key for item in items}

    def spelled(name: str) -> str:
        return known.get(_number(name) or name, name.upper())

    for at, item in enumerate(items):
        items[at] = item._replace(
            needs=tuple(dict.fromkeys(map(spelled, item.needs))),
            parent=None if item.parent is None else spelled(item.parent),
        )
