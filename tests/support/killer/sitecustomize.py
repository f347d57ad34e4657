"""Kills the process it is loaded into at the n-th step that touches the world.

A step is whatever Python reports to its audit hooks: a file opened for writing, a rename, a new
folder, a child process, a database. KILL_AT=0 only counts. Whoever comes to an end writes how
many steps it took into the file KILL_COUNT.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

_STEPS = frozenset(
    (
        "os.rename",
        "os.remove",
        "os.mkdir",
        "os.rmdir",
        "os.link",
        "os.posix_spawn",
        "os.truncate",
        "subprocess.Popen",
        "shutil.rmtree",
        "shutil.move",
        "sqlite3.connect",
    )
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def _install(at: int, count: str) -> None:
    seen = 0

    def step(event: str, args: tuple[object, ...]) -> None:
        nonlocal seen
        if event == "open":
            flags = args[2]
            if not isinstance(flags, int) or not flags & _WRITING or args[0] == count:
                return
        elif event not in _STEPS:
            return
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def tell() -> None:
        with open(count, "w", encoding="ascii") as file:
            file.write(str(seen))

    if count:
        atexit.register(tell)
    sys.addaudithook(step)


if "KILL_AT" in os.environ:
    _install(int(os.environ.pop("KILL_AT")), os.environ.pop("KILL_COUNT", ""))
