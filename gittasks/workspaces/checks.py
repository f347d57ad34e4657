"""Runs shell commands in a task's tree: all of them, bounded in time, leaving nothing behind.

Each command is one string for `/bin/sh -c`, in a session of its own, with no input and with both
outputs interleaved in one log. What a command started dies with it, also what left its session.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.events import CheckResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TAIL_LINES = 40
_LINE_LIMIT = 500
_TAIL_BYTES = 1 << 16
_OUTPUT_LIMIT = 256 << 20

TIMED_OUT = 124
"""The exit code of a command that was still running when its time was over."""

_MARK = "GITTASKS_CHECK"
_SCRIPT = 'cd -- "$1" && exec /bin/sh -c "$2" >"$3" 2>&1 </dev/null'
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.02
_BETWEEN_QUESTIONS = 0.25
_GRACE = 0.5


class Outcome(NamedTuple):
    """One command that ran: the result for the ledger, and its output, which stays here."""

    result: CheckResult
    log: str
    tail: str

    @property
    def has_failed(self) -> bool:
        """Tells whether the command refuted the commit."""
        return self.result.exit != 0

    @property
    def words(self) -> str:
        """Returns how the command ended."""
        if self.result.timed_out:
            return f"timed out after {self.result.seconds} s"
        if self.result.exit == 0:
            return "passed"
        return f"exit code {self.result.exit}"


class Run(NamedTuple):
    """All commands of a list that ran; `stopped` when somebody ended it early."""

    outcomes: tuple[Outcome, ...] = ()
    stopped: bool = False

    @property
    def results(self) -> tuple[CheckResult, ...]:
        """Returns what the ledger records of a run."""
        return tuple(one.result for one in self.outcomes)

    @property
    def has_passed(self) -> bool:
        """Tells whether every command ran and exited 0."""
        return not self.stopped and not any(one.has_failed for one in self.outcomes)

    @property
    def findings(self) -> tuple[str, ...]:
        """Returns one sentence for each command that failed; no output of it."""
        return tuple(
            f"The check `{printable(one.result.command)}` failed: {one.words}"
            f" (output sha256 {one.result.digest})."
            for one in self.outcomes
            if one.has_failed
        )

    @property
    def report(self) -> str:
        """Returns how each command ended, and the last lines of those that failed."""
        return "\n".join(_told(one) for one in self.outcomes)


def _told(one: Outcome) -> str:
    head = f"`{printable(one.result.command)}`: {one.words}"
    if not one.has_failed:
        return head
    return "\n".join([head, *(f"    {line}" for line in one.tail.splitlines())])


def run(
    commands: Sequence[str],
    tree: str,
    log_dir: str,
    *,
    limit: float,
    environ: Mapping[str, str] = os.environ,
    stop: Callable[[], bool] | None = None,
    owner: str = "",
) -> Run:
    """Runs all commands in order, also after one has failed; ends early only when told to.

    By its `owner` what a killed run has left can be found.
    """
    outcomes: list[Outcome] = []
    for number, command in enumerate(commands, 1):
        log = os.path.join(log_dir, f"{number}.log")
        outcome = run_one(command, tree, log, limit=limit, environ=environ, stop=stop, owner=owner)
        if outcome is None:
            return Run(tuple(outcomes), stopped=True)
        outcomes.append(outcome)
    return Run(tuple(outcomes))


def run_one(
    command: str,
    tree: str,
    log: str,
    *,
    limit: float,
    environ: Mapping[str, str] = os.environ,
    stop: Callable[[], bool] | None = None,
    owner: str = "",
) -> Outcome | None:
    """Runs one command to its end or its time limit; returns None when it was stopped."""
    from gittasks.plumbing.process import Child

    os.makedirs(os.path.dirname(log), mode=0o700, exist_ok=True)
    _make_empty(log)
    mark = owner + os.urandom(16).hex()
    env = {**environment(environ), _MARK: mark}
    argv = ("/bin/sh", "-c", _SCRIPT, "sh", tree, command, log)
    started = time.monotonic()
    child = Child(argv, env=env, timeout=limit, pipe_stdin=False)
    try:
        ending = _wait(child.pid, log, started + limit, stop)
        if ending == "late":
            _ask_to_end(child.pid)
    finally:
        # The session goes with its leader even when that one ended by itself.
        child.kill()
        sweep(mark)
    if ending == "stopped":
        return None
    seconds = round(time.monotonic() - started)
    digest, tail = _read_log(log)
    late = ending == "late"
    status = child.status or 0
    code = TIMED_OUT if late else status if status >= 0 else 128 - status
    if ending == "loud":
        tail += f"\n(stopped: more than {_OUTPUT_LIMIT >> 20} MiB of output)"
    return Outcome(CheckResult(command, code, digest, seconds, late), log, tail)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a check: nobody to ask, no repository but that of its folder."""
    from gittasks.plumbing.repository import unattended_environment

    return {
        name: value
        for name, value in unattended_environment(environ).items()
        if not name.startswith("GITTASKS_")
    }


def tail_of(log: str, digest: str) -> str | None:
    """Returns the last lines of an output that is still kept here, None where it is another one."""
    found, tail = _read_log(log)
    return tail if found == digest else None


def printable(text: str) -> str:
    """Returns text in which nothing can move a cursor or hide: such characters are spelled out."""
    return "".join(char if char == "\t" or _is_harmless(char) else _spelled(char) for char in text)


def _is_harmless(char: str) -> bool:
    return char == " " or char.isprintable()


def _spelled(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def _make_empty(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))


def _wait(pid: int, log: str, deadline: float, stop: Callable[[], bool] | None) -> str:
    """Waits, without reaping, until the process ends or has to be ended; says which."""
    pause = _FIRST_PAUSE
    asked = time.monotonic()
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        now = time.monotonic()
        if now >= deadline:
            return "late"
        if now - asked >= _BETWEEN_QUESTIONS:
            asked = now
            if stop is not None and stop():
                return "stopped"
            if _size(log) > _OUTPUT_LIMIT:
                return "loud"
        time.sleep(min(pause, deadline - now))
        pause = min(pause * 1.5, _LONGEST_PAUSE)
    return "ended"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        # A check may remove anything, also its own log.
        return 0


def _ask_to_end(pid: int) -> None:
    """Gives a test runner a moment to tidy up after itself."""
    from gittasks.plumbing.processes import kill_group

    kill_group(pid, _GRACE)


def sweep(mark: str) -> None:
    """Kills what left the session of a command: its environment still tells where it came from.

    With the owner of runs, all that is left of them.
    """
    from gittasks.plumbing.processes import kill_with_variable

    kill_with_variable(_MARK, mark)


def _read_log(path: str) -> tuple[str, str]:
    """Returns the digest of an output and its last lines."""
    import hashlib

    digest = hashlib.sha256()
    end = b""
    try:
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
                end = (end + chunk)[-_TAIL_BYTES:]
    except FileNotFoundError:
        pass
    lines = end.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    # What a progress bar wrote over was not meant to stay.
    shown = (printable(line.rstrip("\r").rpartition("\r")[2]) for line in lines[-TAIL_LINES:])
    return digest.hexdigest(), "\n".join(_shortened(line) for line in shown)


def _shortened(line: str) -> str:
    return line if len(line) <= _LINE_LIMIT else line[:_LINE_LIMIT] + " …"
