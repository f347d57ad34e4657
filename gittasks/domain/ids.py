"""How tasks, claims and positions are spelled."""

from __future__ import annotations

import re

from gittasks.domain.errors import UnknownTask, UsageFault

LAST_ID = 999_999
_SPELLING = re.compile(r"\s*(?:#|(?:[A-Za-z0-9_-]+/)+)?0*([0-9]{1,6})(?:-[0-9a-f]{4})?\s*")
_ID_LENGTH = 6
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def task_id(number: int) -> str:
    """Returns the six-digit spelling of a task number."""
    return f"{number:06d}"


def is_id(text: str) -> bool:
    """Tells whether the text is a stored id: exactly six ASCII digits, not all zero."""
    return len(text) == 6 and text.isascii() and text.isdigit() and text != "000000"


def parse_id(text: str) -> str:
    """Returns the id meant by `42`, `000042`, `#42` or `task/000042`; raises UnknownTask."""
    if not text.strip():
        raise UsageFault("The task id is blank.", "Give a number such as 42.")
    match = _SPELLING.fullmatch(text)
    if match is None or not text.isascii() or int(match[1]) == 0:
        raise UnknownTask(
            f"There is no task {text!r}: a task id is a number such as 42.",
            "Run `git tasks list` to see the tasks.",
        )
    return task_id(int(match[1]))


def folder_of(task: str) -> str:
    """Returns the name of the folder of 100 that holds the task: `0000` for 000042."""
    return task[:4]


def key_between(low: str, high: str) -> str:
    """Returns a short key strictly between two keys, compared as text; "" is an open end.

    Keys are base-36 fractions. An id is itself a key, so the first six digits are kept as those
    of the lower key: a generated key is always longer than an id and there is always room.
    """
    if high and low >= high:
        raise ValueError(f"no key between {low!r} and {high!r}")
    prefix = ""
    position = 0
    while True:
        below = _DIGITS.index(low[position]) if position < len(low) else 0
        above = _DIGITS.index(high[position]) if high and position < len(high) else len(_DIGITS)
        if above - below > 1 and position >= _ID_LENGTH:
            return prefix + _DIGITS[(below + above) // 2]
        prefix += _DIGITS[below]
        if above > below:
            high = ""
        position += 1
