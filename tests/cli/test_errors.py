"""Whatever goes wrong is told in a sentence, with a hint and a code; no traceback gets out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gittasks.cli import errors, frame
from gittasks.domain.errors import Busy, GittasksError, Taken
from gittasks.plumbing.errors import (
    GitError,
    GitTimeout,
    LockTimeout,
    NotARepository,
    RefMoved,
)
from tests.support.cli import COMMAND, environment, tasks_inprocess


def run(failure: Callable[[], object], *words: str) -> int:
    """Makes a call that does as told where a command would be, and returns the exit status."""
    session = frame.Session()
    frame.read_globals(words, session)

    def call() -> None:
        failure()

    return errors.guarded(call, session, words)


def raising(error: BaseException) -> Callable[[], object]:
    def failure() -> None:
        raise error

    return failure


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (
            Taken("Held by \x1b[5meve.", "Wait.", "000042"),
            6,
            "error: Held by \\x1b[5meve.\nhint: Wait.\n",
        ),
        (GittasksError("No."), 1, "error: No.\n"),
        (
            NotARepository(("rev-parse",), 128, "fatal: nothing here"),
            3,
            "error: nothing here.\nhint: Go to a git repository, or make one with `git init`.\n",
        ),
        (
            GitTimeout(("fetch",), 3),
            75,
            "error: fetch did not end within 3 seconds.\n"
            "hint: Try again, or raise `git config gittasks.gitTimeout`.\n",
        ),
        (
            LockTimeout("/x", "process 7", 30),
            75,
            "error: The lock was not free within 30 seconds; held by process 7.\n"
            "hint: Try again when the holder has finished.\n",
        ),
        (
            RefMoved("refs/heads/x", "1", "2"),
            75,
            "error: refs/heads/x is at 2 but was expected at 1.\n"
            "hint: Try again: somebody else was faster.\n",
        ),
        (
            GitError(("log",), 128, "fatal: bad object"),
            1,
            "error: git failed: bad object.\nhint: Set GITTASKS_TRACE=1 to see each git call.\n",
        ),
        (
            PermissionError(13, "Permission denied", "/some/file"),
            1,
            "error: The system refused: /some/file: Permission denied.\n"
            "hint: Free space, or correct the permissions, and run the command again.\n",
        ),
        (KeyboardInterrupt(), 130, "error: Interrupted.\n"),
    ],
)
def test_every_kind_of_failure_has_its_words_and_its_code(
    error: BaseException, status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = run(raising(error))
    assert (ended, *capsys.readouterr()) == (status, "", told)


def test_a_failure_is_one_json_document_where_json_is_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended = run(raising(Busy("Locked.", "Wait.", "000042")), "--json")
    out, err = capsys.readouterr()
    assert (ended, err) == (75, "error: Locked.\nhint: Wait.\n")
    assert json.loads(out) == {
        "schema_version": 1,
        "kind": "error",
        "ledger": None,
        "error": {
            "code": 75,
            "name": "TEMP",
            "message": "Locked.",
            "hint": "Wait.",
            "retryable": True,
            "task": "000042",
        },
    }


def test_a_mistyped_line_is_one_json_document_too(home: Path) -> None:
    said = tasks_inprocess(home, "--nonsense", "--json", check=2)
    assert said.json()["error"]["name"] == "USAGE"


def test_behind_two_dashes_json_is_no_option(home: Path) -> None:
    assert tasks_inprocess(home, "--nonsense", "--", "--json", check=2).out == ""


def test_a_defect_is_admitted_and_leaves_a_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended = run(raising(ZeroDivisionError("nothing to divide by")), "--as", "hunter2")
    out, err = capsys.readouterr()
    report = Path(err.partition("the report is in ")[2].partition(".txt")[0] + ".txt")
    text, mode = report.read_text(encoding="utf-8"), report.stat().st_mode
    report.unlink()
    assert (ended, out) == (1, "")
    assert err == (
        "error: This is a defect of git tasks (ZeroDivisionError: nothing to divide by); "
        f"the report is in {report}.\n"
        "hint: Send the report with the words of the command that failed.\n"
    )
    assert "Traceback" in text
    assert "hunter2" not in text.partition("Traceback")[0]
    assert mode & 0o077 == 0


def test_a_reader_who_has_seen_enough_ends_it_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    ended = run(raising(BrokenPipeError(32, "Broken pipe")))
    assert (ended, capfd.readouterr().err) == (0, "")


def test_a_status_that_a_command_chose_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert errors.guarded(lambda: 7, frame.Session(), ()) == 7
    assert run(lambda: sys.exit(5)) == 5
    assert capsys.readouterr() == ("", "")


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "-h"], cwd=tmp_path, env=environment(), stdout=full,
            stderr=subprocess.PIPE, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "error: What was asked for is done, but its answer could not be written: "
        "No space left on device.\n"
        "hint: Look at it with `git tasks log` before you give the command again.\n"
    )


def test_a_closed_pipe_is_no_failure(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [*COMMAND, "-h"], cwd=tmp_path, env=environment(), stdout=write,
            stderr=subprocess.PIPE, check=False, timeout=60,
        )  # fmt: skip
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_report_does_without_the_metadata_of_click(tmp_path: Path) -> None:
    known = sys.path[:]
    sys.path[:] = [str(tmp_path)]
    try:
        text = errors._click_version()
    finally:
        sys.path[:] = known
    assert text == "unknown"
