"""Remotes that are far away, slow, full, renamed, gone, or do not take what they get."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from gittasks.plumbing.errors import RemoteUnreachable
from gittasks.workflow import claim
from gittasks.workflow.project import Options, Project
from tests.cases.ground import error_of
from tests.sharing.ground import LEDGER, Clone, Shared, begin, refs_of
from tests.support.cli import CHECKOUT, COMMAND, Result, tasks, tasks_inprocess
from tests.support.git import git, make_repository
from tests.support.mounts import read_only
from tests.support.remotes import away, bare_remote, clone, commit, install_hook

SYNC = ("sync", "--json")


def publishing(shared: Shared, task: str) -> dict[str, tuple[str, ...]]:
    """Returns the commands that count only when the remote has them."""
    return {"new": ("new", "Two", "--json"), "claim": ("claim", task, "--json")}


# -------------------------------------------------------------------------------- out of reach


@pytest.mark.parametrize(
    "verb",
    [
        "new",
        "claim",
        "sync",
        pytest.param("push", marks=pytest.mark.slow),
        pytest.param("pull", marks=pytest.mark.slow),
    ],
)
def test_without_the_remote_nothing_is_written(shared: Shared, verb: str) -> None:
    task = shared.ready("One")
    words = {**publishing(shared, task), **{v: (v, "--json") for v in ("sync", "push", "pull")}}
    before = shared.everything()
    with away(shared.remote):
        refused = shared.bob.agent("wim", *words[verb], check=75)
    assert shared.everything() == before
    error = error_of(refused)
    assert (error["code"], error["name"], error["retryable"]) == (75, "TEMP", True)
    assert error["message"].startswith("The remote origin cannot be reached: ")
    assert ("--offline" in error["hint"]) == (verb in ("new", "claim"))


@pytest.mark.parametrize(
    "verb",
    [
        "sync",
        pytest.param("push", marks=pytest.mark.slow),
        pytest.param("pull", marks=pytest.mark.slow),
    ],
)
def test_a_sync_cannot_be_offline(shared: Shared, verb: str) -> None:
    refused = shared.unchanged_by(lambda: shared.bob.manager("--offline", verb, "--json", check=2))
    assert error_of(refused)["name"] == "USAGE"


def test_offline_all_goes_on_and_is_published_later(shared: Shared) -> None:
    with away(shared.remote):
        task = shared.bob.offline("new", "One", "--enter", "work").out.strip()
        tree = shared.bob.begun(task, "wim", "x\n", offline=True)
        shared.bob.alone("wim", "submit", "-m", "Done.", at=tree)
        shared.bob.alone("rita", "claim", task)
        shared.bob.alone("rita", "submit", task)
        assert shared.bob.state(task) == "MANAGER_REVIEW"
    done = shared.bob.sync()
    assert done.out == "origin: 7 events published, one branch published\n"
    shared.ada.manager("submit", task)
    assert shared.ada.show(task)["outcome"] == "landed"


def test_a_remote_that_answers_too_late_is_given_up(shared: Shared) -> None:
    task = shared.ready("One")
    install_hook(shared.remote, "pre-receive", "sleep 60")
    shared.bob.git("config", "gittasks.gitTimeout", "1s")
    began = time.monotonic()
    refused = tasks(shared.bob.folder, "claim", task, "--json", check=75)
    assert time.monotonic() - began < 20
    assert error_of(refused)["retryable"] is True
    (shared.remote / "hooks/pre-receive").unlink()
    shared.bob.git("config", "--unset", "gittasks.gitTimeout")
    shared.met()
    assert shared.kinds(task) == ["create", "submit"]


@pytest.mark.slow
def test_an_event_is_published_within_seconds_or_later(shared: Shared) -> None:
    task = shared.ready("One")
    install_hook(shared.remote, "pre-receive", "sleep 60")
    began = time.monotonic()
    said = tasks(shared.bob.folder, "note", task, "Hello")
    assert time.monotonic() - began < 15
    assert "Not published yet" in said.err
    (shared.remote / "hooks/pre-receive").unlink()
    shared.bob.sync()
    assert shared.kinds(task) == ["create", "submit", "note"]


def news_after_a_claim(shared: Shared, task: str) -> bool:
    """Lets Bob's agent claim a task; tells whether something is left to publish then."""
    options = Options(str(shared.bob.folder), actor="wim")
    project = Project.open(options, os.environ, time.time)
    try:
        claim.claim(project, task, with_tree=False)
        return project.has_news
    finally:
        project.close()


