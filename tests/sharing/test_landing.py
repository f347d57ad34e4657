"""Landing where the remote has the last word: base, ledger and branch move there in one push."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.ground import error_of
from tests.sharing import ground
from tests.sharing.ground import LEDGER, Shared, linear, refs_of
from tests.support.cli import tasks_process
from tests.support.git import git
from tests.support.remotes import away, commit, install_hook

TASK = "000001"
BRANCH = f"refs/heads/task/{TASK}"
MASTER = "refs/heads/master"
FALLS = "while read old new ref; do test $ref != {0} || {{ echo '{1}' >&2; exit 1; }}; done"


@pytest.fixture(scope="module")
def _reviewed(tmp_path_factory: pytest.TempPathFactory, _begun: Path) -> Path:
    """Makes a project in which Bob's agent has worked, and Ada has to decide."""
    shared = ground.copied(_begun, tmp_path_factory.mktemp("reviewed") / "shared")
    task = shared.ada.new("One")
    shared.bob.sync()
    shared.bob.work(task, {"new.txt": "new\n"})
    shared.bob.approve(task)
    shared.bob.manager("worktree", "remove", task)
    # Looking at the work brings it.
    shared.ada.sync()
    shared.ada.manager("diff", task)
    assert task == TASK
    return shared.remote.parent


@pytest.fixture
def reviewed(home: Path, _reviewed: Path) -> Shared:
    """Returns a project in which Ada has to decide about the work of Bob's agent."""
    return ground.copied(_reviewed, home / "shared")


def landed(shared: Shared) -> str:
    """Requires that the task has landed, everywhere and once; returns the base."""
    base = shared.base
    assert "refs/heads/task" not in " ".join(refs_of(shared.remote))
    shared.met()
    for one in (shared.ada, shared.bob):
        shown = one.show(TASK)
        assert (shown["state"], shown["outcome"]) == ("CLOSED", "landed")
        git(shared.remote, "merge-base", "--is-ancestor", shown["landed"], base)
    assert git(shared.remote, "show", "master:new.txt") == "new"
    assert shared.kinds(TASK)[-1] == "submit"
    assert linear(shared.remote)
    assert shared.ada.refs("refs/gittasks/landing/") == {}
    assert list((shared.ada.folder / ".git/gittasks/landing").glob("*")) == []
    return base


def by_others(shared: Shared, text: str = "by others", *, branch: str = MASTER) -> str:
    """Lets somebody who has no tasks push to a branch of the remote; returns the commit."""
    place = shared.remote.parent / "other"
    if not place.exists():
        git(shared.remote.parent, "clone", "-q", str(shared.remote), str(place))
    git(place, "fetch", "-q", "origin")
    git(place, "checkout", "-q", "-B", "work", f"origin/{branch.removeprefix('refs/heads/')}")
    (place / f"{text}.txt").write_text(f"{text}\n")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", text)
    git(place, "push", "-q", "origin", f"HEAD:{branch}")
    return git(place, "rev-parse", "HEAD")


# -------------------------------------------------------------------------------- what happens


def test_base_ledger_and_branch_move_on_the_remote_and_here(reviewed: Shared) -> None:
    said = reviewed.ada.manager("submit", TASK, "--json").json()["data"]
    base = landed(reviewed)
    assert (said["from"], said["to"], said["outcome"]) == ("MANAGER_REVIEW", "CLOSED", "landed")
    assert said["landed"] == base
    assert reviewed.ada.git("rev-parse", "master") == base
    assert (reviewed.ada.folder / "new.txt").read_text() == "new\n"
    assert reviewed.ada.git("status", "--porcelain") == ""
    assert reviewed.ada.refs(BRANCH) == {}


def test_the_users_note_of_the_base_goes_along_as_with_a_push_of_his_own(reviewed: Shared) -> None:
    noted = "refs/remotes/origin/master"
    reviewed.ada.git("update-ref", "refs/remotes/origin/kept", noted)
    before = reviewed.ada.git("rev-parse", noted)
    reviewed.ada.manager("submit", TASK)
    assert reviewed.ada.git("rev-parse", noted) == reviewed.base != before
    assert reviewed.ada.git("rev-parse", "refs/remotes/origin/kept") == before
    assert "behind" not in reviewed.ada.git("status", "--branch", "--porcelain")
    assert "ahead" not in reviewed.ada.git("status", "--branch", "--porcelain")


