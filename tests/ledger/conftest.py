"""A repository with a ledger in it, for every test of this folder that asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gittasks.ledger.ledger import Ledger
from tests.support.git import make_repository
from tests.support.ledgers import begin


@pytest.fixture
def folder(home: Path) -> Path:
    return make_repository(home / "project")


@pytest.fixture
def ledger(folder: Path) -> Iterator[Ledger]:
    ledger = begin(folder)
    yield ledger
    ledger.close()
