"""What every agent program has in common: how it is started, prompted, heard and ended.

An adapter is a module with two functions, `probe` and `start`; the table of them is in
`gittasks.agents`. A run is one conversation with one agent in one tree. It is never waited for:
whoever drives it asks for its `events` now and then, and each call returns at once.

    start(spec) -> run      nothing is said yet; live programs (pi, claude) start their process here
    run.prompt(text)        a turn begins; programs of one prompt (codex, command) start now
    run.events()            Started, Activity, Usage, Retrying, Compacted … in the order they came
    Settled                 ends the turn, exactly once per prompt; the run takes the next prompt
    Exited                  the process is gone; without a Settled before it, the agent has died.
                            Programs of one prompt exit after each of them, which ends no run

The events are evidence for progress, cost and errors, never for authority: what an agent has
decided is only what `git tasks` left in its outbox. Outcomes are never read from an exit code,
except for `command`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from gittasks.plumbing import dialogue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Outcome = Literal["done", "error", "aborted", "length", "refused", "limit"]
"""How a turn ended, as the agent's program tells it."""


class Program(NamedTuple):
    """Which program with which model, as the pool file names it."""

    type: str
    provider: str = ""
    model: str = ""
    command: tuple[str, ...] = ()
    """The argument list; empty means the program's usual name on the PATH."""


class Capabilities(NamedTuple):
    """What a program can do here; with problems, each a sentence, it cannot be started."""

    version: str = ""
    live: bool = False
    """One process takes many prompts."""
    steer: bool = False
    """Words reach it while a turn goes on."""
    resume: bool = False
    """A session goes on in another process."""
    problems: tuple[str, ...] = ()


class RunSpec(NamedTuple):
    """All that a run needs to know; nothing else of this process reaches the agent."""

    program: Program
    tree: str
    """The working directory."""
    folder: str
    """The task's folder, which holds the tree; an agent's own files go below `<folder>/agent`."""
    env: Mapping[str, str]
    """The whole environment of the agent."""
    log: str
    """The file that every line of the agent's output is appended to."""
    session: str | None = None
    """The session to go on with."""
    wrap: Callable[[Sequence[str]], Sequence[str]] = tuple
    """Puts the sandbox around an argument list."""
    clock: Callable[[], float] = dialogue.now
    """Tells the time, in seconds since 1970."""


class Started(NamedTuple):
    """The agent is there; `session` names what can be resumed."""

    session: str | None = None


class Activity(NamedTuple):
    """A tool call began, or ended where `is_over`; `target` is its command or file.

    With no tool the agent thinks. `key` tells equal calls from others: the whole arguments.
    """

    tool: str | None = None
    target: str = ""
    key: str = ""
    is_over: bool = False


class Usage(NamedTuple):
    """What the session has used so far, in all: dollars where the program tells, and tokens.

    `output` are the tokens written, `context` the share of the window in use, in percent.
    """

    cost: float = 0.0
    tokens: int = 0
    output: int = 0
    context: float | None = None


class Retrying(NamedTuple):
    """The program tries a request again by itself."""

    attempt: int
    reason: str = ""


class Compacted(NamedTuple):
    """The program has shortened its own history."""

    reason: str = ""


class Settled(NamedTuple):
    """A turn is over. `until` is when a limit ends, in seconds since 1970, where it is known."""

    outcome: Outcome
    error: str = ""
    is_retryable: bool = True
    until: float | None = None


class Exited(NamedTuple):
    """The process is gone."""

    code: int


Event = Started | Activity | Usage | Retrying | Compacted | Settled | Exited


class AgentRun(Protocol):
    """One conversation with an agent."""

    @property
    def pid(self) -> int | None:
        """Returns the process that runs now, None between the prompts of a program of one each."""
        ...

    @property
    def session(self) -> str | None:
        """Returns the name of the session, by which another run could go on with it."""
        ...

    def prompt(self, text: str) -> None:
        """Begins a turn."""
        ...

    def steer(self, text: str) -> bool:
        """Says something while a turn goes on; returns whether the program can hear it."""
        ...

    def events(self) -> Sequence[Event]:
        """Returns what happened since it was asked last; never waits."""
        ...

    def interrupt(self) -> None:
        """Asks for the end of the turn, in the program's own way; the run lives on where it can."""
        ...

    def close(self) -> None:
        """Asks the program to end in its own way: by the end of its input, or politely."""
        ...

    def terminate(self) -> None:
        """Sends SIGTERM to the whole process group."""
        ...

    def kill(self) -> None:
        """Sends SIGKILL to the process group, and to all that carries the mark of this run."""
        ...

    def is_alive(self) -> bool:
        """Tells whether anything of this run still runs."""
        ...


class Adapter(Protocol):
    """A kind of agent: a module with these two functions."""

    def probe(self, program: Program, env: Mapping[str, str]) -> Capabilities:
        """Looks whether the program is there and new enough, and what it can do."""
        ...

    def start(self, spec: RunSpec) -> AgentRun:
        """Returns a run in which nothing was said yet.

        Raises ProgramMissing where a live program cannot be started. For a program of one prompt
        that is an error of the turn, not worth another try.
        """
        ...
