"""What a finished turn of an agent comes to: a word to go on with, a hold, or the next agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gittasks.agents.base import Activity, Exited
from gittasks.domain.turn import ISSUES
from gittasks.workflow.edit import edit
from tests.support.git import git
from tests.support.teams import PUPPET, Puppet, Team

PROMPTS = Path(__file__).resolve().parents[2] / "gittasks" / "prompts"


def says_nothing(agent: Puppet) -> None:
    agent.settle()


def submits_an_empty_section(agent: Puppet) -> None:
    agent.leave("submit")
    agent.settle()


def submits_work_without_notes(agent: Puppet) -> None:
    agent.leave("submit", tip=agent.work())
    agent.settle()


def changes_its_assignment(agent: Puppet) -> None:
    path = agent.tree.parent / "ASSIGNMENT.md"
    path.write_text("Mine.\n" + path.read_text())
    agent.leave("submit", text="As asked.")
    agent.settle()


def leaves_a_file_behind(agent: Puppet) -> None:
    (agent.tree / "more.txt").write_text("more\n")
    agent.leave("submit", text="As asked.")
    agent.settle()


def commits_something_else(agent: Puppet) -> None:
    tip = git(agent.tree, "commit-tree", "HEAD^{tree}", "-m", "Another beginning")
    git(agent.tree, "reset", "-q", "--hard", tip)
    agent.leave("submit", text="As asked.", tip=tip)
    agent.settle()


def goes_round_in_circles(agent: Puppet) -> None:
    agent.calls("make", 10)
    agent.settle("aborted")


def is_broken_off(agent: Puppet) -> None:
    agent.tell(Activity("shell", "sleep 9"))
    agent.settle("aborted")


@pytest.mark.parametrize(
    ("issue", "enter", "does", "told"),
    [
        ("missing-result", "design", says_nothing, ""),
        ("missing-design", "design", submits_an_empty_section, "Nothing is written"),
        ("missing-todos", "plan", submits_an_empty_section, "Nothing is written"),
        ("missing-notes", "work", submits_work_without_notes, "Nothing is written"),
        ("modified-assignment", "design", changes_its_assignment, "is restored"),
        ("uncommitted", "work", leaves_a_file_behind, "more.txt"),
        ("rewritten", "work", commits_something_else, "no longer"),
        ("modified-worktree", "design", leaves_a_file_behind, "more.txt"),
        ("looping", "design", goes_round_in_circles, "make"),
    ],
)
def test_an_issue_is_answered_so_often_and_then_holds_the_task(
    team: Team, issue: str, enter: str, does: Callable[[Puppet], None], told: str
) -> None:
    team.task(enter=enter)
    team.start()
    agent = team.agent()
    attempts = ISSUES[issue].attempts  # type: ignore[index]  # the table has it
    for attempt in range(1, attempts + 1):
        does(agent)
        team.until_told(agent, attempt + 1)
    assert team.heard("nudge") == [
        {"slot": PUPPET, "task": "000001", "issue": issue, "attempt": number + 1}
        for number in range(attempts)
    ]
    own_words = (PROMPTS / f"{issue}.md").read_text()[:40]
    assert {prompt[:40] for prompt in agent.prompts[1:]} == {own_words}
    assert told in agent.prompts[-1]
    does(agent)
    team.until(team.is_held)
    held = f"{issue}: the agent {ISSUES[issue].held}, {attempts + 1} times"  # type: ignore[index]
    assert str(team.seen().held_reason).startswith(held)
    team.rest()
    assert (team.holder(), agent.is_alive(), len(team.stage.puppets)) == (None, False, 1)


def test_a_program_of_one_prompt_is_told_everything_each_time(team: Team) -> None:
    team.pool(team.script('test "$turn" = 1 || hand submit\n'))
    team.task()
    team.start()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    told = team.folder.parent / "told" / "000001"
    first, second = ((told / str(turn)).read_text(encoding="utf-8") for turn in (1, 2))
    assert second.startswith(f"{first}\n\n")
    assert second.removeprefix(first).strip().startswith("Finish what is left")


def test_an_issue_does_not_use_up_the_attempts_of_another(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    for does in (goes_round_in_circles, is_broken_off) * 3:
        does(agent)
        team.until_told(agent, len(agent.prompts) + 1)
    assert team.holder() == PUPPET
    is_broken_off(agent)
    team.until(team.is_held)
    assert team.seen().held_reason == (
        "aborted: the agent ran a command that had to be stopped, 4 times: sleep 9"
    )


def test_a_blocked_agent_is_asked_once_and_then_its_own_words_hold_the_task(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.leave("hold", reason="Which colour?")
    agent.settle()
    team.until_told(agent, 2)
    assert (team.state(), list(agent.outbox.iterdir())) == ("DESIGN", [])
    assert "Which colour?" in agent.prompts[1]
    agent.leave("hold", reason="Red or blue? I would take red.")
    agent.settle()
    team.until(team.is_held)
    assert team.seen().held_reason == "Red or blue? I would take red."
    assert (team.history()[-1].actor, team.history()[-1].kind) == (PUPPET, "hold")


def test_a_blocked_agent_that_goes_on_is_not_held(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.leave("hold", reason="Which colour?")
    agent.settle()
    team.until_told(agent, 2)
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    assert "hold" not in team.kinds()


def test_the_last_valid_entry_of_a_turn_counts(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.leave("hold", reason="Which colour?")
    agent.leave("submit", text="Red.")
    agent.leave("submit", text="Blue.")
    agent.leave("submit", text="")
    agent.settle()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    body = team.project().ledger.graph().body("000001").decode()
    assert ("Blue." in body, "Red." in body) == (True, False)


def test_a_result_counts_also_where_the_program_ended_badly(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.leave("submit", text="As asked.")
    agent.die()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    assert team.kinds()[2:4] == ["claim", "submit"]


def test_what_a_dead_agent_leaves_behind_is_killed_at_once(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.die(137)
    agent.is_there = True
    team.until(lambda: team.holder() is None)
    assert agent.ways == ["kill"]


def test_ten_equal_calls_in_a_row_are_broken_off_in_the_middle_of_the_turn(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.calls("make", 9)
    agent.calls("make test")
    agent.calls("make", 9)
    team.tick()
    assert agent.ways == []
    agent.calls("make")
    team.tick()
    assert agent.ways == ["interrupt"]
    agent.settle("aborted")
    team.until_told(agent, 2)
    assert team.heard("nudge")[0]["issue"] == "looping"


def test_an_agent_that_is_silent_for_too_long_is_interrupted(team: Team) -> None:
    team.configure("gittasks.agentTimeout", "20m")
    team.task()
    team.start()
    agent = team.agent()
    agent.tell(Activity("shell", "make"))
    team.advance(1199)
    team.advance(1199)
    assert agent.ways == []
    team.advance(2)
    assert agent.ways == ["interrupt"]
    agent.settle("aborted")
    team.until_told(agent, 2)
    assert team.heard("nudge")[0]["issue"] == "aborted"
    assert "make" in agent.prompts[1]


def test_an_agent_that_hears_no_interruption_is_killed_and_replaced(team: Team) -> None:
    team.configure("gittasks.agentTimeout", "20m")
    team.task()
    team.start()
    agent = team.agent()
    team.advance(1201)
    team.advance(9)
    assert agent.ways == ["interrupt"]
    team.advance(2)
    assert agent.ways == ["interrupt", "kill"]
    agent.die()
    other = team.agent()
    assert team.heard("nudge")[0]["issue"] == "aborted"
    assert (other.session, team.kinds()[-1]) == (agent.session, "claim")


def test_an_agent_that_died_gives_the_task_back_and_the_fifth_in_a_row_holds_it(
    team: Team,
) -> None:
    team.task()
    team.start()
    for _ in range(5):
        team.advance(100)
        team.agent().die()
        team.tick(2)
    team.until(team.is_held)
    assert team.seen().held_reason == "5 agents in a row died; the last one said: it ended with -9"
    assert team.kinds()[2:] == ["claim", "release"] * 4 + ["claim", "hold"]
    assert [died["error"] for died in team.heard("died")] == ["it ended with -9"] * 4


def test_deaths_that_something_lies_between_do_not_add_up(team: Team) -> None:
    team.task()
    team.start()
    for _ in range(4):
        team.advance(100)
        team.agent().die()
        team.tick(2)
    team.advance(100)
    team.agent().submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    team.advance(100)
    team.agent().die()
    team.until(lambda: team.kinds()[-1] == "release")
    assert team.state() == "DESIGN_REVIEW"


def test_a_script_that_fails_four_times_in_a_row_holds_its_task(team: Team) -> None:
    team.pool(team.script("echo broken >&2; exit 3\n"))
    team.task()
    team.start()
    team.until_heard("retry")
    for count in (2, 3):
        team.advance(10)
        team.until_heard("retry", count)
    team.advance(10)
    team.until(team.is_held)
    assert team.seen().held_reason == ("The agent cannot be run (4 times): exit code 3\nbroken")
    assert len(set(team.prompts())) == 1


def test_a_program_that_cannot_be_tried_again_holds_its_task_at_once(team: Team) -> None:
    team.task()
    team.start()
    team.agent().settle("error", "The key is wrong.", is_retryable=False)
    team.until(team.is_held)
    assert team.seen().held_reason == "The agent cannot be run: The key is wrong."


def test_whoever_exits_without_dying_of_it_is_only_replaced(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.settle()
    agent.tell(Exited(0))
    other = team.agent()
    assert (other.spec.session, len(other.prompts)) == (agent.session, 1)
    assert team.heard("nudge")[0]["issue"] == "missing-result"


def test_the_assignment_changed_by_the_manager_is_handed_out_and_can_then_be_met(
    team: Team,
) -> None:
    team.task(body=b"## Goal\n\nRed.\n")
    team.start()
    agent = team.agent()
    edit(team.project(), "000001", body=b"## Goal\n\nBlue.\n", force=True)
    agent.leave("submit", text="As asked.")
    agent.settle()
    team.until_told(agent, 2)
    assert team.heard("nudge")[0]["issue"] == "assignment-changed"
    assert "Blue." in (agent.tree.parent / "ASSIGNMENT.md").read_text()
    agent.submit("In blue.")
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    assert b"In blue." in team.project().ledger.graph().body("000001")


def test_an_assignment_that_changes_again_and_again_holds_the_task(team: Team) -> None:
    team.task(body=b"## Goal\n\nRed.\n")
    team.start()
    agent = team.agent()
    for times in range(1, 6):
        edit(team.project(), "000001", body=b"## Goal\n\nRed %d.\n" % times, force=True)
        agent.leave("submit", text="As asked.")
        agent.settle()
        team.until(lambda: not any(agent.outbox.glob("*.json")))
    assert [told["attempt"] for told in team.heard("nudge")] == [1, 2, 3, 4]
    assert str(team.seen().held_reason).startswith(
        "assignment-changed: the agent submitted what no longer answers the changed assignment,"
        " 5 times: "
    )
