"""An event as the message of a commit, and back.

A message has a subject for people, free text if somebody said something, and one paragraph of
trailers that suffices for every field of the document's header:

```
000042 submit WORK -> CHECK (worker pi-2)

    What the speaker remarked, each line indented by four blanks.

Event: submit
Event-Id: 5f0c3b0e6f1d4a7c9b1de0a3c4f52d11
Event-Version: 1
Task: 000042
Uid: 0b9f5d3f2f5c4c0e8c4f4b7b3f1a9d10
From: WORK
To: CHECK
Role: worker
Actor: pi-2
Claim: 77d0c2f8a1f04a57b4f5d1f3e9a6b8c2
Revision: 3f1c…
Commit: 9a4e…
Host: 1f6b2c3d
Document: 8be0…
Data: {"remark":"…"}
```

| trailer | meaning |
|---|---|
| `Event` | what happened, one word |
| `Event-Id` | 128 random bits: tells equal events apart and the same event again |
| `Event-Version` | the version of this format |
| `Task`, `Uid` | the task's number and the id it keeps for life |
| `From`, `To` | the states before and after; `From: -` when the task begins |
| `Role`, `Actor` | who spoke, and as what |
| `Claim` | the claim under which it was said |
| `Revision` | the blob of the document that was acted on |
| `Commit` | the tip of the work, or the commit that landed |
| `Host` | a random id of the clone |
| `Document` | the blob that the event wrote |
| `Data` | one line of JSON: what the event changed |
| `Replayed-From` | the commit of which this one is a repetition on another parent |

Trailers stand in this order, each at most once, and without value they are left out. `Event`,
`Event-Id`, `Event-Version`, `Role`, `Actor` and `Host` are always there; events about a task also
have `Task`, `Uid`, `From` and `To`. A
`rejected` event names its task where that exists. A value that is empty, begins or ends with a blank, begins
with a quote or holds characters that are not plain text is written as a JSON string. In the free
text such characters are written as `\\u` and four digits, with a backslash more in front of
whatever looks like that already. So no text can pass for a trailer, and every event comes back
exactly as it went in.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from gittasks.domain.errors import Corrupt
from gittasks.domain.events import (
    EVENT_VERSION,
    PROJECT_KINDS,
    Event,
    EventRole,
    change_from,
    data_of,
)
from gittasks.domain.ids import is_id
from gittasks.domain.task import ROLES, STATES, State
from gittasks.ledger.layout import MESSAGE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TRAILERS", "decode", "encode", "event_ids", "subject"]

TRAILERS = (
    "Event",
    "Event-Id",
    "Event-Version",
    "Task",
    "Uid",
    "From",
    "To",
    "Role",
    "Actor",
    "Claim",
    "Revision",
    "Commit",
    "Host",
    "Document",
    "Data",
    "Replayed-From",
)
_ALWAYS = ("Event", "Event-Id", "Event-Version", "Role", "Actor", "Host")
_OF_A_TASK = ("Task", "Uid", "From", "To")
_SPEAKERS = (*ROLES, "tool", "operator", "none")
_SUBJECT_LIMIT = 72
_ORDER = {name: number for number, name in enumerate(TRAILERS)}

# What a terminal or a reader could take for more than text: controls, halves of characters,
# changes of direction, invisible line ends.
_ODD = "\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
# Compiled where they are needed: none of these characters counts as printable.
_ODD_CHARACTER = f"[{_ODD}\t\n]"
_TO_ESCAPE = rf"(\\*)([{_ODD}])|(\\+)(?=u[0-9a-f]{{4}})"
_ESCAPED = r"(\\+)u([0-9a-f]{4})"


def encode(event: Event, document: str | None = None, replayed_from: str | None = None) -> bytes:
    """Returns the message; `document` is the blob written, if it differs from the event's own."""
    is_task = event.is_about_a_task
    if is_task and None in (event.task, event.uid, event.target):
        raise ValueError(f"An event {event.kind} is about a task and names task, uid and state.")
    data = data_of(event.change)
    values = {
        "Event": event.kind,
        "Event-Id": event.event_id,
        "Event-Version": str(EVENT_VERSION),
        "Task": event.task,
        "Uid": event.uid,
        "From": (event.source or "-") if is_task else None,
        "To": event.target,
        "Role": event.role,
        "Actor": event.actor,
        "Claim": event.claim,
        "Revision": event.revision,
        "Commit": event.commit,
        "Host": event.host,
        "Document": document or event.document,
        "Data": None if data == "{}" else data,
        "Replayed-From": replayed_from,
    }
    lines = [subject(event), ""]
    if event.text:
        lines += ["    " + line for line in _escape(event.text).split("\n")]
        lines.append("")
    for name, value in values.items():
        if value is not None:
            lines.append(f"{name}: {value if name == 'Data' else _spell(value)}")
    message = "\n".join(lines).encode("utf-8") + b"\n"
    if len(message) > MESSAGE_LIMIT:
        from gittasks.domain.errors import UsageFault

        raise UsageFault(
            f"The text is too long: the message would have {len(message)} bytes"
            f" and at most {MESSAGE_LIMIT} are allowed.",
            "Shorten it, or put it into a file of the work.",
            event.task,
        )
    return message


