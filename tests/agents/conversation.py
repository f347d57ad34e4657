"""A run of an agent that a test listens to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gittasks.agents import ADAPTERS
from gittasks.agents.base import Event, Exited, Program, RunSpec, Settled

NOW = 1_800_000_000.0
MARK = "GITTASKS_RUN"


def spec(folder: Path, kind: str, *command: str, **more: str) -> RunSpec:
    """Returns the specification of a run in a task's folder; the clock stands still."""
    (folder / "tree").mkdir(parents=True, exist_ok=True)
    env = {"PATH": os.environ["PATH"], MARK: f"test.{os.urandom(8).hex()}", **more}
    program = Program(kind, command=command)
    log = str(folder / "agent.log")
    return RunSpec(program, str(folder / "tree"), str(folder), env, log, clock=lambda: NOW)


class Conversation:
    """One run, and what it has told so far."""

    def __init__(self, what: RunSpec) -> None:
        self.run = ADAPTERS[what.program.type].start(what)
        self.log = Path(what.log)
        self.told: list[Event] = []

    def until(self, is_enough: Callable[[], bool]) -> None:
        """Listens until something is so."""
        deadline = time.monotonic() + 20
        while not is_enough():
            assert time.monotonic() < deadline, self.told
            self.told += self.run.events()
            time.sleep(0.002)

    def until_told(self, kind: type) -> list[Event]:
        """Listens until an event of this kind comes; returns all that came, and forgets it."""
        self.until(lambda: any(isinstance(event, kind) for event in self.told))
        told, self.told = self.told, []
        return told

    def turn(self, text: str = "Work.") -> list[Event]:
        """Says something and returns all events of that turn."""
        self.run.prompt(text)
        return self.until_told(Settled)

    def ended(self) -> list[Event]:
        """Listens until the process is gone and nothing of it is left."""
        told = self.until_told(Exited)
        self.until(lambda: not self.run.is_alive())
        return told


def probe(kind: str, *command: str, env: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Returns the problems of a program."""
    return ADAPTERS[kind].probe(Program(kind, command=command), env).problems