def test_after_a_claim_that_took_all_along_nothing_is_left_to_publish(shared: Shared) -> None:
    task = shared.ready("One")
    shared.bob.offline("note", task, "mine")
    assert not news_after_a_claim(shared, task)
    assert shared.kinds(task) == ["create", "submit", "note", "claim"]


def test_work_that_was_submitted_offline_is_left_to_publish_after_a_claim(shared: Shared) -> None:
    done = shared.ready("One")
    task = shared.ready("Two")
    tree = shared.bob.begun(done, "wim", "x\n")
    shared.bob.alone("wim", "submit", "-m", "Done.", at=tree)
    assert news_after_a_claim(shared, task)


@pytest.mark.parametrize(("seconds", "told"), [(4.99, "5"), (59.7, "60"), (0.4, "0.4")])
def test_a_wait_is_told_in_round_seconds(seconds: float, told: str) -> None:
    error = RemoteUnreachable("origin", "", ("fetch",), 128, "", seconds=seconds)
    assert str(error) == f"The remote origin did not answer within {told} seconds."


# ------------------------------------------------------------------------------------ refusing

REFUSALS = {
    "pre-receive": ("pre-receive", "echo 'not today' >&2; exit 1", "not today"),
    "update": ("update", "echo 'not this one' >&2; exit 1", "not this one"),
    "full disk": (
        "pre-receive",
        "echo 'fatal: write error: No space left on device' >&2; exit 1",
        "No space left on device",
    ),
    "a broken hook": ("pre-receive", "exec /nowhere/python", ""),
}


@pytest.mark.parametrize(
    ("how", "verb"), [*((how, "claim") for how in REFUSALS), ("update", "new"), ("update", "sync")]
)
def test_a_remote_that_declines_gets_nothing_and_nothing_moves(
    shared: Shared, how: str, verb: str
) -> None:
    task = shared.ready("One")
    shared.bob.offline("note", task, "mine")
    hook, script, words = REFUSALS[how]
    install_hook(shared.remote, hook, script)
    line = {**publishing(shared, task), "sync": SYNC}[verb]
    refused = shared.unchanged_by(lambda: shared.bob.agent("wim", *line, check=8))
    error = error_of(refused)
    assert (error["code"], error["name"], error["retryable"]) == (8, "SYNC", False)
    assert error["message"].startswith("The remote origin refused ")
    assert words in error["message"]
    assert ("nothing was written" in error["hint"]) == (verb != "sync")
    assert ("--offline" in error["hint"]) == (verb != "sync")
    (shared.remote / "hooks" / hook).unlink()
    shared.bob.sync()
    shared.met()
    assert shared.kinds(task) == ["create", "submit", "note"]


def test_a_remote_that_declines_only_events_still_gives(shared: Shared) -> None:
    install_hook(shared.remote, "pre-receive", "exit 1")
    git(shared.remote, "config", "core.hooksPath", "/nowhere")
    task = shared.ada.new("One")
    git(shared.remote, "config", "--unset", "core.hooksPath")
    shared.bob.offline("note", "1", "not there", check=4)
    shared.bob.offline("new", "Mine")
    refused = shared.bob.sync("--json", check=8)
    assert error_of(refused)["name"] == "SYNC"
    assert shared.bob.show(task)["title"] == "One"
    assert shared.bob.show("2")["title"] == "Mine"


@pytest.mark.parametrize("verb", ["claim", pytest.param("sync", marks=pytest.mark.slow)])
def test_a_server_that_can_write_no_file_gives_and_does_not_take(shared: Shared, verb: str) -> None:
    task = shared.ada.new("One")
    full = "trap '' XFSZ; ulimit -f 0; git-receive-pack"
    shared.bob.git("config", "remote.origin.receivepack", full)
    shared.bob.manager("pull")
    shared.bob.offline("note", task, "mine")
    line = {**publishing(shared, task), "sync": SYNC}[verb]
    refused = shared.unchanged_by(lambda: shared.bob.agent("wim", *line, check=8))
    assert error_of(refused)["message"].endswith(": File too large.")
    shared.bob.git("config", "--unset", "remote.origin.receivepack")
    shared.bob.sync()
    assert shared.kinds(task) == ["create", "submit", "note"]
    assert list(shared.remote.rglob("*.lock")) == []


