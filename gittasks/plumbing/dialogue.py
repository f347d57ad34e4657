"""Speaks with a process line by line, for as long as it lives, and never waits for it.

Whoever holds a dialogue asks for its `lines` now and then; each call returns at once and moves
whatever can be moved: queued input out, both outputs in. The process is in a session of its own.
What it says is also appended to a log, which stays small and whose failures disturb nobody.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from gittasks.plumbing.errors import ProgramMissing
from gittasks.plumbing.processes import group_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SIGKILL = 9

_CHUNK = 1 << 16
# What one call takes in at most, about: a process that never stops talking must not hold us.
_AT_ONCE = 4 << 20
_LINES_AT_ONCE = 20_000
_LINE_LIMIT = 4 << 20
_CUT = b" (cut: the line is too long)"

_LOG_LIMIT = 8 << 20

_KEPT_ERROR_LINES = 200
_KEPT_ERROR_BYTES = 1 << 16
_TAIL_LINES = 10
_TAIL_WIDTH = 500

# How long a process that was killed because nobody holds it any more may take to be gone.
_GRACE = 0.3
_PAUSE = 0.002


def now() -> float:
    """Returns the time of the wall clock, in seconds since 1970."""
    return time.time()


class Dialogue:
    """A process in a session of its own, with its three streams in our hands.

    Its leader is not reaped while somebody holds the dialogue, so that its number stays its own
    and a signal cannot reach a stranger. A dialogue that nobody holds any more is killed.
    """

    __slots__ = (
        "_code", "_error_kept", "_error_lines", "_errors", "_in", "_is_closing", "_lines", "_log",
        "_out", "_pending", "_process", "_queue", "_stderr", "pid",
    )  # fmt: skip

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        log: str,
        takes_input: bool = True,
    ) -> None:
        """Starts the program; raises ProgramMissing where that is not possible."""
        self._process = _start(argv, cwd, env, takes_input)
        self.pid: int = self._process.pid
        self._in = _taken(self._process.stdin)
        self._out = _taken(self._process.stdout)
        self._stderr = _taken(self._process.stderr)
        self._log = log
        self._queue = bytearray()
        self._is_closing = False
        self._lines = _Lines()
        self._errors = _Lines()
        self._pending: list[bytes] = []
        self._error_lines: list[bytes] = []
        self._error_kept: list[bytes] = []
        self._code: int | None = None

    def lines(self) -> list[bytes]:
        """Returns what was said since it was asked last: whole lines, without their end.

        After the end of the process the last line comes also where it has no end.
        """
        self._pump()
        told = self._pending
        self._pending = []
        return told

    def error_lines(self) -> list[bytes]:
        """Returns the lines of standard error that came since it was asked last; the latest few."""
        told = self._error_lines
        self._error_lines = []
        return told

    def write(self, data: bytes) -> None:
        """Queues input and sends what can be sent; a pipe that was closed is fine."""
        if self._in >= 0 and not self._is_closing:
            self._queue += data
            self._send()

    def close_input(self) -> None:
        """Ends the input, after all that was queued."""
        self._is_closing = True
        self._send()

    def signal(self, number: int) -> None:
        """Sends a signal to the whole process group; one that is gone is fine."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def code(self) -> int | None:
        """Returns the exit code, negative for a signal, once the process has ended.

        None as long as it runs, or as `lines` still has something to tell.
        """
        if not self._pending:
            self._pump()
        return None if self._pending else self._code

    def is_alive(self) -> bool:
        """Tells whether the process, or anything left of its group, still runs."""
        return self._ended() is None or group_runs(self.pid)

    def error_tail(self) -> str:
        """Returns the last lines of standard error, in which nothing can move a cursor."""
        shown = (_printable(line) for line in self._error_kept[-_TAIL_LINES:])
        return "\n".join(line for line in shown if line.strip())

    def __del__(self) -> None:
        if hasattr(self, "_code"):
            self._release()

    def _pump(self) -> None:
        """Moves what can be moved without waiting."""
        self._send()
        if self._code is not None:
            return
        # Asked first: what was written before the end is then in the pipes already. A grandchild
        # may keep them open for good, and is no reason to wait.
        code = self._ended()
        said, out_is_empty = self._take(self._out, self._lines)
        errors, errors_are_empty = self._take(self._stderr, self._errors)
        if code is not None and out_is_empty and errors_are_empty:
            said += self._lines.rest()
            errors += self._errors.rest()
            self._close_all()
            self._code = code
        self._pending += said
        if errors:
            self._error_lines = _latest(self._error_lines + errors)
            self._error_kept = _latest(self._error_kept + errors)
        if said or errors:
            _append(self._log, said + errors)

    def _take(self, fd: int, lines: _Lines) -> tuple[list[bytes], bool]:
        """Reads what is there; returns the lines, and whether there is no more for now."""
        found: list[bytes] = []
        if fd < 0:
            return found, True
        taken = 0
        while taken < _AT_ONCE and len(found) < _LINES_AT_ONCE:
            try:
                chunk = os.read(fd, _CHUNK)
            except BlockingIOError:
                return found, True
            if not chunk:
                self._close(fd)
                return found, True
            taken += len(chunk)
            found += lines.feed(chunk)
        return found, False

    def _send(self) -> None:
        while self._queue and self._in >= 0:
            try:
                sent = os.write(self._in, memoryview(self._queue)[: 1 << 20])
            except BlockingIOError:
                return
            except BrokenPipeError:
                self._close(self._in)
                self._queue.clear()
                return
            del self._queue[:sent]
        if self._is_closing and self._in >= 0:
            self._close(self._in)

    def _ended(self) -> int | None:
        """Returns the exit code of a process that has ended, without taking its status away."""
        if self._code is not None:
            return self._code
        waitid = getattr(os, "waitid", None)
        if waitid is not None:
            try:
                found = waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return 0 if self._process.returncode is None else int(self._process.returncode)
            if found is None:
                return None
            status = int(found.si_status)
            return status if found.si_code == os.CLD_EXITED else -status
        code = self._process.poll()
        return None if code is None else int(code)

    def _close(self, fd: int) -> None:
        os.close(fd)
        for name in ("_in", "_out", "_stderr"):
            if getattr(self, name) == fd:
                setattr(self, name, -1)

    def _close_all(self) -> None:
        for fd in (self._in, self._out, self._stderr):
            if fd >= 0:
                self._close(fd)

    def _release(self) -> None:
        """Kills what nobody hears any more, and frees what it used."""
        self._close_all()
        if self._ended() is None:
            self.signal(_SIGKILL)
        deadline = time.monotonic() + _GRACE
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                self._process.returncode = -_SIGKILL
                return
            time.sleep(_PAUSE)


