"""Finds the program of an agent, which version it is, and whether the node it needs is there."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from gittasks.agents.records import Record, part, record_of, text
from gittasks.plumbing import process
from gittasks.plumbing.errors import GitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Version = tuple[int, ...]
"""The numbers of a version."""

_SECONDS = 20.0
_NUMBERS = re.compile(r"\d+(?:\.\d+)+")
# How many folders above a script its package may begin.
_DEPTH = 4

_asked: dict[tuple[str, ...], str] = {}


def found(command: Sequence[str], env: Mapping[str, str]) -> str | None:
    """Returns the absolute path of a program, None where it cannot be run."""
    import shutil

    path = shutil.which(command[0], path=env.get("PATH", os.defpath)) if command else None
    return None if path is None else os.path.abspath(path)


def missing(command: Sequence[str]) -> str:
    """Returns the sentence about a program that is not there."""
    return f"There is no program {command[0]} here."


def version(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Returns what a program answers to `--version`, asked once; empty where it answers nothing."""
    path = found(command, env)
    if path is None:
        return ""
    asked = (path, *command[1:], env.get("PATH", ""))
    if asked not in _asked:
        _asked[asked] = _answer((path, *command[1:], "--version"), env)
    return _asked[asked]


def numbers(words: str) -> Version:
    """Returns the numbers of the first version in a text."""
    match = _NUMBERS.search(words)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def shown(version: Version) -> str:
    """Returns the text of a version."""
    return ".".join(str(number) for number in version)


def has_failed(code: int) -> bool:
    """Tells whether a program has ended with an error of its own, and was not ended by a signal.

    What stands between us and a program, such as a sandbox, tells a signal as 128 and its number.
    """
    return 0 < code <= 128


def package(command: Sequence[str], env: Mapping[str, str]) -> Record:
    """Returns the `package.json` of a program that is a script for node; empty for another one."""
    script = _script(command, env)
    if script is None:
        return {}
    folder = script
    for _ in range(_DEPTH):
        folder = os.path.dirname(folder)
        try:
            with open(os.path.join(folder, "package.json"), "rb") as file:
                return record_of(file.read())
        except OSError:
            pass
    return {}


def node_problem(command: Sequence[str], env: Mapping[str, str]) -> str | None:
    """Returns why the node that would run a script is not the one it needs, None where it is.

    node itself tells of a syntax error or a missing name, which nobody understands.
    """
    needs = numbers(text(part(package(command, env), "engines"), "node"))
    if not needs:
        return None
    node = [command[0]] if _is_node(command[0]) else ["node"]
    if found(node, env) is None:
        return f"{_name(command)} needs node, and there is no program {node[0]} here."
    has = numbers(version(node, env))
    if has and has < needs:
        return f"{_name(command)} needs node {shown(needs)} or newer, and {shown(has)} is here."
    return None


def _name(command: Sequence[str]) -> str:
    named = command[1] if _is_node(command[0]) and len(command) > 1 else command[0]
    return os.path.basename(named)


def _script(command: Sequence[str], env: Mapping[str, str]) -> str | None:
    if _is_node(command[0]):
        return os.path.realpath(command[1]) if len(command) > 1 else None
    path = found(command, env)
    if path is None:
        return None
    path = os.path.realpath(path)
    try:
        with open(path, "rb") as file:
            first = file.read(256).split(b"\n", 1)[0]
    except OSError:
        return None
    return path if first.startswith(b"#!") and b"node" in first else None


def _is_node(name: str) -> bool:
    return os.path.basename(name) in ("node", "nodejs")


def _answer(argv: Sequence[str], env: Mapping[str, str]) -> str:
    try:
        completed = process.run(argv, env=env, timeout=_SECONDS)
    except GitError:
        return ""
    if completed.status != 0:
        return ""
    return completed.stdout.decode("utf-8", "replace").strip()[:200]