def test_rules_that_forbid_rewriting_are_no_obstacle(shared: Shared) -> None:
    for setting in ("receive.denyDeletes", "receive.denyNonFastForwards"):
        git(shared.remote, "config", setting, "true")
    task = shared.ready("One")
    shared.bob.work(task, {"new.txt": "new\n"})
    shared.bob.reject(task, "Not yet.")
    shared.bob.work(task, {"new.txt": "newer\n"})
    shared.bob.approve(task)
    shared.ada.manager("submit", task)
    assert shared.ada.show(task)["outcome"] == "landed"
    assert shared.bob.sync().status == 0


def test_a_remote_with_a_checkout_refuses_the_base_it_has_checked_out(shared: Shared) -> None:
    place = shared.remote.parent / "office"
    git(shared.remote.parent, "clone", "-q", str(shared.remote), str(place))
    git(place, "fetch", "-q", "origin", f"{LEDGER}:{LEDGER}")
    shared.ada.git("remote", "set-url", "origin", str(place))
    task = shared.ada.reviewed("One", {"new.txt": "new\n"})
    before = refs_of(place)
    refused = shared.ada.manager("submit", task, "--json", check=8)
    assert "checked out" in error_of(refused)["message"]
    assert refs_of(place) == before
    assert shared.ada.state(task) == "MANAGER_REVIEW"
    git(place, "switch", "-q", "--detach")
    shared.ada.manager("submit", task)
    assert git(place, "show", "master:new.txt") == "new"


def test_a_remote_that_refuses_only_leases_does_not_stop_a_sync(shared: Shared) -> None:
    task = shared.ready("One")
    install_hook(shared.remote, "update", "case $1 in refs/heads/*) ;; *) exit 1;; esac")
    tree = shared.bob.start(task)
    shared.bob.commit(tree, {"new.txt": "new\n"})
    shared.bob.git("update-ref", f"refs/gittasks/leases/{task}", "HEAD")
    shared.bob.sync()
    assert shared.bob.agent("wim", "submit", "-m", "Done.", at=tree).err == ""
    assert set(refs_of(shared.remote)) == {
        "refs/heads/master", LEDGER, f"refs/heads/task/{task}",
    }  # fmt: skip


# ---------------------------------------------------------------------------- renamed and gone


def test_a_renamed_remote_is_named_until_it_is_set_again(shared: Shared) -> None:
    task = shared.ready("One")
    shared.bob.git("remote", "rename", "origin", "server")
    refused = shared.unchanged_by(lambda: shared.bob.sync("--json", check=8))
    error = error_of(refused)
    assert error["message"] == "There is no remote origin in this clone."
    assert "git config --replace-all gittasks.remote NAME" in error["hint"]
    shared.bob.agent("wim", "claim", task, check=8)
    shared.bob.git("config", "gittasks.remote", "server")
    shared.bob.agent("wim", "claim", task)
    assert shared.kinds(task)[-1] == "claim"


def test_a_renamed_remote_loses_no_event_that_was_not_published(shared: Shared) -> None:
    task = shared.ready("One")
    shared.bob.offline("note", task, "mine")
    shared.ada.manager("note", task, "hers")
    shared.bob.git("remote", "rename", "origin", "server")
    shared.bob.git("config", "gittasks.remote", "server")
    assert shared.bob.sync().out == "server: one event received, one event published\n"
    shared.met()
    assert shared.kinds(task)[-2:] == ["note", "note"]


def test_a_removed_remote_leaves_what_is_here(shared: Shared) -> None:
    task = shared.ready("One")
    shared.bob.git("remote", "remove", "origin")
    assert shared.bob.state(task) == "WORK"
    refused = shared.unchanged_by(lambda: shared.bob.sync("--json", check=8))
    assert error_of(refused)["name"] == "SYNC"
    said = shared.bob.manager("note", task, "Hello")
    assert "There is no remote origin" in said.err
    shared.bob.git("config", "--unset", "gittasks.remote")
    assert shared.bob.manager("note", task, "Hello again").err == ""
    shared.bob.agent("wim", "claim", task)


