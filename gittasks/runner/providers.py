"""How the providers behind the agents are doing: failures in a row, limits, and health.

One provider that is down or has had enough stops none of the others.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

from gittasks.domain import schedule
from gittasks.domain.times import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

PROBE_EVERY = 30.0
"""How many seconds lie between two looks at a provider whose health is checked."""


class Provider:
    """One provider, shared by all the slots that ask it."""

    def __init__(self, name: str) -> None:
        """Begins with one that is well."""
        self.name = name
        self.attempts = 0
        self.due = 0.0
        """Until when nobody new is sent there."""
        self.limited_until = 0.0
        self.why = ""

    def is_well(self) -> None:
        """Notes that a turn went through: what failed before is over."""
        self.attempts = 0
        self.due = 0.0

    def has_failed(self, now: float, error: str = "") -> float:
        """Notes a failure and returns when to try again; a model that loads counts nothing."""
        if schedule.is_loading(error):
            return now + schedule.LOADING
        self.attempts += 1
        self.due = now + schedule.back_off(self.attempts)
        return self.due

    def is_limited(self, now: float, until: float | None) -> float:
        """Notes that the provider's limit is reached and returns when it ends, as far as we know."""
        if until is None or until <= now:
            self.attempts += 1
            until = now + schedule.back_off(self.attempts)
        self.limited_until = max(self.limited_until, until)
        return self.limited_until

    @property
    def limit_in_words(self) -> str:
        """Returns until when the provider wants to be left alone."""
        return f"the limit of {self.name} ends at {timestamp(math.ceil(self.limited_until))}"


class Health:
    """Looks at one agent's provider now and then, beside everything else."""

    def __init__(self, probe: Callable[[], str | None]) -> None:
        """Takes what returns why the provider does not answer, None where it does."""
        self._probe = probe
        self._looked_at: float | None = None
        self._thread: threading.Thread | None = None
        self.problem: str | None = None
        """Why the provider does not answer."""
        self.is_known = False
        self.is_new = False
        """Somebody has to hear of what was found last."""

    def look(self, now: float) -> bool:
        """Begins a look where it is time for one; tells whether anything is known by now."""
        if self._thread is not None and self._thread.is_alive():
            return self.is_known
        if self._looked_at is None or now - self._looked_at >= PROBE_EVERY:
            self._looked_at = now
            self._thread = threading.Thread(target=self._ask, daemon=True)
            self._thread.start()
        return self.is_known

    def wait(self) -> None:
        """Waits for the end of a look that has begun."""
        if self._thread is not None:
            self._thread.join()

    def _ask(self) -> None:
        before, self.problem = self.problem, self._probe()
        self.is_new = self.problem != before or not self.is_known
        self.is_known = True
