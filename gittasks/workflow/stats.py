"""Numbers about the work: of all of it, or since a date, an age or a commit of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.projections import statistics

if TYPE_CHECKING:
    from gittasks.domain.projections.statistics import Statistics
    from gittasks.domain.projections.table import World
    from gittasks.ledger.snapshot import Problem
    from gittasks.workflow.project import Project


class Count(NamedTuple):
    """The numbers, from when to when (seconds since 1970), and the documents that are bad."""

    numbers: Statistics
    since: int | None
    until: int
    problems: tuple[Problem, ...]


def stats(project: Project, *, since: str | None = None) -> Count:
    """Returns the numbers; raises UsageFault or UnknownTask where `since` means nothing."""
    from gittasks.ledger import worlds

    ledger = project.ledger
    before: World | None = None
    begin = None
    if since is not None:
        commit, begin = _beginning(project, since)
        before = None if commit is None else worlds.at(ledger, commit)
    now = project.clock()
    numbers = statistics.statistics(worlds.at(ledger, ledger.tip), now, before)
    return Count(numbers, begin, now, ledger.snapshot.problems())


def _beginning(project: Project, since: str) -> tuple[str | None, int]:
    """Returns the last commit that does not count any more, and the time from which all do."""
    from gittasks.workflow.log import newer_than

    ledger = project.ledger
    (said,) = newer_than(project, ledger.tip, since)
    if said.startswith("^"):
        return said[1:], ledger.reader.commit(said[1:]).committer_time
    begin = int(said.removeprefix("--max-age="))
    # The dates of a ledger never go back.
    asked = ("rev-list", "--max-count=1", f"--min-age={begin - 1}", ledger.tip, "--")
    return project.repo.text(*asked) or None, begin
