"""What a field of a document may hold, and how a text is spelled in one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gittasks.domain.errors import Corrupt
from gittasks.domain.ids import is_id
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.task import Draft, Task

DOCUMENT_LIMIT = 4 * 1024 * 1024
"""Documents with more bytes are refused unread."""
DEPENDENCY_LIMIT = 1000
TITLE_LIMIT = 500
NAME_LIMIT = 200
"""Longest name of an artifact or of a key beginning with `x-`."""
COUNT_LIMIT = 10**15
"""Counts stay below this number, so that every JSON reader keeps them exact."""

AUTHOR_STATES = ("DESIGN", "PLAN", "WORK")
DRAFT_STATES = ("DESIGN_REVIEW", "PLAN_REVIEW")
HELD_STATES = ("HELD_DESIGN", "HELD_PLAN", "HELD_WORK")
CLAIM_FIELDS = ("claimed_by", "claim", "claimed_at", "lease_expires")

_SHOWN = 60
_SHOWN_PROBLEMS = 50
_encode = json.JSONEncoder(ensure_ascii=False).encode
_LINE_BREAKS = "\x85\u2028\u2029"
_DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Problem(NamedTuple):
    """One thing wrong with a document: where, in which field, what stands there, and the fix."""

    line: int
    field: str
    value: str
    message: str


class BadDocument(Corrupt):
    """A document that does not verify; `file` and `problems` say all that is wrong with it."""

    def __init__(self, file: str, problems: Sequence[Problem], hint: str | None = None) -> None:
        """Lists every problem on a line of its own."""
        self.file = file
        self.problems = tuple(problems)
        lines = [f"The document {file or '(without a name)'} does not verify."]
        for problem in self.problems[:_SHOWN_PROBLEMS]:
            where = f"line {problem.line}"
            if problem.field:
                where += f", {problem.field}"
            lines.append(f"  {where}: {problem.message}")
        if len(self.problems) > _SHOWN_PROBLEMS:
            lines.append(f"  {len(self.problems) - _SHOWN_PROBLEMS} more problems are not shown.")
        task = id_of_file(file)
        if hint is None:
            hint = "Correct the lines named" + (f" with `git tasks edit {task}`." if task else ".")
        super().__init__("\n".join(lines), hint, task or None)


def id_of_file(file: str) -> str:
    """Returns the id that the name of a document's file spells, or "" if it spells none."""
    name = file.rpartition("/")[2]
    return name[:6] if name[6:] == ".md" and is_id(name[:6]) else ""


def is_dangerous(character: str) -> bool:
    """Tells whether the character may not stand in a header as it is, whoever reads it."""
    return (
        character < " "
        or "\x7f" <= character <= "\x9f"
        or "\ud800" <= character <= "\udfff"
        or character in "\u2028\u2029\ufeff\ufffe\uffff"
    )


def quote(text: str) -> str:
    """Returns the text in double quotes: one line that JSON, YAML 1.1 and YAML 1.2 read alike."""
    quoted = _encode(text)
    if quoted.isprintable():
        return quoted
    return "".join(
        f"\\u{ord(character):04x}"
        if not character.isprintable() and (is_dangerous(character) or character in _DIRECTIONS)
        else character
        for character in quoted
    )


def read_text(raw: str) -> str | None:
    """Returns the text that `quote` spelled so, or None."""
    if len(raw) < 2 or raw[0] != '"' or raw[-1] != '"':
        return None
    inner = raw[1:-1]
    if '"' not in inner and "\\" not in inner:
        return inner
    value = read_json(raw)
    return value if type(value) is str and quote(value) == raw else None


def read_json(raw: str) -> Any:
    """Returns the value of a JSON text, or None if it is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def read_texts(raw: str, check: Callable[[str], bool]) -> tuple[str, ...] | None:
    """Returns the quoted texts of a list in brackets, or None; all have to pass the check."""
    if raw[:2] != '["' or raw[-2:] != '"]':
        return None
    items = raw[2:-2].split('", "')
    if "\\" in raw or any('"' in item for item in items):
        items = read_json(raw)
        if type(items) is not list or not all(type(item) is str for item in items):
            return None
        if f"[{', '.join(map(quote, items))}]" != raw:
            return None
    for item in items:
        if not check(item):
            return None
    return tuple(items)


def shown(text: str) -> str:
    """Returns the text for a message: escaped, and shortened if it is long."""
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return quote(cut)[1:-1]


def has_control(text: str) -> bool:
    """Tells whether the text holds control characters, line breaks or halves of characters."""
    return not text.isprintable() and any(
        character < " "
        or "\x7f" <= character <= "\x9f"
        or "\ud800" <= character <= "\udfff"
        or character in _LINE_BREAKS
        for character in text
    )


def is_title(text: str) -> bool:
    """Tells whether the text is a title: not blank, one line, not too long.

    Control characters are let through: whoever shows a title escapes them.
    """
    if text.isprintable():
        return bool(text.strip()) and len(text) <= TITLE_LIMIT
    one_line = len(text.splitlines()) == 1 and not text.endswith(("\n", "\r"))
    broken = any("\ud800" <= character <= "\udfff" or character == "\0" for character in text)
    return one_line and not broken and bool(text.strip()) and len(text) <= TITLE_LIMIT


def is_text(text: str) -> bool:
    """Tells whether the text is more than blanks."""
    return bool(text) and not text.isspace()


def is_name(text: str) -> bool:
    """Tells whether the text may name an artifact: short, one line, not blank."""
    return bool(text.strip()) and len(text) <= NAME_LIMIT and not has_control(text)


def is_token(text: str) -> bool:
    """Tells whether the text is 32 lower-case hexadecimal digits."""
    return len(text) == 32 and not text.strip("0123456789abcdef")


def is_commit(text: str) -> bool:
    """Tells whether the text is a full object id."""
    return len(text) in (40, 64) and not text.strip("0123456789abcdef")


def is_branch(text: str) -> bool:
    """Tells whether git can take the text for a branch or commit and never for an option."""
    return bool(text) and text[0] != "-" and " " not in text and not has_control(text)


def is_key(text: str) -> bool:
    """Tells whether the text is a position: digits and lower-case letters."""
    return bool(text) and not text.strip("0123456789abcdefghijklmnopqrstuvwxyz")


def is_extra(name: str) -> bool:
    """Tells whether the name is one of the user's own keys: `x-` and what names are made of."""
    rest = name[2:].replace("-", "").replace("_", "").replace(".", "")
    return name[:2] == "x-" and len(name) <= NAME_LIMIT and rest.isalnum() and name.isascii()


