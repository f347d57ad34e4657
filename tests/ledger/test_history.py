"""The log of the ledger, newest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.domain.errors import Corrupt
from gittasks.domain.requests import Edit, Note, Submit
from gittasks.ledger import history
from gittasks.ledger.ledger import Ledger
from gittasks.plumbing import refs
from tests.support.builders import BRANCH, NOW, write_ledger
from tests.support.git import git
from tests.support.ledgers import a_request, asks


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    ledger.append(asks(a_request(1, body=b"One\n"), a_request(2)))
    ledger.append(asks(Submit("000001", enter="WORK")))
    ledger.append(asks(Note("000002", "Not about\nTask: 000001")))
    ledger.append(asks(Note("000001", "About one")))
    return ledger


def test_the_log_of_a_task_has_only_its_events(filled: Ledger) -> None:
    assert [(r.event.kind, r.event.text) for r in filled.log("000001")] == [
        ("note", "About one"),
        ("submit", ""),
        ("create", ""),
    ]


def test_the_log_of_the_ledger_has_every_event(filled: Ledger, folder: Path) -> None:
    assert [r.subject for r in filled.log()] == git(
        folder, "log", "--min-parents=1", "--format=%s", BRANCH
    ).splitlines()


def test_a_limit_takes_the_newest(filled: Ledger) -> None:
    newest = [r.oid for r in filled.log()]
    assert [r.oid for r in filled.log(limit=2)] == newest[:2]
    assert [r.event.kind for r in filled.log("000001", limit=1)] == ["note"]


def test_what_came_after_a_commit_is_a_short_log(filled: Ledger) -> None:
    oids = [r.oid for r in filled.log()]
    assert [r.oid for r in filled.log(since=oids[2])] == oids[:2]


def test_an_entry_knows_the_commit_as_git_has_it(filled: Ledger) -> None:
    entry = next(iter(filled.log()))
    commit = filled.reader.commit(filled.tip)
    assert (entry.oid, entry.tree, entry.parents, entry.message) == (
        commit.oid, commit.tree, commit.parents, commit.message,
    )  # fmt: skip
    assert (entry.committed_at, entry.committer) == (NOW, "Ada <ada@example.org>")


def test_a_body_is_read_from_the_document_of_the_event_that_brought_it(filled: Ledger) -> None:
    filled.append(asks(Edit("000001", set=(("title", "Other"),))))
    first, *_, last = filled.history("000001")
    assert history.with_body(last, filled.reader).body == b"One\n"
    assert history.with_body(first, filled.reader).body is None


def test_a_commit_that_is_no_event_is_named(filled: Ledger) -> None:
    tip = write_ledger(filled.repo, [], parent=refs.read(filled.repo, BRANCH))
    filled.refresh()
    with pytest.raises(Corrupt, match=tip[:12]):
        list(filled.log())
