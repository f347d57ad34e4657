"""kill -9 of the real command at each step of a write, of `start` and of a landing.

After each death the world is either as before or as after, the next command finishes or undoes
the rest, and the same command given again has the effect of once.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.cli import CHECKOUT, COMMAND, UNMEASURED, environment, tasks
from tests.support.git import git, make_repository

# Dozens of deaths, each with several commands after it; on a busy machine they take minutes.
pytestmark = pytest.mark.timeout(900)

KILLER = CHECKOUT / "tests" / "support" / "killer"
PEOPLE = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


class World(NamedTuple):
    """A repository that is put back to how it was before each death."""

    home: Path
    pristine: Path

    @property
    def repo(self) -> Path:
        """Returns the user's checkout."""
        return self.home / "repo"

    def restore(self) -> None:
        """Puts everything back as it was."""
        shutil.rmtree(self.home)
        shutil.copytree(self.pristine, self.home, symlinks=True)


def _run(
    world: World, args: tuple[str, ...], agent: str | None, kill_at: int
) -> subprocess.CompletedProcess[str]:
    env = environment({**UNMEASURED, **PEOPLE, "GITTASKS_AGENT": agent})
    env["PYTHONPATH"] = f"{KILLER}{os.pathsep}{env['PYTHONPATH']}"
    env["KILL_AT"] = str(kill_at)
    env["KILL_COUNT"] = str(world.home.parent / "count")
    return subprocess.run(
        [*COMMAND, *args],
        cwd=world.repo,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        start_new_session=True,
    )


def _steps(world: World, args: tuple[str, ...], agent: str | None) -> int:
    """Returns how many steps the command takes when nobody kills it, and undoes it."""
    done = _run(world, args, agent, 0)
    assert done.returncode == 0, done.stderr
    count = int((world.home.parent / "count").read_text(encoding="ascii"))
    world.restore()
    return count


def _kill(world: World, args: tuple[str, ...], agent: str | None, step: int) -> None:
    done = _run(world, args, agent, step)
    assert done.returncode == -signal.SIGKILL, (step, done.stderr)
    _wait_for_orphans(world)


def _wait_for_orphans(world: World) -> None:
    """Waits until no git process that the dead command left works in the repository."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if not _orphans(world):
            return
        time.sleep(0.02)
    raise AssertionError(f"still running: {_orphans(world)}")


def _orphans(world: World) -> list[str]:
    found = []
    for entry in os.listdir("/proc"):
        try:
            command = Path("/proc", entry, "cmdline").read_bytes() if entry.isdigit() else b""
        except OSError:
            continue
        if str(world.home).encode() in command and b"git" in command.split(b"\0")[0]:
            found.append(command.decode(errors="replace"))
    return found


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


def _some(count: int, part: int, parts: int) -> range:
    """Returns the steps of one part, so that the parts run beside each other."""
    return range(part + 1, count + 1, parts)


PARTS = [
    pytest.param(part, 4, id=f"part {part + 1} of 4", marks=[] if part < 2 else pytest.mark.slow)
    for part in range(4)
]
"""Half of the steps in every run of the suite, all of them with the marker `slow`."""


def _world(tmp_path: Path) -> World:
    home = tmp_path / "home"
    make_repository(home / "repo")
    tasks(home / "repo", "init")
    return World(home, tmp_path / "pristine")


def _keep(world: World) -> World:
    shutil.copytree(world.home, world.pristine, symlinks=True)
    return world


@pytest.fixture
def ready(tmp_path: Path) -> World:
    """Returns a world with one task at WORK and one that waits for it."""
    world = _world(tmp_path)
    tasks(world.repo, "new", "First", "--enter", "work")
    tasks(world.repo, "new", "Second", "--dep", "1", "--enter", "work")
    return _keep(world)


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
    return _keep(world)


def test_a_write_dies_at_each_step_and_is_there_once_when_given_again(ready: World) -> None:
    command = ("hold", "1", "--reason", "wait")
    count = _steps(ready, command, None)
    assert count >= 5
    for step in range(1, count + 1):
        _kill(ready, command, None, step)
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
    count = _steps(ready, command, "ada")
    assert count >= 8
    for step in _some(count, part, parts):
        _kill(ready, command, "ada", step)
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
    count = _steps(reviewed, command, None)
    assert count >= 15
    before = git(reviewed.repo, "rev-parse", "master")
    for step in _some(count, part, parts):
        _kill(reviewed, command, None, step)
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
