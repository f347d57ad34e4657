"""What the page of the board shows: one plain value of lists, texts and numbers, true for one commit.

Where tasks stand comes from the read cache, like every list; how they got there is folded from
the events. It is shown beyond the team, so nothing in it names a secret or an absolute path, and
no text, list or history in it grows without a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain.redact import redact
from gittasks.domain.task import STATES
from gittasks.domain.times import seconds_of
from gittasks.workflow import graph_view, queries
from gittasks.workflow.queries import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gittasks.domain.projections.table import World
    from gittasks.domain.task import Task
    from gittasks.ledger.snapshot import ReadyRow
    from gittasks.workflow.project import Project

CLOSED_LIMIT = 5000
"""The most closed tasks that are shown, the newest ones."""
ROW_LIMIT = 500
"""The most rows of the inbox and of the queue."""
VISIT_LIMIT = 24
"""The most states that the history of one task names, the newest ones."""
PERIODS = 26
"""The most weeks whose numbers are shown."""

_ITEMS = 12
_PROBLEMS = 10


def board(project: Project) -> dict[str, Any]:
    """Returns the tasks, the inbox, the queue, the picture of the graph and the numbers."""
    from gittasks.domain.projections.statistics import statistics
    from gittasks.ledger import worlds

    ledger = project.ledger
    now = project.clock()
    snapshot = ledger.snapshot
    world = worlds.at(ledger, ledger.tip)
    shown, left_out = newest(snapshot.all_tasks())
    ready = queries.ready(project, None, ROW_LIMIT, None)
    inbox = queries.inbox(project, ROW_LIMIT)
    graph = graph_view.view(project)
    names = _Names()
    counts = snapshot.counts()
    return {
        "as_of": now,
        "ledger": ledger.tip,
        "states": list(STATES),
        "counts": {state: counts[state] for state in STATES if counts.get(state)},
        "tasks": [_task(task, world, now, names) for task in shown],
        "left_out": left_out,
        "ready": [_ready(row) for row in ready.rows],
        "ready_left_out": ready.left_out,
        "inbox": [
            {
                "id": row.task.id,
                "reason": _text(row.reason),
                "command": row.command,
                "blocking": row.blocking,
                "since": seconds_of(row.waiting_since),
            }
            for row in inbox.rows
        ],
        "inbox_left_out": inbox.left_out,
        "graph": {
            "shown": [task.id for task in graph.tasks],
            "edges": [
                # An arrow goes from what comes first to what comes of it.
                [edge.kind, edge.named, edge.task]
                for edge in graph.edges
                if edge.named not in graph.unread
            ],
        },
        "numbers": _numbers(statistics(world, now)._asdict()),
        "problems": [_text(problem.message) for problem in inbox.problems[:_PROBLEMS]],
        "problem_count": len(inbox.problems),
        "names": names.found,
    }


def good_until(data: Mapping[str, Any]) -> int | None:
    """Returns when the first lease runs out, which changes the inbox without any event."""
    ends = (task["lease"] for task in data["tasks"] if task.get("lease", 0) > data["as_of"])
    return min(ends, default=None)


def newest(tasks: list[Task], limit: int = CLOSED_LIMIT) -> tuple[list[Task], int]:
    """Returns the open tasks and the newest closed ones, lowest id first, and how many are left."""
    closed = [task for task in tasks if not task.is_open]
    if len(closed) <= limit:
        return tasks, 0
    kept = sorted(closed, key=lambda task: (task.entered_at, task.id))[len(closed) - limit :]
    ids = {task.id for task in kept}
    shown = [task for task in tasks if task.is_open or task.id in ids]
    return shown, len(tasks) - len(shown)


class _Names:
    """The names of people and agents, each once; a history says only which."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, name: str) -> int:
        if name not in self._places:
            self._places[name] = len(self.found)
            self.found.append(_text(name))
        return self._places[name]


def _task(task: Task, world: World, now: int, names: _Names) -> dict[str, Any]:
    """Returns one task; what is empty or usual is left out."""
    visits = world.stages.tasks.get(task.id) or ()
    worked = world.assignments.tasks.get(task.id)
    spent = world.costs.by_task.get(task.id)
    row = {
        "id": task.id,
        "title": _text(task.title),
        "state": task.state,
        "since": seconds_of(task.entered_at),
        "outcome": task.outcome,
        "parent": task.parent,
        "needs": list(task.depends_on),
        "supersedes": task.supersedes,
        "follows": task.follows,
        "labels": _texts(task.labels),
        "assignee": task.assignee and _text(task.assignee),
        "holder": task.claimed_by and _text(task.claimed_by),
        "held": task.claimed_at and seconds_of(task.claimed_at),
        "lease": task.lease_expires and seconds_of(task.lease_expires),
        "reason": task.held_reason and _text(task.held_reason),
        "proposed": task.proposed_by and _text(task.proposed_by),
        "attention": _texts(row.text for row in task.attention),
        "findings": _texts(task.findings.items) if task.findings else (),
        "checks": _texts(task.checks),
        "rejections": task.rejections,
        "failures": task.check_failures,
        "worked": 0 if worked is None else worked.seconds(now),
        "cost": 0 if spent is None else round(spent.cost, 4),
        "tokens": 0 if spent is None else spent.tokens,
        "earlier": max(len(visits) - VISIT_LIMIT, 0),
        "visits": [
            [STATES.index(visit.state), visit.at, names.place(visit.actor)]
            for visit in visits[-VISIT_LIMIT:]
        ],
    }
    return {name: value for name, value in row.items() if value} | {"priority": task.priority}


def _ready(row: ReadyRow) -> list[str]:
    return [row.id, row.role]


def _text(text: str) -> str:
    return shortened(redact(text))


def _texts(texts: Iterable[str]) -> list[str]:
    found = list(texts)
    more = [f"and {len(found) - _ITEMS} more"] if len(found) > _ITEMS else []
    return [*map(_text, found[:_ITEMS]), *more]


def _numbers(found: dict[str, Any]) -> dict[str, Any]:
    """Returns the numbers without the days, and with the newest weeks only."""
    found["weeks"] = found["weeks"][-PERIODS:]
    actors = sorted(found["spent_by_actor"], key=lambda row: (-row[1].seconds, row[0]))
    found["spent_by_actor"] = [(_text(name), spent) for name, spent in actors[:_ITEMS]]
    found["first_pass"] = {state: row.first_pass for state, row in found["reviews"]}
    return {
        name: _plain(value) for name, value in found.items() if name not in ("days", "spent_by_day")
    }


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(one) for name, one in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
