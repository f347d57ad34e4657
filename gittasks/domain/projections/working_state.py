"""Who works, who is idle since when and why, and who has the next move.

However a claim ends, by submit, feedback, hold, abort, release, a lease that ran out or a death, it
is gone from here by the same event: what counts is that the task has it no longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gittasks.domain.projections.persistent import Persistent
from gittasks.domain.projections.signals import Signal, Signals
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from gittasks.domain.events import Event
    from gittasks.domain.projections.graph import GraphState, Step
    from gittasks.domain.task import State, Task

NAME = "working_state"
SIGNALS: tuple[str, ...] = (
    "agent_killed",
    "agent_became_idle",
    "agent_became_working",
    "session_became_idle",
    "session_became_working",
)

WaitingOn = Literal["agent", "checker", "manager", "dependency", "none"]
"""Who has the next move in the project."""


class Working(NamedTuple):
    """A live claim: who works on which task, in which state, since when (seconds since 1970)."""

    actor: str
    task: str
    claim: str
    state: State
    since: int


class Idle(NamedTuple):
    """Somebody who works on nothing: since when, why, and the task that was the last one."""

    since: int
    reason: str
    task: str


class WorkingState(NamedTuple):
    """The live claims by task, how many each actor has, and who is idle."""

    claims: Persistent[Working] = Persistent()
    holding: Persistent[int] = Persistent()
    idle: Persistent[Idle] = Persistent()

    @property
    def worker_count(self) -> int:
        """Returns the number of live claims."""
        return len(self.claims)

    def working_children(
        self, graph: GraphState, parent: str, *, recursive: bool = False
    ) -> tuple[str, ...]:
        """Returns the claimed tasks directly below a parent, or anywhere below it."""
        if recursive:
            return tuple(task for task in self.claims if parent in graph.ancestors(task))
        found = (graph.get(task) for task in self.claims)
        return tuple(task.id for task in found if task is not None and task.parent == parent)

    def by_parent(self, graph: GraphState) -> dict[str, int]:
        """Returns for each parent of claimed tasks how many of its direct children they are."""
        found: dict[str, int] = {}
        for claimed in self.claims:
            task = graph.get(claimed)
            assert task is not None
            if task.parent is not None:
                found[task.parent] = found.get(task.parent, 0) + 1
        return dict(sorted(found.items()))

    def is_working(self, graph: GraphState, task: str) -> bool:
        """Tells whether somebody works on a task or on one below it."""
        return task in self.claims or bool(self.working_children(graph, task, recursive=True))


def waiting_on(*, running: int, ready: int, checking: int, waiting: int, blocked: int) -> WaitingOn:
    """Returns who has the next move: what runs or could run, the checker, the manager, nobody."""
    if running or ready:
        return "agent"
    if checking:
        return "checker"
    if waiting:
        return "manager"
    return "dependency" if blocked else "none"


def fold(state: WorkingState, step: Step) -> tuple[WorkingState, Signals]:
    """Returns the claims after a step, and who began or ended to work by it."""
    before, after = step.before, step.after
    old = None if before is None else before.claim
    new = after.claim
    if old == new:
        return state, ()
    signals: list[Signal] = []
    was_working = bool(state.claims)
    if old is not None:
        assert before is not None
        state = _ended(state, before, step.event, signals)
    if new is not None:
        state = _begun(state, after, step.event, signals)
    if bool(state.claims) != was_working:
        name = "session_became_idle" if was_working else "session_became_working"
        signals.append(Signal(name, NAME, None, (("workerCount", len(state.claims)),)))
    return state, tuple(signals)


def end_reason(event: Event) -> str:
    """Returns the word for how an event ends a claim: what a release says, else the event's kind."""
    return getattr(event.change, "why", None) or event.kind


def _ended(state: WorkingState, before: Task, event: Event, signals: list[Signal]) -> WorkingState:
    working = state.claims.get(before.id)
    actor = before.claimed_by or "" if working is None else working.actor
    state = state._replace(claims=state.claims.without(before.id))
    left = (state.holding.get(actor) or 1) - 1
    if left > 0:
        return state._replace(holding=state.holding.with_(actor, left))
    reason = end_reason(event)
    about = (("actor", actor), ("reason", reason))
    if reason == "died":
        signals.append(Signal("agent_killed", NAME, before.id, about))
    signals.append(Signal("agent_became_idle", NAME, before.id, about))
    return state._replace(
        holding=state.holding.without(actor),
        idle=state.idle.with_(actor, Idle(event.at, reason, before.id)),
    )


def _begun(state: WorkingState, after: Task, event: Event, signals: list[Signal]) -> WorkingState:
    assert after.claim is not None
    actor = after.claimed_by or event.actor
    working = Working(actor, after.id, after.claim, after.state, event.at)
    held = state.holding.get(actor) or 0
    if not held:
        about = (("actor", actor), ("state", after.state))
        signals.append(Signal("agent_became_working", NAME, after.id, about))
    return state._replace(
        claims=state.claims.with_(after.id, working),
        holding=state.holding.with_(actor, held + 1),
        idle=state.idle.without(actor),
    )
