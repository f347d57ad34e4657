"""Times as the documents spell them: RFC 3339 in UTC, whole seconds; no clock of its own."""

from __future__ import annotations

_DAY = 86_400


def timestamp(seconds: int) -> str:
    """Returns seconds since 1970 as RFC 3339 UTC, for example 2026-11-30T17:17:12Z."""
    days, rest = divmod(seconds, _DAY)
    year, month, day = _date(days)
    return f"{year:04d}-{month:02d}-{day:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}Z"


def seconds_of(text: str) -> int:
    """Returns the seconds since 1970 of a time that `timestamp` wrote."""
    year, month, day = int(text[0:4]), int(text[5:7]), int(text[8:10])
    clock = int(text[11:13]) * 3600 + int(text[14:16]) * 60 + int(text[17:19])
    return _days(year, month, day) * _DAY + clock


def _date(days: int) -> tuple[int, int, int]:
    """Returns the date of a day counted from 1970, in years that begin in March."""
    days += 719_468
    era, of_era = divmod(days, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day


def _days(year: int, month: int, day: int) -> int:
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
