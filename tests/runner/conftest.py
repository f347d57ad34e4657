"""A team for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import teams
from tests.support.teams import Team


@pytest.fixture(scope="session")
def _ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("team") / "begun"
    return teams.begin(folder)


@pytest.fixture
def team(_ground: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    """Returns a team whose pool is one puppet; its runners end with the test."""
    made = Team(_ground, tmp_path / "team", teams.on_stage(monkeypatch))
    made.pool(teams.puppet())
    yield made
    made.close()
