"""Puts one server into a JSON file of `mcpServers`, and takes it out again, byte for byte.

Nothing but the entry is written, in the style of what stands around it, and the way out follows
from the text alone: no note is kept of what was there. Whether an object was made for the entry
is told by the order of its two fields.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # it is there, and documented nowhere
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "mcpServers"
NAME = "gittasks"
COMMAND = "git"
ARGUMENTS = ["tasks", "mcp"]

_MADE_AROUND = ("command", "args")
_WAS_THERE = ("args", "command")
_SPACE = re.compile(r"[ \t\r\n]*")
_LEAD = re.compile(r"[ \t]*")
_UNIT = re.compile(r"\{\r?\n([ \t]+)")


class CannotEdit(Exception):
    """The file is left alone; the text says why."""


class Member(NamedTuple):
    """One member of an object: its key, and where key and value stand."""

    key: str
    start: int
    value: int
    end: int


class Object(NamedTuple):
    """One object: where its braces stand, and its members."""

    open: int
    close: int
    members: tuple[Member, ...]

    def all(self, key: str) -> list[Member]:
        """Returns the members of this name."""
        return [one for one in self.members if one.key == key]


def whole() -> str:
    """Returns a file that has nothing else."""
    return json.dumps({KEY: {NAME: _value(_MADE_AROUND)}}, indent=2) + "\n"


def state_of(text: str) -> str:
    """Returns whether the entry is there: `none`, `ours`, `same` for another with its command, `other`."""
    servers = _parsed(text).get(KEY, {})
    if not isinstance(servers, dict):
        raise CannotEdit(f"{KEY} is no object in it")
    root, inner = _objects(text)
    if len(root.all(KEY)) > 1 or (inner is not None and len(inner.all(NAME)) > 1):
        raise CannotEdit("it says the same twice")
    if NAME not in servers:
        return "none"
    entry = servers[NAME]
    if entry == _value(_MADE_AROUND):
        return "ours"
    is_same = isinstance(entry, dict) and (entry.get("command"), entry.get("args")) == (
        COMMAND,
        ARGUMENTS,
    )
    return "same" if is_same else "other"


def added(text: str) -> str:
    """Returns the text with the entry, which it does not have yet."""
    root, inner = _objects(text)
    if inner is None:
        new = _into(text, root, lambda lead: _servers(text, lead))
    else:
        new = _into(text, inner, lambda lead: _entry(text, lead, _WAS_THERE))
    if removed(new) != text:
        raise CannotEdit("it is written in a way that could not be restored")
    return new


def removed(text: str) -> str:
    """Returns the text without the entry, and without an object that was made for it."""
    root, inner = _objects(text)
    assert inner is not None
    (entry,) = inner.all(NAME)
    order = tuple(_parsed(text)[KEY][NAME])
    if len(inner.members) == 1 and order == _MADE_AROUND:
        return _out(text, root, root.all(KEY)[0])
    return _out(text, inner, entry)


# What is written.


def _value(order: tuple[str, ...]) -> dict[str, Any]:
    values = {"command": COMMAND, "args": ARGUMENTS}
    return {name: values[name] for name in order}


def _servers(text: str, lead: str | None) -> str:
    if lead is None:
        return f'"{KEY}": {{{_entry(text, None, _MADE_AROUND)}}}'
    line = _line_end(text)
    inside = lead + _unit(text)
    return f'"{KEY}": {{{line}{inside}{_entry(text, inside, _MADE_AROUND)}{line}{lead}}}'


def _entry(text: str, lead: str | None, order: tuple[str, ...]) -> str:
    fields = [f'"{name}": {json.dumps(value)}' for name, value in _value(order).items()]
    if lead is None:
        return f'"{NAME}": {{{", ".join(fields)}}}'
    line = _line_end(text)
    inside = lead + _unit(text)
    joined = f",{line}{inside}".join(fields)
    return f'"{NAME}": {{{line}{inside}{joined}{line}{lead}}}'


def _into(text: str, place: Object, member: Callable[[str | None], str]) -> str:
    """Returns the text with one more member at the end; it gets its indentation, None on one line."""
    line = _line_end(text)
    if place.members:
        last = place.members[-1]
        space = text[place.open + 1 : last.start]
        if len(place.members) > 1:
            space = text[place.members[-2].end : last.start].partition(",")[2]
        new = "," + space + member(space.rpartition("\n")[2] if "\n" in space else None)
        return text[: last.end] + new + text[last.end :]
    at = place.open + 1
    ending = _ending(text, place)
    if text.startswith(ending, at):
        return text[:at] + member(None) + text[at:]
    lead = ending.removeprefix(line) + _unit(text)
    return text[:at] + line + lead + member(lead) + ending + text[at:]


def _out(text: str, place: Object, member: Member) -> str:
    """Returns the text without a member, as it was before `_into`."""
    at = place.members.index(member)
    if at > 0:
        return text[: place.members[at - 1].end] + text[member.end :]
    if len(place.members) > 1:
        return text[: member.start] + text[place.members[1].start :]
    begin, end = place.open + 1, member.end
    ending = _ending(text, place)
    if begin != member.start and text.startswith(ending, end):
        end += len(ending)
    return text[:begin] + text[end:]


# How it is written.


def _ending(text: str, place: Object) -> str:
    """Returns what stands before the closing brace of an object on lines of its own."""
    lead = _LEAD.match(text, text.rfind("\n", 0, place.open) + 1)
    assert lead is not None
    return _line_end(text) + lead[0]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """Returns by how much the file indents."""
    found = _UNIT.search(text)
    return found[1] if found else "  "


# Where it stands.


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise CannotEdit("it is not JSON") from None
    if not isinstance(found, dict):
        raise CannotEdit("it is no JSON object")
    return found


def _objects(text: str) -> tuple[Object, Object | None]:
    """Returns the whole object, and the one of the servers where there is one."""
    root = _object(text, text.index("{"))
    servers = root.all(KEY)
    return root, _object(text, servers[0].value) if servers else None


def _object(text: str, at: int) -> Object:
    """Returns where everything stands in an object that is known to be one."""
    decoder = json.JSONDecoder()
    members = []
    here = _after_space(text, at + 1)
    while text[here] != "}":
        start = here
        key, here = scanstring(text, start + 1, True)
        value = _after_space(text, _after_space(text, here) + 1)
        _, end = decoder.raw_decode(text, value)
        members.append(Member(key, start, value, end))
        here = _after_space(text, end)
        if text[here] == ",":
            here = _after_space(text, here + 1)
    return Object(at, here, tuple(members))


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
