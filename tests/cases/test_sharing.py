"""Several clones and one remote: whatever happens at once or far away, they agree in the end."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from gittasks.ledger import leases
from gittasks.workflow.project import Options, Project
from tests.cases.ground import Team, error_of
from tests.sharing import ground
from tests.sharing.ground import LEDGER, Clone, Shared, linear, only_forward, refs_of
from tests.support.cli import CHECKOUT, tasks, tasks_inprocess, tasks_process
from tests.support.git import git
from tests.support.remotes import away, clone

SUM = "total=0; for f in *.num; do total=$((total + $(cat $f))); done; test $total -lt 10"
LATER = {"PYTHONPATH": f"{CHECKOUT / 'tests/cases/clock'}:{CHECKOUT}", "SECONDS_LATER": "90000"}


@pytest.fixture(scope="module")
def _met(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("met") / "begun"
    folder.mkdir()
    return ground.begin(folder).remote.parent


@pytest.fixture
def shared(home: Path, _met: Path) -> Shared:
    """Returns a remote that refuses what is no fast-forward, and the clones of Ada and Bob."""
    shared = ground.copied(_met, home / "shared")
    git(shared.remote, "config", "core.logAllRefUpdates", "always")
    return shared


def ended(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    """Waits for processes; returns how each ended and what it said."""
    told = [process.communicate(timeout=120) for process in processes]
    return [(process.returncode, *words) for process, words in zip(processes, told, strict=True)]


# ------------------------------------------------------------------------------- at once


@pytest.mark.parametrize(
    "turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in range(1, 5))]
)
def test_eight_who_start_eight_tasks_at_once_all_can(shared: Shared, turn: int) -> None:
    """Guards against agents that fail because others start in the same second."""
    names = [shared.ada.offline("new", f"{n}", "--enter", "work").out.strip() for n in range(8)]
    shared.ada.sync()
    before = shared.ada.git("config", "--local", "--get-regexp", r"^branch\.")
    starting = [
        tasks_process(shared.ada.folder, "start", name, env={"GITTASKS_AGENT": f"pi-{name}"})
        for name in names
    ]
    told = ended(starting)
    assert [err for status, _, err in told if status] == [], turn
    assert len(shared.ada.git("worktree", "list").splitlines()) == 9
    assert set(shared.ada.refs("refs/heads/task/")) == {f"refs/heads/task/{n}" for n in names}
    assert shared.ada.git("config", "--local", "--get-regexp", r"^branch\.") == before
    shared.bob.sync()
    for name in names:
        assert shared.bob.show(name)["claimed_by"] == f"pi-{name}"
        assert shared.kinds(name) == ["create", "submit", "claim"]
    assert only_forward(shared.remote)


def test_of_sixteen_in_two_clones_who_want_one_task_one_gets_it(shared: Shared) -> None:
    """Guards against two agents at work on the same task in two clones."""
    task = shared.ready("One")
    before = int(git(shared.remote, "rev-list", "--count", LEDGER))
    running = [
        tasks_process(one.folder, "claim", task, "--json", env={"GITTASKS_AGENT": f"pi-{n}"})
        for n, one in enumerate((shared.ada, shared.bob) * 8)
    ]
    told = ended(running)
    (winner,) = [n for n, (status, _, _) in enumerate(told) if status == 0]
    losers = [json.loads(out)["error"] for status, out, _ in told if status]
    assert [error["name"] for error in losers] == ["TAKEN"] * 15
    assert all(f"pi-{winner}" in error["message"] for error in losers)
    assert int(git(shared.remote, "rev-list", "--count", LEDGER)) == before + 1
    shared.met()
    assert shared.ada.show(task)["claimed_by"] == f"pi-{winner}"
    assert linear(shared.remote)
    assert only_forward(shared.remote)


def test_whoever_asks_for_the_next_task_in_two_clones_gets_another_one(shared: Shared) -> None:
    """Guards against a queue that two clones read at once, and both begin at its head."""
    names = [shared.ada.offline("new", f"{n}", "--enter", "work").out.strip() for n in range(4)]
    shared.ada.sync()
    running = [
        tasks_process(one.folder, "claim", "--next", env={"GITTASKS_AGENT": f"pi-{n}"})
        for n, one in enumerate((shared.ada, shared.bob) * 2)
    ]
    told = ended(running)
    assert [status for status, _, _ in told] == [0] * 4, told
    assert sorted(out.strip() for _, out, _ in told) == names
    shared.met()
    assert len({shared.ada.show(name)["claimed_by"] for name in names}) == 4


def test_tasks_created_at_once_in_two_clones_get_different_numbers(shared: Shared) -> None:
    """Guards against two tasks under one number, and against numbers told and changed later."""
    running = [
        tasks_process(one.folder, "new", f"Task {n}")
        for n, one in enumerate((shared.ada, shared.bob) * 3)
    ]
    told = ended(running)
    assert [status for status, _, _ in told] == [0] * 6, told
    made = {out.strip(): f"Task {n}" for n, (_, out, _) in enumerate(told)}
    assert sorted(made) == [f"{n:06d}" for n in range(1, 7)]
    shared.met()
    rows = shared.bob.manager("list", "--json").json()["data"]
    assert {row["id"]: row["title"] for row in rows} == made
    assert all(row["former_ids"] == [] for row in rows)


# ------------------------------------------------------------------------------- offline


def test_of_two_offline_claims_one_counts_and_no_work_is_lost(shared: Shared) -> None:
    """Guards against two owners after a day without the network, and work thrown away for it."""
    task = shared.ready("One")
    with away(shared.remote):
        shared.ada.begun(task, "a", "a\n", offline=True)
        tree = shared.bob.begun(task, "b", "b\n", offline=True)
    commit = shared.bob.git("rev-parse", "HEAD", at=tree)
    shared.ada.sync()
    lost = shared.bob.sync(check=6)
    assert f"The claim of b on {task} was lost" in lost.err
    shared.met()
    assert {shared.ada.show(task)["claimed_by"], shared.bob.show(task)["claimed_by"]} == {"a"}
    assert shared.bob.git("rev-parse", "HEAD", at=tree) == commit
    assert shared.bob.git("branch", "--contains", commit) != ""
    shared.bob.agent("b", "note", task, "x")
    refused = shared.bob.agent("b", "submit", task, "-m", "Done.", "--json", check=6)
    assert error_of(refused)["name"] == "TAKEN"


def test_events_of_two_clones_are_all_there_after_a_push_race(shared: Shared) -> None:
    """Guards against events lost or rewritten when both clones had something to push."""
    names = [shared.ada.new(f"Task {n}") for n in range(5)]
    shared.bob.sync()
    for name in names[2:]:
        shared.bob.offline("note", name, f"Bob on {name}")
    shared.ada.manager("note", names[0], "Ada on it")
    shared.ada.manager("note", names[1], "Ada on it")
    before = git(shared.remote, "rev-list", "--count", LEDGER)
    form = "--format=%an %ae %at %ai %B%x00"
    wanted = [
        said.split("Replayed-From")[0].rstrip() for said in
        shared.bob.git("log", "-3", form, LEDGER).split("\0")
    ]  # fmt: skip
    shared.bob.sync()
    now = [
        said.split("Replayed-From")[0].rstrip() for said in
        git(shared.remote, "log", "-3", form, LEDGER).split("\0")
    ]  # fmt: skip
    assert now == wanted
    assert int(git(shared.remote, "rev-list", "--count", LEDGER)) == int(before) + 3
    assert linear(shared.remote)
    assert only_forward(shared.remote)
    tip = shared.tip
    assert shared.bob.sync().out == "origin: nothing to do\n"
    assert (shared.tip, shared.bob.tip()) == (tip, tip)


@pytest.mark.parametrize("options", [("--single-branch",), ("--depth=1",)])
def test_a_clone_cut_short_never_takes_an_unknown_ledger_for_an_empty_one(
    shared: Shared, options: tuple[str, ...]
) -> None:
    """Guards against an empty list that says nothing of the tasks that are on the remote."""
    for n in range(3):
        shared.ada.offline("new", f"Task {n}")
    shared.ada.sync()
    shared.ada.commit(shared.ada.folder, {"more.txt": "more\n"})
    shared.ada.git("push", "-q", "origin", "master")
    place = shared.remote.parent / "cut"
    one = Clone(clone(f"file://{shared.remote}", place, "Cid", *options))
    before = one.git("rev-list", "--count", "HEAD")
    refused = one.manager("list", "--json", check=3)
    assert error_of(refused)["hint"].startswith("Run `git tasks init`")
    one.manager("init")
    assert len(one.manager("list", "--json").json()["data"]) == 3
    told = one.manager("log", "--json").json()["data"]
    assert len(told) == len(shared.ada.manager("log", "--json").json()["data"])
    assert one.git("rev-list", "--count", "HEAD") == before


# ------------------------------------------------------------------------- the user's own


def test_no_exchange_touches_what_the_user_has_staged(shared: Shared) -> None:
    """Guards against a sync or a claim that writes into somebody's index or files."""
    ada = shared.ada
    ada.commit(ada.folder, {"staged.txt": "1\n", "partly.txt": "1\n2\n3\n"})
    ada.git("push", "-q", "origin", "master")
    (ada.folder / "staged.txt").write_text("2\n")
    (ada.folder / "partly.txt").write_text("one\n2\n3\n")
    ada.git("add", "staged.txt", "partly.txt")
    (ada.folder / "partly.txt").write_text("one\n2\nthree\n")
    (ada.folder / "untracked.txt").write_text("mine\n")
    (ada.folder / "intended.txt").write_text("mine\n")
    ada.git("add", "--intent-to-add", "intended.txt")
    before = ada.checkout()
    task = ada.new("One")
    tree = ada.start(task)
    ada.manager("note", task, "Hello")
    ada.commit(tree, {"new.txt": "new\n"})
    ada.agent("wim", "submit", "-m", "Done.", at=tree)
    ada.manager("hold", task, "-m", "Wait.")
    shared.bob.sync()
    shared.bob.manager("note", task, "Seen")
    ada.sync()
    assert ada.checkout() == before
    assert ada.leftovers() == []


