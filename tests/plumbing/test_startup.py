"""What every command imports stays cheap to import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = str(Path(__file__).resolve().parents[2])

_FORBIDDEN = (
    "click", "contextlib", "dataclasses", "datetime", "enum", "filelock", "frontmatter", "git",
    "hashlib", "inspect", "pathlib", "pydantic", "random", "shutil", "signal", "subprocess",
    "tempfile", "threading", "yaml",
)  # fmt: skip

_IMPORT = """
import sys, typing
before = set(sys.modules)
import gittasks.plumbing.errors, gittasks.plumbing.process, gittasks.plumbing.repository
import gittasks.plumbing.objects, gittasks.plumbing.refs, gittasks.plumbing.locks
import gittasks.plumbing.worktrees, gittasks.plumbing.merging, gittasks.plumbing.versions
import gittasks.plumbing.processes, gittasks.plumbing.remote
print(*sorted(set(sys.modules) - before))
"""


def test_plumbing_imports_nothing_that_takes_long() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", _IMPORT],
        env={**os.environ, "PYTHONPATH": CHECKOUT},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert ("gittasks.plumbing.refs" in loaded, loaded.intersection(_FORBIDDEN)) == (True, set())