def test_another_address_of_the_same_remote_goes_on(shared: Shared) -> None:
    task = shared.ready("One")
    shared.bob.offline("note", task, "mine")
    moved = shared.remote.with_name("moved.git")
    shared.remote.rename(moved)
    shared.bob.git("remote", "set-url", "origin", str(moved))
    assert shared.bob.sync().out == "origin: one event published\n"


def test_another_project_behind_the_name_is_noticed(shared: Shared, tmp_path: Path) -> None:
    task = shared.ready("One")
    (tmp_path / "other").mkdir()
    other = begin(tmp_path / "other")
    other.ada.manager("new", "Of another project")
    other.ada.manager("new", "Of another project too")
    shared.bob.git("remote", "set-url", "origin", str(other.remote))
    before = refs_of(other.remote)
    refused = shared.unchanged_by(lambda: shared.bob.sync("--json", check=8))
    assert "was rewritten" in error_of(refused)["message"]
    assert refs_of(other.remote) == before
    assert shared.bob.state(task) == "WORK"


# ------------------------------------------------------------------------- which remote it is


def test_a_fork_shares_through_the_upstream_that_is_set(home: Path) -> None:
    upstream = bare_remote(home / "upstream.git")
    git(home, "clone", "-q", "--bare", str(upstream), str(home / "fork.git"))
    ada = Clone(clone(upstream, home / "ada", "Ada"))
    ada.manager("init", "--remote", "origin")
    task = ada.new("One")
    bob = Clone(clone(home / "fork.git", home / "bob", "Bob"))
    bob.git("remote", "add", "upstream", str(upstream))
    bob.git("fetch", "-q", "upstream")
    bob.manager("init", "--remote", "upstream")
    bob.work(task, {"new.txt": "new\n"})
    bob.approve(task)
    ada.manager("submit", task)
    assert ada.show(task)["outcome"] == "landed"
    assert refs_of(home / "fork.git") == {
        "refs/heads/master": git(home / "fork.git", "rev-parse", "master")
    }
    assert bob.git("config", "gittasks.remote") == "upstream"
    bob.sync()
    assert bob.show(task)["outcome"] == "landed"


@pytest.mark.slow
def test_a_fork_that_copied_an_old_ledger_still_meets_the_upstream(shared: Shared) -> None:
    fork = shared.remote.parent / "fork.git"
    git(shared.remote.parent, "clone", "-q", "--bare", str(shared.remote), str(fork))
    task = shared.ready("One")
    one = Clone(clone(fork, shared.remote.parent / "cid", "Cid"))
    one.git("remote", "add", "upstream", str(shared.remote))
    one.manager("init", "--remote", "upstream")
    assert one.show(task)["title"] == "One"
    one.manager("note", task, "from the fork")
    assert shared.kinds(task)[-1] == "note"


@pytest.mark.parametrize("names", [("origin", "backup"), ("server",), ("server", "backup"), ()])
def test_the_first_sync_chooses_origin_or_the_only_remote(
    home: Path, names: tuple[str, ...]
) -> None:
    one = Clone(make_repository(home / "ada"))
    for name in names:
        bare_remote(home / f"{name}.git")
        git(home / f"{name}.git", "fetch", "-q", str(one.folder), "+master:master")
        one.git("remote", "add", name, str(home / f"{name}.git"))
    one.manager("--offline", "init")
    one.manager("new", "One")
    before = one.everything()
    if names in {("server", "backup"), ()}:
        refused = one.sync("--json", check=8)
        assert error_of(refused)["hint"] == (
            "Choose one: git config --replace-all gittasks.remote NAME."
            if names
            else "Add one: git remote add origin URL."
        )
        assert one.everything() == before
        return
    said = one.sync()
    assert f"This clone shares its ledger through {names[0]} from now on." in said.err
    assert LEDGER in refs_of(home / f"{names[0]}.git")
    assert all(LEDGER not in refs_of(home / f"{name}.git") for name in names[1:])


def test_an_address_in_the_place_of_a_remote_is_to_get_a_name(home: Path) -> None:
    one = Clone(make_repository(home / "ada"))
    address = str(bare_remote(home / "remote.git"))
    before = one.everything()
    refused = error_of(one.manager("init", "--remote", address, "--json", check=2))
    assert refused["message"].endswith(" cannot name a remote.")
    assert one.everything() == before
    one.git(*refused["hint"].partition("git ")[2].removesuffix(".").replace("NAME", "up").split())
    one.manager("init", "--remote", "up")


