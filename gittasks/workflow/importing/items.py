"""What every source is read into: items that may become tasks, and the faults of those that cannot.

A source names its tasks by keys of its own. Nothing here knows the ledger.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain import machine
from gittasks.domain.fields import DOCUMENT_LIMIT, TITLE_LIMIT, is_text, is_title, shown
from gittasks.domain.task import PRIORITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_HEADER_ROOM = 512 * 1024
_FIELDS_LIMIT = 64 * 1024
_KEY_LIMIT = 200


class Unfit(Exception):
    """A row that cannot become a task; the words say why, and what to do about it."""


class Fault(NamedTuple):
    """One row that was left out: its file, line (0 for all of it) and key, and the sentence."""

    file: str
    row: int
    key: str | None
    message: str


class Item(NamedTuple):
    """One task as its source tells it; links are keys of the same source."""

    key: str
    title: str
    file: str = ""
    row: int = 0
    body: str = ""
    labels: tuple[str, ...] = ()
    priority: int = PRIORITY
    assignee: str | None = None
    checks: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    parent: str | None = None
    follows: str | None = None
    closed: bool = False
    about: Mapping[str, Any] = {}
    """What is kept besides, by the name that follows `x-imported-`."""
    extra: tuple[tuple[str, str], ...] = ()
    """Keys beginning with `x-` as they stood in a document."""
    uid: str | None = None
    """What the task is known by everywhere, where the source says so."""
    loose: bool = False
    """Whether a link to what the source does not hold is no fault."""


class Dump(NamedTuple):
    """All that was read: items in the order of the source, faults, and how much was no task."""

    items: Sequence[Item]
    faults: Sequence[Fault]
    skipped: int = 0


class Gathering:
    """Items and faults as they are found, one row at a time."""

    def __init__(self) -> None:
        """Starts empty."""
        self.items: list[Item] = []
        self.faults: list[Fault] = []
        self.skipped = 0

    def take(self, item: Item) -> None:
        """Keeps an item, or the fault of one that cannot become a task."""
        why = objection(item)
        if why is None:
            self.items.append(item)
        else:
            self.fault(item.file, item.row, why, item.key)

    def fault(self, file: str, row: int, message: str, key: str | None = None) -> None:
        """Keeps what is wrong with a row."""
        self.faults.append(Fault(file, row, key, message))

    def dump(self) -> Dump:
        """Returns all that was found."""
        return Dump(self.items, self.faults, self.skipped)


def objection(item: Item) -> str | None:
    """Returns why an item cannot become a task, None where it can."""
    if not item.key.strip() or len(item.key) > _KEY_LIMIT or not item.key.isprintable():
        return "The id is blank, too long, or no plain text; correct it."
    title = item.title.strip()
    if not title:
        return "The title is missing; give it one."
    if len(title) > TITLE_LIMIT:
        return (
            f"The title has {len(title)} characters, and {TITLE_LIMIT} are allowed;"
            " put the rest into the text."
        )
    if not is_title(title):
        return "The title has more than one line, or letters that are none; correct it."
    if not all(map(is_encodable, _strings(item))):
        return "There is a text that is not UTF-8; convert it, for example with iconv -t utf-8."
    for name in ("labels", "priority", "checks", "assignee"):
        if not machine.is_value(name, getattr(item, name)):
            return f"The field {name} holds what it cannot; correct it."
    if sum(map(len, _strings(item._replace(body="")))) > _FIELDS_LIMIT:
        return "The fields beside the text are too long; shorten them."
    if len(bytes_of(item)) > DOCUMENT_LIMIT - _HEADER_ROOM:
        return "The text is longer than a document may be; shorten it."
    return None


def bytes_of(item: Item) -> bytes:
    """Returns the body as a document holds it."""
    return item.body.encode("utf-8", "surrogateescape")


def _strings(item: Item) -> Iterable[str]:
    # What a ledger has written is as its bytes are.
    yield from (item.title, "" if item.uid else item.body)
    yield from (item.assignee or "", item.parent or "", item.follows or "")
    yield from (*item.labels, *item.needs, *item.checks)
    for value in item.about.values():
        yield from (value,) if isinstance(value, str) else value
    yield from (told for _, told in item.extra)


def is_encodable(text: str) -> bool:
    """Tells whether a text holds whole characters only."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def place_below(items: list[Item]) -> None:
    """Has an item such as x-7.2 stand below x-7, where that is there and nothing else is said."""
    keys = {item.key for item in items}
    for at, item in enumerate(items):
        above = item.key.rpartition(".")[0]
        if item.parent is None and above in keys:
            items[at] = item._replace(parent=above)


# What rows hold, in whatever shape a source has left it.


def text(value: Any, name: str) -> str:
    """Returns a text, "" where nothing is said; raises Unfit for anything else."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise Unfit(f"The field {name} is no text, but {_told(value)}; correct it.")


def line(value: Any, name: str) -> str | None:
    """Returns a text on one line, None where nothing is said."""
    return " ".join(text(value, name).split()) or None


def texts(value: Any, name: str) -> tuple[str, ...]:
    """Returns the lines of a list without blanks and repetitions; one text alone is a list, too."""
    if value is None:
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list):
        raise Unfit(f"The field {name} is no list, but {_told(value)}; correct it.")
    found = [line(one, name) for one in values]
    return tuple(dict.fromkeys(one for one in found if one is not None and is_text(one)))


def rows(value: Any, name: str) -> list[dict[str, Any]]:
    """Returns the objects of a list."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise Unfit(f"The field {name} is no list of objects; correct it.")
    return value


def priority(value: Any, words: Mapping[str, int]) -> tuple[int, str | None]:
    """Returns a priority, and what was said where that is none of ours."""
    if value is None or value == "":
        return PRIORITY, None
    told = (value if isinstance(value, str) else _told(value)).strip()[:_KEY_LIMIT]
    number = words.get(told.lower())
    if number is None and type(value) is not bool and re.fullmatch(r"[Pp]?[0-4]", told):
        number = int(told[-1])
    return (PRIORITY, " ".join(told.split()) or None) if number is None else (number, None)


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    # What aliases make of a small header may be endless when it is written out.
    return "a list" if isinstance(value, list) else shown(repr(value)[:80])


# Bodies.


def body(intro: str, *sections: tuple[str, str]) -> str:
    """Returns a text and the sections after it that say something."""
    parts = [intro] + [
        f"## {heading}\n\n{told.strip()}" for heading, told in sections if told.strip()
    ]
    whole = "\n\n".join(part.strip("\n") for part in parts if part.strip())
    return (plain(whole).rstrip() + "\n") if whole else ""


def remark(author: str, when: str, said: str) -> str:
    """Returns one comment, quoted, so that no heading in it ends the section it stands in."""
    head = ", ".join(part for part in (author, when) if part) or "somebody"
    quoted = "\n".join(f"> {one}".rstrip() for one in plain(said).strip().split("\n"))
    return f"### {head}\n\n{quoted}"


def plain(said: str) -> str:
    """Returns a text with the line ends that documents have."""
    return said.replace("\r\n", "\n").replace("\r", "\n")


def about(**told: Any) -> dict[str, Any]:
    """Returns what is kept besides, without what was not said; names have - where Python has _."""
    return {name.replace("_", "-"): value for name, value in told.items() if value}
