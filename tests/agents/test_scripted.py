"""A scripted agent plays its plan in a process of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gittasks.agents import orphans
from gittasks.agents.base import (
    Activity,
    Compacted,
    Exited,
    Retrying,
    Settled,
    Started,
    Usage,
)
from gittasks.agents.environment import agent_environment
from tests.agents.conversation import MARK, NOW, Conversation, probe, spec
from tests.support.git import git, make_repository


def player(folder: Path, plan: Any, *, session: str | None = None, **env: str) -> Conversation:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    more = {"GITTASKS_TASK": "000007", "GITTASKS_ROLE": "worker", **env}
    return Conversation(spec(folder, "scripted", str(path), **more)._replace(session=session))


def test_the_steps_of_a_turn_happen_in_their_order(tmp_path: Path) -> None:
    steps = [
        {"write": {"path": "deep/file", "text": "text"}},
        {"run": ["cat", "deep/file"]},
        {"say": "Hello."},
        {"usage": {"cost": 0.5, "tokens": 3}},
        {"activity": {"tool": "read", "target": "x"}},
        {"retrying": {"attempt": 2, "reason": "busy"}},
        {"compacted": "full"},
        {"sleep": 0.01},
    ]
    talk = player(tmp_path, {"default": steps})
    assert talk.turn()[1:] == [
        Activity("shell", "cat deep/file", '["cat", "deep/file"]'),
        Activity("shell", "cat deep/file", is_over=True),
        Usage(0.5, 3),
        Activity("read", "x"),
        Retrying(2, "busy"),
        Compacted("full"),
        Settled("done"),
    ]
    log = [json.loads(line) for line in talk.log.read_text().splitlines()]
    others = [line for line in log if line["event"] in ("told", "output", "ran", "said")]
    assert others == [
        {"event": "told", "prompt": "Work."},
        {"event": "output", "text": "text"},
        {"event": "ran", "code": 0},
        {"event": "said", "text": "Hello."},
    ]


def test_the_turns_go_on_where_another_process_of_the_session_stopped(tmp_path: Path) -> None:
    turns = {"000007": {"WORK": [[{"error": "one"}], [{"error": "two"}]]}, "default": []}
    first = player(tmp_path, turns)
    started = first.turn()[0]
    assert isinstance(started, Started)
    second = player(tmp_path, turns, session=started.session)
    assert [second.turn(), second.turn()] == [
        [started, Settled("error", "two")],
        [Settled("error", "two")],
    ]
    other = player(tmp_path, turns, GITTASKS_TASK="000008")
    assert other.turn()[1:] == [Settled("done")]


@pytest.mark.parametrize(
    ("step", "settled"),
    [
        ({"limit": 60}, Settled("limit", "The plan says so.", until=NOW + 60)),
        ({"error": {"outcome": "length"}}, Settled("length")),
        ({"error": {"text": "no", "is_retryable": False}}, Settled("error", "no", False)),
    ],
)
def test_a_step_can_end_the_turn_in_any_way(
    tmp_path: Path, step: dict[str, Any], settled: Settled
) -> None:
    talk = player(tmp_path, {"default": [step, {"say": "never"}]})
    assert talk.turn()[1:] == [settled]


@pytest.mark.parametrize("step", [{"sleep": 60}, {"run": ["sleep", "60"]}, {"hang": True}])
def test_an_interrupt_ends_the_turn_and_the_process_takes_the_next(
    tmp_path: Path, step: dict[str, Any]
) -> None:
    talk = player(tmp_path, {"default": [[{"usage": {}}, step], [{"say": "there"}]]})
    talk.run.prompt("Work.")
    talk.until_told(Usage)
    talk.run.interrupt()
    assert (talk.until_told(Settled)[-1], talk.turn()) == (Settled("aborted"), [Settled("done")])


def test_a_turn_can_wait_for_words_and_a_closed_player_ends(tmp_path: Path) -> None:
    talk = player(tmp_path, {"default": [{"usage": {}}, {"listen": 60}]})
    talk.run.prompt("Work.")
    talk.until_told(Usage)
    assert talk.run.steer("Faster.")
    assert talk.until_told(Settled) == [Settled("done")]
    talk.run.close()
    assert (talk.ended(), talk.run.pid) == ([Exited(0)], None)


def test_a_player_can_die(tmp_path: Path) -> None:
    talk = player(tmp_path, {"default": [{"die": True}]})
    talk.run.prompt("Work.")
    assert talk.ended()[1:] == [Exited(-9)]


def test_one_that_hears_nothing_is_killed_with_what_it_started(tmp_path: Path) -> None:
    steps = [{"run": ["sh", "-c", "sleep 60 &"]}, {"hang": "deaf"}]
    talk = player(tmp_path, {"default": steps}, **{MARK: "test.deaf"})
    talk.run.prompt("Work.")
    talk.until(lambda: talk.log.exists() and '"deaf"' in talk.log.read_text())
    talk.run.interrupt()
    talk.run.close()
    talk.run.terminate()
    assert talk.run.is_alive()
    talk.run.kill()
    assert (talk.ended()[-1:], orphans.marked("test.deaf")) == ([Exited(-9)], [])


def test_the_verbs_and_the_commits_are_those_of_the_environment(tmp_path: Path) -> None:
    tree = make_repository(tmp_path / "tree")
    (tmp_path / "ASSIGNMENT.md").write_text("# Task\n\n## Implementation Notes\n\n")
    script = 'case "$1" in show) echo "{\\"data\\": {\\"state\\": \\"WORK_REVIEW\\"}}";; *) printf "<%s>" "$@";; esac'
    env = agent_environment(
        os.environ,
        task="000007",
        role="reviewer",
        slot="scripted-1",
        secret="s",
        outbox="/nowhere",
        run="test.verbs",
        program=("/bin/sh", "-c", script, "git-tasks"),
        has_identity=False,
    )
    turn = [
        {"append": "It is done."},
        {"write": {"path": "new", "text": ""}},
        {"commit": "Add it."},
        {"submit": True},
        {"submit": {"no_change": True}},
        {"submit": "My section."},
        {"feedback": ["One.", "Two."]},
        {"hold": "Why?"},
    ]
    # A git-tasks that is installed would be found before the alias.
    talk = player(tmp_path, {"default": {"WORK_REVIEW": turn}}, **{**env, "PATH": os.defpath})
    talk.turn()
    log = [json.loads(line) for line in talk.log.read_text().splitlines()]
    assert [line["text"] for line in log if line["event"] == "output"] == [
        "<submit>",
        "<submit><--no-change>",
        "<submit><-m><My section.>",
        "<feedback><-m><One.><-m><Two.>",
        "<hold><--reason><Why?>",
    ]
    assert git(tree, "log", "-1", "--format=%s", "--name-only") == "Add it.\n\nnew"
    assert (tmp_path / "ASSIGNMENT.md").read_text().endswith("Notes\n\nIt is done.\n")


def test_every_fault_of_a_plan_is_a_problem(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    bad = [{"jump": 1}, {"say": 1}, {"say": "a", "sleep": 1}, 5, {"write": {"path": "x"}}]
    plan.write_text(json.dumps({"000001": {"WORK": [bad], "PLAN": 3}, "default": [{"sleep": -1}]}))
    assert probe("scripted", str(plan)) == tuple(
        f"In the plan {plan}, {fault}"
        for fault in (
            '000001, WORK: there is no step "jump".',
            '000001, WORK: {"say": 1} is not what say takes.',
            '000001, WORK: {"say": "a", "sleep": 1} is not an object with one key.',
            "000001, WORK: 5 is not an object with one key.",
            '000001, WORK: {"write": {"path": "x"}} is not what write takes.',
            "000001, PLAN is not a list of turns.",
            'default, default: {"sleep": -1} is not what sleep takes.',
        )
    )


def test_a_plan_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    missing = probe("scripted", str(plan))
    plan.write_text("{")
    broken = probe("scripted", str(plan))
    plan.write_text("[]")
    assert [missing, broken, probe("scripted", str(plan)), probe("scripted")] == [
        (f"The plan {plan} cannot be read: No such file or directory.",),
        (f"The plan {plan} is not JSON.",),
        (f"The plan {plan} is not an object of tasks.",),
        ("The command of a `scripted` agent is the path of its plan, and nothing else.",),
    ]
