"""pi in its RPC mode: one process for many prompts, commands and records as JSON lines.

    us    switch_session, get_session_stats, where there is a session to go on with; get_state
    pi    the answer: the session's file, and the model that is really used
    us    prompt                                    only now, since pi does not queue commands
    pi    agent_start, message_end, tool_execution_start, tool_execution_end, turn_end …
    pi    agent_settled                             the turn is over, after all tries of its own
    us    get_session_stats                         so that its cost is known before it settles

The outcome is the `stopReason` of the last message of the assistant. Extensions, MCP servers and
settings that the tree brings along are never loaded: an earlier agent may have committed them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.agents import failures, orphans, programs, records
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
from gittasks.agents.records import Record, amount, count, part, text
from gittasks.plumbing.dialogue import Dialogue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gittasks.agents.base import Event, Program, RunSpec

_SIGTERM = 15
_SIGKILL = 9

_COMMAND = ("pi",)
# The first one that tells when it has settled, and passes all that is used here.
_OLDEST = (0, 83)
_FIRST_WITH_MCP = (0, 99)

_OPTIONS = ("--mode", "rpc", "--no-approve", "-ne")

_REFUSED = ("content_filter", "refusal", "safety")

# What an extension of the user would ask a person.
_DIALOGS = ("select", "confirm", "input", "editor")


def probe(program: Program, env: Mapping[str, str]) -> Capabilities:
    """Looks whether pi is there and new enough, and the node that it needs."""
    command = program.command or _COMMAND
    if programs.found(command, env) is None:
        return Capabilities(problems=(programs.missing(command),))
    problems = []
    if program.provider and not program.model:
        problems.append("pi needs a model where it is given a provider.")
    node = programs.node_problem(command, env)
    if node is not None:
        problems.append(node)
    version = _version(command, env)
    shown = programs.shown(version)
    if not version and node is None:
        problems.append(f"{command[0]} does not tell its version; pi 0.83 or newer is needed.")
    elif version and version < _OLDEST:
        problems.append(f"pi 0.83 or newer is needed, and {shown} is here.")
    return Capabilities(shown, live=True, steer=True, resume=True, problems=tuple(problems))


def start(spec: RunSpec) -> Run:
    """Starts pi; raises ProgramMissing where that is not possible."""
    return Run(spec)


def arguments(program: Program, env: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the argument list that starts pi, without a sandbox."""
    command = program.command or _COMMAND
    words = [*command, *_OPTIONS]
    # Older ones know no servers, and stop at an option that they do not know.
    if not programs.found(command, env) or _version(command, env) >= _FIRST_WITH_MCP:
        words.append("--no-mcp")
    if program.provider:
        words += ("--provider", program.provider)
    if program.model:
        words += ("--model", program.model)
    return tuple(words)


def _version(command: Sequence[str], env: Mapping[str, str]) -> programs.Version:
    """Returns the version, from the package where there is one: starting pi takes its time."""
    packaged = programs.numbers(text(programs.package(command, env), "version"))
    return packaged or programs.numbers(programs.version(command, env))


