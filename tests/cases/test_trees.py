"""Trouble with worktrees: made at once, deleted, moved, aborted, worked in at the wrong place."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.cases.ground import Team
from tests.support.cli import tasks, tasks_inprocess, tasks_process
from tests.support.git import git, make_repository


def worktrees(team: Team) -> list[str]:
    """Returns the folders of all worktrees but the user's own."""
    lines = team.git("worktree", "list", "--porcelain").splitlines()
    return sorted(line.removeprefix("worktree ") for line in lines if line.startswith("worktree "))[
        1:
    ]


def branch_settings(team: Team) -> str:
    return team.git("config", "--get-regexp", r"^branch\.", check=False)


@pytest.mark.parametrize(
    "round_", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 6))]
)
def test_eight_starts_at_the_same_moment_all_get_a_tree(team: Team, round_: int) -> None:
    """Guards against agents that stand idle because `git worktree add` fails beside another."""
    names = [team.new(f"Task {n}") for n in range(8)]
    running = [
        tasks_process(team.folder, "start", name, env={"GITTASKS_AGENT": f"agent-{name}"})
        for name in names
    ]
    ended = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0] * 8, ended
    assert sorted(out.strip() for out, _ in ended) == worktrees(team)
    assert [team.show(name)["claimed_by"] for name in names] == [f"agent-{n}" for n in names]
    heads = team.git("for-each-ref", "--format=%(refname)", "refs/heads").split()
    assert heads == ["refs/heads/gittasks", "refs/heads/master"] + [
        f"refs/heads/task/{name}" for name in names
    ]
    assert (branch_settings(team), team.leftovers()) == ("", [])


def test_eight_starts_beside_a_collecting_git_all_get_a_tree(team: Team) -> None:
    """Guards against a background gc that takes folders away from a tree in the making."""
    names = [team.new(f"Task {n}") for n in range(8)]
    running = [
        tasks_process(team.folder, "start", name, env={"GITTASKS_AGENT": f"agent-{name}"})
        for name in names
    ]
    while any(process.poll() is None for process in running):
        team.git("gc", "-q", "--prune=now", check=False)
        time.sleep(0.1)
    ended = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0] * 8, ended
    for folder in worktrees(team):
        assert git(folder, "status", "--porcelain") == ""
    assert git(team.folder, "fsck", "--connectivity-only", "--no-dangling") == ""


def test_the_same_agent_started_many_times_at_once_has_one_tree(team: Team) -> None:
    """Guards against a supervisor that starts its agent twice and gets two registrations."""
    task = team.new("Once")
    running = [
        tasks_process(team.folder, "start", task, env={"GITTASKS_AGENT": "wim"}) for _ in range(4)
    ]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in running]
    paths = {out.strip() for out, _, status in ended if status == 0}
    assert len(paths) == 1, ended
    assert worktrees(team) == sorted(paths)
    assert {status for _, _, status in ended} == {0}, ended
    assert len([line for line in team.subjects() if " claim " in line]) == 1


@pytest.mark.parametrize("what", ["tree", "folder", "git file", "files", "registration"])
def test_a_tree_deleted_by_hand_comes_back_with_its_commit(team: Team, what: str) -> None:
    """Guards against work that cannot go on after somebody tidied up with the file manager."""
    task, other = team.new("One"), team.new("Other")
    tree, neighbour = team.start(task), team.start(other, "otto")
    commit = team.commit(tree, {"new.txt": "new\n"})
    match what:
        case "tree":
            shutil.rmtree(tree)
        case "folder":
            shutil.rmtree(tree.parent)
        case "git file":
            (tree / ".git").unlink()
        case "files":
            for entry in tree.iterdir():
                if entry.name != ".git":
                    entry.unlink()
        case _:
            shutil.rmtree(team.git("rev-parse", "--absolute-git-dir", at=tree))
    assert team.start(task) == tree
    assert team.git("rev-parse", "HEAD", at=tree) == commit
    assert team.git("symbolic-ref", "HEAD", at=tree) == f"refs/heads/task/{task}"
    assert worktrees(team) == sorted([str(tree), str(neighbour)])
    assert "prunable" not in team.git("worktree", "list", "--porcelain")
    if what != "files":
        assert (tree / "new.txt").read_text(encoding="utf-8") == "new\n"
    assert (tree.parent / "ASSIGNMENT.md").exists()


