"""The stage table and the transition table: every rule about states is a row here.

Next states, claimable states, ranks, help texts and the diagrams of `docs/states.md` are derived
from these two tables and typed nowhere else. `objection` re-checks one recorded event against
them and against the graph, so that an illegal step in a ledger is reported and not applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from gittasks.domain import dependencies, fields
from gittasks.domain.events import (
    Aborted,
    Change,
    CheckPassed,
    CheckRefuted,
    Created,
    Edited,
    Event,
    EventRole,
    ExternallyChanged,
    FeedbackGiven,
    Held,
    Kind,
    Noted,
    Rejected,
    Released,
    Renumbered,
    Reordered,
    Reparented,
    Resumed,
    Submitted,
    Unblocked,
)
from gittasks.domain.ids import is_id
from gittasks.domain.task import STATES, Role, State
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph

Phase = Literal["design", "plan", "work"]
Guard = Literal["none", "untouched", "committed"]
Who = Literal["manager", "holder", "checker", "tool", "anyone", "owner"]


class Stage(NamedTuple):
    """One row of the stage table."""

    state: State
    role: Role | None
    phase: Phase | None = None
    claimable: bool = False
    guard: Guard = "none"
    heading: str | None = None
    missing: str | None = None
    next: State | None = None
    back: State | None = None
    held: State | None = None
    rank: tuple[int, int] = (0, 0)
    """The place in the queue when somebody has started on it, and when fresh; 0 is not queued."""


STAGES: tuple[Stage, ...] = (
    Stage("NEW", "manager"),
    Stage("BLOCKED", None),
    Stage("DESIGN", "designer", "design", True, "untouched", "## Design", "missing-design",
          "DESIGN_REVIEW", None, "HELD_DESIGN", (9, 10)),
    Stage("DESIGN_REVIEW", "reviewer", "design", True, "untouched", None, None,
          "PLAN", "DESIGN", "HELD_DESIGN", (8, 8)),
    Stage("PLAN", "planner", "plan", True, "untouched", "## Todos", "missing-todos",
          "PLAN_REVIEW", None, "HELD_PLAN", (6, 7)),
    Stage("PLAN_REVIEW", "reviewer", "plan", True, "untouched", None, None,
          "WORK", "PLAN", "HELD_PLAN", (5, 5)),
    Stage("WORK", "worker", "work", True, "committed", "## Implementation Notes", "missing-notes",
          "CHECK", None, "HELD_WORK", (3, 4)),
    Stage("CHECK", "checker", "work", True, "none", None, None,
          "WORK_REVIEW", "WORK", "HELD_WORK"),
    Stage("WORK_REVIEW", "reviewer", "work", True, "untouched", None, None,
          "MANAGER_REVIEW", "WORK", "HELD_WORK", (2, 2)),
    Stage("MANAGER_REVIEW", "manager", None, False, "none", None, None, "CLOSED", "WORK"),
    Stage("HELD_DESIGN", "manager", "design", next="DESIGN"),
    Stage("HELD_PLAN", "manager", "plan", next="PLAN"),
    Stage("HELD_WORK", "manager", "work", next="WORK"),
    Stage("CLOSED", None),
)  # fmt: skip

STAGE: dict[str, Stage] = {stage.state: stage for stage in STAGES}
RESUME_RANK = 1
"""The queue rank of a worker whose check failed on this host."""

ENTRIES: dict[str, State] = {"design": "DESIGN", "plan": "PLAN", "work": "WORK"}
"""The first state of each phase: what `--enter` and `enters` may say."""

CLAIMABLE: tuple[State, ...] = tuple(stage.state for stage in STAGES if stage.claimable)
AUTHOR_STATES: tuple[State, ...] = tuple(stage.state for stage in STAGES if stage.heading)
REVIEWS: tuple[State, ...] = tuple(s.state for s in STAGES if s.claimable and s.role == "reviewer")
HELD: tuple[State, ...] = tuple(s.state for s in STAGES if s.state.startswith("HELD_"))
DRAFTED: tuple[State, ...] = ("DESIGN_REVIEW", "PLAN_REVIEW")
"""The reviews whose subject is a section of the document rather than a branch."""
DEPENDENCIES_EDITABLE: tuple[State, ...] = ("NEW", "BLOCKED", *HELD, "MANAGER_REVIEW")
ABORTABLE: tuple[State, ...] = ("MANAGER_REVIEW", *HELD, "NEW", "BLOCKED")
REPEATABLE_AFTER: tuple[Kind, ...] = ("pass", "unblock")
"""Transitions of the tool that may follow a submit before the same submit is repeated."""


class Transition(NamedTuple):
    """One row of the transition table: from, event, to, who may fire it, and when."""

    source: State
    event: Kind
    target: State
    who: tuple[Who, ...]
    when: str = ""


def _entry_rows() -> Iterable[Transition]:
    for source in ("NEW", "BLOCKED"):
        for entry in ENTRIES.values():
            yield Transition(source, "submit", entry, ("manager",), "no open dependency")
        yield Transition(source, "submit", "BLOCKED", ("manager",), "open dependencies")
        yield Transition(source, "submit", "CLOSED", ("manager",), "--close: children delivered")
    for entry in ENTRIES.values():
        yield Transition("BLOCKED", "unblock", entry, ("tool",), "last open dependency landed")


def _stage_rows() -> Iterable[Transition]:
    for stage in STAGES:
        if stage.state == "CHECK":
            yield Transition("CHECK", "pass", "WORK_REVIEW", ("checker",), "all commands exit 0")
            yield Transition("CHECK", "fail", "WORK", ("checker",), "a command fails")
            yield Transition("CHECK", "fail", "HELD_WORK", ("checker",), "too many fails in a row")
        elif stage.claimable and stage.next:
            yield Transition(stage.state, "submit", stage.next, ("holder",))
        if stage.state in REVIEWS and stage.back and stage.held:
            yield Transition(stage.state, "feedback", stage.back, ("holder",), "findings")
            yield Transition(stage.state, "feedback", stage.held, ("holder",), "second rejection")
        if stage.held:
            yield Transition(stage.state, "hold", stage.held, ("manager", "holder", "tool"))


def _manager_rows() -> Iterable[Transition]:
    yield Transition("MANAGER_REVIEW", "submit", "CLOSED", ("manager",), "landing")
    yield Transition("MANAGER_REVIEW", "feedback", "WORK", ("manager",), "findings")
    for held in HELD:
        first = STAGE[held].next
        assert first is not None
        yield Transition(held, "resume", first, ("manager",), "no open dependency")
        yield Transition(held, "resume", "BLOCKED", ("manager",), "open dependencies")
    for source in STATES:
        if source in ABORTABLE:
            yield Transition(source, "abort", "CLOSED", ("manager",))
        elif source != "CLOSED":
            yield Transition(source, "abort", "CLOSED", ("manager",), "recursive or superseded")


TRANSITIONS: tuple[Transition, ...] = (*_entry_rows(), *_stage_rows(), *_manager_rows())

STEADY: dict[Kind, tuple[Who, ...]] = {
    "claim": ("owner",),
    "release": ("holder", "manager", "tool"),
    "edit": ("manager",),
    "note": ("anyone",),
    "reparent": ("manager",),
    "reorder": ("manager",),
    "external": ("tool",),
    "renumber": ("tool",),
    "rejected": ("tool",),
}
"""Events that leave the state as it is, and who may fire them."""

PROJECT: dict[Kind, tuple[EventRole, ...]] = {
    "init": ("operator", "manager"),
    "configure": ("manager",),
    "rejected": ("tool",),
}
"""Events that are about no task, and who may fire them."""

_ROWS: dict[tuple[State, Kind, State], Transition] = {
    (row.source, row.event, row.target): row for row in TRANSITIONS
}


def moves_from(state: State) -> str:
    """Returns a sentence for refusals: what is allowed from a state, and whose state it is."""
    owner = STAGE[state].role
    whose = f"{state} belongs to the {owner}" if owner else f"{state} belongs to nobody"
    moves: dict[str, None] = {}
    for row in TRANSITIONS:
        is_command = not {"tool", "checker"}.issuperset(row.who)
        if row.source == state and is_command and (row.event != "abort" or state in ABORTABLE):
            moves[row.event] = None
    if STAGE[state].claimable:
        moves["claim"] = None
    listed = ", ".join(sorted(moves)) or "nothing"
    return f"{whose}; allowed from here: {listed}."


def queue_rank(task: Task) -> int:
    """Returns the place of a task in the queue of agents, 0 when it is not in it."""
    started, fresh = STAGE[task.state].rank
    if task.claimed_by is not None:
        return 0
    return started if has_started(task) else fresh


def has_started(task: Task) -> bool:
    """Tells whether somebody has already had this task's present stage or an earlier one."""
    return task.branch is not None


