"""Refs move only from the value that was named, all together or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gittasks.plumbing import refs, versions
from gittasks.plumbing.errors import GitError, ObjectMissing, RefLocked, RefMoved
from gittasks.plumbing.refs import Change, Head, ReflogEntry
from gittasks.plumbing.repository import Repository
from tests.support.git import IDENTITY, git, make_repository

LEDGER = "refs/heads/gittasks"
NOTE = "000042 submit"


class Bench:
    """A repository with three commits to move refs between."""

    def __init__(self, folder: Path, repo: Repository) -> None:
        self.folder = folder
        self.repo = repo
        self.one = git(folder, "rev-parse", "refs/heads/master")
        self.two = self._commit("two")
        self.three = self._commit("three")

    def _commit(self, message: str) -> str:
        tree = git(self.folder, "rev-parse", "refs/heads/master^{tree}")
        return git(self.folder, "commit-tree", tree, "-p", self.one, "-m", message)

    def ref(self, name: str = LEDGER) -> str | None:
        return git(self.folder, "rev-parse", "-q", "--verify", name, check=False) or None


def _make(folder: Path, kind: str) -> Path:
    if kind == "reftable":
        made = subprocess.run(
            ["git", "init", "-q", "--ref-format=reftable", "-b", "master", str(folder)],
            capture_output=True,
            check=False,
        )
        if made.returncode:
            pytest.skip("this git cannot make reftable repositories (2.45 can)")
        git(folder, "commit", "-q", "--allow-empty", "-m", "Start")
        return folder
    if kind == "sha256":
        return make_repository(folder, object_format="sha256")
    return make_repository(folder, bare=kind == "bare")


@pytest.fixture(params=["files", "bare", "sha256", "reftable"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    folder = _make(tmp_path / "r x", request.param)
    return Bench(folder, Repository.open(str(folder)))


@pytest.fixture
def files(tmp_path: Path) -> Bench:
    """A repository that keeps its refs in files."""
    folder = make_repository(tmp_path / "r")
    return Bench(folder, Repository.open(str(folder)))


# ------------------------------------------------------------------------------- reading


def test_a_ref_is_read_by_its_full_name(bench: Bench) -> None:
    assert refs.read(bench.repo, "refs/heads/master") == bench.one


def test_a_missing_ref_is_none(bench: Bench) -> None:
    assert refs.read(bench.repo, LEDGER) is None


def test_a_branch_with_a_misleading_name_is_not_taken_for_a_missing_ref(files: Bench) -> None:
    git(files.folder, "update-ref", f"refs/heads/{LEDGER}", files.one)
    assert refs.read(files.repo, LEDGER) is None


def test_a_folder_of_refs_is_not_taken_for_a_ref(bench: Bench) -> None:
    git(bench.folder, "update-ref", f"{LEDGER}/below", bench.one)
    assert refs.read(bench.repo, LEDGER) is None


def test_many_refs_are_read_with_one_process(bench: Bench) -> None:
    before = bench.repo.calls
    read = refs.read_many(bench.repo, ["refs/heads/none", "refs/heads/master"])
    assert (read, bench.repo.calls - before) == (
        {"refs/heads/none": None, "refs/heads/master": bench.one},
        1,
    )


def test_more_refs_than_fit_on_one_command_line_are_read(files: Bench) -> None:
    names = [f"refs/gittasks/leases/{number:06}" for number in range(1200)]
    lines = "".join(f"create {name} {files.one}\n" for name in names)
    git(files.folder, "update-ref", "--stdin", stdin=lines)
    assert refs.read_many(files.repo, names) == dict.fromkeys(names, files.one)


def test_refs_are_listed_below_a_prefix_and_nowhere_else(bench: Bench) -> None:
    for name in ("task/1", "task/2", "tasks"):
        git(bench.folder, "update-ref", f"refs/heads/{name}", bench.one)
    assert refs.list(bench.repo, "refs/heads/task/") == {
        "refs/heads/task/1": bench.one,
        "refs/heads/task/2": bench.one,
    }


@pytest.mark.parametrize("name", ["gittasks", "heads/gittasks", "", "refs/heads/a\nb"])
def test_a_name_that_is_not_full_is_refused_everywhere(files: Bench, name: str) -> None:
    with pytest.raises(ValueError, match="name of a ref"):
        refs.read(files.repo, name)
    with pytest.raises(ValueError, match="name of a ref"):
        refs.compare_and_swap(files.repo, name, files.one, None, NOTE)


def test_a_broken_ref_is_none_and_told_as_broken(files: Bench) -> None:
    (files.folder / ".git" / LEDGER).write_text("", encoding="ascii")
    assert (
        refs.read(files.repo, LEDGER),
        refs.is_broken(files.repo, LEDGER),
        refs.is_broken(files.repo, "refs/heads/master"),
    ) == (None, True, False)


def test_a_missing_ref_is_not_broken(bench: Bench) -> None:
    assert not refs.is_broken(bench.repo, LEDGER)


# ---------------------------------------------------------------------------------- HEAD


def test_head_on_a_branch(bench: Bench) -> None:
    assert refs.head(bench.repo) == Head("refs/heads/master", bench.one)


def test_head_on_an_unborn_branch(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", commit=False, branch="trunk")
    assert refs.head(Repository.open(str(folder))) == Head("refs/heads/trunk", None)


def test_head_on_a_commit(files: Bench) -> None:
    git(files.folder, "checkout", "-q", "--detach")
    assert refs.head(files.repo) == Head(None, files.one)


def test_head_of_another_worktree(files: Bench, tmp_path: Path) -> None:
    git(files.folder, "worktree", "add", "-q", "-b", "side", str(tmp_path / "w"), files.two)
    assert refs.head(files.repo, at=str(tmp_path / "w")) == Head("refs/heads/side", files.two)


def test_head_beside_a_file_and_a_tag_of_that_name(files: Bench) -> None:
    git(files.folder, "tag", "HEAD", files.two)
    (files.folder / "HEAD").write_text("", encoding="ascii")
    at = str(files.folder)
    assert refs.head(files.repo, at=at) == Head("refs/heads/master", files.one)


# -------------------------------------------------------------------------------- moving


def test_a_ref_is_created_where_there_is_none(bench: Bench) -> None:
    refs.compare_and_swap(bench.repo, LEDGER, bench.one, None, NOTE)
    assert bench.ref() == bench.one


def test_a_ref_moves_from_its_expected_value(bench: Bench) -> None:
    git(bench.folder, "update-ref", LEDGER, bench.one)
    refs.compare_and_swap(bench.repo, LEDGER, bench.two, bench.one, NOTE)
    assert bench.ref() == bench.two


def test_a_ref_is_deleted_from_its_expected_value(bench: Bench) -> None:
    git(bench.folder, "update-ref", LEDGER, bench.one)
    refs.compare_and_swap(bench.repo, LEDGER, None, bench.one, NOTE)
    assert bench.ref() is None


def test_a_stale_expected_value_moves_nothing(bench: Bench) -> None:
    git(bench.folder, "update-ref", LEDGER, bench.two)
    with pytest.raises(RefMoved) as caught:
        refs.compare_and_swap(bench.repo, LEDGER, bench.three, bench.one, NOTE)
    error = caught.value
    assert (error.name, error.expected, error.actual, bench.ref()) == (
        LEDGER,
        bench.one,
        bench.two,
        bench.two,
    )


def test_a_ref_that_must_not_exist_but_does_is_not_overwritten(bench: Bench) -> None:
    git(bench.folder, "update-ref", LEDGER, bench.two)
    with pytest.raises(RefMoved) as caught:
        refs.compare_and_swap(bench.repo, LEDGER, bench.three, None, NOTE)
    assert (caught.value.expected, caught.value.actual, bench.ref()) == (
        None,
        bench.two,
        bench.two,
    )


def test_a_ref_that_is_gone_is_not_created_again(bench: Bench) -> None:
    with pytest.raises(RefMoved) as caught:
        refs.compare_and_swap(bench.repo, LEDGER, bench.three, bench.one, NOTE)
    assert (caught.value.actual, bench.ref()) == (None, None)


def test_a_stale_expected_value_deletes_nothing(bench: Bench) -> None:
    git(bench.folder, "update-ref", LEDGER, bench.two)
    with pytest.raises(RefMoved):
        refs.compare_and_swap(bench.repo, LEDGER, None, bench.one, NOTE)
    assert bench.ref() == bench.two


@pytest.mark.parametrize("old", ["", "0", "refs/heads/master"])
def test_an_expected_value_that_is_no_id_is_refused_before_git_reads_it(
    files: Bench, old: str
) -> None:
    with pytest.raises(ValueError, match="is not the id of an object"):
        refs.compare_and_swap(files.repo, LEDGER, files.one, old, NOTE)
    assert files.ref() is None


def test_deleting_without_an_expected_value_is_refused(files: Bench) -> None:
    with pytest.raises(ValueError, match="would be deleted without an expected value"):
        refs.compare_and_swap(files.repo, LEDGER, None, None, NOTE)


def test_a_transaction_moves_all_its_refs(bench: Bench) -> None:
    git(bench.folder, "update-ref", "refs/gittasks/landing/1", bench.one)
    refs.transaction(
        bench.repo,
        [
            Change(LEDGER, bench.two, None),
            Change("refs/heads/master", bench.three, bench.one),
            Change("refs/gittasks/landing/1", None, bench.one),
        ],
        NOTE,
    )
    assert [bench.ref(n) for n in (LEDGER, "refs/heads/master", "refs/gittasks/landing/1")] == [
        bench.two,
        bench.three,
        None,
    ]


def test_one_stale_value_stops_the_whole_transaction(bench: Bench) -> None:
    with pytest.raises(RefMoved) as caught:
        refs.transaction(
            bench.repo,
            [Change(LEDGER, bench.two, None), Change("refs/heads/master", bench.two, bench.three)],
            NOTE,
        )
    assert (caught.value.name, bench.ref(LEDGER), bench.ref("refs/heads/master")) == (
        "refs/heads/master",
        None,
        bench.one,
    )


def test_an_empty_transaction_runs_no_process(files: Bench) -> None:
    before = files.repo.calls
    refs.transaction(files.repo, [], NOTE)
    assert files.repo.calls == before


def test_a_ref_is_not_moved_to_an_object_that_is_not_there(bench: Bench) -> None:
    absent = "1" * bench.repo.oid_length
    with pytest.raises(ObjectMissing):
        refs.compare_and_swap(bench.repo, "refs/gittasks/backup", absent, None, NOTE)
    assert bench.ref("refs/gittasks/backup") is None


def test_a_ref_that_stands_in_the_way_as_a_folder_is_told_by_git(bench: Bench) -> None:
    git(bench.folder, "update-ref", f"{LEDGER}/below", bench.one)
    with pytest.raises(GitError, match="exists; cannot create"):
        refs.compare_and_swap(bench.repo, LEDGER, bench.two, None, NOTE)
    assert bench.ref() is None


def test_a_lock_file_in_the_way_is_named(files: Bench) -> None:
    lock = files.folder / ".git" / f"{LEDGER}.lock"
    lock.write_text("", encoding="ascii")
    with pytest.raises(RefLocked) as caught:
        refs.compare_and_swap(files.repo, LEDGER, files.two, None, NOTE)
    assert (caught.value.path, files.ref()) == (str(lock), None)


def test_a_lock_on_the_packed_refs_is_named_when_it_stops_a_deletion(files: Bench) -> None:
    git(files.folder, "update-ref", LEDGER, files.one)
    git(files.folder, "pack-refs", "--all")
    git(files.folder, "config", "core.packedRefsTimeout", "10")
    lock = files.folder / ".git/packed-refs.lock"
    lock.write_text("", encoding="ascii")
    with pytest.raises(RefLocked) as caught:
        refs.compare_and_swap(files.repo, LEDGER, None, files.one, NOTE)
    assert (caught.value.path, files.ref()) == (str(lock), files.one)


def test_a_ref_that_moved_while_it_was_locked_counts_as_moved(files: Bench) -> None:
    git(files.folder, "update-ref", LEDGER, files.two)
    (files.folder / ".git" / f"{LEDGER}.lock").write_text("", encoding="ascii")
    with pytest.raises(RefMoved):
        refs.compare_and_swap(files.repo, LEDGER, files.three, files.one, NOTE)


def test_lock_files_are_listed_while_they_exist(files: Bench) -> None:
    before = refs.stale_locks(files.repo, [LEDGER, "HEAD"])
    locks = [files.folder / ".git" / n for n in (f"{LEDGER}.lock", "HEAD.lock", "packed-refs.lock")]
    for lock in locks:
        lock.write_text("", encoding="ascii")
    assert (before, refs.stale_locks(files.repo, [LEDGER, "HEAD"])) == (
        (),
        tuple(map(str, locks)),
    )


def test_refs_move_without_any_identity(files: Bench) -> None:
    git(files.folder, "config", "user.useConfigOnly", "true")
    refs.compare_and_swap(files.repo, LEDGER, files.two, None, NOTE)
    assert files.ref() == files.two


def test_refs_move_in_a_linked_worktree_for_all_of_them(files: Bench, tmp_path: Path) -> None:
    git(files.folder, "worktree", "add", "-q", "--detach", str(tmp_path / "w"))
    inside = Repository.open(str(tmp_path / "w"))
    refs.compare_and_swap(inside, LEDGER, files.two, None, NOTE)
    assert (files.ref(), refs.reflog(inside, LEDGER)[0].new) == (files.two, files.two)


# ------------------------------------------------------------------------------- reflogs


def test_every_move_is_in_the_reflog_newest_first(bench: Bench) -> None:
    name = "refs/gittasks/backup"
    refs.compare_and_swap(bench.repo, name, bench.one, None, "first")
    refs.compare_and_swap(bench.repo, name, bench.two, bench.one, "second\nline")
    assert refs.reflog(bench.repo, name) == (
        ReflogEntry(bench.one, bench.two, "second line"),
        ReflogEntry(bench.repo.null_oid, bench.one, "first"),
    )


def test_a_ref_without_reflog_has_no_entries(bench: Bench) -> None:
    assert refs.reflog(bench.repo, "refs/gittasks/none") == ()


def test_the_reflog_of_a_broken_ref_can_still_be_read(files: Bench) -> None:
    refs.compare_and_swap(files.repo, LEDGER, files.two, None, NOTE)
    (files.folder / ".git" / LEDGER).write_text("", encoding="ascii")
    assert refs.reflog(files.repo, LEDGER) == (ReflogEntry(files.repo.null_oid, files.two, NOTE),)


def test_a_damaged_line_of_a_reflog_is_left_out(files: Bench) -> None:
    refs.compare_and_swap(files.repo, LEDGER, files.two, None, NOTE)
    with (files.folder / ".git/logs" / LEDGER).open("ab") as log:
        log.write(b"\0\0\0\0 half a line\n" + files.two[:20].encode())
    assert [entry.new for entry in refs.reflog(files.repo, LEDGER)] == [files.two]


# ---------------------------------------------------------------------------- contention


def test_of_many_writers_with_one_expected_value_exactly_one_wins(files: Bench) -> None:
    git(files.folder, "update-ref", LEDGER, files.one)
    candidates = [
        git(files.folder, "commit-tree", f"{files.one}^{{tree}}", "-m", str(number))
        for number in range(8)
    ]
    racers = [
        subprocess.Popen(
            ["git", "update-ref", LEDGER, oid, files.one],
            cwd=files.folder,
            stderr=subprocess.DEVNULL,
        )
        for oid in candidates
    ]
    outcome = None
    try:
        refs.compare_and_swap(files.repo, LEDGER, files.two, files.one, NOTE)
        outcome = "won"
    except (RefMoved, RefLocked):
        outcome = "lost"
    won = [oid for oid, racer in zip(candidates, racers, strict=True) if not racer.wait()]
    won += [files.two] if outcome == "won" else []
    assert won == [files.ref()]


def test_this_git_is_known(files: Bench) -> None:
    assert versions.git_version(files.repo) >= (2, 34)


def test_the_committer_of_the_environment_is_in_the_reflog(
    files: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    refs.compare_and_swap(
        Repository.open(str(files.folder)), "refs/gittasks/backup", files.one, None, NOTE
    )
    log = (files.folder / ".git/logs/refs/gittasks/backup").read_text(encoding="utf-8")
    null = files.repo.null_oid
    assert log == f"{null} {files.one} Ada <ada@example.org> 1700000000 +0000\t{NOTE}\n"
