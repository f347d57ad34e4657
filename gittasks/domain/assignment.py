"""The text an agent is given, what it may change in it, and how a change is repaired.

`ASSIGNMENT.md` is the task's body; an author's ends in the empty heading of the one section that
its role writes. The own heading is the one the dispatch added: it is known by its place, never
found by searching. Line endings are normalised before anything is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import UsageFault
from gittasks.domain.task_graph import gap
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from gittasks.domain.machine import Stage


class Dispatched(NamedTuple):
    """The assignment as handed out: its text, and where the own heading begins, if there is one."""

    text: bytes
    offset: int | None = None
    heading: str | None = None


class Reading(NamedTuple):
    """What came back: the own section with its heading, and the repaired text if it was changed."""

    section: bytes | None = None
    repaired: bytes | None = None


def dispatch(body: bytes, stage: Stage) -> Dispatched:
    """Returns the assignment for a stage: the body, for authors with their empty heading."""
    if stage.heading is None:
        return Dispatched(body)
    above = body + gap(body)
    return Dispatched(above + f"{stage.heading}\n\n".encode(), len(above), stage.heading)


def read_back(given: Dispatched, live: bytes) -> Reading:
    """Returns what was written under the own heading, and a repaired text if more was changed."""
    expected, found = _normalised(given.text), _normalised(live)
    if given.offset is None or given.heading is None:
        same = expected.rstrip() == found.rstrip()
        return Reading(repaired=None if same else given.text)
    above = _normalised(given.text[: given.offset])
    heading = given.heading.encode()
    if found.startswith(above):
        line, _, rest = found[len(above) :].partition(b"\n")
        if line.rstrip() == heading:
            return Reading(section_of(given.heading, rest))
        kept = _without_heading(found[len(above) :], heading)
    else:
        kept = _own_text(expected, found, heading)
    repaired = given.text + (kept.strip(b"\n") + b"\n" if kept.strip() else b"")
    return Reading(section_of(given.heading, kept), repaired)


def section_of(heading: str, text: bytes) -> bytes | None:
    """Returns heading and text as they are appended to a body, None when the text is blank."""
    own = _normalised(text)
    if own.lstrip().startswith(heading.encode() + b"\n"):
        own = own.lstrip()[len(heading) :]
    if not own.strip():
        return None
    return heading.encode() + b"\n\n" + own.strip(b"\n").rstrip() + b"\n"


def chosen_section(heading: str, given: bytes | None, written: bytes | None) -> bytes | None:
    """Returns the section to submit: the one given with the command, else the one in the file.

    Raises UsageFault when both are there and differ: one of them would be lost.
    """
    if given is None:
        return written
    section = section_of(heading, given)
    if section is None:
        raise UsageFault(f"The text given for {heading} is blank.", "Give some text.")
    if written is not None and written != section:
        raise UsageFault(
            f"ASSIGNMENT.md has another text under {heading} than the one given.",
            "Leave -m and -F out to submit the file, or remove the text from the file.",
        )
    return section


def begins_with(text: bytes, former: bytes) -> bool:
    """Tells whether everything of a former assignment stands at the beginning of a text."""
    return _normalised(text).startswith(_normalised(former).rstrip())


def _normalised(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _own_text(expected: bytes, found: bytes, heading: bytes) -> bytes:
    """Returns what follows the own heading in a text whose upper part was changed.

    The own heading is the last of its kind in the dispatched text, so it is the one with the same
    ordinal in the changed text; where earlier ones were deleted, the last one that is left. Where
    none is left, all from the first changed line on is kept: rather too much than too little.
    """
    given = [line.rstrip() for line in expected.split(b"\n")]
    lines = found.split(b"\n")
    places = [n for n, line in enumerate(lines) if line.rstrip() == heading]
    if places:
        first = places[min(given.count(heading), len(places)) - 1] + 1
    else:
        pairs = zip(given, lines, strict=False)
        first = next((n for n, (old, new) in enumerate(pairs) if old != new.rstrip()), len(lines))
    return b"\n".join(lines[first:])


def _without_heading(own: bytes, heading: bytes) -> bytes:
    """Returns what stands where the own part has to, without the heading that moved or changed."""
    lines = own.split(b"\n")
    place = next((n for n, line in enumerate(lines) if line.rstrip() == heading), None)
    if place is None and lines[0].startswith(b"#") and lines[0].lstrip(b"#")[:1] in (b"", b" "):
        place = 0
    return own if place is None else b"\n".join(lines[:place] + lines[place + 1 :])