_INBOX_RANKS: dict[str, int] = {
    "MANAGER_REVIEW": 1,
    "HELD_WORK": 2,
    "HELD_PLAN": 3,
    "HELD_DESIGN": 4,
    "NEW": 10,
}
INBOX_ABORTED_DEPENDENCY = 5
INBOX_LEASE_EXPIRED = 6
INBOX_ATTENTION = 7
INBOX_UNTRUSTED_CHECK = 8
INBOX_PROPOSAL = 9


def inbox_rank(task: Task) -> int:
    """Returns the inbox rank that follows from the task alone, 0 when it does not wait there."""
    rank = _INBOX_RANKS.get(task.state, 0)
    if task.state == "NEW" and task.proposed_by is not None:
        rank = INBOX_PROPOSAL
    if task.attention and (rank == 0 or rank > INBOX_ATTENTION):
        return INBOX_ATTENTION
    return rank


def objection(graph: Graph, event: Event) -> str | None:
    """Returns why a recorded event is not legal on this graph, None when it is."""
    if not event.is_about_a_task:
        is_theirs = event.role in PROJECT.get(event.kind, ())
        return None if is_theirs else f"the {event.role} may not {event.kind}"
    if event.task is None or event.uid is None or event.target is None:
        return "it lacks Task, Uid or To"
    if isinstance(event.change, Created) or (
        isinstance(event.change, ExternallyChanged) and event.change.created
    ):
        return _objection_to_new(graph, event, event.task)
    if event.source is None:
        return "it lacks From"
    task = graph.get(event.task)
    if task is None:
        return f"the task {event.task} does not exist"
    if task.uid != event.uid:
        return f"the task {event.task} has another uid"
    if task.state != event.source:
        return f"the task is at {task.state}, not at {event.source}"
    return (
        _objection_to_row(task, event)
        or _objection_to_claim(task, event)
        or _objection_to_change(graph, task, event)
    )