def test_unrelated_changes_stay_where_a_task_lands_on_the_remote(shared: Shared) -> None:
    """Guards against a landing that stashes, resets or commits what is the user's."""
    ada = shared.ada
    ada.commit(ada.folder, {"a.txt": "old\n", "b.txt": "b\n"})
    ada.git("push", "-q", "origin", "master")
    task = shared.ready("One")
    shared.bob.git("pull", "-q")
    shared.bob.work(task, {"a.txt": "new\n"})
    shared.bob.approve(task)
    (ada.folder / "b.txt").write_text("changed\n")
    (ada.folder / "c.txt").write_text("staged\n")
    ada.git("add", "c.txt")
    ada.manager("submit", task)
    shown = ada.show(task)
    assert (shown["state"], shown["outcome"]) == ("CLOSED", "landed")
    assert shown["landed"] == shared.base == ada.git("rev-parse", "master")
    assert (ada.folder / "a.txt").read_text() == "new\n"
    assert ada.git("status", "--porcelain").splitlines() == [" M b.txt", "A  c.txt"]
    assert ada.git("stash", "list") == ""


# -------------------------------------------------------------------------------- landing


def test_green_alone_and_red_together_does_not_land_on_the_remote(shared: Shared) -> None:
    """Guards against a base of all that is broken by the work of two clones, each green alone."""
    ada, bob = shared.ada, shared.bob
    ada.commit(ada.folder, {"zero.num": "0\n"})
    ada.git("push", "-q", "origin", "master")
    six, seven = ada.new("Six", "--check", SUM), ada.new("Seven", "--check", SUM)
    bob.sync()
    bob.git("pull", "-q")
    bob.manager("trust", six, check=None)
    for task, one, files in ((six, ada, {"six.num": "6\n"}), (seven, bob, {"seven.num": "7\n"})):
        one.work(task, files)
        if one.state(task) == "CHECK":
            ada.sync()
            ada.manager("check", task, "--record")
        one.sync()
        one.approve(task)
    ada.sync()
    ada.manager("submit", six)
    ada.manager("diff", seven)
    branch = refs_of(shared.remote)[f"refs/heads/task/{seven}"]
    refused = shared.unchanged_by(lambda: ada.manager("submit", seven, "--json", check=7))
    assert "total" in error_of(refused)["message"]
    ada.manager("feedback", seven, "--from-landing")
    bob.sync()
    shown = bob.show(seven)
    assert shown["state"] == "WORK"
    assert "total" in shown["findings"]["items"][0]
    assert refs_of(shared.remote)[f"refs/heads/task/{seven}"] == branch
    subprocess.run(["sh", "-c", SUM], cwd=ada.folder, check=True)


