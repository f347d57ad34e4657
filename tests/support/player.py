"""A program that plays the records of an agent, for the adapters: `player.py PLAN [OPTION]...`.

A plan is a JSON file: `version`, what is answered to `--version`, and `runs`, the steps of the
first process, of the second, and so on:

    {"hear": TEXT}   reads lines until one holds the text
    {"say": RECORD}  writes a record; a text is written as it is
    {"err": TEXT}    writes a line to standard error
    {"sleep": SECONDS}
    {"exit": CODE}   ends; after the last step the end of the input is awaited first

The file beside it, `PLAN.heard`, gets the options of each process and every line that was heard.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def plan(
    folder: Path, *runs: list[dict[str, Any]], version: str = "99.0.0"
) -> tuple[str, str, str]:
    """Writes a plan, and returns the command that plays it."""
    path = folder / "plan.json"
    path.write_text(json.dumps({"version": version, "runs": runs}), encoding="utf-8")
    return sys.executable, os.path.abspath(__file__), str(path)


def heard(folder: Path) -> list[Any]:
    """Returns the options of each process, and the records that it heard."""
    lines = (folder / "plan.json.heard").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) if line.startswith(("{", "[")) else line for line in lines]


def _play(path: Path, options: list[str]) -> int:
    told = json.loads(path.read_text(encoding="utf-8"))
    if options == ["--version"]:
        print(told["version"])  # noqa: T201
        return 0
    log = Path(f"{path}.heard")
    before = log.read_text(encoding="utf-8") if log.exists() else ""
    number = sum(line.startswith("[") for line in before.splitlines())
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(options) + "\n")
        file.flush()
        for step in told["runs"][number]:
            code = _step(step, file)
            if code is not None:
                return code
        while line := sys.stdin.readline():
            file.write(line.removesuffix("\n") + "\n")
    return 0


def _step(step: dict[str, Any], log: Any) -> int | None:
    match step:
        case {"hear": str(text)}:
            while line := sys.stdin.readline():
                log.write(line.removesuffix("\n") + "\n")
                log.flush()
                if text in line:
                    break
        case {"say": said}:
            sys.stdout.write((said if isinstance(said, str) else json.dumps(said)) + "\n")
            sys.stdout.flush()
        case {"err": str(text)}:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        case {"sleep": seconds}:
            time.sleep(seconds)
        case {"exit": int(code)}:
            return code
        case _:
            raise ValueError(step)
    return None


if __name__ == "__main__":
    sys.exit(_play(Path(sys.argv[1]), sys.argv[2:]))
