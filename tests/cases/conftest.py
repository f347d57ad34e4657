"""One repository with a ledger for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.ground import Team


@pytest.fixture(scope="session")
def _begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Team(tmp_path_factory.mktemp("begun") / "project").folder


@pytest.fixture
def team(home: Path, _begun: Path) -> Team:
    """Returns a team at work in a fresh repository with one commit."""
    return Team(home / "project", like=_begun)
