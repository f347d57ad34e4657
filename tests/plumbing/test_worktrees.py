"""Worktrees: added whole, told truly, removed without loss."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gittasks.plumbing import refs, worktrees
from gittasks.plumbing.errors import GitError, NotARepository
from gittasks.plumbing.repository import Repository
from gittasks.plumbing.worktrees import StatusLine, Worktree
from tests.support.cli import environment
from tests.support.git import git, make_repository

FILES = {"app.txt": "one\n", "lib/code.txt": "two\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.open(str(make_repository(tmp_path / "r", files=FILES)))


def _tip(repo: Repository) -> str:
    tip = refs.read(repo, "refs/heads/master")
    assert tip is not None
    return tip


@pytest.mark.parametrize("name", ["t", "with space", "line\nend", "ümläut", "b\udcff\udcfe"])
def test_a_new_worktree_is_listed_with_its_branch_and_the_reason_of_its_lock(
    repo: Repository, tmp_path: Path, name: str
) -> None:
    path = str(tmp_path / name)
    tip = _tip(repo)
    worktrees.add(repo, path, "refs/heads/task/1", lock_reason="gittasks: 1", create_at=tip)
    assert worktrees.list(repo) == (
        Worktree(str(tmp_path / "r"), tip, "refs/heads/master", False, False, None, None),
        Worktree(path, tip, "refs/heads/task/1", False, False, "gittasks: 1", None),
    )


def test_an_existing_branch_is_checked_out_even_beside_a_tag_of_its_name(
    repo: Repository, tmp_path: Path
) -> None:
    folder = str(tmp_path / "r")
    git(folder, "branch", "task/1")
    git(folder, "commit", "-q", "--allow-empty", "-m", "more")
    git(folder, "tag", "task/1")
    worktrees.add(repo, str(tmp_path / "w"), "refs/heads/task/1", lock_reason="1")
    head = refs.head(repo, at=str(tmp_path / "w"))
    assert head == refs.Head("refs/heads/task/1", refs.read(repo, "refs/heads/task/1"))


def test_no_tracking_is_configured_for_a_new_branch(repo: Repository, tmp_path: Path) -> None:
    folder = str(tmp_path / "r")
    git(folder, "config", "branch.autoSetupMerge", "always")
    worktrees.add(
        repo, str(tmp_path / "w"), "refs/heads/task/1", lock_reason="1", create_at=_tip(repo)
    )
    assert git(folder, "config", "--get-regexp", "^branch\\.task", check=False) == ""


def test_a_detached_worktree_stands_on_its_commit(repo: Repository, tmp_path: Path) -> None:
    worktrees.add_detached(repo, str(tmp_path / "w"), _tip(repo), "a look")
    assert worktrees.list(repo)[1] == Worktree(
        str(tmp_path / "w"), _tip(repo), None, True, False, "a look", None
    )


def test_a_branch_checked_out_elsewhere_is_refused_and_leaves_nothing(
    repo: Repository, tmp_path: Path
) -> None:
    with pytest.raises(GitError, match=r"already (checked out|used)"):
        worktrees.add(repo, str(tmp_path / "w"), "refs/heads/master", lock_reason="1")
    assert (len(worktrees.list(repo)), (tmp_path / "w").exists()) == (1, False)


@pytest.mark.parametrize("cone", ["--cone", "--no-cone"])
def test_sparse_settings_of_the_creating_worktree_are_not_inherited(
    tmp_path: Path, cone: str
) -> None:
    folder = make_repository(tmp_path / "r", files=FILES)
    git(folder, "sparse-checkout", "set", cone, "nothing")
    repo = Repository.open(str(folder))
    path = tmp_path / "w"
    worktrees.add(repo, str(path), "refs/heads/task/1", lock_reason="1", create_at=_tip(repo))
    git(path, "checkout", "-q", "--force", "HEAD")
    assert (
        (path / "lib/code.txt").read_text(encoding="utf-8"),
        git(path, "status", "--porcelain"),
        (folder / "lib").exists(),
    ) == ("two\n", "", False)


def test_a_worktree_whose_files_are_missing_is_not_handed_out(
    repo: Repository, tmp_path: Path
) -> None:
    path = tmp_path / "w"
    git(tmp_path / "r", "worktree", "add", "-q", "--no-checkout", "--detach", str(path))
    with pytest.raises(GitError, match="was not checked out as a whole"):
        worktrees.verify(repo, str(path), refs.Head(None, _tip(repo)))


def test_a_worktree_on_another_branch_than_expected_is_not_handed_out(
    repo: Repository, tmp_path: Path
) -> None:
    path = tmp_path / "w"
    git(tmp_path / "r", "worktree", "add", "-q", "--detach", str(path))
    with pytest.raises(GitError, match="instead of refs/heads/task/1"):
        worktrees.verify(repo, str(path), refs.Head("refs/heads/task/1", _tip(repo)))


def test_a_half_made_worktree_is_not_handed_out(repo: Repository, tmp_path: Path) -> None:
    path = tmp_path / "w"
    git(tmp_path / "r", "worktree", "add", "-q", "--detach", str(path))
    Path(worktrees.git_dir_of(repo, str(path)), "locked").write_text("initializing\n")
    with pytest.raises(GitError, match="is not complete"):
        worktrees.verify(repo, str(path), refs.Head(None, _tip(repo)))


def test_files_that_a_line_end_rule_changes_do_not_stop_a_worktree(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", files={"a.txt": "one\r\n"})
    (folder / ".gitattributes").write_text("* text=auto\n", encoding="utf-8")
    git(folder, "add", ".gitattributes")
    git(folder, "commit", "-q", "-m", "rules")
    repo = Repository.open(str(folder))
    worktrees.add_detached(repo, str(tmp_path / "w"), _tip(repo), "1")
    assert (tmp_path / "w/a.txt").read_bytes() == b"one\r\n"


@pytest.mark.parametrize("setting", ["no", "normal", "all"])
def test_removal_is_refused_while_an_untracked_file_would_be_lost(
    repo: Repository, tmp_path: Path, setting: str
) -> None:
    path = tmp_path / "w"
    worktrees.add_detached(repo, str(path), _tip(repo), "1")
    git(tmp_path / "r", "config", "status.showUntrackedFiles", setting)
    (path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(GitError, match="contains modified or untracked files"):
        worktrees.remove(repo, str(path))
    assert (path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_locked_worktree_is_removed_by_force_with_what_is_in_it(
    repo: Repository, tmp_path: Path
) -> None:
    path = tmp_path / "w"
    worktrees.add_detached(repo, str(path), _tip(repo), "1")
    (path / "notes.txt").write_text("mine", encoding="utf-8")
    worktrees.remove(repo, str(path), force=True)
    assert (path.exists(), len(worktrees.list(repo))) == (False, 1)


_REMOVE_WHERE_WE_STAND = """
from gittasks.plumbing import refs, worktrees
from gittasks.plumbing.repository import Repository
repo = Repository.open()
worktrees.remove(repo, repo.worktree)
print(refs.read(repo, "refs/heads/master"))
"""


def test_the_worktree_we_stand_in_can_be_removed_and_git_still_runs(
    repo: Repository, tmp_path: Path
) -> None:
    worktrees.add_detached(repo, str(tmp_path / "w"), _tip(repo), "1")
    done = subprocess.run(
        [sys.executable, "-c", _REMOVE_WHERE_WE_STAND],
        cwd=tmp_path / "w",
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{_tip(repo)}\n", "")


def test_unlocking_a_worktree_without_lock_is_fine(repo: Repository, tmp_path: Path) -> None:
    git(tmp_path / "r", "worktree", "add", "-q", "--detach", str(tmp_path / "w"))
    worktrees.unlock(repo, str(tmp_path / "w"))
    assert worktrees.list(repo)[1].locked is None


def test_unlocking_what_is_no_worktree_is_an_error(repo: Repository, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="is not a working tree"):
        worktrees.unlock(repo, str(tmp_path / "nowhere"))


def test_pruning_keeps_a_locked_worktree_whose_folder_is_gone(
    repo: Repository, tmp_path: Path
) -> None:
    for name in ("locked", "loose"):
        worktrees.add_detached(repo, str(tmp_path / name), _tip(repo), "1")
    worktrees.unlock(repo, str(tmp_path / "loose"))
    for name in ("locked", "loose"):
        (tmp_path / name).rename(tmp_path / f"moved-{name}")
    worktrees.prune(repo)
    assert [one.path for one in worktrees.list(repo)] == [
        str(tmp_path / "r"),
        str(tmp_path / "locked"),
    ]


def test_a_worktree_without_its_folder_is_told_as_prunable(
    repo: Repository, tmp_path: Path
) -> None:
    worktrees.add_detached(repo, str(tmp_path / "w"), _tip(repo), "1")
    worktrees.unlock(repo, str(tmp_path / "w"))
    (tmp_path / "w").rename(tmp_path / "moved")
    prunable = worktrees.list(repo)[1].prunable
    assert prunable is not None
    assert "non-existent location" in prunable


def test_a_moved_worktree_is_found_again_once_connected(repo: Repository, tmp_path: Path) -> None:
    worktrees.add_detached(repo, str(tmp_path / "w"), _tip(repo), "1")
    git_dir = worktrees.git_dir_of(repo, str(tmp_path / "w"))
    (tmp_path / "w").rename(tmp_path / "moved")
    (tmp_path / "moved" / ".git").unlink()
    worktrees.connect(str(tmp_path / "moved"), git_dir)
    assert worktrees.list(repo)[1].path == str(tmp_path / "moved")
    assert git(tmp_path / "moved", "status", "--porcelain") == ""


def test_a_copied_repository_does_not_list_the_worktrees_of_the_original(
    repo: Repository, tmp_path: Path
) -> None:
    worktrees.add_detached(repo, str(tmp_path / "w"), _tip(repo), "1")
    shutil.copytree(str(repo.worktree), tmp_path / "copy")
    copy = Repository.open(str(tmp_path / "copy"))
    assert [one.path for one in worktrees.list(copy)] == [str(tmp_path / "copy")]
    assert len(worktrees.list(repo)) == 2


def test_a_bare_repository_lists_itself_as_bare(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "bare git", bare=True)
    repo = Repository.open(str(folder))
    worktrees.add_detached(repo, str(tmp_path / "w"), _tip(repo), "1")
    assert worktrees.list(repo) == (
        Worktree(str(folder), None, None, False, True, None, None),
        Worktree(str(tmp_path / "w"), _tip(repo), None, True, False, "1", None),
    )


def test_status_tells_every_path_whatever_is_configured(repo: Repository, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    for setting in ("status.showUntrackedFiles=no", "core.quotePath=true", "color.ui=always"):
        git(folder, "config", *setting.split("="))
    (folder / "new").mkdir()
    (folder / "new/fü\nx.txt").write_text("", encoding="utf-8")
    (folder / "app.txt").write_text("changed and longer\n", encoding="utf-8")
    git(folder, "mv", "lib/code.txt", "lib/moved.txt")
    assert worktrees.status(repo, str(folder)) == (
        StatusLine(" M", "app.txt"),
        StatusLine("D ", "lib/code.txt"),
        StatusLine("A ", "lib/moved.txt"),
        StatusLine("??", "new/fü\nx.txt"),
    )


def test_status_tells_ignored_files_on_demand(repo: Repository, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/exclude").write_text("build/\n", encoding="utf-8")
    (folder / "build").mkdir()
    (folder / "build/out").write_text("", encoding="utf-8")
    told = [worktrees.status(repo, str(folder), ignored=flag) for flag in (False, True)]
    assert told == [(), (StatusLine("!!", "build/"),)]


def test_status_of_a_folder_that_lost_its_git_file_is_not_that_of_the_repository_around_it(
    repo: Repository, tmp_path: Path
) -> None:
    inner = tmp_path / "r" / "inner"
    worktrees.add_detached(repo, str(inner), _tip(repo), "1")
    (inner / ".git").unlink()
    with pytest.raises(NotARepository, match="is not a worktree"):
        worktrees.status(repo, str(inner))


def test_status_of_a_folder_with_a_worthless_git_folder_is_not_that_of_the_one_around_it(
    repo: Repository, tmp_path: Path
) -> None:
    inner = tmp_path / "r" / "inner"
    (inner / ".git").mkdir(parents=True)
    with pytest.raises(GitError, match="not a git repository"):
        worktrees.status(repo, str(inner))


def test_the_git_directory_of_a_worktree_is_found_without_git(
    repo: Repository, tmp_path: Path
) -> None:
    worktrees.add_detached(repo, str(tmp_path / "w\nx"), _tip(repo), "1")
    before = repo.calls
    found = [worktrees.git_dir_of(repo, str(tmp_path / name)) for name in ("r", "w\nx")]
    told = git(tmp_path / "w\nx", "rev-parse", "--path-format=absolute", "--git-dir")
    assert (found, repo.calls) == ([repo.common_dir, told], before)


def test_a_plain_folder_has_no_git_directory(repo: Repository, tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="is not a worktree"):
        worktrees.git_dir_of(repo, str(tmp_path))


def _clash(folder: Path) -> None:
    git(folder, "checkout", "-q", "-b", "side")
    (folder / "app.txt").write_text("side\n", encoding="utf-8")
    git(folder, "commit", "-qam", "side")
    git(folder, "checkout", "-q", "master")
    (folder / "app.txt").write_text("master\n", encoding="utf-8")
    git(folder, "commit", "-qam", "master")


@pytest.mark.parametrize(
    ("command", "operation"),
    [
        (("merge", "side"), "merge"),
        (("rebase", "side"), "rebase"),
        (("rebase", "--apply", "side"), "rebase"),
        (("cherry-pick", "side"), "cherry-pick"),
        (("revert", "--no-edit", "HEAD~1"), "revert"),
        (("bisect", "start"), "bisect"),
    ],
)
def test_a_begun_operation_is_named(
    repo: Repository, tmp_path: Path, command: tuple[str, ...], operation: str | None
) -> None:
    _clash(tmp_path / "r")
    git(tmp_path / "r", *command, check=False)
    assert worktrees.in_progress(repo.git_dir) == operation


def test_a_mailbox_being_applied_is_named(repo: Repository, tmp_path: Path) -> None:
    _clash(tmp_path / "r")
    patch = git(tmp_path / "r", "format-patch", "--stdout", "-1", "side")
    git(tmp_path / "r", "am", stdin=patch + "\n", check=False)
    assert worktrees.in_progress(repo.git_dir) == "am"


def test_nothing_is_in_progress_in_a_quiet_checkout(repo: Repository) -> None:
    assert worktrees.in_progress(repo.git_dir) is None
