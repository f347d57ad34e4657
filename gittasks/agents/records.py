"""Reads the JSON lines that agent programs write; nothing in them has to be as it should.

Whatever is missing or of another kind reads as nothing: an empty record, an empty text, zero.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Record = dict[str, Any]
"""An object of JSON."""

_LONGEST_TARGET = 1000
_LONGEST_KEY = 20_000

# By which argument a call is told from others, the most telling one first.
_TELLING = ("command", "cmd", "file_path", "path", "pattern", "query", "url")


def record_of(line: bytes) -> Record:
    """Returns the record of a line; a line that is none is empty."""
    if not line.lstrip().startswith(b"{"):
        return {}
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def line_of(record: Mapping[str, object]) -> bytes:
    """Returns the line that says a record."""
    return json.dumps(record).encode() + b"\n"


def part(record: Mapping[str, Any], *names: str) -> Record:
    """Returns the record inside a record, each name one step further in."""
    found: Any = record
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def parts(record: Mapping[str, Any], name: str) -> Iterator[Record]:
    """Yields the records of a list."""
    found = record.get(name)
    if isinstance(found, list):
        yield from (one for one in found if isinstance(one, dict))


def text(record: Mapping[str, Any], name: str) -> str:
    """Returns a text."""
    found = record.get(name)
    return found if isinstance(found, str) else ""


def amount(record: Mapping[str, Any], *names: str) -> float:
    """Returns the sum of numbers, each of which can be an amount of something."""
    return sum(_amount(record.get(name)) for name in names)


def count(record: Mapping[str, Any], *names: str) -> int:
    """Returns the sum of whole numbers."""
    return int(amount(record, *names))


def _amount(found: object) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return 0
    return found if 0 <= found <= 1e15 else 0


def target_of(arguments: Mapping[str, Any]) -> str:
    """Returns the command or the file of a tool call."""
    for name in (*_TELLING, *arguments):
        found = text(arguments, name)
        if found:
            return found[:_LONGEST_TARGET]
    return ""


def key_of(arguments: object) -> str:
    """Returns a text that is the same for equal arguments of a tool call."""
    try:
        return json.dumps(arguments, sort_keys=True)[:_LONGEST_KEY]
    except (ValueError, TypeError, RecursionError):
        return ""


def plain(words: str) -> str:
    """Returns a prompt that no program takes for a command, an option or a memory of its own."""
    return f"Note: {words}" if words.lstrip().startswith(("/", "-", "!", "#")) else words


def new_uuid() -> str:
    """Returns a random UUID."""
    octets = bytearray(os.urandom(16))
    octets[6] = octets[6] & 0x0F | 0x40
    octets[8] = octets[8] & 0x3F | 0x80
    digits = octets.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
