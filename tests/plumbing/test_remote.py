"""What goes over to a remote and what comes back, and what is said when it does not."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from gittasks.plumbing import remote
from gittasks.plumbing.errors import (
    GitError,
    NoSuchRemote,
    RemoteAsks,
    RemoteError,
    RemoteRaced,
    RemoteRefused,
    RemoteUnreachable,
)
from gittasks.plumbing.remote import Update
from gittasks.plumbing.repository import Repository
from tests.support.git import git, make_repository
from tests.support.remotes import away, bare_remote, clone, commit, install_hook, two_clones

LEDGER = "refs/heads/gittasks/ledger"
OURS = "refs/gittasks/remotes/origin/ledger"
TASK = "refs/heads/task/000001"
MASTER = "refs/heads/master"


class Team:
    """A bare remote and two clones."""

    def __init__(self, folder: Path) -> None:
        self.remote, self.ada, self.bob = two_clones(folder)

    def open(self, settings: str = "") -> Repository:
        """Returns the repository of Ada, with some settings more."""
        for line in settings.splitlines():
            key, _, value = line.partition(" = ")
            git(self.ada, "config", "--add", key.strip(), value)
        return Repository.open(str(self.ada))

    def theirs(self, ref: str = LEDGER, text: str = "theirs") -> str:
        """Lets Bob push a commit."""
        made = commit(self.bob, ref, text)
        git(self.bob, "push", "-q", "origin", f"{ref}:{ref}")
        return made


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def refs(path: Path, *patterns: str) -> dict[str, str]:
    rows = git(path, "for-each-ref", "--format=%(refname) %(objectname)", *patterns).splitlines()
    return dict(row.split(" ") for row in rows)


# ---------------------------------------------------------------------------- which remotes


def test_remotes_come_in_the_order_of_the_configuration(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    for name in ("zoo", "with.dot", "Upper/part"):
        git(folder, "remote", "add", name, f"/{name}")
    git(folder, "config", "remote.nowhere.fetch", "+refs/*:refs/*")
    git(folder, "config", "remote.pushDefault", "zoo")
    git(folder, "remote", "set-url", "--add", "zoo", "/second")
    repo = Repository.open(str(folder))
    assert (remote.names(repo), repo.calls) == (("zoo", "with.dot", "Upper/part"), 2)
    assert [remote.url(repo, name) for name in ("zoo", "nowhere")] == ["/zoo", None]


def test_an_empty_address_takes_back_those_before_it(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    for address in ("/old", "", "/new"):
        git(folder, "config", "--add", "remote.origin.url", address)
    assert remote.url(Repository.open(str(folder)), "origin") == "/new"


def test_a_remote_that_is_not_configured_is_named(team: Team) -> None:
    repo = team.open()
    with pytest.raises(NoSuchRemote, match=r"^There is no remote upstream\.$"):
        remote.push(repo, "upstream", [Update(LEDGER, "0" * 40, None)])
    with pytest.raises(NoSuchRemote):
        remote.listed(repo, str(team.remote), [])
    with pytest.raises(NoSuchRemote):
        remote.fetch(repo, "with\nline", {LEDGER: OURS})


# --------------------------------------------------------------------------------- looking


def test_exact_names_and_patterns_are_listed_and_nothing_like_them(team: Team) -> None:
    made = team.theirs()
    for name in ("refs/heads/task/1", "refs/heads/task/2", "refs/tags/refs/heads/gittasks/ledger"):
        git(team.remote, "update-ref", name, made)
    git(team.remote, "update-ref", "refs/gittasks/leases/1", made)
    repo = team.open()
    before = repo.calls
    found = remote.listed(repo, "origin", [LEDGER, "refs/heads/task/*", "refs/heads/none"])
    assert (found, repo.calls - before) == (
        {LEDGER: made, "refs/heads/task/1": made, "refs/heads/task/2": made},
        2,
    )
    assert remote.listed(repo, "origin", []) == refs(team.remote)
    assert remote.listed(repo, "origin", ["refs/gittasks/*", LEDGER]) == {
        LEDGER: made,
        "refs/gittasks/leases/1": made,
    }


def test_the_head_of_a_remote_is_a_full_name_or_nothing(team: Team) -> None:
    repo = team.open()
    assert remote.head(repo, "origin") == MASTER
    git(team.remote, "update-ref", "--no-deref", "HEAD", git(team.remote, "rev-parse", MASTER))
    assert remote.head(repo, "origin") is None


def test_an_empty_remote_has_neither_head_nor_refs(team: Team, tmp_path: Path) -> None:
    git(team.ada, "remote", "add", "empty", str(tmp_path / "empty.git"))
    make_repository(tmp_path / "empty.git", bare=True, commit=False)
    repo = team.open()
    assert (remote.head(repo, "empty"), remote.listed(repo, "empty", [])) == (None, {})
    assert remote.fetch(repo, "empty", {LEDGER: OURS}) == {LEDGER}


# -------------------------------------------------------------------------------- fetching


def test_a_fetch_writes_our_ref_and_nothing_else(team: Team) -> None:
    made = team.theirs()
    git(team.remote, "tag", "v1", made)
    before = refs(team.ada)
    repo = team.open()
    calls = repo.calls
    missing = remote.fetch(repo, "origin", {LEDGER: OURS})
    assert (missing, repo.calls - calls) == (frozenset(), 2)
    assert refs(team.ada) == {**before, OURS: made}
    assert not (team.ada / ".git" / "FETCH_HEAD").exists()


def test_a_rewritten_ref_is_fetched_all_the_same(team: Team) -> None:
    team.theirs()
    repo = team.open()
    remote.fetch(repo, "origin", {LEDGER: OURS})
    other = commit(team.remote, LEDGER, "other", parent=git(team.remote, "rev-parse", MASTER))
    remote.fetch(repo, "origin", {LEDGER: OURS})
    assert refs(team.ada, OURS) == {OURS: other}


def test_what_the_remote_does_not_have_is_returned_and_the_rest_fetched(team: Team) -> None:
    made = team.theirs()
    wanted = {f"refs/heads/task/{n}": f"refs/gittasks/incoming/task/{n}" for n in range(3)}
    repo = team.open()
    before = repo.calls
    missing = remote.fetch(repo, "origin", {**wanted, LEDGER: OURS})
    assert (missing, refs(team.ada, "refs/gittasks")) == (frozenset(wanted), {OURS: made})
    assert repo.calls - before == 4
    assert remote.fetch(repo, "origin", {TASK: OURS}) == {TASK}


def test_a_glob_takes_what_is_there_and_prunes_only_what_it_means(team: Team) -> None:
    made = team.theirs(TASK)
    git(team.remote, "update-ref", "refs/gittasks/leases/7", made)
    git(team.ada, "update-ref", "refs/gittasks/incoming/task/000009", "HEAD")
    git(team.ada, "update-ref", "refs/gittasks/kept", "HEAD")
    kept = git(team.ada, "rev-parse", "HEAD")
    repo = team.open()
    globs = {
        "refs/heads/task/*": "refs/gittasks/incoming/task/*",
        "refs/gittasks/leases/*": "refs/gittasks/incoming/leases/*",
        "refs/heads/nothing/*": "refs/gittasks/nothing/*",
    }
    assert remote.fetch(repo, "origin", {}, globs=globs) == frozenset()
    everything = {
        "refs/gittasks/incoming/leases/7": made,
        "refs/gittasks/incoming/task/000001": made,
        "refs/gittasks/incoming/task/000009": kept,
        "refs/gittasks/kept": kept,
    }
    assert refs(team.ada, "refs/gittasks") == everything
    remote.fetch(repo, "origin", {}, globs=globs, prune=True)
    del everything["refs/gittasks/incoming/task/000009"]
    assert refs(team.ada, "refs/gittasks") == everything


def test_nothing_asked_for_asks_nobody(team: Team) -> None:
    repo = team.open()
    remote.names(repo)
    before = repo.calls
    assert (remote.fetch(repo, "origin", {}), repo.calls) == (frozenset(), before)


def test_a_fetch_into_a_ref_of_the_user_is_refused(team: Team) -> None:
    with pytest.raises(ValueError, match="refs/remotes/origin/master is not ours"):
        remote.fetch(team.open(), "origin", {MASTER: "refs/remotes/origin/master"})


@pytest.mark.parametrize(
    "settings",
    [
        "remote.gittasks-origin.url = /nowhere",
        "remote.origin.mirror = true\nremote.origin.fetch = +refs/*:refs/*",
        "remote.origin.prune = true\nremote.origin.pruneTags = true\nremote.origin.tagOpt = --tags",
        "fetch.prune = true\nfetch.pruneTags = true\nfetch.writeCommitGraph = true",
        "remote.origin.push = refs/heads/*:refs/heads/copies/*\npush.default = matching",
        "push.followTags = true\npush.gpgSign = true\npush.pushOption = x\npush.negotiate = true",
        "push.recurseSubmodules = on-demand\nfetch.recurseSubmodules = true",
        "remote.origin.followRemoteHEAD = always\nremote.origin.skipDefaultUpdate = true",
        "color.ui = always\ncolor.push = always\npush.useForceIfIncludes = true",
    ],
)
def test_settings_of_the_user_widen_neither_fetch_nor_push(team: Team, settings: str) -> None:
    made = team.theirs()
    mine = commit(team.ada, "refs/heads/mine", "mine")
    git(team.ada, "tag", "-a", "-m", "x", "mine", mine)
    before = refs(team.ada)
    there = refs(team.remote)
    repo = team.open(settings)
    remote.fetch(repo, "origin", {LEDGER: OURS}, globs={"refs/x/*": "refs/gittasks/x/*"})
    remote.push(repo, "origin", [Update(TASK, mine, None), Update("refs/gittasks/a", made, None)])
    assert refs(team.ada) == {**before, OURS: made}
    assert refs(team.remote) == {**there, TASK: mine, "refs/gittasks/a": made}


def test_two_fetches_at_once_do_not_disturb_each_other(team: Team) -> None:
    failures: list[BaseException] = []

    def fetch() -> None:
        try:
            remote.fetch(
                Repository.open(str(team.ada)), "origin", {LEDGER: OURS, MASTER: OURS + 2 * "x"}
            )
        except GitError as error:
            failures.append(error)

    for at in range(4):
        tip = team.theirs(text=f"round {at}")
        threads = [threading.Thread(target=fetch) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (failures, refs(team.ada, OURS)) == ([], {OURS: tip})


def test_a_worktree_that_is_being_added_only_takes_its_time(team: Team) -> None:
    tip = team.theirs()
    git(team.ada, "worktree", "add", "-q", "--detach", "../tree")
    head = team.ada / ".git" / "worktrees" / "tree" / "HEAD"
    detached = head.read_text()
    head.write_text("0" * 40 + "\n")
    timer = threading.Timer(0.3, head.write_text, (detached,))
    timer.start()
    remote.fetch(team.open(), "origin", {LEDGER: OURS})
    timer.join()
    assert refs(team.ada, OURS) == {OURS: tip}


# ---------------------------------------------------------------- shallow and partial clones


def _grown(team: Team, count: int) -> list[str]:
    """Lets ledger and code of the remote grow; returns the commits of the ledger."""
    git(team.remote, "config", "uploadpack.allowFilter", "true")
    for at in range(count):
        commit(team.bob, "refs/heads/code", f"code {at}", parent="" if at else MASTER)
    made = [commit(team.bob, LEDGER, f"event {at}\n") for at in range(count)]
    git(team.bob, "push", "-q", "origin", LEDGER, "refs/heads/code:refs/heads/master")
    return made


def _kind_of_clone(team: Team, folder: Path, *options: str) -> Repository:
    path = clone(f"file://{team.remote}", folder, "Cy", *options)
    return Repository.open(str(path))


@pytest.mark.parametrize("single", ["--single-branch", "--no-single-branch"])
@pytest.mark.parametrize("more", [(), ("--filter=blob:none",)], ids=["whole", "blobless"])
def test_a_shallow_clone_gets_our_history_and_keeps_its_own_short(
    team: Team, tmp_path: Path, single: str, more: tuple[str, ...]
) -> None:
    made = _grown(team, 5)
    repo = _kind_of_clone(team, tmp_path / "cy", "--depth=2", single, *more)
    assert git(tmp_path / "cy", "rev-list", "--count", "HEAD") == "2"
    remote.fetch(repo, "origin", {LEDGER: OURS}, whole=True)
    assert git(tmp_path / "cy", "rev-list", "--reverse", OURS).split() == made
    assert git(tmp_path / "cy", "rev-list", "--count", "HEAD") == "2"
    mine = commit(tmp_path / "cy", OURS, "mine")
    remote.push(repo, "origin", [Update(LEDGER, mine, made[-1], plain=True)])
    with away(team.remote):
        assert git(tmp_path / "cy", "show", f"{OURS}~5:file.txt") == "event 0"


def test_a_user_who_cuts_off_our_history_gets_it_back(team: Team, tmp_path: Path) -> None:
    made = _grown(team, 5)
    repo = _kind_of_clone(team, tmp_path / "cy", "--depth=1", "--no-single-branch")
    remote.fetch(
        repo,
        "origin",
        {},
        globs={"refs/heads/gittasks/*": "refs/gittasks/remotes/origin/*"},
        whole=True,
    )
    git(tmp_path / "cy", "fetch", "-q", "--depth=1", "origin")
    assert git(tmp_path / "cy", "rev-list", "--count", OURS) == "1"
    remote.fetch(
        repo,
        "origin",
        {},
        globs={"refs/heads/gittasks/*": "refs/gittasks/remotes/origin/*"},
        whole=True,
    )
    assert git(tmp_path / "cy", "rev-list", "--reverse", OURS).split() == made
    assert git(tmp_path / "cy", "rev-list", "--count", "HEAD") == "1"


def test_a_remote_that_is_shallow_itself_is_named(team: Team, tmp_path: Path) -> None:
    _grown(team, 5)
    half = tmp_path / "half.git"
    git(
        tmp_path,
        "clone",
        "-q",
        "--bare",
        "--depth=2",
        "--no-single-branch",
        f"file://{team.remote}",
        str(half),
    )
    git(team.ada, "remote", "add", "half", f"file://{half}")
    git(team.ada, "fetch", "-q", "--depth=1", "origin", LEDGER)
    with pytest.raises(
        GitError, match=f"The remote half has only the end of the history of {LEDGER}"
    ):
        remote.fetch(team.open(), "half", {LEDGER: OURS}, whole=True)


@pytest.mark.parametrize("filtered", ["blob:none", "tree:0"])
def test_a_partial_clone_has_everything_of_ours_at_once(
    team: Team, tmp_path: Path, filtered: str
) -> None:
    made = _grown(team, 5)
    path = tmp_path / "cy"
    repo = _kind_of_clone(team, path, f"--filter={filtered}", "--no-checkout")
    before = repo.calls
    assert remote.fetch(repo, "origin", {LEDGER: OURS, TASK: OURS + "x"}, whole=True) == {TASK}
    assert repo.calls - before <= 9
    made.append(team.theirs(text="event 5\n"))
    git(path, "fetch", "-q")
    made.append(team.theirs(text="event 6\n"))
    remote.fetch(repo, "origin", {LEDGER: OURS}, whole=True)
    with away(team.remote):
        shown = [git(path, "show", f"{oid}:file.txt") for oid in made]
        lacking = git(path, "rev-list", "--objects", "--missing=print", "HEAD").count("?")
    assert (shown, lacking > 0) == ([f"event {at}" for at in range(7)], True)


def test_a_partial_clone_with_nothing_new_asks_once(team: Team, tmp_path: Path) -> None:
    _grown(team, 2)
    repo = _kind_of_clone(team, tmp_path / "cy", "--filter=blob:none")
    remote.fetch(repo, "origin", {LEDGER: OURS}, whole=True)
    before = repo.calls
    remote.fetch(repo, "origin", {LEDGER: OURS}, whole=True)
    assert repo.calls - before == 3


def test_a_mirror_keeps_its_branches(team: Team, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--mirror", str(team.remote), "mirror.git")
    mirror = tmp_path / "mirror.git"
    before = refs(mirror)
    made = team.theirs()
    repo = Repository.open(str(mirror))
    remote.fetch(
        repo, "origin", {LEDGER: OURS}, globs={"refs/y/*": "refs/gittasks/y/*"}, prune=True
    )
    assert refs(mirror) == {**before, OURS: made}
    remote.push(repo, "origin", [Update(TASK, made, None)])
    assert refs(mirror) == {**before, OURS: made}
    assert refs(team.remote, TASK, MASTER) == {TASK: made, MASTER: before[MASTER]}


# --------------------------------------------------------------------------------- pushing


def test_a_push_moves_creates_and_deletes_at_once(team: Team) -> None:
    old = team.theirs(TASK)
    repo = team.open()
    remote.fetch(repo, "origin", {TASK: OURS})
    first, second = (commit(team.ada, f"refs/heads/{name}", name) for name in ("one", "two"))
    before = repo.calls
    updates = [
        Update(TASK, None, old),
        Update(LEDGER, first, None, plain=True),
        Update("refs/gittasks/leases/1", second, None),
    ]
    remote.push(repo, "origin", updates)
    assert repo.calls - before == 1
    assert refs(team.remote, LEDGER, "refs/heads/task", "refs/gittasks") == {
        LEDGER: first,
        "refs/gittasks/leases/1": second,
    }


def test_a_push_that_has_arrived_before_is_fine(team: Team) -> None:
    made = commit(team.ada, "refs/heads/mine", "mine")
    repo = team.open()
    for _ in range(2):
        remote.push(repo, "origin", [Update(LEDGER, made, None), Update(TASK, made, None)])
    assert refs(team.remote, LEDGER, TASK) == {LEDGER: made, TASK: made}


def test_nothing_to_push_asks_nobody(team: Team) -> None:
    repo = team.open()
    before = repo.calls
    remote.push(repo, "origin", [])
    assert repo.calls == before


@pytest.mark.parametrize(
    ("update", "words"),
    [
        (Update("master", "1" * 40, None), "'master' is not the full name"),
        (Update(MASTER, None, None), "deleted without an expected value"),
        (Update(MASTER, None, "1" * 40, plain=True), "deleted without an expected value"),
        (Update(MASTER, "", None), "'' is not the id"),
        (Update(MASTER, "1" * 40, "abc"), "'abc' is not the id"),
    ],
)
def test_an_update_that_could_mean_something_else_is_not_sent(
    team: Team, update: Update, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        remote.push(team.open(), "origin", [update])


def test_an_object_that_is_not_here_is_no_fault_of_the_remote(team: Team) -> None:
    with pytest.raises(GitError) as caught:
        remote.push(team.open(), "origin", [Update(LEDGER, "1" * 40, None)])
    assert type(caught.value) is GitError


# ----------------------------------------------------------------------------------- races


def _raced(team: Team, *updates: Update) -> tuple[str, ...]:
    with pytest.raises(RemoteRaced) as caught:
        remote.push(team.open(), "origin", updates)
    assert caught.value.remote == "origin"
    return caught.value.names


def test_a_plain_push_loses_to_a_commit_that_is_not_here(team: Team) -> None:
    team.theirs()
    mine = commit(team.ada, "refs/heads/mine", "mine")
    assert _raced(team, Update(LEDGER, mine, None, plain=True)) == (LEDGER,)


def test_a_plain_push_loses_to_a_commit_that_is_here(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    old = team.theirs()
    git(team.ada, "fetch", "-q")
    assert _raced(team, Update(LEDGER, mine, old, plain=True)) == (LEDGER,)


@pytest.mark.parametrize("action", ["create", "move", "delete", "move what is gone"])
def test_an_update_from_another_value_moves_nothing(team: Team, action: str) -> None:
    theirs = team.theirs(TASK)
    git(team.ada, "fetch", "-q")
    mine = commit(team.ada, "refs/heads/mine", "mine", parent=theirs)
    old = git(team.ada, "rev-parse", MASTER)
    update = {
        "create": Update(TASK, mine, None),
        "move": Update(TASK, mine, old),
        "delete": Update(TASK, None, old),
        "move what is gone": Update("refs/heads/gone", mine, old),
    }[action]
    before = refs(team.remote)
    assert _raced(team, update, Update(LEDGER, mine, None, plain=True)) == (update.name,)
    assert refs(team.remote) == before


def test_only_the_refs_that_moved_are_named(team: Team) -> None:
    team.theirs()
    team.theirs(TASK)
    mine = commit(team.ada, "refs/heads/mine", "mine")
    updates = (
        Update(LEDGER, mine, None, plain=True),
        Update("refs/heads/fine", mine, None),
        Update(TASK, mine, None),
    )
    assert _raced(team, *updates) == (LEDGER, TASK)
    assert "refs/heads/fine" not in refs(team.remote)


@pytest.mark.parametrize("others", [0, 1])
def test_a_ref_that_moves_while_the_push_arrives_is_a_race(team: Team, others: int) -> None:
    """The hook moves it after git has compared, where only the server can see it."""
    theirs = team.theirs()
    git(team.ada, "fetch", "-q")
    mine = commit(team.ada, "refs/heads/mine", "mine", parent=theirs)
    root = git(team.remote, "rev-parse", MASTER)
    install_hook(
        team.remote,
        "pre-receive",
        f"unset GIT_QUARANTINE_PATH; git update-ref {LEDGER} {root}",
    )
    more = [Update(TASK, mine, None)] * others
    assert _raced(team, Update(LEDGER, mine, theirs, plain=True), *more) == (LEDGER,)
    assert refs(team.remote, LEDGER, TASK) == {LEDGER: root}


def test_a_ref_that_appears_while_the_push_arrives_is_a_race(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    install_hook(
        team.remote, "pre-receive", f"unset GIT_QUARANTINE_PATH; git update-ref {TASK} {MASTER}"
    )
    assert _raced(team, Update(TASK, mine, None)) == (TASK,)


def test_a_transaction_that_is_stopped_because_the_ref_moved_is_a_race(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    install_hook(
        team.remote,
        "reference-transaction",
        '[ "$1" != prepared ] || { echo "The ref is at X but expected Y." >&2; exit 1; }',
    )
    assert _raced(team, Update(TASK, mine, None)) == (TASK,)


# -------------------------------------------------------------------------------- refusals


def _refused(team: Team, *updates: Update) -> tuple[tuple[str, ...], str]:
    with pytest.raises(RemoteRefused) as caught:
        remote.push(team.open(), "origin", updates)
    assert caught.value.remote == "origin"
    return caught.value.names, caught.value.words


def test_a_hook_speaks_in_its_own_words_without_control_characters(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    install_hook(
        team.remote,
        "update",
        f'[ "$1" = {TASK} ] || exit 0\n'
        "printf 'error: \\033[31mNot \\342\\200\\256on\\a Friday.\\nAsk Bob\\r\\n' >&2; exit 1",
    )
    updates = [Update(LEDGER, mine, None, plain=True), Update(TASK, mine, None)]
    assert _refused(team, *updates) == ((TASK,), "[31mNot on Friday.\nAsk Bob")
    with pytest.raises(RemoteRefused, match=f"^The remote origin refused {TASK}: .*Ask Bob.$"):
        remote.push(team.open(), "origin", updates)
    assert LEDGER not in refs(team.remote)


def test_a_hook_that_says_nothing_is_named_by_git(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    install_hook(team.remote, "pre-receive", "exit 1")
    updates = [Update(LEDGER, mine, None, plain=True), Update(TASK, mine, None)]
    assert _refused(team, *updates) == ((LEDGER, TASK), "pre-receive hook declined")


def test_a_transaction_that_a_hook_stops_is_refused(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    install_hook(
        team.remote, "reference-transaction", '[ "$1" != prepared ] || { echo No. >&2; exit 1; }'
    )
    names, words = _refused(team, Update(TASK, mine, None))
    assert (names, words) == ((TASK,), "No.")


def test_rules_of_the_remote_are_no_race(team: Team) -> None:
    old = team.theirs(TASK)
    mine = commit(team.ada, "refs/heads/mine", "mine")
    git(team.remote, "config", "receive.denyDeletes", "true")
    git(team.remote, "config", "receive.hideRefs", "refs/hidden")
    git(team.remote, "config", "receive.denyCurrentBranch", "refuse")
    assert [
        _refused(team, update)[0]
        for update in (
            Update(TASK, None, old),
            Update(TASK, mine, old),
            Update("refs/hidden/a", mine, None),
        )
    ] == [(TASK,), (TASK,), ("refs/hidden/a",)]


def test_a_branch_in_the_way_is_refused_with_its_name(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    git(team.remote, "branch", "gittasks", "master")
    for updates in (
        [Update(LEDGER, mine, None, plain=True)],
        [Update(LEDGER, mine, None, plain=True), Update(TASK, mine, None)],
    ):
        names, words = _refused(team, *updates)
        assert (names, "'refs/heads/gittasks' exists" in words) == ((LEDGER,), True)


def test_a_lock_that_stays_is_refused_with_its_file(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    lock = team.remote / "refs" / "heads" / "task" / "000001.lock"
    lock.parent.mkdir()
    lock.touch()
    updates = [Update(TASK, mine, None), Update(LEDGER, mine, None)]
    names, words = _refused(team, *updates)
    assert (names, "refs/heads/task/000001.lock': File exists" in words) == ((TASK,), True)


def test_a_lock_that_goes_away_only_takes_its_time(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    lock = team.remote / "refs" / "heads" / "task" / "000001.lock"
    lock.parent.mkdir()
    lock.touch()
    timer = threading.Timer(0.5, lock.unlink)
    timer.start()
    remote.push(team.open(), "origin", [Update(TASK, mine, None)])
    timer.join()
    assert refs(team.remote, TASK) == {TASK: mine}


def test_a_remote_that_cannot_be_written_refuses_with_its_words(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    place = team.remote
    if os.geteuid() == 0:
        # root may write whatever the mode is, but not on what is mounted to be read.
        mount = f"mount --bind {place} {place} && mount -o remount,ro,bind {place}"
        script = f'exec unshare -m sh -c "{mount} && exec git-receive-pack {place}"'
    else:
        script = f"find {place}/objects -type d -exec chmod a-w '{{}}' +; exec git-receive-pack $1"
    team.open(f"remote.origin.receivepack = {_program(team.ada / 'read-only', script)}")
    names, words = _refused(team, Update(TASK, mine, None))
    cause = "remote unpack failed: unable to create temporary object directory"
    assert (names, words) == ((TASK,), cause)


def _program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_remote_whose_disk_is_full_refuses_with_its_words(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    # A limit of the size of files is the nearest thing to a full disk that needs no rights.
    script = _program(team.ada / "full", "ulimit -f 0; trap '' XFSZ; exec git-receive-pack $1")
    team.open(f"remote.origin.receivepack = {script}")
    names, words = _refused(team, Update(TASK, mine, None))
    assert (names, words) == ((TASK,), "unable to write loose object file: File too large")


# ---------------------------------------------------------------------------- out of reach


def test_a_remote_that_is_gone_cannot_be_reached(team: Team) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    repo = team.open()
    calls = (
        lambda: remote.push(repo, "origin", [Update(TASK, mine, None)]),
        lambda: remote.fetch(repo, "origin", {LEDGER: OURS}),
        lambda: remote.listed(repo, "origin", [LEDGER]),
        lambda: remote.head(repo, "origin"),
    )
    told = []
    with away(team.remote):
        for call in calls:
            with pytest.raises(RemoteUnreachable) as caught:
                call()
            told.append((str(caught.value), caught.value.timed_out, caught.value.maybe_done))
    words = f"'{team.remote}' does not appear to be a git repository"
    assert told == [(f"The remote origin cannot be reached: {words}.", False, False)] * 4
    remote.push(repo, "origin", [Update(TASK, mine, None)])


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("ERROR: Permission to a/b.git denied to ada.", RemoteRefused, "Permission to a/b.git"),
        ("ERROR: Repository not found.", RemoteUnreachable, "Repository not found"),
        ("git@host: Permission denied (publickey).", RemoteAsks, "Permission denied"),
        ("Host key verification failed.", RemoteAsks, "Host key verification failed"),
        ("ssh: Could not resolve hostname x: Name unknown", RemoteUnreachable, "hostname x"),
        ("ssh: connect to host x port 22: Connection timed out", RemoteUnreachable, "timed out"),
        ("ERROR: The key has been marked as read only.", RemoteRefused, "marked as read only"),
        ("ERROR: You are not allowed to push code.", RemoteRefused, "not allowed to push"),
        ("FATAL: W any r ada DENIED by fallthru", RemoteRefused, "DENIED by fallthru"),
        ("fatal: \033[31mnobody knows this", RemoteUnreachable, "nobody knows this"),
        ("", RemoteUnreachable, "Could not read from remote"),
    ],
)
def test_what_is_said_on_the_way_tells_what_it_is(
    team: Team, said: str, kind: type[RemoteError], words: str
) -> None:
    script = f"printf '{said}\\n' >&2; exit 128"
    repo = team.open(f"remote.origin.receivepack = {_program(team.ada / 'says', script)}")
    mine = commit(team.ada, "refs/heads/mine", "mine")
    with pytest.raises(kind) as caught:
        remote.push(repo, "origin", [Update(TASK, mine, None)])
    assert (words in str(caught.value), "\033" in str(caught.value)) == (True, False)
    assert getattr(caught.value, "maybe_done", False) is False, "nothing was sent"


def test_a_message_of_the_server_instead_of_an_answer_is_a_refusal(team: Team) -> None:
    message = "ERR Reading is over.\n"
    script = f"printf '%04x%s\\n' {len(message) + 4} '{message.strip()}'"
    repo = team.open(f"remote.origin.uploadpack = {_program(team.ada / 'says', script)}")
    with pytest.raises(RemoteRefused, match=r"^The remote origin refused this: .*Reading is over"):
        remote.fetch(repo, "origin", {LEDGER: OURS})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a repository to somebody else")
def test_a_repository_of_somebody_else_is_refused_with_its_name(team: Team) -> None:
    os.chown(team.remote, 12345, 12345)
    with pytest.raises(RemoteRefused, match=f"dubious ownership in repository at '{team.remote}'"):
        remote.fetch(team.open(), "origin", {LEDGER: OURS})


def test_a_protocol_that_is_not_allowed_is_no_fault_of_the_remote(team: Team) -> None:
    git(team.ada, "remote", "set-url", "origin", "http://127.0.0.1/r.git")
    with pytest.raises(GitError, match=r"^transport 'http' not allowed\.$") as caught:
        remote.fetch(team.open(), "origin", {LEDGER: OURS})
    assert type(caught.value) is GitError


def test_a_remote_that_does_not_answer_is_left_and_its_processes_end(
    team: Team, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    lines = f"echo $$ >> {pids}; sleep 60 & echo $! >> {pids}; wait"
    script = _program(tmp_path / "silent", lines)
    repo = team.open(f"remote.origin.uploadpack = {script}\nremote.origin.receivepack = {script}")
    mine = commit(team.ada, "refs/heads/mine", "mine")
    started = time.monotonic()
    with pytest.raises(RemoteUnreachable) as fetching:
        remote.fetch(repo, "origin", {LEDGER: OURS}, timeout=0.4)
    with pytest.raises(RemoteUnreachable) as pushing:
        remote.push(repo, "origin", [Update(TASK, mine, None)], timeout=0.4)
    assert time.monotonic() - started < 5
    assert [
        (str(one.value), one.value.timed_out, one.value.maybe_done) for one in (fetching, pushing)
    ] == [
        ("The remote origin did not answer within 0.4 seconds.", True, False),
        ("The remote origin did not answer within 0.4 seconds.", True, True),
    ]
    assert [_ended(int(pid)) for pid in pids.read_text().split()] == [True] * 4


def _ended(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
        except FileNotFoundError:
            return True
        if stat.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_the_time_of_the_settings_counts_where_none_is_given(team: Team, tmp_path: Path) -> None:
    script = _program(tmp_path / "silent", "sleep 60")
    repo = team.open(f"gittasks.gitTimeout = 0.3\nremote.origin.uploadpack = {script}")
    with pytest.raises(RemoteUnreachable, match=r"within 0\.3 seconds"):
        remote.fetch(repo, "origin", {LEDGER: OURS})


@pytest.mark.parametrize("moment", ["pre-receive", "post-receive"])
def test_a_server_that_dies_may_have_taken_the_push(team: Team, moment: str) -> None:
    mine = commit(team.ada, "refs/heads/mine", "mine")
    install_hook(team.remote, moment, "kill -9 $PPID")
    with pytest.raises(RemoteUnreachable) as caught:
        remote.push(team.open(), "origin", [Update(LEDGER, mine, None, plain=True)])
    assert (caught.value.maybe_done, caught.value.timed_out) == (True, False)
    assert (LEDGER in refs(team.remote)) is (moment == "post-receive")
    (team.remote / "hooks" / moment).unlink()
    remote.push(team.open(), "origin", [Update(LEDGER, mine, None, plain=True)])


# ----------------------------------------------------------------------------- the way there


def test_a_hook_of_the_user_that_hangs_does_not_matter(team: Team) -> None:
    install_hook(team.ada, "pre-push", "sleep 60")
    mine = commit(team.ada, "refs/heads/mine", "mine")
    remote.push(team.open(), "origin", [Update(TASK, mine, None)], timeout=20)
    assert refs(team.remote, TASK) == {TASK: mine}


def test_a_push_goes_where_the_user_pushes(team: Team, tmp_path: Path) -> None:
    """A fetch comes from one place, a push goes to another, and both names are shortened."""
    other = bare_remote(tmp_path / "other.git")
    git(team.ada, "remote", "set-url", "origin", "read:remote.git")
    git(team.ada, "remote", "set-url", "--push", "origin", "write:other.git")
    repo = team.open(
        f"url.{tmp_path}/.insteadOf = read:\nurl.{tmp_path}/.insteadOf = write:\n"
        "url./nowhere/.pushInsteadOf = write:"
    )
    made = team.theirs()
    remote.fetch(repo, "origin", {LEDGER: OURS})
    remote.push(repo, "origin", [Update(TASK, made, None)])
    assert (refs(other, TASK), refs(team.remote, TASK)) == ({TASK: made}, {})


@pytest.mark.parametrize("where", ["ada", "ada/sub", "linked"])
def test_a_relative_address_is_meant_from_the_top_of_the_checkout(
    team: Team, tmp_path: Path, where: str
) -> None:
    git(team.ada, "remote", "set-url", "origin", "../remote.git")
    (team.ada / "sub").mkdir()
    git(team.ada, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    made = team.theirs()
    repo = Repository.open(str(tmp_path / where))
    remote.fetch(repo, "origin", {LEDGER: OURS})
    remote.push(repo, "origin", [Update(TASK, made, None)])
    assert (refs(team.ada, OURS), refs(team.remote, TASK)) == ({OURS: made}, {TASK: made})


def test_settings_given_in_the_environment_stay(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "remote.given.url")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(team.remote))
    made = team.theirs()
    remote.fetch(Repository.open(str(team.ada)), "given", {LEDGER: OURS})
    assert refs(team.ada, OURS) == {OURS: made}


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_both_kinds_of_object_ids_travel(tmp_path: Path, object_format: str) -> None:
    there = bare_remote(tmp_path / "r.git", object_format=object_format)
    path = clone(there, tmp_path / "ada", "Ada")
    made = commit(path, "refs/heads/mine", "mine")
    repo = Repository.open(str(path))
    remote.push(repo, "origin", [Update(LEDGER, made, None)])
    with pytest.raises(RemoteRaced):
        remote.push(repo, "origin", [Update(LEDGER, git(path, "rev-parse", "HEAD"), None)])
    remote.fetch(repo, "origin", {LEDGER: OURS})
    assert refs(path, OURS) == {OURS: made}


def test_passwords_in_addresses_are_not_repeated() -> None:
    words = remote._clean("fatal: unable to access 'https://ada:s3cret@example.org/r.git/': x")
    assert words == "unable to access 'https://example.org/r.git/': x"


def test_a_fetch_with_nothing_new_is_quick(team: Team) -> None:
    team.theirs()
    repo = team.open()
    remote.fetch(repo, "origin", {LEDGER: OURS})

    def spent(call: object) -> float:
        times = []
        for _ in range(15):
            started = time.perf_counter()
            call()  # type: ignore[operator]
            times.append(time.perf_counter() - started)
        # Whatever else the machine does only makes them longer.
        return min(times)

    unit = spent(lambda: repo.text("rev-parse", "HEAD"))
    assert spent(lambda: remote.fetch(repo, "origin", {LEDGER: OURS})) / unit < 12
