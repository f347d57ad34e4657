"""A task from its beginning to the manager, with agents in processes of their own."""

from __future__ import annotations

import json
from typing import Any

from tests.support.teams import Team

PLAN = {
    "DESIGN": [{"submit": "Say it in app.txt."}],
    "DESIGN_REVIEW": [{"submit": True}],
    "PLAN": [{"submit": "1. Write app.txt."}],
    "PLAN_REVIEW": [{"submit": True}],
    "WORK": [
        [
            {"write": {"path": "app.txt", "text": "hello\n"}},
            {"commit": "Say it."},
            {"write": {"path": "scratch.txt", "text": "scratch\n"}},
            {"submit": "Said."},
            {"run": ["rm", "scratch.txt"]},
            {"submit": "Said."},
        ],
        [
            {"write": {"path": "app.txt", "text": "hello, world\n"}},
            {"commit": "Say more."},
            {"submit": "Said to the world."},
        ],
        [
            {"write": {"path": "app.txt", "text": "Hello, world\n"}},
            {"commit": "Begin with a capital."},
            {"submit": "With a capital."},
        ],
    ],
    "WORK_REVIEW": [[{"feedback": ["Begin with a capital letter."]}], [{"submit": True}]],
}


def test_a_task_comes_to_the_manager_through_a_check_and_a_review_that_refuse_it(
    team: Team,
) -> None:
    team.is_running = True
    team.pool(team.plan({"default": PLAN}))
    team.task(checks=["grep world app.txt"])
    runner = team.start()
    team.until(lambda: team.state() == "MANAGER_REVIEW", 60)
    team.rest()

    assert [(e.kind, e.source, e.target) for e in team.history() if e.source != e.target] == [
        ("create", None, "NEW"),
        ("submit", "NEW", "DESIGN"),
        ("submit", "DESIGN", "DESIGN_REVIEW"),
        ("submit", "DESIGN_REVIEW", "PLAN"),
        ("submit", "PLAN", "PLAN_REVIEW"),
        ("submit", "PLAN_REVIEW", "WORK"),
        ("submit", "WORK", "CHECK"),
        ("fail", "CHECK", "WORK"),
        ("submit", "WORK", "CHECK"),
        ("pass", "CHECK", "WORK_REVIEW"),
        ("feedback", "WORK_REVIEW", "WORK"),
        ("submit", "WORK", "CHECK"),
        ("pass", "CHECK", "WORK_REVIEW"),
        ("submit", "WORK_REVIEW", "MANAGER_REVIEW"),
    ]
    assert runner.counts | {"checked": 0} == {
        "dispatched": 9, "settled": 9, "held": 0, "died": 0, "checked": 0,
    }  # fmt: skip
    assert team.heard("nudge") == []

    turns = turns_of(team)
    brief = "You are the {}"
    begun = [text.splitlines()[0] for _, text in turns]
    assert [line.partition(" of")[0] for line in begun] == [
        brief.format("designer"), brief.format("reviewer"), brief.format("planner"),
        brief.format("reviewer"), brief.format("worker"),
        "Make these commands succeed in this tree:",
        brief.format("reviewer"), brief.format("worker"), brief.format("reviewer"),
    ]  # fmt: skip
    sessions = [session for session, _ in turns]
    assert sessions[5] == sessions[4]
    assert len(set(sessions)) == 8
    assert "> grep world app.txt" in turns[5][1]
    assert "> Begin with a capital letter." in turns[7][1]


def turns_of(team: Team) -> list[tuple[str, str]]:
    """Returns the session and the prompt of every turn, from the log of the slot."""
    log = team.folder / ".git" / "gittasks" / "agents" / "000001" / "scripted-1.log"
    told: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    turns, session = [], ""
    for one in told:
        if one["event"] == "started":
            session = one["session"]
        elif one["event"] == "told" and "prompt" in one:
            turns.append((session, one["prompt"]))
    return turns
