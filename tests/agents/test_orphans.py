"""What an agent left behind is found by the mark of its run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from gittasks.agents import orphans

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")


@pytest.fixture
def start() -> Iterator[Callable[[str, str], int]]:
    processes: list[subprocess.Popen[bytes]] = []

    def start(mark: str, script: str) -> int:
        env = {"PATH": os.defpath, "GITTASKS_RUN": mark}
        process = subprocess.Popen(["sh", "-c", script], env=env, stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout is not None
        return int(process.stdout.readline())

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_what_left_its_session_and_its_parent_is_found_and_killed(
    start: Callable[[str, str], int],
) -> None:
    mark = orphans.new_mark("clone")
    pid = start(mark, "setsid sleep 60 & echo $!")
    deadline = time.monotonic() + 10
    while orphans.marked(mark) != [pid] and time.monotonic() < deadline:
        time.sleep(0.005)
    assert (orphans.marked(mark), orphans.sweep(mark), orphans.marked(mark)) == ([pid], 1, [])


def test_the_runs_of_a_clone_are_told_from_those_of_another(
    start: Callable[[str, str], int],
) -> None:
    clone = os.urandom(8).hex()
    marks = [orphans.new_mark(clone), orphans.new_mark(clone), orphans.new_mark(f"{clone}0")]
    pids = [start(mark, "echo $$; exec sleep 60") for mark in marks]
    mine = {marks[0]: [pids[0]], marks[1]: [pids[1]]}
    assert orphans.of_clone(clone) == mine
    swept = sum(orphans.sweep(mark) for mark in orphans.of_clone(clone))
    assert (swept, orphans.of_clone(clone)) == (2, {})
    assert orphans.marked(marks[2]) == [pids[2]]


def test_no_mark_is_nobody(start: Callable[[str, str], int]) -> None:
    start(orphans.new_mark("clone"), "echo $$; exec sleep 60")
    assert (orphans.marked(""), orphans.sweep("")) == ([], 0)
