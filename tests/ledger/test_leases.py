"""Renewals of leases: forward only, for one claim, and never more than a hint."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gittasks.domain.times import timestamp
from gittasks.ledger import leases
from gittasks.plumbing import refs
from gittasks.plumbing.objects import Reader
from gittasks.plumbing.repository import Repository
from tests.support.builders import NOW, a_task, hexadecimal
from tests.support.git import git, make_repository

ONE, TWO = "000001", "000002"
MINE, OTHER = hexadecimal("mine"), hexadecimal("other")
SOON, LATER = NOW + 60, NOW + 3600


@pytest.fixture(params=["sha1", "sha256"])
def repo(request: pytest.FixtureRequest, home: Path) -> Repository:
    return Repository.open(str(make_repository(home / "project", object_format=request.param)))


@pytest.fixture
def reader(repo: Repository) -> Iterator[Reader]:
    with Reader(repo) as reader:
        yield reader


def put(repo: Repository, ref: str, data: str | bytes) -> str:
    """Lets a ref point to a blob, whatever it says."""
    blob = git(repo.common_dir, "hash-object", "-w", "--stdin", stdin=data)
    git(repo.common_dir, "update-ref", ref, blob)
    return blob


def text_of(claim: str, until: int) -> str:
    return f"claim {claim}\nuntil {timestamp(until)}\n"


def test_a_renewal_is_two_lines_in_a_blob(repo: Repository, reader: Reader) -> None:
    leases.renew(repo, reader, ONE, MINE, LATER)
    ref = f"refs/gittasks/leases/{ONE}"
    assert git(repo.common_dir, "cat-file", "blob", ref) == (
        f"claim {MINE}\nuntil 2027-01-15T09:00:00Z"
    )
    assert leases.renewed(reader, ONE, MINE) == "2027-01-15T09:00:00Z"
    assert refs.list(repo, "refs/gittasks/") == {ref: refs.read(repo, ref)}


def test_what_was_never_renewed_has_no_later_end(repo: Repository, reader: Reader) -> None:
    assert leases.renewed(reader, ONE, MINE) is None
    assert leases.all(repo, reader) == {}


def test_an_end_moves_only_forward(repo: Repository, reader: Reader) -> None:
    leases.renew(repo, reader, ONE, MINE, SOON)
    leases.renew(repo, reader, ONE, MINE, LATER)
    ref = f"refs/gittasks/leases/{ONE}"
    before = refs.read(repo, ref)
    for until in (LATER, SOON, NOW - 86_400):
        leases.renew(repo, reader, ONE, MINE, until)
    assert refs.read(repo, ref) == before
    assert leases.renewed(reader, ONE, MINE) == timestamp(LATER)


def test_what_another_claim_has_left_is_replaced(repo: Repository, reader: Reader) -> None:
    leases.renew(repo, reader, ONE, OTHER, LATER)
    leases.renew(repo, reader, ONE, MINE, SOON)
    assert leases.renewed(reader, ONE, OTHER) is None
    assert leases.renewed(reader, ONE, MINE) == timestamp(SOON)


@pytest.mark.parametrize(
    ("own", "fetched", "end"),
    [
        ((MINE, SOON), (MINE, LATER), LATER),
        ((MINE, LATER), (MINE, SOON), LATER),
        ((OTHER, LATER), (MINE, SOON), SOON),
        ((MINE, SOON), (OTHER, LATER), SOON),
        (None, (MINE, LATER), LATER),
        ((OTHER, LATER), (OTHER, LATER), None),
    ],
)
def test_of_ours_and_the_fetched_one_the_later_counts(
    repo: Repository,
    reader: Reader,
    own: tuple[str, int] | None,
    fetched: tuple[str, int],
    end: int | None,
) -> None:
    if own is not None:
        put(repo, leases.LEASES + ONE, text_of(*own))
    put(repo, leases.INCOMING + ONE, text_of(*fetched))
    expected = None if end is None else timestamp(end)
    assert leases.renewed(reader, ONE, MINE) == expected
    assert leases.all(repo, reader).get((ONE, MINE)) == expected


def test_all_are_read_at_once(repo: Repository, reader: Reader) -> None:
    for number in range(1, 30):
        leases.renew(repo, reader, f"{number:06d}", hexadecimal(f"claim {number}"), LATER)
    claims = {f"{number:06d}": hexadecimal(f"claim {number}") for number in range(1, 40)}
    before = repo.calls
    found = leases.renewed_of(reader, claims)
    assert repo.calls == before  # the reader runs already
    assert found == {f"{number:06d}": timestamp(LATER) for number in range(1, 30)}
    every = leases.all(repo, reader)
    assert repo.calls == before + 1
    assert every == {(task, claims[task]): end for task, end in found.items()}


RUBBISH = {
    "nothing": b"",
    "a line more": text_of(MINE, LATER).encode() + b"\n",
    "a line less": f"claim {MINE}\n".encode(),
    "no claim": text_of("x" * 32, LATER).encode(),
    "capitals": text_of(MINE.upper(), LATER).encode(),
    "no time": f"claim {MINE}\nuntil 2027-13-15T09:00:00Z\n".encode(),
    "other digits": f"claim {MINE}\nuntil 2027-01-15T09:00:0\u0663\n".encode(),
    "not UTF-8": b"\xff" * 66,
    "carriage returns": f"claim {MINE}\r\nuntil 2027-01-15T09:00:00\n".encode(),
    "long": b"claim " * 100_000,
}


@pytest.mark.parametrize("data", RUBBISH.values(), ids=RUBBISH)
@pytest.mark.parametrize("prefix", [leases.LEASES, leases.INCOMING])
def test_rubbish_counts_as_absent(
    repo: Repository, reader: Reader, data: bytes, prefix: str
) -> None:
    blob = put(repo, prefix + ONE, data)
    assert leases.renewed(reader, ONE, MINE) is None
    assert leases.all(repo, reader) == {}
    assert leases.kept(repo, reader) == [leases.Kept(prefix + ONE, blob, ONE, None, None)]
    leases.renew(repo, reader, ONE, MINE, LATER)
    assert leases.renewed(reader, ONE, MINE) == timestamp(LATER)


def test_another_kind_of_object_counts_as_absent(repo: Repository, reader: Reader) -> None:
    for number, target in enumerate(("HEAD", "HEAD^{tree}"), 1):
        git(repo.common_dir, "update-ref", f"{leases.LEASES}00000{number}", target)
    assert leases.renewed_of(reader, {ONE: MINE, TWO: MINE}) == {}
    assert leases.all(repo, reader) == {}


def test_a_ref_without_its_object_counts_as_absent(repo: Repository, reader: Reader) -> None:
    blob = put(repo, leases.LEASES + ONE, text_of(MINE, SOON))
    put(repo, leases.LEASES + TWO, text_of(OTHER, SOON))
    (Path(repo.common_dir) / "objects" / blob[:2] / blob[2:]).unlink()
    assert leases.renewed_of(reader, {ONE: MINE, TWO: OTHER}) == {TWO: timestamp(SOON)}
    assert leases.all(repo, reader) == {(TWO, OTHER): timestamp(SOON)}
    leases.renew(repo, reader, ONE, MINE, LATER)
    assert leases.renewed(reader, ONE, MINE) == timestamp(LATER)


def test_a_broken_ref_counts_as_absent(repo: Repository, reader: Reader) -> None:
    put(repo, leases.LEASES + ONE, text_of(MINE, SOON))
    (Path(repo.common_dir) / leases.LEASES / ONE).write_text("what?\n", encoding="utf-8")
    assert leases.renewed(reader, ONE, MINE) is None
    assert leases.all(repo, reader) == {}


def test_a_name_that_is_no_task_is_nobodys(repo: Repository, reader: Reader) -> None:
    put(repo, leases.LEASES + "none", text_of(MINE, SOON))
    assert leases.all(repo, reader) == {}
    assert [one.task for one in leases.kept(repo, reader)] == [None]


def test_dropped_renewals_are_gone_on_both_sides(repo: Repository, reader: Reader) -> None:
    for prefix in (leases.LEASES, leases.INCOMING):
        put(repo, prefix + ONE, text_of(MINE, SOON))
        put(repo, prefix + TWO, text_of(OTHER, SOON))
    leases.drop(repo, ONE)
    leases.drop(repo, ONE)
    assert leases.all(repo, reader) == {(TWO, OTHER): timestamp(SOON)}


def test_what_was_renewed_meanwhile_is_not_forgotten(repo: Repository, reader: Reader) -> None:
    before = [(one.ref, one.oid) for one in leases.kept(repo, reader)]
    leases.renew(repo, reader, ONE, MINE, SOON)
    before = [(one.ref, one.oid) for one in leases.kept(repo, reader)]
    leases.renew(repo, reader, ONE, MINE, LATER)
    leases.forget(repo, before)
    assert leases.renewed(reader, ONE, MINE) == timestamp(LATER)


@pytest.mark.parametrize(
    ("own", "there", "held", "moves"),
    [
        ((MINE, LATER), None, MINE, "ours"),
        ((MINE, LATER), (MINE, SOON), MINE, "ours"),
        ((MINE, LATER), (OTHER, LATER + 60), MINE, "ours"),
        ((MINE, SOON), (MINE, SOON), MINE, None),
        ((MINE, SOON), (MINE, LATER), MINE, None),
        ((OTHER, LATER), (MINE, SOON), MINE, None),
        ((OTHER, LATER), None, MINE, None),
        (None, (MINE, SOON), MINE, None),
        (None, (OTHER, SOON), MINE, "away"),
        ((OTHER, SOON), (OTHER, LATER), None, "away"),
        ((OTHER, SOON), None, None, None),
    ],
)
def test_the_remote_gets_later_ends_and_loses_what_is_over(
    repo: Repository,
    reader: Reader,
    own: tuple[str, int] | None,
    there: tuple[str, int] | None,
    held: str | None,
    moves: str | None,
) -> None:
    ours = None if own is None else put(repo, leases.LEASES + ONE, text_of(*own))
    old = None if there is None else put(repo, leases.INCOMING + ONE, text_of(*there))
    task = a_task(state="WORK", claimed_by="wim", claim=held) if held else a_task()
    name = leases.LEASES + ONE
    expected = {"ours": [(name, ours, old)], "away": [(name, None, old)], None: []}[moves]
    assert leases.outgoing(repo, reader, {ONE: task}.get) == expected
    assert leases.outgoing(repo, reader, {TWO: task}.get) == []


@pytest.mark.parametrize("held", [MINE, None])
def test_rubbish_goes_from_the_remote(repo: Repository, reader: Reader, held: str | None) -> None:
    old = put(repo, leases.INCOMING + ONE, "what?")
    task = a_task(state="WORK", claimed_by="wim", claim=held) if held else a_task()
    found = leases.outgoing(repo, reader, {ONE: task}.get)
    assert found == [(leases.LEASES + ONE, None, old)]


def test_of_many_renewals_at_once_the_latest_end_stays(home: Path) -> None:
    folder = make_repository(home / "project")

    def renew(until: int) -> None:
        repo = Repository.open(str(folder))
        with Reader(repo) as reader:
            leases.renew(repo, reader, ONE, MINE, until)

    ends = [NOW + 10 * number for number in (3, 8, 1, 7, 2, 6, 5, 4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(renew, ends))
    with Reader(Repository.open(str(folder))) as reader:
        assert leases.renewed(reader, ONE, MINE) == timestamp(max(ends))
