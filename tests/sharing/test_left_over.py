"""What one command could not publish, a later one does, even where it finds nothing to do."""

from __future__ import annotations

from tests.sharing.ground import LEDGER, Shared
from tests.support.git import git

NOTHING = 10


def test_an_agent_that_finds_nothing_publishes_what_was_left_over(shared: Shared) -> None:
    shared.ready("One")
    shared.bob.agent("ben", "claim", "1")
    shared.bob.agent("ben", "--offline", "hold", "1", "--reason", "What now?")
    shared.bob.agent("ben", "start", "--role", "worker", check=NOTHING)
    there = git(shared.remote, "log", "-1", "--format=%s", LEDGER)
    assert there == "000001 hold WORK -> HELD_WORK (worker ben)"
