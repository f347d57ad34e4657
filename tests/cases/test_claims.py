"""Who holds a task: races, claims that ended, agents that wake up late, names that repeat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gittasks.workspaces.records import own_process
from tests.cases.ground import Team, error_of
from tests.support.cli import CHECKOUT, tasks, tasks_process

CLOCK = Path(__file__).parent / "clock"


def later(seconds: int) -> dict[str, str]:
    """Returns the environment in which the clock of the command is wrong by so much."""
    return {
        "PYTHONPATH": f"{CLOCK}{os.pathsep}{CHECKOUT}",
        "SECONDS_LATER": str(seconds),
    }


@pytest.mark.parametrize("verb", ["claim", "start"])
def test_of_sixteen_who_want_one_task_one_gets_it(team: Team, verb: str) -> None:
    """Guards against two agents at work on the same task."""
    task = team.new("One")
    before = team.events()
    running = [
        tasks_process(team.folder, verb, task, "--json", env={"GITTASKS_AGENT": f"agent-{n}"})
        for n in range(16)
    ]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in running]
    (winner,) = [n for n, (_, _, status) in enumerate(ended) if status == 0]
    losers = [json.loads(out)["error"] for out, _, status in ended if status]
    assert [error["name"] for error in losers] == ["TAKEN"] * 15
    assert all(f"agent-{winner}" in error["message"] for error in losers)
    assert team.events() == before + 1
    assert team.show(task)["claimed_by"] == f"agent-{winner}"
    assert len(team.git("worktree", "list").splitlines()) == 2
    assert len(list((team.folder / ".git/gittasks/claims").iterdir())) == 1


def test_of_many_who_want_any_task_none_gets_anothers(team: Team) -> None:
    """Guards against an empty queue that fails instead of saying that it is empty."""
    names = [team.new(f"Task {n}") for n in range(3)]
    running = [
        tasks_process(team.folder, "start", "--next", env={"GITTASKS_AGENT": f"agent-{n}"})
        for n in range(8)
    ]
    ended = [process.communicate(timeout=60) for process in running]
    assert sorted(process.returncode for process in running) == [0] * 3 + [10] * 5, ended
    assert len({team.show(name)["claimed_by"] for name in names}) == 3


def test_what_another_claim_says_is_refused(team: Team) -> None:
    """Guards against a paused agent that wakes up and speaks for the one who took over."""
    task = team.new("One")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    team.manager("release", task, "--force")
    team.start(task, "wanda")
    before = team.tip()
    for words in (("submit", "-m", "Done."), ("release",), ("hold", "-m", "x")):
        refused = team.agent("wim", *words, "--json", at=tree, check=6)
        assert "wanda" in error_of(refused)["message"]
    assert team.tip() == before


def test_the_same_name_with_an_old_secret_is_refused(team: Team) -> None:
    """Guards against two processes of one name: the one that lost its claim must not go on."""
    task = team.new("One")
    first = team.agent("wim", "claim", task, "--json").json()["data"]
    team.manager("release", task, "--force")
    second = team.agent("wim", "claim", task, "--json").json()["data"]
    team.commit(Path(second["tree"]), {"new.txt": "new\n"})
    before = team.tip()
    old = {"GITTASKS_AGENT": "wim", "GITTASKS_CLAIM": first["claim_secret"]}
    refused = tasks(team.folder, "submit", task, "-m", "Done.", env=old, check=6)
    assert "wim" in refused.err
    assert team.tip() == before
    new = {"GITTASKS_AGENT": "wim", "GITTASKS_CLAIM": second["claim_secret"]}
    tasks(team.folder, "submit", task, "-m", "Done.", env=new)
    assert team.state(task) == "WORK_REVIEW"


def test_a_held_and_resumed_task_does_not_know_its_former_worker(team: Team) -> None:
    """Guards against two agents in one tree after a hold, and the stale one's submit."""
    task = team.new("One")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    team.manager("hold", task, "-m", "Wait.")
    refused = team.agent("wim", "submit", "-m", "Done.", at=tree, check=None)
    assert refused.status in (5, 6)
    team.manager("resume", task)
    refused = team.agent("wim", "submit", "-m", "Done.", at=tree, check=6)
    team.start(task, "wanda")
    refused = team.agent("wim", "submit", "-m", "Done.", "--json", at=tree, check=6)
    assert "wanda" in error_of(refused)["message"]
    assert team.show(task)["claimed_by"] == "wanda"


def test_an_expired_claim_may_be_taken_over_and_only_then_ends(team: Team) -> None:
    """Guards against a task that is stuck for ever with an agent that is gone."""
    task = team.new("One")
    tree = team.start(task)
    commit = team.commit(tree, {"new.txt": "new\n"})
    day = 25 * 3600
    refused = tasks(team.folder, "claim", task, "--as", "wanda", check=6)
    assert "wim" in refused.err
    row = json.loads(tasks(team.folder, "inbox", "--json", env=later(day)).out)["data"][0]
    assert row["id"] == task
    assert row["reason"] == "the lease of wim ran out"
    assert team.show(task)["claimed_by"] == "wim"
    tasks(team.folder, "claim", task, "--as", "wanda", env=later(day))
    assert team.show(task)["claimed_by"] == "wanda"
    assert team.git("rev-parse", "HEAD", at=tree) == commit
    assert team.agent("wim", "submit", "-m", "Done.", at=tree, check=6).status == 6
    kinds = [line.split()[1] for line in team.subjects()[:2]]
    assert kinds == ["claim", "release"]


