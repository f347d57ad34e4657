"""A renewed claim is a held claim, for everybody who asks, until its later end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gittasks.domain.errors import AlreadyClaimed
from gittasks.domain.requests import Create, Release, Speaker, Submit
from gittasks.domain.times import seconds_of, timestamp
from gittasks.ledger import leases
from gittasks.workflow import claim, queries, status
from gittasks.workflow.cleanup import sweep
from gittasks.workflow.leases import renew_own
from gittasks.workflow.project import Options, Project
from gittasks.workspaces import records
from tests.support.builders import hexadecimal
from tests.support.git import git
from tests.workflow.ground import NOW, begun

ONE, TWO = "000001", "000002"
DAY = 24 * 3600


@pytest.fixture
def folder(home: Path) -> Path:
    """A repository with two tasks at WORK, the first claimed by wim for a day."""
    folder = home / "project"
    project = begun(folder)
    for number, task in enumerate((ONE, TWO), 1):
        project.apply(Create(f"Task {number}", hexadecimal(task)), project.speaker("new"))
        project.apply(Submit(task, enter="WORK"), project.speaker("submit"))
    claim.claim(at(folder, NOW, "wim"), ONE, with_tree=False)
    return folder


def at(folder: Path, now: int, actor: str | None = None) -> Project:
    """Returns the project as a command sees it whose clock says `now`."""
    role = None if actor is None else "worker"
    said = Options(str(folder), actor=actor, role=role)
    return Project.open(said, {**os.environ}, clock=lambda: now)


def renewed_until(folder: Path, end: int, *, by: str | None = None) -> None:
    """Renews the first task's claim, or leaves a renewal of another one."""
    project = at(folder, NOW)
    held = project.task(ONE).claim
    assert held is not None
    leases.renew(project.repo, project.ledger.reader, ONE, by or held, end)


def reasons(project: Project) -> list[tuple[str, str]]:
    return [(row.task.id, row.reason) for row in queries.inbox(project, None).rows]


def test_a_renewed_claim_is_no_row_of_the_inbox_until_its_later_end(folder: Path) -> None:
    expired = [(ONE, "the lease of wim ran out")]
    assert reasons(at(folder, NOW + DAY)) == expired
    renewed_until(folder, NOW + 2 * DAY)
    assert reasons(at(folder, NOW + DAY)) == []
    assert reasons(at(folder, NOW + 2 * DAY - 1)) == []
    assert reasons(at(folder, NOW + 2 * DAY)) == expired


def test_what_another_claim_was_given_does_not_count(folder: Path) -> None:
    renewed_until(folder, NOW + 2 * DAY, by=hexadecimal("other"))
    assert reasons(at(folder, NOW + DAY)) == [(ONE, "the lease of wim ran out")]


@pytest.mark.parametrize("renewed", [False, True])
def test_the_rows_that_are_left_out_are_counted_without_renewed_claims(
    folder: Path, renewed: bool
) -> None:
    claim.claim(at(folder, NOW, "wanda"), TWO, with_tree=False)
    if renewed:
        renewed_until(folder, NOW + 2 * DAY)
    found = queries.inbox(at(folder, NOW + DAY), 1)
    assert len(found.rows) == 1
    assert (found.rows[0].task.id, found.left_out) == ((TWO, 0) if renewed else (ONE, 1))
    assert status.overview(at(folder, NOW + DAY), "Ada").inbox_count == 2 - renewed


def test_a_renewed_claim_is_not_taken_over(folder: Path) -> None:
    renewed_until(folder, NOW + 2 * DAY)
    with pytest.raises(AlreadyClaimed, match="held by wim"):
        claim.claim(at(folder, NOW + DAY, "wanda"), ONE, with_tree=False)
    taken = claim.claim(at(folder, NOW + 2 * DAY, "wanda"), ONE, with_tree=False)
    assert taken.task.claimed_by == "wanda"