def _objection_to_new(graph: Graph, event: Event, task: str) -> str | None:
    change = event.change
    if graph.get(task) is not None:
        return f"the task {task} exists already"
    if event.uid is not None and graph.with_uid(event.uid) is not None:
        return "a task with this uid exists already"
    if event.source is not None or event.target != "NEW":
        return f"a new task starts at NEW, not with {event.source or 'nothing'} to {event.target}"
    if isinstance(change, Created):
        return _objection_to_created(graph, event, change)
    assert isinstance(change, ExternallyChanged)
    values = {"title": "", **dict(change.set)}
    return (
        ("only the tool may adopt a task" if event.role != "tool" else None)
        or _objection_to_values(values, (*EDITABLE, *_LINKS))
        or _objection_to_links(graph, values)
    )


def _objection_to_created(graph: Graph, event: Event, change: Created) -> str | None:
    proposer = None if event.role == "manager" else event.actor
    if change.proposed_by != proposer:
        return f"the {event.role} may not create it as if {change.proposed_by} proposed it"
    if change.supersedes is not None and proposer is not None:
        return f"the {event.role} may not supersede a task"
    if not all(map(is_id, change.former_ids)):
        return "it has had a number that is none"
    if not all(fields.is_extra(name) for name, _ in change.extra):
        return "it has a key that is nobody's own"
    values = {name: getattr(change, name) for name in (*EDITABLE, *_LINKS)}
    return _objection_to_values(values, values) or _objection_to_links(graph, values)


