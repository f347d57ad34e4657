"""An event and its commit message say the same, whatever words are in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain import events
from gittasks.domain.errors import Corrupt, UsageFault
from gittasks.domain.events import Created, Event, Initialized, Noted, Submitted
from gittasks.domain.task import ROLES, STATES, Cost, Draft
from gittasks.ledger import message
from tests.support.builders import NOW, hexadecimal

TEXT = st.one_of(
    st.text(),
    st.text(alphabet="\\u0019abn\"'\n\t\r\0\x1b\u202e\u2028\ud800 :-", max_size=30),
    st.sampled_from(["Task: 000009", "\nEvent: abort\n", '"', "\\u0000", " x ", "-", "    a\n\nb"]),
)
PAIRS = st.dictionaries(TEXT, TEXT, max_size=3).map(lambda pairs: tuple(sorted(pairs.items())))
JSON_PAIRS = st.dictionaries(
    TEXT, st.none() | TEXT | st.integers() | st.lists(TEXT, max_size=3).map(tuple), max_size=3
).map(lambda pairs: tuple(sorted(pairs.items(), key=lambda pair: pair[0])))
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
NAMES = st.none() | st.from_regex(r"\A[0-9]{6}\Z")
COSTS = st.none() | st.builds(
    Cost,
    st.sampled_from(STATES),
    TEXT,
    st.integers(0),
    st.floats(0, 1e9),
    st.integers(0),
)
RESULTS = st.lists(
    st.builds(events.CheckResult, TEXT, st.integers(), TEXT, st.integers(), st.booleans()),
    max_size=2,
).map(tuple)
FIELDS: dict[str, st.SearchStrategy[object]] = {
    "str": TEXT,
    "str | None": st.none() | TEXT,
    "int": st.integers(),
    "bool": st.booleans(),
    "tuple[str, ...]": TEXTS,
    "Pairs": PAIRS,
    "JsonPairs": JSON_PAIRS,
    "State | None": st.none() | st.sampled_from(["DESIGN", "PLAN", "WORK"]),
    "Outcome | None": st.none() | st.sampled_from(["landed", "aborted"]),
    "Draft | None": st.none() | st.builds(Draft, TEXT, st.integers(0)),
    "Cost | None": COSTS,
    "tuple[CheckResult, ...]": RESULTS,
    "ReleaseReason": st.sampled_from(["released", "expired", "forced", "died"]),
}


def changes(kind: str) -> st.SearchStrategy[events.Change]:
    cls = events.CHANGES[kind]  # type: ignore[index]
    fields = {name: FIELDS[annotation] for name, annotation in cls.__annotations__.items()}
    return st.builds(cls, **fields)


TOKENS = st.text("0123456789abcdef", min_size=32, max_size=32)
OIDS = st.none() | st.text("0123456789abcdef", min_size=40, max_size=40)


@st.composite
def an_event(draw: st.DrawFn) -> Event:
    kind = draw(st.sampled_from(list(events.CHANGES)))
    is_project = kind in events.PROJECT_KINDS
    return Event(
        event_id=draw(TOKENS),
        at=draw(st.integers(0, 2**33)),
        actor=draw(TEXT),
        role=draw(st.sampled_from([*ROLES, "tool", "operator", "none"])),
        host=draw(TEXT),
        change=draw(changes(kind)),
        task=None if is_project else draw(st.integers(1, 999_999).map("{:06d}".format)),
        uid=None if is_project else draw(TOKENS),
        source=None if is_project else draw(st.none() | st.sampled_from(STATES)),
        target=None if is_project else draw(st.sampled_from(STATES)),
        claim=draw(st.none() | TOKENS),
        revision=draw(OIDS),
        commit=draw(OIDS),
        text=draw(TEXT),
        document=draw(OIDS),
    )


@given(an_event())
def test_every_event_comes_back_as_it_went_in(event: Event) -> None:
    assert message.decode(message.encode(event), event.at) == event


@given(an_event())
def test_a_message_is_a_subject_of_72_characters_and_plain_text(event: Event) -> None:
    text = message.encode(event).decode()
    assert len(text.split("\n", 1)[0]) <= 72
    assert all(
        character in "\n\t" or character.isprintable() or character > "\x9f" for character in text
    )
    assert "\u202e" not in text


def submitted() -> Event:
    return Event(
        event_id=hexadecimal("event"),
        at=NOW,
        actor="pi-2",
        role="worker",
        host="1f6b2c3d",
        change=Submitted(remark="see tests"),
        task="000042",
        uid=hexadecimal("uid"),
        source="WORK",
        target="CHECK",
        claim=hexadecimal("claim"),
        revision="3" * 40,
        commit="9" * 40,
        text="What I did.\n\nTask: 000001",
        document="8" * 40,
    )


def test_the_message_of_a_submit_reads_like_this() -> None:
    assert (
        message.encode(submitted()).decode()
        == f"""\
