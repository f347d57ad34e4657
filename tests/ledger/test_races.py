"""Several processes at one ledger: nothing that was acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from gittasks.domain import config
from gittasks.domain.errors import Refused
from gittasks.domain.requests import Note
from gittasks.ledger.ledger import Ledger
from gittasks.ledger.verify import verify
from tests.support.builders import BRANCH
from tests.support.git import git
from tests.support.ledgers import a_request, asks, open_ledger

CHECKOUT = Path(__file__).parents[2]

WRITER = """
import sys
import time
from gittasks.domain.requests import Note
from tests.support.ledgers import asks, open_ledger
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for number in range(count):
    ledger = open_ledger(folder)
    ledger.append(asks(Note("000001", f"{name} {number}")))
    ledger.close()
"""

CREATOR = """
import sys
import time
from tests.support.ledgers import a_request, asks, open_ledger
ledger = open_ledger(sys.argv[1])
done = ledger.append(asks(a_request(int(sys.argv[2]))))
print(done.events[0].task)
"""

READER = """
import sys
import time
from tests.support.ledgers import open_ledger
ledger = open_ledger(sys.argv[1])
print(len(ledger.snapshot.all_tasks()), len(ledger.ready()), ledger.snapshot.counts())
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    answers = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        answers.append(out.strip())
    return answers


def notes(folder: Path) -> list[str]:
    text = git(folder, "log", "--format=%b", BRANCH)
    return sorted(line.strip() for line in text.splitlines() if line.startswith("    "))


def assert_well(folder: Path) -> None:
    ledger = open_ledger(folder)
    assert verify(ledger).findings == ()
    ledger.close()
    assert git(folder, "fsck", "--connectivity-only", "--no-dangling", BRANCH) == ""


def test_every_note_of_eight_writers_is_there_once(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request()))
    finished([start(WRITER, folder, name, 4) for name in "abcdefgh"])
    assert notes(folder) == sorted(f"{name} {n}" for name in "abcdefgh" for n in range(4))
    assert_well(folder)


def test_tasks_created_at_once_get_numbers_of_their_own(ledger: Ledger, folder: Path) -> None:
    numbers = finished([start(CREATOR, folder, n) for n in range(1, 13)])
    assert sorted(numbers) == [f"{n:06d}" for n in range(1, 13)]
    assert_well(folder)


def test_sixteen_readers_that_find_no_cache_all_answer(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(*(a_request(n) for n in range(1, 31))))
    ledger.close()
    (folder / ".git" / "gittasks" / "cache.db").unlink()
    answers = finished([start(READER, folder) for _ in range(16)])
    assert answers == ["30 0 {'NEW': 30}"] * 16
    left = sorted(path.name for path in (folder / ".git" / "gittasks").iterdir())
    assert left == ["cache.db", "journal", "write.flk"]


def test_a_gc_that_prunes_at_once_takes_nothing_from_writers(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request()))
    loop = "while :; do git gc -q --prune=now; git pack-refs --all --prune; done"
    collector = subprocess.Popen(
        ["sh", "-c", loop], cwd=folder, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        finished([start(WRITER, folder, name, 6) for name in "abc"])
    finally:
        os.killpg(collector.pid, signal.SIGKILL)
        collector.wait()
    assert notes(folder) == sorted(f"{name} {n}" for name in "abc" for n in range(6))
    assert_well(folder)


def test_two_that_begin_at_once_leave_one_ledger(folder: Path) -> None:
    first, second = open_ledger(folder), open_ledger(folder)
    assert not first.exists
    assert not second.exists
    first.create(config.Project(base="master"), "Ada")
    with pytest.raises(Refused, match="already"):
        second.create(config.Project(base="main"), "Bob")
    assert open_ledger(folder).project().base == "master"


SPEAKER = """
import itertools, sys
from gittasks.domain.requests import Note
from tests.support.ledgers import asks, open_ledger
for number in itertools.count():
    ledger = open_ledger(sys.argv[1])
    ledger.append(asks(Note("000001", f"{sys.argv[2]} {number}")))
    ledger.close()
    print(f"{sys.argv[2]} {number}", flush=True)
"""


def test_a_writer_killed_anywhere_loses_nothing_it_had_acknowledged(
    ledger: Ledger, folder: Path
) -> None:
    ledger.append(asks(a_request()))
    acknowledged: list[str] = []
    for number in range(8):
        process = start(SPEAKER, folder, f"n{number}")
        assert process.stdout is not None
        acknowledged.append(process.stdout.readline().strip())
        time.sleep(0.011 * number)
        process.kill()
        acknowledged += process.communicate()[0].splitlines()
        begun = time.monotonic()
        ledger.append(asks(Note("000001", f"after {number}")))
        acknowledged.append(f"after {number}")
        assert time.monotonic() - begun < 9
    assert set(acknowledged) <= set(notes(folder))
    assert len(notes(folder)) == len(set(notes(folder)))
    assert_well(folder)
