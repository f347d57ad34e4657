"""One holder at a time, in the order of arrival: a lock the kernel keeps and frees with its owner.

The file is the one the package `filelock` would lock, so both exclude each other; it is never
removed, because removing it would let a second holder in.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from gittasks.plumbing.errors import LockTimeout

if TYPE_CHECKING:
    from types import FrameType

try:
    import fcntl
except ImportError:  # pragma: no cover - every POSIX system has it
    fcntl = None  # type: ignore[assignment]

# Which paths this process holds, and in which thread: the kernel would wait for ourselves.
_held: dict[str, tuple[int, int]] = {}

_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.02


class _Expired(BaseException):
    """The alarm rang while we queued; no handler in between may swallow it."""


class FileLock:
    """A lock on a file, with a bounded wait; not re-entrant."""

    __slots__ = ("_fallback", "_fd", "path", "timeout", "what")

    def __init__(self, path: str, timeout: float, what: str = "lock") -> None:
        self.path = path
        self.timeout = timeout
        self.what = what
        self._fd = -1
        self._fallback: object = None

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Waits for the lock; raises LockTimeout, naming the holder, when the time is over."""
        self._refuse_nesting()
        if fcntl is None:  # pragma: no cover
            self._acquire_fallback()
        else:
            self._acquire()
        _held[os.path.realpath(self.path)] = _here()
        self._sign()

    def release(self) -> None:
        """Lets the next one in."""
        _held.pop(os.path.realpath(self.path), None)
        fd, self._fd = self._fd, -1
        if fd >= 0:
            try:
                # A forked child shares the lock; closing alone would leave it with the child.
                fcntl.flock(fd, fcntl.LOCK_UN)
            finally:
                os.close(fd)
        if self._fallback is not None:  # pragma: no cover
            self._fallback.release()  # type: ignore[attr-defined]
            self._fallback = None

    @property
    def is_held(self) -> bool:
        """Returns whether this object holds the lock."""
        return self._fd >= 0 or self._fallback is not None

    def _refuse_nesting(self) -> None:
        if self.is_held or _held.get(os.path.realpath(self.path)) == _here():
            raise RuntimeError(f"{self.path} is held already; the {self.what} is not re-entrant.")

    def _acquire(self) -> None:
        deadline = time.monotonic() + self.timeout
        while True:
            fd = self._open()
            try:
                if not _try(fd) and not _queue(fd, deadline):
                    raise LockTimeout(self.path, self._holder(fd), self.timeout, self.what)
                if self._is_current(fd):
                    self._fd, fd = fd, -1
                    return
                # Somebody removed the file while we waited: what we locked is nobody's.
            finally:
                if fd >= 0:
                    os.close(fd)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self.path, flags, 0o666)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            return os.open(self.path, flags, 0o666)

    def _is_current(self, fd: int) -> bool:
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            return False
        mine = os.fstat(fd)
        return (mine.st_dev, mine.st_ino) == (now.st_dev, now.st_ino)

    def _sign(self) -> None:
        """Writes who we are into the file, for those who wait in vain."""
        if self._fd < 0:  # pragma: no cover
            return
        command = " ".join([os.path.basename(sys.argv[0] or "python"), *sys.argv[1:3]])
        line = f"{os.getpid()} {int(time.time())} {' '.join(command.split())[:120]}\n"
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, line.encode("utf-8", "replace"), 0)
        except OSError:
            # A full disk takes the name from the message, not the lock from us.
            pass

    def _holder(self, fd: int) -> str:
        try:
            pid, since, command = os.pread(fd, 400, 0).decode("utf-8", "replace").split(" ", 2)
            seconds = max(0, int(time.time()) - int(since))
            number = int(pid)
        except ValueError:
            return "an unknown process"
        return f"process {number} ({command.strip()}), for {seconds} seconds"

    def _acquire_fallback(self) -> None:  # pragma: no cover
        import filelock

        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        lock = filelock.FileLock(self.path, timeout=self.timeout)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise LockTimeout(self.path, "an unknown process", self.timeout, self.what) from None
        self._fallback = lock


def _here() -> tuple[int, int]:
    import _thread

    return os.getpid(), _thread.get_ident()


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _queue(fd: int, deadline: float) -> bool:
    """Waits in the kernel's queue where an alarm can end it; tries again and again elsewhere."""
    import signal
    import threading

    left = deadline - time.monotonic()
    if left <= 0:
        return False
    alarm_is_free = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, signal.SIG_IGN)
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )
    return _queue_in_kernel(fd, left) if alarm_is_free else _poll(fd, deadline)


def _queue_in_kernel(fd: int, seconds: float) -> bool:
    import signal

    waiting = True

    def ring(_signal: int, _frame: FrameType | None) -> None:
        # An alarm that rings after we have the lock is nobody's business any more.
        if waiting:
            raise _Expired

    before = signal.signal(signal.SIGALRM, ring)
    try:
        # It rings again: the first ring may come just before the kernel starts to wait.
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.05)
        fcntl.flock(fd, fcntl.LOCK_EX)
        waiting = False
        return True
    except _Expired:
        return False
    finally:
        waiting = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _poll(fd: int, deadline: float) -> bool:
    pause = _FIRST_PAUSE
    while time.monotonic() < deadline:
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        if _try(fd):
            return True
        pause = min(pause * 1.5, _LONGEST_PAUSE)
    return False
