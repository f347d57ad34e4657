"""What can be asked for: one request a verb, as values; `decide` answers with events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from gittasks.domain.task import PRIORITY, Cost, Role, State
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gittasks.domain.events import CheckResult, Event, Pairs
    from gittasks.domain.task import Task

SpeakingRole = Role | Literal["tool", "operator"]


class Speaker(NamedTuple):
    """Who asks: name, role (None may only read, note and propose), claim id presented."""

    actor: str
    role: SpeakingRole | None = None
    claim: str | None = None
    why: tuple[str, str] = ("", "")
    """Where the name and the role came from, in words."""


class Snapshot(NamedTuple):
    """A tree as it was dispatched: branch checked out, HEAD, branch tip, status lines."""

    branch: str | None
    head: str | None
    tip: str | None
    status: tuple[str, ...] = ()


class GuardReport(NamedTuple):
    """What a task's branch and tree look like; facts only, `guards` judges them."""

    tip: str | None
    now: Snapshot | None = None
    """The tree on this host, None when there is none."""
    dispatched: Snapshot | None = None
    descends: bool = True
    commits: int = 0
    """Commits on the branch that the base does not have."""
    differs: bool = False
    """Tells whether the tip's tree differs from the merge base's."""
    user_changes: tuple[str, ...] = ()
    """Files of the user's own checkout that changed since the start."""
    is_stuck: bool = False
    """The tree is kept apart, and HEAD is on a branch, which cannot move from there."""


class Landing(NamedTuple):
    """A prepared landing: the reviewed tip, the commit the base moves to, the mode."""

    tip: str
    commit: str
    mode: str


class Facts(NamedTuple):
    """What a decision needs to know beside the graph and the request."""

    now: int
    host: str
    speaker: Speaker
    rejection_limit: int = 2
    check_failure_limit: int = 5
    history: Callable[[str], Iterable[Event]] = lambda _task: ()
    """Gives the events of one task, newest first; asked only where a rule needs the past."""
    renewed: Callable[[Task], str | None] = lambda _task: None
    """Gives the later end of a claim's lease; asked only where the lease looks expired."""


class Create(NamedTuple):
    """Write down a task; `uid` is random, or derived from an idempotency key."""

    title: str
    uid: str
    body: bytes = b""
    labels: tuple[str, ...] = ()
    priority: int = PRIORITY
    checks: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    parent: str | None = None
    supersedes: str | None = None
    follows: str | None = None
    assignee: str | None = None
    extra: Pairs = ()
    """Keys beginning with `x-`, each with the exact text after its colon."""


class Submit(NamedTuple):
    """Finish a stage, dispatch, close or land; which one follows from the state.

    `section` is what the author wrote under the own heading, heading included.
    """

    task: str
    enter: State | None = None
    close: bool = False
    section: bytes | None = None
    no_change: bool = False
    remark: str | None = None
    guard: GuardReport | None = None
    landing: Landing | None = None
    has_commits: bool = False
    body_dispatched: bytes | None = None
    checks_dispatched: tuple[str, ...] | None = None
    """Text and checks that the holder works from; None where this clone does not know."""
    cost: Cost | None = None


class Feedback(NamedTuple):
    """Send findings back to the author."""

    task: str
    findings: tuple[str, ...]
    guard: GuardReport | None = None
    body_dispatched: bytes | None = None
    checks_dispatched: tuple[str, ...] | None = None
    cost: Cost | None = None


class RecordCheck(NamedTuple):
    """Record the result of a check run on one commit; findings make it a fail."""

    task: str
    tip: str
    results: tuple[CheckResult, ...] = ()
    findings: tuple[str, ...] = ()


class Hold(NamedTuple):
    """Stop and ask the manager."""

    task: str
    reason: str
    cost: Cost | None = None


class Resume(NamedTuple):
    """Let a held task go on."""

    task: str
    remark: str | None = None


class Abort(NamedTuple):
    """Throw a task away; `delivered` are the ids whose own commits the base has."""

    task: str
    reason: str | None = None
    recursive: bool = False
    delivered: frozenset[str] = frozenset()
    landing: frozenset[str] = frozenset()


class Claim(NamedTuple):
    """Take a task: claim id, end of the lease (seconds since 1970), branch and commits."""

    task: str
    claim: str
    lease_expires: int
    branch: str
    base: str
    dispatched: str
    assignment: str | None = None
    sandbox: str | None = None
    prompts: Pairs = ()


class Release(NamedTuple):
    """Give a task back unfinished; `why` other than released is the tool's or the manager's."""

    task: str
    reason: str | None = None
    why: Literal["released", "expired", "forced", "died"] = "released"
    cost: Cost | None = None


class Edit(NamedTuple):
    """Change fields or the body; dependencies may also be given as additions and removals."""

    task: str
    set: tuple[tuple[str, Any], ...] = ()
    unset: tuple[str, ...] = ()
    body: bytes | None = None
    add_dependencies: tuple[str, ...] = ()
    remove_dependencies: tuple[str, ...] = ()
    force: bool = False


class Note(NamedTuple):
    """Remark something, record artifacts, or mark the inbox rows of the task as seen."""

    task: str
    text: str = ""
    artifacts: Pairs = ()
    seen: bool = False


class Reparent(NamedTuple):
    """Move a task below another one, or to the top."""

    task: str
    parent: str | None


class Reorder(NamedTuple):
    """Move a task among its siblings: before or after one of them, first, or last."""

    task: str
    where: Literal["before", "after", "first", "last"]
    sibling: str | None = None


Request = (
    Create
    | Submit
    | Feedback
    | RecordCheck
    | Hold
    | Resume
    | Abort
    | Claim
    | Release
    | Edit
    | Note
    | Reparent
    | Reorder
)
