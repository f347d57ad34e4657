"""What the journal keeps comes back byte for byte, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gittasks.ledger import journal
from gittasks.plumbing import objects
from gittasks.plumbing.objects import Draft
from gittasks.plumbing.repository import Repository

OID = st.text("0123456789abcdef", min_size=40, max_size=40)
DRAFTS = st.lists(
    st.builds(
        Draft,
        OID,
        st.sampled_from(["blob", "tree", "commit"]),
        st.binary(max_size=40) | st.sampled_from([b"end\n", b"\nend\n", b"blob 1 1\n"]),
    ),
    max_size=4,
).map(tuple)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.none() | OID, OID, DRAFTS)
def test_an_entry_comes_back_as_it_was_kept(
    home: Path, before: str | None, tip: str, drafts: tuple[Draft, ...]
) -> None:
    path = journal.keep(str(home), before, tip, drafts)
    assert journal.read(path) == journal.Entry(path, before, tip, drafts)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_an_entry_that_was_cut_off_is_none(home: Path, data: st.DataObject) -> None:
    path = journal.keep(str(home), None, "a" * 40, [Draft("b" * 40, "blob", b"text\n")])
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert journal.read(path) is None


def test_an_entry_that_is_gone_is_none(home: Path) -> None:
    assert journal.read(str(home / "nothing")) is None


def test_there_are_no_entries_without_a_folder(home: Path) -> None:
    assert (journal.entries(str(home)), journal.sorted_out(str(home))) == ([], ([], []))


def test_entries_stay_a_minute_and_the_newest_are_looked_at_again(home: Path) -> None:
    paths = [journal.keep(str(home), None, f"{n:040d}", []) for n in range(7)]
    for number, path in enumerate(paths):
        seconds = 1000 + (0 if number < 2 else 70)
        os.utime(path, ns=(number, seconds * 10**9 + number))
    assert journal.sorted_out(str(home)) == (paths[:2], paths[3:])


def test_an_entry_knows_its_process(home: Path) -> None:
    entry = journal.read(journal.keep(str(home), None, "a" * 40, []))
    assert entry is not None
    assert entry.process == os.getpid()


def test_dropping_twice_is_no_mistake(home: Path) -> None:
    path = journal.keep(str(home), None, "a" * 40, [])
    journal.drop(path)
    journal.drop(path)
    assert journal.entries(str(home)) == []


@pytest.mark.parametrize("size", [1000, 2_000_000])
def test_what_is_missing_of_an_entry_is_written_again(size: int, folder: Path, home: Path) -> None:
    repo = Repository.open(str(folder))
    drafts = [objects.draft(repo, "blob", bytes([n]) * (size // 60)) for n in range(60)]
    path = journal.keep(str(home), None, "a" * 40, drafts)
    objects.write(repo, drafts[:58])
    with objects.Reader(repo) as reader:
        answers = [journal.restore_entry(repo, reader, path) for _ in range(2)]
        assert [found and found.data for found in reader.many(d.oid for d in drafts)] == [
            draft.data for draft in drafts
        ]
    assert answers == [2, 0]


def test_an_entry_that_went_meanwhile_restores_nothing(folder: Path, home: Path) -> None:
    repo = Repository.open(str(folder))
    with objects.Reader(repo) as reader:
        assert journal.restore_entry(repo, reader, str(home / "nothing")) == 0