def test_a_blank_name_of_a_remote_is_told_as_such(home: Path) -> None:
    one = Clone(make_repository(home / "ada"))
    refused = error_of(one.manager("init", "--remote", "", "--json", check=2))
    assert (refused["message"], refused["hint"]) == (
        "The name of the remote is blank.", "Add one: git remote add origin URL.",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["a..b", "x y", "a.lock", "../remote.git"])
@pytest.mark.parametrize("words", [("sync",), ("sync", "--dry-run"), ("new", "One")])
def test_a_remote_whose_name_no_ref_can_have_is_named(
    shared: Shared, name: str, words: tuple[str, ...]
) -> None:
    shared.bob.git("config", "gittasks.remote", name)
    shared.bob.git("config", f"remote.{name}.url", str(shared.remote))
    refused = error_of(shared.unchanged_by(lambda: shared.bob.manager(*words, "--json", check=8)))
    assert refused["message"] == (
        f"No ledger can be shared through the remote {name}: git allows no ref with that in its"
        " name."
    )
    for line in ("git remote add NAME URL", "git config --replace-all gittasks.remote NAME"):
        assert line in refused["hint"]
        words_of = line.replace("NAME", "there").replace("URL", str(shared.remote)).split()
        shared.bob.git(*words_of[1:])
    shared.bob.manager(*words)


def test_a_setting_with_several_values_can_be_set_as_the_hint_says(shared: Shared) -> None:
    for name in ("one", "two"):
        shared.bob.git("config", "--add", "gittasks.remote", name)
    hint = error_of(shared.bob.sync("--json", check=8))["hint"]
    line = hint.split("`")[1].replace("NAME", "origin")
    shared.bob.git(*line.split()[1:])
    shared.bob.sync()
    assert shared.bob.git("config", "--get-all", "gittasks.remote") == "origin"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_dry_run_where_nothing_can_be_written_says_so(shared: Shared, tmp_path: Path) -> None:
    there = shared.bob.folder
    line = f"{' '.join(COMMAND)} sync --dry-run --json; echo $?\n"
    done = read_only(there, line, tmp_path)
    told, status = done.stdout.splitlines()
    assert status == "1"
    assert json.loads(told)["error"]["message"] == (
        f"The ledger cannot be written: Read-only file system ({there / '.git'})."
    )


def test_an_unknown_remote_is_refused_before_anything_is_written(home: Path) -> None:
    one = Clone(make_repository(home / "ada"))
    before = one.everything()
    refused = one.manager("init", "--remote", "nowhere", "--json", check=2)
    assert error_of(refused)["name"] == "USAGE"
    assert one.everything() == before


# -------------------------------------------------------------------- what is there of a ledger


def test_a_remote_without_any_ledger_gets_this_one(home: Path) -> None:
    remote = bare_remote(home / "remote.git")
    one = Clone(clone(remote, home / "ada", "Ada"))
    said = one.manager("init", "--remote", "origin", "--json").json()["data"]
    assert (said["created"], said["adopted"], said["remote"]) == (True, None, "origin")
    assert refs_of(remote)[LEDGER] == one.tip()


def test_a_plain_init_adopts_what_is_there_and_says_so(shared: Shared) -> None:
    shared.ready("One")
    one = Clone(clone(shared.remote, shared.remote.parent / "cid", "Cid"))
    said = one.manager("init", "--json").json()["data"]
    assert (said["created"], said["adopted"], said["remote"], said["base"], said["commit"]) == (
        False, "origin/gittasks", "origin", "master", shared.tip,
    )  # fmt: skip
    again = one.everything()
    assert one.manager("init", "--json").json()["data"]["adopted"] is None
    assert one.everything() == again


