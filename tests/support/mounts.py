"""A repository on a file system where nothing can be written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.cli import environment

_CANNOT = 77


def read_only(folder: Path, lines: str, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Runs lines of a shell in a folder that is mounted read-only; skips where nothing can be."""
    script = scratch / "script"
    script.write_text(
        f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} || exit {_CANNOT}\n"
        f"cd {folder}\n{lines}",
        encoding="utf-8",
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", str(script)], env=environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode == _CANNOT or "unshare" in done.stderr:
        pytest.skip("nothing can be mounted here")
    return done
