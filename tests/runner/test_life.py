"""How a runner begins, what it does beside its agents, and when it is done."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gittasks.domain.config import parse_duration
from gittasks.domain.errors import Refused
from gittasks.domain.events import Claimed, Configured, Event
from gittasks.domain.pool import PoolFault
from gittasks.domain.times import timestamp
from gittasks.ledger import leases
from gittasks.prompts.fragments import BadPrompts
from gittasks.runner import loop
from gittasks.workflow import configure
from gittasks.workflow.hold import hold
from tests.support.git import git
from tests.support.teams import PUPPET, Team, puppet


def store_prompt(team: Team, name: str, text: bytes) -> None:
    """Puts a prompt into the ledger as another version of the tool might, unlooked at."""
    project = team.project()
    event = Event(
        event_id="", at=0, actor="Ada", role="manager", host=project.host,
        change=Configured(path=f"prompts/{name}.md"), body=text,
    )  # fmt: skip
    project.ledger.append(lambda _graph: (event,))


def files_below(folder: Path) -> dict[str, bytes]:
    """Returns all files of a folder with their content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def run(team: Team, **options: Any) -> loop.Result:
    """Runs the pool to its end, by the clock on the wall."""
    return loop.run(team.project(), tell=team.told.append, **options)  # type: ignore[arg-type]


# -- the beginning


@pytest.mark.parametrize(
    ("pool", "fault"),
    [
        ({"agents": [puppet(enabled=False)]}, "No agent is enabled."),
        ({"agents": []}, "agents: There is no agent."),
        ({"agents": [{"type": "parrot"}]}, "agents[0].type"),
    ],
)
def test_a_pool_with_nobody_in_it_starts_no_runner(
    team: Team, pool: dict[str, Any], fault: str
) -> None:
    team.pool(*pool["agents"])
    with pytest.raises(PoolFault) as caught:
        team.start()
    assert any(one.startswith(fault) for one in caught.value.faults)
    assert caught.value.exit_code == 2


def test_an_agent_at_work_starts_no_runner(team: Team) -> None:
    project = team.project(GITTASKS_RUN="mark")
    with pytest.raises(Refused, match="An agent of a runner starts no runner"):
        loop.Runner(project)


def test_a_faulty_prompt_of_the_project_starts_no_runner(team: Team) -> None:
    store_prompt(team, "DESIGN", b"Go.\n{{nmae}}\n")
    with pytest.raises(BadPrompts, match=r"prompts/DESIGN\.md, line 2"):
        team.start()


def test_a_faulty_prompt_that_arrives_leaves_the_last_good_one(team: Team) -> None:
    store_prompt(team, "DESIGN", b"Design it.\n")
    good = git(team.folder, "rev-parse", "gittasks:prompts/DESIGN.md")
    team.start()
    store_prompt(team, "DESIGN", b"Go.\n{{nmae}}\n")
    team.task()
    agent = team.agent()
    assert agent.prompts[0].endswith("Design it.\n")
    claimed = team.history()[-1].change
    assert isinstance(claimed, Claimed)
    assert dict(claimed.prompts) == {"DESIGN": good}
    [told] = team.heard("trouble")
    assert "prompts/DESIGN.md, line 2" in told["error"]
    configure.unset(team.project(), "prompts/DESIGN")
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    claimed = next(e.change for e in team.history()[::-1] if e.kind == "claim")
    assert isinstance(claimed, Claimed)
    assert claimed.prompts == ()


def test_a_claim_tells_how_its_agent_is_kept_apart_and_ends_with_the_runners_lease(
    team: Team,
) -> None:
    team.task()
    runner = team.start()
    team.agent()
    claimed = team.history()[-1]
    assert isinstance(claimed.change, Claimed)
    assert (claimed.actor, claimed.role, claimed.change.sandbox) == (PUPPET, "designer", "bare")
    assert team.heard("start")[0]["sandbox"] == runner.step == "bare"
    lease = parse_duration(team.project().settings.runner_lease)
    assert claimed.change.lease_expires == timestamp(int(team.now) + lease)


# -- what it does beside


def test_the_lease_of_an_agent_at_work_is_renewed_when_half_of_it_is_over(team: Team) -> None:
    team.task()
    runner = team.start()
    agent = team.agent()
    task = team.seen()
    for _ in range(2):
        team.advance(runner.lease / 2 - 1)
        agent.calls("make")
        team.tick()
    reader = team.project().ledger.reader
    renewed = leases.renewed(reader, task.id, str(task.claim))
    assert renewed == timestamp(int(team.now) + runner.lease)
    assert team.kinds()[2:] == ["claim"]


