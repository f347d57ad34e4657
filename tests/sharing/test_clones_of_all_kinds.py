"""Clones that git makes in other ways: cut off, half empty, without a checkout, or as a mirror."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cases.ground import error_of
from tests.sharing import ground
from tests.sharing.ground import LEDGER, Clone, Shared, linear, refs_of
from tests.support.cli import tasks_inprocess
from tests.support.git import git
from tests.support.remotes import away, bare_remote, clone

KINDS = {
    "plain": (),
    "single branch": ("--single-branch",),
    "depth 1": ("--depth=1",),
    "depth 1 of all branches": ("--depth=1", "--no-single-branch"),
    "without blobs": ("--filter=blob:none",),
    "without trees": ("--filter=tree:0",),
    "without blobs, depth 1": ("--filter=blob:none", "--depth=1"),
    "bare": ("--bare",),
    "mirror": ("--mirror",),
    "another name of the remote": ("--origin=server",),
    "without tags": ("--no-tags",),
    "sparse": ("--sparse",),
}
BARE = ("bare", "mirror")
TELLING = ("depth 1 of all branches", "without blobs", "mirror")
"""The kinds whose work goes other ways; all of them are played by the slow tests."""
SHALLOW = tuple(kind for kind, options in KINDS.items() if "--depth=1" in options)


def some_or_slow(some: tuple[str, ...]) -> list[object]:
    """Returns all kinds, most of them for the slow tests."""
    slow = pytest.mark.slow
    return [kind if kind in some else pytest.param(kind, marks=slow) for kind in KINDS]


@pytest.fixture(scope="module")
def _told(tmp_path_factory: pytest.TempPathFactory, _begun: Path) -> Path:
    """Makes a project with some history: three commits, three tasks, one of them closed."""
    shared = ground.copied(_begun, tmp_path_factory.mktemp("told") / "shared")
    for number in range(2):
        shared.ada.commit(shared.ada.folder, {f"{number}.txt": f"{number}\n"})
    shared.ada.git("push", "-q", "origin", "master")
    for title in ("One", "Two", "Three"):
        shared.ada.offline("new", title, "--enter", "work")
    shared.ada.offline("hold", "3", "-m", "No.")
    shared.ada.offline("abort", "3")
    shared.ada.sync()
    git(shared.remote, "config", "uploadpack.allowFilter", "true")
    git(shared.remote, "config", "uploadpack.allowAnySHA1InWant", "true")
    return shared.remote.parent


@pytest.fixture
def told(home: Path, _told: Path) -> Shared:
    """Returns a project with some history."""
    return ground.copied(_told, home / "shared")


def cloned(shared: Shared, kind: str) -> Clone:
    """Clones the project in one of the ways that git has."""
    folder = shared.remote.parent / "cloned"
    return Clone(clone(f"file://{shared.remote}", folder, "Cid", *KINDS[kind]))


def rows(one: Clone) -> list[tuple[str, str]]:
    """Returns number and title of all tasks."""
    found = one.manager("list", "--all", "--json").json()["data"]
    return [(row["id"], row["title"]) for row in found]


@pytest.mark.parametrize("kind", some_or_slow(("plain", "single branch", "depth 1", "mirror")))
def test_before_it_has_the_ledger_a_clone_says_how_to_get_it(told: Shared, kind: str) -> None:
    one = cloned(told, kind)
    before = refs_of(one.folder)
    if kind in BARE:
        # Its branches are those of the remote.
        assert len(rows(one)) == 3
        return
    refused = one.manager("list", "--json", check=3)
    assert error_of(refused)["name"] == "NOREPO"
    assert "git tasks init" in error_of(refused)["hint"]
    assert refs_of(one.folder) == before


@pytest.mark.parametrize(
    "kind",
    some_or_slow((*TELLING, "bare")),
)
def test_a_clone_of_any_kind_takes_the_ledger_over_and_works(told: Shared, kind: str) -> None:
    one = cloned(told, kind)
    commits = one.git("rev-list", "--count", "master")
    events = git(told.remote, "rev-list", "--count", LEDGER)
    one.manager("init")
    with away(told.remote):
        assert rows(one) == [("000001", "One"), ("000002", "Two"), ("000003", "Three")]
        log = one.manager("log", "--json").json()["data"]
        assert one.manager("show", "3").out.splitlines()[0].endswith("Three")
        one.manager("fsck")
    assert one.git("rev-list", "--count", LEDGER) == events == str(len(log) + 1)
    new = one.manager("new", "Four").out.strip()
    one.sync()
    assert told.tip == one.tip()
    told.ada.manager("new", "Five")
    one.offline("note", "1", "Hello")
    one.sync()
    with away(told.remote):
        assert rows(one)[4:] == [("000005", "Five")]
        one.manager("fsck")
    told.met()
    assert told.ada.show(new)["title"] == "Four"
    assert told.kinds("000001")[-1] == "note"
    assert linear(told.remote)
    assert one.git("rev-list", "--count", "master") == commits


@pytest.mark.parametrize("kind", some_or_slow(TELLING))
def test_work_in_a_clone_of_any_kind_lands_in_another(told: Shared, kind: str) -> None:
    one = cloned(told, kind)
    one.manager("init")
    if kind in BARE:
        # The work is done in a tree of the task, which needs no checkout of the user's.
        one.git("config", "user.name", "Cid")
    tree = one.start("1")
    one.commit(tree, {"new.txt": "new\n"})
    one.agent("wim", "submit", "-m", "Done.", at=tree)
    told.bob.approve("1")
    told.ada.manager("submit", "1")
    assert told.ada.show("1")["outcome"] == "landed"
    assert git(told.remote, "show", "master:new.txt") == "new"
    one.sync()
    assert one.show("1")["outcome"] == "landed"


@pytest.mark.parametrize("kind", some_or_slow(TELLING))
def test_a_clone_of_any_kind_lands_the_work_of_another(told: Shared, kind: str) -> None:
    tree = told.bob.start("1")
    told.bob.commit(tree, {"new.txt": "new\n"})
    told.bob.agent("wim", "submit", "-m", "Done.", at=tree)
    told.bob.approve("1")
    one = cloned(told, kind)
    one.manager("init")
    one.manager("submit", "1")
    assert git(told.remote, "show", "master:new.txt") == "new"
    assert "refs/heads/task/000001" not in refs_of(told.remote)
    told.met()
    assert told.ada.show("1")["outcome"] == "landed"
    one.manager("fsck")


@pytest.mark.parametrize(
    "kind",
    [kind for kind in SHALLOW if kind == "depth 1"]
    + [pytest.param(kind, marks=pytest.mark.slow) for kind in SHALLOW if kind != "depth 1"],
)
def test_a_cut_off_clone_can_be_deepened_afterwards(told: Shared, kind: str) -> None:
    one = cloned(told, kind)
    one.manager("init")
    one.manager("note", "1", "before")
    one.git("fetch", "-q", "--unshallow", "origin")
    one.manager("note", "1", "after")
    one.sync()
    one.manager("fsck")
    assert told.kinds("000001")[-2:] == ["note", "note"]
    assert one.git("rev-list", "--count", "master") == "3"


def test_a_fetch_that_cuts_off_again_does_not_cut_the_ledger(told: Shared) -> None:
    one = cloned(told, "depth 1 of all branches")
    one.manager("init")
    told.ada.manager("note", "1", "news")
    one.git("fetch", "-q", "--depth=1", "origin")
    one.sync()
    one.manager("note", "1", "more")
    one.manager("fsck")
    told.met()
    assert told.kinds("000001")[-2:] == ["note", "note"]


# ------------------------------------------------------------------------------------- mirrors


@pytest.mark.parametrize(
    "words", [("fetch", "--prune"), ("remote", "update", "--prune"), ("remote", "prune", "origin")]
)
def test_a_mirror_keeps_what_only_it_has(told: Shared, words: tuple[str, ...]) -> None:
    one = cloned(told, "mirror")
    one.manager("init")
    one.offline("note", "1", "only here")
    mine = one.refs()
    told.ada.manager("note", "1", "news")
    one.git(*words)
    assert one.refs() == mine
    one.sync()
    told.met()
    assert told.kinds("000001")[-2:] == ["note", "note"]
    one.manager("fsck")


def test_a_remote_that_becomes_a_mirror_later_is_noticed_by_the_next_sync(told: Shared) -> None:
    told.bob.git("config", "--add", "remote.origin.fetch", "+refs/*:refs/*")
    told.bob.sync()
    told.bob.offline("note", "1", "only here")
    mine = told.bob.tip()
    told.bob.git("fetch", "-q", "--prune", "--update-head-ok")
    assert told.bob.tip() == mine
    assert told.bob.git("config", "--get-all", "remote.origin.fetch").splitlines()[2:] == [
        "^refs/heads/gittasks", "^refs/heads/task/*", "^refs/gittasks/*",
    ]  # fmt: skip


def test_what_a_mirror_has_overwritten_is_found_again(told: Shared) -> None:
    one = cloned(told, "mirror")
    one.manager("init")
    one.offline("note", "1", "only here")
    mine = one.tip()
    one.git("config", "--unset-all", "remote.origin.fetch", r"\^")
    one.git("fetch", "-q", "--prune")
    assert one.tip() != mine
    one.manager("recover")
    one.sync()
    assert one.holds(mine)
    told.met()


def test_a_mirror_keeps_the_work_of_its_agents(told: Shared) -> None:
    one = cloned(told, "mirror")
    one.manager("init")
    tree = one.start("1")
    commit = one.commit(tree, {"new.txt": "new\n"})
    one.git("fetch", "-q", "--prune", check=False)
    one.agent("wim", "submit", "-m", "Done.", at=tree)
    assert git(told.remote, "rev-parse", "refs/heads/task/000001") == commit


# ------------------------------------------------------------------------------ other formats


@pytest.mark.parametrize("object_format", ["sha256"])
def test_two_clones_of_another_object_format_meet(home: Path, object_format: str) -> None:
    remote = bare_remote(home / "remote.git", object_format=object_format)
    ada = Clone(clone(remote, home / "ada", "Ada"))
    ada.manager("init", "--remote", "origin")
    task = ada.new("One")
    bob = Clone(clone(remote, home / "bob", "Bob"))
    bob.manager("init")
    bob.work(task, {"new.txt": "new\n"})
    bob.approve(task)
    ada.offline("note", task, "Beside it")
    ada.manager("submit", task)
    bob.sync()
    assert len(bob.tip()) == 64
    assert ada.tip() == bob.tip() == git(remote, "rev-parse", LEDGER)
    assert bob.show(task)["outcome"] == "landed"
    bob.manager("fsck")


# -------------------------------------------------------------------------- copies and the like


def test_a_copied_clone_shares_like_any_other(told: Shared) -> None:
    tree = told.bob.start("1")
    shutil.copytree(told.bob.folder, told.remote.parent / "copy", symlinks=True)
    copy = Clone(told.remote.parent / "copy")
    copy.offline("note", "1", "from the copy")
    told.bob.offline("note", "1", "from the original")
    copy.sync()
    told.bob.sync()
    told.met()
    assert told.kinds("000001")[-2:] == ["note", "note"]
    assert git(tree, "status", "--porcelain") == ""
    assert told.bob.git("worktree", "list", "--porcelain").count(f"worktree {tree}\n") == 1


def test_a_borrowing_clone_shares_like_any_other(told: Shared) -> None:
    one = Clone(
        clone(told.remote, told.remote.parent / "borrowing", "Cid", "--shared", "--no-local")
    )
    one.manager("init")
    one.offline("note", "1", "borrowed")
    git(told.remote, "gc", "-q", "--prune=now")
    told.ada.manager("note", "1", "news")
    one.sync()
    one.manager("fsck")
    assert told.kinds("000001")[-2:] == ["note", "note"]


def test_a_clone_without_a_checkout_takes_the_ledger_over(told: Shared) -> None:
    one = Clone(clone(told.remote, told.remote.parent / "empty", "Cid", "--no-checkout"))
    one.manager("init")
    assert len(rows(one)) == 3
    assert sorted(path.name for path in one.folder.iterdir()) == [".git"]


def test_an_empty_remote_gets_project_and_ledger(home: Path) -> None:
    remote = bare_remote(home / "remote.git")
    git(remote, "update-ref", "-d", "refs/heads/master")
    ada = Clone(clone(remote, home / "ada", "Ada"))
    ada.manager("init", "--remote", "origin")
    ada.manager("new", "One")
    bob = Clone(clone(remote, home / "bob", "Bob"))
    bob.manager("init")
    assert [title for _, title in rows(bob)] == ["One"]


def test_a_worktree_of_the_users_own_shares_the_ledger_of_its_repository(told: Shared) -> None:
    place = told.remote.parent / "second"
    told.bob.sync()
    told.bob.git("worktree", "add", "-q", "-b", "second", str(place))
    tasks_inprocess(place, "note", "1", "from the second tree")
    assert told.tip == told.bob.tip()
