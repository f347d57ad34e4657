"""A claim that its holder has ended in one clone, where the others do or do not agree."""

from __future__ import annotations

from tests.sharing.ground import Shared
from tests.support.remotes import away


def test_whoever_ended_a_claim_in_vain_goes_on_with_it(shared: Shared) -> None:
    task = shared.ada.new("One")
    shared.ada.work(task, {"new.txt": "new\n"})
    shared.bob.sync()
    with away(shared.remote):
        shared.ada.manager("--offline", "edit", task, "-F", "-", stdin="Do more.\n")
        shared.bob.alone("rita", "claim", task)
        shared.bob.alone("rita", "submit", task)
    shared.ada.sync()
    said = shared.bob.sync(check=6).err.splitlines()[-1]
    assert said == f"rita still holds {task}: `git tasks start {task}` hands it out again."
    shared.bob.agent("rita", "start", task)
    shared.bob.agent("rita", "submit", task)
    assert shared.bob.state(task) == "MANAGER_REVIEW"


def test_a_claim_whose_end_the_remote_has_leaves_nothing_here(shared: Shared) -> None:
    task = shared.ada.new("One")
    shared.ada.offline("claim", task, "--role", "worker", "--as", "wes")
    shared.ada.offline("release", task, "--as", "wes")
    claims = shared.ada.folder / ".git" / "gittasks" / "claims"
    assert [path.suffix for path in claims.iterdir()] == [".ended"]
    shared.ada.sync()
    assert list(claims.iterdir()) == []