def test_a_tree_on_a_mount_that_is_missing_keeps_its_registration(team: Team) -> None:
    """Guards against one start that forgets the trees of a disk that is not there just now."""
    here, gone = team.new("Here"), team.new("Gone")
    tree, far = team.start(here), team.start(gone, "gus")
    commit = team.commit(far, {"far.txt": "far\n"})
    away = far.parent.with_name("away")
    far.parent.rename(away)
    shutil.rmtree(tree)
    assert team.start(here) == tree
    team.manager("worktree", "repair")
    away.rename(far.parent)
    assert team.git("rev-parse", "HEAD", at=far) == commit
    assert team.start(gone, "gus") == far


@pytest.mark.parametrize("moved", ["repository", "both"])
def test_a_moved_repository_finds_its_trees_again(home: Path, moved: str) -> None:
    """Guards against trees that point at a folder where the repository no longer is."""
    team = Team(home / "old" / "project")
    task = team.new("One")
    tree = team.start(task)
    commit = team.commit(tree, {"new.txt": "new\n"})
    (tree / "draft.txt").write_text("not committed\n", encoding="utf-8")
    if moved == "both":
        (home / "old").rename(home / "new")
    else:
        (home / "new").mkdir()
        team.folder.rename(home / "new" / "project")
        (home / "old" / "project.tasks").rename(home / "new" / "project.tasks")
    team.folder = home / "new" / "project"
    again = team.start(task)
    assert again == home / "new/project.tasks" / task / "tree"
    assert team.git("rev-parse", "HEAD", at=again) == commit
    assert (again / "draft.txt").read_text(encoding="utf-8") == "not committed\n"
    team.git("add", "-A", at=again)
    team.git("commit", "-q", "-m", "More", at=again)
    team.agent("wim", "submit", "-m", "Done.", at=again)
    assert team.state(task) == "WORK_REVIEW"


def test_a_copy_of_the_repository_leaves_the_trees_of_the_original_alone(
    team: Team, home: Path
) -> None:
    """Guards against `cp -r`: the copy's registrations name the trees of the original."""
    task = team.new("One")
    tree = team.start(task)
    commit = team.commit(tree, {"new.txt": "new\n"})
    (tree / "draft.txt").write_text("not committed\n", encoding="utf-8")
    shutil.copytree(team.folder, home / "copy", symlinks=True)
    in_copy = tasks_inprocess(home / "copy", "start", task, env={"GITTASKS_AGENT": "wim"})
    copied = Path(in_copy.out.strip())
    assert copied == home / "copy.tasks" / task / "tree"
    assert git(copied, "rev-parse", "HEAD") == commit
    tasks_inprocess(home / "copy", "worktree", "repair")
    tasks_inprocess(home / "copy", "hold", task, "-m", "Stop.")
    tasks_inprocess(home / "copy", "abort", task)
    tasks_inprocess(home / "copy", "gc")
    assert (tree / "draft.txt").read_text(encoding="utf-8") == "not committed\n"
    common = git(tree, "rev-parse", "--path-format=absolute", "--git-common-dir")
    assert common == str(team.folder / ".git")
    assert git(tree, "status", "--porcelain") == "?? draft.txt"
    assert team.state(task) == "WORK"


def held_with_leftovers(team: Team, *args: str) -> tuple[str, Path]:
    """Returns a held task whose tree has a changed, a staged, an ignored and an untracked file."""
    task = team.new("One", *args)
    tree = team.start(task)
    team.commit(tree, {".gitignore": "*.log\n", "staged.txt": "old\n"})
    (tree / "app.txt").write_text("changed\n", encoding="utf-8")
    (tree / "staged.txt").write_text("staged\n", encoding="utf-8")
    team.git("add", "staged.txt", at=tree)
    (tree / "staged.txt").write_text("and changed again\n", encoding="utf-8")
    (tree / "new.txt").write_text("untracked\n", encoding="utf-8")
    (tree / "deep").mkdir()
    (tree / "deep" / "binary").write_bytes(b"\0\xff\r\n")
    (tree / "run.log").write_text("ignored\n", encoding="utf-8")
    team.manager("hold", task, "-m", "Stop.")
    return task, tree