@pytest.mark.parametrize("verb", ["init", "sync"])
def test_a_branch_of_that_name_that_is_no_ledger_is_left_alone(home: Path, verb: str) -> None:
    remote = bare_remote(home / "remote.git")
    commit(remote, LEDGER, "nothing of ours\n")
    there = refs_of(remote)
    one = Clone(clone(remote, home / "ada", "Ada"))
    if verb == "sync":
        one.manager("--offline", "init", "--branch", "tasks")
        one.git("config", "gittasks.branch", "gittasks")
        one.git("branch", "-q", "-m", "tasks", "gittasks")
        one.manager("new", "One")
    before = one.everything()
    words = {"init": ("init", "--remote", "origin"), "sync": ("sync",)}[verb]
    refused = one.manager(*words, "--json", check=8)
    assert error_of(refused)["name"] == "SYNC"
    assert one.everything() == before
    assert refs_of(remote) == there
    if verb == "init":
        one.manager("init", "--remote", "origin", "--branch", "tasks")
        assert set(refs_of(remote)) == {*there, "refs/heads/tasks"}


def test_the_way_out_of_a_branch_that_is_no_ledger_works(home: Path) -> None:
    remote = bare_remote(home / "remote.git")
    theirs = commit(remote, LEDGER, "nothing of ours\n")
    one = Clone(clone(remote, home / "ada", "Ada"))
    one.manager("--offline", "init", "--branch", "tasks")
    one.git("config", "gittasks.branch", "gittasks")
    one.git("branch", "-q", "-m", "tasks", "gittasks")
    one.manager("new", "One")
    hint = error_of(one.sync("--json", check=8))["hint"]
    line = hint.partition(": git ")[2].removesuffix(" && git tasks sync.")
    one.git(*line.replace("NAME", "kept").split())
    one.sync()
    assert refs_of(remote)[LEDGER] == one.tip()
    assert refs_of(remote)["refs/heads/kept"] == theirs


def test_an_init_that_nobody_asked_to_share_goes_on_without_the_remote(shared: Shared) -> None:
    one = Clone(clone(shared.remote, shared.remote.parent / "cid", "Cid"))
    with away(shared.remote):
        said = one.manager("init", "--json").json()["data"]
    # What git has fetched already is taken over.
    assert (said["created"], said["adopted"]) == (False, "origin/gittasks")
    assert one.tip() == shared.tip


def test_an_init_of_a_named_remote_that_is_away_writes_nothing(home: Path) -> None:
    remote = bare_remote(home / "remote.git")
    one = Clone(clone(remote, home / "ada", "Ada"))
    before = one.everything()
    with away(remote):
        refused = one.manager("init", "--remote", "origin", "--json", check=75)
    assert error_of(refused)["retryable"] is True
    assert one.everything() == before


@pytest.mark.parametrize("words", [(), ("--branch", "tasks")])
def test_an_init_whose_ledger_is_refused_leaves_none(home: Path, words: tuple[str, ...]) -> None:
    remote = bare_remote(home / "remote.git")
    hook = install_hook(remote, "pre-receive", "echo not today >&2; exit 1")
    one = Clone(clone(remote, home / "ada", "Ada"))
    before = one.everything()
    answer = one.manager("init", "--remote", "origin", *words, "--json", check=8)
    refused = error_of(answer)
    assert answer.json()["ledger"] is None
    assert one.git("for-each-ref", "refs/gittasks") == ""
    assert not list(one.folder.glob(".git/gittasks/cache.db*"))
    ledger = f"refs/heads/{words[-1]}" if words else LEDGER
    assert refused["message"] == (
        f"The remote origin refused {ledger}: not today. No ledger has begun here."
    )
    assert refused["hint"] == (
        "Have the remote's owner allow it, or begin without it: git tasks init;"
        " `git tasks sync` shares the ledger later."
    )
    assert one.everything() == before
    assert error_of(one.manager("list", "--json", check=3))["hint"] == "Run `git tasks init`."
    assert one.manager("recover").err == "There was nothing to recover.\n"
    assert one.everything() == before
    hook.unlink()
    said = one.manager("init", "--remote", "origin", *words, "--json").json()["data"]
    assert (said["created"], said["remote"]) == (True, "origin")


@pytest.mark.parametrize(
    "words", [("sync",), pytest.param(("init", "--remote", "origin"), marks=pytest.mark.slow)]
)
def test_a_first_exchange_that_fails_leaves_the_clone_alone(
    home: Path, words: tuple[str, ...]
) -> None:
    remote = bare_remote(home / "remote.git")
    one = Clone(clone(remote, home / "ada", "Ada"))
    one.manager("--offline", "init")
    before = one.everything()
    with away(remote):
        one.manager(*words, check=75)
    assert one.everything() == before


