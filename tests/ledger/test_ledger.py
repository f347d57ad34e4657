"""Appending to the ledger, and what is read afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.domain import config
from gittasks.domain.errors import NoLedger, Refused
from gittasks.domain.requests import Note, Submit
from gittasks.ledger.layout import BACKUP
from gittasks.ledger.ledger import Appended, Ledger
from gittasks.plumbing import refs
from tests.support.builders import BRANCH, NOW, hexadecimal
from tests.support.git import git, make_repository
from tests.support.ledgers import a_request, asks, open_ledger


def test_a_created_task_is_a_document_in_a_folder_of_a_hundred(
    ledger: Ledger, folder: Path
) -> None:
    ledger.append(asks(a_request(1, body=b"Do it.\n")))
    assert git(folder, "ls-tree", "-r", "--name-only", BRANCH).splitlines() == [
        "project.yaml",
        "tasks/0000/000001.md",
    ]
    assert git(folder, "show", f"{BRANCH}:tasks/0000/000001.md").splitlines() == [
        "---",
        'id: "000001"',
        f'uid: "{hexadecimal("uid 1")}"',
        'title: "Task 1"',
        "state: NEW",
        'entered_at: "2027-01-15T08:00:00Z"',
        'created_at: "2027-01-15T08:00:00Z"',
        'created_by: "Ada"',
        "---",
        "Do it.",
    ]


def test_one_write_starts_five_git_processes_with_everything(folder: Path, ledger: Ledger) -> None:
    ledger.append(asks(a_request(1)))
    ledger.close()
    fresh = open_ledger(folder)
    fresh.append(asks(Note("000001", "hello")))
    fresh.close()
    assert fresh.repo.calls <= 5


def test_the_answers_after_a_write_are_those_of_the_new_tip(ledger: Ledger, folder: Path) -> None:
    done = ledger.append(asks(a_request(1), Submit("000001", enter="WORK")))
    again = open_ledger(folder)
    assert (ledger.tip, again.tip) == (done.tip, done.tip)
    for one in (ledger, again):
        assert [(row.id, row.state) for row in one.ready()] == [("000001", "WORK")]
        assert [recorded.event.kind for recorded in one.log("000001")] == ["submit", "create"]
    again.close()


def test_two_repositories_begin_their_ledgers_with_the_same_commit(home: Path) -> None:
    roots: list[str] = []
    for name in ("one", "two"):
        path = make_repository(home / name)
        ledger = open_ledger(path, now=NOW + len(roots))
        ledger.create(config.Project(base="master"), name)
        ledger.close()
        roots.append(git(path, "rev-list", "--max-parents=0", BRANCH))
    assert roots[0] == roots[1]


def test_a_decision_without_events_writes_nothing(ledger: Ledger, folder: Path) -> None:
    before = git(folder, "rev-parse", BRANCH)
    done = ledger.append(lambda _graph: ())
    assert done == Appended((), (), before, before)
    assert git(folder, "rev-parse", BRANCH) == before


def test_without_a_ledger_reading_and_writing_name_init(folder: Path) -> None:
    ledger = open_ledger(folder)
    for ask in (lambda: ledger.tip, lambda: ledger.append(asks(a_request()))):
        with pytest.raises(NoLedger, match="no ledger") as caught:
            ask()
        assert caught.value.hint == "Run `git tasks init`."
    ledger.close()


def test_a_ledger_that_is_checked_out_is_not_written(
    ledger: Ledger, folder: Path, home: Path
) -> None:
    git(folder, "worktree", "add", "-q", str(home / "look"), "gittasks")
    with pytest.raises(Refused, match="checked out at") as caught:
        ledger.append(asks(a_request()))
    assert str(home / "look") in caught.value.message


def test_other_refs_move_with_the_events_or_nothing_does(ledger: Ledger, folder: Path) -> None:
    head = git(folder, "rev-parse", "HEAD")
    ledger.append(asks(a_request()), also=[refs.Change("refs/heads/task/000001", head, None)])
    assert git(folder, "rev-parse", "refs/heads/task/000001") == head
    assert git(folder, "rev-parse", BACKUP) == git(folder, "rev-parse", BRANCH)
