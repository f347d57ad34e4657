"""Measures the installed tool against the targets and prints one table: `python -m tests.benchmarks`."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks import contention, memory, past, reads, sharing, start, trees, writes
from tests.benchmarks.fixtures import Fixtures, Plan
from tests.benchmarks.installation import install
from tests.benchmarks.measure import Failed, Machine, Units
from tests.benchmarks.table import Row, as_json, markdown

GROUPS: dict[str, Callable[[Plan], Iterator[Row]]] = {
    "start": start.rows,
    "warm": reads.warm,
    "stale": reads.stale,
    "cold": reads.cold,
    "writes": writes.one,
    "bytes": writes.sizes,
    "batch": writes.batch,
    "claims": contention.rows,
    "trees": trees.rows,
    "past": past.rows,
    "sharing": sharing.rows,
    "memory": memory.rows,
}


def main() -> int:
    """Runs the rows asked for; ends with 1 where a target was missed and --strict is given."""
    options = _options()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    folder = Path(tempfile.mkdtemp(prefix="gittasks-bench-", dir=options.folder))
    try:
        machine = Machine(install(folder), folder / "home", options.rounds or _rounds(options))
        plan = Plan(
            machine=machine,
            fixtures=Fixtures(machine, folder / "fixtures"),
            folder=folder,
            sizes=_sizes(options),
            files=1_000 if options.quick else 10_000,
            events=1_000 if options.quick else 10_000,
            is_quick=options.quick,
        )
        rows, failed = _all_measured(options.rows, plan)
        units = machine.units()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(as_json(rows, units, described()) if options.json else told(rows, units))
    missed = options.strict and any(row.verdict == "missed" for row in rows)
    return int(failed or missed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the same as data")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="1k tasks, few rounds: two minutes")
    size.add_argument("--full", action="store_true", help="also 100k tasks: half an hour")
    parser.add_argument(
        "--rows",
        type=lambda text: text.split(","),
        default=list(GROUPS),
        metavar="GROUP,...",
        help=f"only some of {', '.join(GROUPS)}",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="how often each is measured")
    parser.add_argument("--folder", metavar="PATH", help="where the repositories are made")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a target is missed")
    options = parser.parse_args()
    unknown = [name for name in options.rows if name not in GROUPS]
    if unknown:
        parser.error(f"there are no rows {unknown[0]!r}; there are {', '.join(GROUPS)}")
    return options


def _rounds(options: argparse.Namespace) -> int:
    return 5 if options.quick else 15


def _sizes(options: argparse.Namespace) -> tuple[int, ...]:
    if options.quick:
        return (1_000,)
    return (1_000, 10_000, 100_000) if options.full else (1_000, 10_000)


def _all_measured(names: list[str], plan: Plan) -> tuple[list[Row], bool]:
    """Returns the rows of all groups, and whether one of them could not be measured."""
    rows: list[Row] = []
    failed = False
    plan.machine.calibrate(plan.fixtures.empty())
    for name in names:
        started = time.monotonic()
        try:
            rows += GROUPS[name](plan)
        except Failed as error:
            failed = True
            print(f"{name} could not be measured: {error}", file=sys.stderr, flush=True)
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return rows, failed


def told(rows: list[Row], units: Units) -> str:
    """Returns the table, and above it what it was measured on and in."""
    missed = sum(row.verdict == "missed" for row in rows)
    return "\n".join(
        [
            described(),
            "",
            "CPU, medians of one run. "
            f"P = {units.p * 1000:.1f} ms (`python -c pass`), "
            f"R = {units.r * 1000:.2f} ms (`git rev-parse`), "
            f"C = {units.c * 1000:.1f} ms (a bare click group) = {units.c / units.p:.1f} P.",
            "",
            markdown(rows),
            "",
            f"{len(rows) - missed} of {len(rows)} targets are held.",
        ]
    )


def described() -> str:
    """Returns the machine in one sentence."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return (
        f"{platform.system()} {platform.release().split('-')[0]} on {platform.machine()}, "
        f"{os.cpu_count()} processors, {python}, {git.stdout.strip()}."
    )


if __name__ == "__main__":
    sys.exit(main())
