"""Claude Code without a terminal: one process for many prompts, JSON lines both ways.

    us      {"type": "user", …}          a prompt, or, while a turn goes on, words for it
    claude  system/init                  the session, once a prompt was said
    claude  user … isReplay              the line of ours that it has taken
    claude  assistant, user              tool calls and their results
    claude  result                       the turn is over; `is_error` tells, not `subtype`

Words that come too late for a turn are a turn of their own, with a `result` of its own. So the
lines carry ids, and a turn is over only when all that was said has been taken.

Settings, hooks and servers of the project are not read (`--setting-sources`, an empty list of
servers): an earlier agent may have committed them, and the manager's tools are not for workers.
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
from gittasks.agents.records import Record, amount, count, part, parts, text
from gittasks.plumbing.dialogue import Dialogue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gittasks.agents.base import Event, Program, RunSpec

_SIGTERM = 15
_SIGKILL = 9

_COMMAND = ("claude",)
_OLDEST = (2, 1)

_OPTIONS = (
    "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
    "--replay-user-messages", "--strict-mcp-config", "--setting-sources", "user",
    "--permission-mode", "dontAsk", "--allowedTools", "Bash,Read,Edit,Write,Glob,Grep",
)  # fmt: skip

# What runs in the background would begin turns that nobody has asked for.
_ENVIRONMENT = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "DISABLE_AUTOUPDATER": "1"}

_LONGEST = 2000

_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_MODEL_TOKENS = (
    "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens",
)  # fmt: skip


def probe(program: Program, env: Mapping[str, str]) -> Capabilities:
    """Looks whether Claude Code is there and new enough."""
    command = program.command or _COMMAND
    if programs.found(command, env) is None:
        return Capabilities(problems=(programs.missing(command),))
    version = programs.numbers(programs.version(command, env))
    shown = programs.shown(version)
    problems: tuple[str, ...] = ()
    if not version:
        problems = (f"{command[0]} does not tell its version, so it may not be whole.",)
    elif version < _OLDEST:
        problems = (f"Claude Code 2.1 or newer is needed, and {shown} is here.",)
    return Capabilities(shown, live=True, steer=True, resume=True, problems=problems)


def start(spec: RunSpec) -> Run:
    """Starts Claude Code; raises ProgramMissing where that is not possible."""
    return Run(spec)


def arguments(program: Program, session: str | None = None) -> tuple[str, ...]:
    """Returns the argument list that starts Claude Code, without a sandbox."""
    words = [*(program.command or _COMMAND), *_OPTIONS]
    if program.model:
        words += ("--model", program.model)
    if session is not None:
        words += ("--resume", session)
    return tuple(words)


class Run:
    """A conversation with one Claude Code."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        # It ends at once where there is no such session.
        session = spec.session if _has_session(spec.session, spec.env) else None
        argv = spec.wrap(arguments(spec.program, session))
        env = {**_ENVIRONMENT, **spec.env}
        self._dialogue = Dialogue(argv, cwd=spec.tree, env=env, log=spec.log)
        self._reader = Reader(session)
        self._has_exited = False

    @property
    def pid(self) -> int | None:
        """Returns the process of Claude Code, None when it is gone."""
        return None if self._has_exited else self._dialogue.pid

    @property
    def session(self) -> str | None:
        """Returns the id of the session; None until a new one has begun."""
        return self._reader.session

    def prompt(self, text: str) -> None:
        """Begins a turn."""
        self._say(text, self._reader.prompted(records.new_uuid()))

    def steer(self, text: str) -> bool:
        """Says something that the model reads after the tool calls that run now."""
        if not self._reader.is_running:
            return False
        self._say(text, self._reader.steered(records.new_uuid()))
        return True

    def events(self) -> Sequence[Event]:
        """Returns what happened since it was asked last."""
        code = self._dialogue.code()
        told: list[Event] = []
        now = self._spec.clock()
        for line in self._dialogue.lines():
            told += self._reader.read(records.record_of(line), now)
        if code is not None and not self._has_exited:
            self._has_exited = True
            told += (*self._reader.ended(code, self._dialogue.error_tail()), Exited(code))
        return told

    def interrupt(self) -> None:
        """Breaks the turn off, with the command that runs in it."""
        if self._reader.is_running:
            self._reader.is_interrupted = True
            request = {"subtype": "interrupt"}
            self._tell(type="control_request", request_id=records.new_uuid(), request=request)

    def close(self) -> None:
        """Ends its input; a turn that goes on is broken off, or it would be played to its end."""
        self.interrupt()
        self._dialogue.close_input()

    def terminate(self) -> None:
        """Sends SIGTERM to the whole process group."""
        self._dialogue.signal(_SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL to the process group, and to all that carries the mark of this run.

        The commands that it runs are in groups of their own, and would go on.
        """
        self._dialogue.signal(_SIGKILL)
        orphans.sweep(self._spec.env.get(orphans.VARIABLE, ""))

    def is_alive(self) -> bool:
        """Tells whether anything of its group still runs."""
        return self._dialogue.is_alive()

    def _say(self, words: str, uuid: str) -> None:
        message = {"role": "user", "content": records.plain(words)}
        self._tell(type="user", message=message, uuid=uuid)

    def _tell(self, **record: object) -> None:
        self._dialogue.write(records.line_of(record))


class Reader:
    """Makes events of records; knows which of our lines were taken."""

    def __init__(self, session: str | None = None) -> None:
        self.session = session
        self.is_running = False
        """A prompt was said, and its turn is not over."""
        self.is_interrupted = False
        self._prompt = ""
        self._is_taken = False
        self._tells_taken = False
        """It has told of a line that it took, so that it will tell of each."""
        self._late: set[str] = set()
        """Words for this turn that were not taken yet."""
        self._strays: set[str] = set()
        """Words for an earlier turn, whose `result` is still to come."""
        self._has_started = False
        self._has_spoken = False
        self._tools: dict[str, str] = {}
        self._until: float | None = None
        self._used = Usage()
        self._message = ""
        self._filled = self._window = 0

    def prompted(self, uuid: str) -> str:
        """Notes the line of a prompt, and returns its id."""
        self.is_running = True
        self.is_interrupted = self._is_taken = False
        self._prompt = uuid
        return uuid

    def steered(self, uuid: str) -> str:
        """Notes a line that was said while a turn goes on, and returns its id."""
        self._late.add(uuid)
        return uuid

    def ended(self, code: int, error: str) -> list[Event]:
        """Returns what the end of the process still has to tell of the turn."""
        if self.is_running and not self._has_spoken and programs.has_failed(code) and error:
            # It never got as far as speaking: an option or a setting is wrong.
            self.is_running = False
            return [Settled("error", error, is_retryable=False)]
        return []

    def read(self, record: Record, now: float) -> list[Event]:
        """Returns the events of a record; an unknown one has none."""
        kind = text(record, "type")
        self._has_spoken = self._has_spoken or bool(kind)
        match kind:
            case "system":
                return self._noted(record)
            case "rate_limit_event":
                self._note_limit(part(record, "rate_limit_info"))
            case "assistant":
                return self._acted(record)
            case "user" if record.get("isReplay") is True:
                self._note_taken(text(record, "uuid"))
            case "user":
                return [
                    Activity(self._tools.pop(text(one, "tool_use_id"), ""), is_over=True)
                    for one in parts(part(record, "message"), "content")
                    if one.get("type") == "tool_result"
                ]
            case "result":
                return self._resulted(record, now)
            case _:
                pass
        return []

    def _noted(self, record: Record) -> list[Event]:
        match text(record, "subtype"):
            case "init":
                session = text(record, "session_id") or self.session
                if self._has_started and session == self.session:
                    return [Activity()]
                self._has_started = True
                self.session = session
                return [Started(session), Activity()]
            case "api_retry":
                status = count(record, "error_status") or ""
                reason = f"{status} {text(record, 'error')}".strip()
                return [Retrying(count(record, "attempt"), reason)]
            case "compact_boundary":
                return [Compacted(text(part(record, "compact_metadata"), "trigger"))]
            case _:
                return []

    def _note_limit(self, limit: Record) -> None:
        is_reached = limit.get("status") == "rejected"
        self._until = amount(limit, "resetsAt") or None if is_reached else None

    def _note_taken(self, uuid: str) -> None:
        self._tells_taken = True
        self._late.discard(uuid)
        self._is_taken = self._is_taken or uuid == self._prompt

    def _acted(self, record: Record) -> list[Event]:
        message = part(record, "message")
        told = self._written(record, message)
        for one in parts(message, "content"):
            if one.get("type") == "tool_use":
                arguments = part(one, "input")
                tool = text(one, "name")
                self._tools[text(one, "id")] = tool
                target, key = records.target_of(arguments), records.key_of(arguments)
                told.append(Activity(tool, target, key))
        return told

    def _written(self, record: Record, message: Record) -> list[Event]:
        """Returns what a message has used; it comes in parts, which all tell the same."""
        name, usage = text(message, "id"), part(message, "usage")
        read = count(usage, *_INPUT)
        if not read or name == self._message or record.get("parent_tool_use_id"):
            return []
        self._message = name
        context = 100 * read / self._window if self._window else None
        self._used = self._used._replace(tokens=self._used.tokens + read, context=context)
        self._filled = read
        return [self._used]

    def _resulted(self, record: Record, now: float) -> list[Event]:
        used = self._usage_of(record)
        told: list[Event] = [] if used == self._used else [used]
        self._used = used
        self._tools.clear()
        if not self.is_running or self._is_of_another(record):
            return told
        self.is_running = False
        self._strays, self._late = self._late, set()
        return [*told, self._outcome(record, now)]

    def _is_of_another(self, record: Record) -> bool:
        """Tells whether a result is not the end of the turn that goes on."""
        if not self._tells_taken or self.is_interrupted:
            return False
        if not self._is_taken and self._strays:
            self._strays.clear()
            return True
        # What was said too late begins anew by itself; after an error nobody waits for that.
        return bool(self._late) and record.get("is_error") is not True

    def _usage_of(self, record: Record) -> Usage:
        models = [one for one in part(record, "modelUsage").values() if isinstance(one, dict)]
        if not models:
            cost = amount(record, "total_cost_usd")
            return self._used._replace(cost=max(cost, self._used.cost))
        self._window = max(count(one, "contextWindow") for one in models)
        context = 100 * self._filled / self._window if self._window else None
        return Usage(
            amount(record, "total_cost_usd"),
            sum(count(one, *_MODEL_TOKENS) for one in models),
            sum(count(one, "outputTokens") for one in models),
            context,
        )

    def _outcome(self, record: Record, now: float) -> Settled:
        said = text(record, "result")[:_LONGEST]
        reason = text(record, "terminal_reason")
        stop = text(record, "stop_reason")
        if stop == "refusal":
            return Settled("refused", said)
        if record.get("is_error") is not True:
            return Settled("length") if stop == "max_tokens" else Settled("done")
        if reason.startswith("aborted") or self.is_interrupted:
            return Settled("aborted")
        if text(record, "api_error") == "max_output_tokens":
            return Settled("length", said)
        errors = record.get("errors")
        told = errors if isinstance(errors, list) else []
        words = said or "; ".join(str(one) for one in told) or reason or text(record, "subtype")
        status = count(record, "api_error_status") or None
        return failures.settled(words, now, status=status, until=self._until)


def _has_session(session: str | None, env: Mapping[str, str]) -> bool:
    import glob

    if not session:
        return False
    home = env.get("CLAUDE_CONFIG_DIR") or os.path.join(env.get("HOME", ""), ".claude")
    pattern = os.path.join(glob.escape(home), "projects", "*", f"{glob.escape(session)}.jsonl")
    return bool(glob.glob(pattern))
