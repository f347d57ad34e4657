"""A clock that moves only when a test says so."""

from __future__ import annotations

START = 1_700_000_000  # 2023-11-14T22:13:20Z


class FixedClock:
    """Stands still until it is advanced."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        """Returns the seconds since the epoch."""
        return self.now

    def advance(self, seconds: int) -> int:
        """Moves the clock forward and returns the new time."""
        self.now += seconds
        return self.now
