"""The brief for whoever works in a task's directory: who, what, findings, how to end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.machine import STAGE
from gittasks.workspaces import quarantine

if TYPE_CHECKING:
    from gittasks.domain.requests import Speaker
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project

LIMIT = 2048
"""The most bytes of a brief; what does not fit is in the assignment."""

_REMARKS = 5
_REMARK = 200

_WORDS = {
    "DESIGN": "Say how it should be built: structure and fit, no list of steps. Commit nothing.",
    "DESIGN_REVIEW": "Judge the design at the end of the assignment. Commit nothing.",
    "PLAN": "Write numbered todos that somebody else can carry out. Commit nothing.",
    "PLAN_REVIEW": "Judge the todos at the end of the assignment. Commit nothing.",
    "WORK": "Do the work in this tree and commit it; answer each todo and finding in your notes.",
    "CHECK": "The checks of the task run here.",
    "WORK_REVIEW": "Judge the change (`git tasks diff`). Commit nothing.",
}


class Brief(NamedTuple):
    """What `prime` tells: the task, the speaker, and the text."""

    task: Task
    actor: str
    role: str | None
    text: str


def prime(project: Project, spelling: str | None) -> Brief:
    """Returns the brief about a task for whoever asks."""
    task = project.task(project.resolve(spelling), reading=True)
    speaker = project.speaker("prime", task.id)
    return Brief(task, speaker.actor, speaker.role, _text(project, task, speaker))


def _text(project: Project, task: Task, speaker: Speaker) -> str:
    lines = [
        f"{task.id} {task.title}",
        f"You are {speaker.actor}, the {speaker.role}." if speaker.role else
        f"You are {speaker.actor}.",
        f"State: {task.state}" + (f", held by {task.claimed_by}." if task.claimed_by else "."),
    ]  # fmt: skip
    stage = STAGE[task.state]
    if task.claim is None or speaker.claim != task.claim:
        if stage.claimable:
            lines.append(f"You do not hold it. Take it with: git tasks start {task.id}")
        return _bounded(lines, [])
    places = project.places
    lines += [
        f"Work in: {places.tree(task.id)}",
        f"Read: {places.assignment(task.id)}",
        _WORDS[task.state],
    ]
    if task.state == "WORK" and quarantine.of_tree(places.state, places.tree(task.id)):
        lines.append("HEAD is detached here: commit as you are, and switch to no branch.")
    lines += _base_moved(project, task)
    lines += _said(project, task)
    if task.check_failures and task.findings and task.findings.state == task.state:
        lines.append(f"What the checks printed: {os.path.join(places.state, 'checks', task.id)}")
    findings = list(task.findings.items) if task.findings else []
    if findings and task.findings and task.findings.state == task.state:
        lines.append("Answer these findings:")
        return _bounded(lines, [f"- {item}" for item in findings], _endings(project, task))
    return _bounded(lines, [], _endings(project, task))


def _base_moved(project: Project, task: Task) -> list[str]:
    from gittasks.plumbing import merging  # only for a holder
    from gittasks.workflow.dispatch import base_name

    wanted = base_name(project)
    found = project.ledger.reader.get(wanted)
    if found is None or task.base is None or found.oid == task.base:
        return []
    count = len(merging.commits_between(project.repo, task.base, found.oid))
    name = project.base.removeprefix("refs/heads/")
    if count == 0:
        return []
    if wanted != project.base:
        return [
            f"{name} of {project.remote} has moved by {count} commit(s) since: "
            f"git merge {found.oid[:12]} if you need it, never rebase."
        ]
    return [f"{name} has moved by {count} commit(s) since: merge it if you need it, never rebase."]


def _said(project: Project, task: Task) -> list[str]:
    """Returns what was remarked since the claim before this one: answers, notes, reasons."""
    said: list[str] = []
    claims = 0
    for event in project.ledger.history(task.id):
        claims += event.kind == "claim"
        if claims > 1 or len(said) == _REMARKS:
            break
        if event.kind in ("note", "resume", "release") and event.text:
            said.append(f"- {event.actor}: {' '.join(event.text.split())[:_REMARK]}")
    return ["Said since:", *reversed(said)] if said else []


def _endings(project: Project, task: Task) -> list[str]:
    stage = STAGE[task.state]
    actor = project.options.actor
    name = f" --as {actor}" if actor else ""
    lines = [f"End with one of{' (with' + name + ')' if name else ''}:"]
    if stage.heading:
        lines.append(f"  git tasks submit      when {stage.heading} is written"
                     + (" and committed" if task.state == "WORK" else ""))  # fmt: skip
    else:
        lines.append("  git tasks submit      to approve")
        lines.append("  git tasks feedback -m TEXT   to send it back, one -m a finding")
    lines.append("  git tasks hold --reason TEXT   when you cannot go on")
    return lines


def _bounded(lines: list[str], findings: list[str], endings: list[str] | None = None) -> str:
    """Returns the brief within its limit; findings that do not fit are counted."""
    ending = endings or []
    text = ""
    for kept in range(len(findings), -1, -1):
        left = len(findings) - kept
        more = [f"- {left} more in the assignment and in `git tasks show`"] if left else []
        text = "\n".join([*lines, *findings[:kept], *more, *ending]) + "\n"
        if len(text.encode()) <= LIMIT:
            return text
    return text.encode()[:LIMIT].decode("utf-8", "ignore")
