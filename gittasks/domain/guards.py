"""The verdict on a worktree: what a stage requires of it, judged on facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import GuardBroken
from gittasks.domain.machine import STAGE

if TYPE_CHECKING:
    from gittasks.domain.requests import GuardReport, Snapshot
    from gittasks.domain.task import Task

SHOWN_LINES = 20
"""How many status lines or files a refusal lists before it only counts."""


def require(task: Task, report: GuardReport | None, *, no_change: bool = False) -> None:
    """Raises GuardBroken unless the worktree is as the task's stage requires at a submit."""
    if report is None:
        return
    match STAGE[task.state].guard:
        case "untouched":
            _require_untouched(task, report)
        case "committed":
            _require_committed(task, report, no_change=no_change)
        case _:
            return


def _require_untouched(task: Task, report: GuardReport) -> None:
    was, now = report.dispatched, report.now
    if report.tip != task.dispatched:
        raise _broken(
            "modified-worktree",
            task,
            report,
            f"The branch {task.branch} has moved since this stage was handed out: "
            f"at {task.state} nothing is committed.",
            f"Put the branch back to {_short(task.dispatched)}, then submit again.",
        )
    if was is None or now is None:
        return
    if (was.branch, was.head) != (now.branch, now.head):
        raise _broken(
            "modified-worktree",
            task,
            report,
            f"HEAD of the worktree is at {_where(now)}, not at {_where(was)} as handed out.",
            f"Run `git switch {_branch(was)}` in the worktree, then submit again.",
        )
    if was.status != now.status:
        changed = sorted(set(was.status) ^ set(now.status))
        raise _broken(
            "modified-worktree",
            task,
            report,
            f"The worktree was changed, and at {task.state} nothing is written there: "
            f"{listed(changed)}.",
            "Undo these changes, then submit again.",
        )


def _require_committed(task: Task, report: GuardReport, *, no_change: bool) -> None:
    now = report.now
    if report.tip is None:
        raise _broken(
            "uncommitted",
            task,
            report,
            f"The branch {task.branch} does not exist.",
            f"Run `git tasks start {task.id}` to bring it back.",
        )
    if now is not None and report.is_stuck:
        raise _broken(
            "uncommitted",
            task,
            report,
            f"HEAD of the worktree is on {now.branch}, and from here no branch can be moved.",
            "Run `git switch --detach` and commit there: it is brought to the branch of the task.",
        )
    if now is not None and not _on_branch(task, now, report):
        raise _broken(
            "uncommitted",
            task,
            report,
            f"HEAD of the worktree is at {_where(now)}, not on {task.branch}.",
            f"Run `git switch {task.branch}` in the worktree and commit there.",
        )
    if now is not None and now.status:
        raise _broken(
            "uncommitted",
            task,
            report,
            f"The worktree has uncommitted changes: {listed(now.status)}.",
            "Commit them, or list build output in .gitignore, then submit again.",
        )
    if not report.descends:
        raise _broken(
            "rewritten",
            task,
            report,
            f"The branch {task.branch} no longer contains {_short(task.dispatched)}, "
            "the commit it was handed out at: its history was rewritten.",
            f"Run `git reset --soft {_short(task.dispatched)}` and commit again: your files stay.",
        )
    if report.commits == 0 or not report.differs:
        raise _broken(
            "uncommitted",
            task,
            report,
            f"There is no change against base: the branch {task.branch} has "
            + ("no commit of its own." if report.commits == 0 else "commits, but the same files."),
            "Commit the work in the task's worktree, then submit again.",
        )
    if task.submitted_tip == report.tip and not no_change:
        raise _broken(
            "uncommitted",
            task,
            report,
            f"The branch {task.branch} has no new commit since it was last submitted.",
            "Commit the rework, or submit with --no-change and the reason in the notes.",
        )


def _on_branch(task: Task, now: Snapshot, report: GuardReport) -> bool:
    if now.branch is None:
        return now.head == report.tip
    return now.branch == f"refs/heads/{task.branch}"


def _broken(issue: str, task: Task, report: GuardReport, message: str, hint: str) -> GuardBroken:
    if report.user_changes:
        message += (
            " Files of your own checkout have changed since the start: "
            f"{listed(report.user_changes)}."
        )
    return GuardBroken(issue, message, hint, task.id)


def listed(lines: tuple[str, ...] | list[str]) -> str:
    """Returns at most 20 lines joined by commas, and how many more there are."""
    shown = ", ".join(line.strip() for line in lines[:SHOWN_LINES])
    more = len(lines) - SHOWN_LINES
    return shown if more <= 0 else f"{shown} and {more} more"


def _where(snapshot: Snapshot) -> str:
    return snapshot.branch or f"{_short(snapshot.head)} (detached)"


def _branch(snapshot: Snapshot) -> str:
    name = snapshot.branch or ""
    return name.removeprefix("refs/heads/") or f"--detach {_short(snapshot.head)}"


def _short(oid: str | None) -> str:
    return oid[:12] if oid else "nothing"
