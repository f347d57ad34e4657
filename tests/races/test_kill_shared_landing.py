"""kill -9 at each step of a landing that the remote has to take, and of the server that takes it.

Base and ledger never disagree: the remote has both or neither, and the next command brings this
clone to where the remote is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.races.test_kill_sync import MOMENTS, ONCE
from tests.support.cli import tasks_inprocess as tasks
from tests.support.clones import written
from tests.support.deaths import PEOPLE, World, kill, parts, some, steps, wait_for_orphans
from tests.support.git import git
from tests.support.remotes import install_hook, two_clones

# Dozens of deaths, each with several commands after it; on a busy machine they take minutes.
pytestmark = pytest.mark.timeout(900)

PARTS = parts(8, quick=1)
"""A quarter of the steps in every run of the suite, all of them with the marker `slow`."""

BOB = {**PEOPLE, "GITTASKS_AGENT": "bob"}
LAND = ("submit", "1")


def _bob(world: World) -> Path:
    return world.home / "bob"


def _remote(world: World) -> Path:
    return world.home / "remote.git"


@pytest.fixture
def reviewed(tmp_path: Path) -> World:
    """Returns a world whose manager has never had the work, and whose base is behind."""
    home = tmp_path / "home"
    home.mkdir()
    two_clones(home)
    world = World(home, tmp_path / "pristine", "ada")
    tasks(world.repo, "init", "--remote", "origin")
    tasks(world.repo, "new", "First", "--enter", "work", "--check", "true")
    tasks(world.repo, "new", "Second", "--dep", "1", "--enter", "work")
    bob = _bob(world)
    tasks(bob, "init")
    tasks(bob, "trust", "1")
    tree = tasks(bob, "start", "1", env=BOB).out.strip()
    Path(tree, "new.txt").write_text("new\n", encoding="utf-8")
    git(tree, "add", "new.txt")
    git(tree, "commit", "-q", "-m", "Write new.txt")
    tasks(tree, "submit", "-m", "1. Done.", env=BOB)
    tasks(bob, "claim", "1", "--no-worktree", env={"GITTASKS_AGENT": "rita"})
    tasks(bob, "submit", "1", env={"GITTASKS_AGENT": "rita"})
    git(bob, "commit", "-q", "--allow-empty", "-m", "Meanwhile")
    git(bob, "push", "-q", "origin", "master")
    return world.keep()


def _kinds(place: Path) -> list[tuple[str, str | None]]:
    tip = git(place, "rev-parse", "refs/heads/gittasks")
    return [(one.kind, one.task) for one in written(place, tip)]


def _assert_agreed(world: World, step: object) -> None:
    """Checks that the remote has both base and close, or neither."""
    landed = git(_remote(world), "log", "--format=%s", "master").splitlines().count("000001: First")
    closed = _kinds(_remote(world)).count(("unblock", "000002"))
    assert landed == closed <= 1, step


def _assert_landed(world: World, step: object) -> None:
    """Checks that all three places have the landing once, and that nothing of it is left over."""
    remote = _remote(world)
    tasks(_bob(world), "sync")
    base = git(remote, "rev-parse", "master")
    assert git(world.repo, "rev-parse", "master") == base, step
    ledgers = {git(place, "rev-parse", "gittasks") for place in (remote, world.repo, _bob(world))}
    assert len(ledgers) == 1, step
    assert git(remote, "log", "--format=%s", "master").splitlines().count("000001: First") == 1
    assert _kinds(remote).count(("unblock", "000002")) == 1, step
    shown = tasks(world.repo, "show", "1", "--json").json()["data"]
    assert (shown["state"], shown["landed"]) == ("CLOSED", base), step
    assert git(remote, "for-each-ref", "refs/heads/task/") == "", step
    assert git(world.repo, "status", "--porcelain") == "", step
    assert (world.repo / "new.txt").read_text(encoding="utf-8") == "new\n", step
    assert git(world.repo, "for-each-ref", "refs/gittasks/landing/") == "", step
    assert list((world.repo / ".git/gittasks/landing").glob("*.json")) == [], step
    for place in (world.repo, _bob(world)):
        tasks(place, "fsck")
    for place in (world.repo / ".git", remote):
        assert [str(path) for path in place.rglob("*.lock")] == [], step


@pytest.mark.parametrize(("part", "parts"), PARTS)
def test_a_landing_dies_at_each_step_and_the_next_command_finishes_or_undoes_it(
    reviewed: World, part: int, parts: int
) -> None:
    count = steps(reviewed, LAND, None)
    assert count >= 30
    for step in some(count, part, parts):
        kill(reviewed, LAND, None, step)
        _assert_agreed(reviewed, step)
        # Any writer comes across it first.
        tasks(reviewed.repo, "note", "2", "Go on.")
        _assert_agreed(reviewed, step)
        tasks(reviewed.repo, *LAND)
        _assert_landed(reviewed, step)
        reviewed.restore()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_landing_whose_server_dies_is_finished_by_the_next_command(
    reviewed: World, moment: str
) -> None:
    hook, when = MOMENTS[moment]
    mark = reviewed.home / "has-died"
    install_hook(_remote(reviewed), hook, when + ONCE.format(mark=mark))
    tasks(reviewed.repo, *LAND, check=None)
    wait_for_orphans(reviewed)
    _assert_agreed(reviewed, moment)
    for lock in _remote(reviewed).rglob("*.lock"):
        lock.unlink()
    tasks(reviewed.repo, *LAND)
    _assert_landed(reviewed, moment)
