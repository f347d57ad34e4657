"""`git tasks show`: everything about one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.cli import frame, rows
from gittasks.domain.errors import UsageFault
from gittasks.workflow import diff, queries
from gittasks.workflow import show as reading
from gittasks.workflow.answers import as_shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.domain.task import Task
    from gittasks.workflow.show import Shown

_WIDTH = 11


@frame.command("show", past=True)
@frame.argument("task", required=False)
@frame.option("--review", is_flag=True, help="what a reviewer needs: rounds and the change too")
@frame.option("--raw", is_flag=True, help="only the document, as it is stored")
@frame.option("--prompt", is_flag=True, help="only what an agent would be sent for it now")
def command(
    session: frame.Session, task: str | None, review: bool, raw: bool, prompt: bool
) -> None:
    """Show one task: its document, rounds, findings, checks and costs.

    Without TASK, the task of the worktree we stand in.
    """
    project = session.project
    task_id = project.resolve(task)
    if prompt and (review or raw):
        raise UsageFault("This asks for two things at once.", "Name one of them.")
    if prompt:
        _show_prompt(session, task_id)
        return
    if raw:
        _show_raw(session, reading.document(project, task_id), task_id)
        return
    shown = reading.show(project, task_id)
    change = diff.change(project, shown.task, patch=True) if review else None
    if session.out.json:
        data = as_shown(shown)
        if review:
            data["change"] = None if change is None else change.as_object()
        session.answer("task", data)
        return
    out = session.out
    out.page()
    out.line(f"{shown.task.id} {shown.task.title}", "bold")
    for name, text in facts(session, shown):
        # Only the reason of a hold has lines, each of them indented.
        say = out.block if name == "held" else out.line
        say(f"{name:<{_WIDTH}}{text}" if name else text)
    _show_findings(session, shown, every_round=review)
    if shown.body.strip():
        out.line()
        out.block(shown.body.decode("utf-8", "surrogateescape"))
    if change is not None:
        out.line()
        out.patch(change.patch)


def _show_raw(session: frame.Session, document: bytes, task_id: str) -> None:
    text = document.decode("utf-8", "surrogateescape")
    if not session.answer("document", {"id": task_id, "document": text}):
        session.out.raw(document)


def _show_prompt(session: frame.Session, task_id: str) -> None:
    from gittasks.workflow import prompts  # only where it is asked for

    found = prompts.preview(session.project, task_id)
    task = found.task
    data = {"id": task.id, "state": task.state, "prompt": found.text, "files": dict(found.files)}
    if not session.answer("prompt", data):
        session.out.block(found.text)


def facts(session: frame.Session, shown: Shown) -> Iterator[tuple[str, str]]:
    """Yields what is worth saying about the task, a name and a text each."""
    task = shown.task
    outcome = f" {task.outcome}" if task.outcome else ""
    yield "state", f"{task.state}{outcome}, for {rows.ago(session, task.entered_at)}"
    if task.claimed_by:
        only = ", in this clone only" if shown.provisional else ""
        yield "claimed by", f"{task.claimed_by}, lease until {task.lease_expires}{only}"
    simple = (
        ("enters", task.enters), ("assignee", task.assignee), ("branch", task.branch),
        ("landed", task.landed), ("labels", ", ".join(task.labels)),
        ("supersedes", task.supersedes), ("follows", task.follows),
        ("proposed by", task.proposed_by),
    )  # fmt: skip
    yield from ((name, text) for name, text in simple if text)
    if task.priority != 2:
        yield "priority", str(task.priority)
    if task.parent:
        yield "parent", task.parent
    for name, tasks in (("needs", shown.needs), ("needed by", shown.needed_by),
                        ("children", shown.children)):  # fmt: skip
        for number, other in enumerate(tasks):
            yield "" if number else name, _other(other, name, shown, number)
    for lost in shown.lost_needs:
        yield "waits", f"{lost} was aborted"
    for number, text in enumerate(task.checks):
        yield ("check" if not number else "", text if not number else " " * _WIDTH + text)
    yield from _kept(shown)
    yield "created", f"{task.created_at} by {task.created_by}"


def _other(other: Task, name: str, shown: Shown, number: int) -> str:
    state = f"{other.state}, {other.outcome}" if other.outcome else other.state
    waits = ", waited for" if name == "needs" and other.id in shown.open_needs else ""
    return f"{' ' * _WIDTH if number else ''}{other.id} ({state}{waits}) {other.title}"


def _kept(shown: Shown) -> Iterator[tuple[str, str]]:
    """Yields what the stages left: artifacts, costs, the last check."""
    task = shown.task
    for name, value in task.artifacts:
        yield "artifact", f"{name} = {value}"
    if task.costs:
        seconds = sum(cost.seconds for cost in task.costs)
        money = sum(cost.cost for cost in task.costs)
        tokens = sum(cost.tokens for cost in task.costs)
        yield "costs", f"{seconds} s, {money:.2f} dollars, {tokens} tokens"
    if shown.checked is not None:
        for result in shown.checked.results:
            ended = "timed out" if result.timed_out else f"exit {result.exit}"
            yield "last check", f"{ended}: {result.command}"
    for row in task.attention:
        yield "attention", row.text
    if task.held_reason:
        yield "held", task.held_reason.replace("\n", "\n" + " " * _WIDTH)


def _show_findings(session: frame.Session, shown: Shown, *, every_round: bool) -> None:
    out = session.out
    if every_round:
        for row in shown.rounds:
            at = queries.time_text(row.at)
            out.line(f"round {row.round} of {row.review} by {row.actor}, {at}:")
            for item in row.findings:
                out.block("  - " + item.replace("\n", "\n    "))
    elif shown.task.findings is not None:
        found = shown.task.findings
        out.line(f"findings for {found.state}, round {found.round}:")
        for item in found.items:
            out.block("  - " + item.replace("\n", "\n    "))
