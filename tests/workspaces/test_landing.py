"""What a landing is made of, before anything moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.domain.errors import CheckFailed, Refused
from gittasks.domain.task import Task
from gittasks.plumbing.objects import Reader
from gittasks.workspaces import landing, worktree
from tests.workspaces.conftest import BASE, NOW, Clone

WHO = landing.Identity("Mana <Ger>", "m@example.org", NOW)


def merged(clone: Clone, task: Task, mode: str = "merge", spare: str | None = None) -> str:
    base, tip = clone.git("rev-parse", "master", "task/000042").split()
    with Reader(clone.repo) as reader:
        return landing.merged(clone.repo, reader, task, base, tip, mode, WHO, spare)


def by_hand(clone: Clone, tip: str) -> str | None:
    with Reader(clone.repo) as reader:
        base = clone.git("rev-parse", "master")
        return landing.landed_by_hand(clone.repo, reader, tip, base)


def shown(clone: Clone, commit: str, what: str) -> str:
    return clone.git("show", "-s", f"--format={what}", commit)


def require_free(clone: Clone, task: Task) -> None:
    old = clone.git("rev-parse", "master")
    landing.require_free(clone.repo, task, BASE, old, merged(clone, task))


@pytest.fixture
def working(clone: Clone, task: Task) -> Task:
    """Returns a task with one commit, on a base that has moved on."""
    claimed = clone.start(task._replace(title="Do\tit\nnow \u202e"))
    clone.commit(clone.tree(), a="work\n")
    clone.commit(clone.folder, b="two\n")
    return claimed


def test_a_merge_has_both_parents_and_names_the_task(clone: Clone, working: Task) -> None:
    commit = merged(clone, working)
    base, tip = clone.git("rev-parse", "master", "task/000042").split()
    assert shown(clone, commit, "%P%n%an <%ae>%n%cn%n%at%n%B").rstrip("\n") == (
        f"{base} {tip}\nMana Ger <m@example.org>\nMana Ger\n{NOW}\n"
        "000042: Do it now\n\nTask: 000042"
    )
    assert clone.git("ls-tree", "--name-only", commit).split() == ["a.txt", "app.txt", "b.txt"]


def test_a_branch_ahead_of_the_base_still_gets_a_merge_commit(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    tip = clone.commit(clone.tree(), a="work\n")
    assert shown(clone, merged(clone, claimed), "%P") == f"{claimed.dispatched} {tip}"


def test_a_squash_has_one_parent_and_the_author_of_the_work(clone: Clone, working: Task) -> None:
    commit = merged(clone, working, "squash")
    base = clone.git("rev-parse", "master")
    assert shown(clone, commit, "%P|%an|%cn|%s") == f"{base}|Ada|Mana Ger|000042: Do it now"


def test_a_rebase_keeps_messages_and_authors_and_moves_no_branch(
    clone: Clone, working: Task
) -> None:
    tip = clone.commit(clone.tree(), a="more\n")
    clone.configure("rebase.updateRefs", "true")
    spare = worktree.add_spare(clone.repo, clone.places, "000042", tip)
    commit = merged(clone, working, "rebase", spare)
    base = clone.git("rev-parse", "master")
    log = clone.git("log", "--reverse", "--format=%s|%an|%cn", f"{base}..{commit}")
    assert log.split("\n") == ["Change a|Ada|Mana Ger"] * 2
    assert clone.git("rev-parse", "task/000042") == tip


def test_a_conflict_names_the_files_and_leaves_no_trace(clone: Clone, working: Task) -> None:
    clone.commit(clone.tree(), b="ours\n", app="ours\n")
    clone.commit(clone.folder, app="theirs\n")
    with pytest.raises(CheckFailed) as failed:
        merged(clone, working)
    assert failed.value.message == (
        "The branch task/000042 conflicts with the base in app.txt, b.txt."
    )
    assert not list(clone.repo_files("MERGE_HEAD"))


def test_a_conflict_in_a_rebase_is_told_the_same_way(clone: Clone, working: Task) -> None:
    tip = clone.commit(clone.tree(), app="ours\n")
    clone.commit(clone.folder, app="theirs\n")
    spare = worktree.add_spare(clone.repo, clone.places, "000042", tip)
    with pytest.raises(CheckFailed, match=r"conflicts with the base in app\.txt\."):
        merged(clone, working, "rebase", spare)
    worktree.drop_spare(clone.repo, clone.places, "000042")
    assert not list(clone.repo_files("rebase-merge"))


def test_a_tip_merged_by_hand_is_found_at_the_commit_that_brought_it(
    clone: Clone, working: Task
) -> None:
    tip = clone.git("rev-parse", "task/000042")
    before = by_hand(clone, tip)
    clone.commit(clone.folder, c="three\n")
    clone.git("merge", "-q", "--no-ff", "-m", "By hand", "task/000042")
    wanted = clone.git("rev-parse", "master")
    for name in "def":
        clone.commit(clone.folder, **{name: "more\n"})
    assert (before, by_hand(clone, tip)) == (None, wanted)


def test_a_base_that_was_fast_forwarded_has_the_tip_itself(clone: Clone, task: Task) -> None:
    clone.start(task)
    tip = clone.commit(clone.tree(), a="work\n")
    clone.git("merge", "-q", "--ff-only", "task/000042")
    at_once = by_hand(clone, tip)
    clone.commit(clone.folder, b="two\n")
    assert (at_once, by_hand(clone, tip)) == (tip, tip)


def test_only_the_reviewed_commit_may_land(clone: Clone, working: Task) -> None:
    tip = clone.git("rev-parse", "task/000042")
    reviewed = working._replace(submitted_tip=tip, checked_tip=tip)
    later = clone.commit(clone.tree(), a="after the review\n")
    with Reader(clone.repo) as reader, pytest.raises(Refused) as refused:
        landing.require_reviewed(reader, reviewed)
    assert refused.value.message == (
        f"The branch task/000042 is at {later[:12]}, but {tip[:12]} was checked and reviewed."
    )


def test_a_branch_that_is_gone_cannot_land(clone: Clone, working: Task) -> None:
    tip = clone.git("rev-parse", "task/000042")
    clone.git("update-ref", "-d", "refs/heads/task/000042")
    reviewed = working._replace(submitted_tip=tip, checked_tip=tip)
    with Reader(clone.repo) as reader, pytest.raises(Refused) as refused:
        landing.require_reviewed(reader, reviewed)
    assert refused.value.hint == f"Bring it back: git branch task/000042 {tip}."


def test_a_branch_without_own_commits_cannot_land(clone: Clone, task: Task) -> None:
    claimed = clone.start(task)
    tip = claimed.dispatched
    with Reader(clone.repo) as reader, pytest.raises(Refused, match="no commit of its own"):
        landing.require_reviewed(reader, claimed._replace(submitted_tip=tip, checked_tip=tip))


def test_changes_beside_the_landing_are_no_obstacle(clone: Clone, working: Task) -> None:
    (clone.folder / "app.txt").write_text("the user's own\n")
    (clone.folder / "staged.txt").write_text("the user's own\n")
    clone.git("add", "staged.txt")
    (clone.folder / "notes.txt").write_text("the user's own\n")
    before = clone.git("status", "--porcelain")
    require_free(clone, working)
    assert clone.git("status", "--porcelain") == before


def test_a_changed_file_that_the_landing_changes_is_named(clone: Clone, working: Task) -> None:
    clone.commit(clone.tree(), app="work\n")
    (clone.folder / "app.txt").write_text("the user's own\n")
    with pytest.raises(Refused, match=r"cannot follow the base.*app\.txt"):
        require_free(clone, working)


@pytest.mark.parametrize("ignored", [False, True])
def test_an_added_file_that_is_there_untracked_is_named(
    clone: Clone, working: Task, ignored: bool
) -> None:
    if ignored:
        (clone.folder / ".git" / "info").mkdir(exist_ok=True)
        (clone.folder / ".git" / "info" / "exclude").write_text("a.txt\n")
    (clone.folder / "a.txt").write_text("the user's own\n")
    with pytest.raises(Refused, match=r"stand untracked in .*: a\.txt\."):
        require_free(clone, working)
    assert (clone.folder / "a.txt").read_text() == "the user's own\n"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_stands_where_a_folder_is_added_is_named(
    clone: Clone, working: Task, kind: str
) -> None:
    (clone.tree() / "new").mkdir()
    (clone.tree() / "new" / "x.txt").touch()
    clone.commit(clone.tree())
    if kind == "file":
        (clone.folder / "new").write_text("the user's own\n")
    else:
        (clone.folder / "new").symlink_to("/tmp")
    with pytest.raises(Refused, match="new"):
        require_free(clone, working)


def test_a_folder_of_untracked_files_where_a_file_is_added_is_named(
    clone: Clone, working: Task
) -> None:
    (clone.folder / "a.txt").mkdir()
    (clone.folder / "a.txt" / "mine").write_text("the user's own\n")
    with pytest.raises(Refused, match=r"a\.txt/mine"):
        require_free(clone, working)


@pytest.mark.parametrize("operation", ["merge", "rebase", "cherry-pick", "revert", "bisect"])
def test_an_operation_in_progress_on_the_base_is_named(
    clone: Clone, working: Task, operation: str
) -> None:
    clone.commit(clone.folder, app="zero\n", c="1\n")
    clone.git("branch", "side", "HEAD~1")
    clone.commit(clone.folder, app="two\n")
    clone.git("switch", "-q", "side")
    clone.commit(clone.folder, app="three\n")
    clone.git("switch", "-q", "master")
    command = {
        "merge": ("merge", "side"),
        "rebase": ("rebase", "side"),
        "cherry-pick": ("cherry-pick", "side"),
        "revert": ("revert", "--no-edit", "HEAD~1"),
        "bisect": ("bisect", "start", "HEAD", "HEAD~2"),
    }[operation]
    clone.git(*command, check=False)
    with pytest.raises(Refused, match=f"a {operation} is in progress on the base master"):
        require_free(clone, working)


def test_an_operation_on_another_branch_is_no_obstacle(clone: Clone, working: Task) -> None:
    clone.git("switch", "-q", "-c", "side")
    clone.commit(clone.folder, app="one\n")
    clone.git("switch", "-q", "-c", "other", "HEAD~1")
    clone.commit(clone.folder, app="two\n")
    clone.git("merge", "side", check=False)
    require_free(clone, working)


def test_a_checkout_in_a_linked_worktree_counts_too(
    clone: Clone, working: Task, tmp_path: Path
) -> None:
    clone.git("switch", "-q", "-c", "side")
    clone.git("worktree", "add", "-q", str(tmp_path / "second"), "master")
    (tmp_path / "second" / "a.txt").write_text("the user's own\n")
    with pytest.raises(Refused, match=f"untracked in {tmp_path}/second: a.txt"):
        require_free(clone, working)


def test_the_checkout_follows_and_the_user_s_changes_stay(clone: Clone, working: Task) -> None:
    (clone.folder / "app.txt").write_text("the user's own\n")
    (clone.folder / "staged.txt").write_text("the user's own\n")
    clone.git("add", "staged.txt")
    old, new = clone.git("rev-parse", "master"), merged(clone, working)
    clone.git("update-ref", BASE, new, old)
    assert landing.bring_along(clone.repo, BASE, old, new) == ()
    assert clone.git("status", "--porcelain") == " M app.txt\nA  staged.txt"
    assert (clone.folder / "a.txt").read_text() == "work\n"


def test_a_checkout_that_cannot_follow_gets_the_command_to_run(clone: Clone, working: Task) -> None:
    (clone.folder / "a.txt").write_text("came into the way\n")
    clone.git("add", "a.txt")
    old, new = clone.git("rev-parse", "master"), merged(clone, working)
    clone.git("update-ref", BASE, new, old)
    said = landing.bring_along(clone.repo, BASE, old, new)
    command = f"git -C {clone.folder} read-tree -m -u {old} {new}"
    assert [line.endswith(command) for line in said] == [True]
    assert (clone.folder / "a.txt").read_text() == "came into the way\n"


def test_a_checkout_that_followed_is_not_touched_again(clone: Clone, working: Task) -> None:
    old, new = clone.git("rev-parse", "master"), merged(clone, working)
    clone.git("update-ref", BASE, new, old)
    landing.bring_along(clone.repo, BASE, old, new)
    (clone.folder / "a.txt").write_text("the user goes on\n")
    clone.git("add", "a.txt")
    landing.bring_along(clone.repo, BASE, old, new, unless_done=True)
    assert clone.git("status", "--porcelain") == "M  a.txt"


def test_a_checkout_that_is_behind_is_brought_along_later(clone: Clone, working: Task) -> None:
    (clone.folder / "staged.txt").write_text("the user's own\n")
    clone.git("add", "staged.txt")
    old, new = clone.git("rev-parse", "master"), merged(clone, working)
    clone.git("update-ref", BASE, new, old)
    landing.bring_along(clone.repo, BASE, old, new, unless_done=True)
    assert clone.git("status", "--porcelain") == "A  staged.txt"


def test_the_commit_of_an_open_landing_is_held_until_it_is_let_go(
    clone: Clone, working: Task
) -> None:
    commits = [merged(clone, working), clone.git("rev-parse", "master"), None, None]
    held = []
    for commit in commits:
        landing.hold_commit(clone.repo, "000042", commit)
        found = clone.git(
            "rev-parse", "-q", "--verify", "refs/gittasks/landing/000042", check=False
        )
        held.append(found or None)
    assert held == commits
