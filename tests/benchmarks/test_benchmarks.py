"""The benchmark runs, prints its one table, and gives the same as data."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.benchmarks.installation import CHECKOUT
from tests.benchmarks.measure import Budget, Units
from tests.benchmarks.table import Row, as_json, count_row, cpu_row

UNITS = Units(p=0.01, r=0.001, c=0.04)


def test_the_quick_rows_of_the_start_are_one_table() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--quick", "--rounds", "1", "--rows", "start"],
        cwd=CHECKOUT,
        env={name: value for name, value in os.environ.items() if "COVERAGE" not in name},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    table = [line for line in lines if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert cells[0] == ["what", "at", "measured", "target", "of the target", "verdict"]
    assert [line[0] for line in cells[2:]] == [
        "git tasks -h",
        "usage error: no such command",
        "usage error: no such option",
        "whoami",
    ]
    assert {line[-1] for line in cells[2:]} <= {"held", "held, and the stretch", "missed"}
    assert re.fullmatch(r"\d of 4 targets are held\.", lines[-1])


def test_the_same_is_there_as_data() -> None:
    rows = [count_row("bytes", "1k tasks", 343.5, 7000, "B")]
    assert json.loads(as_json(rows, UNITS, "A machine.")) == {
        "machine": "A machine.",
        "units": {"P": 0.01, "R": 0.001, "C": 0.04},
        "rows": [
            {
                "what": "bytes",
                "at": "1k tasks",
                "measured": "344 B",
                "target": "<= 7,000 B",
                "value": 343.5,
                "limit": 7000,
                "stretch": None,
                "share": 343.5 / 7000,
                "verdict": "held",
            }
        ],
    }


@pytest.mark.parametrize(
    ("row", "verdict", "share"),
    [
        (count_row("a", "b", 5, 5), "held", 1.0),
        (count_row("a", "b", 7, 5), "missed", 1.4),
        (count_row("a", "b", 0, 0), "held", 0.0),
        (count_row("a", "b", 1, 0), "missed", float("inf")),
        (count_row("a", "b", 0.8, 0.9, at_least=True), "missed", 1.125),
        (cpu_row("a", "b", 0.050, UNITS, Budget(p=5, r=2)), "held", 0.050 / 0.052),
        (cpu_row("a", "b", 0.053, UNITS, Budget(p=5, r=2)), "missed", 0.053 / 0.052),
        (cpu_row("a", "b", 0.015, UNITS, Budget(p=5), Budget(p=1.5)),
         "held, and the stretch", 0.3),
    ],
)  # fmt: skip
def test_a_verdict_compares_with_the_target(row: Row, verdict: str, share: float) -> None:
    assert row.verdict == verdict
    assert row.share == pytest.approx(share)
