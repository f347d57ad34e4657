"""What surfaces answer with, as JSON has it: the same objects at the command line and over MCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gittasks.domain.errors import GittasksError
    from gittasks.domain.task import Task
    from gittasks.workflow.graph_view import GraphView
    from gittasks.workflow.project import Outcome
    from gittasks.workflow.queries import Rows, Waiting
    from gittasks.workflow.show import Shown
    from gittasks.workflow.sync import Synced

SCHEMA_VERSION = 1


def envelope(
    kind: str, data: Any, ledger: str | None, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns an answer with the ledger commit that it is true for."""
    head = {"schema_version": SCHEMA_VERSION, "kind": kind, "ledger": ledger}
    return {**head, "data": data, **(more or {})}


def error_envelope(error: Mapping[str, Any], ledger: str | None) -> dict[str, Any]:
    """Returns the answer that stands in place of one that could not be given."""
    return {"schema_version": SCHEMA_VERSION, "kind": "error", "ledger": ledger, "error": error}


def as_error(refusal: GittasksError) -> dict[str, Any]:
    """Returns what an answer says of a failure."""
    return {
        "code": refusal.exit_code,
        "name": refusal.name,
        "message": refusal.message,
        "hint": refusal.hint,
        "retryable": refusal.retryable,
        "task": refusal.task,
    }


def as_step(outcome: Outcome) -> dict[str, Any]:
    """Returns what a verb did: the task object, the step, and what the verb adds."""
    from gittasks.domain.frontmatter import task_dict

    data = task_dict(outcome.task)
    data["from"] = outcome.source
    data["to"] = outcome.target
    data["commit"] = outcome.commit
    data["unblocked"] = list(outcome.unblocked)
    return {**data, **outcome.extra}


def as_tasks(tasks: Iterable[Task], *, redacted: bool = False) -> list[dict[str, Any]]:
    """Returns tasks as lists have them, without their bodies."""
    from gittasks.domain.frontmatter import task_dict

    rows = [task_dict(task) for task in tasks]
    if redacted:
        from gittasks.domain.redact import redact_fields

        rows = [redact_fields(row) for row in rows]
    return rows


def as_waiting(row: Waiting) -> dict[str, Any]:
    """Returns one row of the inbox: the task, and why and since when it waits."""
    from gittasks.domain.redact import redact

    return {
        **as_tasks((row.task,), redacted=True)[0],
        "rank": row.rank,
        "reason": redact(row.reason),
        "command": row.command,
        "blocking": row.blocking,
        "waiting_since": row.waiting_since,
    }


def as_shown(shown: Shown) -> dict[str, Any]:
    """Returns everything about a task, its body and its rounds too."""
    from gittasks.workflow.queries import time_text

    checked = shown.checked
    return {
        **as_tasks((shown.task,))[0],
        "body": shown.body.decode("utf-8", "surrogateescape"),
        "rounds": [
            {**row._asdict(), "at": time_text(row.at), "findings": list(row.findings)}
            for row in shown.rounds
        ],
        "open_dependencies": list(shown.open_needs),
        "aborted_dependencies": list(shown.lost_needs),
        "dependents": [task.id for task in shown.needed_by],
        "children": [task.id for task in shown.children],
        "blocking": shown.blocking,
        "provisional": shown.provisional,
        "last_check": None
        if checked is None
        else {
            "outcome": checked.outcome,
            "commit": checked.commit,
            "at": time_text(checked.at),
            "results": [result._asdict() for result in checked.results],
        },
    }


def as_graph(view: GraphView) -> dict[str, Any]:
    """Returns nodes and edges; an edge goes from a task to one that it names."""
    from gittasks.domain.redact import redact

    return {
        "about": view.about,
        "nodes": [
            {
                "id": task.id,
                "title": redact(task.title),
                "state": task.state,
                "outcome": task.outcome,
                "priority": task.priority,
                "labels": [redact(label) for label in task.labels],
                "claimed_by": task.claimed_by and redact(task.claimed_by),
                "entered_at": task.entered_at,
            }
            for task in view.tasks
        ],
        "edges": [{"kind": edge.kind, "from": edge.task, "to": edge.named} for edge in view.edges],
        "unread": list(view.unread),
        "left_out": view.left_out,
    }


def as_synced(done: Synced) -> dict[str, Any]:
    """Returns what a sync did, or would do."""
    return {
        "remote": done.remote,
        "received": done.received,
        "published": done.published,
        "pending": done.pending,
        "branches": list(done.branches),
        "renumbered": [{"uid": o.uid, "old": o.old, "new": o.new} for o in done.renumbered],
        "lost": [
            {"task": o.task, "claim": o.claim, "actor": o.actor, "branch": o.branch,
             "reason": o.reason}
            for o in done.lost
        ],
        "rejected": [
            {"event": kind, "task": task, "reason": reason} for kind, task, reason in done.rejected
        ],
        "dry_run": done.dry_run,
    }  # fmt: skip


def announced(found: Rows, *, redacted: bool = False) -> dict[str, Any]:
    """Returns what stands beside the rows: what was cut, what could not be read."""
    more: dict[str, Any] = {}
    if found.left_out:
        more["truncated"] = found.left_out
    if found.problems:
        more["problems"] = [
            {
                "path": problem.path,
                "task": problem.task,
                "message": problem_text(problem.message, redacted),
            }
            for problem in found.problems
        ]
    return more


def problem_text(message: str, redacted: bool) -> str:
    """Returns the words about a document, which quote what stands in it."""
    if not redacted:
        return message
    from gittasks.domain.redact import redact

    return redact(message)