def test_a_sync_before_any_ledger_names_the_command(home: Path) -> None:
    remote = bare_remote(home / "remote.git")
    one = Clone(clone(remote, home / "ada", "Ada"))
    before = one.everything()
    refused = one.sync("--json", check=3)
    assert error_of(refused)["name"] == "NOREPO"
    assert "git tasks init" in error_of(refused)["hint"]
    assert one.everything() == before


# ------------------------------------------------------------------------ clones that share not


def every_verb(one: Clone) -> None:
    """Plays a task from its beginning to its end."""
    task = one.new("One")
    tree = one.work(task, {"new.txt": "new\n"})
    one.reject(task, "Not yet.")
    one.start(task)
    one.commit(tree, {"new.txt": "newer\n"})
    one.agent("wim", "submit", "-m", "Done.", at=tree)
    one.approve(task)
    one.manager("submit", task)
    for line in (("list",), ("inbox",), ("status",), ("log",), ("fsck",), ("gc",), ("recover",)):
        one.manager(*line)


def test_a_clone_that_never_asked_to_share_asks_nobody(home: Path) -> None:
    remote = bare_remote(home / "remote.git")
    one = Clone(clone(remote, home / "ada", "Ada"))
    one.manager("--offline", "init")
    before = refs_of(remote)
    one.git("config", "remote.origin.uploadpack", f"touch {home}/asked; false")
    one.git("config", "remote.origin.receivepack", f"touch {home}/asked; false")
    with away(remote):
        every_verb(one)
    assert not (home / "asked").exists()
    assert refs_of(remote) == before
    assert one.refs("refs/remotes/") == one.refs("refs/gittasks/remotes/") == {}


def test_a_clone_that_never_asked_to_share_starts_no_git_that_could(home: Path) -> None:
    remote = bare_remote(home / "remote.git")
    one = Clone(clone(remote, home / "ada", "Ada"))
    one.manager("--offline", "init")
    task = one.new("One")
    trace = home / "trace"
    for words in (("note", task, "x"), ("claim", task), ("new", "Two"), ("list",)):
        tasks(one.folder, *words, env={"GIT_TRACE": str(trace)})
    told = trace.read_text() if trace.exists() else ""
    assert [w for w in ("fetch", "push", "ls-remote") if f"git {w}" in told] == []


# ---------------------------------------------------------------------------- odd settings


SETTINGS = {
    "push": (
        ("push.default", "nothing"),
        ("push.followTags", "true"),
        ("push.gpgSign", "true"),
        ("push.pushOption", "ci.skip"),
        ("remote.origin.push", "+refs/heads/*:refs/heads/*"),
        ("remote.pushDefault", "nowhere"),
        ("branch.gittasks.pushRemote", "nowhere"),
    ),
    "fetch": (
        ("fetch.prune", "true"),
        ("fetch.pruneTags", "true"),
        ("remote.origin.prune", "true"),
        ("remote.origin.tagOpt", "--tags"),
        ("remote.origin.fetch", "+refs/heads/master:refs/remotes/origin/master"),
    ),
    "both": (
        ("transfer.fsckObjects", "true"),
        ("protocol.version", "0"),
        ("core.hooksPath", "/nowhere"),
    ),
}


@pytest.mark.parametrize("which", SETTINGS)
def test_no_setting_of_the_user_changes_what_is_exchanged(shared: Shared, which: str) -> None:
    for setting in SETTINGS[which]:
        shared.bob.git("config", *setting)
    shared.bob.git("tag", "of-the-user")
    task = shared.ada.new("One")
    tracked = shared.bob.git("for-each-ref", "refs/remotes", "refs/tags")
    shared.bob.sync()
    tree = shared.bob.begun(task, "wim", "x\n")
    shared.bob.agent("wim", "submit", "-m", "Done.", at=tree)
    assert set(refs_of(shared.remote)) == {
        "refs/heads/master", LEDGER, f"refs/heads/task/{task}",
    }  # fmt: skip
    assert shared.bob.git("for-each-ref", "refs/remotes", "refs/tags") == tracked