def test_a_conflict_is_sent_back_to_another_clone_and_lands_from_there(shared: Shared) -> None:
    """Guards against a conflict that only whoever has both branches could resolve."""
    ada, bob = shared.ada, shared.bob
    one, two = ada.new("One"), ada.new("Two")
    bob.sync()
    ada.work(one, {"app.txt": "of Ada\n"})
    bob.work(two, {"app.txt": "of Bob\n"})
    ada.approve(one)
    bob.approve(two)
    ada.manager("submit", one)
    ada.manager("diff", two)
    refused = shared.unchanged_by(lambda: ada.manager("submit", two, "--json", check=7))
    assert "app.txt" in error_of(refused)["message"]
    ada.manager("feedback", two, "--from-landing")
    bob.sync()
    tree = bob.start(two)
    assert "app.txt" in bob.show(two)["findings"]["items"][0]
    bob.git("fetch", "-q", "origin")
    bob.git("merge", "-q", "origin/master", at=tree, check=False)
    bob.commit(tree, {"app.txt": "of both\n"}, "Merge")
    bob.agent("wim", "submit", "-m", "Resolved.", at=tree)
    bob.approve(two)
    ada.manager("submit", two)
    assert git(shared.remote, "show", "master:app.txt") == "of both"
    assert (ada.folder / "app.txt").read_text() == "of both\n"
    assert list(shared.remote.parent.rglob("MERGE_HEAD")) == []