@pytest.mark.parametrize("hidden", [False, True])
def test_an_abort_prints_where_uncommitted_work_is(team: Team, hidden: bool) -> None:
    """Guards against an abort that deletes an afternoon's work, also where git hides it."""
    task, tree = held_with_leftovers(team)
    if hidden:
        team.git("config", "status.showUntrackedFiles", "no")
    said = team.manager("abort", task).err
    (line,) = [line for line in said.splitlines() if "kept in" in line]
    kept = Path(line.partition("kept in ")[2].rstrip("."))
    assert (kept / "files/new.txt").read_text(encoding="utf-8") == "untracked\n"
    assert (kept / "files/deep/binary").read_bytes() == b"\0\xff\r\n"
    assert (kept / "files/run.log").read_text(encoding="utf-8") == "ignored\n"
    patch = (kept / "changes.patch").read_text(encoding="utf-8")
    assert "+changed" in patch
    assert "+and changed again" in patch
    shown = team.show(task)
    assert (shown["state"], shown["outcome"], shown["claimed_by"]) == ("CLOSED", "aborted", None)
    assert not tree.exists()
    git(team.folder, "switch", "-q", "-c", "again", f"refs/gittasks/aborted/{task}")
    git(team.folder, "apply", str(kept / "changes.patch"))
    assert (team.folder / "staged.txt").read_text(encoding="utf-8") == "and changed again\n"


@pytest.mark.parametrize("state", ["staged only", "merge", "detached", "other branch"])
def test_an_abort_loses_nothing_of_an_odd_tree(team: Team, state: str) -> None:
    """Guards against work that is on no branch the abort looks at."""
    task = team.new("One")
    tree = team.start(task)
    team.commit(tree, {"own.txt": "own\n"})
    wanted = "own\n"
    match state:
        case "staged only":
            (tree / "own.txt").write_text("only staged\n", encoding="utf-8")
            team.git("add", "own.txt", at=tree)
            (tree / "own.txt").write_text("own\n", encoding="utf-8")
            wanted = "only staged\n"
        case "merge":
            team.commit(team.folder, {"own.txt": "theirs\n"})
            team.git("merge", "-q", "master", at=tree, check=False)
            (tree / "own.txt").write_text("half resolved\n", encoding="utf-8")
            wanted = "half resolved\n"
        case "detached":
            team.git("switch", "-q", "--detach", at=tree)
            team.commit(tree, {"own.txt": "on no branch\n"})
            wanted = "on no branch\n"
        case _:
            team.git("switch", "-q", "-c", "mine", at=tree)
            team.commit(tree, {"own.txt": "on another branch\n"})
            wanted = "on another branch\n"
    team.manager("hold", task, "-m", "Stop.")
    said = team.manager("abort", task).err
    assert wanted in everything_kept(team, said), said


def everything_kept(team: Team, said: str) -> str:
    """Returns the contents of every place and every ref that a message names."""
    texts = []
    for word in said.replace(",", " ").split():
        name = word.rstrip(".")
        if name.startswith("/") and os.path.isdir(name):
            for folder, _, files in os.walk(name):
                for file in files:
                    texts.append(Path(folder, file).read_text(encoding="utf-8", errors="replace"))
        elif team.git("rev-parse", "--verify", "-q", f"{name}^{{commit}}", check=False):
            texts.append(team.git("log", "-p", "--format=%H", name) + "\n")
    texts += [team.git("log", "-p", "--branches", "--format=%H") + "\n"]
    lines = [line for text in texts for line in text.splitlines()]
    return "".join(line.removeprefix("+") + "\n" for line in lines)


def test_work_done_in_the_users_checkout_is_named(team: Team) -> None:
    """Guards against an agent that edits through absolute paths and believes that it is done."""
    task = team.new("One")
    tree = team.start(task)
    (team.folder / "app.txt").write_text("by the agent\n", encoding="utf-8")
    refused = team.agent("wim", "submit", "-m", "Done.", at=tree, check=5)
    assert "no commit of its own" in refused.err
    assert "app.txt" in refused.err
    assert team.state(task) == "WORK"
    assert (team.folder / "app.txt").read_text(encoding="utf-8") == "by the agent\n"