def subject(event: Event) -> str:
    """Returns the line for people, at most 72 characters."""
    words = [event.task] if event.task else []
    words.append(event.kind)
    if event.target is not None:
        before = f"{event.source} -> " if event.source else "-> "
        words.append((before if event.is_transition else "") + event.target)
    line = f"{' '.join(words)} ({event.role} {plain(event.actor)})"
    return line if len(line) <= _SUBJECT_LIMIT else line[: _SUBJECT_LIMIT - 2] + "…)"


def plain(name: str) -> str:
    """Returns a name without what a terminal could obey when git prints it."""
    return (re.sub(_ODD_CHARACTER, "", name) if _is_odd(name) else name).strip()


def _is_odd(text: str) -> bool:
    return not text.isprintable() and re.search(_ODD_CHARACTER, text) is not None


def decode(message: bytes, at: int, commit: str = "") -> Event:
    """Returns the event that a message tells; raises Corrupt naming what is wrong with it.

    `at` is the commit's author time; `commit` names the commit in errors. The body is not loaded.
    """
    try:
        return _decode(message, at)
    except _Malformed as error:
        where = f"The commit {commit[:12]}" if commit else "The message"
        raise Corrupt(f"{where} is not an event of the ledger: {error}.", error.hint) from None


def event_ids(message: bytes) -> tuple[str, ...]:
    """Returns what the message names as its event, without judging the rest."""
    mark = b"\nEvent-Id: "
    at = message.rfind(mark)
    if at < 0:
        return ()
    return (message[at + len(mark) :].split(b"\n", 1)[0].decode("ascii", "replace"),)


_NOT_FIRST = ("", " ", '"')


class _Malformed(Exception):
    def __init__(self, words: str, hint: str | None = None) -> None:
        super().__init__(words)
        self.hint = hint or "Run `git tasks fsck` to see all that does not verify."


def _decode(message: bytes, at: int) -> Event:
    if len(message) > MESSAGE_LIMIT:
        raise _Malformed(f"its message has {len(message)} bytes, at most {MESSAGE_LIMIT} are read")
    try:
        lines = message.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise _Malformed("its message is not UTF-8") from None
    if len(lines) < 4 or lines[1] or lines[-1]:
        raise _Malformed("its message has no paragraph of trailers")
    position = 2
    while lines[position].startswith("    "):
        position += 1
    text = "\n".join(line[4:] for line in lines[2:position])
    if position > 2:
        if lines[position]:
            raise _Malformed("its text is not followed by an empty line")
        position += 1
    values = _trailers(lines[position:-1])
    event = _event(values, _unescape(text), at)
    if subject(event) != lines[0]:
        raise _Malformed("its subject does not say what its trailers say")
    return event


