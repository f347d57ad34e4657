"""Lets the clock of a process be wrong by so many seconds, as that of another machine may be."""

from __future__ import annotations

import os
import time

_SECONDS = int(os.environ.get("SECONDS_LATER", "0"))
_now = time.time


def _wrong() -> float:
    return _now() + _SECONDS


time.time = _wrong
