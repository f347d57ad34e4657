"""Runs the console blocks of Markdown pages and compares what they print, page by page.

A block fenced as ```console holds commands (`$ `, continued by `> `) and what they print, standard
output and error together. All blocks of a page run in one bash session, in an empty folder with an
empty home; a command that fails ends the page, so a refusal is shown as `$ command || echo "exit $?"`.
In the expected output `[..]` stands for anything within a line and a line `...` for any lines; object
ids, dates and the temporary folder count as equal whatever they are. `--update-scenarios` writes
into the page what the commands print today.

A comment `<!-- slow: NAME=VALUE -->` in a page has it run a second time, with this variable of the
environment, when the tests marked `slow` are run.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.git import IDENTITY

CHECKOUT = Path(__file__).resolve().parents[2]
_PAGES = ("README.md", "docs/tutorial.md", "docs/how-to/*.md", "tests/scenarios/*.md")
_MARK = "\x1e"
_SECONDS = 300
_SLOW_SECONDS = 900
_SLOW = re.compile(r"^<!-- slow: (\w+)=(\S+) -->$", re.MULTILINE)
_VARYING = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z| ?[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d{8}T\d{6}Z(-\d+)?"), "<time>"),
    # Words such as "defaced" are taken for one too: on both sides alike.
    (re.compile(r"\b[0-9a-f]{7,64}\b"), "<id>"),
    (re.compile(r"\b\d{7,64}\b"), "<id>"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|seconds?)\b"), "<seconds>"),
)


class Step(NamedTuple):
    """One command of a page, and the lines of the page that hold what it should print."""

    line: int
    command: str
    first: int
    last: int
    expected: tuple[str, ...]


def read_steps(text: str) -> list[Step]:
    """Returns the commands of all console blocks, in the order of the page."""
    return list(_steps(text.split("\n")))


def _steps(lines: list[str]) -> Iterator[Step]:
    at = 0
    inside = False
    while at < len(lines):
        if lines[at].strip().startswith("```"):
            inside = not inside and lines[at].strip() == "```console"
            at += 1
        elif inside and lines[at].startswith("$ "):
            start, command = at, [lines[at][2:]]
            at += 1
            while lines[at].startswith("> "):
                command.append(lines[at][2:])
                at += 1
            first = at
            while not lines[at].startswith(("$ ", "```")):
                at += 1
            yield Step(start + 1, "\n".join(command), first, at, tuple(lines[first:at]))
        else:
            at += 1


def run_steps(
    steps: list[Step], folder: Path, more: Mapping[str, str], seconds: float
) -> list[tuple[list[str], int]]:
    """Returns printed lines and exit status for each command that was reached."""
    for name in ("bin", "home", "work"):
        (folder / name).mkdir()
    tool = folder / "bin" / "git-tasks"
    # Also for agents, to whom no variable of ours is passed on.
    line = f'PYTHONPATH="{CHECKOUT}" exec "{sys.executable}" -P -m gittasks "$@"'
    tool.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    tool.chmod(0o755)
    script = folder / "script"
    ending = f"_s=$?; printf '\\n{_MARK}%s\\n' $_s; [ $_s = 0 ] || exit 0\n"
    script.write_text("".join(f"{s.command}\n{ending}" for s in steps), encoding="utf-8")
    # The author is known, the dates are not: the product has no clock to set.
    author = {name: value for name, value in IDENTITY.items() if not name.endswith("DATE")}
    shell = subprocess.Popen(
        ["bash", "--noprofile", "--norc", script],
        cwd=folder / "work",
        env={
            **os.environ,
            **author,
            **more,
            "HOME": str(folder / "home"),
            "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        told = shell.communicate(timeout=seconds)[0]
    finally:
        # A page may have whole teams in the background, and they would go on without it.
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    printed = told.decode("utf-8", "replace").replace(str(folder / "home"), "/home/ada")
    printed = printed.replace(str(folder / "work"), "/home/ada/work")
    chunks = re.split(rf"\n{_MARK}(\d+)\n", printed)
    outputs = [chunk.removesuffix("\n") for chunk in chunks[::2]]
    ran = [
        (output.split("\n") if output else [], int(status))
        for output, status in zip(outputs, chunks[1::2], strict=False)
    ]
    # Without its mark, the last command ended the shell itself.
    return ran if len(ran) == len(steps) or chunks[-1] == "" else [*ran, ([outputs[-1]], -1)]


def _normal(line: str) -> str:
    for pattern, word in _VARYING:
        line = pattern.sub(word, line)
    return line.rstrip()


def is_as_expected(expected: tuple[str, ...], printed: list[str]) -> bool:
    """Tells whether the printed lines are those of the page, up to what varies."""
    pattern = ""
    for line in expected:
        if line == "...":
            pattern += r"(?:.*\n)*"
        else:
            pattern += r".*".join(re.escape(_normal(part)) for part in line.split("[..]")) + "\n"
    return re.fullmatch(pattern, "".join(_normal(line) + "\n" for line in printed)) is not None


class ScenarioFailed(Exception):
    """A page says something else than the commands do."""


class Page(pytest.File):
    """A Markdown page with console blocks."""

    def collect(self) -> Iterator[pytest.Item]:
        text = self.path.read_text(encoding="utf-8")
        if not read_steps(text):
            return
        story = Story.from_parent(self, name="story")
        story.add_marker(pytest.mark.timeout(_SECONDS + 10))
        yield story
        variables = dict(_SLOW.findall(text))
        if variables:
            long = Story.from_parent(self, name="slow story")
            long.variables, long.seconds = variables, _SLOW_SECONDS
            long.add_marker(pytest.mark.timeout(_SLOW_SECONDS + 10))
            long.add_marker(pytest.mark.slow)
            yield long


class Story(pytest.Item):
    """All commands of one page."""

    variables: Mapping[str, str] = {}
    seconds: float = _SECONDS

    def runtest(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        steps = read_steps(text)
        with tempfile.TemporaryDirectory(prefix="story-") as folder:
            ran = run_steps(steps, Path(folder).resolve(), self.variables, self.seconds)
        if self.config.getoption("update_scenarios"):
            self.path.write_text(_updated(text, steps, ran), encoding="utf-8")
        for step, (printed, status) in zip(steps, ran, strict=False):
            fits = is_as_expected(step.expected, printed)
            if status or not (fits or self.config.getoption("update_scenarios")):
                raise ScenarioFailed(_difference(self.path.name, step, printed, status))
        if len(ran) != len(steps):
            raise ScenarioFailed(f"{self.path.name}: line {steps[len(ran)].line} was not reached.")

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.path.name


def _difference(page: str, step: Step, printed: list[str], status: int) -> str:
    told = [f"  - {line}" for line in step.expected]
    seen = [f"  + {line}" for line in printed]
    return "\n".join(
        [f"{page}:{step.line}: $ {step.command}", *told, *seen, f"  (exit status {status})"]
    )


def _updated(text: str, steps: list[Step], ran: list[tuple[list[str], int]]) -> str:
    lines = text.split("\n")
    for step, (printed, status) in reversed(list(zip(steps, ran, strict=False))):
        # What a failing command says is no page's text: the page is wrong, or the product is.
        if status == 0 and not is_as_expected(step.expected, printed):
            lines[step.first : step.last] = printed
    return "\n".join(lines)


class Plugin:
    """Lets pytest collect the pages."""

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> Page | None:
        """Returns a page for the files that are scenarios."""
        is_page = any(file_path.match(str(CHECKOUT / pattern)) for pattern in _PAGES)
        return Page.from_parent(parent, path=file_path) if is_page else None


def add_option(parser: pytest.Parser) -> None:
    """Declares the switch that rewrites the pages."""
    parser.addoption(
        "--update-scenarios",
        action="store_true",
        help="write what the commands print into the Markdown pages",
    )
