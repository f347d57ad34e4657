"""Finds and ends what an agent left behind: its environment still tells which run it came from.

A run's mark (GITTASKS_RUN) begins with the id of the clone, so that a runner also finds what an
earlier one left on this host. A process that left its session, its group and its parent has kept
it. Where the system does not show environments (no /proc), nothing is found.
"""

from __future__ import annotations

import os

from gittasks.plumbing import processes

VARIABLE = "GITTASKS_RUN"
"""The variable that carries the mark of a run."""


def new_mark(clone: str) -> str:
    """Returns the mark of a new run of a clone."""
    return f"{clone}.{os.urandom(16).hex()}"


def marked(mark: str) -> list[int]:
    """Returns the living processes of a run."""
    return sorted(processes.with_variable(VARIABLE, mark)) if mark else []


def of_clone(clone: str) -> dict[str, list[int]]:
    """Returns the living processes of all runs of a clone, by the mark of their run."""
    runs: dict[str, list[int]] = {}
    for pid, mark in sorted(processes.with_variable(VARIABLE, f"{clone}.").items()):
        runs.setdefault(mark, []).append(pid)
    return runs


def sweep(mark: str) -> int:
    """Kills what is left of a run; returns how many processes that were."""
    return processes.kill_with_variable(VARIABLE, mark) if mark else 0
