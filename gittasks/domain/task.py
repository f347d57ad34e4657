"""The task: all that one document says, as a value."""

from __future__ import annotations

from typing import Literal, get_args

from gittasks.domain.values import NamedTuple

State = Literal[
    "NEW",
    "BLOCKED",
    "DESIGN",
    "DESIGN_REVIEW",
    "PLAN",
    "PLAN_REVIEW",
    "WORK",
    "CHECK",
    "WORK_REVIEW",
    "MANAGER_REVIEW",
    "HELD_DESIGN",
    "HELD_PLAN",
    "HELD_WORK",
    "CLOSED",
]
Role = Literal["manager", "designer", "planner", "worker", "checker", "reviewer"]
Outcome = Literal["landed", "aborted"]

STATES: tuple[State, ...] = get_args(State)
ROLES: tuple[Role, ...] = get_args(Role)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

PRIORITY = 2
"""The priority of a task that names none; 0 is first, 4 last."""


class Draft(NamedTuple):
    """The section under review: its heading and the byte offset in the body where it begins."""

    section: str
    offset: int


class Findings(NamedTuple):
    """What the next author has to answer: the state it is for, the round, the items."""

    state: State
    round: int
    items: tuple[str, ...]


class Attention(NamedTuple):
    """A row the manager has to look at: event id, kind of event, text."""

    event: str
    kind: str
    text: str


class Cost(NamedTuple):
    """What one claim cost: state, slot, seconds, money in dollars, tokens."""

    state: State
    slot: str
    seconds: int
    cost: float
    tokens: int


class Task(NamedTuple):
    """One task at one ledger commit; times are RFC 3339 UTC, commits are object ids."""

    id: str
    uid: str
    title: str
    state: State = "NEW"
    entered_at: str = ""
    enters: State | None = None
    outcome: Outcome | None = None
    parent: str | None = None
    position: str | None = None
    depends_on: tuple[str, ...] = ()
    supersedes: str | None = None
    follows: str | None = None
    labels: tuple[str, ...] = ()
    priority: int = PRIORITY
    checks: tuple[str, ...] = ()
    assignee: str | None = None
    claimed_by: str | None = None
    claim: str | None = None
    claimed_at: str | None = None
    lease_expires: str | None = None
    branch: str | None = None
    base: str | None = None
    dispatched: str | None = None
    submitted_tip: str | None = None
    checked_tip: str | None = None
    landed: str | None = None
    draft: Draft | None = None
    rejections: int = 0
    check_failures: int = 0
    former_ids: tuple[str, ...] = ()
    findings: Findings | None = None
    held_reason: str | None = None
    attention: tuple[Attention, ...] = ()
    proposed_by: str | None = None
    artifacts: tuple[tuple[str, str], ...] = ()
    costs: tuple[Cost, ...] = ()
    created_at: str = ""
    created_by: str = ""
    extra: tuple[tuple[str, str], ...] = ()
    """Keys beginning with `x-` with the exact text after the colon, lines included."""

    @property
    def is_open(self) -> bool:
        """Tells whether the task is not closed."""
        return self.state != "CLOSED"

    @property
    def is_landed(self) -> bool:
        """Tells whether the task delivered: only this satisfies a dependency."""
        return self.outcome == "landed"

    @property
    def sort_key(self) -> str:
        """Returns the key that orders siblings: the position, else the id."""
        return self.position or self.id
