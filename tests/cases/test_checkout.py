"""The user's own checkout, index and branch: they stay as they are, whatever the team does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.ground import Team
from tests.support.git import git


def make_busy(team: Team) -> None:
    """Leaves the checkout with every kind of unfinished business git knows."""
    team.commit(
        team.folder,
        {
            "staged.txt": "1\n",
            "partly.txt": "1\n2\n3\n",
            "gone.txt": "1\n",
            ".gitignore": "*.log\n",
        },
    )
    (team.folder / "staged.txt").write_text("staged\n", encoding="utf-8")
    (team.folder / "partly.txt").write_text("staged\n2\n3\n", encoding="utf-8")
    team.git("add", "staged.txt", "partly.txt")
    (team.folder / "partly.txt").write_text("staged\n2\nnot staged\n", encoding="utf-8")
    team.git("rm", "-q", "--cached", "gone.txt")
    (team.folder / "untracked.txt").write_text("untracked\n", encoding="utf-8")
    (team.folder / "intended.txt").write_text("intended\n", encoding="utf-8")
    team.git("add", "--intent-to-add", "intended.txt")
    (team.folder / "run.log").write_text("ignored\n", encoding="utf-8")
    team.git("update-index", "--assume-unchanged", "app.txt")
    (team.folder / "app.txt").write_text("hidden change\n", encoding="utf-8")


def files(team: Team) -> list[tuple[str, bytes, int]]:
    """Returns name, content and time of every file of the checkout."""
    return [
        (str(path), path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(team.folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(team.folder).parts
    ]


def test_no_verb_touches_what_the_user_has_staged(team: Team) -> None:
    """Guards against a tool that adds, stashes or refreshes in an index that is not its own."""
    make_busy(team)
    before, contents = team.checkout(), files(team)
    index = (team.folder / ".git/index").read_bytes()
    task = team.new("One", "--check", "true")
    held = team.new("Held")
    team.manager("edit", task, "--title", "Two")
    team.manager("claim", held, "--as", "otto")
    team.manager("note", task, "A note.")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    team.agent("wim", "submit", "-m", "Done.", at=tree)
    team.manager("hold", held, "-m", "Stop.")
    team.manager("resume", held)
    team.manager("check", task)
    team.manager("check", task, "--merged")
    for verb in ("list", "inbox", "ready", "status", "log", "fsck", "recover", "gc"):
        team.manager(verb)
    team.manager("show", task, "--review")
    team.manager("diff", task)
    team.manager("hold", task, "-m", "Stop.")
    team.manager("abort", task)
    assert team.checkout() == before
    assert files(team) == contents
    assert (team.folder / ".git/index").read_bytes() == index
    assert team.leftovers() == []


def test_no_verb_ends_what_the_user_has_begun(team: Team) -> None:
    """Guards against a tool that loses a half-resolved merge of the user's."""
    team.git("switch", "-q", "-c", "side")
    team.commit(team.folder, {"app.txt": "side\n"})
    team.git("switch", "-q", "master")
    team.commit(team.folder, {"app.txt": "main\n"})
    team.git("merge", "-q", "side", check=False)
    (team.folder / "app.txt").write_text("half resolved\n", encoding="utf-8")
    before = team.checkout()
    merge_head = (team.folder / ".git/MERGE_HEAD").read_bytes()
    team.work(team.new("One"), {"new.txt": "new\n"})
    assert team.checkout() == before
    assert (team.folder / ".git/MERGE_HEAD").read_bytes() == merge_head


def test_a_landing_leaves_unrelated_changes_of_the_user_alone(team: Team) -> None:
    """Guards against a landing that stashes, commits or throws away what the user is at."""
    team.commit(team.folder, dict.fromkeys(("a.txt", "b.txt", "c.txt", "d.txt"), "old\n"))
    task = team.reviewed("Change a.txt", {"a.txt": "new\n"})
    (team.folder / "b.txt").write_text("modified\n", encoding="utf-8")
    (team.folder / "c.txt").write_text("staged\n", encoding="utf-8")
    team.git("add", "c.txt")
    (team.folder / "d.txt").unlink()
    (team.folder / "mine.txt").write_text("untracked\n", encoding="utf-8")
    team.manager("submit", task)
    assert team.git("status", "--porcelain") == " M b.txt\nM  c.txt\n D d.txt\n?? mine.txt"
    assert (team.folder / "a.txt").read_text(encoding="utf-8") == "new\n"
    assert (team.folder / "b.txt").read_text(encoding="utf-8") == "modified\n"
    assert team.git("stash", "list") == ""
    shown = team.show(task)
    assert (shown["state"], shown["outcome"]) == ("CLOSED", "landed")
    assert shown["landed"] == team.git("rev-parse", "master")
    assert len(team.git("show", "-s", "--format=%P", "master").split()) == 2


def modified(folder: Path, _team: Team) -> None:
    (folder / "a.txt").write_text("mine\n", encoding="utf-8")


def staged(folder: Path, team: Team) -> None:
    modified(folder, team)
    team.git("add", "a.txt")


def untracked(folder: Path, _team: Team) -> None:
    (folder / "added.txt").write_text("mine\n", encoding="utf-8")


def ignored(folder: Path, _team: Team) -> None:
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/exclude").write_text("added.txt\n", encoding="utf-8")
    (folder / "added.txt").write_text("mine\n", encoding="utf-8")


def a_folder(folder: Path, _team: Team) -> None:
    (folder / "added.txt").mkdir()
    (folder / "added.txt/inside").write_text("mine\n", encoding="utf-8")


