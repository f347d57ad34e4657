"""Clocks that are wrong, go backwards or stand in another century."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cases.ground import Team
from tests.support.cli import CHECKOUT, Result, tasks

CLOCK = Path(__file__).parent / "clock"
YEAR = 365 * 24 * 3600


def at(seconds: int, team: Team, *words: str, check: int | None = 0, **env: str) -> Result:
    """Runs a command on a machine whose clock is wrong by so many seconds."""
    path = f"{CLOCK}{os.pathsep}{CHECKOUT}"
    more = {"PYTHONPATH": path, "SECONDS_LATER": str(seconds), **env}
    return tasks(team.folder, *words, env=more, check=check)


def dates(team: Team) -> list[int]:
    """Returns the committer dates of the ledger, oldest first."""
    lines = team.git("log", "--reverse", "--format=%ct", "gittasks", "--").split()
    return [int(line) for line in lines]


def test_a_clock_that_goes_backwards_leaves_the_order_of_the_events(team: Team) -> None:
    """Guards against git walks that stop early, and answers that depend on who had which time."""
    task = team.new("One")
    at(YEAR, team, "note", task, "From the future.")
    at(-YEAR, team, "note", task, "From the past.")
    team.manager("note", task, "From today.")
    assert dates(team) == sorted(dates(team))
    said = [entry["text"] for entry in team.manager("log", task, "--json").json()["data"]][:3]
    assert said == ["From today.", "From the past.", "From the future."]
    team.manager("fsck")


def test_a_task_from_the_future_can_be_worked_on(team: Team) -> None:
    """Guards against waiting times and leases that a wrong clock makes endless or negative."""
    task = at(10 * YEAR, team, "new", "One", "--enter", "work").out.strip()
    team.work(task, {"new.txt": "new\n"})
    for verb in ("inbox", "status", "ready", "list"):
        team.manager(verb)
    team.approve(task)
    team.manager("submit", task)
    assert team.show(task)["outcome"] == "landed"


@pytest.mark.parametrize("year", [2039, 2107, 2262, 2500, 9998], ids=lambda year: f"in {year}")
def test_far_years_are_written_and_read(team: Team, year: int) -> None:
    """Guards against seconds that do not fit into 31, 32 or 63 bits of something."""
    task = at((year - 2026) * YEAR, team, "new", "One", "--enter", "work").out.strip()
    shown = team.show(task)
    assert shown["created_at"].startswith(str(year)[:3])
    at((year - 2026) * YEAR, team, "claim", task, GITTASKS_AGENT="wim")
    team.manager("note", task, "From today.")
    team.manager("fsck")


@pytest.mark.parametrize("zone", ["Pacific/Honolulu", "Asia/Kathmandu", "America/St_Johns", "X"])
def test_the_zone_of_a_machine_does_not_matter(team: Team, zone: str) -> None:
    """Guards against times that shift with the zone, and half-hour zones git could not read."""
    task = at(0, team, "new", "One", "--enter", "work", TZ=zone).out.strip()
    here = team.show(task)
    there = json.loads(tasks(team.folder, "show", task, "--json", env={"TZ": zone}).out)["data"]
    assert there == here
    assert here["created_at"].endswith("Z")
    team.manager("fsck")
    assert team.git("fsck", "--strict", "--no-dangling") == ""
