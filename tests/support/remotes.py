"""Makes bare repositories that clones share, and makes them refuse, stall or go away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.git import git, make_repository


def bare_remote(path: str | os.PathLike[str], *, object_format: str = "sha1") -> Path:
    """Makes a bare repository with one commit on master, which takes no forced update."""
    folder = make_repository(path, bare=True, object_format=object_format)
    git(folder, "config", "receive.denyNonFastForwards", "true")
    return folder


def clone(
    remote: str | os.PathLike[str], path: str | os.PathLike[str], name: str, *options: str
) -> Path:
    """Clones a repository for somebody of this name, and returns the folder."""
    folder = Path(path)
    git(folder.parent, "clone", "-q", *options, str(remote), str(folder))
    git(folder, "config", "user.name", name)
    git(folder, "config", "user.email", f"{name.lower()}@example.org")
    return folder


def two_clones(folder: Path) -> tuple[Path, Path, Path]:
    """Returns a bare remote and the clones of Ada and Bob."""
    remote = bare_remote(folder / "remote.git")
    return remote, clone(remote, folder / "ada", "Ada"), clone(remote, folder / "bob", "Bob")


def install_hook(repository: Path, name: str, script: str) -> Path:
    """Gives a repository a hook: the lines of a shell script."""
    hooks = Path(git(repository, "rev-parse", "--path-format=absolute", "--git-path", "hooks"))
    hooks.mkdir(parents=True, exist_ok=True)
    hook = hooks / name
    hook.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    hook.chmod(0o755)
    return hook


@contextmanager
def away(remote: Path) -> Iterator[Path]:
    """Takes a remote out of reach for a while; gives the place where it is meanwhile."""
    elsewhere = remote.with_name(f"{remote.name}.away")
    remote.rename(elsewhere)
    try:
        yield elsewhere
    finally:
        elsewhere.rename(remote)


def commit(path: Path, branch: str, text: str, *, parent: str | None = None) -> str:
    """Puts a commit with one file on a branch that nobody has checked out; returns its id."""
    blob = git(path, "hash-object", "-w", "--stdin", stdin=text)
    tree = git(path, "mktree", stdin=f"100644 blob {blob}\tfile.txt\n")
    before = parent or git(path, "rev-parse", "-q", "--verify", branch, check=False)
    made = git(path, "commit-tree", tree, "-m", text[:60], *(["-p", before] if before else []))
    git(path, "update-ref", branch, made)
    return made
