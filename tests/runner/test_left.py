"""What is left of a claim when its agent, its runner or the disk did not do as they should."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gittasks.plumbing.locks import FileLock
from gittasks.plumbing.processes import process_identity
from gittasks.workflow import settle
from gittasks.workflow.claim import Hired, claim
from gittasks.workspaces import records, runs
from gittasks.workspaces.records import Process
from tests.support.teams import PUPPET, Team

ID = "0123456789abcdef0123456789abcdef"
DEAD: Process = (2**22 - 1, "1")


def living() -> Process:
    """Returns a process that lives and is not this one."""
    found = process_identity(os.getppid())
    assert found is not None
    return found


def left_behind(team: Team, runner: Process, agent: Process | None = DEAD) -> runs.RunRecord:
    """Leaves a claim and its run as another runner does."""
    project = team.project()
    claimed = claim(project, "1", hired=Hired("other-1", "designer", 600, runner))
    record = records.with_claim(
        project.state_dir, records.claim_of(str(claimed.extra["claim_secret"]))
    )
    assert record is not None
    records.write(project.state_dir, record._replace(process=agent or runner))
    outbox = os.path.join(project.state_dir, "agents", record.task, "outbox", record.claim)
    os.makedirs(outbox)
    run = runs.RunRecord(
        record.claim, record.task, record.uid, record.actor, "designer", "DESIGN",
        f"{project.host}.{record.claim}", outbox, "", runner, agent,
    )  # fmt: skip
    runs.write(project.state_dir, run)
    return run


@contextmanager
def locked(team: Team) -> Iterator[None]:
    """Keeps everybody from writing to the ledger."""
    is_held, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with FileLock(str(team.folder / ".git" / "gittasks" / "write.flk"), 1):
            is_held.set()
            is_over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(5)
    yield
    is_over.set()
    thread.join()


def test_what_a_living_runner_has_between_two_prompts_is_its_own(team: Team) -> None:
    team.task()
    left_behind(team, living())
    team.start()
    for _ in range(3):
        team.advance(11)
    assert (team.holder(), team.kinds()[2:]) == ("other-1", ["claim"])


def test_what_a_dead_runner_had_is_given_back_and_taken_up_again(team: Team) -> None:
    team.task()
    run = left_behind(team, DEAD)
    team.start()
    assert team.agent().task == "000001"
    assert team.kinds()[2:] == ["claim", "release", "claim"]
    assert team.history()[3].text == settle.RUNNER_DIED
    assert (os.path.exists(run.outbox), team.holder()) == (False, PUPPET)


def test_what_a_dead_runners_agent_had_handed_in_is_recorded(team: Team) -> None:
    team.task()
    run = left_behind(team, DEAD)
    for name, verb in ((ID, "note"), (ID[::-1], "submit")):
        entry = {"verb": verb, "task": run.task, "claim": run.claim, "text": "As asked."}
        Path(run.outbox, f"{name}.json").write_text(json.dumps(entry), encoding="utf-8")
    team.start()
    assert team.state() == "DESIGN_REVIEW"
    assert [(event.kind, event.actor) for event in team.history()[2:5]] == [
        ("claim", "other-1"),
        ("note", "other-1"),
        ("submit", "other-1"),
    ]


def test_a_remark_that_is_refused_does_not_take_the_result_with_it(team: Team) -> None:
    team.task()
    run = left_behind(team, DEAD)
    for name, verb in ((ID, "note"), (ID[::-1], "submit")):
        entry = {"verb": verb, "task": run.task, "claim": run.claim, "text": "Yes.", "seen": True}
        Path(run.outbox, f"{name}.json").write_text(json.dumps(entry), encoding="utf-8")
    team.start()
    assert (team.state(), len(team.heard("outbox"))) == ("DESIGN_REVIEW", 1)


def test_one_run_that_cannot_be_settled_keeps_no_other_from_it(team: Team) -> None:
    for title in ("One", "Two"):
        team.task(title)
    run = left_behind(team, DEAD)
    runs.write(team.project().state_dir, run._replace(task="000777", started_at=-1.0))
    team.start()
    assert team.agent().task == "000001"


def test_a_task_that_could_not_be_given_back_at_once_is_given_back_later(team: Team) -> None:
    team.configure("gittasks.lockTimeout", "0.05")
    team.task()
    runner = team.start()
    agent = team.agent()
    agent.leave("note", text="Read it all.")
    agent.leave("submit", text="As asked.")
    with locked(team):
        runner.stop("by order")
        team.tick(2)
        assert (agent.is_alive(), team.holder()) == (False, PUPPET)
    team.advance(11)
    assert (team.state(), team.kinds()[2:]) == ("DESIGN_REVIEW", ["claim", "note", "submit"])
    assert runs.all(runner.project.state_dir) == []


def test_a_turn_that_could_not_be_settled_at_once_is_settled_later(team: Team) -> None:
    team.configure("gittasks.lockTimeout", "0.05")
    team.task()
    team.start()
    agent = team.agent()
    with locked(team):
        agent.submit()
        team.tick(2)
        assert agent.is_alive()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    assert (team.kinds()[2:4], len(agent.prompts)) == (["claim", "submit"], 1)
