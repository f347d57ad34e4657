"""What one command could not publish, a later one does, even where it finds nothing to do."""

from __future__ import annotations

import os

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


def test_a_failure_of_the_system_after_a_write_is_told_and_is_none_of_the_write(
    shared: Shared,
) -> None:
    shared.ready("One")
    shared.bob.offline("new", "Mine")
    shared.ada.new("Hers")
    # What follows a replay cannot be written down.
    in_the_way = shared.bob.folder / ".git" / "gittasks" / f"replayed.json.{os.getpid()}"
    in_the_way.mkdir()
    said = shared.bob.manager("note", "1", "Hello")
    assert (said.status, said.out) == (0, "000001 note\n")
    (line,) = said.err.splitlines()
    assert line.startswith("Not published yet: The system refused: ")
    assert line.endswith(": Is a directory. `git tasks sync` does it later.")
    in_the_way.rmdir()
    assert shared.bob.sync().out.endswith("3 events published, 000002 is now 000003\n")
