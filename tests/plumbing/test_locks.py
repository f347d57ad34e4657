"""The queue before the ledger: one at a time, bounded, freed with its holder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
import pytest

from gittasks.plumbing.errors import LockTimeout
from gittasks.plumbing.locks import FileLock

CHECKOUT = str(Path(__file__).resolve().parents[2])

_HOLD = """
import sys
from gittasks.plumbing.locks import FileLock
with FileLock(sys.argv[1], 20):
    print("held", flush=True)
    sys.stdin.read(1)
print("freed", flush=True)
"""

_COUNT = """
import sys
from gittasks.plumbing.locks import FileLock
path, counter, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
for _ in range(times):
    with FileLock(path, 60):
        with open(counter) as file:
            number = int(file.read())
        with open(counter, "w") as file:
            file.write(str(number + 1))
"""


def _start(script: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *args],
        env={**os.environ, "PYTHONPATH": CHECKOUT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "gittasks" / "write.flk")


@pytest.fixture
def holder(path: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until it is told to let go."""
    process = _start(_HOLD, path)
    assert _line(process) == "held"
    yield process
    process.kill()
    process.communicate()


def _in_thread(work: Callable[[], None]) -> list[Exception]:
    caught: list[Exception] = []

    def run() -> None:
        try:
            work()
        except (LockTimeout, RuntimeError) as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return caught


def test_a_free_lock_is_taken_and_freed_and_its_file_stays(path: str) -> None:
    lock = FileLock(path, 1)
    with lock:
        held = lock.is_held
    assert (held, lock.is_held, Path(path).exists()) == (True, False, True)


def test_a_lock_can_be_taken_again_after_it_was_freed(path: str) -> None:
    lock = FileLock(path, 1)
    for _ in range(3):
        with lock:
            assert lock.is_held


def test_a_failure_inside_frees_the_lock(path: str) -> None:
    with pytest.raises(ZeroDivisionError), FileLock(path, 1):
        _ = 1 / 0
    with FileLock(path, 0.1) as lock:
        assert lock.is_held


def test_taking_a_lock_twice_in_one_thread_is_refused(path: str) -> None:
    with FileLock(path, 1) as lock:
        for again in (lock, FileLock(path, 1)):
            with pytest.raises(RuntimeError, match="is not re-entrant"):
                again.acquire()
    with FileLock(path, 0.1) as lock:
        assert lock.is_held


def test_two_locks_on_two_files_may_be_held_at_once(path: str) -> None:
    with FileLock(path, 1) as one, FileLock(path + "2", 1) as two:
        assert (one.is_held, two.is_held) == (True, True)


def test_a_time_out_names_who_holds_it(path: str, holder: subprocess.Popen[str]) -> None:
    started = time.monotonic()
    with pytest.raises(LockTimeout) as caught:
        FileLock(path, 0.2, "ledger").acquire()
    waited = time.monotonic() - started
    error = caught.value
    assert (error.path, error.seconds, 0.2 <= waited < 10) == (path, 0.2, True)
    words = str(error).removesuffix(" seconds.").rpartition(" ")[0]
    assert words == (
        f"The ledger was not free within 0.2 seconds; held by process {holder.pid} (-c {path}), for"
    )


def test_a_time_out_of_zero_does_not_wait(path: str, holder: subprocess.Popen[str]) -> None:
    started = time.monotonic()
    with pytest.raises(LockTimeout):
        FileLock(path, 0).acquire()
    assert time.monotonic() - started < 5


def test_a_time_out_in_another_thread_is_bounded_too(
    path: str, holder: subprocess.Popen[str]
) -> None:
    caught = _in_thread(FileLock(path, 0.2).acquire)
    assert [type(error) for error in caught] == [LockTimeout]


def test_a_thread_waits_for_another_one_of_the_same_process(path: str) -> None:
    with FileLock(path, 1):
        caught = _in_thread(FileLock(path, 0.1).acquire)
    assert [type(error) for error in caught] == [LockTimeout]


def test_an_unreadable_holder_is_told_as_unknown(path: str, holder: subprocess.Popen[str]) -> None:
    Path(path).write_bytes(b"\xff no such\n")
    with pytest.raises(LockTimeout, match="held by an unknown process"):
        FileLock(path, 0.05).acquire()


def test_a_waiting_process_gets_the_lock_when_it_is_freed(
    path: str, holder: subprocess.Popen[str]
) -> None:
    assert holder.stdin is not None
    timer = threading.Timer(0.2, holder.kill)
    timer.start()
    with FileLock(path, 20) as lock:
        assert lock.is_held
    timer.join()


def test_a_killed_holder_leaves_the_lock_free(path: str, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    with FileLock(path, 5) as lock:
        assert lock.is_held


def test_a_child_of_the_holder_does_not_keep_the_lock(path: str) -> None:
    with FileLock(path, 1):
        child = subprocess.Popen(["/bin/sleep", "30"], close_fds=False)
    try:
        with FileLock(path, 0.2) as lock:
            assert lock.is_held
    finally:
        child.kill()
        child.wait()


def test_the_package_filelock_and_we_exclude_each_other(path: str) -> None:
    Path(path).parent.mkdir()
    with filelock.FileLock(path), pytest.raises(LockTimeout):
        FileLock(path, 0.05).acquire()
    with FileLock(path, 1), pytest.raises(filelock.Timeout):
        filelock.FileLock(path, timeout=0.05).acquire()


def test_a_file_removed_by_somebody_lets_only_one_in(
    path: str, holder: subprocess.Popen[str]
) -> None:
    waiting = _start(_HOLD, path)
    time.sleep(0.2)
    Path(path).unlink()
    with FileLock(path, 5):
        holder.kill()
        time.sleep(0.2)
        assert waiting.poll() is None
    told = _line(waiting)
    waiting.communicate("x")
    assert told == "held"


def test_many_processes_lose_no_update(path: str, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0", encoding="ascii")
    processes = [_start(_COUNT, path, str(counter), "25") for _ in range(6)]
    statuses = [process.wait(60) for process in processes]
    for process in processes:
        process.communicate()
    assert (statuses, counter.read_text(encoding="ascii")) == ([0] * 6, "150")


def test_the_alarm_of_the_program_is_left_alone(path: str, holder: subprocess.Popen[str]) -> None:
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(LockTimeout):
            FileLock(path, 0.1).acquire()
        handler_kept = signal.getsignal(signal.SIGALRM)
        time.sleep(0.5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (rung, callable(handler_kept)) == ([signal.SIGALRM], True)


_ALARM_AFTERWARDS = """
import signal, sys, time
from gittasks.plumbing.errors import LockTimeout
from gittasks.plumbing.locks import FileLock
try:
    FileLock(sys.argv[1], 0.2).acquire()
except LockTimeout:
    print("timed out")
print(signal.getsignal(signal.SIGALRM) is signal.SIG_DFL, signal.getitimer(signal.ITIMER_REAL))
"""


def test_after_queueing_in_the_kernel_no_alarm_is_left(
    path: str, holder: subprocess.Popen[str]
) -> None:
    out, _ = _start(_ALARM_AFTERWARDS, path).communicate()
    assert out.splitlines() == ["timed out", "True (0.0, 0.0)"]


def test_a_folder_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="ascii")
    with pytest.raises(OSError):
        FileLock(str(tmp_path / "file" / "x.flk"), 1).acquire()
