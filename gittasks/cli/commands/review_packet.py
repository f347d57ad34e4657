"""`git tasks review-packet`: all that a reviewer or the manager needs about one task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.cli import frame
from gittasks.domain.projections.graph_v0 import GATE_LIMIT
from gittasks.workflow import review_packet
from gittasks.workflow.task_graph_view import View

if TYPE_CHECKING:
    from collections.abc import Iterator


@frame.command("review-packet", past=True)
@frame.argument("task", required=False)
@frame.option("--handoff-only", is_flag=True, help="only what whoever takes over has to know")
@frame.option("--gate-limit", type=frame.IntRange(min=0), metavar="N",
              help="draw at most N gates in the graph (2)")  # fmt: skip
def command(
    session: frame.Session, task: str | None, handoff_only: bool, gate_limit: int | None
) -> None:
    """Gather what a reviewer needs about one task: Markdown, or JSON with --json.

    Without TASK, the task of the worktree we stand in, else the one that waits first. Secrets and
    absolute paths are replaced.
    """
    project = session.project
    view = View(project)
    task_id = review_packet.chosen(project, task, view)
    if handoff_only:
        found = review_packet.compact(project, task_id, view)
    else:
        limit = GATE_LIMIT if gate_limit is None else gate_limit
        found = review_packet.packet(project, task_id, view, limit)
    if session.answer("review_packet", found):
        return
    out = session.out
    out.page()
    out.block("\n".join(_handoff(found) if handoff_only else _markdown(found)))


def _head(found: dict[str, Any]) -> Iterator[str]:
    task, following = found["task"], found["next"]
    outcome = f", {task['outcome']}" if task["outcome"] else ""
    yield from (f"# {task['id']} {_line(task['title'])}", "")
    yield f"- state: {task['state']}{outcome}, since {task['entered_at']}"
    if task["claimed_by"]:
        yield f"- claimed by: {_line(task['claimed_by'])}"
    yield f"- next: {_line(following['reason'])}"
    if following["command"]:
        yield f"- command: `{following['command']}`"
    if task.get("held_reason") or found.get("held_reason"):
        yield f"- held: {_line(task.get('held_reason') or found['held_reason'])}"
    if found["blocking"]:
        yield f"- tasks that wait on it: {found['blocking']}"
    yield f"- packet: {found['packet_id']}, as of {found['as_of']}"


def _handoff(found: dict[str, Any]) -> Iterator[str]:
    yield from _head(found)
    if found["findings"]:
        yield from ("", "## Findings", "", *(f"- {_line(one)}" for one in found["findings"]))
        if found["findings_truncated"]:
            yield f"- and {found['findings_truncated']} more"
    last, change = found["last_check"], found["change"]
    if last is not None:
        yield from ("", "## Checks", "", f"- {'passed' if last['passed'] else 'failed'}")
        yield from (f"- failed: `{_line(one)}`" for one in last["failed"])
    if change is not None:
        yield from ("", "## Change", "", _extent(change))
    if found["open_dependencies"]:
        yield from ("", "## Needs", "", *(f"- {one}" for one in found["open_dependencies"]))


def _markdown(found: dict[str, Any]) -> Iterator[str]:
    yield from _head(found)
    if found["body"].strip():
        # Quoted, so that no heading of the document passes for one of the packet.
        yield from ("", "## Document", "")
        yield from (f"> {line}".rstrip() for line in found["body"].splitlines())
    if found["rounds"]:
        yield from ("", "## Rounds")
        for row in found["rounds"]:
            yield from (
                "",
                f"Round {row['round']} of {row['review']} by {_line(row['actor'])}:",
                "",
            )
            yield from (f"- {_line(one)}" for one in row["findings"])
    yield from _section("Verdicts", map(_verdict, found["verdicts"]))
    yield from _section("Checks", (row for run in found["checks"] for row in _run(run)))
    yield from _change(found)
    yield from _section(
        "Artifacts", (f"{_line(one['name'])} = {_line(one['value'])}" for one in found["artifacts"])
    )
    needs = (*found["dependencies"], *found["children"])
    yield from _section("Needs", map(_other, needs))
    yield from _section("Needed by", map(_other, found["dependents"]))
    costs = found["costs"]
    if costs["claims"]:
        yield from ("", "## Costs", "")
        yield (
            f"{_count(costs['claims'], 'claim')}, {costs['seconds']} s, {costs['cost']:.2f} dollars,"
            f" {costs['tokens']} tokens"
        )
    graph = found["task_graph_projection"]
    if graph is not None:
        yield from _section("Graph", map(_edge, graph["edges"]))


def _section(name: str, rows: Any) -> Iterator[str]:
    for number, row in enumerate(rows):
        if not number:
            yield from ("", f"## {name}", "")
        yield f"- {row}"


def _verdict(row: dict[str, Any]) -> str:
    word = "accepted" if row["accepted"] else "sent back"
    return f"{row['at']} {row['state']} {word} by {_line(row['actor'])}"


def _run(run: dict[str, Any]) -> Iterator[str]:
    verdict = "passed" if run["passed"] else "failed"
    yield f"{run['at']} {verdict} on {(run['commit'] or 'nothing')[:12]}"
    for one in run["results"]:
        ended = "timed out" if one["timed_out"] else f"exit {one['exit']}"
        yield f"`{_line(one['command'])}`: {ended}"


def _change(found: dict[str, Any]) -> Iterator[str]:
    change, preview = found["change"], found["merge_preview"]
    if found["change_problem"]:
        yield from ("", "## Change", "", _line(found["change_problem"]))
    if change is None:
        return
    yield from ("", "## Change", "", _extent(change), "")
    yield from (f"- {one['commit'][:12]} {_line(one['subject'])}" for one in change["commits"])
    yield from (f"- {one['status']} {_line(one['path'])}" for one in change["files"])
    if preview is not None and preview["behind"]:
        both = preview["changed_on_both_count"]
        yield ""
        yield (
            f"{preview['base_branch']} has gone on by {_count(preview['behind'], 'commit')};"
            f" {_count(both, 'file')} changed on both sides."
        )


def _extent(change: dict[str, Any]) -> str:
    return (
        f"{_count(change['commit_count'], 'commit')}, {_count(change['file_count'], 'file')}:"
        f" {change['base'][:12]}..{change['tip'][:12]}"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _other(task: dict[str, Any]) -> str:
    return f"{task['id']} {task['state']} {_line(task['title'])}"


def _edge(edge: dict[str, Any]) -> str:
    return f"{edge['relation']}: {edge['reason']}"


def _line(text: str) -> str:
    return " ".join(text.split())
