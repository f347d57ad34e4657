"""The queue before the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.plumbing.locks import FileLock


def test_taking_a_lock_twice_in_one_thread_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "write.flk")
    with FileLock(path, 1), pytest.raises(RuntimeError, match="not re-entrant"):
        FileLock(path, 1).acquire()