@pytest.mark.parametrize("kind", ["new file", "staged", "changed again", "deleted", "in a folder"])
def test_every_kind_of_stray_edit_is_named(team: Team, kind: str) -> None:
    """Guards against a warning that knows only one way to touch the user's files."""
    (team.folder / "mine.txt").write_text("mine\n", encoding="utf-8")
    task = team.new("One")
    tree = team.start(task)
    name = {"new file": "stray.txt", "changed again": "mine.txt", "in a folder": "x/y.txt"}.get(
        kind, "app.txt"
    )
    path = team.folder / name
    if kind == "deleted":
        path.unlink()
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text("by the agent\n", encoding="utf-8")
    if kind == "staged":
        team.git("add", name)
    refused = team.agent("wim", "submit", "-m", "Done.", at=tree, check=5)
    assert name in refused.err


def test_what_the_user_had_changed_before_is_not_held_against_the_agent(team: Team) -> None:
    """Guards against blaming an agent for the user's own unfinished work."""
    (team.folder / "app.txt").write_text("by the user\n", encoding="utf-8")
    tree = team.start(team.new("One"))
    refused = team.agent("wim", "submit", "-m", "Done.", at=tree, check=5)
    assert "app.txt" not in refused.err


def test_a_half_made_tree_never_reaches_an_agent(team: Team) -> None:
    """Guards against a tree in which every file counts as deleted, and is committed as such."""
    task = team.new("One")
    tree = team.start(task)
    admin = Path(team.git("rev-parse", "--absolute-git-dir", at=tree))
    (admin / "locked").write_text("initializing", encoding="utf-8")
    (admin / "index").unlink()
    (tree / "app.txt").unlink()
    old = 1_000_000_000
    for path in (admin, admin / "locked", tree):
        os.utime(path, (old, old))
    assert team.start(task) == tree
    assert team.git("status", "--porcelain", at=tree) == ""
    assert worktrees(team) == [str(tree)]


def test_a_removed_tree_leaves_what_nobody_committed_elsewhere(team: Team) -> None:
    """Guards against `worktree remove`, which deletes ignored files without a word."""
    task, tree = held_with_leftovers(team)
    said = team.manager("worktree", "remove", task).err
    assert not tree.exists()
    kept = everything_kept(team, said)
    for text in ("changed\n", "and changed again\n", "untracked\n", "ignored\n"):
        assert text in kept


def test_sparse_settings_of_the_user_do_not_reach_the_agents(home: Path) -> None:
    """Guards against an agent that sees half of the files and rewrites the missing ones."""
    team = Team(home / "project", files={"a/one.txt": "1\n", "b/two.txt": "2\n"})
    team.git("sparse-checkout", "set", "a")
    tree = team.start(team.new("One"))
    assert sorted(path.name for path in tree.rglob("*.txt")) == ["one.txt", "two.txt"]
    assert not (team.folder / "b").exists()


def test_a_project_with_a_submodule_lands_and_leaves_no_tree(home: Path) -> None:
    """Guards against trees that cannot be removed because a submodule was checked out there."""
    part = make_repository(home / "part", files={"part.txt": "part\n"})
    team = Team(home / "project")
    allow = ("-c", "protocol.file.allow=always")
    team.git(*allow, "submodule", "--quiet", "add", str(part), "part")
    team.git("commit", "-q", "-m", "Add the part")
    task = team.new("One")
    tree = team.start(task)
    team.git(*allow, "submodule", "--quiet", "update", "--init", at=tree)
    team.commit(tree, {"new.txt": "new\n"})
    team.agent("wim", "submit", "-m", "Done.", at=tree)
    team.approve(task)
    team.manager("submit", task)
    assert team.show(task)["outcome"] == "landed"
    assert not tree.exists()
    assert worktrees(team) == []


def test_a_dirty_submodule_is_uncommitted_work(home: Path) -> None:
    """Guards against work inside of a submodule that nobody commits and nobody misses."""
    part = make_repository(home / "part", files={"part.txt": "part\n"})
    team = Team(home / "project")
    allow = ("-c", "protocol.file.allow=always")
    team.git(*allow, "submodule", "--quiet", "add", str(part), "part")
    team.git("config", "-f", ".gitmodules", "submodule.part.ignore", "all")
    team.git("commit", "-q", "-a", "-m", "Add the part")
    tree = team.start(team.new("One"))
    team.git(*allow, "submodule", "--quiet", "update", "--init", at=tree)
    team.commit(tree, {"new.txt": "new\n"})
    (tree / "part/part.txt").write_text("changed\n", encoding="utf-8")
    refused = team.agent("wim", "submit", "-m", "Done.", at=tree, check=5)
    assert "part" in refused.err