def a_file_for_a_folder(folder: Path, _team: Team) -> None:
    (folder / "deep").write_text("mine\n", encoding="utf-8")


def a_link_for_a_folder(folder: Path, _team: Team) -> None:
    (folder.parent / "elsewhere").mkdir()
    (folder / "deep").symlink_to(folder.parent / "elsewhere")


def other_case(folder: Path, team: Team) -> None:
    team.git("config", "core.ignoreCase", "true")
    (folder / "added.txt").write_text("mine\n", encoding="utf-8")


def merging(_folder: Path, team: Team) -> None:
    team.git("switch", "-q", "-c", "side", "HEAD~1")
    team.commit(team.folder, {"a.txt": "side\n"})
    team.git("switch", "-q", "master")
    team.git("merge", "-q", "side", check=False)


def rebasing(_folder: Path, team: Team) -> None:
    team.git("branch", "side", "HEAD~1")
    team.git("switch", "-q", "side")
    team.commit(team.folder, {"a.txt": "side\n"})
    team.git("switch", "-q", "master")
    team.git("rebase", "-q", "side", check=False)


def bisecting(_folder: Path, team: Team) -> None:
    team.git("bisect", "start", "master", "master~1")


def picking(_folder: Path, team: Team) -> None:
    team.git("branch", "side", "HEAD~1")
    team.git("switch", "-q", "side")
    commit = team.commit(team.folder, {"a.txt": "side\n"})
    team.git("switch", "-q", "master")
    team.git("cherry-pick", commit, check=False)


def unmerged(_folder: Path, team: Team) -> None:
    blob = team.git("rev-parse", "HEAD:a.txt")
    lines = "".join(f"100644 {blob} {stage}\ta.txt\n" for stage in (1, 2, 3))
    git(team.folder, "update-index", "--index-info", stdin=f"0 {'0' * 40}\ta.txt\n{lines}")


def locked(folder: Path, _team: Team) -> None:
    (folder / ".git/index.lock").write_text("", encoding="utf-8")


OBSTACLES = [
    modified, staged, untracked, ignored, a_folder, a_file_for_a_folder,
    a_link_for_a_folder, other_case, merging, rebasing, bisecting, picking, unmerged, locked,
]  # fmt: skip


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda one: one.__name__)
def test_a_landing_that_would_touch_what_is_the_users_is_refused_whole(
    team: Team, obstacle: Callable[[Path, Team], None]
) -> None:
    """Guards against a base that moves while the checkout cannot follow, and against lost files."""
    team.commit(team.folder, {"a.txt": "old\n"})
    team.commit(team.folder, {"a.txt": "older\n"})
    changes = {"a.txt": "new\n", "added.txt": "added\n", "deep/down.txt": "down\n"}
    task = team.reviewed("Change a.txt", changes)
    obstacle(team.folder, team)
    before, contents, tip = team.checkout(), files(team), team.tip()
    base = team.git("rev-parse", "master")
    refused = team.manager("submit", task, "--json", check=None)
    assert refused.status in (5, 75), refused
    assert team.checkout() == before
    assert files(team) == contents
    assert (team.git("rev-parse", "master"), team.tip()) == (base, tip)
    assert not (team.folder.parent / "elsewhere/down.txt").exists()
    assert team.state(task) == "MANAGER_REVIEW"


def test_the_base_lands_also_where_the_user_stands_elsewhere(team: Team) -> None:
    """Guards against a landing that moves whatever branch happens to be checked out."""
    task = team.reviewed("One", {"new.txt": "new\n"})
    team.git("switch", "-q", "-c", "mine")
    before = team.checkout()
    team.manager("submit", task)
    assert team.checkout() == before
    assert team.git("show", "master:new.txt") == "new"


@pytest.mark.parametrize("where", ["detached", "unborn", "linked worktree"])
def test_the_base_lands_whatever_head_is(team: Team, where: str) -> None:
    """Guards against code that takes HEAD for the base."""
    task = team.reviewed("One", {"new.txt": "new\n"})
    match where:
        case "detached":
            team.git("switch", "-q", "--detach", "master")
        case "unborn":
            team.git("switch", "-q", "--orphan", "nothing")
        case _:
            team.git("switch", "-q", "--detach", "master")
            team.git("worktree", "add", "-q", str(team.folder.parent / "linked"), "master")
    head = team.git("symbolic-ref", "-q", "HEAD", check=False)
    team.manager("submit", task)
    assert team.git("symbolic-ref", "-q", "HEAD", check=False) == head
    assert team.git("show", "master:new.txt") == "new"
    linked = team.folder.parent / "linked"
    if where == "linked worktree":
        assert (linked / "new.txt").read_text(encoding="utf-8") == "new\n"
        assert team.git("status", "--porcelain", at=linked) == ""


def test_a_reviewer_may_have_the_task_branch_checked_out(team: Team) -> None:
    """Guards against a person's look at the branch that stops landing and tidying up."""
    task = team.new("One")
    tree = team.work(task, {"new.txt": "new\n"})
    team.approve(task)
    looking = team.folder.parent / "looking"
    team.git("worktree", "add", "-q", "--force", str(looking), f"task/{task}")
    said = team.manager("submit", task).err
    assert team.show(task)["outcome"] == "landed"
    assert str(looking) in said
    assert team.git("rev-parse", "HEAD", at=looking) == team.git("rev-parse", f"task/{task}")
    assert not tree.exists()
