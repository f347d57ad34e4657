"""Lets the real command die by kill -9 at a step of its work, in a world that can be put back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.cli import CHECKOUT, COMMAND, UNMEASURED, environment

KILLER = CHECKOUT / "tests" / "support" / "killer"
PEOPLE = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


class World(NamedTuple):
    """Repositories that are put back to how they were before each death."""

    home: Path
    pristine: Path
    place: str = "repo"
    """Where the command is run, below the home."""

    @property
    def repo(self) -> Path:
        """Returns the checkout of whoever runs the command."""
        return self.home / self.place

    def keep(self) -> World:
        """Remembers how everything is now."""
        shutil.copytree(self.home, self.pristine, symlinks=True)
        return self

    def restore(self) -> None:
        """Puts everything back as it was."""
        shutil.rmtree(self.home)
        shutil.copytree(self.pristine, self.home, symlinks=True)


def steps(world: World, args: tuple[str, ...], agent: str | None, *, status: int = 0) -> int:
    """Returns how many steps the command takes when nobody kills it, and undoes it."""
    done = _run(world, args, agent, 0)
    assert done.returncode == status, done.stderr
    count = int((world.home.parent / "count").read_text(encoding="ascii"))
    world.restore()
    return count


def kill(world: World, args: tuple[str, ...], agent: str | None, step: int) -> None:
    """Runs the command until it dies at a step, and waits for what it has started.

    One that has to wait for nothing this time may come to its end in a step less.
    """
    done = _run(world, args, agent, step)
    if done.returncode != -signal.SIGKILL:
        taken = int((world.home.parent / "count").read_text(encoding="ascii"))
        assert taken < step, (step, done.stderr)
    wait_for_orphans(world)


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


def wait_for_orphans(world: World) -> None:
    """Waits until no git process that a dead command left works in the world."""
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
            # What this process itself has started is no orphan.
            if command and _parent(entry) == os.getpid():
                continue
        except OSError:
            continue
        if str(world.home).encode() in command and b"git" in command.split(b"\0")[0]:
            found.append(command.decode(errors="replace"))
    return found


def _parent(process: str) -> int:
    after_the_name = Path("/proc", process, "stat").read_text(encoding="utf-8").rpartition(")")[2]
    return int(after_the_name.split()[1])


def some(count: int, part: int, parts: int) -> range:
    """Returns the steps of one part, so that the parts run beside each other."""
    return range(part + 1, count + 1, parts)


def parts(count: int, quick: int) -> list[object]:
    """Returns the parameters `part` and `parts`: the first few in every run, all with `slow`."""
    return [
        pytest.param(
            part,
            count,
            id=f"part {part + 1} of {count}",
            marks=[] if part < quick else pytest.mark.slow,
        )
        for part in range(count)
    ]