def test_pointers_of_large_files_land_as_they_are(home: Path) -> None:
    """Guards against a filter that is not installed here turning pointers into changes."""
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"
    files = {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "big.bin": pointer}
    team = Team(home / "project", files=files)
    task = team.reviewed("One", {"new.txt": "new\n"})
    team.manager("submit", task)
    assert team.git("show", "master:big.bin") + "\n" == pointer
    assert team.git("status", "--porcelain") == ""


def test_a_tree_can_be_given_back_from_inside_of_it(team: Team) -> None:
    """Guards against commands that fail because the folder they stand in goes away."""
    task = team.new("One")
    tree = team.start(task)
    done = tasks(tree, "hold", "-m", "I do not understand.", env={"GITTASKS_AGENT": "wim"})
    assert done.out == f"{task} hold WORK -> HELD_WORK\n"
    done = tasks(tree, "abort", task, "--as", "Mia Manager", "--role", "manager")
    assert done.out.splitlines()[0] == f"{task} abort HELD_WORK -> CLOSED"
    assert not tree.exists()


def test_an_untouched_task_can_be_aborted(team: Team) -> None:
    """Guards against a task that nobody has worked on and that nobody can get rid of."""
    task = team.new("One")
    team.commit(team.folder, {"base.txt": "moved on\n"})
    tree = team.start(task)
    team.manager("hold", task, "-m", "Stop.")
    team.commit(team.folder, {"base.txt": "moved on again\n"})
    team.manager("abort", task)
    assert team.show(task)["outcome"] == "aborted"
    assert not tree.exists()
    assert team.git("for-each-ref", f"refs/heads/task/{task}", "refs/gittasks/aborted") == ""


@pytest.mark.parametrize("command", ["sleep 607.5", "exit 3", "yes", "git checkout -q --detach"])
def test_a_set_up_that_fails_is_told_and_can_be_tried_again(team: Team, command: str) -> None:
    """Guards against an agent in a tree without its dependencies, or one that never gets a tree."""
    team.git("config", "gittasks.setupCommand", command)
    team.git("config", "gittasks.setupTimeout", "1s")
    task = team.new("One")
    said = team.agent("wim", "start", task, check=None)
    assert "defect" not in said.err
    if not command.startswith("git"):
        assert said.status == 1
        assert command.split(maxsplit=1)[0] in said.err
    assert team.show(task)["claimed_by"] == "wim"
    team.git("config", "gittasks.setupCommand", "touch set-up.txt")
    tree = team.start(task)
    assert (tree / "set-up.txt").exists() or command.startswith("git")
    if command.startswith("sleep"):
        assert subprocess.run(["pgrep", "-f", command], check=False).returncode == 1


def test_copied_files_stay_inside_of_the_tree(team: Team, home: Path) -> None:
    """Guards against patterns and links that lead out of the checkout, or into the user's files."""
    (home / "secret.txt").write_text("secret\n", encoding="utf-8")
    (team.folder / ".env").write_text("token\n", encoding="utf-8")
    (team.folder / "link").symlink_to(home / "secret.txt")
    team.commit(team.folder, {".gitignore": ".env\nlink\n"})
    for pattern in (".env", "link", "../*", "/etc/passwd", ".git/config", "*.none", "app.txt"):
        team.git("config", "--add", "gittasks.copyFiles", pattern)
    tree = team.start(team.new("One"))
    assert (tree / ".env").read_text(encoding="utf-8") == "token\n"
    assert (tree / "link").is_symlink()
    assert sorted(path.name for path in tree.iterdir()) == [
        ".env", ".git", ".gitignore", "app.txt", "link",
    ]  # fmt: skip
    assert sorted(path.name for path in tree.parent.iterdir()) == ["ASSIGNMENT.md", "tree"]
    team.commit(tree, {"new.txt": "new\n"})
    team.agent("wim", "submit", "-m", "Done.", at=tree)