class Run:
    """A conversation with one pi."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        # A file that is not there would be taken for an empty session.
        session = spec.session if spec.session and os.path.isfile(spec.session) else None
        argv = spec.wrap(arguments(spec.program, spec.env))
        self._dialogue = Dialogue(argv, cwd=spec.tree, env=spec.env, log=spec.log)
        self._reader = Reader(spec.program, session)
        self._has_exited = False
        self._send()

    @property
    def pid(self) -> int | None:
        """Returns the process of pi, None when it is gone."""
        return None if self._has_exited else self._dialogue.pid

    @property
    def session(self) -> str | None:
        """Returns the file of the session; None at the start of a new one."""
        return self._reader.session

    def prompt(self, text: str) -> None:
        """Begins a turn, as soon as pi has told that it is ready."""
        self._reader.prompt(text)
        self._send()

    def steer(self, text: str) -> bool:
        """Says something that the model reads after the tool calls that run now."""
        if not self._reader.can_steer:
            return False
        self._reader.ask(type="steer", message=records.plain(text))
        self._send()
        return True

    def events(self) -> Sequence[Event]:
        """Returns what happened since it was asked last."""
        code = self._dialogue.code()
        told: list[Event] = []
        now = self._spec.clock()
        for line in self._dialogue.lines():
            told += self._reader.read(records.record_of(line), now)
        self._send()
        if code is not None and not self._has_exited:
            self._has_exited = True
            told += (*self._reader.ended(code, self._dialogue.error_tail()), Exited(code))
        return [*self._reader.taken(), *told]

    def interrupt(self) -> None:
        """Breaks the turn off, with the command that runs in it."""
        self._reader.interrupt()
        self._send()

    def close(self) -> None:
        """Ends its input: pi ends the command that runs, completes the session and exits."""
        self._dialogue.close_input()

    def terminate(self) -> None:
        """Sends SIGTERM to the whole process group."""
        self._dialogue.signal(_SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL to the process group, and to all that carries the mark of this run.

        The commands that pi runs are in groups of their own, and would go on.
        """
        self._dialogue.signal(_SIGKILL)
        orphans.sweep(self._spec.env.get(orphans.VARIABLE, ""))

    def is_alive(self) -> bool:
        """Tells whether anything of pi's group still runs."""
        return self._dialogue.is_alive()

    def _send(self) -> None:
        for command in self._reader.commands():
            self._dialogue.write(records.line_of(command))