# --------------------------------------------------------------------------------- fencing


def test_an_agent_that_wakes_up_late_is_stopped_by_what_the_remote_knows(shared: Shared) -> None:
    """Guards against a paused agent whose task another clone has given to its namesake."""
    task = shared.ready("One")
    tree = shared.ada.start(task, "pi")
    shared.ada.commit(tree, {"new.txt": "late\n"})
    tasks(shared.bob.folder, "claim", task, env={**LATER, "GITTASKS_AGENT": "pi"})
    shared.ada.sync()
    refused = shared.ada.agent("pi", "submit", "-m", "Done.", "--json", at=tree, check=6)
    assert error_of(refused)["name"] == "TAKEN"
    assert shared.kinds(task)[-2:] == ["release", "claim"]
    assert (tree / "new.txt").read_text() == "late\n"


def test_a_claim_that_was_renewed_is_not_taken_by_a_clone_that_looks_at_its_lease(
    shared: Shared,
) -> None:
    """Guards against a claim that is taken away because its renewal travelled by another way."""
    task = shared.ready("One")
    shared.ada.agent("pi", "claim", task)
    project = Project.open(Options(str(shared.ada.folder)))
    claim = str(project.task(task).claim)
    leases.renew(project.repo, project.ledger.reader, task, claim, project.clock() + 3 * 86_400)
    project.close()
    shared.ada.sync()
    before = shared.tip
    env = {**LATER, "GITTASKS_AGENT": "rho"}
    refused = tasks(shared.bob.folder, "claim", task, "--json", env=env, check=6)
    assert "pi" in error_of(refused)["message"]
    assert shared.tip == before


