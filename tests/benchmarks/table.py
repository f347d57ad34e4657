"""The rows of the benchmark and the one table they make."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.benchmarks.measure import Budget, Medians, Units

Verdict = str
COLUMNS = ("what", "at", "measured", "target", "of the target", "verdict")


class Row(NamedTuple):
    """One thing that was measured: value and limit in one unit, and both as they are shown."""

    what: str
    at: str
    value: float
    limit: float
    measured: str
    target: str
    stretch: float | None = None
    at_least: bool = False
    """Whether more is better."""
    paired: float | None = None
    """The share of the target where it was compared round by round."""

    @property
    def share(self) -> float:
        """Returns how much of the target was used; more than 1 is too much."""
        if self.paired is not None:
            return self.paired
        used, most = (self.limit, self.value) if self.at_least else (self.value, self.limit)
        if not most:
            return float("inf") if used else 0.0
        return used / most

    @property
    def verdict(self) -> Verdict:
        """Says whether the target was held."""
        if self.share > 1:
            return "missed"
        if self.stretch is not None and self.value <= self.stretch:
            return "held, and the stretch"
        return "held"

    def data(self) -> dict[str, Any]:
        """Returns the row for `--json`."""
        return {
            "what": self.what,
            "at": self.at,
            "measured": self.measured,
            "target": self.target,
            "value": self.value,
            "limit": self.limit,
            "stretch": self.stretch,
            "share": self.share,
            "verdict": self.verdict,
        }


def cpu_row(
    what: str,
    at: str,
    seconds: float,
    units: Units,
    target: Budget,
    stretch: Budget | None = None,
    paired: float | None = None,
) -> Row:
    """Returns the row of something whose CPU is compared with interpreter starts and git calls."""
    limit = target.allowed(units)
    shown = f"{seconds / units.p:.2f} P" if target.p else f"{seconds / units.r:.1f} R"
    return Row(
        what,
        at,
        seconds,
        limit,
        f"{seconds * 1000:.1f} ms = {shown}",
        f"<= {_spelled(target)} = {limit * 1000:.1f} ms",
        None if stretch is None else stretch.allowed(units),
        paired=paired,
    )


def case_row(
    found: Medians,
    case: str,
    what: str,
    at: str,
    target: Budget,
    stretch: Budget | None = None,
) -> Row:
    """Returns the row of one case, compared with the units of its own rounds."""
    share = found.share(case, target)
    return cpu_row(what, at, found.cpu[case], found.units, target, stretch, share)


def count_row(
    what: str, at: str, value: float, limit: float, unit: str = "", *, at_least: bool = False
) -> Row:
    """Returns the row of a count, a ratio or a size."""
    sign = ">=" if at_least else "<="
    end = f" {unit}" if unit else ""
    return Row(
        what,
        at,
        value,
        limit,
        f"{_number(value)}{end}",
        f"{sign} {_number(limit)}{end}",
        at_least=at_least,
    )


def _number(value: float) -> str:
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}"


def _spelled(budget: Budget) -> str:
    parts = [f"{budget.p:g} P"] if budget.p else []
    parts += [f"{budget.r:g} R"] if budget.r else []
    parts += [f"{budget.seconds * 1000:g} ms"] if budget.seconds else []
    return " + ".join(parts)


def markdown(rows: Sequence[Row]) -> str:
    """Returns the table, which is Markdown and lines up on a terminal."""
    cells = [COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[n]) for line in cells) for n in range(len(COLUMNS))]
    lines = [_line(line, widths) for line in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    return (row.what, row.at, row.measured, row.target, f"{row.share:.2f}", row.verdict)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return (
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        + " |"
    )


def as_json(rows: Sequence[Row], units: Units, machine: str) -> str:
    """Returns the same as data."""
    data = {
        "machine": machine,
        "units": {"P": units.p, "R": units.r, "C": units.c},
        "rows": [row.data() for row in rows],
    }
    return json.dumps(data, indent=1)
