"""What a git can do follows from its version."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.plumbing import repository, versions
from gittasks.plumbing.repository import Repository
from tests.support.git import git, make_repository


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("git version 2.39.5", (2, 39, 5)),
        ("git version 2.39.5 (Vendor Git-154)", (2, 39, 5)),
        ("git version 2.47.0.windows.1", (2, 47, 0)),
        ("git version 2.55.0-rc1", (2, 55, 0)),
        ("git version 2.55.GIT", (2, 55)),
        ("git version 2.43.0.12.gabc", (2, 43, 0, 12)),
        ("nonsense", ()),
    ],
)
def test_the_numbers_are_read_and_the_rest_is_not(text: str, version: tuple[int, ...]) -> None:
    assert versions.parse_version(text) == version


@pytest.mark.parametrize(
    ("version", "can"), [((2, 37, 9), False), ((2, 38), True), ((2, 38, 0), True), ((3, 0), True)]
)
def test_a_feature_is_there_from_its_first_version_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], can: bool
) -> None:
    repo = Repository.open(str(make_repository(tmp_path / "r")))
    monkeypatch.setitem(versions._known, repository.GIT, version)
    assert versions.supports(repo, "merge-tree") is can


def test_git_is_asked_for_its_version_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(versions._known, repository.GIT, raising=False)
    repo = Repository.open(str(make_repository(tmp_path / "r")))
    before = repo.calls
    told = [versions.git_version(repo) for _ in range(3)]
    assert (told, repo.calls - before) == (
        [versions.parse_version(git(tmp_path, "version"))] * 3,
        1,
    )


def test_every_feature_says_what_it_is_for() -> None:
    assert all(one.reason for one in versions.FEATURES.values())
