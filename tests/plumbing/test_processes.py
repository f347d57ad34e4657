"""Processes seen before are told from later ones of the same number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from gittasks.plumbing import processes
from gittasks.plumbing.processes import is_alive, kill_group, process_identity


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def _start_of(pid: int) -> str:
    identity = process_identity(pid)
    assert identity is not None
    return identity[1]


def test_a_running_process_is_alive_under_its_start_time(sleeper: subprocess.Popen[bytes]) -> None:
    start = _start_of(sleeper.pid)
    assert (process_identity(sleeper.pid), is_alive(sleeper.pid, start)) == (
        (sleeper.pid, start),
        True,
    )


def test_another_process_with_the_same_number_is_not_the_one(
    sleeper: subprocess.Popen[bytes],
) -> None:
    assert not is_alive(sleeper.pid, "another start")


def test_a_zombie_is_dead(sleeper: subprocess.Popen[bytes]) -> None:
    start = _start_of(sleeper.pid)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert (process_identity(sleeper.pid), is_alive(sleeper.pid, start)) == (None, False)


def test_a_process_that_is_gone_is_dead(sleeper: subprocess.Popen[bytes]) -> None:
    start = _start_of(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    assert (process_identity(sleeper.pid), is_alive(sleeper.pid, start)) == (None, False)


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**40])
def test_a_number_that_is_no_process_is_dead(pid: int) -> None:
    assert (process_identity(pid), is_alive(pid, "x")) == (None, False)


def test_a_process_name_with_blanks_and_brackets_does_not_mislead(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    program = tmp_path_factory.mktemp("p") / "a ) R 1 (b"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(program), "60"])
    try:
        assert is_alive(process.pid, _start_of(process.pid))
    finally:
        process.kill()
        process.wait()


def test_the_start_time_differs_between_two_processes() -> None:
    first = subprocess.Popen(["/bin/sleep", "60"])
    time.sleep(0.05)
    second = subprocess.Popen(["/bin/sleep", "60"])
    try:
        assert _start_of(first.pid) != _start_of(second.pid)
    finally:
        for process in (first, second):
            process.kill()
            process.wait()


@pytest.mark.skipif(
    not any(os.access(p, os.X_OK) for p in ("/bin/ps", "/usr/bin/ps")), reason="no ps here"
)
def test_without_proc_the_same_is_asked_of_ps(sleeper: subprocess.Popen[bytes]) -> None:
    identity = processes._identity_by_ps(sleeper.pid)
    assert (identity is not None and identity[0], processes._identity_by_ps(2**22 + 1)) == (
        sleeper.pid,
        None,
    )


_STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pid = os.fork()
if pid:
    print(pid, flush=True)
time.sleep(60)
"""


def test_a_group_that_ends_when_asked_is_only_asked(sleeper: subprocess.Popen[bytes]) -> None:
    assert (kill_group(sleeper.pid, 10), sleeper.wait()) == (True, -signal.SIGTERM)


def test_a_group_that_does_not_listen_is_forced_with_all_its_children() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _STUBBORN], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    start = _start_of(child)
    ended = kill_group(process.pid, 0.1)
    process.communicate()
    assert (ended, process.returncode, is_alive(child, start)) == (True, -signal.SIGKILL, False)


def test_a_group_that_is_gone_is_fine(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    sleeper.wait()
    assert kill_group(sleeper.pid, 1)


@pytest.mark.parametrize("pgid", [0, 1, -5, os.getpgrp()])
def test_our_own_group_and_all_processes_are_never_ended(pgid: int) -> None:
    with pytest.raises(ValueError):
        kill_group(pgid, 0)