def test_one_push_does_it_all(reviewed: Shared) -> None:
    log = reviewed.remote.parent / "pushes"
    install_hook(reviewed.remote, "pre-receive", f"cat >> {log}; echo >> {log}")
    reviewed.ada.manager("submit", TASK)
    pushes = [
        sorted(line.split(" ")[2] for line in push.splitlines())
        for push in log.read_text().split("\n\n")
        if push.strip()
    ]
    assert pushes == [[LEDGER, MASTER, BRANCH]]


def test_a_base_that_is_behind_follows_in_the_same_step(reviewed: Shared) -> None:
    other = by_others(reviewed)
    reviewed.ada.manager("submit", TASK)
    base = landed(reviewed)
    assert reviewed.ada.git("rev-parse", "master") == base
    assert reviewed.ada.git("rev-parse", f"{base}^1") == other
    assert sorted(path.name for path in reviewed.ada.folder.iterdir()) == [
        ".git", "app.txt", "by others.txt", "new.txt",
    ]  # fmt: skip
    assert reviewed.ada.git("status", "--porcelain") == ""
    entries = reviewed.ada.git("reflog", "--format=%gs", "master").splitlines()
    assert entries[0].startswith("gittasks: ")


@pytest.mark.parametrize("how", ["ahead", pytest.param("diverged", marks=pytest.mark.slow)])
def test_what_nobody_submitted_is_not_published(reviewed: Shared, how: str) -> None:
    mine = reviewed.ada.commit(reviewed.ada.folder, {"mine.txt": "mine\n"}, "Mine alone")
    if how == "diverged":
        by_others(reviewed)
    refused = reviewed.unchanged_by(lambda: reviewed.ada.manager("submit", TASK, "--json", check=8))
    error = error_of(refused)
    assert error["name"] == "SYNC"
    assert f"{mine[:7]} Mine alone" in error["message"]
    assert "git push origin master" in error["hint"]
    assert error["hint"].startswith("Merge ") == (how == "diverged")


def test_a_base_of_the_remote_that_is_gone_is_named(reviewed: Shared) -> None:
    git(reviewed.remote, "update-ref", "-d", MASTER)
    refused = reviewed.unchanged_by(lambda: reviewed.ada.manager("submit", TASK, "--json", check=8))
    assert "has no branch master" in error_of(refused)["message"]


def test_a_base_that_is_not_here_is_made_as_the_remote_has_it(reviewed: Shared) -> None:
    reviewed.ada.git("switch", "-q", "-c", "elsewhere")
    reviewed.ada.git("commit", "-q", "--allow-empty", "-m", "Nobody submitted this")
    reviewed.ada.git("branch", "-q", "-D", "master")
    refused = reviewed.unchanged_by(lambda: reviewed.ada.manager("submit", TASK, "--json", check=5))
    assert error_of(refused)["hint"] == f"Make it: git branch master {reviewed.base[:12]}."


@pytest.mark.parametrize("hook", ["update", pytest.param("pre-receive", marks=pytest.mark.slow)])
def test_a_protected_base_moves_nothing_anywhere(reviewed: Shared, hook: str) -> None:
    words = "master is protected"
    script = {
        "update": f"test $1 != {MASTER} || {{ echo '{words}' >&2; exit 1; }}",
        "pre-receive": FALLS.format(MASTER, words),
    }[hook]
    install_hook(reviewed.remote, hook, script)
    refused = reviewed.unchanged_by(lambda: reviewed.ada.manager("submit", TASK, "--json", check=8))
    assert (error_of(refused)["name"], words in error_of(refused)["message"]) == ("SYNC", True)
    (reviewed.remote / "hooks" / hook).unlink()
    reviewed.ada.manager("submit", TASK)
    landed(reviewed)


