"""What an agent commits apart is brought in whole and only on its own branch, or is put aside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gittasks.domain import guards
from gittasks.domain.errors import GuardBroken
from gittasks.domain.task import Task
from gittasks.plumbing import refs
from gittasks.workspaces import guard, quarantine, worktree
from gittasks.workspaces.quarantine import Harvest, Quarantine
from gittasks.workspaces.records import ClaimRecord
from tests.support.git import git
from tests.workspaces.conftest import NOW, Clone

REF = "refs/heads/task/000042"


class Apart:
    """A started task whose tree is kept apart, and an agent that works there."""

    def __init__(self, clone: Clone, task: Task, *, moves: bool = True) -> None:
        self.clone = clone
        self.task = clone.start(task)
        self.first = clone.git("rev-parse", REF)
        snapshot = worktree.snapshot(clone.repo, str(clone.tree()), "task/000042")
        self.record = ClaimRecord(
            "c" * 32, "s", "000042", "abcd1234", "pi-1", "worker", "WORK", str(clone.tree()),
            snapshot=snapshot,
        )  # fmt: skip
        self.made = self.prepare(moves=moves)
        self.objects = Path(clone.places.state, "quarantine", "000042", "objects")

    def prepare(self, *, moves: bool = True) -> Quarantine:
        return quarantine.prepare(
            self.clone.repo, self.clone.places, "000042", "task/000042", moves=moves
        )

    def git(self, *args: str) -> str:
        """Runs git as the agent does, for whom the objects of the repository are another folder."""
        env = {
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.clone.folder / ".git" / "objects"),
        }
        return git(self.clone.tree(), *args, env=env)

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            (self.clone.tree() / f"{name}.txt").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", f"Change {' '.join(files)}")
        return self.git("rev-parse", "HEAD")

    def harvest(self) -> Harvest:
        return quarantine.harvest(self.clone.repo, self.clone.places, "000042")

    def close(self) -> tuple[str, ...]:
        return quarantine.close(self.clone.repo, self.clone.places, "000042")

    def start_again(self) -> list[str]:
        """Gives the tree to the next holder; returns what was told."""
        notes: list[str] = []
        worktree.ensure(
            self.clone.repo, self.clone.places, "000042", "task/000042", now=NOW, notes=notes
        )
        return notes

    @property
    def branch(self) -> str:
        return self.clone.git("rev-parse", REF)

    @property
    def left(self) -> list[str]:
        return sorted(os.listdir(self.objects.parent.parent))

    def is_plain(self) -> bool:
        """Tells whether the tree stands on its branch, is clean, and nothing is kept apart."""
        status = self.clone.git("status", "--porcelain", "--branch", at=self.clone.tree())
        return status == "## task/000042" and self.left == ["store"]


@pytest.fixture
def apart(clone: Clone, task: Task) -> Apart:
    return Apart(clone, task)


def test_a_commit_stays_apart_until_it_is_harvested(apart: Apart) -> None:
    made = apart.commit(new="text")
    before = apart.branch
    assert apart.harvest() == Harvest(made, has_moved=True)
    assert (before, apart.branch) == (apart.first, made)
    assert apart.harvest() == Harvest(made)


def test_a_second_turn_that_amends_the_first_moves_the_branch_again(apart: Apart) -> None:
    apart.commit(new="text")
    apart.harvest()
    apart.git("commit", "-q", "--amend", "-m", "Better")
    assert apart.harvest().has_moved
    assert apart.close() == ()
    assert apart.clone.git("log", "--format=%s", "-1", REF) == "Better"
    assert apart.is_plain()


def test_a_harvested_tree_counts_as_on_its_branch(apart: Apart) -> None:
    apart.commit(new="text")
    apart.harvest()
    report = guard.report(apart.clone.repo, apart.task, apart.record, apart.first)
    guards.require(apart.task, report)
    assert report.tip == apart.branch
    assert report.commits == 1


def test_a_reviewer_who_commits_moves_no_branch_and_is_refused(clone: Clone, task: Task) -> None:
    apart = Apart(clone, task._replace(state="WORK_REVIEW"), moves=False)
    made = apart.commit(new="text")
    assert apart.harvest() == Harvest(made)
    report = guard.report(clone.repo, apart.task, apart.record, apart.first)
    with pytest.raises(GuardBroken) as broken:
        guards.require(apart.task, report)
    assert broken.value.issue == "modified-worktree"
    assert apart.branch == apart.first


def test_a_rewritten_history_is_brought_in_and_the_branch_stays(apart: Apart) -> None:
    tree = apart.git("write-tree")
    made = apart.git("commit-tree", tree, "-m", "Anew")
    apart.git("update-ref", "--no-deref", "HEAD", made)
    assert apart.harvest().trouble == (
        f"The commit {made[:12]} does not contain {apart.first[:12]}."
    )
    report = guard.report(apart.clone.repo, apart.task, apart.record, apart.first)
    with pytest.raises(GuardBroken) as broken:
        guards.require(apart.task, report)
    assert broken.value.issue == "rewritten"
    notes = apart.start_again()
    kept = next(iter(refs.list(apart.clone.repo, "refs/gittasks/kept/").items()))
    assert kept[1] == made
    assert f"Commits of no branch are kept at {kept[0]}." in notes
    assert apart.branch == apart.first
    assert apart.is_plain()


def test_a_branch_that_somebody_moved_meanwhile_is_left_alone(apart: Apart) -> None:
    made = apart.commit(new="text")
    apart.clone.git("commit", "-q", "--allow-empty", "-m", "Mine")
    mine = apart.clone.git("rev-parse", "HEAD")
    apart.clone.git("update-ref", REF, mine)
    assert apart.harvest() == Harvest(
        made, f"The branch task/000042 has moved to {mine[:12]} meanwhile."
    )
    assert apart.branch == mine


def test_what_is_only_staged_is_brought_in_too(apart: Apart) -> None:
    (apart.clone.tree() / "staged.txt").write_text("not committed")
    apart.git("add", "staged.txt")
    apart.close()
    assert apart.clone.git("show", ":staged.txt", at=apart.clone.tree()) == "not committed"


def test_many_objects_come_as_one_pack(apart: Apart) -> None:
    made = apart.commit(**{f"f{number}": str(number) for number in range(120)})
    assert apart.harvest() == Harvest(made, has_moved=True)
    assert len(list(apart.clone.repo_files("pack-*.idx"))) == 1
    apart.close()
    assert apart.clone.git("fsck", "--full", "--strict") == ""
    assert apart.is_plain()


def test_objects_that_are_not_sound_are_kept_aside_and_the_tree_is_made_anew(apart: Apart) -> None:
    apart.commit(new="text")
    blob = apart.git("rev-parse", "HEAD:new.txt")
    damaged = apart.objects / blob[:2] / blob[2:]
    damaged.chmod(0o600)
    damaged.write_bytes(b"no object")
    trouble = apart.harvest().trouble
    assert trouble is not None
    assert trouble.startswith("What was committed is not sound: ")
    notes = apart.start_again()
    kept = [name for name in apart.left if name.endswith(".kept")]
    assert len(kept) == 1
    assert any(kept[0] in note for note in notes)
    assert apart.branch == apart.first
    assert apart.clone.git("status", "--porcelain", at=apart.clone.tree()) == ""


def test_links_pipes_and_settings_of_an_agent_are_not_followed(apart: Apart, home: Path) -> None:
    made = apart.commit(new="text")
    git_dir = Path(apart.made.git_dir)
    victim = home / "victim"
    victim.write_text("mine")
    (git_dir / "index").unlink()
    (git_dir / "index").symlink_to(victim)
    os.mkfifo(git_dir / "FETCH_HEAD")
    (git_dir / "hooks").mkdir()
    (git_dir / "index.lock").write_text("")
    shutil.rmtree(apart.objects / "info")
    (apart.objects / "info").symlink_to(home)
    told = apart.close()
    names = sorted(Path(line.split()[4].rstrip(",")).name for line in told)
    assert names == ["FETCH_HEAD", "hooks", "index"]
    assert victim.read_text() == "mine"
    assert os.listdir(home) == ["victim"]
    assert apart.branch == made


def test_a_head_on_another_branch_moves_nothing(apart: Apart) -> None:
    apart.commit(new="text")
    Path(apart.made.git_dir, "HEAD").write_text("ref: refs/heads/master\n")
    before = refs.list(apart.clone.repo, "refs/")
    assert apart.harvest() == Harvest(
        None, "HEAD of the worktree is at refs/heads/master, not on task/000042."
    )
    apart.start_again()
    assert refs.list(apart.clone.repo, "refs/") == before
    assert apart.is_plain()


@pytest.mark.parametrize("head", ["nonsense\n", None])
def test_a_head_that_cannot_be_read_loses_no_file(apart: Apart, head: str | None) -> None:
    apart.commit(new="text")
    path = Path(apart.made.git_dir, "HEAD")
    path.unlink()
    if head is None:
        os.mkfifo(path)
    else:
        path.write_text(head)
    assert apart.harvest() == Harvest(None, "HEAD of the worktree cannot be read.")
    apart.start_again()
    status = apart.clone.git("status", "--porcelain", "--branch", at=apart.clone.tree())
    assert status == "## task/000042\nA  new.txt"
    assert apart.branch == apart.first


def _after_record(apart: Apart) -> None:
    """Dies in `prepare`, before HEAD was detached."""
    git(apart.clone.tree(), "symbolic-ref", "HEAD", REF)


def _before_harvest(apart: Apart) -> None:
    """Dies when the agent has committed."""
    apart.commit(new="text")


def _in_harvest(apart: Apart) -> None:
    """Dies with the pack written and nothing moved."""
    apart.commit(new="text")
    inside = apart.objects.parent / "in"
    inside.mkdir()
    (inside / "pack-1.pack").write_text("half")


def _after_move(apart: Apart) -> None:
    """Dies in `harvest`, after the branch has moved and before that was noted."""
    made = apart.commit(new="text")
    apart.harvest()
    apart.git("commit", "-q", "--amend", "-m", "Better")
    assert apart.git("rev-parse", "HEAD") != made


def _after_attach(apart: Apart) -> None:
    """Dies in `close`, before the record went."""
    apart.commit(new="text")
    apart.harvest()
    git(apart.clone.tree(), "symbolic-ref", "HEAD", REF)


def _after_record_went(apart: Apart) -> None:
    """Dies in `close`, with the objects still there."""
    _after_attach(apart)
    (apart.objects.parent / "record.json").unlink()


@pytest.mark.parametrize(
    "die",
    [_after_record, _before_harvest, _in_harvest, _after_move, _after_attach, _after_record_went],
    ids=lambda step: step.__name__.strip("_"),
)
def test_whoever_comes_after_a_death_finds_a_plain_tree(
    apart: Apart, die: Callable[[Apart], None]
) -> None:
    die(apart)
    assert apart.start_again() == []
    assert apart.is_plain()
    assert (apart.branch == apart.first) == (die is _after_record)
    assert apart.clone.git("fsck", "--full") == ""


def test_a_tree_that_is_taken_away_gives_up_its_commits_first(apart: Apart) -> None:
    made = apart.commit(new="text")
    worktree.remove(apart.clone.repo, apart.clone.places, "000042", now=NOW)
    assert apart.branch == made
    assert apart.left == ["store"]


def test_objects_that_continue_elsewhere_are_seen_from_the_store(clone: Clone, task: Task) -> None:
    """A clone made with --shared has a path in it that may be relative to where it stands."""
    (clone.folder / ".git" / "objects" / "info" / "alternates").write_text("../../../other\n")
    apart = Apart.__new__(Apart)
    apart.clone, apart.task = clone, clone.start(task)
    made = apart.prepare()
    laid = quarantine.mounts(
        clone.repo, clone.places, made, claim="c" * 32, outbox=str(clone.folder) + ".out"
    )
    place, seen = next((p, s) for how, p, s in laid if p.endswith("info/alternates"))
    assert place == os.path.join(clone.places.state, "quarantine", "store", "info", "alternates")
    assert Path(seen).read_text() == f"{clone.repo.common_dir}/objects/../../../other\n"
