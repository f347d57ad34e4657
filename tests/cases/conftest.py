"""One repository with a ledger for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.ground import Team


@pytest.fixture
def team(home: Path) -> Team:
    """Returns a team at work in a fresh repository with one commit."""
    return Team(home / "project")
