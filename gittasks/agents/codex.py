"""Codex without a terminal: a process for each prompt, which tells what it does in JSON lines.

    codex exec --json … -                     a new thread; the prompt is the input
    codex exec --json … resume THREAD -       goes on with it
    thread.started                            the thread, by which another process can go on
    item.started, item.completed              commands, changes of files, words
    turn.completed or turn.failed             the turn is over

The turn is over with its record. The process may take seconds more to end, in which nobody waits
for it; what is left of it is ended when the next prompt comes. Its own sandbox is off: it would
keep git from committing, and ours stands around it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from gittasks.agents import failures, orphans, programs, records
from gittasks.agents.base import (
    Activity,
    Capabilities,
    Exited,
    Retrying,
    Settled,
    Started,
    Usage,
)
from gittasks.agents.records import Record, count, part, parts, text
from gittasks.plumbing.dialogue import Dialogue
from gittasks.plumbing.errors import ProgramMissing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gittasks.agents.base import Event, Program, RunSpec

_SIGINT = 2
_SIGTERM = 15
_SIGKILL = 9

_COMMAND = ("codex",)

# A login shell would reset the PATH.
_OPTIONS = ("exec", "--json", "-s", "danger-full-access", "-c", "allow_login_shell=false")

_UNTRUSTED = '{trust_level="untrusted"}'

# The npm command is a script that starts the program proper; without it there is nobody between.
_WRAPPER = "codex.js"
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}

_TOOLS = ("command_execution", "file_change", "mcp_tool_call", "web_search")
# What of an item is not told of its course.
_ARGUMENTS = ("command", "changes", "server", "tool", "arguments", "query")
_SHELLS = ("sh", "bash", "zsh")

# `Reconnecting... 2/5 (why)`
_AGAIN = "Reconnecting... "
_LOST = "no rollout found"


def probe(program: Program, env: Mapping[str, str]) -> Capabilities:
    """Looks whether Codex is there."""
    command = native(program.command or _COMMAND, env)
    if programs.found(command, env) is None:
        return Capabilities(problems=(programs.missing(command),))
    version = programs.shown(programs.numbers(programs.version(command, env)))
    problem = f"{command[0]} does not tell its version, so it may not be whole."
    return Capabilities(version, resume=True, problems=() if version else (problem,))


def start(spec: RunSpec) -> Run:
    """Returns a run in which no process was started yet."""
    return Run(spec)


def arguments(
    program: Program, env: Mapping[str, str], tree: str, session: str | None = None
) -> tuple[str, ...]:
    """Returns the argument list for one prompt, without a sandbox."""
    words = [*native(program.command or _COMMAND, env), *_OPTIONS, "-c", _distrust(tree)]
    if program.provider:
        words += ("-c", f"model_provider={_quoted(program.provider)}")
    if program.model:
        words += ("-m", program.model)
    # Options have to stand before the word resume.
    if session is not None:
        words += ("resume", session)
    return (*words, "-")


def _distrust(tree: str) -> str:
    """Returns the setting by which servers and hooks that the tree brings along are not started.

    Who trusts a repository trusts all its linked worktrees, so that it has to be said of each.
    """
    places = sorted({tree, os.path.realpath(tree)})
    return f"projects={{{','.join(f'{_quoted(one)}={_UNTRUSTED}' for one in places)}}}"


def _quoted(words: str) -> str:
    """Returns a string of TOML."""
    return json.dumps(words, ensure_ascii=False)


def native(command: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the command with the program proper in place of a script that starts it."""
    import glob

    path = programs.found(command, env)
    script = "" if path is None else os.path.realpath(path)
    machine = _MACHINES.get(os.uname().machine.lower())
    if os.path.basename(script) != _WRAPPER or machine is None:
        return tuple(command)
    package = glob.escape(os.path.dirname(os.path.dirname(script)))
    system = "apple-darwin" if sys.platform == "darwin" else "unknown-linux-*"
    for place in ("../codex-*", "node_modules/@openai/codex-*", "."):
        for folder in ("bin", "codex"):
            pattern = f"{package}/{place}/vendor/{machine}-{system}/{folder}/codex"
            for program in sorted(glob.glob(pattern)):
                if os.access(program, os.X_OK):
                    return (os.path.realpath(program), *command[1:])
    return tuple(command)


