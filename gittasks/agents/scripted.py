"""An agent that plays a written plan and never asks a model: for tests and for demonstrations.

Its `command` is one path, that of the plan (see `gittasks.agents.script`). A process of its own
plays it, so that death, environment and sandbox are as real as with any other agent.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from gittasks.agents import orphans, script
from gittasks.agents.base import (
    Activity,
    Capabilities,
    Compacted,
    Exited,
    Retrying,
    Settled,
    Started,
    Usage,
)
from gittasks.agents.environment import own_module
from gittasks.plumbing.dialogue import Dialogue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gittasks.agents.base import Event, Program, RunSpec

_SIGTERM = 15
_SIGKILL = 9


def probe(program: Program, env: Mapping[str, str]) -> Capabilities:  # noqa: ARG001 - no program
    """Reads the plan; each of its faults is a problem."""
    if len(program.command) != 1:
        problem = "The command of a `scripted` agent is the path of its plan, and nothing else."
        return Capabilities(problems=(problem,))
    _, problems = script.read(program.command[0])
    return Capabilities(live=True, steer=True, resume=True, problems=tuple(problems))


def start(spec: RunSpec) -> Run:
    """Starts the player; raises ProgramMissing where that is not possible."""
    return Run(spec)


class Run:
    """A conversation with one player."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self.session = spec.session
        words = (os.path.abspath(spec.program.command[0]), spec.folder, self.session or "")
        argv = (*own_module("gittasks.agents.script_player"), *words)
        self._dialogue = Dialogue(spec.wrap(argv), cwd=spec.tree, env=spec.env, log=spec.log)
        self._has_exited = False

    @property
    def pid(self) -> int | None:
        """Returns the player, None when it is gone."""
        return None if self._has_exited else self._dialogue.pid

    def prompt(self, text: str) -> None:
        """Begins the next turn of the plan."""
        self._tell(prompt=text)

    def steer(self, text: str) -> bool:
        """Says something to the player, which a step may wait for."""
        self._tell(steer=text)
        return True

    def events(self) -> Sequence[Event]:
        """Returns what happened since it was asked last."""
        code = self._dialogue.code()
        told: list[Event] = []
        for line in self._dialogue.lines():
            event = _event_of(line, self._spec.clock)
            if isinstance(event, Started):
                self.session = event.session
            if event is not None:
                told.append(event)
        if code is not None and not self._has_exited:
            self._has_exited = True
            told.append(Exited(code))
        return told

    def interrupt(self) -> None:
        """Asks for the end of the turn."""
        self._tell(interrupt=True)

    def close(self) -> None:
        """Ends its input; the turn that is played is played to its end."""
        self._dialogue.close_input()

    def terminate(self) -> None:
        """Sends SIGTERM to the whole process group."""
        self._dialogue.signal(_SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL to the process group, and to all that carries the mark of this run."""
        self._dialogue.signal(_SIGKILL)
        orphans.sweep(self._spec.env.get(orphans.VARIABLE, ""))

    def is_alive(self) -> bool:
        """Tells whether anything of the player's group still runs."""
        return self._dialogue.is_alive()

    def _tell(self, **words: object) -> None:
        self._dialogue.write(json.dumps(words).encode() + b"\n")


def _event_of(line: bytes, clock: Callable[[], float]) -> Event | None:
    """Returns the event of a line; what is none is only for the log."""
    try:
        told = json.loads(line)
        match told.pop("event"):
            case "started":
                return Started(**told)
            case "activity":
                return Activity(**told)
            case "usage":
                return Usage(**told)
            case "retrying":
                return Retrying(**told)
            case "compacted":
                return Compacted(**told)
            case "settled":
                seconds = told.pop("seconds", None)
                until = None if seconds is None else clock() + seconds
                return Settled(**told, until=until)
            case _:
                pass
    except (ValueError, TypeError, AttributeError, KeyError):
        pass
    return None
