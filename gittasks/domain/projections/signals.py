"""What the projections have to tell beside their states.

A projection is `fold(state, step) -> (state, signals)`: a pure function over values that never
change. No clock is read; where an answer depends on the time, the query takes it.
"""

from __future__ import annotations

from typing import Any

from gittasks.domain.values import NamedTuple


class Signal(NamedTuple):
    """Something that a projection has to tell: name, projection, task, and plain JSON values."""

    name: str
    projection: str
    task: str | None
    data: tuple[tuple[str, Any], ...] = ()


Signals = tuple[Signal, ...]
