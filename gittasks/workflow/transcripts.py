"""What agents have written, line by line: the logs of their runs on this host.

A log is kept by the runner as `agents/<task>/<slot>.log`, and renamed when it has become too long.
Agents decide what stands in it, so it is read in parts, and nothing but a file is opened.
"""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import NothingFound
from gittasks.workflow import pool, steering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gittasks.workflow.project import Project

PAUSE = 0.25
"""How many seconds lie between two looks at a log."""

_PART = 64 * 1024
_MOST = 1024 * 1024
_FOLDER = "agents"


class Transcript(NamedTuple):
    """The log of one slot at one task."""

    slot: str
    task: str
    path: str


class Line(NamedTuple):
    """One line of a log."""

    slot: str
    task: str
    text: str


def transcripts(project: Project, target: str | None) -> list[Transcript]:
    """Returns the logs of a slot, of a task, or of everybody at work; those of a task oldest first.

    Raises UnknownAgent, UnknownTask, and NothingFound where nothing was written.
    """
    if target is None:
        found = _at_work(project)
        if not found:
            raise NothingFound("No agent is at work.", "Start some with `git tasks run`.")
        return found
    kept = _kept(project)
    if target in {one.slot for one in kept} or target in steering.known_slots(project):
        now = [one for one in _at_work(project) if one.slot == target]
        latest = [one for one in kept if one.slot == target][-1:]
        found = now or latest
    else:
        task_id = steering.task_meant(project, target)
        if task_id is None:
            known = (*steering.known_slots(project), *(one.slot for one in kept))
            raise steering.UnknownAgent("slot", target, known)
        found = [one for one in kept if one.task == task_id]
        target = task_id
    if not found:
        raise NothingFound(
            f"{target} has no log on this host.", "Run `git tasks pool status` to see who works."
        )
    return found


def last_lines(found: Sequence[Transcript], count: int) -> list[Line]:
    """Returns the last lines of each log, as many as are asked for."""
    lines: list[Line] = []
    for one in found:
        reader = _Reader(one.path)
        try:
            data = [*reader.tail(count), *reader.begun()]
        finally:
            reader.close()
        lines += [_line(one, text) for text in data[-count:] if count]
    return lines


def follow(
    project: Project,
    target: str | None,
    found: Sequence[Transcript],
    count: int,
    wait: Callable[[float], object] = time.sleep,
) -> Iterator[Line]:
    """Yields the last lines and what is written from now on, until the runs have ended.

    With no target, whoever begins to work is followed too, until no runner is left.
    """
    readers = {one: _Reader(one.path) for one in found}
    try:
        for one, reader in readers.items():
            yield from (_line(one, data) for data in reader.tail(count))
        is_over = False
        while not is_over:
            now = _at_work(project)
            is_over = not set(now) & set(readers) if target else not pool.views(project)
            for one in now if target is None else ():
                if one not in readers:
                    readers[one] = _Reader(one.path)
            # What was written before the end is read after the end was seen.
            for one, reader in readers.items():
                yield from (_line(one, data) for data in reader.lines())
                if is_over:
                    yield from (_line(one, data) for data in reader.begun())
            if not is_over:
                wait(PAUSE)
    finally:
        for reader in readers.values():
            reader.close()


def _at_work(project: Project) -> list[Transcript]:
    """Returns the logs of the slots that have a task now."""
    rows = [row for view in pool.views(project) for row in pool.rows_of(view)]
    return [
        Transcript(str(row["slot"]), str(row["task"]), str(row["log"]))
        for row in rows
        if row.get("slot") and row.get("task") and row.get("log")
    ]


def _kept(project: Project) -> list[Transcript]:
    """Returns every log that there is, the one written to last at the end."""
    root = os.path.join(project.state_dir, _FOLDER)
    found: list[tuple[int, Transcript]] = []
    for task in _names(root):
        for name in _names(os.path.join(root, task)) if task.isdigit() else ():
            path = os.path.join(root, task, name)
            if name.endswith(".log") and not os.path.islink(path):
                one = Transcript(name.removesuffix(".log"), task, path)
                found.append((_written_at(path), one))
    return [one for _, one in sorted(found)]


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _written_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def _open(path: str) -> int:
    """Returns a descriptor of a file, -1 where there is none; what is no file is not opened."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return -1
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return -1


def _line(one: Transcript, data: bytes) -> Line:
    return Line(one.slot, one.task, data.decode("utf-8", "replace").removesuffix("\r"))


class _Reader:
    """Reads what is appended to a file, also when it is cut short or another takes its place."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = _open(path)
        self._at = 0
        self._rest = b""

    def tail(self, count: int) -> list[bytes]:
        """Returns the last lines and goes on behind them; only so far back as is read at all."""
        lines: list[bytes] = []
        if self._fd >= 0:
            size = os.fstat(self._fd).st_size
            begin = max(0, size - _MOST)
            *lines, self._rest = os.pread(self._fd, size - begin, begin).split(b"\n")
            self._at = size
            if begin and lines:
                del lines[0]
        if len(lines) < count:
            lines = self._before() + lines
        return lines[-count:] if count else []

    def lines(self) -> Iterator[bytes]:
        """Yields the lines that were completed since the last time."""
        yield from self._read()
        while self._restart():
            yield from self._read()

    def begun(self) -> list[bytes]:
        """Returns the line that was begun and never completed, if any."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []

    def close(self) -> None:
        """Lets go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _before(self) -> list[bytes]:
        """Returns the lines of the file that had the name before this one."""
        earlier = _Reader(f"{self._path}.1")
        if earlier._fd < 0:
            return []
        try:
            size = os.fstat(earlier._fd).st_size
            begin = max(0, size - _MOST)
            lines = os.pread(earlier._fd, size - begin, begin).split(b"\n")
        finally:
            earlier.close()
        return lines[bool(begin) : None if lines[-1] else -1]

    def _read(self) -> Iterator[bytes]:
        if self._fd < 0:
            return
        if os.fstat(self._fd).st_size < self._at:
            self._at = 0
            self._rest = b""
        while part := os.pread(self._fd, _PART, self._at):
            self._at += len(part)
            *ended, self._rest = (self._rest + part).split(b"\n")
            yield from ended
            if len(self._rest) > _MOST:
                yield from self.begun()

    def _restart(self) -> bool:
        """Goes over to the file that has the name by now; tells whether there is another one."""
        fd = _open(self._path)
        if fd < 0:
            return False
        if self._fd >= 0 and os.path.samestat(os.fstat(fd), os.fstat(self._fd)):
            os.close(fd)
            return False
        self.close()
        self._fd = fd
        self._at = 0
        return True