def test_a_ledger_that_the_remote_protects_moves_nothing_anywhere(reviewed: Shared) -> None:
    install_hook(reviewed.remote, "update", f"test $1 != {LEDGER}")
    reviewed.unchanged_by(lambda: reviewed.ada.manager("submit", TASK, check=8))


@pytest.mark.parametrize(
    "setting", ["receive.denyDeletes", pytest.param("a hook", marks=pytest.mark.slow)]
)
def test_a_remote_that_keeps_branches_lets_the_task_land(reviewed: Shared, setting: str) -> None:
    if setting == "a hook":
        zero = "0" * 40
        install_hook(reviewed.remote, "update", f"test $3 != {zero}")
    else:
        git(reviewed.remote, "config", setting, "true")
    reviewed.ada.manager("submit", TASK)
    assert BRANCH in refs_of(reviewed.remote)
    assert reviewed.ada.show(TASK)["outcome"] == "landed"
    assert git(reviewed.remote, "show", "master:new.txt") == "new"
    # Nobody is kept from working because it stays.
    reviewed.bob.sync()
    reviewed.bob.manager("new", "Two")
    reviewed.ada.sync()


def test_a_deletion_that_is_refused_is_not_tried_for_ever(reviewed: Shared) -> None:
    git(reviewed.remote, "config", "receive.denyDeletes", "true")
    reviewed.ada.manager("submit", TASK)
    assert reviewed.ada.sync().out == "origin: nothing to do\n"


@pytest.mark.parametrize("words", [("--offline", "submit", TASK), ("submit", TASK)])
def test_without_the_remote_nothing_lands(reviewed: Shared, words: tuple[str, ...]) -> None:
    before = reviewed.everything()
    with away(reviewed.remote):
        refused = reviewed.ada.manager(*words, "--json", check=75)
    assert reviewed.everything() == before
    error = error_of(refused)
    assert (error["name"], error["retryable"]) == ("TEMP", True)
    assert "reached" in error["hint"]
    assert "--offline to work" not in error["hint"]


# ------------------------------------------------------------------------------------- races


def gated(shared: Shared) -> tuple[str, Path]:
    """Brings a task to Ada whose check waits at a gate; returns the task and the gate."""
    gate = shared.remote.parent / "gate"
    gate.touch()
    check = f"touch {gate}.open; while ! test -e {gate}; do sleep 0.02; done"
    task = shared.ada.new("Gated", "--check", check)
    shared.ada.work(task, {"gated.txt": "gated\n"})
    shared.ada.approve(task)
    shared.bob.sync()
    gate.unlink()
    Path(f"{gate}.open").unlink()
    return task, gate


def while_landing(shared: Shared, task: str, gate: Path, act: Callable[[], object]) -> str:
    """Does something while the checks of a landing run; returns what the landing said."""
    landing = tasks_process(shared.ada.folder, "submit", task)
    while not Path(f"{gate}.open").exists():
        assert landing.poll() is None, landing.communicate()
    act()
    gate.touch()
    out, err = landing.communicate(timeout=60)
    assert landing.returncode == 0, (out, err)
    return out + err


def test_the_base_of_the_remote_may_move_while_the_checks_run(reviewed: Shared) -> None:
    task, gate = gated(reviewed)
    while_landing(reviewed, task, gate, lambda: by_others(reviewed))
    names = git(reviewed.remote, "ls-tree", "--name-only", "master").splitlines()
    assert names == ["app.txt", "by others.txt", "gated.txt"]
    assert reviewed.ada.show(task)["landed"] == reviewed.base
    assert reviewed.ada.git("rev-parse", "master") == reviewed.base
    assert reviewed.ada.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_a_base_that_never_rests_is_given_up(reviewed: Shared) -> None:
    other = reviewed.remote.parent / "busy"
    git(reviewed.remote.parent, "clone", "-q", str(reviewed.remote), str(other))
    busy = f"cd {other} && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m busy"
    task = reviewed.ada.new("Gated", "--check", f"test ! -e {other}/on || ({busy} && git push -q)")
    reviewed.ada.work(task, {"gated.txt": "gated\n"})
    reviewed.ada.approve(task)
    (other / "on").touch()
    ledger = reviewed.tip
    refused = reviewed.ada.manager("submit", task, "--json", check=75)
    error = error_of(refused)
    assert (error["name"], error["retryable"]) == ("TEMP", True)
    assert "moved 3 times" in error["message"]
    assert (reviewed.tip, reviewed.ada.state(task)) == (ledger, "MANAGER_REVIEW")
    assert reviewed.ada.refs("refs/gittasks/landing/") == {}
    (other / "on").unlink()
    reviewed.ada.manager("submit", task)
    assert reviewed.ada.show(task)["landed"] == reviewed.base


