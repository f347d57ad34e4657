"""Which tool something comes from, and how to read it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from gittasks.domain.errors import UsageFault
from gittasks.domain.fields import shown
from gittasks.workflow.importing import (
    backlog_md,
    beads,
    exported,
    files,
    github,
    rows,
    ticket,
)
from gittasks.workflow.importing.items import Dump, Gathering

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Source = Literal["beads", "backlog", "ticket", "github", "gittasks"]

TITLES: Mapping[Source, str] = {
    "beads": "beads",
    "backlog": "Backlog.md",
    "ticket": "ticket",
    "github": "GitHub",
    "gittasks": "git tasks",
}
"""The sources there are, and what they call themselves."""

_ROWS: Mapping[
    Source, tuple[Callable[[Mapping[str, object]], bool], Callable[[bytes, str], Dump]]
] = {
    "beads": (beads.fits, beads.read),
    "github": (github.fits, github.read),
    "gittasks": (exported.fits, exported.read),
}
_FOLDERS: Mapping[Source, Callable[[str], str | None]] = {
    "beads": beads.find,
    "backlog": backlog_md.find,
    "ticket": ticket.find,
}


def read(
    path: str, told: str, source: Source | None = None, data: bytes | None = None
) -> tuple[Source, Dump]:
    """Returns where something comes from and what it holds; `data` is what stands in stdin.

    `told` is how the user called it. Raises UsageFault where the source is not plain.
    """
    if data is None and os.path.isdir(path):
        return _folder(path, told, source)
    if source in ("backlog", "ticket"):
        raise UsageFault(
            f"{shown(told)} is no folder, and {TITLES[source]} keeps its tasks in one.",
            "Name that folder, or the one it stands in.",
        )
    if data is None:
        data = files.whole(path)
    else:
        files.require_small(data, told)
    if source is None:
        first = rows.first(data)
        fitting: list[Source] = [
            name for name, (fits, _) in _ROWS.items() if first is not None and fits(first)
        ]
        source = _only(fitting, told)
    return source, _ROWS[source][1](data, told)


def _folder(path: str, told: str, source: Source | None) -> tuple[Source, Dump]:
    found: dict[Source, str] = {}
    for name, find in _FOLDERS.items():
        inner = find(path)
        if inner is not None:
            found[name] = inner
    if source is None:
        source = _only(list(found), told)
    if source == "ticket":
        # Its folder may have any name.
        found.setdefault(source, "")
    if source not in found:
        raise UsageFault(
            f"There is nothing of {TITLES[source]} in {shown(told)}.",
            "Name the file it has written."
            if source in _ROWS
            else "Name the folder in which it keeps its tasks.",
        )
    inner = found[source]
    place, called = _below(path, inner), _below(told, inner)
    if source == "ticket":
        return source, ticket.read(place, called)
    if source == "backlog":
        return source, backlog_md.read(place, called)
    try:
        data = files.inside(path, inner, files.DUMP_LIMIT)
    except files.Unreadable as why:
        into = Gathering()
        into.fault(called, 0, str(why))
        return source, into.dump()
    return source, _ROWS[source][1](data, called)


def _below(folder: str, inner: str) -> str:
    if not inner:
        return folder
    return inner if folder == "." else os.path.join(folder, inner)


def _only(fitting: Sequence[Source], told: str) -> Source:
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = " or ".join(f"--from {name}" for name in fitting)
        titles = " and ".join(TITLES[name] for name in fitting)
        raise UsageFault(f"{shown(told)} holds tasks of {titles}.", f"Give {names}.")
    raise UsageFault(
        f"{shown(told)} looks like nothing that can be imported.",
        f"Give --from and one of {', '.join(TITLES)}, and name what it has written.",
    )