def test_a_renewed_claim_is_not_released_as_expired(folder: Path) -> None:
    renewed_until(folder, NOW + 2 * DAY)
    request = Release(ONE, why="expired")
    project = at(folder, NOW + DAY)
    with pytest.raises(AlreadyClaimed, match="has not run out"):
        project.apply(request, Speaker("Ada"))
    later = at(folder, NOW + 2 * DAY)
    assert [event.kind for event in later.apply(request, Speaker("Ada")).events] == ["release"]


def test_nothing_is_asked_where_no_lease_looks_expired(folder: Path) -> None:
    renewed_until(folder, NOW + 2 * DAY)
    project = at(folder, NOW + DAY - 1)
    queries.inbox(project, None)
    asked = project.repo.calls
    expired = at(folder, NOW + DAY)
    queries.inbox(expired, None)
    assert expired.repo.calls == asked + 1


# The holder's own renewal.


def test_a_holder_renews_once_less_than_half_is_left(folder: Path) -> None:
    ends = []
    for now in (NOW, NOW + DAY // 2, NOW + DAY // 2 + 1, NOW + DAY // 2 + 2, NOW + 2 * DAY):
        project = at(folder, now, "wim")
        task = project.task(ONE)
        done = renew_own(project, task, _record(project))
        ends.append((done, leases.renewed(project.ledger.reader, ONE, str(task.claim))))
    first = timestamp(NOW + DAY // 2 + 1 + DAY)
    assert ends == [
        (False, None),
        (False, None),
        (True, first),
        (False, first),
        (True, timestamp(NOW + 3 * DAY)),
    ]


def test_a_clock_that_goes_back_takes_nothing_away(folder: Path) -> None:
    renewed_until(folder, NOW + 3 * DAY)
    for now in (NOW - 30 * DAY, NOW - 1, NOW + DAY):
        project = at(folder, now, "wim")
        assert not renew_own(project, project.task(ONE), _record(project))
        assert reasons(project) == []
    reader = at(folder, NOW).ledger.reader
    end = leases.renewed(reader, ONE, str(at(folder, NOW).task(ONE).claim))
    assert end is not None
    assert seconds_of(end) == NOW + 3 * DAY


def test_a_claim_that_is_over_is_not_renewed(folder: Path) -> None:
    record = _record(at(folder, NOW))
    manager = at(folder, NOW + DAY)
    manager.apply(Release(ONE, why="forced"), manager.speaker("abort"))
    project = at(folder, NOW + DAY, "wim")
    assert not renew_own(project, project.task(ONE), record)
    claim.claim(at(folder, NOW + DAY, "wanda"), ONE, with_tree=False)
    project = at(folder, NOW + 2 * DAY, "wim")
    assert not renew_own(project, project.task(ONE), record)
    assert leases.all(project.repo, project.ledger.reader) == {}


def _record(project: Project) -> records.ClaimRecord:
    (record,) = records.of_task(project.state_dir, project.task(ONE).uid)
    return record


# What is over goes.


def test_gc_drops_what_was_renewed_for_claims_that_are_over(folder: Path) -> None:
    project = at(folder, NOW)
    held = str(project.task(ONE).claim)
    for task, by in ((ONE, held), (TWO, hexadecimal("over")), ("000009", hexadecimal("unknown"))):
        leases.renew(project.repo, project.ledger.reader, task, by, NOW + DAY)
    stale = git(folder, "rev-parse", f"{leases.LEASES}{TWO}")
    git(folder, "update-ref", f"{leases.INCOMING}{ONE}", stale)
    git(folder, "update-ref", f"{leases.LEASES}what", stale)
    gone = [
        ("lease", f"{leases.INCOMING}{ONE}", ONE),
        ("lease", f"{leases.LEASES}{TWO}", TWO),
        ("lease", f"{leases.LEASES}what", "what"),
    ]
    for dry_run in (True, False):
        swept = sweep(at(folder, NOW), dry_run=dry_run)
        assert [tuple(one)[:3] for one in swept] == gone
    assert sweep(at(folder, NOW)) == []
    project = at(folder, NOW)
    assert leases.all(project.repo, project.ledger.reader) == {
        (ONE, held): timestamp(NOW + DAY),
        ("000009", hexadecimal("unknown")): timestamp(NOW + DAY),
    }
