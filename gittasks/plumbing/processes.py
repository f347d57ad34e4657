"""Tells whether a process seen before still runs, and ends groups and families of processes."""

from __future__ import annotations

import os
import time

_SIGTERM = 15
_SIGKILL = 9
_PAUSE = 0.02
_SWEEPS = 20

# Field numbers of /proc/<pid>/stat, counted behind the name, which may hold anything.
_STATE, _GROUP, _START = 0, 2, 19


def process_identity(pid: int) -> tuple[int, str] | None:
    """Returns the process with its start time, which tells it from a later one of that number."""
    if pid <= 0:
        return None
    if _has_proc():
        fields = _stat(pid)
        return None if fields is None or _is_gone(fields[_STATE]) else (pid, _started(fields))
    return _identity_by_ps(pid)


def is_alive(pid: int, start: str) -> bool:
    """Returns whether this very process still runs; a zombie does not."""
    identity = process_identity(pid)
    if identity is not None:
        return identity[1] == start
    if _has_proc() and _stat(pid) is not None:
        return False
    # Not to be seen is not the same as not to be there.
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return not _has_proc()


def kill_group(pgid: int, grace: float) -> bool:
    """Asks a process group to end, then forces it; returns whether nothing of it is left."""
    if pgid <= 1:
        raise ValueError(f"{pgid} is not the id of a process group that can be ended.")
    if pgid == os.getpgrp():
        raise ValueError("The own process group is not ended.")
    if not _signal_group(pgid, _SIGTERM):
        return True
    if _wait_for_group(pgid, grace):
        return True
    _signal_group(pgid, _SIGKILL)
    return _wait_for_group(pgid, 2.0)


def with_variable(name: str, prefix: str) -> dict[int, str]:
    """Returns the other processes started with a variable that begins so, with its value.

    What left its session, its group and its parent still has the environment it came with. There
    are none where the system does not show it.
    """
    found: dict[int, str] = {}
    start = f"{name}={prefix}".encode()
    for pid in _all_processes():
        for setting in _environment_of(pid):
            if setting.startswith(start):
                value = setting[len(name) + 1 :].decode("utf-8", "replace")
                found[pid] = value
    found.pop(os.getpid(), None)
    return found


def kill_with_variable(name: str, prefix: str) -> int:
    """Kills all such processes, until none is left; returns how many were there.

    Gives up where one cannot be killed, or where new ones keep coming for too long.
    """
    killed: set[int] = set()
    for _ in range(_SWEEPS):
        found = with_variable(name, prefix)
        for pid in found:
            try:
                os.kill(pid, _SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        if not found:
            break
        killed.update(found)
        time.sleep(_PAUSE / 2)
    return len(killed)


def _all_processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:
        return []


def _environment_of(pid: int) -> list[bytes]:
    # That of a zombie is empty.
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")


def _stat(pid: int) -> list[str] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode("ascii", "replace").split()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _is_gone(state: str) -> bool:
    return state in ("Z", "X", "x")


def _started(fields: list[str]) -> str:
    # Ticks count from the start of the machine, so they need to say which start that was.
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return f"{boot}:{fields[_START]}"


def _identity_by_ps(pid: int) -> tuple[int, str] | None:
    from gittasks.plumbing.errors import GitError
    from gittasks.plumbing.process import run

    program = next((p for p in ("/bin/ps", "/usr/bin/ps") if os.access(p, os.X_OK)), None)
    if program is None:
        return None
    argv = [program, "-o", "stat=,lstart=", "-p", str(pid)]
    try:
        done = run(argv, env={"LC_ALL": "C", "TZ": "UTC"}, timeout=10)
    except GitError:
        return None
    state, _, start = done.stdout.decode("ascii", "replace").strip().partition(" ")
    return None if done.status or not state or state.startswith("Z") else (pid, start.strip())


def _signal_group(pgid: int, number: int) -> bool:
    try:
        os.killpg(pgid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _wait_for_group(pgid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while group_runs(pgid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE)
    return True


def group_runs(pgid: int) -> bool:
    """Tells whether anything of a process group still runs; what was not reaped does not."""
    if not _signal_group(pgid, 0):
        return False
    if not _has_proc():
        return True
    # A zombie whose parent does not look still counts for the kernel; it does nothing any more.
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _stat(int(name))
            if fields is not None and fields[_GROUP] == str(pgid) and not _is_gone(fields[_STATE]):
                return True
    return False