class Reader:
    """Makes events of records, and the commands that they ask for."""

    def __init__(self, program: Program, session: str | None = None) -> None:
        """Asks for the session to go on with, and for the state."""
        self.session = session
        self.is_running = False
        """A prompt was said, and its turn is not over."""
        self._program = program
        self._commands: list[Record] = []
        self._made: list[Event] = []
        self._is_ready = False
        self._waiting: str | None = None
        self._problem: Settled | None = None
        self._settled: Settled | None = None
        self._is_interrupted = False
        self._used = Usage()
        self._forget()
        if session is None:
            self.ask(id="state", type="get_state")
        else:
            self.ask(id="session", type="switch_session", sessionPath=session)

    @property
    def can_steer(self) -> bool:
        """Tells whether a turn goes on that words can be added to."""
        return self.is_running and self._is_ready and self._settled is None

    def _forget(self) -> None:
        self._stop = self._raw_stop = self._error = ""

    def ask(self, **command: object) -> None:
        """Adds a command."""
        self._commands.append(command)

    def commands(self) -> list[Record]:
        """Returns the commands that were not sent yet."""
        commands, self._commands = self._commands, []
        return commands

    def taken(self) -> list[Event]:
        """Returns the events that no record has made."""
        made, self._made = self._made, []
        return made

    def prompt(self, words: str) -> None:
        """Begins a turn."""
        if self._problem is not None:
            self._made.append(self._problem)
            return
        self.is_running = True
        self._is_interrupted = False
        self._forget()
        if self._is_ready:
            self.ask(id="prompt", type="prompt", message=records.plain(words))
        else:
            self._waiting = words

    def interrupt(self) -> None:
        """Breaks the turn off; one that was not said yet is not said any more."""
        if self._waiting is not None:
            self._waiting = None
            self.is_running = False
            self._made.append(Settled("aborted"))
        elif self.is_running:
            self._is_interrupted = True
            self.ask(id="abort", type="abort")

    def ended(self, code: int, error: str) -> list[Event]:
        """Returns what the end of the process still has to tell of the turn."""
        if self._settled is not None:
            return [self._settle(self._settled)]
        if self.is_running and not self._is_ready and programs.has_failed(code):
            # It never got as far as speaking: an option, a provider or a file is wrong.
            return [self._settle(Settled("error", error, is_retryable=False))]
        return []

    def read(self, record: Record, now: float) -> list[Event]:  # noqa: C901 - one for each kind
        """Returns the events of a record; an unknown one has none."""
        match text(record, "type"):
            case "response":
                return self._answered(record, now)
            case "agent_start":
                return [Activity()]
            case "message_end":
                return self._noted(part(record, "message"))
            case "tool_execution_start":
                arguments = part(record, "args")
                tool = text(record, "toolName")
                return [Activity(tool, records.target_of(arguments), records.key_of(arguments))]
            case "tool_execution_end":
                return [Activity(text(record, "toolName"), is_over=True)]
            case "turn_end":
                self.ask(id="usage", type="get_session_stats")
            case "auto_retry_start":
                reason = text(record, "errorMessage")
                return [Retrying(count(record, "attempt"), reason)]
            case "compaction_end":
                if not record.get("aborted") and not record.get("errorMessage"):
                    return [Compacted(text(record, "reason"))]
            case "agent_settled":
                if self.is_running and self._settled is None:
                    self._settled = self._outcome(record.get("aborted") is True, now)
                    self.ask(id="settled", type="get_session_stats")
            case "extension_ui_request":
                if text(record, "method") in _DIALOGS:
                    number = record.get("id")
                    self.ask(type="extension_ui_response", id=number, cancelled=True)
            case _:
                pass
        return []

    def _answered(self, record: Record, now: float) -> list[Event]:
        is_fine = record.get("success") is True
        data = part(record, "data")
        match record.get("id"):
            case "session":
                if not is_fine or data.get("cancelled") is True:
                    self.session = None
                else:
                    self.ask(id="usage", type="get_session_stats")
                self.ask(id="state", type="get_state")
            case "state":
                return self._got_ready(data)
            case "prompt" if self.is_running and not is_fine:
                return [self._settle(failures.settled(text(record, "error"), now))]
            case "prompt" if self.is_running and data.get("disposition") == "handled":
                error = "pi took the prompt for a command of its own."
                return [self._settle(Settled("error", error, is_retryable=False))]
            case "usage" if is_fine:
                return self._using(_usage_of(data))
            case "settled" if self._settled is not None:
                told = self._using(_usage_of(data)) if is_fine else []
                return [*told, self._settle(self._settled)]
            case _:
                pass
        return []

    def _using(self, used: Usage) -> list[Event]:
        if used == self._used:
            return []
        self._used = used
        return [used]

    def _got_ready(self, state: Record) -> list[Event]:
        self._is_ready = True
        self.session = text(state, "sessionFile") or None
        started = Started(self.session)
        model = text(part(state, "model"), "id")
        if model and not _is_model(self._program, model):
            words = f"pi would use the model {model} where {self._program.model} was asked for."
            self._problem = Settled("error", words, is_retryable=False)
        words_waiting, self._waiting = self._waiting, None
        if words_waiting is None:
            return [started]
        if self._problem is not None:
            return [started, self._settle(self._problem)]
        self.ask(id="prompt", type="prompt", message=records.plain(words_waiting))
        return [started]

    def _noted(self, message: Record) -> list[Event]:
        if message.get("role") != "assistant":
            return []
        self._stop = text(message, "stopReason")
        self._raw_stop = text(message, "rawStopReason")
        self._error = text(message, "errorMessage")
        # What the whole session has used is told only when the tools are done, if it comes to that.
        usage = part(message, "usage")
        return self._using(
            self._used._replace(
                cost=self._used.cost + amount(part(usage, "cost"), "total"),
                tokens=self._used.tokens + count(usage, "totalTokens"),
                output=self._used.output + count(usage, "output"),
            )
        )

    def _outcome(self, is_aborted: bool, now: float) -> Settled:
        if is_aborted or self._is_interrupted or self._stop == "aborted":
            return Settled("aborted")
        if self._raw_stop in _REFUSED:
            return Settled("refused", self._error)
        if self._stop == "length":
            return Settled("length", "The answer reached the limit of its length.")
        if self._stop == "error":
            return failures.settled(self._error, now)
        return Settled("done")

    def _settle(self, settled: Settled) -> Settled:
        self.is_running = False
        self._settled = None
        return settled


def _usage_of(data: Record) -> Usage:
    tokens = part(data, "tokens")
    context = part(data, "contextUsage")
    percent = amount(context, "percent") if "percent" in context else None
    return Usage(amount(data, "cost"), count(tokens, "total"), count(tokens, "output"), percent)


def _is_model(program: Program, model: str) -> bool:
    """Tells whether a model is the one that was asked for; a level of thinking may follow."""
    asked = program.model.removeprefix(f"{program.provider}/")
    return asked in ("", model) or asked.startswith(f"{model}:")
