"""What the error of a provider means: a limit, something to try again, or a mistake that stays."""

from __future__ import annotations

import re

from gittasks.agents.base import Settled

_LONGEST = 2000

# What is wrong with the request itself stays wrong. A key that is refused does not: somebody
# renews it, and until then the tasks are not to blame.
_LASTING = frozenset((400, 404, 405, 413, 414, 422))

_TOO_MANY = 429

_LIMIT = re.compile(
    r"rate.?limit|too many requests|usage.?limit|hit your .{0,20}limit|limit reached|quota"
    r"|credit balance",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"content.?filter|refusal|safety classifier|usage policy", re.IGNORECASE)
_LENGTH = re.compile(r"max_output_tokens|output token (?:maximum|limit)", re.IGNORECASE)

# Where no status is told.
_WRONG = re.compile(
    r"invalid_request_error|context.length.exceeded|maximum context length|prompt is too long",
    re.IGNORECASE,
)

# `401: {…}`, `API Error: 401`, `unexpected status 401`, `rejected (429)`.
_STATUS = re.compile(r"(?:^|error:? |status:? |code:? |\()([45]\d\d)\b", re.IGNORECASE)

_EPOCH = re.compile(r"(?<!\d)([12]\d{9})(?!\d)")
_WAIT = re.compile(
    r"(?:try again|retry|reset\w*|wait)[ _-]*(?:in|after|for)?[\"' :=]*(?=\d)", re.IGNORECASE
)
_SPAN = re.compile(
    r"(?:,|and|\s)*(\d+(?:\.\d+)?)\s*"
    r"(days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|ms|d|h|m|s)(?![a-z])",
    re.IGNORECASE,
)
_BARE = re.compile(r"(\d+(?:\.\d+)?)(?![\w:.-])")
_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

# Whatever a program says, no provider is left alone for longer than its longest window.
_LONGEST_LIMIT = 8 * 86_400.0


def settled(
    error: str, now: float, *, status: int | None = None, until: float | None = None
) -> Settled:
    """Returns how a turn ended that failed with these words, and the HTTP status if it is known."""
    error = error[:_LONGEST]
    if _LENGTH.search(error):
        return Settled("length", error)
    if _REFUSED.search(error):
        return Settled("refused", error)
    status = status or _status_in(error)
    if status == _TOO_MANY or _LIMIT.search(error):
        return Settled("limit", error, until=_bounded(until or _end_in(error, now), now))
    lasts = status in _LASTING if status else _WRONG.search(error) is not None
    return Settled("error", error, is_retryable=not lasts)


def _status_in(error: str) -> int | None:
    found = _STATUS.search(error)
    return int(found[1]) if found else None


def _end_in(error: str, now: float) -> float | None:
    """Returns when a limit ends, where the words tell it: a time, or a span from now."""
    wait = _WAIT.search(error)
    if wait is not None:
        seconds = _seconds_at(error, wait.end())
        if seconds is not None:
            return now + seconds
    found = _EPOCH.search(error)
    return float(found[1]) if found else None


def _seconds_at(error: str, start: int) -> float | None:
    seconds: float | None = None
    while found := _SPAN.match(error, start):
        unit = found[2].lower()
        size = _SECONDS["ms" if unit == "ms" else unit[0]]
        seconds = (seconds or 0.0) + float(found[1]) * size
        start = found.end()
    if seconds is None and (bare := _BARE.match(error, start)) and not _EPOCH.match(bare[1]):
        return float(bare[1])
    return seconds


def _bounded(until: float | None, now: float) -> float | None:
    if until is None or until <= now:
        return None
    return min(until, now + _LONGEST_LIMIT)