def _objection_to_links(graph: Graph, values: Mapping[str, Any]) -> str | None:
    needs = values.get("depends_on", ())
    parent, replaced = values.get("parent"), values.get("supersedes")
    for other in (*needs, parent, replaced, values.get("follows")):
        if other is not None and graph.get(other) is None:
            return f"it names {other}, which does not exist"
    above = graph.get(parent) if parent is not None else None
    if above is not None and not above.is_open:
        return f"the task {parent} is closed"
    if replaced is None:
        return None
    former = graph.get(replaced)
    if former is not None and former.is_landed:
        return f"the task {replaced} has landed"
    if dependencies.ring(graph, replaced, needs):
        return "it closes a ring of dependencies"
    return None


def _objection_to_row(task: Task, event: Event) -> str | None:
    """Checks the table: is there such a row, and may this role fire it?"""
    assert event.source is not None
    assert event.target is not None
    if event.kind in STEADY and event.source == event.target:
        who = STEADY[event.kind]
        if not task.is_open and not _is_for_closed(event.change):
            return "the task is closed"
    else:
        row = _ROWS.get((event.source, event.kind, event.target))
        if row is None:
            return f"there is no {event.kind} from {event.source} to {event.target}"
        who = row.who
    if not any(_may_fire(role, event.role, task) for role in who):
        return f"the {event.role} may not {event.kind} at {event.source}"
    return None


def _is_for_closed(change: Change) -> bool:
    """Tells whether an event adds or clears a row about a task that is closed."""
    match change:
        case Rejected():
            return True
        case Noted():
            return change.seen or change.attention is not None
        case _:
            return False


def _may_fire(who: Who, role: EventRole, task: Task) -> bool:
    owner = STAGE[task.state].role
    match who:
        case "anyone":
            return True
        case "holder" | "owner":
            return role == owner
        case _:
            return role == who


def _objection_to_claim(task: Task, event: Event) -> str | None:
    """Checks the fence: whoever speaks for an agent presents the present claim."""
    match event.kind:
        case "claim":
            if task.claim is not None:
                return f"the task is claimed by {task.claimed_by}"
            if not STAGE[task.state].claimable:
                return f"{task.state} cannot be claimed"
            return None if event.claim else "it lacks Claim"
        case "release":
            if task.claim is None:
                return "the task is not claimed"
            return _objection_to_release(task, event)
        case "submit" | "feedback" if STAGE[task.state].claimable:
            return None if task.claim and event.claim == task.claim else "its claim is stale"
        case "hold" if event.role not in ("manager", "tool"):
            return None if task.claim and event.claim == task.claim else "its claim is stale"
        case "pass" | "fail":
            taken = task.claim is not None and event.claim != task.claim
            return f"CHECK is claimed by {task.claimed_by}" if taken else None
        case _:
            return None


def _objection_to_release(task: Task, event: Event) -> str | None:
    assert isinstance(event.change, Released)
    match event.change.why:
        case "released" if event.claim != task.claim:
            return "its claim is stale"
        case "released":
            return None if event.role == STAGE[task.state].role else "it is not the holder's"
        case "forced":
            return None if event.role == "manager" else "only the manager releases by force"
        case _:
            return (
                None if event.role == "tool" else f"only the tool says that it {event.change.why}"
            )


