"""What is called good is on the remote, and what both sides have already is there once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

import pytest

from gittasks.domain.decide import decide_all
from gittasks.domain.errors import Busy
from gittasks.domain.requests import Create, Speaker
from gittasks.ledger import publishing
from gittasks.ledger.shared import Arrived
from gittasks.ledger.shared import Shared as Exchange
from gittasks.plumbing import remote
from gittasks.plumbing.errors import RemoteRaced, RemoteUnreachable
from gittasks.workflow.project import Options, Project
from tests.sharing.ground import Clone, Shared
from tests.support.builders import hexadecimal
from tests.support.remotes import away


class _Odd(Exchange):
    """A remote that takes no push, says so in some way or not, and may then be gone."""

    def __init__(self, project: Project, said: Exception | None, *, gone: bool = False) -> None:
        assert project.remote is not None
        super().__init__(project.ledger, project.remote)
        self._said = said
        self._goes = gone
        self._is_gone = False

    def fetch(
        self, names: Sequence[str] = (), globs: Sequence[str] = (), *, adopting: bool = False
    ) -> Arrived:
        """Fetches while the remote is there."""
        if self._is_gone:
            raise self.told(RemoteUnreachable(self.name, "gone"))
        return super().fetch(names, globs, adopting=adopting)

    def push(self, updates: Sequence[remote.Update]) -> None:  # nothing arrives
        """Loses what is pushed."""
        self._is_gone = self._goes
        if self._said is not None:
            raise self._said


RACE = RemoteRaced("origin", ["refs/heads/gittasks"])
LOST = RemoteUnreachable("origin", "gone")


@pytest.mark.parametrize(
    ("said", "gone"),
    [(RACE, True), (LOST, True), (None, False)],
    ids=["slower, then gone", "gone before it was told", "yes, and forgotten"],
)
def test_nothing_is_called_good_that_the_remote_has_not(
    shared: Shared, said: Exception | None, gone: bool
) -> None:
    before = shared.everything()
    project = Project.open(Options(str(shared.bob.folder)), os.environ)
    request = Create("Mine", hexadecimal("mine"))
    facts = project.facts(Speaker("bob", "manager"))
    with pytest.raises(Busy):
        publishing.append(
            _Odd(project, said, gone=gone), lambda graph: decide_all(graph, [request], facts)
        )
    project.close()
    assert shared.everything() == before


def test_what_has_arrived_by_a_copy_of_the_clone_is_not_said_again(shared: Shared) -> None:
    task = shared.ready("One")
    with away(shared.remote):
        shared.bob.offline("note", task, "mine")
        shared.bob.offline("new", "Mine too")
    copy = Clone(shared.bob.folder.with_name("copy"))
    shutil.copytree(shared.bob.folder, copy.folder, symlinks=True)
    shared.ada.new("Ada's")
    copy.sync()
    there = shared.tip
    shared.bob.sync()
    assert shared.tip == there == shared.bob.tip()
    assert shared.kinds(task) == ["create", "submit", "note"]