@pytest.mark.parametrize("hook", ["pre-push", "reference-transaction"])
def test_hooks_of_the_user_neither_run_nor_stop_a_sync(shared: Shared, hook: str) -> None:
    marker = shared.remote.parent / "ran"
    install_hook(shared.bob.folder, hook, f"touch {marker}; exit 1")
    task = shared.bob.new("One")
    shared.bob.start(task)
    shared.bob.sync()
    assert not marker.exists()


def test_other_refs_of_the_same_names_do_not_mislead(shared: Shared) -> None:
    root = shared.bob.git("rev-list", "--max-parents=0", LEDGER)
    for name in ("refs/tags/gittasks", "refs/tags/heads/gittasks", "refs/heads/origin/gittasks"):
        shared.bob.git("update-ref", name, root)
    git(shared.remote, "update-ref", "refs/tags/gittasks", root)
    git(shared.remote, "update-ref", "refs/heads/heads/gittasks", root)
    task = shared.ada.new("One")
    shared.bob.sync()
    shared.bob.work(task, {"new.txt": "new\n"})
    assert shared.tip == shared.bob.tip()
    assert shared.kinds(task)[-1] == "pass"


def test_nobody_needs_a_name_to_share(shared: Shared) -> None:
    for key in ("user.name", "user.email"):
        shared.bob.git("config", "--unset", key)
    shared.bob.git("config", "user.useConfigOnly", "true")
    shared.ada.new("One")
    shared.bob.offline("new", "Two")
    shared.bob.sync()
    shared.met()
    assert git(shared.remote, "log", "-1", "--format=%ce", LEDGER).endswith(".invalid")


@pytest.mark.parametrize("verb", ["sync", pytest.param("note", marks=pytest.mark.slow)])
def test_a_hook_in_the_tree_of_a_task_may_speak_with_the_remote(shared: Shared, verb: str) -> None:
    task = shared.ready("One")
    tree = shared.bob.start(task)
    line = {"note": f"note {task} committed", "sync": "sync"}[verb]
    command = f"{sys.executable} -P -m gittasks {line} >{tree}.said 2>&1 || touch {tree}.failed"
    install_hook(shared.bob.folder, "post-commit", command)
    os.environ["PYTHONPATH"] = str(CHECKOUT)
    (tree / "new.txt").write_text("new\n")
    git(tree, "add", "-A")
    git(
        tree,
        "commit",
        "-q",
        "-m",
        "Work",
        env={"GIT_INDEX_FILE": git(tree, "rev-parse", "--git-path", "index")},
    )
    assert not Path(f"{tree}.failed").exists(), Path(f"{tree}.said").read_text()
    assert shared.tip == shared.bob.tip()
    assert git(tree, "status", "--porcelain") == ""
    assert git(shared.remote, "rev-parse", f"refs/heads/task/{task}") == git(
        tree, "rev-parse", "HEAD"
    )


def test_a_remote_of_somebody_else_is_named(shared: Shared) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    shared.ready("One")
    before = shared.bob.everything()
    os.chown(shared.remote, 12345, 12345)
    refused = shared.bob.sync("--json", check=8)
    os.chown(shared.remote, 0, 0)
    assert "dubious ownership" in error_of(refused)["message"]
    assert shared.bob.everything() == before
    shared.bob.sync()


def test_an_address_with_a_password_is_not_told(shared: Shared) -> None:
    secret = "hunter2-in-the-url"
    shared.bob.git("remote", "set-url", "origin", f"https://ada:{secret}@localhost:1/x.git")
    os.environ["GIT_ALLOW_PROTOCOL"] = "file:https"
    said: list[Result] = [
        shared.bob.sync("--json", check=None),
        shared.bob.manager("new", "One", check=None),
        shared.bob.manager("status", check=None),
    ]
    assert [result.status for result in said[:2]] == [75, 75]
    assert all(secret not in result.out + result.err for result in said)


def test_a_relative_address_is_meant_from_the_checkout(shared: Shared) -> None:
    shared.bob.git("remote", "set-url", "origin", "../remote.git")
    task = shared.ada.new("One")
    (shared.bob.folder / "deep/er").mkdir(parents=True)
    tasks_inprocess(shared.bob.folder / "deep/er", "sync")
    tree = shared.bob.begun(task, "wim", "x\n")
    shared.bob.agent("wim", "submit", "-m", "Done.", at=tree)
    assert shared.kinds(task)[-1] == "pass"
    shutil.rmtree(shared.bob.folder / "deep")