def _objection_to_change(graph: Graph, task: Task, event: Event) -> str | None:
    change = event.change
    match change:
        case Submitted() if task.state in ("NEW", "BLOCKED"):
            return _objection_to_dispatch(graph, task, event, change)
        case Submitted():
            return _objection_to_submit(graph, task, event, change)
        case FeedbackGiven():
            return _objection_to_feedback(task, event, change)
        case CheckPassed() | CheckRefuted():
            return _objection_to_check(task, event, change)
        case Held():
            return None if change.reason.strip() else "it gives no reason"
        case Unblocked() if event.target != task.enters:
            return f"the task enters {task.enters}"
        case Unblocked() | Resumed():
            return _objection_to_wait(graph, task, event)
        case Aborted():
            return _objection_to_abort(graph, task)
        case Edited() | ExternallyChanged():
            return _objection_to_edit(graph, task, change)
        case Noted():
            named = all(fields.is_name(name) for name, _ in change.artifacts)
            return None if named else "an artifact has no name"
        case Reparented():
            return objection_to_parent(graph, task.id, change.parent)
        case Reordered():
            return None if fields.is_key(change.position) else "it is no position"
        case Renumbered() if change.new != task.id or change.old not in task.former_ids:
            return "it tells of other numbers than the task has had"
        case _:
            return None


def _objection_to_wait(graph: Graph, task: Task, event: Event) -> str | None:
    """Checks that a task is BLOCKED exactly while it waits for something."""
    waits = bool(dependencies.open_dependencies(graph, task.depends_on))
    if waits != (event.target == "BLOCKED"):
        return "a dependency is open" if waits else "no dependency is open"
    return None


def _objection_to_dispatch(graph: Graph, task: Task, event: Event, change: Submitted) -> str | None:
    if event.target == "CLOSED":
        done = None if change.outcome == "landed" else "it lacks the outcome"
        return done or objection_to_close(graph, task)
    if change.outcome is not None:
        return "a task with an outcome is closed"
    if (change.enters is not None) != (event.target == "BLOCKED"):
        return "a task says what it enters exactly while it is BLOCKED"
    return _objection_to_wait(graph, task, event)


def _objection_to_submit(graph: Graph, task: Task, event: Event, change: Submitted) -> str | None:
    if (change.outcome == "landed") != (event.target == "CLOSED"):
        return "a task has landed exactly when it is closed by a submit"
    heading = STAGE[task.state].heading
    drafted = change.draft is not None and change.draft.section == heading
    if drafted != (event.target in DRAFTED) or (change.draft is not None and not drafted):
        return "a draft belongs to a review of a section"
    match task.state:
        case "MANAGER_REVIEW":
            if dependencies.open_dependencies(graph, task.depends_on):
                return "a dependency is open"
            if any_open_child(graph, task.id):
                return "a child is open"
            return None if event.commit else "it lacks the landed commit"
        case "WORK":
            return None if event.commit else "it lacks the work tip"
        case _:
            return None


def _objection_to_feedback(task: Task, event: Event, change: FeedbackGiven) -> str | None:
    if not change.findings:
        return "it has no findings"
    counted = task.rejections + (0 if task.state == "MANAGER_REVIEW" else 1)
    if change.rejections != counted:
        return f"it counts {change.rejections} rejections and not {counted}"
    return _objection_to_reason(event, change.held_reason)


def _objection_to_check(task: Task, event: Event, change: CheckPassed | CheckRefuted) -> str | None:
    if event.commit != task.submitted_tip:
        return "it checked another commit than the submitted one"
    if isinstance(change, CheckPassed):
        return None
    if not change.findings:
        return "it has no findings"
    if change.failures != task.check_failures + 1:
        return f"it counts {change.failures} failures and not {task.check_failures + 1}"
    return _objection_to_reason(event, change.held_reason)


def _objection_to_reason(event: Event, reason: str | None) -> str | None:
    if (event.target in HELD) != bool(reason):
        return "a reason to hold belongs to a task that is held"
    return None


