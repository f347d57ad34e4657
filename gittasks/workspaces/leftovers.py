"""Takes a task's tree away, and puts what nobody committed in a place that can be named.

That place is `<git common dir>/gittasks/kept/<id>-<time>/` with `changes.patch` (and `staged.patch`)
against HEAD, the files themselves below `files/`, and an unsubmitted ASSIGNMENT.md. Commits that
only a detached HEAD holds get the ref `refs/gittasks/kept/<id>/<time>-<commit>`.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import GittasksError
from gittasks.plumbing import refs, worktrees
from gittasks.plumbing.errors import RefMoved

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository
    from gittasks.workspaces.places import Places

KEPT = "refs/gittasks/kept/"


class Kept(NamedTuple):
    """Where leftovers are: a folder, a ref; None for what was not needed."""

    folder: str | None = None
    ref: str | None = None
    only_ignored: bool = False
    """Tells whether the folder holds nothing but what git was told to ignore."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Returns what a person has to be told."""
        found = []
        if self.folder and self.only_ignored:
            found.append(f"Files that git ignores are kept in {self.folder}.")
        elif self.folder:
            found.append(f"What nobody had committed is kept in {self.folder}.")
        if self.ref:
            found.append(f"Commits of no branch are kept at {self.ref}.")
        return tuple(found)


def keep(repo: Repository, places: Places, task: str, now: int) -> Kept:
    """Puts what is not committed in a tree aside; only changed tracked files stay in it too."""
    path = places.tree(task)
    lines = worktrees.status(repo, path, ignored=True)
    kept_ref = _keep_commits(repo, path, task, now)
    if not lines:
        return Kept(None, kept_ref)
    folder = _new_folder(places, task, now)
    if any(line.code not in ("??", "!!") for line in lines):
        _write_patch(repo, path, os.path.join(folder, "changes.patch"), ())
    if any(line.code[0] not in " ?!" and line.code[1] != " " for line in lines):
        _write_patch(repo, path, os.path.join(folder, "staged.patch"), ("--cached",))
    for line in lines:
        untracked = line.code in ("??", "!!")
        _put_aside(path, line.path.rstrip("/"), os.path.join(folder, "files"), move=untracked)
    return Kept(folder, kept_ref, all(line.code == "!!" for line in lines))


def _keep_commits(repo: Repository, path: str, task: str, now: int) -> str | None:
    """Gives a name to commits that only the HEAD of the tree holds."""
    head = refs.head(repo, at=path)
    if head.branch is not None or head.oid is None:
        return None
    if not repo.text("rev-list", "--max-count=1", head.oid, "--not", "--branches", "--tags", "--"):
        return None
    name = f"{KEPT}{task}/{_stamp(now)}-{head.oid[:8]}"
    try:
        refs.compare_and_swap(repo, name, head.oid, None, "gittasks: keep commits of no branch")
    except RefMoved as error:
        if error.actual != head.oid:
            raise
    return name


def _write_patch(repo: Repository, path: str, file: str, options: tuple[str, ...]) -> None:
    done = repo.git(
        "diff", "--binary", "--no-ext-diff", *options, "HEAD", "--", at=path, check=False
    )
    with open(file, "wb") as target:
        target.write(done.stdout)


def _put_aside(tree: str, name: str, folder: str, *, move: bool) -> None:
    import shutil

    there, here = os.path.join(tree, name), os.path.join(folder, name)
    if not os.path.lexists(there):
        return
    os.makedirs(os.path.dirname(here), exist_ok=True)
    if move:
        shutil.move(there, here)
    elif os.path.isdir(there) and not os.path.islink(there):
        shutil.copytree(there, here, symlinks=True)
    else:
        shutil.copy2(there, here, follow_symlinks=False)


def keep_assignment(
    places: Places, task: str, sent: str | None, kept: str | None, now: int
) -> str | None:
    """Puts an assignment aside that is not as it was dispatched; returns the folder it is in."""
    try:
        fd = os.open(places.assignment(task), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return kept
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            # Of a pipe that an agent has made there would be no end.
            return kept
        text = file.read()
    if sent is None or _same_text(text, sent):
        return kept
    folder = kept or _new_folder(places, task, now)
    with open(os.path.join(folder, "ASSIGNMENT.md"), "wb") as target:
        target.write(text)
    return folder


def _same_text(text: bytes, sent: str) -> bool:
    def plain(data: bytes) -> bytes:
        return data.replace(b"\r\n", b"\n").rstrip()

    return plain(text) == plain(sent.encode("utf-8", "surrogateescape"))


def set_aside(places: Places, task: str, now: int) -> str:
    """Moves a whole folder out of the place of the task's tree; returns where it is now."""
    for number in range(1, 1000):
        folder = os.path.join(places.folder(task), f"tree-kept-{_stamp(now)}-{number}")
        if not os.path.lexists(folder):
            os.rename(places.tree(task), folder)
            return folder
    raise _no_name(places.folder(task), task)


def _new_folder(places: Places, task: str, now: int) -> str:
    home = os.path.join(places.state, "kept")
    for number in range(1, 1000):
        end = "" if number == 1 else f"-{number}"
        folder = os.path.join(home, f"{task}-{_stamp(now)}{end}")
        try:
            os.makedirs(folder, mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise _no_name(home, task)


def _no_name(home: str, task: str) -> GittasksError:
    return GittasksError(f"There is no free name for what is kept in {home}.", None, task)


def _stamp(now: int) -> str:
    import time

    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
