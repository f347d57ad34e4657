"""The runner's own seat: checks that run beside the agents, and come to a verdict by themselves."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from gittasks.plumbing.locks import FileLock
from gittasks.plumbing.processes import with_variable
from gittasks.runner.checking import TRIES
from gittasks.runner.loop import Runner
from gittasks.workflow import trust
from gittasks.workflow.hold import hold
from tests.support.teams import Team, puppet


def submitted(team: Team, *checks: str) -> Runner:
    """Lets a task come to its checks; returns the runner."""
    team.is_running = True
    team.pool(puppet(roles=["worker"]))
    team.task(enter="work", checks=checks)
    runner = team.start()
    team.agent().submit()
    team.until_heard("settled")
    return runner


def waiting_check(team: Team, sign: Path) -> Runner:
    """Lets a check begin that runs for a long time, after it has left a sign."""
    runner = submitted(team, f"touch {sign}; sleep 600")
    team.until(sign.exists)
    return runner


def left_of(runner: Runner) -> dict[int, str]:
    """Returns the processes of the checks, and those of their commands."""
    host = runner.project.host
    return with_variable("GITTASKS_RUN", host) | with_variable("GITTASKS_CHECK", host)


def test_a_check_that_passes_lets_the_task_go_on(team: Team) -> None:
    submitted(team, "test -d .git || test -f .git")
    team.until_heard("checked")
    assert (team.state(), team.heard("checked")) == (
        "WORK_REVIEW",
        [{"task": "000001", "target": "WORK_REVIEW"}],
    )
    claims = [event.actor for event in team.history() if event.kind == "claim"]
    assert claims[-1] == "checker"


def test_commands_that_nobody_here_has_approved_are_not_run(team: Team, tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    team.pool(puppet(roles=["worker"]))
    team.task(enter="work", checks=[f"touch {sign}"])
    trust.revoke(team.project(), None)
    runner = team.start(once=True)
    team.agent().submit()
    team.until(lambda: team.state() == "CHECK")
    team.advance(3)
    assert (runner._has_ended(), team.holder(), sign.exists()) == (True, None, False)
    trust.approve(team.project(), "1")
    team.is_running = True
    team.until(lambda: team.state() == "WORK_REVIEW")


def test_checks_end_when_the_manager_holds_their_task(team: Team, tmp_path: Path) -> None:
    runner = waiting_check(team, tmp_path / "sign")
    hold(team.project(), "1", "Wait.")
    team.until_heard("checked")
    assert (team.is_held(), runner.checker.running) == (True, {})
    assert left_of(runner) == {}


def test_checks_end_with_their_runner_and_wait_for_the_next_one(team: Team, tmp_path: Path) -> None:
    runner = waiting_check(team, tmp_path / "sign")
    runner.stop("by order")
    team.tick()
    assert (team.state(), team.holder(), team.kinds()[-1]) == ("CHECK", None, "release")
    assert left_of(runner) == {}


def test_a_check_that_comes_to_no_verdict_is_left_alone_after_some_tries(team: Team) -> None:
    team.pool(puppet(roles=["worker"]))
    team.task(enter="work", checks=["true"])
    lock = team.folder / ".git" / "gittasks" / "checks" / "000001.flk"
    os.makedirs(lock.parent)
    is_held, is_over = threading.Event(), threading.Event()

    def keep() -> None:
        with FileLock(str(lock), 1):
            is_held.set()
            is_over.wait()

    thread = threading.Thread(target=keep)
    thread.start()
    assert is_held.wait(5)
    runner = team.start(once=True)
    team.agent().submit()
    for times in range(1, TRIES + 1):
        team.until(lambda: not runner.checker.running and team.heard("trouble"))
        team.until_heard("trouble", times)
        assert team.state() == "CHECK"
        team.advance(11)
    is_over.set()
    thread.join()
    assert runner._has_ended()
    assert {told["error"].partition(" are running")[0] for told in team.heard("trouble")} == {
        "The check did not come to a verdict: The checks of 000001"
    }
