"""Two clones that worked apart: whose word counts, and what becomes of the other one's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.ground import error_of
from tests.sharing.ground import LEDGER, Clone, Shared, linear, refs_of
from tests.support.cli import CHECKOUT, tasks_inprocess, tasks_process
from tests.support.git import git
from tests.support.remotes import away, install_hook, two_clones

FROZEN = "import time\ntime.time = lambda: 1_800_000_000.0\n"


def told(result: Any) -> list[str]:
    """Returns what a command said to people, line by line."""
    return str(result.err).splitlines()


# ------------------------------------------------------------------------------------- claims


def test_of_one_name_at_one_second_in_two_clones_one_gets_the_task(
    shared: Shared, home: Path
) -> None:
    (home / "frozen").mkdir()
    (home / "frozen/sitecustomize.py").write_text(FROZEN)
    env = {"PYTHONPATH": f"{home / 'frozen'}:{CHECKOUT}", "GITTASKS_AGENT": "pi"}
    task = shared.ready("One")
    running = [
        tasks_process(one.folder, "claim", task, "--json", env=env)
        for one in (shared.ada, shared.bob)
    ]
    ended = [(*each.communicate(timeout=60), each.returncode) for each in running]
    assert sorted(status for _, _, status in ended) == [0, 6], ended
    (won,) = [json.loads(out)["data"] for out, _, status in ended if not status]
    (lost,) = [json.loads(out)["error"] for out, _, status in ended if status]
    assert (lost["name"], "pi" in lost["message"]) == ("TAKEN", True)
    shared.met()
    assert {shared.ada.show(task)["claim"], shared.bob.show(task)["claim"]} == {won["claim"]}
    assert shared.kinds(task) == ["create", "submit", "claim"]


def test_a_claim_is_refused_by_what_the_remote_knows(shared: Shared) -> None:
    task = shared.ready("One")
    shared.ada.agent("pi", "claim", task)
    before = shared.bob.refs("refs/heads/task/", "refs/gittasks/leases/")
    refused = shared.bob.agent("pi", "claim", task, "--json", check=6)
    error = error_of(refused)
    assert (error["name"], error["task"], error["retryable"]) == ("TAKEN", task, False)
    assert "pi" in error["message"]
    assert shared.bob.refs("refs/heads/task/", "refs/gittasks/leases/") == before
    assert list((shared.bob.folder / ".git/gittasks/claims").glob("*")) == []
    assert not shared.bob.folder.with_name("bob.tasks").exists()
    assert shared.kinds(task) == ["create", "submit", "claim"]


def test_the_same_name_elsewhere_is_somebody_else(shared: Shared) -> None:
    task = shared.ready("One")
    tree = shared.ada.start(task, "pi")
    shared.ada.commit(tree, {"pi.txt": "pi\n"})
    shared.bob.sync()
    refused = shared.bob.agent("pi", "submit", task, "-m", "Done.", check=5)
    assert refused.err.startswith(f"error: pi holds no claim on {task}, ")
    shared.bob.agent("pi", "submit", task, "-m", "Done.", "--role", "worker", check=6)
    assert shared.bob.state(task) == "WORK"


def offline_claims(shared: Shared, *names: str) -> tuple[str, list[Path]]:
    """Lets both clones take one task while the remote is away; returns task and trees."""
    task = shared.ready("One")
    trees = []
    with away(shared.remote):
        for one, name in zip((shared.ada, shared.bob), names, strict=True):
            trees.append(one.begun(task, name, f"by {name}\n", offline=True))
    return task, trees


def test_of_two_offline_claims_of_one_name_the_first_to_sync_counts(shared: Shared) -> None:
    names = ("pi", "pi")
    task, (_, tree) = offline_claims(shared, *names)
    commit = shared.bob.git("rev-parse", "HEAD", at=tree)
    shared.ada.sync()
    owner = shared.ada.show(task)["claim"]
    said = shared.bob.sync("--json", check=6)
    lost = said.json()["data"]
    assert [(one["task"], one["actor"]) for one in lost["lost"]] == [(task, names[1])]
    assert [(one["event"], one["task"]) for one in lost["rejected"]] == [("claim", task)]
    claim = lost["lost"][0]["claim"]
    shared.met()
    assert shared.ada.show(task)["claim"] == shared.bob.show(task)["claim"] == owner
    branch = f"task/{task}-lost-{claim[:8]}"
    (line,) = [line for line in told(said) if "was lost" in line]
    assert line.startswith(f"The claim of pi on {task} was lost: ")
    assert line.endswith(f" What was done stays on the branch {branch}.")
    assert "-lost-" not in git(shared.remote, "for-each-ref")
    assert shared.bob.git("symbolic-ref", "--short", "HEAD", at=tree) == branch
    assert shared.bob.git("rev-parse", branch) == commit
    assert (tree / f"{names[1]}.txt").read_text() == f"by {names[1]}\n"
    assert shared.bob.git("status", "--porcelain", at=tree) == ""
    shared.bob.agent(names[1], "note", task, "x", at=tree)
    shared.bob.agent(names[1], "submit", task, "-m", "Done.", at=tree, check=6)


def test_whoever_lost_a_claim_can_take_the_task_again_beside_the_old_tree(shared: Shared) -> None:
    task, (_, tree) = offline_claims(shared, "a", "b")
    (tree / "scratch.txt").write_text("not committed\n")
    commit = shared.bob.git("rev-parse", "HEAD", at=tree)
    shared.ada.sync()
    shared.bob.sync(check=6)
    shared.ada.manager("release", task, "--force")
    again = shared.bob.agent("b", "start", task)
    new = Path(again.out.strip())
    assert shared.bob.git("symbolic-ref", "--short", "HEAD", at=new) == f"task/{task}"
    assert sorted(path.name for path in new.iterdir()) == [".git", "a.txt", "app.txt"]
    assert shared.bob.holds(commit)
    kept = [path.read_text() for path in shared.bob.folder.parent.rglob("scratch.txt")]
    assert kept == ["not committed\n"]
    shared.bob.commit(new, {"b.txt": "again\n"})
    shared.bob.agent("b", "submit", "-m", "Done.", at=new)
    assert shared.bob.state(task) == "WORK_REVIEW"


def test_what_was_said_under_a_lost_claim_does_not_count(shared: Shared) -> None:
    task, (_, tree) = offline_claims(shared, "a", "b")
    shared.bob.alone("b", "submit", "-m", "Done by b.", at=tree)
    assert shared.bob.state(task) == "WORK_REVIEW"
    shared.ada.sync()
    found = shared.bob.sync("--json", check=6).json()["data"]
    assert [one["event"] for one in found["rejected"]] == ["claim", "submit", "pass"]
    shared.met()
    shown = shared.bob.show(task)
    assert (shown["state"], shown["claimed_by"]) == ("WORK", "a")
    assert "Done by b." not in shown["body"]
    assert "Done by b." in shared.ada.manager("log", task, "--json").out
    assert shared.kinds(task)[-3:] == ["rejected"] * 3


@pytest.mark.slow
def test_an_offline_claim_of_a_task_that_is_not_here_yet_names_the_sync(shared: Shared) -> None:
    task = shared.ada.new("One", "--enter", "work")
    refused = shared.unchanged_by(lambda: shared.bob.alone("wim", "claim", task, "--json", check=4))
    assert error_of(refused)["message"] == f"There is no task {task}."
    assert error_of(refused)["hint"] == (
        "Run `git tasks sync` first if somebody else has written it down."
    )
    shared.bob.sync()
    shared.bob.alone("wim", "claim", task, "--no-worktree")


def test_an_offline_claim_that_nobody_else_wanted_stands(shared: Shared) -> None:
    task = shared.ready("One")
    with away(shared.remote):
        tree = shared.bob.begun(task, "b", "b\n", offline=True)
    shared.bob.sync()
    shared.bob.agent("b", "submit", "-m", "Done.", at=tree)
    shared.ada.sync()
    assert shared.ada.state(task) == "WORK_REVIEW"


@pytest.mark.slow
def test_a_paused_agent_is_fenced_by_a_claim_of_its_own_name_elsewhere(shared: Shared) -> None:
    task = shared.ready("One")
    data = shared.ada.agent("pi", "start", task, "--json").json()["data"]
    shared.ada.commit(Path(data["tree"]), {"pi.txt": "late\n"})
    later = {"PYTHONPATH": f"{CHECKOUT / 'tests/cases/clock'}:{CHECKOUT}"}
    env = {**later, "SECONDS_LATER": "90000", "GITTASKS_AGENT": "pi"}
    taking = tasks_process(shared.bob.folder, "start", task, "--json", env=env)
    out, err = taking.communicate(timeout=60)
    assert taking.returncode == 0, err
    before = shared.tip
    # Ada's clone does not know of it yet, and says so when it meets the others.
    late = shared.ada.agent("pi", "submit", "-m", "Done.", at=Path(data["tree"]))
    assert f"Your submit of {task} was not applied: its claim is stale" in late.err
    shared.met()
    shown = shared.bob.show(task)
    assert (shown["state"], shown["claim"]) == ("WORK", json.loads(out)["data"]["claim"])
    git(shared.remote, "merge-base", "--is-ancestor", before, LEDGER)
    shared.ada.agent("pi", "submit", "-m", "Done.", at=Path(data["tree"]), check=5)


# ------------------------------------------------------------------------------------ numbers


def test_a_number_taken_in_both_clones_goes_to_the_first(shared: Shared) -> None:
    with away(shared.remote):
        assert shared.ada.offline("new", "Of Ada").out == "000001\n"
        assert shared.bob.offline("new", "Of Bob").out == "000001\n"
        assert shared.bob.offline("new", "Needs it", "--dep", "1").out == "000002\n"
    shared.ada.sync()
    said = shared.bob.sync()
    assert said.out == ("origin: one event received, 3 events published, 000001 is now 000003\n")
    assert "The task 000001 of this clone is 000003 now: others had taken the number." in told(said)
    shared.met()
    for one in (shared.ada, shared.bob):
        titles = {t["id"]: t["title"] for t in one.manager("list", "--json").json()["data"]}
        assert titles == {"000001": "Of Ada", "000002": "Needs it", "000003": "Of Bob"}
        assert one.show("2")["depends_on"] == ["000003"]
        assert one.show("3")["former_ids"] == ["000001"]
    assert shared.kinds("000003") == ["create", "renumber"]


def test_the_second_sync_says_which_number_became_which_in_json(shared: Shared) -> None:
    with away(shared.remote):
        shared.ada.offline("new", "Of Ada")
        uid = shared.bob.offline("new", "Of Bob", "--json").json()["data"]["uid"]
    shared.ada.sync()
    found = shared.bob.sync("--json").json()
    assert found["kind"] == "sync"
    assert found["ledger"] == shared.tip
    assert found["data"] == {
        "remote": "origin",
        "received": 1,
        "published": 2,
        "pending": 0,
        "branches": [],
        "renumbered": [{"uid": uid, "old": "000001", "new": "000002"}],
        "lost": [],
        "rejected": [],
        "dry_run": False,
    }


def test_work_on_a_task_goes_on_after_it_got_another_number(shared: Shared) -> None:
    with away(shared.remote):
        shared.ada.offline("new", "Of Ada", "--enter", "work")
        shared.bob.offline("new", "Of Bob", "--enter", "work")
        data = shared.bob.alone("b", "start", "1", "--json").json()["data"]
        tree = Path(data["tree"])
        commit = shared.bob.commit(tree, {"b.txt": "b\n"})
    shared.ada.sync()
    shared.bob.sync()
    shown = shared.bob.show("2")
    assert (shown["title"], shown["claimed_by"]) == ("Of Bob", "b")
    assert shown["branch"] == shared.bob.git("symbolic-ref", "--short", "HEAD", at=tree)
    assert git(shared.remote, "rev-parse", f"refs/heads/{shown['branch']}") == commit
    # Whoever was started with the old number still means this task.
    env = {"GITTASKS_AGENT": "b", "GITTASKS_TASK": "000001", "GITTASKS_CLAIM": data["claim_secret"]}
    tasks_inprocess(tree, "note", ".", "Still at it", env=env)
    tasks_inprocess(tree, "submit", "-m", "Done.", env=env)
    assert shared.bob.state("2") == "WORK_REVIEW"
    assert shared.bob.state("1") == "WORK"
    other = shared.bob.start("1", "c")
    assert other != tree
    assert tree.is_dir()


def test_one_key_in_two_clones_is_one_task(shared: Shared) -> None:
    with away(shared.remote):
        for one in (shared.ada, shared.bob):
            one.offline("new", "Once", "--idempotency-key", "of both")
        shared.bob.offline("new", "Beside it")
    shared.ada.sync()
    said = shared.bob.sync()
    shared.met()
    rows = shared.ada.manager("list", "--json").json()["data"]
    assert [row["title"] for row in rows] == ["Once", "Beside it"]
    assert said.status == 0


# ------------------------------------------------------------------------- graph and documents


def test_the_second_of_two_edges_that_close_a_ring_is_spelled_out(shared: Shared) -> None:
    one, two = shared.ada.new("One", "--idle"), shared.ready("Two", "--idle")
    with away(shared.remote):
        shared.ada.offline("dep", "add", one, two)
        shared.bob.offline("dep", "add", two, one)
    shared.ada.sync()
    found = shared.bob.sync("--json", check=6).json()["data"]
    (refused,) = found["rejected"]
    assert (refused["event"], refused["task"]) == ("edit", two)
    assert refused["reason"] == (
        f"this would make a ring of dependencies: {two} needs {one}, {one} needs {two}"
    )
    shared.met()
    assert (shared.ada.show(one)["depends_on"], shared.bob.show(two)["depends_on"]) == ([two], [])
    rows = shared.bob.manager("inbox", "--json").json()["data"]
    assert [(row["id"], len(row["attention"])) for row in rows if row["id"] == two] == [(two, 1)]


def test_a_close_here_wins_over_an_edit_there(shared: Shared) -> None:
    task = shared.ready("One", "--idle")
    with away(shared.remote):
        shared.ada.offline("abort", task)
        shared.bob.offline("edit", task, "--title", "Renamed")
    shared.ada.sync()
    shared.bob.sync()
    shared.met()
    shown = shared.ada.show(task)
    assert (shown["state"], shown["title"]) == ("CLOSED", "One")
    assert "Renamed" in shared.ada.manager("log", task, "--json").out


@pytest.mark.slow
def test_an_edit_that_was_synced_first_does_not_stop_a_close(shared: Shared) -> None:
    task = shared.ready("One", "--idle")
    with away(shared.remote):
        shared.ada.offline("edit", task, "--title", "Renamed")
        shared.bob.offline("abort", task)
    shared.ada.sync()
    shared.bob.sync()
    shared.met()
    shown = shared.ada.show(task)
    assert (shown["state"], shown["title"], shown["outcome"]) == ("CLOSED", "Renamed", "aborted")


def test_an_approval_of_a_text_that_was_edited_meanwhile_does_not_count(shared: Shared) -> None:
    task = shared.ada.new("One")
    shared.ada.work(task, {"new.txt": "new\n"})
    shared.bob.sync()
    with away(shared.remote):
        shared.ada.manager("--offline", "edit", task, "-F", "-", stdin="Do more.\n")
        shared.bob.alone("rita", "claim", task)
        shared.bob.alone("rita", "submit", task)
    shared.ada.sync()
    found = shared.bob.sync("--json", check=6).json()["data"]
    assert [(one["event"], one["task"]) for one in found["rejected"]] == [("submit", task)]
    shared.met()
    shown = shared.ada.show(task)
    assert (shown["state"], shown["claimed_by"]) == ("WORK_REVIEW", "rita")
    shared.ada.manager("release", task, "--force")
    shared.bob.approve(task)
    assert shared.bob.state(task) == "MANAGER_REVIEW"


@pytest.mark.slow
def test_texts_that_differ_in_different_places_become_one(shared: Shared) -> None:
    task = shared.ada.manager("new", "One", "-F", "-", stdin="top\n\nmiddle\n\nend\n").out.strip()
    shared.bob.sync()
    with away(shared.remote):
        shared.ada.manager("--offline", "edit", task, "-F", "-", stdin="TOP\n\nmiddle\n\nend\n")
        shared.bob.manager("--offline", "edit", task, "-F", "-", stdin="top\n\nmiddle\n\nEND\n")
    shared.ada.sync()
    shared.bob.sync()
    shared.met()
    assert shared.ada.show(task)["body"] == "TOP\n\nmiddle\n\nEND\n"


def test_texts_that_differ_in_one_place_are_kept_both(shared: Shared) -> None:
    task = shared.ada.manager("new", "One", "-F", "-", stdin="old\n").out.strip()
    shared.bob.sync()
    with away(shared.remote):
        shared.ada.manager("--offline", "edit", task, "-F", "-", stdin="of Ada\n")
        shared.bob.manager("--offline", "edit", task, "-F", "-", stdin="of Bob\n")
    shared.ada.sync()
    said = shared.bob.sync()
    assert told(said) == [
        f"Bob edited {task}, but others have changed the same place of its text;"
        " what was written is in a note."
    ]
    shared.met()
    assert shared.bob.show(task)["body"] == "of Ada\n"
    assert "of Bob" in shared.ada.manager("log", task, "--json").out
    assert [r["id"] for r in shared.ada.manager("inbox", "--json").json()["data"]] == [task]


def test_a_field_that_both_changed_keeps_what_was_synced_first(shared: Shared) -> None:
    task = shared.ready("One", "--idle")
    with away(shared.remote):
        shared.ada.offline("edit", task, "--title", "Of Ada")
        shared.bob.offline("edit", task, "--title", "Of Bob", "--set", "priority=1")
    shared.ada.sync()
    said = shared.bob.sync(check=6)
    assert f"edit of {task} was not applied" in said.out
    shared.met()
    shown = shared.ada.show(task)
    assert (shown["title"], shown["priority"]) == ("Of Ada", 1)
    shared.ada.manager("note", task, "--seen")
    (row,) = shared.ada.manager("inbox", "--json").json()["data"]
    assert (row["reason"], row["attention"]) == ("not dispatched yet", [])


def test_a_setting_that_both_changed_keeps_what_was_synced_first(shared: Shared) -> None:
    with away(shared.remote):
        shared.ada.offline("config", "landing", "squash")
        shared.bob.offline("config", "landing", "rebase")
    shared.ada.sync()
    said = shared.bob.sync(check=6)
    assert "landing stays 'squash'" in said.err
    shared.met()
    assert shared.bob.manager("config", "landing").out == "squash\n"


# --------------------------------------------------------------------------- what a sync says


@pytest.mark.slow
def test_events_of_both_are_there_with_author_and_time(shared: Shared) -> None:
    tasks = [shared.ada.new(f"Task {n}") for n in range(3)]
    shared.bob.sync()
    for task in tasks:
        shared.bob.offline("note", task, f"note on {task}")
    form = "--format=%an %ae %at %s %(trailers:key=Event-Id)"
    wanted = shared.bob.git("log", "-3", form, LEDGER).splitlines()
    shared.ada.manager("note", tasks[0], "one")
    shared.ada.manager("note", tasks[1], "two")
    assert shared.bob.sync().out == "origin: 2 events received, 3 events published\n"
    now = git(shared.remote, "log", "-3", form, LEDGER).splitlines()
    assert now == wanted
    assert linear(shared.remote)
    before = shared.everything()
    assert shared.bob.sync().out == "origin: nothing to do\n"
    assert shared.everything() == before


def test_a_dry_run_says_what_would_be_done_and_does_nothing(shared: Shared) -> None:
    with away(shared.remote):
        shared.ada.offline("new", "Of Ada")
        shared.bob.offline("new", "Of Bob")
    shared.ada.sync()
    before = shared.everything()
    said = shared.bob.sync("--dry-run")
    assert said.out == (
        "origin: one event would be received, one event would be published, 000001 would be"
        " 000002\n"
    )
    assert shared.everything() == before
    assert shared.bob.sync("--dry-run", "--json").json()["data"]["dry_run"] is True


def test_a_push_does_not_take_over_and_a_pull_does_not_publish(shared: Shared) -> None:
    with away(shared.remote):
        shared.ada.offline("new", "Of Ada")
        shared.bob.offline("new", "Of Bob")
    shared.ada.manager("push")
    refused = shared.unchanged_by(lambda: shared.bob.manager("push", "--json", check=8))
    error = error_of(refused)
    assert (error["name"], error["hint"]) == (
        "SYNC", "Run `git tasks sync` to take them over first.",
    )  # fmt: skip
    remote = shared.tip
    pulled = shared.bob.manager("pull", "--json").json()["data"]
    assert (pulled["received"], pulled["published"], pulled["pending"]) == (1, 0, 2)
    assert shared.tip == remote
    assert shared.bob.manager("push").out == "origin: 2 events published\n"


def test_what_is_written_is_published_at_once_unless_told_otherwise(shared: Shared) -> None:
    task = shared.ready("One")
    shared.bob.manager("note", task, "goes at once")
    assert shared.tip == shared.bob.tip()
    shared.bob.offline("note", task, "stays")
    assert shared.tip != shared.bob.tip()
    shared.bob.git("config", "gittasks.autoSync", "false")
    shared.bob.manager("note", task, "stays too")
    assert shared.bob.sync().out == "origin: 2 events published\n"


def test_a_write_succeeds_and_says_so_when_it_cannot_be_published(shared: Shared) -> None:
    task = shared.ready("One")
    with away(shared.remote):
        said = shared.bob.manager("note", task, "Hello")
    assert said.err.count("Not published yet: ") == 1
    assert "`git tasks sync` does it later." in said.err
    assert shared.bob.sync().out == "origin: one event published\n"


def test_a_read_asks_nobody(shared: Shared) -> None:
    task = shared.ready("One")
    lines = (("list",), ("show", task), ("log",), ("inbox",), ("ready",), ("status",))
    with away(shared.remote):
        assert [shared.bob.manager(*line).err for line in lines] == [""] * len(lines)


# ---------------------------------------------------------------------------- the remote moves


def test_a_remote_that_was_set_back_is_offered_everything_again(shared: Shared) -> None:
    task = shared.ready("One")
    shared.bob.manager("note", task, "one")
    shared.bob.manager("note", task, "two")
    tip = shared.tip
    git(shared.remote, "update-ref", LEDGER, f"{tip}~2")
    said = shared.bob.sync()
    assert told(said) == ["The remote origin was set back by 2 events: all of it is offered again."]
    assert said.out == "origin: 2 events published\n"
    assert shared.tip == tip
    shared.ada.sync()
    assert shared.ada.tip() == tip


def test_a_remote_that_lost_its_ledger_gets_it_again(shared: Shared) -> None:
    task = shared.ready("One")
    tip = shared.tip
    git(shared.remote, "update-ref", "-d", LEDGER)
    said = shared.ada.sync()
    assert told(said) == ["The remote origin has lost its ledger; all events are offered again."]
    assert shared.tip == tip
    assert shared.ada.state(task) == "WORK"


def test_a_remote_that_was_rewritten_stops_the_sync_and_the_way_out_works(shared: Shared) -> None:
    task = shared.ready("One")
    shared.bob.manager("note", task, "lost on the remote")
    git(shared.remote, "update-ref", LEDGER, f"{shared.tip}~1")
    shared.ada.git("fetch", "-q", "origin", f"+{LEDGER}:{LEDGER}", check=False)
    shared.ada.git("update-ref", "-d", "refs/gittasks/remotes/origin")
    shared.ada.git("update-ref", "refs/gittasks/backup", f"{LEDGER}")
    shared.ada.manager("note", task, "instead")
    refused = shared.unchanged_by(lambda: shared.bob.sync("--json", check=8))
    error = error_of(refused)
    assert "was rewritten" in error["message"]
    assert error["message"].endswith("the tip it had before; one event is missing there.")
    way_out = error["hint"].split("accept what it has: ")[1].split(". Nothing")[0]
    first, second = way_out.split(" && ")
    shared.bob.git(*first.split(" ")[1:])
    assert second == "git tasks sync"
    shared.bob.sync()
    shared.met()
    texts = shared.ada.manager("log", task, "--json").out
    assert "lost on the remote" in texts
    assert "instead" in texts


def test_a_remote_that_dies_after_storing_is_no_failure_and_no_duplicate(shared: Shared) -> None:
    task = shared.ready("One")
    hook = install_hook(shared.remote, "post-update", "kill -9 $PPID")
    shared.bob.offline("note", task, "once")
    found = shared.bob.sync(check=None)
    hook.unlink()
    assert found.status == 0, found
    shared.met()
    assert shared.kinds(task).count("note") == 1
    assert linear(shared.remote)


def test_a_claim_stored_by_a_remote_that_dies_then_is_held(shared: Shared) -> None:
    task = shared.ready("One")
    hook = install_hook(shared.remote, "post-update", "kill -9 $PPID")
    shared.bob.start(task)
    hook.unlink()
    shared.met()
    assert shared.ada.show(task)["claimed_by"] == "wim"
    assert shared.kinds(task) == ["create", "submit", "claim"]


# --------------------------------------------------------------------- the user's own git


def test_a_fetch_of_the_users_own_changes_nothing(shared: Shared) -> None:
    task = shared.ready("One")
    shared.bob.offline("note", task, "mine")
    shared.ada.manager("note", task, "hers")
    shared.bob.git("fetch", "-q", "--prune", "origin")
    shared.bob.git("remote", "update", "--prune")
    assert shared.bob.sync().out == "origin: one event received, one event published\n"
    assert shared.kinds(task)[-2:] == ["note", "note"]


@pytest.mark.parametrize("words", [("--all",), pytest.param((), marks=pytest.mark.slow)])
def test_a_push_of_all_branches_by_the_user_loses_nothing(
    shared: Shared, words: tuple[str, ...]
) -> None:
    task = shared.ready("One")
    shared.bob.git("config", "push.default", "matching")
    shared.bob.offline("note", task, "mine")
    shared.ada.manager("note", task, "hers")
    tip = shared.tip
    shared.bob.git("push", "-q", *words, "origin", check=False)
    assert shared.tip == tip, "git refuses what is no fast-forward"
    shared.bob.sync()
    shared.bob.offline("note", task, "mine too")
    shared.bob.git("push", "-q", *words, "origin")
    assert shared.tip == shared.bob.tip(), "what is one is merely published"
    assert shared.bob.sync().out == "origin: nothing to do\n"
    shared.met()
    assert linear(shared.remote)


@pytest.mark.parametrize(
    "verb", ["sync", *(pytest.param(v, marks=pytest.mark.slow) for v in ("note", "claim"))]
)
def test_nothing_moves_while_the_ledger_is_checked_out(shared: Shared, verb: str) -> None:
    task = shared.ready("One")
    place = shared.bob.folder.parent / "looking"
    shared.bob.git("worktree", "add", "-q", str(place), "gittasks")
    shared.ada.manager("note", task, "news")
    line = {"sync": ("sync",), "note": ("note", task, "x"), "claim": ("claim", task)}[verb]
    refused = shared.unchanged_by(lambda: shared.bob.manager(*line, check=5))
    assert str(place) in refused.err
    assert git(place, "status", "--porcelain") == ""
    shared.bob.git("worktree", "remove", str(place))
    shared.bob.sync()
    assert shared.bob.tip() == shared.tip


# ------------------------------------------------------------------------ two who began apart


def test_two_who_began_apart_meet_at_the_same_root(home: Path) -> None:
    remote, *folders = two_clones(home)
    ada, bob = (Clone(folder) for folder in folders)
    for one in (ada, bob):
        one.manager("--offline", "init")
    ada.manager("--offline", "new", "Of Ada")
    bob.manager("--offline", "new", "Of Bob")
    begun = ada.sync()
    assert "This clone shares its ledger through origin from now on." in told(begun)
    ended = bob.sync()
    assert ended.status == 0
    ada.sync()
    assert ada.tip() == bob.tip() == git(remote, "rev-parse", LEDGER)
    titles = {row["title"] for row in ada.manager("list", "--json").json()["data"]}
    assert titles == {"Of Ada", "Of Bob"}
    assert linear(remote)
    ada.manager("fsck")
    assert refs_of(remote, "refs/gittasks/") == {}
