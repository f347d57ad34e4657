"""What can happen, one frozen class per event, and how each is spelled in a message's `Data`.

An event is a commit of the ledger. Its common part (`Event`) says who, when, on which task and
between which states; its `change` is one class of the tagged union `Change` and says what else
the document needs. The message alone suffices for every header field; only four kinds bring body
bytes of their own, which are read from the blob named by `Document`: a create, an author's submit,
an edit and an external change of the body. All other body changes (a draft that leaves, findings
that are appended) follow from the change itself.

`Data` is one JSON object. Keys are the field names of the class; absent keys have the default.
Version 1 of the format is `EVENT_VERSION`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from gittasks.domain.errors import Corrupt
from gittasks.domain.fields import COUNT_LIMIT
from gittasks.domain.task import Cost, Draft, Outcome, Role, State
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

EVENT_VERSION = 1

EventRole = Role | Literal["tool", "operator", "none"]
"""Who an event speaks for: a role, the tool itself, the operator of this clone, or nobody."""

ReleaseReason = Literal["released", "expired", "forced", "died"]
"""Why a claim ended unfinished."""

Pairs = tuple[tuple[str, str], ...]
JsonPairs = tuple[tuple[str, Any], ...]


class CheckResult(NamedTuple):
    """One command of a check run: exit code (124 and `timed_out` for the limit), output digest."""

    command: str
    exit: int
    digest: str
    seconds: int = 0
    timed_out: bool = False


class Created(NamedTuple):
    """A task was written down; it starts at NEW. The body comes with the event."""

    title: str
    labels: tuple[str, ...] = ()
    priority: int = 2
    checks: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    parent: str | None = None
    supersedes: str | None = None
    follows: str | None = None
    assignee: str | None = None
    proposed_by: str | None = None
    former_ids: tuple[str, ...] = ()
    """The numbers the task has had in a clone before it was shared."""
    extra: Pairs = ()
    """Keys beginning with `x-`, each with the exact text after its colon."""


class Submitted(NamedTuple):
    """A stage was finished, a task dispatched, closed or landed.

    `enters` goes with a dispatch, `outcome` with a close, `draft` with a design or plan that goes
    under review, `mode` with a landing; the message's `Commit` is the work tip or the landed commit.
    """

    enters: State | None = None
    outcome: Outcome | None = None
    draft: Draft | None = None
    mode: str | None = None
    no_change: bool = False
    remark: str | None = None
    cost: Cost | None = None


class Unblocked(NamedTuple):
    """The last open dependency of a BLOCKED task went away; `cause` is the id that landed."""

    cause: str | None = None


class FeedbackGiven(NamedTuple):
    """A review sent the work back, or held it when it was one rejection too many."""

    findings: tuple[str, ...]
    round: int = 1
    rejections: int = 0
    held_reason: str | None = None
    cost: Cost | None = None


class CheckPassed(NamedTuple):
    """Every check exited 0 on the message's `Commit`; no results means there were no checks."""

    results: tuple[CheckResult, ...] = ()


class CheckRefuted(NamedTuple):
    """A check failed on the message's `Commit`; the findings are for the worker."""

    findings: tuple[str, ...]
    results: tuple[CheckResult, ...] = ()
    failures: int = 1
    held_reason: str | None = None


class Held(NamedTuple):
    """Work stopped for the manager."""

    reason: str
    cost: Cost | None = None


class Resumed(NamedTuple):
    """The manager let a held task go on."""

    remark: str | None = None


class Aborted(NamedTuple):
    """The task was thrown away; nothing is delivered."""

    reason: str | None = None
    cost: Cost | None = None


class Claimed(NamedTuple):
    """An actor took the task; the message's `Claim` is the fencing token, `Commit` the tip."""

    lease_expires: str
    branch: str
    base: str
    dispatched: str
    assignment: str | None = None
    sandbox: str | None = None
    """How the agent is kept apart: bubblewrap, limits or bare; None for people."""
    prompts: Pairs = ()
    """The prompts of the ledger that the agent is given, each with the id of its blob."""


class Released(NamedTuple):
    """A claim ended unfinished: released, expired, forced or died."""

    why: ReleaseReason = "released"
    reason: str | None = None
    cost: Cost | None = None


