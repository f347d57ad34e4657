"""Runs the real command, as a process of its own, without a terminal."""

from __future__ import annotations

import io
import json as json_module
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

CHECKOUT = Path(__file__).resolve().parents[2]

# -P keeps the current folder off the import path: a test may stand in a clone of this project.
COMMAND = [sys.executable, "-P", "-m", "gittasks"]

# For a test that looks at what a process imports: coverage would be among it.
UNMEASURED = {"COVERAGE_PROCESS_START": None, "COVERAGE_PROCESS_CONFIG": None}


class Result(NamedTuple):
    """What one run of the command left behind."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """Returns what was printed, read as one JSON document."""
        return json_module.loads(self.out)


def environment(env: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Returns the test's environment with these changes; None takes a variable away."""
    merged: dict[str, str | None] = {**os.environ, "PYTHONPATH": str(CHECKOUT), **(env or {})}
    return {name: value for name, value in merged.items() if value is not None}


def tasks_process(
    cwd: str | os.PathLike[str], *args: str, env: Mapping[str, str | None] | None = None
) -> subprocess.Popen[str]:
    """Starts the command and returns the running process; the caller waits for it."""
    return subprocess.Popen(
        [*COMMAND, *args],
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="surrogateescape",
        start_new_session=True,
    )


def tasks(
    cwd: str | os.PathLike[str],
    *args: str,
    env: Mapping[str, str | None] | None = None,
    stdin: str | None = None,
    check: int | None = 0,
    timeout: float = 60,
) -> Result:
    """Runs `git tasks …` in the folder; fails unless the exit status is the one in `check`."""
    done = subprocess.run(
        [*COMMAND, *args],
        cwd=cwd,
        env=environment(env),
        input=stdin or "",
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="surrogateescape",
        # Without a controlling terminal nothing can ask the person at the keyboard.
        start_new_session=True,
        timeout=timeout,
    )
    result = Result(done.returncode, done.stdout, done.stderr)
    _require(result, args, check)
    return result


def tasks_inprocess(
    cwd: str | os.PathLike[str],
    *args: str,
    env: Mapping[str, str | None] | None = None,
    stdin: str | None = None,
    check: int | None = 0,
) -> Result:
    """Does what `tasks` does inside this process: ten times faster, but not isolated."""
    from gittasks.cli.main import main

    kept = sys.argv, sys.stdin, sys.stdout, sys.stderr, Path.cwd(), dict(os.environ)
    out, err = _captured(), _captured()
    sys.argv = ["git-tasks", *args]
    sys.stdin, sys.stdout, sys.stderr = _captured(stdin or ""), out, err
    _set_environment(environment(env))
    os.chdir(cwd)
    status = 0
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr, folder, variables = kept
        _set_environment(variables)
        os.chdir(folder)
    result = Result(status, _text(out), _text(err))
    _require(result, args, check)
    return result


def _captured(text: str = "") -> io.TextIOWrapper:
    buffer = io.BytesIO(text.encode("utf-8", "surrogateescape"))
    return io.TextIOWrapper(buffer, encoding="utf-8", errors="surrogateescape", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def _set_environment(variables: Mapping[str, str]) -> None:
    if dict(os.environ) != variables:
        os.environ.clear()
        os.environ.update(variables)


def _require(result: Result, args: tuple[str, ...], check: int | None) -> None:
    if check is not None and result.status != check:
        raise AssertionError(
            f"git tasks {' '.join(args)} ended with {result.status}, not {check}.\n"
            f"--- out\n{result.out}--- err\n{result.err}"
        )
