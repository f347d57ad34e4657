"""What is started in the background goes on by itself."""

from __future__ import annotations

import os
import time
from pathlib import Path

from gittasks.plumbing import background
from gittasks.plumbing.repository import Repository
from tests.support.git import git, make_repository


def test_git_works_on_after_the_call_has_returned(home: Path) -> None:
    folder = make_repository(home / "project")
    repo = Repository.open(str(folder))
    pid = background.start(repo, "update-ref", "refs/heads/made", "HEAD")
    deadline = time.monotonic() + 20
    while not git(folder, "for-each-ref", "refs/heads/made") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert git(folder, "rev-parse", "refs/heads/made") == git(folder, "rev-parse", "HEAD")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    background.start(repo, "--version")
    assert not Path(f"/proc/{pid}").exists()
