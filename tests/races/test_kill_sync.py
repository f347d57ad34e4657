"""kill -9 at each step of what clones say to each other, and of the server that listens.

After each death the next command finishes or undoes the rest: nothing is lost, nothing is there
twice, and whoever reached the remote with a claim holds it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.cli import Result
from tests.support.cli import tasks_inprocess as tasks
from tests.support.clones import Written, written
from tests.support.deaths import PEOPLE, World, kill, parts, some, steps, wait_for_orphans
from tests.support.git import git
from tests.support.remotes import install_hook, two_clones

# Dozens of deaths, each with several commands after it; on a busy machine they take minutes.
pytestmark = pytest.mark.timeout(900)

PARTS = parts(3, quick=1)
"""A third of the steps in every run of the suite, all of them with the marker `slow`."""

ADA = {**PEOPLE, "GITTASKS_AGENT": "ada"}
LOST = 6


def _bob(world: World) -> Path:
    return world.home / "bob"


def _remote(world: World) -> Path:
    return world.home / "remote.git"


def _event_ids(place: Path) -> list[str]:
    tip = git(place, "rev-parse", "refs/heads/gittasks")
    return [event.event_id for event in written(place, tip)]


def _shared(tmp_path: Path) -> World:
    """Returns a remote and two clones, with one task at WORK and one not dispatched."""
    home = tmp_path / "home"
    home.mkdir()
    two_clones(home)
    world = World(home, tmp_path / "pristine", "ada")
    tasks(world.repo, "init", "--remote", "origin")
    tasks(world.repo, "new", "First", "--enter", "work")
    tasks(world.repo, "new", "Second")
    tasks(_bob(world), "init", "--remote", "origin")
    return world


@pytest.fixture
def together(tmp_path: Path) -> World:
    """Returns a world whose clones and remote all have the same."""
    return _shared(tmp_path).keep()


@pytest.fixture
def apart(tmp_path: Path) -> World:
    """Returns a world in which Ada has worked alone while Bob has taken her task and number."""
    world = _shared(tmp_path)
    tree = tasks(world.repo, "start", "1", "--offline", env=ADA).out.strip()
    Path(tree, "new.txt").write_text("new\n", encoding="utf-8")
    git(tree, "add", "new.txt")
    git(tree, "commit", "-q", "-m", "Write new.txt")
    tasks(world.repo, "new", "Ada's", "--offline")
    tasks(world.repo, "edit", "3", "--title", "Ada's own", "--offline")
    tasks(world.repo, "note", "2", "Ada was here.", "--offline")
    tasks(_bob(world), "new", "Bob's")
    tasks(_bob(world), "claim", "1", "--no-worktree", env={"GITTASKS_AGENT": "bob"})
    return world.keep()


def _assert_sound(world: World, *expected: str) -> None:
    """Checks that all three have the same, each event once and those expected among them."""
    tasks(_bob(world), "sync")
    there = _event_ids(_remote(world))
    assert _event_ids(world.repo) == there
    assert _event_ids(_bob(world)) == there
    assert max(Counter(there).values()) == 1
    assert set(expected) <= set(there)
    for place in (world.repo, _bob(world)):
        tasks(place, "fsck")
        assert [str(path) for path in place.joinpath(".git").rglob("*.lock")] == []
        assert git(place, "status", "--porcelain") == ""
    assert [str(path) for path in _remote(world).rglob("*.lock")] == []
    assert git(_remote(world), "fsck", "--connectivity-only", "--no-dangling") == ""


def _titles(place: Path) -> list[str]:
    return [row["title"] for row in tasks(place, "list", "--json").json()["data"]]


@pytest.mark.parametrize(("part", "parts"), PARTS)
def test_a_sync_with_a_replay_dies_at_each_step_and_the_next_one_ends_it(
    apart: World, part: int, parts: int
) -> None:
    count = steps(apart, ("sync",), None, status=LOST)
    assert count >= 20
    own = _event_ids(apart.repo)
    work = git(apart.repo, "rev-parse", "task/000001")
    for step in some(count, part, parts):
        kill(apart, ("sync",), None, step)
        tasks(apart.repo, "sync", check=None)
        _assert_sound(apart, *own)
        assert _titles(apart.repo) == ["First", "Second", "Bob's", "Ada's own"], step
        kept = git(apart.repo, "for-each-ref", "--format=%(objectname)", "refs/heads/task/*-lost-*")
        assert kept == work, step
        assert "is 000004 since a sync" in tasks(apart.repo, "show", "3").err, step
        apart.restore()


@pytest.mark.parametrize(("part", "parts"), PARTS)
def test_a_claim_dies_at_each_step_and_is_the_claimers_if_it_has_reached_the_remote(
    together: World, part: int, parts: int
) -> None:
    command = ("claim", "1", "--no-worktree")
    count = steps(together, command, "ada")
    assert count >= 20
    for step in some(count, part, parts):
        kill(together, command, "ada", step)
        reached = [e.claim for e in _written(_remote(together)) if e.kind == "claim"]
        again = tasks(together.repo, *command, "--json", env=ADA).json()["data"]
        claims = [e.claim for e in _written(_remote(together)) if e.kind == "claim"]
        assert len(claims) == 1, step
        assert claims == (reached or claims), step
        assert again["claimed_by"] == "ada"
        assert again["claim"] == claims[0], step
        refused = tasks(_bob(together), *command, env={"GITTASKS_AGENT": "bob"}, check=LOST)
        assert "ada" in refused.err
        _assert_sound(together)
        together.restore()


@pytest.mark.parametrize(("part", "parts"), PARTS)
def test_a_create_dies_at_each_step_and_is_there_once_when_given_again(
    together: World, part: int, parts: int
) -> None:
    command = ("new", "Third", "--idempotency-key", "third", "--enter", "work")
    count = steps(together, command, None)
    assert count >= 15
    for step in some(count, part, parts):
        kill(together, command, None, step)
        assert tasks(together.repo, *command).out.strip() == "000003", step
        assert _titles(together.repo) == ["First", "Second", "Third"], step
        _assert_sound(together)
        together.restore()


def _written(place: Path) -> list[Written]:
    tip = git(place, "rev-parse", "refs/heads/gittasks")
    return list(written(place, tip))


# ------------------------------------------------------------------------- the receiving side


ONCE = "[ -e {mark} ] || {{ : > {mark}; kill -9 $PPID; sleep 1; }}"
"""Kills the process of git that has called the hook, the first time."""

MOMENTS = {
    "pre-receive": ("pre-receive", ""),
    "update": ("update", ""),
    "prepared": ("reference-transaction", 'test "$1" = prepared || exit 0; '),
    "committed": ("reference-transaction", 'test "$1" = committed || exit 0; '),
    "post-receive": ("post-receive", ""),
}
"""What a server has done by then: nothing, or all; `prepared` leaves its locks behind."""


def _dying_server(world: World, moment: str) -> None:
    hook, when = MOMENTS[moment]
    mark = world.home / "has-died"
    install_hook(_remote(world), hook, when + ONCE.format(mark=mark))


def _locks(world: World) -> list[Path]:
    return sorted(_remote(world).rglob("*.lock"))


def _again(world: World, command: tuple[str, ...], agent: str | None = None) -> Result:
    """Gives a command once more; locks that keep it from the remote are named, and taken away."""
    wait_for_orphans(world)
    env = {**PEOPLE, "GITTASKS_AGENT": agent}
    if locks := _locks(world):
        refused = tasks(world.repo, *command, env=env, check=None)
        assert refused.status in (8, 75), refused
        names = [str(lock.relative_to(_remote(world))) for lock in locks]
        assert any(name in refused.err for name in names), refused.err
        for lock in locks:
            lock.unlink()
    return tasks(world.repo, *command, env=env, check=None)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_claim_whose_server_dies_is_the_claimers_when_given_again(
    together: World, moment: str
) -> None:
    _dying_server(together, moment)
    command = ("claim", "1", "--no-worktree", "--json")
    tasks(together.repo, *command, env=ADA, check=None)
    reached = [e.claim for e in _written(_remote(together)) if e.kind == "claim"]
    again = _again(together, command, "ada")
    claims = [e.claim for e in _written(_remote(together)) if e.kind == "claim"]
    assert (len(claims), reached or claims) == (1, claims)
    assert again.status == 0, again.err
    data = again.json()["data"]
    assert (data["claimed_by"], data["claim"]) == ("ada", claims[0])
    _assert_sound(together)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_create_whose_server_dies_is_there_once_when_given_again(
    together: World, moment: str
) -> None:
    _dying_server(together, moment)
    command = ("new", "Third", "--idempotency-key", "third", "--enter", "work")
    tasks(together.repo, *command, check=None)
    assert _again(together, command).out.strip() == "000003"
    assert _titles(together.repo) == ["First", "Second", "Third"]
    _assert_sound(together)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_sync_whose_server_dies_is_ended_by_the_next_one(apart: World, moment: str) -> None:
    own = _event_ids(apart.repo)
    _dying_server(apart, moment)
    first = tasks(apart.repo, "sync", check=None)
    # Also a sync that fails in the end tells what became of the work.
    assert "The claim of ada on 000001 was lost" in first.out + first.err
    _again(apart, ("sync",))
    _assert_sound(apart, *own)
    assert _titles(apart.repo) == ["First", "Second", "Bob's", "Ada's own"]
