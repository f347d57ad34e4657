"""The page about agents knows every program, and every step of a plan."""

from __future__ import annotations

import re
from pathlib import Path

from gittasks.agents import ADAPTERS, script
from tests.support.scenarios import CHECKOUT


def part(heading: str) -> str:
    """Returns what stands below a heading of the page."""
    page = (CHECKOUT / "docs" / "agents.md").read_text(encoding="utf-8")
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_the_page_lists_every_program() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", part("The programs"), re.MULTILINE)) == set(ADAPTERS)


def test_the_page_lists_every_step_of_a_plan() -> None:
    steps = re.findall(r'^\| `\{"(\w+)"', part("A written plan"), re.MULTILINE)
    assert steps == list(script._FITS)


def test_the_plan_of_the_page_can_be_played(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(part("A written plan").split("```json\n")[1].split("```")[0], encoding="utf-8")
    found, faults = script.read(str(plan))
    assert (len(found), faults) == (2, [])
