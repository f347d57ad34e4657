"""Which ref of the user's notes where a branch of a remote stands, and when it moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.plumbing import tracking
from gittasks.plumbing.repository import Repository
from tests.support.git import git, make_repository

MAIN = "refs/heads/master"


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        (["+refs/heads/*:refs/remotes/origin/*"], "refs/remotes/origin/master"),
        (["refs/heads/master:refs/remotes/origin/trunk"], "refs/remotes/origin/trunk"),
        (["+refs/heads/m*r:refs/remotes/up/x-*"], "refs/remotes/up/x-aste"),
        (["+refs/heads/other:refs/remotes/origin/other"], None),
        (["+refs/heads/*:refs/remotes/origin/*", "^refs/heads/master"], None),
        (["+refs/heads/*:refs/remotes/origin/*", "^refs/heads/m*"], None),
        (["+refs/*:refs/*"], None),
        (["refs/heads/master"], None),
        ([], None),
    ],
)
def test_a_ref_is_noted_where_the_users_fetch_puts_it(
    home: Path, specs: list[str], expected: str | None
) -> None:
    folder = make_repository(home / "ada")
    for spec in specs:
        git(folder, "config", "--add", "remote.origin.fetch", spec)
    assert tracking.ref_of(Repository.open(str(folder)), "origin", MAIN) == expected


@pytest.mark.parametrize("where", ["behind", "there", "ahead", "aside", "nowhere", "locked"])
def test_a_note_only_goes_on(home: Path, where: str) -> None:
    folder = make_repository(home / "ada")
    git(folder, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    noted = "refs/remotes/origin/master"
    old = git(folder, "rev-parse", "HEAD")
    tip, later, aside = (
        git(folder, "commit-tree", "HEAD^{tree}", "-p", old, "-m", text) for text in "abc"
    )
    later = git(folder, "commit-tree", "HEAD^{tree}", "-p", tip, "-m", "later")
    stands = {"behind": old, "there": tip, "ahead": later, "aside": aside, "locked": old}
    if where in stands:
        git(folder, "update-ref", noted, stands[where])
    if where == "locked":
        (folder / ".git" / f"{noted}.lock").touch()
    moved = tracking.note(Repository.open(str(folder)), "origin", MAIN, tip)
    now = git(folder, "for-each-ref", "--format=%(objectname)", noted)
    assert (moved, now) == ((True, tip) if where == "behind" else (False, stands.get(where, "")))
