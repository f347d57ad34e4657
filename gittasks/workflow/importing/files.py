"""Reads what the user points at: bounded, and inside a folder only plain files, no links."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from gittasks.domain.errors import UsageFault
from gittasks.domain.fields import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.workflow.importing.items import Gathering

DUMP_LIMIT = 64 * 1024 * 1024
"""Files that hold many tasks are refused when they have more bytes."""
FILE_LIMIT = 4 * 1024 * 1024
"""Files that hold one task are refused when they have more bytes."""


class Unreadable(Exception):
    """A file that is not read; the words say why."""


def whole(path: str) -> bytes:
    """Returns the bytes of a file that holds many tasks; raises UsageFault where it cannot."""
    try:
        with open(path, "rb") as file:
            data = file.read(DUMP_LIMIT + 1)
    except OSError as error:
        raise UsageFault(
            f"The file {shown(path)} cannot be read: {error.strerror}.",
            "Name a readable file or folder, or -.",
        ) from error
    require_small(data, path)
    return data


def require_small(data: bytes, name: str) -> None:
    """Refuses more bytes than a file of many tasks may have."""
    if len(data) > DUMP_LIMIT:
        raise UsageFault(
            f"{shown(name)} is longer than {DUMP_LIMIT >> 20} MiB.",
            "Split it: what was imported before is known again, and links to it hold.",
        )


def inside(folder: str, name: str, limit: int = FILE_LIMIT) -> bytes:
    """Returns the bytes of a file of a folder; raises Unreadable for what is no plain file."""
    path = os.path.join(folder, name)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if os.path.islink(path):
            raise Unreadable(
                "This is a link, and links are not followed; put the file itself here."
            ) from None
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from None
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unreadable("This is no plain file; remove it.")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Unreadable(f"The file is longer than {limit >> 20} MiB; shorten it.")
    return data


def documents(folder: str, told: str, into: Gathering) -> Iterator[tuple[str, str]]:
    """Gives the Markdown files of a folder, by name: how to call each, and its text."""
    for name in _names(folder):
        called = os.path.join(told, name)
        try:
            data = inside(folder, name)
        except Unreadable as why:
            into.fault(called, 0, str(why))
            continue
        try:
            yield called, data.removeprefix(b"\xef\xbb\xbf").decode()
        except UnicodeDecodeError as error:
            row = data.count(b"\n", 0, error.start) + 1
            into.fault(
                called, row, "This is not UTF-8; convert it, for example with iconv -t utf-8."
            )


def _names(folder: str) -> list[str]:
    try:
        found = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in found if name.endswith(".md"))


def is_folder(*parts: str) -> bool:
    """Tells whether there is a folder at a path, itself and not by a link."""
    path = os.path.join(*parts)
    return os.path.isdir(path) and not os.path.islink(path)


def base_name(folder: str) -> str:
    """Returns the last name of a path, also of `.` and of one that ends in a slash."""
    return os.path.basename(os.path.realpath(folder))