def test_the_ledger_may_move_while_the_checks_run(reviewed: Shared) -> None:
    task, gate = gated(reviewed)

    def act() -> None:
        reviewed.bob.manager("new", "By Bob")
        reviewed.ada.offline("note", TASK, "by Ada herself")
        reviewed.ada.offline("new", "By Ada")

    while_landing(reviewed, task, gate, act)
    reviewed.met()
    assert reviewed.bob.show(task)["outcome"] == "landed"
    titles = {row["title"] for row in reviewed.bob.manager("list", "--json").json()["data"]}
    assert {"By Bob", "By Ada"} <= titles
    assert linear(reviewed.remote)


def test_a_task_that_is_aborted_elsewhere_meanwhile_does_not_land(reviewed: Shared) -> None:
    task, gate = gated(reviewed)
    base = reviewed.base
    landing = tasks_process(reviewed.ada.folder, "submit", task)
    while not Path(f"{gate}.open").exists():
        assert landing.poll() is None
    reviewed.bob.manager("abort", task)
    gate.touch()
    _, err = landing.communicate(timeout=60)
    assert landing.returncode == 5, err
    assert reviewed.base == base == reviewed.ada.git("rev-parse", "master")
    reviewed.met()
    assert reviewed.ada.show(task)["outcome"] == "aborted"
    assert list((reviewed.ada.folder / ".git/gittasks/landing").glob("*")) == []
    assert reviewed.ada.refs("refs/gittasks/landing/") == {}


def test_two_who_land_one_task_at_once_land_it_once(reviewed: Shared) -> None:
    running = [tasks_process(one.folder, "submit", TASK) for one in (reviewed.ada, reviewed.bob)]
    ended = [(*each.communicate(timeout=60), each.returncode) for each in running]
    assert [status for _, _, status in ended] == [0, 0], ended
    landed(reviewed)
    merges = git(reviewed.remote, "rev-list", "--count", "--merges", "master")
    assert merges == "1"


def test_two_tasks_that_land_at_once_from_two_clones_both_land(reviewed: Shared) -> None:
    two = reviewed.bob.reviewed("Two", {"two.txt": "two\n"})
    reviewed.ada.sync()
    running = [
        tasks_process(reviewed.ada.folder, "submit", TASK),
        tasks_process(reviewed.bob.folder, "submit", two),
    ]
    ended = [(*each.communicate(timeout=60), each.returncode) for each in running]
    assert [status for _, _, status in ended] == [0, 0], ended
    names = git(reviewed.remote, "ls-tree", "--name-only", "master").splitlines()
    assert names == ["app.txt", "new.txt", "two.txt"]
    landed(reviewed)
    for one in (reviewed.ada, reviewed.bob):
        assert one.git("status", "--porcelain") == ""


# ------------------------------------------------------------------------------ work branches


@pytest.mark.parametrize("how", ["added", pytest.param("replaced", marks=pytest.mark.slow)])
def test_work_on_the_remote_that_nobody_reviewed_does_not_land(reviewed: Shared, how: str) -> None:
    if how == "added":
        by_others(reviewed, "unseen", branch=BRANCH)
    else:
        commit(
            reviewed.remote, BRANCH, "unseen\n", parent=git(reviewed.remote, "rev-parse", MASTER)
        )
    refused = reviewed.ada.manager("submit", TASK, "--json", check=5)
    assert f"task/{TASK}" in error_of(refused)["message"]
    assert reviewed.ada.state(TASK) == "MANAGER_REVIEW"
    assert "new.txt" not in git(reviewed.remote, "ls-tree", "--name-only", "master")
    assert BRANCH in refs_of(reviewed.remote)
    assert list((reviewed.ada.folder / ".git/gittasks/landing").glob("*")) == []