class Edited(NamedTuple):
    """Fields were set or unset; with `body`, the body comes with the event."""

    set: JsonPairs = ()
    unset: tuple[str, ...] = ()
    body: bool = False
    seen: bool = False


class Noted(NamedTuple):
    """Somebody remarked something (the message's text), recorded an artifact, or saw a row.

    With `attention` the text was kept from a conflict, and the row says so.
    """

    artifacts: Pairs = ()
    seen: bool = False
    attention: str | None = None


class Reparented(NamedTuple):
    """The task moved below another parent, or to the top."""

    parent: str | None = None


class Reordered(NamedTuple):
    """The task moved among its siblings."""

    position: str


class Initialized(NamedTuple):
    """The ledger began; `project` holds the shared settings."""

    project: JsonPairs = ()


class Configured(NamedTuple):
    """Shared settings changed, or a shared text (`template.md`, `prompts/NAME.md`) did."""

    set: JsonPairs = ()
    unset: tuple[str, ...] = ()
    path: str | None = None


class ExternallyChanged(NamedTuple):
    """A document was changed by hand on the branch and adopted; `created` for a new one."""

    set: JsonPairs = ()
    unset: tuple[str, ...] = ()
    body: bool = False
    created: bool = False


class Renumbered(NamedTuple):
    """The number of a task was taken when it was shared, so it got the next free one."""

    old: str
    new: str


class Rejected(NamedTuple):
    """An event of a clone did not fit what others had done; its message is this one's text.

    `event` is its kind. A `quiet` one is nothing for the manager. What is too long for one message
    comes in several `parts`.
    """

    event: str
    reason: str
    quiet: bool = False
    part: int = 1
    parts: int = 1


Change = (
    Created
    | Submitted
    | Unblocked
    | FeedbackGiven
    | CheckPassed
    | CheckRefuted
    | Held
    | Resumed
    | Aborted
    | Claimed
    | Released
    | Edited
    | Noted
    | Reparented
    | Reordered
    | Initialized
    | Configured
    | ExternallyChanged
    | Renumbered
    | Rejected
)

Kind = Literal[
    "create",
    "submit",
    "unblock",
    "feedback",
    "pass",
    "fail",
    "hold",
    "resume",
    "abort",
    "claim",
    "release",
    "edit",
    "note",
    "reparent",
    "reorder",
    "init",
    "configure",
    "external",
    "renumber",
    "rejected",
]

CHANGES: dict[Kind, type[Change]] = {
    "create": Created,
    "submit": Submitted,
    "unblock": Unblocked,
    "feedback": FeedbackGiven,
    "pass": CheckPassed,
    "fail": CheckRefuted,
    "hold": Held,
    "resume": Resumed,
    "abort": Aborted,
    "claim": Claimed,
    "release": Released,
    "edit": Edited,
    "note": Noted,
    "reparent": Reparented,
    "reorder": Reordered,
    "init": Initialized,
    "configure": Configured,
    "external": ExternallyChanged,
    "renumber": Renumbered,
    "rejected": Rejected,
}
KINDS: dict[type[Change], Kind] = {change: kind for kind, change in CHANGES.items()}

PROJECT_KINDS: frozenset[Kind] = frozenset(("init", "configure"))
"""Events that never concern a task; a `rejected` may, where its task exists."""


class Event(NamedTuple):
    """One accepted event; `at` is in seconds since 1970 (the commit's author time)."""

    event_id: str
    at: int
    actor: str
    role: EventRole
    host: str
    change: Change
    task: str | None = None
    uid: str | None = None
    source: State | None = None
    target: State | None = None
    claim: str | None = None
    revision: str | None = None
    commit: str | None = None
    text: str = ""
    body: bytes | None = None
    document: str | None = None

    @property
    def kind(self) -> Kind:
        """Returns the word that stands in the message's `Event` trailer."""
        return KINDS[type(self.change)]

    @property
    def is_about_a_task(self) -> bool:
        """Tells whether the message has to name a task."""
        return self.task is not None or self.kind not in (*PROJECT_KINDS, "rejected")

    @property
    def is_transition(self) -> bool:
        """Tells whether the state changes; a create counts."""
        return self.source != self.target