def test_an_expired_claim_still_counts_while_nobody_took_over(team: Team) -> None:
    """Guards against work that is thrown away because it took a day and a minute."""
    task = team.new("One")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    env = {**later(25 * 3600), "GITTASKS_AGENT": "wim"}
    tasks(tree, "submit", "-m", "Done.", env=env)
    assert team.state(task) == "WORK_REVIEW"


def test_a_process_number_that_was_given_again_holds_no_claim(team: Team) -> None:
    """Guards against a claim that is permanent because another program got the number."""
    task = team.new("One")
    team.agent("wim", "claim", task)
    (file,) = (team.folder / ".git/gittasks/claims").iterdir()
    record = json.loads(file.read_text(encoding="utf-8"))
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        record["process"] = [sleeper.pid, "a start time of long ago"]
        file.write_text(json.dumps(record), encoding="utf-8")
        team.manager("release", task, "--force")
        team.agent("wanda", "claim", task)
    finally:
        sleeper.kill()
        sleeper.wait()
    assert team.show(task)["claimed_by"] == "wanda"


def test_a_former_agent_that_still_runs_keeps_others_out_of_the_tree(team: Team) -> None:
    """Guards against two processes that write into one tree."""
    task = team.new("One")
    team.agent("wim", "claim", task)
    (file,) = (team.folder / ".git/gittasks/claims").iterdir()
    record = json.loads(file.read_text(encoding="utf-8"))
    record["process"] = own_process()
    file.write_text(json.dumps(record), encoding="utf-8")
    team.manager("release", task, "--force")
    refused = team.agent("wanda", "claim", task, check=6)
    assert str(os.getpid()) in refused.err
    assert team.show(task)["claimed_by"] is None


@pytest.mark.parametrize("state", ["NEW", "BLOCKED", "HELD_WORK", "MANAGER_REVIEW", "CLOSED"])
def test_nobody_claims_what_no_agent_owns(team: Team, state: str) -> None:
    """Guards against an agent that takes a task whose next move is the manager's."""
    if state == "MANAGER_REVIEW":
        task = team.reviewed("One", {"new.txt": "new\n"})
    elif state == "BLOCKED":
        task = team.new("One", "--dep", team.new("First"))
    elif state == "NEW":
        task = team.new("One", "--idle")
    else:
        task = team.new("One")
        team.manager("hold", task, "-m", "Stop.")
        if state == "CLOSED":
            team.manager("abort", task)
    assert team.state(task) == state
    before = team.tip()
    refused = team.agent("wim", "claim", task, "--json", check=5)
    assert ("aborted" if state == "CLOSED" else state) in error_of(refused)["message"]
    assert team.tip() == before


def test_a_claim_while_the_task_is_aborted_gets_nothing(team: Team) -> None:
    """Guards against a task that is aborted while its agent is on the way, and worked on anyway."""
    for _ in range(3):
        task = team.new("One")
        team.manager("hold", task, "-m", "Stop.")
        team.manager("resume", task)
        starting = tasks_process(team.folder, "start", task, env={"GITTASKS_AGENT": "wim"})
        time.sleep(0.05)
        held = team.manager("hold", task, "-m", "No.", check=None)
        aborted = team.manager("abort", task, check=None)
        out, err = starting.communicate(timeout=60)
        assert (held.status, aborted.status) == (0, 0)
        shown = team.show(task)
        assert (shown["outcome"], shown["claimed_by"]) == ("aborted", None)
        assert starting.returncode in (0, 5), (out, err)
        refused = team.agent("wim", "submit", task, "-m", "Done.", check=None)
        assert refused.status in (5, 6)


def test_two_creates_at_once_get_two_numbers(team: Team) -> None:
    """Guards against two tasks under one number."""
    running = [tasks_process(team.folder, "new", f"Task {n}") for n in range(12)]
    made = sorted(process.communicate(timeout=60)[0].strip() for process in running)
    assert made == [f"{n:06d}" for n in range(1, 13)]
    team.manager("fsck")


def test_a_proposal_of_an_agent_waits_for_the_manager(team: Team) -> None:
    """Guards against agents that widen their own scope."""
    proposed = team.agent("wim", "new", "Refactor everything").out.strip()
    shown = team.show(proposed)
    assert (shown["state"], shown["proposed_by"]) == ("NEW", "wim")
    team.agent("wim", "submit", proposed, check=5)
    team.agent("wim", "claim", proposed, check=5)
    rows = team.manager("inbox", "--json").json()["data"]
    assert [row["id"] for row in rows] == [proposed]
