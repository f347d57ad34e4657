"""What a clone asks of the others before it refuses, and what it tells of what they did."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from tests.sharing.ground import Shared
from tests.support.cli import tasks_process
from tests.support.git import git
from tests.support.remotes import bare_remote

TAKEN = 6
STATE = 5


def test_a_step_that_others_have_made_possible_is_decided_on_what_they_did(shared: Shared) -> None:
    task = shared.ready("One", "--enter", "work")
    shared.bob.agent("ben", "claim", task)
    # Ada's clone has not heard of the claim yet.
    shared.ada.manager("release", task, "--force")
    assert shared.kinds(task) == ["create", "submit", "claim", "release"]


def test_what_is_refused_everywhere_stays_refused(shared: Shared) -> None:
    task = shared.ready("One", "--enter", "work")
    refused = shared.unchanged_by(
        lambda: shared.ada.manager("release", task, "--force", check=TAKEN)
    )
    assert refused.err.startswith(f"error: Nobody holds {task}.")


def test_a_holder_is_told_that_the_claim_was_ended_elsewhere(shared: Shared) -> None:
    task = shared.ready("One", "--enter", "work")
    shared.bob.agent("ben", "claim", task)
    shared.ada.sync()
    shared.ada.manager("hold", task, "--reason", "Not now.")
    said = shared.bob.sync().err.splitlines()
    assert said == [f"The claim of ben on {task} was ended elsewhere: the task is at HELD_WORK."]
    assert shared.bob.sync().err == ""


def test_a_number_given_alone_is_said_to_be_provisional(shared: Shared) -> None:
    made = shared.ada.offline("new", "One")
    assert made.err.splitlines() == [
        "Its number may change at `git tasks sync`, if others take it first."
    ]


def test_a_replay_is_nothing_for_the_inbox(shared: Shared) -> None:
    shared.ada.offline("new", "Ada's")
    shared.bob.new("Bob's")
    shared.ada.sync()
    assert git(shared.ada.folder, "for-each-ref", "refs/gittasks/pre-replay/")
    assert "kept_tips" not in shared.ada.manager("inbox", "--json").json()


def test_a_sync_says_that_the_remote_lacks_the_base(shared: Shared, home: Path) -> None:
    empty = bare_remote(home / "empty.git")
    git(empty, "update-ref", "-d", "refs/heads/master")
    git(shared.ada.folder, "remote", "set-url", "origin", str(empty))
    said = shared.ada.sync().err.splitlines()[-1]
    assert said == (
        "The remote origin has no branch master yet, which the others need: git push origin master."
    )


def test_a_refused_command_tells_what_it_has_repaired(shared: Shared) -> None:
    task = shared.ready("One", "--enter", "work")
    folder = shared.ada.folder
    by_hand = git(
        folder, "commit-tree", "gittasks^{tree}", "-p", "gittasks", "-m", "Nothing at all"
    )
    git(folder, "update-ref", "refs/heads/gittasks", by_hand)
    refused = shared.ada.manager("resume", task, check=STATE)
    first = refused.err.splitlines()[0]
    assert first.startswith("The commits made by hand on gittasks were replaced by")


def test_whoever_is_told_to_end_takes_the_git_along_that_waits(shared: Shared) -> None:
    mark = "61.03125"
    git(shared.ada.folder, "remote", "set-url", "origin", "ssh://nowhere.invalid/project")
    env = {"GIT_SSH_COMMAND": f"sleep {mark} #", "GIT_ALLOW_PROTOCOL": "ssh"}
    waiting = tasks_process(shared.ada.folder, "sync", env=env)
    _await(mark, there=True)
    waiting.send_signal(signal.SIGTERM)
    waiting.communicate(timeout=30)
    assert waiting.returncode == -signal.SIGTERM
    _await(mark, there=False)


def _await(mark: str, *, there: bool) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if _sleeps(mark) == there:
            return
        time.sleep(0.05)
    raise AssertionError(f"a process {mark} {'never began' if there else 'still runs'}")


def _sleeps(mark: str) -> bool:
    for place in Path("/proc").iterdir():
        try:
            words = (
                place.joinpath("cmdline").read_bytes().split(b"\0") if place.name.isdigit() else []
            )
        except OSError:
            continue
        if words[:2] == [b"sleep", mark.encode()]:
            return True
    return False


def test_a_flood_that_does_not_verify_is_told_in_a_few_lines(shared: Shared) -> None:
    files = "".join(f"M 100644 inline tasks/0001/{n:06d}.md\ndata 1\nx\n" for n in range(100, 140))
    commit = f"commit refs/heads/gittasks\ncommitter E <e@e> 1900000000 +0000\ndata 1\nx\nfrom {shared.tip}\n"
    git(shared.remote, "fast-import", "--quiet", stdin=commit + files)
    told = shared.ada.sync().err.splitlines()
    assert len(told) < 15
    assert told[-1].endswith("`git tasks fsck` lists them all.")
    listed = shared.ada.manager("list").err.splitlines()
    assert len(listed) == 11
    assert listed[-1] == "warning: 30 more; `git tasks fsck` lists them all."