class Run:
    """A conversation that has a process only while a prompt is worked on."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self.session = spec.session if _has_session(spec.session, spec.env) else None
        """The thread, by which another process can go on."""
        self._dialogue: Dialogue | None = None
        self._reader = Reader()
        self._events: list[Event] = []
        self._waiting: str | None = None

    @property
    def pid(self) -> int | None:
        """Returns the process that works on a prompt now."""
        return self._dialogue.pid if self._dialogue and self._reader.is_running else None

    def prompt(self, text: str) -> None:
        """Starts Codex with the prompt, once what is left of its last process has ended."""
        if self._reader.is_running or self._waiting is not None:
            raise RuntimeError("Codex still works on another prompt.")
        self._waiting = text
        if self._dialogue is not None:
            self._dialogue.signal(_SIGTERM)
        self._take_up()

    def steer(self, text: str) -> bool:  # noqa: ARG002 - its input has ended
        """Says nothing: Codex has read all that it will read."""
        return False

    def events(self) -> Sequence[Event]:
        """Returns what happened since it was asked last."""
        self._hear()
        self._take_up()
        told, self._events = self._events, []
        return told

    def interrupt(self) -> None:
        """Sends SIGINT, which ends the process too; the thread can be gone on with."""
        if self._waiting is not None:
            self._waiting = None
            self._events.append(Settled("aborted"))
        elif self._reader.is_running:
            self._end(_SIGINT)

    def close(self) -> None:
        """Ends it politely: its input has ended already."""
        self._end(_SIGINT if self._reader.is_running else _SIGTERM)

    def terminate(self) -> None:
        """Sends SIGTERM to the whole process group."""
        self._end(_SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL to the process group, and to all that carries the mark of this run."""
        self._end(_SIGKILL)
        self._sweep()

    def is_alive(self) -> bool:
        """Tells whether anything of its group still runs."""
        return self._dialogue is not None and self._dialogue.is_alive()

    def _end(self, number: int) -> None:
        self._reader.is_ended_by_us = True
        if self._dialogue is not None:
            self._dialogue.signal(number)

    def _sweep(self) -> None:
        orphans.sweep(self._spec.env.get(orphans.VARIABLE, ""))

    def _hear(self) -> None:
        if self._dialogue is None:
            return
        code = self._dialogue.code()
        now = self._spec.clock()
        for line in self._dialogue.lines():
            self._events += self._reader.read(records.record_of(line), now)
        self.session = self._reader.session or self.session
        if code is not None:
            if self._reader.is_ended_by_us:
                # Interrupted, it does not always end the command that it runs.
                self._sweep()
            self._events += self._reader.ended(code, self._dialogue.error_tail(), now)
            if self._waiting is None:
                self._events.append(Exited(code))
            self._dialogue = None

    def _take_up(self) -> None:
        """Starts the process for a prompt that waits, where the last one is gone."""
        if self._waiting is None or self._dialogue is not None:
            return
        words, self._waiting = self._waiting, None
        spec = self._spec
        argv = spec.wrap(arguments(spec.program, spec.env, spec.tree, self.session))
        try:
            self._dialogue = Dialogue(argv, cwd=spec.tree, env=spec.env, log=spec.log)
        except ProgramMissing as error:
            self._events.append(Settled("error", str(error), is_retryable=False))
            return
        self._reader = Reader(is_running=True)
        self._dialogue.write(records.plain(words).encode("utf-8", "replace"))
        self._dialogue.close_input()


class Reader:
    """Makes events of the records of one process."""

    def __init__(self, *, is_running: bool = False) -> None:
        self.session: str | None = None
        self.is_running = is_running
        """The turn is not over."""
        self.is_ended_by_us = False
        self._begun: set[str] = set()

    def read(self, record: Record, now: float) -> list[Event]:
        """Returns the events of a record; an unknown one has none."""
        match text(record, "type"):
            case "thread.started":
                self.session = text(record, "thread_id") or None
                return [Started(self.session), Activity()]
            case "item.started":
                return [*self._begins(part(record, "item"))]
            case "item.completed":
                return self._is_over(part(record, "item"))
            case "error":
                return _retrying(text(record, "message"))
            case "turn.completed":
                used = part(record, "usage")
                # The whole thread is counted, with what earlier processes have used.
                tokens = count(used, "input_tokens", "output_tokens")
                usage = Usage(tokens=tokens, output=count(used, "output_tokens"))
                return [usage, *self._settle(Settled("done"))]
            case "turn.failed":
                words = text(part(record, "error"), "message")
                return self._settle(failures.settled(words, now))
            case _:
                return []

    def ended(self, code: int, error: str, now: float) -> list[Event]:
        """Returns what the end of the process still has to tell of the turn.

        A thread that is lost, or a signal of somebody else, is the death of the agent.
        """
        if self.is_ended_by_us:
            return self._settle(Settled("aborted"))
        if programs.has_failed(code) and _LOST not in error:
            is_told = self.session is not None
            words = error or f"exit code {code}"
            failed = failures.settled(words, now)
            return self._settle(failed if is_told else failed._replace(is_retryable=False))
        self.is_running = False
        return []

    def _settle(self, settled: Settled) -> list[Event]:
        was_running, self.is_running = self.is_running, False
        return [settled] if was_running else []

    def _begins(self, item: Record) -> list[Activity]:
        tool = text(item, "type")
        if tool not in _TOOLS:
            return []
        self._begun.add(text(item, "id"))
        return [Activity(tool, _target_of(item), _key_of(item))]

    def _is_over(self, item: Record) -> list[Event]:
        tool, name = text(item, "type"), text(item, "id")
        if tool not in _TOOLS:
            return []
        begun = [] if name in self._begun else self._begins(item)
        self._begun.discard(name)
        return [*begun, Activity(tool, is_over=True)]


def _target_of(item: Record) -> str:
    changes = [text(change, "path") for change in parts(item, "changes")]
    if changes:
        return ", ".join(changes)[:1000]
    tool = text(item, "tool")
    return _inner(text(item, "command")) or tool or records.target_of(item)


def _key_of(item: Record) -> str:
    return records.key_of({name: item[name] for name in _ARGUMENTS if name in item})


def _inner(command: str) -> str:
    """Returns what a shell is given to do: `/bin/bash -c 'make test'` is `make test`."""
    import shlex

    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    is_shell = (
        len(words) == 3 and os.path.basename(words[0]) in _SHELLS and words[1] in ("-c", "-lc")
    )
    return (words[2] if is_shell else command)[:1000]


def _retrying(message: str) -> list[Event]:
    if not message.startswith(_AGAIN):
        return []
    attempt, _, reason = message.removeprefix(_AGAIN).partition(" ")
    number = attempt.partition("/")[0]
    return [Retrying(int(number) if number.isdecimal() else 1, reason.strip("()"))]


def _has_session(session: str | None, env: Mapping[str, str]) -> bool:
    import glob

    if not session:
        return False
    home = env.get("CODEX_HOME") or os.path.join(env.get("HOME", ""), ".codex")
    name = f"rollout-*{glob.escape(session)}.jsonl*"
    return bool(glob.glob(os.path.join(glob.escape(home), "sessions", "*", "*", "*", name)))
