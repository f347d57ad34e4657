"""Runs commands and says what they cost: CPU of the process and all it started, wall time, memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.benchmarks.installation import Installation

# No gc of git's own runs beside what is measured.
SETTINGS = "[user]\n\tname = Ada\n\temail = ada@example.org\n[gc]\n\tauto = 0\n"

CLICK = "import click; click.group()(lambda: None).command('x')(lambda: None)"

# Where a process began shows in its peak: the launcher is smaller than anything it measures.
LAUNCHER = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
                     file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Sample(NamedTuple):
    """What one run cost, in seconds, and how it ended."""

    cpu: float
    wall: float
    status: int
    out: bytes
    err: bytes


class Units(NamedTuple):
    """What everything is compared with, in seconds of CPU."""

    p: float
    """`python -c pass`."""
    r: float
    """One `git rev-parse`."""
    c: float
    """A bare click group."""


class Budget(NamedTuple):
    """A target in interpreter starts, git processes and seconds."""

    p: float = 0.0
    r: float = 0.0
    seconds: float = 0.0

    def allowed(self, units: Units) -> float:
        """Returns the target in seconds of CPU."""
        return self.p * units.p + self.r * units.r + self.seconds


class Medians(NamedTuple):
    """The CPU of some cases in seconds, the units of the same rounds, and both round by round."""

    cpu: dict[str, float]
    units: Units
    rounds: tuple[tuple[Units, dict[str, float]], ...]

    def share(self, name: str, target: Budget) -> float:
        """Returns how much of a target a case took: each round is compared with its own units."""
        return median(cpu[name] / target.allowed(units) for units, cpu in self.rounds)


class Failed(Exception):
    """A command ended otherwise than expected."""


class Machine:
    """Runs the installed tool, git and python, all in one clean environment."""

    def __init__(self, installation: Installation, home: Path, rounds: int) -> None:
        """Takes what to run, an empty folder for its home, and how often to measure."""
        self.command = installation.command
        self.python = installation.python
        self.rounds = rounds
        self._calibrations: list[Units] = []
        home.mkdir()
        (home / "gitconfig").write_text(SETTINGS)
        self.environment = {
            "PATH": os.path.dirname(installation.command) + os.pathsep + os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "USER": "ada",
        }

    def run(
        self,
        argv: Sequence[str],
        folder: Path,
        *,
        env: Mapping[str, str] | None = None,
        expected: int | None = 0,
        stdin: bytes | None = None,
    ) -> Sample:
        """Runs a command to its end; raises Failed where it ends otherwise than expected."""
        started = time.perf_counter()
        with subprocess.Popen(
            argv,
            cwd=folder,
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            if stdin is not None:
                assert process.stdin is not None
                process.stdin.write(stdin)
                process.stdin.close()
            out = process.stdout.read()
            err = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
        if expected is not None and process.returncode != expected:
            raise Failed(
                f"{' '.join(argv)} ended with {process.returncode}:\n{err.decode(errors='replace')}"
            )
        return Sample(usage.ru_utime + usage.ru_stime, wall, process.returncode, out, err)

    def tasks(
        self,
        folder: Path,
        *words: str,
        env: Mapping[str, str] | None = None,
        expected: int | None = 0,
        stdin: bytes | None = None,
    ) -> Sample:
        """Runs the tool."""
        return self.run([self.command, *words], folder, env=env, expected=expected, stdin=stdin)

    def git(self, folder: Path, *words: str) -> Sample:
        """Runs git."""
        return self.run(["git", *words], folder)

    def units(self, last: int | None = None) -> Units:
        """Returns the medians of all rounds so far, or of the last ones."""
        taken = self._calibrations[-last:] if last else self._calibrations
        return Units(*(median(values) for values in zip(*taken, strict=True)))

    def calibrate(self, folder: Path) -> Units:
        """Measures the units once more."""
        units = Units(
            self.run([self.python, "-c", "pass"], folder).cpu,
            self.git(folder, "rev-parse", "HEAD").cpu,
            self.run([self.python, "-c", CLICK], folder).cpu,
        )
        self._calibrations.append(units)
        return units

    def interleaved(
        self, folder: Path, cases: Mapping[str, Callable[[], Sample]], rounds: int | None = None
    ) -> Medians:
        """Returns the median CPU of each case; every round measures the units and every case."""
        found: list[tuple[Units, dict[str, float]]] = []
        for _ in range(rounds or self.rounds):
            units = self.calibrate(folder)
            found.append((units, {name: case().cpu for name, case in cases.items()}))
        cpu = {name: median(one[name] for _, one in found) for name in cases}
        return Medians(cpu, self.units(len(found)), tuple(found))

    def peak(self, folder: Path, *words: str) -> int:
        """Returns the most memory that the tool, or a process it started, has used, in bytes."""
        done = self.run(
            [self.python, "-S", "-E", "-c", LAUNCHER, self.python, self.command, *words], folder
        )
        kilobytes = int(done.out.split()[-1])
        return kilobytes if sys.platform == "darwin" else kilobytes * 1024