def test_the_users_own_command_runs_once_for_each_new_row_of_the_inbox(team: Team) -> None:
    log = team.folder.parent / "notices"
    command = team.folder.parent / "notify"
    command.write_text(f'#!/bin/sh\ncat >> {log}\necho "$GITTASKS_WATCH_TASK" >> {log}.tasks\n')
    command.chmod(0o700)
    team.configure("gittasks.notifyCommand", str(command))
    for title in ("One", "Two", "Three"):
        team.task(title, assignee="Ada")
    hold(team.project(), "1", "Which colour?")
    team.start()
    team.tick(2)
    hold(team.project(), "2", "Why?")
    team.tick(2)
    hold(team.project(), "3", "When?")
    team.tick(2)
    assert Path(f"{log}.tasks").read_text().split() == ["000002", "000003"]
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(row["signal"], row["task"], row["reason"]) for row in rows] == [
        ("inbox_added", "000002", "Why?"),
        ("inbox_added", "000003", "When?"),
    ]


def test_a_notice_that_fails_stops_nothing(team: Team) -> None:
    team.configure("gittasks.notifyCommand", "/bin/false")
    team.task()
    team.task("Two")
    team.start()
    agent = team.agent()
    hold(team.project(), "2", "Why?")
    team.tick()
    assert team.heard("trouble") == [{"error": "The command /bin/false ended with 1."}]
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")


def test_a_defect_at_one_seat_gives_its_task_back_and_the_others_go_on(team: Team) -> None:
    team.pool(puppet(slots=2))
    for title in ("One", "Two"):
        team.task(title)
    team.start()
    first, second = team.agents(2)
    first.defect, first.is_stubborn = ZeroDivisionError("division by zero"), True
    second.submit()
    team.until(lambda: team.state("000002") == "DESIGN_REVIEW")
    [told] = team.heard("trouble")
    assert told["error"] == "a defect (ZeroDivisionError('division by zero'))"
    assert os.path.exists(told["report"])
    for _ in range(2):
        team.advance(3.5)
    team.tick()
    assert (first.ways, team.kinds()[2:4]) == (["close", "terminate", "kill"], ["claim", "release"])


# -- the end


def test_a_dry_run_tells_who_would_be_given_what_and_writes_nothing(team: Team) -> None:
    team.pool(puppet(slots=2), puppet("south", roles=["planner"]))
    for title in ("One", "Two", "Three"):
        team.task(title)
    team.task("Four", enter="plan")
    before = files_below(team.folder / ".git"), git(team.folder, "rev-parse", "gittasks")
    done = run(team, dry_run=True)
    assert done.planned == (
        ("000004", "pi-north-m-1"),
        ("000001", "pi-north-m-2"),
    )
    assert (files_below(team.folder / ".git"), git(team.folder, "rev-parse", "gittasks")) == before
    assert (team.told, team.stage.puppets) == ([], [])


def test_a_dry_run_beside_a_runner_leaves_out_the_slots_that_it_has(team: Team) -> None:
    team.pool(puppet(slots=2, maxSlots=3))
    for title in ("One", "Two", "Three"):
        team.task(title)
    team.start()
    team.agents(2)
    team.slots()
    assert run(team, dry_run=True).planned == ()


def test_it_ends_when_nothing_is_left_that_it_could_do(team: Team) -> None:
    team.pool(team.script("hand submit\n", roles=["designer", "reviewer"]))
    team.task("One")
    team.task("Two", enter="work")
    done = run(team, once=True)
    assert [team.state(task) for task in ("000001", "000002")] == ["PLAN", "WORK"]
    why = "nobody here takes 000002, which waits for a worker"
    assert done == loop.Result(dispatched=2, settled=2, why=why)
    assert [told["event"] for told in team.told] == [
        "start", "dispatch", "settled", "dispatch", "settled", "end",
    ]  # fmt: skip


def test_it_ends_when_there_is_nothing_to_begin_with(team: Team) -> None:
    assert run(team, once=True) == loop.Result(why="the work is done")


def test_it_does_not_end_before_it_knows_whether_a_provider_is_there(team: Team) -> None:
    team.pool(team.script("hand submit\n", roles=["designer"], healthCheck=["sleep", "0.3"]))
    team.task()
    assert run(team, dry_run=True).planned == (("000001", "command-1"),)
    assert run(team, once=True).dispatched == 1


def test_it_gives_away_no_more_tasks_than_it_may(team: Team) -> None:
    team.pool(team.script("hand submit\n", slots=2))
    for title in ("One", "Two", "Three"):
        team.task(title)
    done = run(team, max_tasks=2)
    assert (done.dispatched, done.settled) == (2, 2)
    assert sorted(team.state(task) for task in ("000001", "000002", "000003")) == [
        "DESIGN",
        "DESIGN_REVIEW",
        "DESIGN_REVIEW",
    ]


def test_it_ends_although_a_task_can_never_be_begun(team: Team) -> None:
    team.pool(team.script("hand submit\n", roles=["designer"]))
    team.task()
    git(team.folder, "update-ref", "refs/heads/task/000001/x", "HEAD")
    runner = team.start(once=True)
    for _ in range(5):
        assert not runner._has_ended()
        team.advance(65)
    assert runner._has_ended()
    assert (team.state(), team.holder(), len(team.heard("trouble"))) == ("DESIGN", None, 5)