def is_time(text: str) -> bool:
    """Tells whether the text is a moment in UTC, such as 2026-11-30T17:17:12Z."""
    if len(text) != 20 or text[4::3] != "--T::Z":
        return False
    digits = text[:4] + text[5::3] + text[6::3]
    if not (digits.isdigit() and digits.isascii()):
        return False
    if text[11:13] > "23" or text[14:16] > "59" or text[17:19] > "59":
        return False
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    if year == 0 or not 1 <= month <= 12 or day == 0:
        return False
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return day <= _MONTH_DAYS[month - 1] + leap


def is_duration(text: str) -> bool:
    """Tells whether the text is a length of time such as 24h, 30m, 90s or 2d, or seconds."""
    number = text[:-1] if text[-1:] in ("s", "m", "h", "d") else text
    return number.isdigit() and number.isascii() and len(number) < 10 and int(number) > 0


def is_version(text: str) -> bool:
    """Tells whether the text is a version: numbers with points between them."""
    return text.isascii() and all(part.isdigit() and len(part) < 10 for part in text.split("."))


def violations(task: Task, size: int) -> list[tuple[tuple[str, ...], str]]:
    """Returns what fields say against each other: the fields concerned, the sentence with the fix.

    `size` is the number of bytes of the body. Every field has to hold a value it may hold.
    """
    found: list[tuple[tuple[str, ...], str]] = []
    state = task.state
    if (state == "BLOCKED") is (task.enters is None):
        found.append(
            (
                ("state", "enters"),
                "A task that is BLOCKED names the state it enters; add enters: WORK."
                if task.enters is None
                else f"Only a task that is BLOCKED enters a state; remove the line, as state is {state}.",
            )
        )
    if (state == "CLOSED") is (task.outcome is None):
        found.append(
            (
                ("state", "outcome"),
                "A task that is CLOSED has an outcome; add outcome: landed or outcome: aborted."
                if task.outcome is None
                else f"Only a task that is CLOSED has an outcome; remove the line, as state is {state}.",
            )
        )
    if (state in HELD_STATES) is (task.held_reason is None):
        found.append(
            (
                ("state", "held_reason"),
                f'A task that is {state} says why; add held_reason: "…".'
                if task.held_reason is None
                else f"Only a held task has a held_reason; remove the line, as state is {state}.",
            )
        )
    claim = (task.claimed_by, task.claim, task.claimed_at, task.lease_expires)
    if None in claim and claim != (None, None, None, None):
        found.append(_half_a_claim(task))
    if task.draft is not None:
        found += _draft_violations(task.draft, state, size)
    if task.depends_on:
        _dependency_violations(task, found)
    for field in ("parent", "supersedes", "follows"):
        if getattr(task, field) == task.id:
            found.append((("id", field), "A task cannot point at itself; remove the line."))
    return found


def _half_a_claim(task: Task) -> tuple[tuple[str, ...], str]:
    missing = [name for name in CLAIM_FIELDS if getattr(task, name) is None]
    present = [name for name in CLAIM_FIELDS if name not in missing]
    return (
        (present[0], *CLAIM_FIELDS),
        f"A claim is told by four fields, all or none; add {', '.join(missing)},"
        f" or remove {', '.join(present)}.",
    )


def _draft_violations(draft: Draft, state: str, size: int) -> list[tuple[tuple[str, ...], str]]:
    if state not in DRAFT_STATES:
        return [(("state", "draft"), f"A task that is {state} has no draft; remove these lines.")]
    if draft.offset > size:
        sentence = (
            f"The draft begins at byte {draft.offset} of a body of {size} bytes;"
            " write the offset where its heading begins."
        )
        return [(("draft",), sentence)]
    return []


def _dependency_violations(task: Task, found: list[tuple[tuple[str, ...], str]]) -> None:
    needed = task.depends_on
    if len(needed) > DEPENDENCY_LIMIT:
        found.append(
            (
                ("depends_on",),
                f"There are {len(needed)} dependencies and at most {DEPENDENCY_LIMIT} are allowed;"
                " put a task between them.",
            )
        )
    if len(set(needed)) < len(needed):
        seen: set[str] = set()
        twice = next(one for one in needed if one in seen or seen.add(one))  # type: ignore[func-returns-value]
        found.append((("depends_on",), f'"{twice}" is named twice; remove one of them.'))
    if task.id in needed:
        found.append((("id", "depends_on"), f'A task cannot depend on itself; remove "{task.id}".'))
