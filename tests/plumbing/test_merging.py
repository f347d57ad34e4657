"""Merges are computed without touching anybody's checkout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gittasks.plumbing import merging, worktrees
from gittasks.plumbing.errors import GitError
from gittasks.plumbing.merging import ChangedPath, MergeResult
from gittasks.plumbing.repository import Repository
from tests.support.git import git, make_repository

FILES = {"app.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "lib/code.txt": "two\n"}

Merge = Callable[[Repository, str, str], MergeResult]


class Bench:
    """A repository with a branch `master` and a branch `side` that left it."""

    def __init__(self, folder: Path) -> None:
        self.folder = make_repository(folder, files=FILES)
        git(self.folder, "branch", "side")
        self.repo = Repository.open(str(self.folder))
        self.base = self.tip("side")

    def tip(self, branch: str) -> str:
        return git(self.folder, "rev-parse", f"refs/heads/{branch}")

    def commit(self, branch: str, files: dict[str, str | None]) -> str:
        git(self.folder, "checkout", "-q", branch)
        for name, text in files.items():
            file = self.folder / name
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", branch)
        git(self.folder, "checkout", "-q", "master")
        return self.tip(branch)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "r")


MERGES = pytest.mark.parametrize(
    "merge", [merging.merge_tree, merging.merge_in_worktree], ids=["tree", "worktree"]
)


@MERGES
def test_changes_in_different_lines_come_together(bench: Bench, merge: Merge) -> None:
    ours = bench.commit("master", {"app.txt": "ours\n2\n3\n4\n5\n6\n7\n8\n9\n"})
    theirs = bench.commit("side", {"app.txt": "1\n2\n3\n4\n5\n6\n7\n8\ntheirs\n", "new": "n\n"})
    result = merge(bench.repo, ours, theirs)
    assert result.tree is not None
    assert (
        result.conflicts,
        git(bench.folder, "show", f"{result.tree}:app.txt"),
        git(bench.folder, "ls-tree", "-r", "--name-only", result.tree),
        worktrees.status(bench.repo, str(bench.folder)),
        len(worktrees.list(bench.repo)),
    ) == ((), "ours\n2\n3\n4\n5\n6\n7\n8\ntheirs", "app.txt\nlib/code.txt\nnew", (), 1)


@MERGES
def test_a_renamed_file_takes_the_changes_of_the_other_side(bench: Bench, merge: Merge) -> None:
    ours = bench.commit("master", {"app.txt": None, "moved.txt": FILES["app.txt"]})
    theirs = bench.commit("side", {"app.txt": "1\n2\n3\n4\n5\n6\n7\n8\ntheirs\n"})
    tree = merge(bench.repo, ours, theirs).tree
    assert git(bench.folder, "show", f"{tree}:moved.txt") == "1\n2\n3\n4\n5\n6\n7\n8\ntheirs"


@MERGES
def test_conflicts_are_told_by_path_and_leave_no_tree(bench: Bench, merge: Merge) -> None:
    ours = bench.commit("master", {"app.txt": "ours\n", "fü\nx": "a\n", "lib/code.txt": None})
    theirs = bench.commit("side", {"app.txt": "theirs\n", "fü\nx": "b\n", "lib/code.txt": "x\n"})
    result = merge(bench.repo, ours, theirs)
    assert (result.tree, sorted(result.conflicts), len(worktrees.list(bench.repo))) == (
        None,
        ["app.txt", "fü\nx", "lib/code.txt"],
        1,
    )


@MERGES
def test_a_merge_of_what_is_contained_is_our_tree(bench: Bench, merge: Merge) -> None:
    ours = bench.commit("master", {"app.txt": "ours\n"})
    tree = git(bench.folder, "rev-parse", f"{ours}^{{tree}}")
    assert merge(bench.repo, ours, bench.base) == MergeResult(tree, ())


@MERGES
def test_unrelated_histories_are_not_merged(bench: Bench, merge: Merge) -> None:
    tree = git(bench.folder, "rev-parse", f"{bench.base}^{{tree}}")
    stranger = git(bench.folder, "commit-tree", tree, "-m", "Stranger")
    with pytest.raises(GitError, match="unrelated histories"):
        merge(bench.repo, bench.base, stranger)


@MERGES
def test_an_unknown_commit_is_an_error_and_no_conflict(bench: Bench, merge: Merge) -> None:
    with pytest.raises(GitError, match=r"not something we can merge|Could not parse"):
        merge(bench.repo, bench.base, "1" * 40)
    assert len(worktrees.list(bench.repo)) == 1


@MERGES
def test_a_merge_needs_no_identity_and_heeds_no_signing(bench: Bench, merge: Merge) -> None:
    ours = bench.commit("master", {"a": "a\n"})
    theirs = bench.commit("side", {"b": "b\n"})
    for setting in ("user.useConfigOnly=true", "commit.gpgSign=true", "merge.verifySignatures=1"):
        git(bench.folder, "config", *setting.split("="))
    assert merge(Repository.open(str(bench.folder)), ours, theirs).tree is not None


def test_a_merge_works_in_a_bare_repository(bench: Bench, tmp_path: Path) -> None:
    ours = bench.commit("master", {"a": "a\n"})
    theirs = bench.commit("side", {"b": "b\n"})
    git(tmp_path, "clone", "-q", "--bare", str(bench.folder), "bare.git")
    bare = Repository.open(str(tmp_path / "bare.git"))
    assert merging.merge_tree(bare, ours, theirs) == merging.merge_tree(bench.repo, ours, theirs)


def test_ancestry_is_told_both_ways(bench: Bench) -> None:
    ours = bench.commit("master", {"a": "a\n"})
    theirs = bench.commit("side", {"b": "b\n"})
    told = [
        merging.is_ancestor(bench.repo, a, b)
        for a, b in ((bench.base, ours), (ours, bench.base), (ours, theirs), (ours, ours))
    ]
    assert (told, merging.merge_base(bench.repo, ours, theirs)) == (
        [True, False, False, True],
        bench.base,
    )


def test_unrelated_histories_have_no_base(bench: Bench) -> None:
    tree = git(bench.folder, "rev-parse", f"{bench.base}^{{tree}}")
    stranger = git(bench.folder, "commit-tree", tree, "-m", "Stranger")
    assert merging.merge_base(bench.repo, bench.base, stranger) is None


@pytest.mark.parametrize("question", [merging.is_ancestor, merging.merge_base])
def test_ancestry_of_an_unknown_commit_is_an_error(
    bench: Bench, question: Callable[[Repository, str, str], object]
) -> None:
    with pytest.raises(GitError):
        question(bench.repo, "1" * 40, bench.base)


def test_new_commits_are_told_oldest_first(bench: Bench) -> None:
    commits = tuple(bench.commit("side", {"b": f"{number}\n"}) for number in range(3))
    assert merging.commits_between(bench.repo, bench.base, commits[-1]) == commits


def test_no_commits_lie_between_a_commit_and_itself(bench: Bench) -> None:
    assert merging.commits_between(bench.repo, bench.base, bench.base) == ()


def test_changed_paths_are_told_with_what_happened_to_them(bench: Bench) -> None:
    new = bench.commit("side", {"app.txt": None, "moved": FILES["app.txt"], "lib/code.txt": "x\n",
                                "fü\nx": ""})  # fmt: skip
    assert merging.changed_paths(bench.repo, bench.base, new) == (
        ChangedPath("D", "app.txt"),
        ChangedPath("A", "fü\nx"),
        ChangedPath("M", "lib/code.txt"),
        ChangedPath("A", "moved"),
    )


def test_nothing_changed_between_a_commit_and_itself(bench: Bench) -> None:
    assert merging.changed_paths(bench.repo, bench.base, bench.base) == ()


# --------------------------------------------------------------- moving a checkout along


def _state(bench: Bench) -> tuple[str, str]:
    text = (bench.folder / "app.txt").read_text(encoding="utf-8")
    return text, git(bench.folder, "status", "--porcelain")


def test_a_checkout_follows_and_keeps_local_changes_elsewhere(bench: Bench) -> None:
    new = bench.commit("side", {"app.txt": "new\n"})
    (bench.folder / "lib/code.txt").write_text("mine\n", encoding="utf-8")
    (bench.folder / "own").write_text("mine\n", encoding="utf-8")
    merging.read_tree_update(bench.repo, str(bench.folder), bench.base, new, dry_run=False)
    git(bench.folder, "update-ref", "refs/heads/master", new)
    assert _state(bench) == ("new\n", " M lib/code.txt\n?? own")


def test_a_dry_run_changes_nothing(bench: Bench) -> None:
    new = bench.commit("side", {"app.txt": "new\n"})
    merging.read_tree_update(bench.repo, str(bench.folder), bench.base, new, dry_run=True)
    assert _state(bench) == (FILES["app.txt"], "")


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("staged", [True, False])
def test_a_local_change_in_the_way_refuses_and_loses_nothing(
    bench: Bench, dry_run: bool, staged: bool
) -> None:
    new = bench.commit("side", {"app.txt": "new\n", "lib/code.txt": "new\n"})
    (bench.folder / "app.txt").write_text("mine\n", encoding="utf-8")
    if staged:
        git(bench.folder, "add", "app.txt")
    before = _state(bench)
    with pytest.raises(GitError, match=r"app\.txt"):
        merging.read_tree_update(bench.repo, str(bench.folder), bench.base, new, dry_run)
    assert (_state(bench), (bench.folder / "lib/code.txt").read_text()) == (before, "two\n")


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_untracked_file_in_the_way_refuses_and_stays(bench: Bench, dry_run: bool) -> None:
    new = bench.commit("side", {"app.txt": "new\n", "own": "theirs\n"})
    (bench.folder / "own").write_text("mine\n", encoding="utf-8")
    with pytest.raises(GitError, match="own"):
        merging.read_tree_update(bench.repo, str(bench.folder), bench.base, new, dry_run)
    assert (_state(bench), (bench.folder / "own").read_text()) == (
        (FILES["app.txt"], "?? own"),
        "mine\n",
    )


def test_a_file_that_was_only_touched_is_no_obstacle(bench: Bench) -> None:
    import os

    new = bench.commit("side", {"app.txt": "new\n"})
    os.utime(bench.folder / "app.txt", (1, 1))
    merging.read_tree_update(bench.repo, str(bench.folder), bench.base, new, dry_run=False)
    assert (bench.folder / "app.txt").read_text(encoding="utf-8") == "new\n"
