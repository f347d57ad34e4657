"""Starts processes and speaks to them, bounded in time.

Built on `posix_spawn`: importing `subprocess` costs more than a whole interpreter start.
"""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING, NamedTuple

from gittasks.plumbing.errors import GitError, GitTimeout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# POSIX fixes these numbers; `import signal` would bring `enum` with it.
_SIGKILL = 9
_SIGPIPE = 13
_SIGTERM = 15

# How long a process that is stopped may take to remove its lock files.
_GRACE = 0.3

_CHUNK = 1 << 16
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
_KEPT_STDERR = 1 << 16


class Completed(NamedTuple):
    """What a process left behind."""

    status: int
    stdout: bytes
    stderr: bytes


def run(
    argv: Sequence[str], *, stdin: bytes = b"", env: Mapping[str, str], timeout: float
) -> Completed:
    """Runs a program to its end; kills its whole process group when the time is over."""
    child = Child(argv, env=env, timeout=timeout, pipe_stdin=bool(stdin))
    try:
        return child.finish(stdin)
    finally:
        child.kill()


class Child:
    """A running process in a session of its own, with its three streams in our hands."""

    __slots__ = (
        "_argv", "_buffer", "_error", "_in", "_out", "_pidfd", "_poll", "_stderr", "_timeout",
        "pid", "status",
    )  # fmt: skip

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        timeout: float,
        pipe_stdin: bool = True,
    ) -> None:
        self._argv = tuple(argv)
        self._timeout = timeout
        self._buffer = bytearray()
        self._error = bytearray()
        self.status: int | None = None
        self.pid, self._in, self._out, self._stderr = _spawn(argv, env, pipe_stdin)
        # Where the kernel tells of the end, a grandchild that keeps our pipes open is no reason
        # to wait for it.
        self._pidfd = _pidfd(self.pid)
        self._poll = select.poll()
        for fd in (self._out, self._stderr, self._pidfd):
            if fd >= 0:
                self._poll.register(fd, _READABLE)

    def write(self, data: bytes) -> None:
        """Writes everything, and keeps what the process says meanwhile; a closed pipe is fine."""
        deadline = time.monotonic() + self._timeout
        view = memoryview(data)
        while view and self._in >= 0:
            sent = self._send(view)
            view = view[sent:]
            if view and self._in >= 0:
                self._wait(deadline, writing=True)

    def read_line(self) -> bytes:
        """Returns the next line without its end; nothing more than what is left at the end."""
        return self.read_to(b"\n").removesuffix(b"\n")

    def read_to(self, mark: bytes) -> bytes:
        """Returns what comes up to a byte, with it; without it only what is left at the end."""
        deadline = time.monotonic() + self._timeout
        start = 0
        while True:
            end = self._buffer.find(mark, start) + 1
            if end > 0:
                line = bytes(self._buffer[:end])
                del self._buffer[:end]
                return line
            start = len(self._buffer)
            if self._out < 0:
                rest = bytes(self._buffer)
                self._buffer.clear()
                return rest
            self._wait(deadline)

    def read_exactly(self, count: int) -> bytes:
        """Returns the next bytes; fails when the process ends before it said so many."""
        deadline = time.monotonic() + self._timeout
        while len(self._buffer) < count:
            if self._out < 0:
                raise self.failure()
            self._wait(deadline)
        data = bytes(memoryview(self._buffer)[:count])
        del self._buffer[:count]
        return data

    def finish(self, stdin: bytes = b"") -> Completed:
        """Writes the input, reads both outputs to their end and waits for the process."""
        deadline = time.monotonic() + self._timeout
        view = memoryview(stdin)
        while True:
            if self._in >= 0:
                view = view[self._send(view) :]
                if not view:
                    self._close_stdin()
            if self._out < 0 and self._stderr < 0:
                break
            self._wait(deadline, writing=self._in >= 0)
        status = self._reap(deadline)
        return Completed(status, bytes(self._buffer), bytes(self._error))

    def close(self) -> Completed:
        """Closes its input, waits for its end and returns what it still said."""
        self._close_stdin()
        try:
            return self.finish()
        finally:
            self.kill()

    def failure(self) -> GitError:
        """Returns the error that tells why the process ended early."""
        status = self._reap(time.monotonic() + self._timeout)
        return GitError(self._argv, status, self._error.decode("utf-8", "replace"))

    def kill(self) -> None:
        """Stops the process group if the process still runs, and frees what it used."""
        self._close_stdin()
        self._close_output()
        if self.status is None:
            # git removes its lock files when it is asked to end, and cannot when it is forced.
            _signal_group(self.pid, _SIGTERM)
            _await_end(self.pid, _GRACE)
            # The leader is not reaped yet, so the group cannot be somebody else's by now.
            _signal_group(self.pid, _SIGKILL)
            self._note(os.waitpid(self.pid, 0)[1])
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def __del__(self) -> None:
        # Whoever forgets to close it must not keep its pipes for good.
        if getattr(self, "_pidfd", None) is not None and getattr(self, "_poll", None) is not None:
            try:
                self.kill()
            except (OSError, KeyError):
                pass

    def _send(self, view: memoryview) -> int:
        try:
            return os.write(self._in, view[: 1 << 20])
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            self._close_stdin()
            return 0

    def _wait(self, deadline: float, *, writing: bool = False) -> None:
        """Waits until something can be read (or written) and takes in what was said."""
        left = deadline - time.monotonic()
        if left <= 0:
            self._give_up()
        if writing and self._in >= 0:
            self._poll.register(self._in, select.POLLOUT)
        try:
            ready = self._poll.poll(left * 1000 + 1)
        finally:
            if writing and self._in >= 0:
                self._poll.unregister(self._in)
        ended = False
        for fd, _ in ready:
            if fd == self._pidfd:
                ended = True
            elif fd in (self._out, self._stderr):
                self._take(fd)
        if ended:
            self._drain()

    def _take(self, fd: int) -> bool:
        """Reads once; returns whether there may be more."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._poll.unregister(fd)
            os.close(fd)
            if fd == self._out:
                self._out = -1
            else:
                self._stderr = -1
            return False
        if fd == self._out:
            self._buffer += chunk
        else:
            self._error += chunk
            del self._error[:-_KEPT_STDERR]
        return True

    def _drain(self) -> None:
        """Takes what a process that has ended left in its pipes, and closes them."""
        for fd in (self._out, self._stderr):
            while fd >= 0 and self._take(fd):
                pass
        self._close_output()
        self._close_stdin()
        self._poll.unregister(self._pidfd)

    def _reap(self, deadline: float) -> int:
        """Waits for the end of a process that has closed its outputs."""
        pause = 0.0002
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._note(status)
                break
            if time.monotonic() > deadline:
                self._give_up()
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        return self.status if self.status is not None else -1

    def _give_up(self) -> None:
        self.kill()
        raise GitTimeout(self._argv, self._timeout, self._error.decode("utf-8", "replace"))

    def _note(self, status: int) -> None:
        self.status = os.waitstatus_to_exitcode(status)

    def _close_stdin(self) -> None:
        if self._in >= 0:
            os.close(self._in)
            self._in = -1

    def _close_output(self) -> None:
        for fd in (self._out, self._stderr):
            if fd >= 0:
                self._poll.unregister(fd)
                os.close(fd)
        self._out = self._stderr = -1


def _spawn(
    argv: Sequence[str], env: Mapping[str, str], pipe_stdin: bool
) -> tuple[int, int, int, int]:
    """Starts the program; returns its id and our ends of its input, output and errors."""
    mine: list[int] = []
    theirs: list[int] = []
    actions: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = []
    try:
        if pipe_stdin:
            read, write = _pipe()
            theirs.append(read)
            mine.append(write)
            actions.append((os.POSIX_SPAWN_DUP2, read, 0))
        else:
            mine.append(-1)
            actions.append((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0))
        for target in (1, 2):
            read, write = _pipe()
            mine.append(read)
            theirs.append(write)
            actions.append((os.POSIX_SPAWN_DUP2, write, target))
        for fd in mine:
            if fd >= 0:
                os.set_blocking(fd, False)
        pid = _posix_spawn(argv, env, actions)
    except BaseException:
        _close_all(mine)
        raise
    finally:
        _close_all(theirs)
    return pid, mine[0], mine[1], mine[2]


def _posix_spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    actions: Sequence[tuple[int, int, int] | tuple[int, int, str, int, int]],
) -> int:
    # Python ignores SIGPIPE, and what is ignored stays ignored in a child.
    defaults = (_SIGPIPE,)
    try:
        return os.posix_spawn(
            argv[0], tuple(argv), env, file_actions=actions, setsid=True, setsigdef=defaults
        )
    except NotImplementedError:
        return os.posix_spawn(
            argv[0], tuple(argv), env, file_actions=actions, setpgroup=0, setsigdef=defaults
        )
    except OSError as error:
        raise GitError(argv, -1, f"{argv[0]} cannot be started: {error.strerror}") from error


def _pipe() -> tuple[int, int]:
    """Returns a pipe that no child inherits and that is none of the standard streams."""
    read, write = os.pipe()
    if read > 2 and write > 2:
        return read, write
    import fcntl

    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (read, write)]
    _close_all((read, write))
    return moved[0], moved[1]


def _close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


def _pidfd(pid: int) -> int:
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return -1
    try:
        return int(opener(pid))
    except OSError:
        return -1


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def _await_end(pid: int, seconds: float) -> None:
    """Waits for a child to end, without taking its status away."""
    waitid = getattr(os, "waitid", None)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if waitid is not None and waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return
        time.sleep(0.005)