def test_a_work_branch_that_is_gone_from_the_remote_is_no_obstacle_where_it_is_here(
    reviewed: Shared,
) -> None:
    git(reviewed.remote, "update-ref", "-d", BRANCH)
    reviewed.bob.manager("submit", TASK)
    landed(reviewed)


def test_a_work_branch_that_nobody_here_has_is_named(reviewed: Shared) -> None:
    git(reviewed.remote, "update-ref", "-d", BRANCH)
    reviewed.ada.git("update-ref", "-d", BRANCH)
    reviewed.ada.git("update-ref", "-d", f"refs/gittasks/incoming/heads/task/{TASK}")
    refused = reviewed.unchanged_by(lambda: reviewed.ada.manager("submit", TASK, "--json", check=5))
    assert f"task/{TASK}" in error_of(refused)["message"]
    # The clone that has it brings it back.
    reviewed.bob.sync()
    assert BRANCH in refs_of(reviewed.remote)
    reviewed.ada.manager("submit", TASK)
    landed(reviewed)


@pytest.mark.parametrize("mode", ["rebase", pytest.param("squash", marks=pytest.mark.slow)])
def test_other_ways_to_land_keep_the_branch_here(reviewed: Shared, mode: str) -> None:
    reviewed.ada.manager("config", "landing", mode)
    tip = git(reviewed.remote, "rev-parse", BRANCH)
    by_others(reviewed)
    reviewed.ada.manager("submit", TASK)
    landed(reviewed)
    assert git(reviewed.remote, "rev-list", "--count", "--merges", "master") == "0"
    assert reviewed.ada.git("rev-parse", f"refs/gittasks/landed/{TASK}") == tip


@pytest.mark.parametrize("how", ["merge", pytest.param("squash", marks=pytest.mark.slow)])
def test_a_request_that_was_merged_on_the_forge_closes_the_task(reviewed: Shared, how: str) -> None:
    place = reviewed.remote.parent / "forge"
    git(reviewed.remote.parent, "clone", "-q", str(reviewed.remote), str(place))
    if how == "merge":
        git(place, "merge", "-q", "--no-ff", "-m", "Merge pull request", f"origin/task/{TASK}")
        git(place, "push", "-q", "origin", "HEAD:master", f":{BRANCH}")
        merged = git(place, "rev-parse", "HEAD")
        reviewed.ada.manager("submit", TASK)
        assert landed(reviewed) == merged
        assert reviewed.ada.show(TASK)["landed"] == merged
        assert reviewed.ada.git("rev-parse", "master") == merged
        return
    git(place, "merge", "-q", "--squash", f"origin/task/{TASK}")
    git(place, "commit", "-q", "-m", "Squashed")
    git(place, "push", "-q", "origin", "HEAD:master")
    # A squash has other commits: the task lands with a merge that changes nothing more.
    reviewed.ada.manager("submit", TASK)
    landed(reviewed)


def test_a_worker_elsewhere_cleans_up_after_the_landing(reviewed: Shared) -> None:
    task = reviewed.bob.new("Two")
    tree = reviewed.bob.work(task, {"two.txt": "two\n"})
    (tree / "notes.txt").write_text("not committed\n")
    reviewed.bob.approve(task)
    reviewed.ada.manager("submit", task)
    tip = reviewed.bob.git("rev-parse", f"task/{task}")
    reviewed.bob.sync()
    reviewed.bob.manager("gc")
    assert not tree.exists()
    assert reviewed.bob.refs(f"refs/heads/task/{task}") == {}
    assert f"task/{task}" not in " ".join(refs_of(reviewed.remote))
    assert reviewed.ada.holds(tip)
    kept = [path.read_text() for path in reviewed.bob.folder.parent.rglob("notes.txt")]
    assert kept == ["not committed\n"]
    assert list((reviewed.bob.folder / ".git/gittasks/claims").glob("*")) == []


