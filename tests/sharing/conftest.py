"""One project that two people share, for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sharing import ground
from tests.sharing.ground import Shared


@pytest.fixture(scope="session")
def _begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared") / "begun"
    folder.mkdir()
    ground.begin(folder)
    return folder


@pytest.fixture
def shared(home: Path, _begun: Path) -> Shared:
    """Returns a remote with a ledger, and the clones of Ada and Bob who have it too."""
    return ground.copied(_begun, home / "shared")
