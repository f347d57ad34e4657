"""kill -9 of the real command at each step of a write, of `start` and of a landing.

After each death the world is either as before or as after, the next command finishes or undoes
the rest, and the same command given again has the effect of once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import tasks
from tests.support.deaths import PEOPLE, World, kill, parts, some, steps
from tests.support.git import git, make_repository

# Dozens of deaths, each with several commands after it; on a busy machine they take minutes.
pytestmark = pytest.mark.timeout(900)


def _state(world: World, task: str) -> dict[str, object]:
    data = tasks(world.repo, "show", task, "--json").json()["data"]
    assert isinstance(data, dict)
    return data


def _subjects(world: World) -> list[str]:
    return git(world.repo, "log", "--format=%s", "gittasks", "--").splitlines()


def _assert_sound(world: World) -> None:
    tasks(world.repo, "fsck")
    locks = [str(p) for p in world.repo.joinpath(".git").rglob("*.lock")]
    assert locks == []
    assert git(world.repo, "status", "--porcelain") == ""
    assert git(world.repo, "fsck", "--connectivity-only", "--no-dangling") == ""


PARTS = parts(4, quick=1)
"""A quarter of the steps in every run of the suite, all of them with the marker `slow`."""


def _world(tmp_path: Path) -> World:
    home = tmp_path / "home"
    make_repository(home / "repo")
    tasks(home / "repo", "init")
    return World(home, tmp_path / "pristine")


@pytest.fixture
def ready(tmp_path: Path) -> World:
    """Returns a world with one task at WORK and one that waits for it."""
    world = _world(tmp_path)
    tasks(world.repo, "new", "First", "--enter", "work")
    tasks(world.repo, "new", "Second", "--dep", "1", "--enter", "work")
    return world.keep()


@pytest.fixture
def reviewed(tmp_path: Path) -> World:
    """Returns a world whose first task waits for the manager, with a worktree and a check."""
    world = _world(tmp_path)
    env = {**PEOPLE, "GITTASKS_AGENT": "ada"}
    tasks(world.repo, "new", "First", "--enter", "work", "--check", "true")
    tasks(world.repo, "new", "Second", "--dep", "1", "--enter", "work")
    tree = tasks(world.repo, "start", "1", env=env).out.strip()
    Path(tree, "new.txt").write_text("new\n", encoding="utf-8")
    git(tree, "add", "new.txt")
    git(tree, "commit", "-q", "-m", "Write new.txt")
    tasks(tree, "submit", "-m", "1. Done.", env=env)
    tasks(world.repo, "claim", "1", "--no-worktree", env={"GITTASKS_AGENT": "rita"})
    tasks(world.repo, "submit", "1", env={"GITTASKS_AGENT": "rita"})
    return world.keep()


def test_a_write_dies_at_each_step_and_is_there_once_when_given_again(ready: World) -> None:
    command = ("hold", "1", "--reason", "wait")
    count = steps(ready, command, None)
    assert count >= 5
    for step in range(1, count + 1):
        kill(ready, command, None, step)
        assert _state(ready, "1")["state"] in ("WORK", "HELD_WORK"), step
        tasks(ready.repo, *command)
        assert _state(ready, "1")["state"] == "HELD_WORK", step
        held = [line for line in _subjects(ready) if " hold " in line]
        assert len(held) == 1, (step, held)
        _assert_sound(ready)
        ready.restore()


@pytest.mark.parametrize(("part", "parts"), PARTS)
def test_a_start_dies_at_each_step_and_the_same_agent_goes_on(
    ready: World, part: int, parts: int
) -> None:
    command = ("start", "1")
    count = steps(ready, command, "ada")
    assert count >= 8
    for step in some(count, part, parts):
        kill(ready, command, "ada", step)
        again = tasks(ready.repo, *command, env={"GITTASKS_AGENT": "ada"})
        tree = again.out.strip()
        assert git(tree, "status", "--porcelain") == "", step
        assert git(tree, "symbolic-ref", "HEAD") == "refs/heads/task/000001"
        assert Path(tree).parent.joinpath("ASSIGNMENT.md").exists()
        assert _state(ready, "1")["claimed_by"] == "ada", step
        claims = [line for line in _subjects(ready) if " claim " in line]
        assert len(claims) == 1, (step, claims)
        listed = git(ready.repo, "worktree", "list", "--porcelain")
        assert listed.count("worktree ") == 2, (step, listed)
        assert "prunable" not in listed
        _assert_sound(ready)
        ready.restore()


@pytest.mark.parametrize(("part", "parts"), PARTS)
def test_a_landing_dies_at_each_step_and_is_finished_or_undone(
    reviewed: World, part: int, parts: int
) -> None:
    command = ("submit", "1")
    count = steps(reviewed, command, None)
    assert count >= 15
    before = git(reviewed.repo, "rev-parse", "master")
    for step in some(count, part, parts):
        kill(reviewed, command, None, step)
        tasks(reviewed.repo, "note", "2", "somebody writes")
        state = _state(reviewed, "1")["state"]
        landed = git(reviewed.repo, "rev-parse", "master") != before
        assert (state == "CLOSED") == landed, (step, state, landed)
        tasks(reviewed.repo, *command)
        assert _state(reviewed, "1")["outcome"] == "landed", step
        assert _state(reviewed, "2")["state"] == "WORK", step
        first_parents = git(reviewed.repo, "log", "--first-parent", "--format=%s", "master")
        assert first_parents.splitlines().count("000001: First") == 1, (step, first_parents)
        assert (reviewed.repo / "new.txt").read_text(encoding="utf-8") == "new\n"
        assert git(reviewed.repo, "worktree", "list").count("\n") == 0, step
        assert git(reviewed.repo, "branch", "--list", "task/*") == "", step
        _assert_sound(reviewed)
        reviewed.restore()
