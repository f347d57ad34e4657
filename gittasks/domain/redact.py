"""Takes secrets and absolute paths out of text that is shown beyond the team.

Each is replaced by `[secret]` or `[path]` where it stood; a text never disappears, so that counts
stay true. Ids, object ids and relative paths are left alone, and so are URLs without a password.
What is shown twice is replaced once: `redact(redact(text)) == redact(text)`.
"""

from __future__ import annotations

import re
from typing import Any

SECRET = "[secret]"
PATH = "[path]"

FREE_TEXT = frozenset(
    (
        "title", "labels", "checks", "assignee", "claimed_by", "findings", "held_reason",
        "attention", "proposed_by", "artifacts", "created_by", "reason", "body", "text",
    )
)  # fmt: skip
"""The fields of a task in which people and agents write what they like."""

# Repetitions are bounded where another pattern follows: a megabyte made to be slow is not slow.
# A pattern costs more to compile than a title to search, so most texts never reach one.
_PATH_MARKS = ("/", "\\", "~")
_SECRET_MARKS = (
    "key", "secret", "token", "pass", "pwd", "credential", "bearer", "authorization", "begin",
    "akia", "asia", "aida", "aroa", "gh", "gl", "xox", "xapp", "sk-", "sk_", "ak-", "rk_", "pk_",
    "aiza", "eyj", "npm_", "pypi-", "hf_", "dop_v1", "://",
)  # fmt: skip
_LONG = 32

_STOP = r"\s\"'<>|`"
_PATH_PATTERNS = (
    # In quotes a path may hold blanks.
    rf"(?P<quote>[\"'`])(?:/[^/\n\"'`]+/|~[\w.-]*/|[A-Za-z]:[\\/])[^\n\"'`]*(?P=quote)"
    rf"|\bfile:/+[^{_STOP}]*"
    rf"|(?<![\w/.~])/[\w.@+,%-]+/[^{_STOP})\]]*"
    rf"|(?<![\w/])~[\w.-]*/[^{_STOP})\]]*"
    rf"|(?<![A-Za-z0-9])[A-Za-z]:(?:\\|/(?!/))[^{_STOP}]*"
    rf"|(?<![\\\w])\\\\[\w.$-]+\\[^{_STOP}]*"
)
_SECRET_PATTERN = (
    r"(?P<whole>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?s:.)*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?s:.)*)"
    r"|\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA)[A-Z0-9]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}|\bgl[a-z]{2,6}-[\w-]{16,}"
    r"|\bxox[abeoprs]-[\w-]{10,}|\bxapp-[\w-]{10,}|\b(?:sk|ak|rk|pk)[-_][\w-]{16,}"
    r"|\bAIza[\w-]{30,}|\beyJ[\w-]{8,500}\.[\w-]{8,}(?:\.[\w-]*)?"
    r"|\bnpm_\w{20,}|\bpypi-[\w-]{20,}|\bhf_\w{20,}|\bdop_v1_\w{20,})"
    r"|(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{0,30}://)[^\s/@:]{0,200}:[^\s/@]{1,500}(?P<at>@)"
    r"|(?P<header>(?i:\bbearer\s+|\bauthorization\s*:\s*(?:basic|token)\s+))(?=\S*[0-9=])"
    r"[\w.~+/=-]{6,}"
    r"|(?P<name>(?i:(?:password|passwd|passphrase|pwd|(?<![a-z])pass(?=[\"']?\s*=)|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|secret|token|credential)[\w-]{0,50})[\"']?\s*"
    r"(?:=(?!=)\s*(?!\d{1,6}\b)|:\s*(?=[^\s\"',;&]{0,200}\d|[\"'])(?=\S{6})))"
    r"(?:\"[^\"\n]+\"|'[^'\n]+'|[^\s\"',;&]+)"
)
_LONG_WORD = r"\b[A-Za-z0-9_+-]{32,}\b=*"
_FEW_DIGITS = 3


def redact(text: str) -> str:
    """Returns the text with secrets and absolute paths replaced."""
    if is_suspect_of_secret(text):
        text = re.sub(_SECRET_PATTERN, _without_secret, text)
        text = re.sub(_LONG_WORD, _without_random, text)
    if any(mark in text for mark in _PATH_MARKS):
        text = re.sub(_PATH_PATTERNS, PATH, text)
    return text


def is_suspect_of_secret(text: str) -> bool:
    """Tells whether a closer look is worth its time."""
    lowered = text.lower()
    return any(mark in lowered for mark in _SECRET_MARKS) or (
        len(text) >= _LONG and any(len(word) >= _LONG for word in text.split())
    )


def holds_secret(text: str) -> bool:
    """Tells whether the text holds something that looks like a secret."""
    return SECRET in redact(text) and SECRET not in text


def holds_path(text: str) -> bool:
    """Tells whether the text holds an absolute path."""
    return any(mark in text for mark in _PATH_MARKS) and bool(re.search(_PATH_PATTERNS, text))


def redact_fields(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a task's fields with the free texts among them redacted."""
    return {
        name: redact_all(value) if value and (name in FREE_TEXT or name[:2] == "x-") else value
        for name, value in row.items()
    }


def redact_all(value: Any) -> Any:
    """Returns a JSON value with every text in it redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return [redact_all(item) for item in value]
    if isinstance(value, dict):
        return _redacted_fields(value)
    return value


def _redacted_fields(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, item in value.items():
        # Our names are plain words, those of artifacts are anybody's.
        key = name if name.isidentifier() else redact(name)
        while key in found:
            key += "'"
        found[key] = redact_all(item)
    return found


def _without_secret(match: re.Match[str]) -> str:
    for kept in ("name", "header", "scheme"):
        if match[kept] is not None:
            return match[kept] + SECRET + (match["at"] or "")
    return SECRET


def _without_random(match: re.Match[str]) -> str:
    word = match[0]
    is_mixed = word != word.lower() and word != word.upper()
    digits = sum(character.isdigit() for character in word)
    return SECRET if is_mixed and digits >= _FEW_DIGITS else word
