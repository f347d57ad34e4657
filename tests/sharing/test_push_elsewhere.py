"""A remote that is fetched from one repository and pushed to another."""

from __future__ import annotations

import pytest

from tests.cases.ground import error_of
from tests.sharing.ground import Shared
from tests.support.git import git


@pytest.mark.slow
def test_a_push_that_goes_elsewhere_is_noticed(shared: Shared) -> None:
    task = shared.ready("One")
    fork = shared.remote.with_name("fork.git")
    git(shared.remote, "clone", "-q", "--bare", ".", str(fork))
    shared.bob.git("config", "remote.origin.pushurl", str(fork))
    refused = error_of(shared.bob.manager("claim", task, "--role", "worker", "--json", check=8))
    assert refused["message"] == (
        "What is pushed to origin does not come back when it is fetched: remote.origin.pushurl"
        " leads to another repository."
    )
    shared.bob.offline("note", task, "Hello")
    assert error_of(shared.bob.sync("--json", check=8)) == refused
    shared.bob.git("config", "--unset", "remote.origin.pushurl")
    assert shared.bob.sync().out == "origin: one event published\n"