000042 submit WORK -> CHECK (worker pi-2)

    What I did.
{"    "}
    Task: 000001

Event: submit
Event-Id: {hexadecimal("event")}
Event-Version: 1
Task: 000042
Uid: {hexadecimal("uid")}
From: WORK
To: CHECK
Role: worker
Actor: pi-2
Claim: {hexadecimal("claim")}
Revision: {"3" * 40}
Commit: {"9" * 40}
Host: 1f6b2c3d
Document: {"8" * 40}
Data: {{"remark":"see tests"}}
"""
    )


def test_a_replayed_event_names_the_commit_it_repeats() -> None:
    text = message.encode(submitted(), replayed_from="7" * 40)
    assert text.endswith(b"\nReplayed-From: " + b"7" * 40 + b"\n")
    assert message.decode(text, NOW) == submitted()


def test_an_event_without_a_task_has_neither_task_nor_states() -> None:
    event = Event(hexadecimal("e"), NOW, "Ada", "operator", "h", Initialized((("base", "main"),)))
    assert message.encode(event).decode() == (
        f"init (operator Ada)\n\nEvent: init\nEvent-Id: {hexadecimal('e')}\nEvent-Version: 1\n"
        'Role: operator\nActor: Ada\nHost: h\nData: {"project":{"base":"main"}}\n'
    )


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        (b"Role: worker\n", b"", "it lacks the trailer Role"),
        (b"From: WORK\n", b"", "it lacks the trailer From"),
        (b"Role: worker\n", b"Role: worker\nRole: worker\n", "it has the trailer Role twice"),
        (b"Role: worker\n", b"Role: worker\nX: y\n", "unknown line 'X: y'"),
        (b"Role: worker\n", b"Role: worker\n\n", "unknown line ''"),
        (b"Role: worker\nActor: pi-2\n", b"Actor: pi-2\nRole: worker\n", "not in the order"),
        (b"Version: 1", b"Version: 2", "needs a newer gittasks"),
        (b"Version: 1", b"Version: x", "unusable Event-Version 'x'"),
        (b"Event: submit", b"Event: dance", "does not know"),
        (b"Role: worker", b"Role: king", "unusable Role 'king'"),
        (b"Task: 000042", b"Task: 42", "unusable Task '42'"),
        (b"From: WORK", b"From: NOWHERE", "unusable From 'NOWHERE'"),
        (b"Claim: ", b"Claim: z", "unusable Claim"),
        (b"Actor: pi-2", b"Actor:  pi-2", "Actor is not spelled"),
        (b"Actor: pi-2", b'Actor: "pi-2"', "Actor is not spelled"),
        (b"Actor: pi-2", b'Actor: "', "Actor is not spelled"),
        (b"Actor: pi-2", b"Actor: pi-3", "subject does not say"),
        (b'{"remark":"see tests"}', b'{"remark":1}', "wrong remark"),
        (b'{"remark":"see tests"}', b"{", "is not JSON"),
        (b'{"remark":"see tests"}', b'{"more":1}', "unknown field 'more'"),
        (b"    Task: 000001\n\n", b"    Task: 000001\n", "not followed by an empty line"),
        (b"(worker pi-2)\n\n", b"(worker pi-2)\n", "no paragraph of trailers"),
        (b"What I did", b"What \xff did", "not UTF-8"),
        (b"What I did", b"x" * 1_048_577, "at most 1048576 are read"),
    ],
)
def test_a_message_that_is_not_an_event_is_refused_by_name(
    before: bytes, after: bytes, complaint: str
) -> None:
    good = message.encode(submitted())
    bad = good.replace(before, after, 1) if before in good else good
    # The subject and the trailer both name the actor; here only the trailer is changed.
    with pytest.raises(Corrupt) as caught:
        message.decode(bad, NOW, "a" * 40)
    assert caught.value.message.startswith("The commit aaaaaaaaaaaa is not an event of the ledger:")
    assert complaint in caught.value.message


def test_a_text_over_the_limit_is_refused_before_it_is_written() -> None:
    event = submitted()._replace(text="x" * 1_048_577)
    with pytest.raises(UsageFault, match="too long"):
        message.encode(event)


def test_an_event_of_a_task_without_a_task_is_a_mistake_of_ours() -> None:
    event = Event(hexadecimal("e"), NOW, "Ada", "manager", "h", Noted())
    with pytest.raises(ValueError, match="names task, uid and state"):
        message.encode(event)


def test_a_long_actor_does_not_make_a_long_subject() -> None:
    event = submitted()._replace(actor="x" * 200, change=Created("T"), source=None, target="NEW")
    assert message.subject(event) == f"000042 create -> NEW (worker {'x' * 41}…)"


def test_the_id_of_an_event_is_found_without_reading_the_rest() -> None:
    assert message.event_ids(message.encode(submitted())) == (hexadecimal("event"),)
    assert message.event_ids(b"by hand\n") == ()