def _trailers(lines: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    last = -1
    is_ordered = True
    for line in lines:
        name, separator, value = line.partition(": ")
        order = _ORDER.get(name)
        if order is None or not separator:
            raise _Malformed(f"it has an unknown line {line[:60]!r} among its trailers")
        if order <= last:
            if name in values:
                raise _Malformed(f"it has the trailer {name} twice")
            is_ordered = False
        last = order
        # Nearly every value is spelled as it is; only the others are worth a closer look.
        is_plain = value.isprintable() and value[:1] not in _NOT_FIRST and value[-1] != " "
        values[name] = value if is_plain or name == "Data" else _read(name, value)
    version = values.get("Event-Version", "")
    if version != str(EVENT_VERSION):
        if version.isdecimal() and int(version) > EVENT_VERSION:
            raise _Malformed(
                f"it has version {version} of the format and needs a newer gittasks",
                "Install a newer gittasks.",
            )
        raise _Malformed(f"it has an unusable Event-Version {version!r}")
    is_alone = values.get("Event") in PROJECT_KINDS or (
        values.get("Event") == "rejected" and "Task" not in values
    )
    needed = _ALWAYS if is_alone else (*_ALWAYS, *_OF_A_TASK)
    missing = [name for name in needed if name not in values]
    if missing:
        raise _Malformed(f"it lacks the trailer {', '.join(missing)}")
    if not is_ordered:
        raise _Malformed("its trailers are not in the order of the format")
    return values


def _event(values: dict[str, str], text: str, at: int) -> Event:
    for name, check in _CHECKS.items():
        if name in values and not check(values[name]):
            raise _Malformed(f"it has an unusable {name} {values[name][:60]!r}")
    source = values.get("From")
    get = values.get
    try:
        change = change_from(values["Event"], get("Data", "{}"))
    except Corrupt as error:
        raise _Malformed(error.message.rstrip("."), error.hint) from None
    return Event(
        event_id=values["Event-Id"],
        at=at,
        actor=values["Actor"],
        role=cast("EventRole", values["Role"]),
        host=values["Host"],
        change=change,
        task=get("Task"),
        uid=get("Uid"),
        source=None if source in (None, "-") else cast("State", source),
        target=cast("State | None", get("To")),
        claim=get("Claim"),
        revision=get("Revision"),
        commit=get("Commit"),
        text=text,
        document=get("Document"),
    )


def _is_hex(*lengths: int) -> Callable[[str], bool]:
    return lambda text: len(text) in lengths and not text.strip("0123456789abcdef")


_CHECKS: dict[str, Callable[[str], Any]] = {
    "Event-Id": _is_hex(32),
    "Task": is_id,
    "Uid": _is_hex(32),
    "From": ("-", *STATES).__contains__,
    "To": STATES.__contains__,
    "Role": _SPEAKERS.__contains__,
    "Claim": _is_hex(32),
    "Revision": _is_hex(40, 64),
    "Commit": _is_hex(40, 64),
    "Document": _is_hex(40, 64),
    "Replayed-From": _is_hex(40, 64),
}


def _spell(value: str) -> str:
    """Returns a value on one line, as it is where that is safe and as a JSON string elsewhere."""
    if value and value[0] not in '" ' and value[-1] != " " and not _is_odd(value):
        return value
    return json.dumps(value)


def _read(name: str, spelled: str) -> str:
    value: Any = spelled
    if spelled[:1] == '"':
        try:
            value = json.loads(spelled)
        except ValueError:
            value = None
    if not isinstance(value, str) or _spell(value) != spelled:
        raise _Malformed(f"its trailer {name} is not spelled as it should be")
    return value


def _escape(text: str) -> str:
    if "\\" not in text and text.replace("\n", "").isprintable():
        return text
    return re.sub(_TO_ESCAPE, _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    before, odd, backslashes = match.group(1, 2, 3)
    return f"{before * 2}\\u{ord(odd):04x}" if odd else backslashes * 2


def _unescape(text: str) -> str:
    return re.sub(_ESCAPED, _unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    backslashes, digits = match.group(1, 2)
    half = "\\" * (len(backslashes) // 2)
    return half + (chr(int(digits, 16)) if len(backslashes) % 2 else "u" + digits)
