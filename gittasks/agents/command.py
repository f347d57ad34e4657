"""Any command that reads a prompt on its standard input: a process for each prompt.

It runs in the tree, reads the prompt to its end, works, leaves its result with `git tasks`, and
ends. How a turn ended follows from the exit, which is so for this kind of agent only:

    exit 0                              done
    exit 75                             limit
    a line `gittasks-limit: TIME`       limit until TIME: RFC 3339, or seconds from now
    interrupted by us                   aborted
    anything else                       error, worth another try

Three lines are understood, on either output; every other line is only kept in the log:

    gittasks-limit: 2026-11-30T17:00:00Z
    gittasks-usage: {"cost": 0.12, "tokens": 3400}      what this process has used so far
    gittasks-activity: pytest tests/test_orders.py      what it begins to do
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

from gittasks.agents import orphans
from gittasks.agents.base import Activity, Capabilities, Exited, Settled, Started, Usage
from gittasks.plumbing.dialogue import Dialogue
from gittasks.plumbing.errors import ProgramMissing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gittasks.agents.base import Event, Program, RunSpec

_SIGTERM = 15
_SIGKILL = 9

_LIMIT_CODE = 75

# Whatever a command prints, no provider is left alone for longer than its longest window.
_LONGEST_LIMIT = 8 * 86_400.0
_LONGEST_WORDS = 1000


def probe(program: Program, env: Mapping[str, str]) -> Capabilities:
    """Looks whether the program is there; what it can do is the same for all of them."""
    if not program.command:
        return Capabilities(problems=("A `command` agent needs a command.",))
    name = program.command[0]
    # A path that begins at the tree can be judged only there.
    if os.path.dirname(name):
        is_there = not os.path.isabs(name) or os.access(name, os.X_OK)
    else:
        folders = env.get("PATH", os.defpath).split(os.pathsep)
        is_there = any(os.access(os.path.join(folder, name), os.X_OK) for folder in folders)
    return Capabilities(problems=() if is_there else (f"There is no program {name} here.",))


def start(spec: RunSpec) -> Run:
    """Returns a run in which no process was started yet."""
    return Run(spec)


class Run:
    """A conversation that has a process only while a prompt is worked on."""

    session: str | None = None
    """Nothing of one process is known to the next."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self._dialogue: Dialogue | None = None
        self._events: list[Event] = []
        self._is_settled = True
        self._is_ended_by_us = False
        self._has_limit = False
        self._until: float | None = None
        self._before = Usage()
        self._used = Usage()

    @property
    def pid(self) -> int | None:
        """Returns the process that works on a prompt now."""
        return None if self._dialogue is None or self._is_settled else self._dialogue.pid

    def prompt(self, text: str) -> None:
        """Starts the command with a prompt of its own."""
        if not self._is_settled:
            raise RuntimeError("The command still works on another prompt.")
        self._is_ended_by_us = self._has_limit = False
        self._until = None
        self._before = self._used
        spec = self._spec
        argv = spec.wrap(spec.program.command)
        try:
            self._dialogue = Dialogue(argv, cwd=spec.tree, env=spec.env, log=spec.log)
        except ProgramMissing as error:
            self._events.append(Settled("error", str(error), is_retryable=False))
            return
        self._is_settled = False
        self._events.append(Started())
        self._dialogue.write(text.encode("utf-8", "replace"))
        self._dialogue.close_input()

    def steer(self, text: str) -> bool:  # noqa: ARG002 - its input has ended
        """Says nothing: the command has read all that it will read."""
        return False

    def events(self) -> Sequence[Event]:
        """Returns what happened since it was asked last."""
        told, self._events = self._events, []
        if self._dialogue is None or self._is_settled:
            return told
        # Asked first: with a code, all that was said before the end is there.
        code = self._dialogue.code()
        for line in (*self._dialogue.lines(), *self._dialogue.error_lines()):
            told += self._understood(line)
        if code is not None:
            self._is_settled = True
            told += (self._settled(code), Exited(code))
        return told

    def interrupt(self) -> None:
        """Sends SIGTERM; there is no politer word that every command knows."""
        self._end(_SIGTERM)

    def close(self) -> None:
        """Sends SIGTERM too: the input has ended already."""
        self._end(_SIGTERM)

    def terminate(self) -> None:
        """Sends SIGTERM to the whole process group."""
        self._end(_SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL to the process group, and to all that carries the mark of this run."""
        self._end(_SIGKILL)
        orphans.sweep(self._spec.env.get(orphans.VARIABLE, ""))

    def is_alive(self) -> bool:
        """Tells whether anything of the command's group still runs."""
        return self._dialogue is not None and self._dialogue.is_alive()

    def _end(self, number: int) -> None:
        self._is_ended_by_us = True
        if self._dialogue is not None:
            self._dialogue.signal(number)

    def _understood(self, line: bytes) -> tuple[Event, ...]:
        if not line.startswith(b"gittasks-"):
            return ()
        word, colon, rest = line.partition(b":")
        words = rest.decode("utf-8", "replace").strip()
        match word + colon:
            case b"gittasks-limit:":
                self._has_limit = True
                self._until = _time_of(words, self._spec.clock())
            case b"gittasks-usage:":
                now = _usage_of(words)
                if now is not None:
                    self._used = _sum_of(self._before, now)
                    return (self._used,)
            case b"gittasks-activity:" if words:
                return (Activity("command", words[:_LONGEST_WORDS], words),)
        return ()

    def _settled(self, code: int) -> Settled:
        if self._has_limit or code == _LIMIT_CODE:
            return Settled("limit", self._told(code), until=self._until)
        if self._is_ended_by_us:
            return Settled("aborted")
        return Settled("done") if code == 0 else Settled("error", self._told(code))

    def _told(self, code: int) -> str:
        assert self._dialogue is not None
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        tail = self._dialogue.error_tail()
        return f"{how}\n{tail}" if tail else how


def _time_of(words: str, now: float) -> float | None:
    """Returns the time that a limit names, None where it names none."""
    try:
        seconds = float(words)
    except ValueError:
        from datetime import UTC, datetime

        try:
            told = datetime.fromisoformat(words)
        except ValueError:
            return None
        if told.tzinfo is None:
            told = told.replace(tzinfo=UTC)
        seconds = told.timestamp() - now
    return now + min(max(seconds, 0.0), _LONGEST_LIMIT) if math.isfinite(seconds) else None


def _usage_of(words: str) -> Usage | None:
    try:
        told = json.loads(words)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    context = told.get("context")
    return Usage(
        float(_amount(told.get("cost"))),
        int(_amount(told.get("tokens"))),
        int(_amount(told.get("output"))),
        None if context is None else float(_amount(context)),
    )


def _amount(told: Any) -> float:
    """Returns a number that can be one of something; whatever else was told is nothing."""
    if isinstance(told, bool) or not isinstance(told, int | float):
        return 0
    return told if 0 <= told <= 1e15 else 0


def _sum_of(before: Usage, now: Usage) -> Usage:
    return Usage(
        before.cost + now.cost,
        before.tokens + now.tokens,
        before.output + now.output,
        now.context,
    )