class _Lines:
    """Cuts a stream into lines; what never ends is cut off."""

    __slots__ = ("_buffer", "_is_cut")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._is_cut = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Returns the lines that a part of the stream completes."""
        found: list[bytes] = []
        *ended, begun = chunk.split(b"\n")
        for part in ended:
            self._add(part, found)
            if not self._is_cut:
                found.append(bytes(self._buffer))
            self._buffer.clear()
            self._is_cut = False
        self._add(begun, found)
        return found

    def rest(self) -> list[bytes]:
        """Returns what was begun and not ended."""
        left = [bytes(self._buffer)] if self._buffer else []
        self._buffer.clear()
        return left

    def _add(self, part: bytes, found: list[bytes]) -> None:
        if self._is_cut:
            return
        self._buffer += part
        if len(self._buffer) > _LINE_LIMIT:
            found.append(bytes(self._buffer[:_LINE_LIMIT]) + _CUT)
            self._buffer.clear()
            self._is_cut = True


def _start(argv: Sequence[str], cwd: str, env: Mapping[str, str], takes_input: bool) -> Any:
    import subprocess

    if not argv:
        raise ProgramMissing
    try:
        return subprocess.Popen(
            tuple(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE if takes_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        if error.filename == cwd:
            reason = f"{cwd}: {reason}"
        raise ProgramMissing(argv, reason) from error
    except ValueError as error:
        raise ProgramMissing(argv, str(error)) from error


def _taken(stream: Any) -> int:
    """Returns a descriptor of our own for a stream, which cannot block and is closed by us."""
    if stream is None:
        return -1
    fd = os.dup(stream.fileno())
    stream.close()
    os.set_blocking(fd, False)
    return fd


def _latest(lines: list[bytes]) -> list[bytes]:
    """Returns the last lines, as many as fit."""
    kept: list[bytes] = []
    size = 0
    for line in reversed(lines[-_KEPT_ERROR_LINES:]):
        size += len(line)
        if size > _KEPT_ERROR_BYTES:
            if not kept:
                kept.append(line[:_KEPT_ERROR_BYTES])
            break
        kept.append(line)
    return kept[::-1]


def _append(path: str, lines: Sequence[bytes]) -> None:
    """Appends lines to a log; a disk that is full, or a log that is no file, is no reason to end."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        try:
            _write_all(fd, b"\n".join(lines) + b"\n")
            is_full = os.fstat(fd).st_size > _LOG_LIMIT
        finally:
            os.close(fd)
        if is_full:
            os.replace(path, path + ".1")
    except OSError:
        pass


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _printable(line: bytes) -> str:
    text = line[:_TAIL_WIDTH].decode("utf-8", "replace").rstrip()
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text.replace("\t", " ")
    )
