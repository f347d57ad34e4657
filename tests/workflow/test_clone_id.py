"""The random id of a clone: whole, or not there."""

from __future__ import annotations

import re
import resource
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import COMMAND, UNMEASURED, environment, tasks_inprocess
from tests.support.git import git, make_repository


@pytest.mark.parametrize("room", [0, 8])
def test_an_id_that_does_not_fit_on_the_disk_is_not_kept_in_part(home: Path, room: int) -> None:
    folder = make_repository(home / "project")
    tasks_inprocess(folder, "init")
    (folder / ".git/gittasks/clone-id").unlink()

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    done = subprocess.run(
        [*COMMAND, "new", "One"],
        cwd=folder,
        env=environment(UNMEASURED),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=full,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done
    assert list((folder / ".git/gittasks").glob("clone-id*")) == []
    tasks_inprocess(folder, "new", "One")
    kept = (folder / ".git/gittasks/clone-id").read_text(encoding="ascii")
    assert re.fullmatch(r"[0-9a-f]{16}\n", kept)
    host = git(folder, "log", "-1", "--format=%(trailers:key=Host,valueonly)", "gittasks")
    assert host.strip() == kept.strip()