def _objection_to_abort(graph: Graph, task: Task) -> str | None:
    if any_open_child(graph, task.id):
        return "a child is open"
    # From now on whoever needs this task needs the one that replaces it.
    if dependencies.ring(graph, task.id, graph.superseders(task.id)):
        return "it closes a ring of dependencies"
    return None


def objection_to_close(graph: Graph, task: Task) -> str | None:
    """Returns why `submit --close` is not possible, None when it is."""
    children = [child for child in map(graph.get, graph.children(task.id)) if child is not None]
    if not children:
        return "it has no children"
    still = [child.id for child in children if child.is_open]
    if still:
        return f"{', '.join(still)} still open"
    if not any(child.is_landed for child in children):
        return "no child has landed"
    return None


def any_open_child(graph: Graph, task: str) -> tuple[str, ...]:
    """Returns the ids of the open children of a task."""
    children = map(graph.get, graph.children(task))
    return tuple(child.id for child in children if child is not None and child.is_open)


_ANYTIME = frozenset(("title", "labels", "priority", "assignee"))
EDITABLE = (*sorted(_ANYTIME), "checks", "depends_on")
"""The fields that `edit` may set, beside the body and the user's `x-` keys."""


_LINKS = ("parent", "supersedes", "follows")


def is_value(name: str, value: Any) -> bool:
    """Tells whether a field that is set by hand, or a link to another task, may hold a value."""
    match name:
        case "title":
            return isinstance(value, str) and fields.is_title(value)
        case "priority":
            return type(value) is int and 0 <= value <= 4
        case "labels" | "checks":
            return isinstance(value, tuple) and all(map(_is_text, value))
        case "depends_on":
            if not isinstance(value, tuple) or len(value) > dependencies.DEPENDENCY_LIMIT:
                return False
            return all(map(_is_link, value)) and len(set(value)) == len(value)
        case "assignee":
            return value is None or _is_text(value)
        case "parent" | "supersedes" | "follows":
            return value is None or _is_link(value)
        case _:
            return fields.is_extra(name) and isinstance(value, str)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and fields.is_text(value)


def _is_link(value: Any) -> bool:
    return isinstance(value, str) and is_id(value)


def _objection_to_values(
    values: Mapping[str, Any], allowed: Collection[str], unset: Iterable[str] = ()
) -> str | None:
    for name in (*values, *unset):
        if name not in allowed and not fields.is_extra(name):
            return f"the field {name} is not edited by hand"
    if "title" in unset:
        return "a task has a title"
    wrong = next((name for name, value in values.items() if not is_value(name, value)), None)
    return f"it sets {wrong} to what it cannot be" if wrong else None


def _objection_to_edit(graph: Graph, task: Task, change: Edited | ExternallyChanged) -> str | None:
    values = dict(change.set)
    wrong = _objection_to_values(values, EDITABLE, change.unset)
    if wrong is not None:
        return wrong
    names = {*values, *change.unset}
    if "depends_on" in names and task.state not in DEPENDENCIES_EDITABLE:
        return f"dependencies do not change at {task.state}"
    if (change.body or "checks" in names) and task.draft is not None:
        return "a draft is under review"
    needs = values.get("depends_on", ())
    for other in needs:
        if graph.get(other) is None:
            return f"it names {other}, which does not exist"
    if dependencies.ring(graph, task.id, needs):
        return "it closes a ring of dependencies"
    return None


def objection_to_parent(graph: Graph, task: str, parent: str | None) -> str | None:
    """Returns why a task cannot move below a parent, None when it can; no parent is the top."""
    if parent is None:
        return None
    if parent == task:
        return "a task cannot be its own parent"
    above = graph.get(parent)
    if above is None:
        return f"the task {parent} does not exist"
    if not above.is_open:
        return f"the task {parent} is closed"
    seen: set[str] = set()
    current: str | None = parent
    while current is not None and current not in seen:
        if current == task:
            return f"{parent} stands below {task} itself"
        seen.add(current)
        ancestor = graph.get(current)
        current = ancestor.parent if ancestor else None
    return None
