"""The guided story, played by the real commands."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import tasks
from tests.support.git import git


def test_quickstart_plays_the_story_and_leaves_nothing_behind(home: Path) -> None:
    result = tasks(home, "quickstart", env={"TMPDIR": str(home)}, timeout=110)
    lines = result.out.splitlines()
    assert "$ git tasks init" in lines
    assert "000001 submit MANAGER_REVIEW -> CLOSED" in lines
    assert any(line.endswith(" -> WORK_REVIEW (checker sam)") for line in lines)
    assert any(line.endswith(" 000002 unblock BLOCKED -> WORK (tool you)") for line in lines)
    assert list(home.iterdir()) == []


def test_quickstart_keeps_its_repository_when_asked(home: Path) -> None:
    result = tasks(home, "quickstart", "--keep", "--json", env={"TMPDIR": str(home)}, timeout=110)
    folder = Path(json.loads(result.out)["data"]["folder"])
    assert git(folder / "project", "log", "-1", "--format=%s", "main") == "000001: Say hello"
