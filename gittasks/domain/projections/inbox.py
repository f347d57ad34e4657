"""The inbox: the decisions that wait for the manager, in rank order, each with its command.

Ranks are in `machine`; ties: most blocking, longest waiting, lowest id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain import dependencies, machine
from gittasks.domain.projections.persistent import Persistent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from gittasks.domain.projections.graph import Step
    from gittasks.domain.projections.signals import Signal, Signals
    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph

NAME = "inbox"
SIGNALS: tuple[str, ...] = (
    "inbox_added",
    "inbox_cleared",
)


class Entry(NamedTuple):
    """What waits for the manager as far as events alone tell: rank, since when, by which commit."""

    rank: int
    since: int
    oid: str


class Inbox(NamedTuple):
    """The entries by task. Leases and trust are no events; `inbox` adds what follows from them."""

    entries: Persistent[Entry] = Persistent()


class InboxRow(NamedTuple):
    """One decision: rank, task, why it waits, the command that settles it."""

    rank: int
    blocking: int
    waiting_since: str
    id: str
    reason: str
    command: str

    @property
    def order(self) -> tuple[int, int, str, str]:
        """Returns the key that sorts the inbox."""
        return (self.rank, -self.blocking, self.waiting_since, self.id)


def inbox(
    graph: Graph,
    tasks: Iterable[Task],
    now: int,
    *,
    untrusted: Collection[str] = (),
    renewed: Callable[[Task], str | None] = lambda _task: None,
) -> list[InboxRow]:
    """Returns the rows first to last; `untrusted` are ids at CHECK whose commands wait here.

    `renewed` gives the later end of a claim's lease, and is asked only where it looks expired.
    """
    rows = []
    for task in tasks:
        waits = task.id in untrusted
        rank = rank_of(graph, task, now, waits_for_trust=waits, renewed=renewed)
        if rank:
            reason, command = explained(graph, task, rank)
            blocking = dependencies.blocking(graph, task.id)
            rows.append(InboxRow(rank, blocking, task.entered_at, task.id, reason, command))
    return sorted(rows, key=lambda row: row.order)


def fold(state: Inbox, step: Step) -> tuple[Inbox, Signals]:
    """Returns the entries after a step, and what came into the inbox or left it by it."""
    from gittasks.domain.projections.signals import Signal

    signals: list[Signal] = []
    for task in affected(step):
        rank = standing_rank(step.graph, task)
        known = state.entries.get(task.id)
        if not rank:
            if known is not None:
                state = Inbox(state.entries.without(task.id))
                signals.append(Signal("inbox_cleared", NAME, task.id, (("rank", known.rank),)))
        elif known is None or known.rank != rank:
            state = Inbox(state.entries.with_(task.id, Entry(rank, step.event.at, step.oid)))
            about = (("rank", rank), ("state", task.state))
            signals.append(Signal("inbox_added", NAME, task.id, about))
    return state, tuple(signals)


def affected(step: Step) -> Iterable[Task]:
    """Returns the tasks whose place in inbox or queue a step can have changed."""
    before, after = step.before, step.after
    if after.supersedes is None if before is None else before.outcome == after.outcome:
        return (after,)
    # An end, and a successor, say something about whoever waits.
    waiting = dependencies.waiters(step.graph, after.id)
    found = (step.graph.get(task) for task in waiting)
    return (after, *(task for task in found if task is not None and task.id != after.id))


def standing_rank(graph: Graph, task: Task) -> int:
    """Returns the rank that follows from the events alone, 0 when nothing waits."""
    ranks = [machine.inbox_rank(task)]
    if task.state == "BLOCKED" and dependencies.aborted_dependencies(graph, task.depends_on):
        ranks.append(machine.INBOX_ABORTED_DEPENDENCY)
    return min((rank for rank in ranks if rank), default=0)


def rank_of(
    graph: Graph,
    task: Task,
    now: int,
    *,
    waits_for_trust: bool = False,
    renewed: Callable[[Task], str | None] = lambda _task: None,
) -> int:
    """Returns the inbox rank of a task, 0 when nothing about it waits for the manager."""
    from gittasks.domain.rules.claim import is_expired  # whoever only explains a row needs no rules

    ranks = [standing_rank(graph, task)]
    if is_expired(task, now) and is_expired(task, now, renewed(task)):
        ranks.append(machine.INBOX_LEASE_EXPIRED)
    if task.state == "CHECK" and waits_for_trust:
        ranks.append(machine.INBOX_UNTRUSTED_CHECK)
    return min((rank for rank in ranks if rank), default=0)


def explained(graph: Graph, task: Task, rank: int) -> tuple[str, str]:
    """Returns the reason of a row in words and the command that settles it."""
    if rank == machine.INBOX_ABORTED_DEPENDENCY:
        lost = dependencies.aborted_dependencies(graph, task.depends_on)
        verb = "was" if len(lost) == 1 else "were"
        reason = f"{', '.join(lost)} {verb} aborted"
        named = {heir: graph.get(heir) for one in lost for heir in graph.superseders(one)}
        heirs = sorted(heir for heir, task in named.items() if task is not None and task.is_open)
        if heirs:
            reason += f", superseded by {', '.join(heirs)}"
        return reason, f"git tasks dep rm {task.id} {lost[0]}"
    if task.state == "NEW" and not task.attention:
        found = _about_children(graph, task)
        if found is not None:
            return found
    return _plain_reason(task, rank)


def _about_children(graph: Graph, task: Task) -> tuple[str, str] | None:
    """Returns what a parent that was never dispatched waits for, None where it has no child."""
    children = [child for child in map(graph.get, graph.children(task.id)) if child is not None]
    still = [child.id for child in children if child.is_open]
    if still:
        verb = "is" if len(still) == 1 else "are"
        return f"{len(still)} of its children {verb} open", f"git tasks list --parent {task.id}"
    if any(child.is_landed for child in children):
        return "its children have closed", f"git tasks submit {task.id} --close"
    return None


def _plain_reason(task: Task, rank: int) -> tuple[str, str]:
    match rank:
        case machine.INBOX_LEASE_EXPIRED:
            return (
                f"the lease of {task.claimed_by} ran out",
                f"git tasks release {task.id} --force",
            )
        case machine.INBOX_ATTENTION:
            row = task.attention[-1]
            if row.kind == "invalid" and task.is_open:
                return row.text, f"git tasks edit {task.id}"
            return row.text, f"git tasks note {task.id} --seen"
        case machine.INBOX_UNTRUSTED_CHECK:
            return "its checks wait for your approval", f"git tasks trust {task.id}"
        case machine.INBOX_PROPOSAL:
            return f"proposed by {task.proposed_by}", f"git tasks submit {task.id}"
        case _:
            return _state_reason(task)


def _state_reason(task: Task) -> tuple[str, str]:
    match task.state:
        case "MANAGER_REVIEW":
            return "ready for the final review", f"git tasks submit {task.id}"
        case "NEW":
            return "not dispatched yet", f"git tasks submit {task.id}"
        case _:
            return task.held_reason or "held", f"git tasks resume {task.id}"
