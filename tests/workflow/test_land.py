"""The manager's last submit."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.domain.errors import CheckFailed, Refused
from tests.workflow.landings import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "repo")


def test_a_reviewed_task_lands_with_a_merge_commit(scene: Scene) -> None:
    scene.new("000001")
    base = scene.master()
    tip = scene.reviewed("000001", {"a.txt": "one\n"})
    outcome = scene.land("000001")
    landed = scene.master()
    assert scene.git("show", "-s", "--format=%P%n%B", landed).rstrip("\n") == (
        f"{base} {tip}\n000001: Task 1\n\nTask: 000001"
    )
    assert (outcome.source, outcome.target) == ("MANAGER_REVIEW", "CLOSED")
    task = scene.manager.task("000001")
    assert (task.state, task.outcome, task.landed) == ("CLOSED", "landed", landed)
    assert (scene.folder / "a.txt").read_text() == "one\n"
    assert scene.git("status", "--porcelain") == ""
    assert scene.git("branch", "--list", "task/*") == ""
    assert (scene.tree("000001").exists(), scene.traces()) == (False, [])
