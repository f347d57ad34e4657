"""Runs git for the tests, and makes small repositories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

# A commit made by a test is the same commit wherever and whenever the test runs.
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
}


class GitFailed(AssertionError):
    """git refused what a test asked for."""


def git(
    path: str | os.PathLike[str],
    *args: str,
    check: bool = True,
    stdin: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Returns what git prints in the folder, without the last line end."""
    done = subprocess.run(
        ["git", *args],
        cwd=path,
        env={**os.environ, **IDENTITY, **(env or {})},
        input=stdin.encode() if isinstance(stdin, str) else (stdin or b""),
        capture_output=True,
        check=False,
        timeout=60,
    )
    if check and done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise GitFailed(f"git {' '.join(args)} ended with {done.returncode}: {words}")
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def make_repository(
    path: str | os.PathLike[str],
    *,
    branch: str = "master",
    object_format: str = "sha1",
    bare: bool = False,
    files: Mapping[str, str] | None = None,
    commit: bool = True,
) -> Path:
    """Makes a repository with one commit (or an unborn branch) and returns its folder."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    init = ["init", "-q", f"--object-format={object_format}", f"--initial-branch={branch}"]
    git(folder, *init, *(["--bare"] if bare else []))
    contents = {"app.txt": "one\n"} if files is None else files
    if bare:
        if commit:
            _commit_without_worktree(folder, branch, contents)
        return folder
    for name, text in contents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
    if commit:
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", "Start")
    return folder


def _commit_without_worktree(folder: Path, branch: str, files: Mapping[str, str]) -> None:
    index = {"GIT_INDEX_FILE": str(folder / "index.of-the-test")}
    for name, text in files.items():
        oid = git(folder, "hash-object", "-w", "--stdin", stdin=text)
        git(folder, "update-index", "--add", "--cacheinfo", f"100644,{oid},{name}", env=index)
    tree = git(folder, "write-tree", env=index)
    (folder / "index.of-the-test").unlink(missing_ok=True)
    commit = git(folder, "commit-tree", tree, "-m", "Start")
    git(folder, "update-ref", f"refs/heads/{branch}", commit)