# ------------------------------------------------------------------------ beside other tools


@pytest.mark.parametrize("kind", ["replace", "graft"])
def test_replacements_in_one_clone_do_not_reach_the_others(shared: Shared, kind: str) -> None:
    """Guards against a ledger that looks different in a clone with replaced commits."""
    task = shared.ready("One")
    root = shared.bob.git("rev-list", "--max-parents=0", LEDGER)
    if kind == "replace":
        shared.bob.git("replace", "-f", shared.bob.tip(), root)
    else:
        shared.bob.git("replace", "--graft", shared.bob.tip(), root)
    shared.ada.manager("note", task, "news")
    shared.bob.offline("note", task, "mine")
    shared.bob.sync()
    shared.met()
    assert shared.kinds(task)[-2:] == ["note", "note"]
    assert linear(shared.remote)


def test_a_rewriting_tool_that_ran_over_all_branches_reaches_nobody_else(shared: Shared) -> None:
    """Guards against a rewritten ledger that is pushed, or taken for what the others have."""
    task = shared.ready("One")
    tip = shared.tip
    os.environ["FILTER_BRANCH_SQUELCH_WARNING"] = "1"
    shared.bob.git(
        "filter-branch", "-f", "--msg-filter", "sed s/One/Two/", "--", "--branches", check=False
    )
    assert shared.bob.tip() != tip
    refused = shared.bob.sync("--json", check=9)
    assert "git tasks recover" in error_of(refused)["hint"]
    assert shared.tip == tip
    shared.bob.manager("recover")
    shared.bob.sync()
    assert shared.bob.tip() == shared.tip == tip
    shared.bob.manager("note", task, "It goes on.")
    shared.bob.manager("fsck")


def test_a_collection_beside_a_sync_loses_nothing(shared: Shared) -> None:
    """Guards against objects that a collection takes away between commit and push."""
    task = shared.ready("One")
    packing = subprocess.Popen(
        ["sh", "-c", "while :; do git gc -q --prune=now; git pack-refs --all --prune; done"],
        cwd=shared.bob.folder,
        stderr=subprocess.DEVNULL,
    )
    try:
        for n in range(4):
            shared.bob.manager("note", task, f"{n}")
            shared.ada.manager("note", task, f"{n}")
    finally:
        packing.kill()
        packing.wait()
    shared.bob.sync()
    shared.met()
    assert shared.kinds(task).count("note") == 8
    for one in (shared.ada.folder, shared.bob.folder, shared.remote):
        git(one, "fsck", "--connectivity-only", "--no-dangling")


def test_a_copy_of_a_clone_takes_nothing_from_the_original(shared: Shared, home: Path) -> None:
    """Guards against a copied folder whose claims and trees are those of the first one."""
    task = shared.ready("One")
    tree = shared.bob.start(task)
    subprocess.run(["cp", "-r", shared.bob.folder, home / "copy"], check=True)
    copy = Clone(home / "copy")
    copy.manager("note", task, "from the copy")
    tasks_inprocess(copy.folder, "gc")
    assert tree.is_dir()
    shared.bob.commit(tree, {"new.txt": "new\n"})
    shared.bob.agent("wim", "submit", "-m", "Done.", at=tree)
    shared.met()
    assert shared.bob.state(task) == "WORK_REVIEW"
    assert git(tree, "status", "--porcelain") == ""


def test_a_clone_alone_has_no_remote_to_ask(team: Team) -> None:
    """Guards against a tool that cannot be used without a server."""
    task = team.reviewed("One", {"new.txt": "new\n"})
    team.manager("submit", task)
    refused = team.manager("sync", "--json", check=8)
    assert error_of(refused)["hint"] == "Add one: git remote add origin URL."