def test_a_branch_that_landed_does_not_come_back(reviewed: Shared) -> None:
    reviewed.ada.manager("submit", TASK)
    assert BRANCH in reviewed.bob.refs()
    reviewed.bob.sync()
    reviewed.bob.manager("new", "Two")
    assert BRANCH not in refs_of(reviewed.remote)


# -------------------------------------------------------------------------------------- abort


def test_an_abort_keeps_the_work_of_others_and_takes_it_off_the_remote(reviewed: Shared) -> None:
    tip = git(reviewed.remote, "rev-parse", BRANCH)
    reviewed.ada.git("update-ref", "-d", BRANCH)
    reviewed.ada.manager("abort", TASK)
    reviewed.ada.sync()
    assert reviewed.ada.git("rev-parse", f"refs/gittasks/aborted/{TASK}") == tip
    assert BRANCH not in refs_of(reviewed.remote)
    reviewed.bob.sync()
    reviewed.bob.manager("gc")
    assert reviewed.bob.holds(tip)
    assert BRANCH not in reviewed.bob.refs()
    assert BRANCH not in refs_of(reviewed.remote)


def test_an_abort_by_a_manager_who_never_fetched_the_branch_loses_nothing(
    reviewed: Shared,
) -> None:
    task = reviewed.bob.new("Two")
    reviewed.ada.sync()
    tree = reviewed.bob.start(task)
    tip = reviewed.bob.commit(tree, {"two.txt": "two\n"})
    reviewed.bob.sync()
    reviewed.ada.manager("hold", task, "-m", "Stop.")
    reviewed.ada.manager("abort", task)
    reviewed.met()
    assert f"task/{task}" not in " ".join(refs_of(reviewed.remote))
    assert reviewed.ada.holds(tip)
    assert reviewed.bob.holds(tip)
    assert reviewed.ada.show(task)["outcome"] == "aborted"


# ------------------------------------------------------------------------- the user's checkout


@pytest.mark.slow
def test_unrelated_changes_of_the_manager_stay(reviewed: Shared) -> None:
    ada = reviewed.ada
    ada.commit(ada.folder, {"b.txt": "b\n"})
    ada.git("push", "-q", "origin", "master")
    by_others(reviewed)
    (ada.folder / "b.txt").write_text("changed\n")
    (ada.folder / "c.txt").write_text("staged\n")
    ada.git("add", "c.txt")
    (ada.folder / "d.txt").write_text("untracked\n")
    ada.manager("submit", TASK)
    landed(reviewed)
    assert ada.git("status", "--porcelain").splitlines() == [
        " M b.txt", "A  c.txt", "?? d.txt",
    ]  # fmt: skip
    assert (ada.folder / "b.txt").read_text() == "changed\n"
    assert ada.git("stash", "list") == ""


@pytest.mark.parametrize(
    "in_the_way", ["untracked", pytest.param("modified", marks=pytest.mark.slow)]
)
def test_a_change_in_the_way_of_what_others_pushed_is_refused_before_the_push(
    reviewed: Shared, in_the_way: str
) -> None:
    by_others(reviewed, "app" if in_the_way == "modified" else "theirs")
    name = "app.txt" if in_the_way == "modified" else "theirs.txt"
    (reviewed.ada.folder / name).write_text("mine\n")
    refused = reviewed.unchanged_by(lambda: reviewed.ada.manager("submit", TASK, "--json", check=5))
    assert name in error_of(refused)["message"]


def test_a_landing_lands_also_where_nothing_is_checked_out(reviewed: Shared) -> None:
    reviewed.ada.git("switch", "-q", "-c", "elsewhere")
    by_others(reviewed)
    reviewed.ada.manager("submit", TASK)
    assert reviewed.ada.git("rev-parse", "master") == landed(reviewed)
    assert reviewed.ada.git("symbolic-ref", "--short", "HEAD") == "elsewhere"
    assert sorted(path.name for path in reviewed.ada.folder.iterdir()) == [".git", "app.txt"]
