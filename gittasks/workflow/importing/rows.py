"""JSON, one object a line or a list of them, read so that one bad row does not stop the rest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.workflow.importing.items import Gathering

_TRIES = 20
_BETWEEN = " \t\r\n,[]\ufeff"


def lines(data: bytes, file: str, into: Gathering) -> Iterator[tuple[int, dict[str, Any]]]:
    """Gives the objects of a file with one a line, each with the number of its line."""
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            value = json.loads(raw.decode())
        except UnicodeDecodeError:
            into.fault(
                file, number, "This is not UTF-8; convert it, for example with iconv -t utf-8."
            )
        except (ValueError, RecursionError) as error:
            into.fault(file, number, f"This is no JSON: {_why(error)}; correct the line.")
        else:
            if isinstance(value, dict):
                yield number, value
            else:
                into.fault(file, number, "This is no JSON object; correct the line.")


def objects(data: bytes, file: str, into: Gathering) -> Iterator[tuple[int, dict[str, Any]]]:
    """Gives the objects of lists, of several one after the other, or of lines, with their line.

    What is not UTF-8 comes as halves of characters, so that only its row is lost.
    """
    text = data.decode("utf-8", "surrogateescape")
    read = json.JSONDecoder().raw_decode
    at, row, counted = 0, 1, 0
    while True:
        while at < len(text) and text[at] in _BETWEEN:
            at += 1
        if at == len(text):
            return
        row += text.count("\n", counted, at)
        counted = at
        try:
            value, at = read(text, at)
        except (ValueError, RecursionError) as error:
            why = f"This is no JSON: {_why(error)}; nothing from here on was read. Correct it."
            into.fault(file, row, why)
            return
        if not isinstance(value, dict):
            into.fault(file, row, "This is no JSON object; correct it.")
        elif isinstance(value.get("items"), list):
            for one in value["items"]:
                if isinstance(one, dict):
                    yield row, one
        else:
            yield row, value


def first(data: bytes) -> dict[str, Any] | None:
    """Returns the first object of a file that can be read, whichever way the file holds them."""
    read = json.JSONDecoder().raw_decode
    text = data.decode("utf-8", "replace").lstrip(_BETWEEN)
    for _ in range(_TRIES):
        try:
            value = read(text)[0]
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return value
        text = text.partition("\n")[2].lstrip(_BETWEEN)
    return None


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    deep = isinstance(error, RecursionError)
    return "it is nested too deeply" if deep else "a number in it is too long"
