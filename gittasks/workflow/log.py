"""The ledger as history."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Corrupt, UnknownTask, UsageFault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.domain.events import Event
    from gittasks.workflow.project import Project


class Entry(NamedTuple):
    """One event of the ledger: its commit, the event, and the subject that people read."""

    oid: str
    event: Event
    subject: str


def log(
    project: Project, task_id: str | None, *, since: str | None = None, limit: int | None = None
) -> Iterator[Entry]:
    """Yields the events of the ledger or of one task, newest first; warns of what is none."""
    from gittasks.ledger import history, quarantine

    def tell(error: Corrupt) -> None:
        project.warnings.append(f"{error.message} `git tasks recover` leaves it out.")

    tip = project.ledger.tip
    invalid = quarantine.invalid(project.ledger.state_dir)
    arguments = [tip] if since is None else [*newer_than(project, tip, since), tip]
    if task_id is None:
        for one in history.commits(project.repo, arguments, limit=limit, invalid=invalid, bad=tell):
            yield Entry(one.oid, one.event, one.subject)
        return
    left = limit
    wanted = ("--fixed-strings", f"--grep=Task: {task_id}")
    for one in history.commits(project.repo, (*wanted, *arguments), invalid=invalid, bad=tell):
        # The words may also stand in a text.
        if one.event.task != task_id:
            continue
        if left is not None:
            left -= 1
            if left < 0:
                return
        yield Entry(one.oid, one.event, one.subject)


def newer_than(project: Project, tip: str, since: str) -> tuple[str, ...]:
    """Returns how git is asked for what is newer than a commit, a date or an age."""
    from gittasks.plumbing import merging

    repo = project.repo
    if not since.startswith("-"):
        asked = ("rev-parse", "--verify", "--quiet", f"{since}^{{commit}}")
        commit = repo.text(*asked, check=False)
        if commit and merging.is_ancestor(repo, commit, tip):
            return (f"^{commit}",)
        if commit:
            raise UnknownTask(
                f"The commit {since} is not part of the ledger.",
                "Name a commit of `git tasks log`, a date, or an age such as 2.days.",
            )
    # To a day without a time git gives the present one.
    when = f"{since}T00:00:00" if _is_day(since) else since
    age = repo.text("rev-parse", f"--since={when}").removeprefix("--max-age=")
    # For words that mean nothing git takes the present moment.
    if since.strip().lower() != "now" and abs(int(age) - time.time()) <= 2:  # noqa: TID251
        raise UsageFault(
            f"{since!r} is no date, no age and no commit.",
            "Give a date such as 2026-11-30, an age such as 2.days, or a commit.",
        )
    return (f"--max-age={age}",)


def _is_day(text: str) -> bool:
    parts = text.split("-")
    return [len(part) for part in parts] == [4, 2, 2] and "".join(parts).isdecimal()
