"""The tree of a task: made, restored, looked at and taken away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gittasks.domain.errors import Busy, GittasksError, Refused
from gittasks.domain.requests import Snapshot
from gittasks.domain.task import Task
from gittasks.workspaces import worktree
from gittasks.workspaces.leftovers import Kept
from tests.support.scenarios import CHECKOUT
from tests.workspaces.conftest import NOW, Clone

BRANCH = "task/000042"
STAMP = "20231114T221320Z"


def ensure(clone: Clone, *, fresh: bool = True) -> list[str]:
    """Makes sure of the tree and returns what was said about it."""
    notes: list[str] = []
    path = worktree.ensure(
        clone.repo, clone.places, "000042", BRANCH, fresh=fresh, now=NOW, notes=notes
    )
    assert path == str(clone.tree())
    return notes


def inode(clone: Clone) -> int:
    """Returns what tells a tree from one that was made anew in its place."""
    return (clone.folder / ".git" / "worktrees" / "tree").stat().st_ino


def listed(clone: Clone) -> list[str]:
    """Returns every registered worktree but the main one, with what git says about it."""
    blocks = clone.git("worktree", "list", "--porcelain").split("\n\n")
    return [block.replace("\n", " ") for block in blocks[1:]]


def files_in(folder: str | Path) -> dict[str, str]:
    return {
        os.path.relpath(os.path.join(top, name), folder): Path(top, name).read_text()
        for top, _, names in os.walk(folder)
        for name in names
    }


def test_a_tree_is_on_the_branch_clean_and_locked(clone: Clone, task: Task) -> None:
    tip = clone.start(task).dispatched
    assert listed(clone) == [
        f"worktree {clone.tree()} HEAD {tip} branch refs/heads/{BRANCH} locked git tasks 000042"
    ]
    assert clone.git("status", "--porcelain", "--ignored", at=clone.tree()) == ""


def test_a_tree_tracks_nothing(clone: Clone, task: Task) -> None:
    clone.git("config", "branch.autoSetupMerge", "always")
    clone.start(task)
    assert clone.git("config", "--get-regexp", r"^branch\.task", check=False) == ""


def test_a_sound_tree_is_handed_out_as_it_is(clone: Clone, task: Task) -> None:
    clone.start(task)
    (clone.tree() / "app.txt").write_text("in the middle of it\n")
    before = inode(clone)
    assert (ensure(clone), inode(clone)) == ([], before)
    assert (clone.tree() / "app.txt").read_text() == "in the middle of it\n"


def test_a_tree_deleted_by_hand_comes_back_with_its_commits(clone: Clone, task: Task) -> None:
    clone.start(task)
    clone.commit(clone.tree(), a="work\n")
    other = clone.folder.parent / "unmounted"
    clone.git("worktree", "add", "-q", "--detach", str(other))
    shutil.rmtree(other)
    shutil.rmtree(clone.tree())
    ensure(clone)
    assert files_in(clone.tree())["a.txt"] == "work\n"
    # Exactly once, and the other one that is missing keeps its registration.
    registered = sorted(line.split()[1] for line in listed(clone))
    assert registered == [str(clone.tree()), str(other)]


def test_a_tree_whose_registration_is_lost_is_moved_aside(clone: Clone, task: Task) -> None:
    clone.start(task)
    (clone.tree() / "new.txt").write_text("mine\n")
    shutil.rmtree(clone.folder / ".git" / "worktrees")
    notes = ensure(clone)
    kept = f"{clone.places.folder('000042')}/tree-kept-{STAMP}-1"
    assert notes == [f"What nobody had committed is kept in {kept}."]
    assert Path(kept, "new.txt").read_text() == "mine\n"
    assert clone.git("status", "--porcelain", at=clone.tree()) == ""


def test_a_foreign_folder_in_the_place_is_refused_and_left(clone: Clone, task: Task) -> None:
    clone.claim(task)
    clone.tree().mkdir(parents=True)
    (clone.tree() / "thesis.txt").write_text("mine\n")
    with pytest.raises(Refused, match="is not a worktree of this repository"):
        ensure(clone)
    assert files_in(clone.tree()) == {"thesis.txt": "mine\n"}


def test_the_worktree_of_another_repository_in_the_place_is_refused(
    clone: Clone, task: Task, tmp_path: Path
) -> None:
    clone.claim(task)
    other = tmp_path / "other"
    clone.git("clone", "-q", str(clone.folder), str(other))
    clone.git("worktree", "add", "-q", "--detach", str(clone.tree()), at=other)
    with pytest.raises(Refused, match="is not a worktree of this repository"):
        ensure(clone)


def test_an_empty_folder_in_the_place_is_no_obstacle(clone: Clone, task: Task) -> None:
    clone.claim(task)
    clone.tree().mkdir(parents=True)
    ensure(clone)
    assert files_in(clone.tree())["app.txt"] == "one\n"


def test_a_tree_that_was_left_half_made_is_made_anew(clone: Clone, task: Task) -> None:
    clone.start(task)
    admin = clone.folder / ".git" / "worktrees" / "tree"
    (admin / "locked").write_text("initializing")
    (admin / "index.lock").touch()
    (clone.tree() / "app.txt").unlink()
    ensure(clone, fresh=False)
    assert clone.git("status", "--porcelain", at=clone.tree()) == ""


def test_a_tree_that_lost_its_index_is_made_anew_and_its_files_are_kept(
    clone: Clone, task: Task
) -> None:
    clone.start(task)
    (clone.tree() / "app.txt").write_text("work\n")
    (clone.folder / ".git" / "worktrees" / "tree" / "index").unlink()
    notes = ensure(clone, fresh=False)
    kept = f"{clone.places.folder('000042')}/tree-kept-{STAMP}-1"
    assert notes == [f"What nobody had committed is kept in {kept}."]
    assert Path(kept, "app.txt").read_text() == "work\n"
    assert files_in(clone.tree())["app.txt"] == "one\n"


def test_a_new_holder_gets_the_tree_on_its_branch_and_the_mess_is_kept(
    clone: Clone, task: Task
) -> None:
    clone.start(task)
    clone.git("switch", "-q", "--detach", at=clone.tree())
    lost = clone.commit(clone.tree(), a="on no branch\n")
    (clone.tree() / "app.txt").write_text("changed\n")
    notes = ensure(clone)
    folder = f"{clone.places.state}/kept/000042-{STAMP}"
    ref = f"refs/gittasks/kept/000042/{STAMP}-{lost[:8]}"
    assert notes == [
        f"What nobody had committed is kept in {folder}.",
        f"Commits of no branch are kept at {ref}.",
    ]
    assert clone.git("rev-parse", ref) == lost
    assert clone.git("symbolic-ref", "HEAD", at=clone.tree()) == f"refs/heads/{BRANCH}"
    assert files_in(f"{folder}/files") == {"app.txt": "changed\n"}


def test_the_present_holder_keeps_its_detached_head(clone: Clone, task: Task) -> None:
    clone.start(task)
    clone.git("switch", "-q", "--detach", at=clone.tree())
    before = inode(clone)
    assert (ensure(clone, fresh=False), inode(clone)) == ([], before)


def test_a_branch_checked_out_by_a_person_is_refused_naming_the_place(
    clone: Clone, task: Task
) -> None:
    clone.claim(task)
    clone.git("switch", "-q", BRANCH)
    with pytest.raises(Refused) as refused:
        ensure(clone)
    assert refused.value.message == f"The branch {BRANCH} is checked out in {clone.folder}."
    assert not clone.tree().exists()


def test_a_tree_follows_its_branch_to_the_present_base(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    clone.commit(clone.folder, b="two\n")
    clone.start(claimed)
    assert files_in(clone.tree())["b.txt"] == "two\n"
    assert clone.git("status", "--porcelain", at=clone.tree()) == ""


def test_what_the_holder_has_staged_is_never_taken_for_an_old_base(
    clone: Clone, task: Task
) -> None:
    clone.start(task)
    clone.commit(clone.tree(), a="work\n")
    clone.git("rm", "-q", "--cached", "a.txt", at=clone.tree())
    ensure(clone, fresh=False)
    status = clone.git("status", "--porcelain", at=clone.tree())
    assert status == "D  a.txt\n?? a.txt"


def test_a_moved_repository_finds_its_tree_again(clone: Clone, task: Task, tmp_path: Path) -> None:
    clone.start(task)
    (tmp_path / "new").mkdir()
    for name in ("repo", "repo.tasks"):
        (tmp_path / name).rename(tmp_path / "new" / name)
    moved = Clone(tmp_path / "new" / "repo")
    assert worktree.repair(moved.repo, moved.places) == (
        f"Connected the worktree {moved.tree()} again.",
    )
    before = inode(moved)
    assert (ensure(moved), inode(moved)) == ([], before)


def test_repair_removes_what_was_never_finished_but_not_what_may_be_in_the_making(
    clone: Clone, task: Task
) -> None:
    clone.start(task)
    home = clone.folder / ".git" / "worktrees"
    for name in ("abandoned", "young"):
        (home / name).mkdir()
        (home / name / "locked").write_text("initializing")
    os.utime(home / "abandoned", (0, 0))
    done = worktree.repair(clone.repo, clone.places)
    assert done == (f"Removed the registration {home / 'abandoned'}, which was never finished.",)
    assert sorted(os.listdir(home)) == ["tree", "young"]


def test_the_trees_are_listed_with_what_is_wrong(clone: Clone, task: Task) -> None:
    tip = clone.start(task).dispatched
    clone.start(Task("000043", "ef01", "More"))
    shutil.rmtree(clone.tree("000043"))
    clone.tree("000044").mkdir(parents=True)
    assert worktree.list_trees(clone.repo, clone.places) == (
        worktree.Tree("000042", str(clone.tree()), BRANCH, tip),
        worktree.Tree(
            "000043", str(clone.tree("000043")), "task/000043", tip, "its folder is gone"
        ),
        worktree.Tree(
            "000044", str(clone.tree("000044")), None, None,
            "it is no worktree of this repository",
        ),
    )  # fmt: skip


def test_files_git_does_not_carry_are_copied_once(clone: Clone, task: Task) -> None:
    (clone.folder / ".gitignore").write_text(".env*\nlocal/\n")
    clone.commit(clone.folder, b="two\n")
    (clone.folder / ".env").write_text("KEY=1\n")
    (clone.folder / "local").mkdir()
    (clone.folder / "local" / "x").write_text("x\n")
    for pattern in (".env*", "local", "../*", "app.txt"):
        clone.configure("--add", "gittasks.copyFiles", pattern)
    clone.start(task)
    own = files_in(clone.tree())
    assert [own.get(name) for name in (".env", "local/x", "app.txt")] == ["KEY=1\n", "x\n", "one\n"]


def test_the_set_up_command_runs_in_a_new_tree_only(clone: Clone, task: Task) -> None:
    clone.configure("gittasks.setupCommand", f"pwd >> {clone.folder}/../ran")
    clone.start(task)
    ensure(clone)
    assert (clone.folder.parent / "ran").read_text() == f"{clone.tree()}\n"


def test_a_set_up_that_fails_is_told_and_tried_again(clone: Clone, task: Task) -> None:
    clone.configure("gittasks.setupCommand", "echo no network; test -e ../../net")
    with pytest.raises(GittasksError, match=r"exit code 1\.\nno network"):
        clone.start(task)
    (clone.folder.parent / "repo.tasks" / "net").touch()
    ensure(clone)
    assert not Path(clone.places.folder("000042"), ".setup-pending").exists()


def test_a_snapshot_tells_branch_head_tip_and_every_path_that_differs(
    clone: Clone, task: Task
) -> None:
    tip = clone.start(task).dispatched
    (clone.tree() / "app.txt").write_text("two\n")
    (clone.tree() / "a new one").mkdir()
    (clone.tree() / "a new one" / "ü\n").touch()
    clone.git("config", "status.showUntrackedFiles", "no")
    found = worktree.snapshot(clone.repo, str(clone.tree()), BRANCH)
    assert found == Snapshot(f"refs/heads/{BRANCH}", tip, tip, (" M app.txt", "?? a new one/ü\n"))


def test_a_snapshot_of_a_detached_head_still_tells_the_tip(clone: Clone, task: Task) -> None:
    tip = clone.start(task).dispatched
    clone.git("switch", "-q", "--detach", at=clone.tree())
    head = clone.commit(clone.tree(), a="x\n")
    found = worktree.snapshot(clone.repo, str(clone.tree()), BRANCH)
    assert found == Snapshot(None, head, tip, ())


def test_a_clean_tree_goes_without_a_trace(clone: Clone, task: Task) -> None:
    clone.start(task)
    own = Path(clone.places.folder("000042")) / "agent" / "tmp"
    own.mkdir(parents=True)
    (own / "left").write_text("scratch of an agent\n")
    assert worktree.remove(clone.repo, clone.places, "000042") == worktree.Removed(True)
    assert (listed(clone), os.path.exists(clone.places.root)) == ([], False)
    assert not os.path.exists(clone.folder / ".git" / "worktrees" / "tree")


def test_what_nobody_committed_is_kept_when_a_tree_goes(clone: Clone, task: Task) -> None:
    (clone.folder / ".gitignore").write_text("*.log\nbuild/\n")
    clone.commit(clone.folder, b="two\n")
    clone.start(task)
    tree = clone.tree()
    (tree / "app.txt").write_text("staged\n")
    clone.git("add", "app.txt", at=tree)
    (tree / "app.txt").write_text("changed\n")
    (tree / "b.txt").unlink()
    for name in ("new.txt", "out.log", "build/x", "deep/er/y"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(f"{name}\n")
    clone.git("config", "status.showUntrackedFiles", "no")
    removed = worktree.remove(clone.repo, clone.places, "000042", now=NOW)
    folder = f"{clone.places.state}/kept/000042-{STAMP}"
    assert removed == worktree.Removed(True, Kept(folder))
    kept = files_in(folder)
    patches = kept.pop("changes.patch"), kept.pop("staged.patch")
    assert ["+changed" in patches[0], "-two" in patches[0], "+staged" in patches[1]] == [True] * 3
    assert kept == {
        "files/app.txt": "changed\n",
        "files/new.txt": "new.txt\n",
        "files/out.log": "out.log\n",
        "files/build/x": "build/x\n",
        "files/deep/er/y": "deep/er/y\n",
    }
    assert not tree.exists()


def test_two_removals_in_one_second_keep_both(clone: Clone, task: Task) -> None:
    for text in ("one\n", "two\n"):
        claimed = task if text == "one\n" else task._replace(branch=BRANCH)
        clone.start(claimed)
        (clone.tree() / "new.txt").write_text(text)
        worktree.remove(clone.repo, clone.places, "000042", now=NOW)
    kept = f"{clone.places.state}/kept"
    assert files_in(kept) == {
        f"000042-{STAMP}/files/new.txt": "one\n",
        f"000042-{STAMP}-2/files/new.txt": "two\n",
    }


@pytest.mark.parametrize(
    ("text", "kept"), [("Do it.\r\n", []), ("Do it.\n## Design\nSo.\n", ["ASSIGNMENT.md"])]
)
def test_an_assignment_somebody_wrote_in_is_kept(
    clone: Clone, task: Task, text: str, kept: list[str]
) -> None:
    clone.start(task)
    Path(clone.places.assignment("000042")).write_text(text, newline="")
    removed = worktree.remove(
        clone.repo, clone.places, "000042", now=NOW, assignment_sent="Do it.\n"
    )
    assert list(files_in(removed.kept.folder or "/nowhere")) == kept
    assert not os.path.exists(clone.places.folder("000042"))


def test_removing_a_tree_that_is_gone_takes_its_registration(clone: Clone, task: Task) -> None:
    clone.start(task)
    shutil.rmtree(clone.tree())
    assert worktree.remove(clone.repo, clone.places, "000042") == worktree.Removed(False)
    assert listed(clone) == []


def test_a_foreign_folder_is_not_removed(clone: Clone) -> None:
    clone.tree().mkdir(parents=True)
    (clone.tree() / "thesis.txt").write_text("mine\n")
    worktree.remove(clone.repo, clone.places, "000042")
    assert files_in(clone.tree()) == {"thesis.txt": "mine\n"}


def test_whoever_waits_too_long_for_the_lock_is_told(clone: Clone, task: Task) -> None:
    claimed = clone.claim(task)
    code = (
        "import sys, time; from gittasks.plumbing.locks import FileLock\n"
        "FileLock(sys.argv[1], 5).acquire(); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, clone.places.worktree_lock()],
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(Busy, match="lock for worktrees was not free"):
            worktree.ensure(
                clone.repo, clone.places, "000042", str(claimed.branch), lock_timeout=0.1
            )
        holder.kill()


def test_eight_starts_at_once_all_succeed(clone: Clone) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from gittasks.domain.task import Task\n"
        "from tests.workspaces.conftest import Clone\n"
        "Clone(Path(sys.argv[1])).start(Task(sys.argv[2], 'abcd', 'x'))"
    )
    ids = [f"{number:06d}" for number in range(1, 9)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(clone.folder), one],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )
        for one in ids
    ]
    assert [process.wait(60) for process in running] == [0] * 8
    branches = [line.split()[5].removeprefix("refs/heads/") for line in listed(clone)]
    assert sorted(branches) == [f"task/{one}" for one in ids]
    assert clone.git("config", "--get-regexp", r"^branch\.", check=False) == ""
    assert not list((clone.folder / ".git").rglob("*.lock"))


def test_an_untouched_tree_costs_few_processes(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    before = clone.repo.calls
    ensure(clone)
    worktree.snapshot(clone.repo, str(clone.tree()), str(claimed.branch))
    assert clone.repo.calls - before <= 2


def test_a_large_tree_is_out_of_the_way_at_once_and_gone_soon(clone: Clone, task: Task) -> None:
    for number in range(4000):
        (clone.folder / f"{number}.txt").touch()
    clone.commit(clone.folder)
    clone.start(task)
    worktree.remove(clone.repo, clone.places, "000042")
    assert (clone.tree().exists(), listed(clone)) == (False, [])
    deadline = time.monotonic() + 60
    while os.path.exists(clone.places.root) and os.listdir(clone.places.root):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_a_killed_removal_left_is_swept(clone: Clone) -> None:
    gone = Path(clone.places.root, ".gone-0123")
    (gone / "deep").mkdir(parents=True)
    said = worktree.repair(clone.repo, clone.places)
    assert said == (f"Removed what was left of former worktrees in {clone.places.root}.",)
    deadline = time.monotonic() + 60
    while gone.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
