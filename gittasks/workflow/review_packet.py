"""Everything that a reviewer or the manager needs about one task, in one answer, redacted.

It is a read: the packet can be thrown away and made again at the same commit of the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain.errors import GittasksError, UsageFault
from gittasks.domain.machine import STAGE
from gittasks.domain.projections.graph_v0 import GATE_LIMIT, Options, packet_id
from gittasks.domain.redact import redact_all
from gittasks.workflow import queries
from gittasks.workflow.queries import time_text
from gittasks.workflow.show import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.domain.projections.artifacts import CheckRun
    from gittasks.domain.task import Task
    from gittasks.workflow.diff import Change
    from gittasks.workflow.project import Project
    from gittasks.workflow.show import Shown
    from gittasks.workflow.task_graph_view import View

COMMIT_LIMIT = 50
"""The most commits of a change, and the most files, that a packet lists."""
FILE_LIMIT = 200
COMPACT_BYTES = 4_900
"""The most bytes of a compact packet as JSON; the envelope around it needs a hundred more."""

_TEXT_LIMITS = (200, 120, 60, 24, 12)
_FREE = ("title", "claimed_by", "reason", "held_reason", "findings", "failed")
_COMPACT_ROWS = 5
_SEPARATOR = "\x1f"


def chosen(project: Project, spelling: str | None, view: View) -> str:
    """Returns the task meant: the one named, the one of this place, else the one that matters most."""
    if spelling is not None:
        return project.resolve(spelling)
    found = project.here() or view.selected
    if found is None:
        raise UsageFault("No task waits for anybody, and none is named.", "Give an id such as 42.")
    return found


def packet(
    project: Project, task_id: str, view: View, gate_limit: int = GATE_LIMIT
) -> dict[str, Any]:
    """Returns the whole packet; raises UnknownTask, or Corrupt for a document that is none."""
    shown = show(project, task_id)
    graph = view.around(task_id, Options(gate_limit))
    found = redact_all(_facts(project, shown, view))
    # What is drawn has been redacted before it was shortened.
    return {**found, "task_graph_projection": graph}


def compact(project: Project, task_id: str, view: View) -> dict[str, Any]:
    """Returns what whoever takes over has to know; its size is bounded, whatever was written."""
    import json

    shown = show(project, task_id)
    whole = redact_all(_brief_facts(project, shown, view))
    found: dict[str, Any] = {}
    for limit in _TEXT_LIMITS:
        found = _shortened(whole, limit)
        if len(json.dumps(found)) <= COMPACT_BYTES:
            break
    return found


def _facts(project: Project, shown: Shown, view: View) -> dict[str, Any]:
    from gittasks.domain.frontmatter import task_dict

    task = shown.task
    change, problem = _change(project, task)
    artifact = view.world.artifacts.tasks.get(task.id)
    return {
        "packet_id": packet_id(task.id, view.source.commit),
        "as_of": time_text(view.source.at),
        "task": task_dict(task),
        "body": shown.body.decode("utf-8", "surrogateescape"),
        "next": _next(project, task),
        "rounds": [
            {**row._asdict(), "at": time_text(row.at), "findings": list(row.findings)}
            for row in shown.rounds
        ],
        "verdicts": [
            {
                "state": one.state, "accepted": one.accepted, "actor": one.actor,
                "at": time_text(one.at), "findings": len(one.findings), "ledger_commit": one.oid,
            }
            for one in (artifact.reviews if artifact else ())
        ],
        "checks": [_check(run) for run in (artifact.checks if artifact else ())],
        "change": change,
        "change_problem": problem,
        "merge_preview": _preview(project, task, change),
        "artifacts": [
            {
                "name": one.name, "value": one.value, "actor": one.actor, "at": time_text(one.at),
                "ledger_commit": one.oid,
            }
            for one in (artifact.recorded if artifact else ())
        ],
        "costs": _costs(view, task.id),
        "stints": _stints(view, task.id),
        "transitions": [
            {
                "state": one.state, "event": one.event, "actor": one.actor,
                "at": time_text(one.at), "ledger_commit": one.oid,
            }
            for one in view.world.stages.tasks.get(task.id) or ()
        ],
        "dependencies": [_brief(one) for one in shown.needs],
        "open_dependencies": list(shown.open_needs),
        "aborted_dependencies": list(shown.lost_needs),
        "dependents": [_brief(one) for one in shown.needed_by],
        "children": [_brief(one) for one in shown.children],
        "blocking": shown.blocking,
    }  # fmt: skip


def _brief_facts(project: Project, shown: Shown, view: View) -> dict[str, Any]:
    task = shown.task
    change, _ = _change(project, task)
    artifact = view.world.artifacts.tasks.get(task.id)
    runs = [] if artifact is None else list(artifact.checks[-1:])
    found = list(task.findings.items) if task.findings else []
    return {
        "packet_id": packet_id(task.id, view.source.commit),
        "as_of": time_text(view.source.at),
        "task": {**_brief(task), "parent": task.parent, "priority": task.priority,
                 "claimed_by": task.claimed_by, "entered_at": task.entered_at,
                 "rejections": task.rejections, "check_failures": task.check_failures},
        "next": _next(project, task),
        "held_reason": task.held_reason,
        "findings": found[:_COMPACT_ROWS],
        "findings_truncated": max(len(found) - _COMPACT_ROWS, 0),
        "last_check": next(map(_brief_check, runs), None),
        "change": change and {
            "base": change["base"],
            "tip": change["tip"],
            "commit_count": change["commit_count"],
            "file_count": change["file_count"],
        },
        "open_dependencies": list(shown.open_needs[:_COMPACT_ROWS]),
        "open_dependencies_truncated": max(len(shown.open_needs) - _COMPACT_ROWS, 0),
        "blocking": shown.blocking,
    }  # fmt: skip


def _brief(task: Task) -> dict[str, Any]:
    return {"id": task.id, "title": task.title, "state": task.state, "outcome": task.outcome}


def _check(run: CheckRun) -> dict[str, Any]:
    return {
        "passed": run.passed,
        "commit": run.commit,
        "at": time_text(run.at),
        "results": [result._asdict() for result in run.results],
        "ledger_commit": run.oid,
    }


def _brief_check(run: CheckRun) -> dict[str, Any]:
    failed = [one.command for one in run.results if one.exit or one.timed_out]
    return {
        "passed": run.passed,
        "commit": run.commit,
        "failed": failed[:_COMPACT_ROWS],
        "failed_truncated": max(len(failed) - _COMPACT_ROWS, 0),
    }


def _next(project: Project, task: Task) -> dict[str, Any]:
    """Returns who has the next move, why, and the command that makes it."""
    role = STAGE[task.state].role
    for row in queries.inbox(project, None).rows:
        if row.task.id == task.id:
            return {"role": "manager", "reason": row.reason, "command": row.command}
    if task.state == "CHECK":
        return {"role": role, "reason": "its checks have to run",
                "command": f"git tasks check {task.id} --record"}  # fmt: skip
    if task.state == "BLOCKED":
        return {"role": None, "reason": "it waits for what it needs",
                "command": f"git tasks dep tree {task.id}"}  # fmt: skip
    if not task.is_open:
        return {"role": None, "reason": f"it is closed, {task.outcome}", "command": None}
    if task.claimed_by is not None:
        return {"role": role, "reason": f"claimed by {task.claimed_by}",
                "command": f"git tasks submit {task.id}"}  # fmt: skip
    return {
        "role": role,
        "reason": f"a {role} can take it",
        "command": f"git tasks start {task.id}",
    }


def _costs(view: View, task_id: str) -> dict[str, Any]:
    from gittasks.domain.projections.costs import Spent

    spent = view.world.costs.by_task.get(task_id) or Spent()
    return spent._asdict()


def _stints(view: View, task_id: str) -> list[dict[str, Any]]:
    found = view.world.assignments.tasks.get(task_id)
    return [
        {
            "actor": one.actor,
            "state": one.state,
            "from": time_text(one.start),
            "to": None if one.end is None else time_text(one.end),
            "ended_by": one.reason,
        }
        for one in (() if found is None else found.stints)
    ]


def _change(project: Project, task: Task) -> tuple[dict[str, Any] | None, str | None]:
    """Returns what the task changes, and why that cannot be told where it cannot."""
    from gittasks.workflow import diff

    try:
        change = diff.change(project, task, patch=False)
    except GittasksError as error:
        return None, error.message
    return None if change is None else _change_object(project, change), None


def _change_object(project: Project, change: Change) -> dict[str, Any]:
    span = (change.tip, f"^{change.base}", "--")
    count = int(project.repo.text("rev-list", "--count", *span))
    shape = _SEPARATOR.join(("%H", "%aI", "%an", "%s"))
    listed = project.repo.text("log", f"--max-count={COMMIT_LIMIT}", f"--format={shape}", *span)
    commits = [line.split(_SEPARATOR, 3) for line in listed.split("\n") if line]
    names = ("commit", "at", "author", "subject")
    return {
        "base": change.base,
        "tip": change.tip,
        "commit_count": count,
        "commits": [
            dict(zip(names, one, strict=True)) for one in commits if len(one) == len(names)
        ],
        "file_count": len(change.files),
        "files": [{"status": status, "path": path} for status, path in change.files[:FILE_LIMIT]],
        "stat": change.stat.splitlines()[-1].strip() if change.stat else "",
    }


def _preview(project: Project, task: Task, change: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns what is known of a merge without making one: how far base and branch are apart."""
    from gittasks.plumbing import merging
    from gittasks.workflow.dispatch import base_name

    if change is None or not task.is_open:
        return None
    name = base_name(project)
    found = project.ledger.reader.get(name)
    if found is None or project.options.at is not None:
        return None
    tip, base = change["tip"], change["base"]
    behind = int(project.repo.text("rev-list", "--count", found.oid, f"^{tip}", "--"))
    both: Sequence[str] = ()
    if behind:
        theirs = {row.path for row in merging.changed_paths(project.repo, base, found.oid)}
        ours = {row.path for row in merging.changed_paths(project.repo, base, tip)}
        both = sorted(theirs & ours)
    return {
        "base_branch": project.settings.base,
        "base_tip": found.oid,
        "behind": behind,
        "ahead": change["commit_count"],
        "is_up_to_date": behind == 0,
        "changed_on_both_count": len(both),
        "changed_on_both": list(both[:FILE_LIMIT]),
    }


def _shortened(value: Any, limit: int, *, is_free: bool = False) -> Any:
    """Returns a JSON value with the free texts in it on one line of bounded length."""
    if isinstance(value, str) and is_free:
        line = " ".join(value.split())
        return line if len(line) <= limit else line[: limit - 3] + "..."
    if isinstance(value, list):
        return [_shortened(item, limit, is_free=is_free) for item in value]
    if isinstance(value, dict):
        return {
            name: _shortened(item, limit, is_free=name in _FREE) for name, item in value.items()
        }
    return value
