"""Puts one server into Codex' settings, as marked lines at their end, and takes them out again."""

from __future__ import annotations

import re
from typing import Any

from gittasks.workflow.registering.json_entry import ARGUMENTS, COMMAND, NAME, CannotEdit

_SETTINGS = f"""\
[mcp_servers.{NAME}]
command = "git"
args = ["tasks", "mcp"]
default_tools_approval_mode = "approve"
tool_timeout_sec = 600
"""
_HOW = "by `git tasks setup codex`, which takes it out again with --remove"
_MADE = f"# >>> git tasks >>> made {_HOW}\n"
_ADDED = f"# >>> git tasks >>> added {_HOW}\n"
# What the file ended with has to be known to give it back.
_ADDED_OPEN = f"# >>> git tasks >>> added, behind a line without an end, {_HOW}\n"
_END = "# <<< git tasks <<<\n"
_BLOCK = re.compile(r"^# >>> git tasks >>>[^\n]*\n.*?^# <<< git tasks <<<\r?\n", re.M | re.S)


def whole() -> str:
    """Returns a file that has nothing else."""
    return _MADE + _SETTINGS + _END


def state_of(text: str) -> str:
    """Returns whether the server is there: `none`, `ours`, `old` for other lines of ours, `same`, `other`."""
    servers = _parsed(text).get("mcp_servers", {})
    if not isinstance(servers, dict):
        raise CannotEdit("mcp_servers is no table in it")
    block = _BLOCK.search(text)
    if block is not None:
        return "ours" if _SETTINGS in _unix(block[0]) else "old"
    if NAME not in servers:
        return "none"
    entry = servers[NAME]
    is_same = isinstance(entry, dict) and (entry.get("command"), entry.get("args")) == (
        COMMAND,
        ARGUMENTS,
    )
    return "same" if is_same else "other"


def added(text: str) -> str:
    """Returns the text with the server, which it does not have yet."""
    line = "\r\n" if "\r\n" in text else "\n"
    head, before = _ADDED, ""
    if text.endswith("\n"):
        before = "\n"
    elif text:
        head, before = _ADDED_OPEN, "\n\n"
    new = text + (before + head + _SETTINGS + _END).replace("\n", line)
    try:
        _parsed(new)
    except CannotEdit:
        raise CannotEdit("it has its servers in a form that nothing can be added to") from None
    if removed(new) != text:
        raise CannotEdit("it is written in a way that could not be restored")
    return new


def renewed(text: str) -> str:
    """Returns the text with the present lines in the place of older ones."""
    block = _BLOCK.search(text)
    assert block is not None
    line = "\r\n" if block[0].endswith("\r\n") else "\n"
    head = block[0].partition("\n")[0].rstrip("\r") + "\n"
    new = (head + _SETTINGS + _END).replace("\n", line)
    return text[: block.start()] + new + text[block.end() :]


def removed(text: str) -> str | None:
    """Returns the text without the server; None where the file was made for it."""
    block = _BLOCK.search(text)
    assert block is not None
    head = _unix(block[0]).partition("\n")[0] + "\n"
    rest = text[: block.start()], text[block.end() :]
    if head == _MADE and rest == ("", ""):
        return None
    line = "\r\n" if block[0].endswith("\r\n") else "\n"
    before = {_ADDED: line, _ADDED_OPEN: line * 2}.get(head, "")
    return rest[0].removesuffix(before) + rest[1]


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _parsed(text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise CannotEdit("it is not TOML") from None