def brings_body(change: Change, source: State | None) -> bool:
    """Tells whether the event's body has to be read from its `Document` blob."""
    match change:
        case Created():
            return True
        case Submitted():
            return source in ("DESIGN", "PLAN", "WORK")
        case Edited(body=body):
            return body
        case ExternallyChanged(body=body, created=created):
            return body or created
        case _:
            return False


def data_of(change: Change) -> str:
    """Returns the one-line JSON of the fields that differ from their defaults, in their order."""
    defaults = type(change)._field_defaults
    data: dict[str, Any] = {}
    for name, value in zip(change._fields, change, strict=True):
        if name in defaults and value == defaults[name]:
            continue
        data[name] = _TO_JSON.get(_shape(type(change), name), _same)(value)
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"))


def change_from(kind: str, text: str) -> Change:
    """Returns the change that `Event` and `Data` spell; raises Corrupt naming what does not fit."""
    cls = CHANGES.get(cast("Kind", kind))
    if cls is None:
        raise Corrupt(
            f"The ledger has an event {kind!r} that this version does not know.",
            "Install a newer gittasks.",
        )
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"The data of an event {kind!r} is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise Corrupt(f"The data of an event {kind!r} is not an object.")
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name not in cls._fields:
            raise Corrupt(f"The data of an event {kind!r} has an unknown field {name!r}.")
        try:
            values[name] = _FROM_JSON[_shape(cls, name)](value)
        except (TypeError, ValueError, KeyError):
            raise Corrupt(
                f"The data of an event {kind!r} has a wrong {name}: {str(value)[:80]!r}."
            ) from None
    missing = [n for n in cls._fields if n not in values and n not in cls._field_defaults]
    if missing:
        raise Corrupt(f"The data of an event {kind!r} lacks {', '.join(missing)}.")
    return cls(**values)


def _same(value: Any) -> Any:
    return value


def _shape(cls: type[Change], name: str) -> str:
    """Returns the annotation of a field as text; it names the row of the two tables below."""
    return cast("str", cls.__annotations__[name])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple(_text(item) for item in value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _pairs(value: Any) -> Pairs:
    return tuple((name, _text(item)) for name, item in _object(value).items())


def _json_pairs(value: Any) -> JsonPairs:
    return tuple((name, _frozen(item)) for name, item in _object(value).items())


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _draft(value: Any) -> Draft:
    item = _object(value)
    return Draft(_text(item["section"]), _number(item["offset"]))


def _cost(value: Any) -> Cost:
    item = _object(value)
    money = item["cost"]
    if isinstance(money, bool) or not isinstance(money, int | float):
        raise TypeError
    if not 0 <= money < COUNT_LIMIT:  # also not infinite, and a number at all
        raise ValueError
    return Cost(
        cast("State", _text(item["state"])),
        _text(item["slot"]),
        _number(item["seconds"]),
        float(money),
        _number(item["tokens"]),
    )


def _result(value: Any) -> CheckResult:
    item = _object(value)
    return CheckResult(
        _text(item["command"]),
        _number(item["exit"]),
        _text(item["digest"]),
        _number(item.get("seconds", 0)),
        _truth(item.get("timed_out", False)),
    )


def _results(value: Any) -> tuple[CheckResult, ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple(_result(item) for item in value)


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError
        return cast("str", value)

    return read


def _state(value: Any) -> str:
    if value not in ("DESIGN", "PLAN", "WORK"):
        raise ValueError
    return cast("str", value)


_FROM_JSON: dict[str, Callable[[Any], Any]] = {
    "str": _text,
    "str | None": _text,
    "int": _number,
    "bool": _truth,
    "tuple[str, ...]": _texts,
    "Pairs": _pairs,
    "JsonPairs": _json_pairs,
    "State | None": _state,
    "Outcome | None": _one_of("landed", "aborted"),
    "Draft | None": _draft,
    "Cost | None": _cost,
    "tuple[CheckResult, ...]": _results,
    "ReleaseReason": _one_of(*get_args(ReleaseReason)),
}

_TO_JSON: dict[str, Callable[[Any], Any]] = {
    "Pairs": dict,
    "JsonPairs": dict,
    "Draft | None": lambda value: value._asdict(),
    "Cost | None": lambda value: value._asdict(),
    "tuple[CheckResult, ...]": lambda value: [item._asdict() for item in value],
}
