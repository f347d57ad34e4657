"""Where a clone keeps its tasks' trees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gittasks.domain.errors import Refused
from gittasks.plumbing.repository import Repository
from gittasks.workspaces import places
from tests.support.git import git, make_repository


def root_of(path: Path) -> str:
    return places.worktree_root(Repository.open(str(path)))


def test_the_trees_stand_beside_the_repository(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "my repo")
    (folder / "sub").mkdir()
    assert root_of(folder / "sub") == str(tmp_path / "my repo.tasks")


def test_a_linked_worktree_has_the_place_of_its_repository(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo")
    git(folder, "worktree", "add", "-q", str(tmp_path / "elsewhere" / "tree"), "-b", "side")
    assert root_of(tmp_path / "elsewhere" / "tree") == str(tmp_path / "repo.tasks")


def test_a_bare_repository_has_a_place_without_its_suffix(tmp_path: Path) -> None:
    assert root_of(make_repository(tmp_path / "repo.git", bare=True)) == str(
        tmp_path / "repo.tasks"
    )


def test_a_setting_names_another_place(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo")
    git(folder, "config", "gittasks.worktreeDir", "../trees")
    assert root_of(folder) == str(tmp_path / "trees")


def test_a_place_below_home_can_be_named(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo")
    git(folder, "config", "gittasks.worktreeDir", "~/trees")
    assert root_of(folder) == os.path.join(os.environ["HOME"], "trees")


@pytest.mark.parametrize("place", ["trees", ".", ".git/trees", "../repo/x", "../link/trees"])
def test_a_place_inside_the_checkout_is_refused(tmp_path: Path, place: str) -> None:
    folder = make_repository(tmp_path / "repo")
    (tmp_path / "link").symlink_to(folder)
    git(folder, "config", "gittasks.worktreeDir", place)
    with pytest.raises(Refused, match="lies inside"):
        root_of(folder)


def test_a_neighbour_with_a_longer_name_is_not_inside(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo")
    git(folder, "config", "gittasks.worktreeDir", "../repository")
    assert root_of(folder) == str(tmp_path / "repository")


def test_a_git_directory_elsewhere_has_one_place_wherever_we_stand(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo")
    git(folder, "init", "-q", "--separate-git-dir", str(tmp_path / "store.git"))
    git(folder, "worktree", "add", "-q", str(tmp_path / "side"), "-b", "side")
    roots = [root_of(place) for place in (folder, tmp_path / "side", tmp_path / "store.git")]
    assert roots == [str(tmp_path / "store.tasks")] * 3


def test_a_git_directory_elsewhere_does_not_hide_the_checkout(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo")
    git(folder, "init", "-q", "--separate-git-dir", str(tmp_path / "store.git"))
    git(folder, "config", "gittasks.worktreeDir", str(folder / "trees"))
    with pytest.raises(Refused, match="lies inside"):
        root_of(folder)


def test_a_folder_below_a_tree_belongs_to_the_task(tmp_path: Path) -> None:
    here = places.Places(str(tmp_path / "repo.tasks"), str(tmp_path / "state"))
    inside = [here.tree("000042"), here.assignment("000042"), str(tmp_path), here.root + "/notes"]
    assert [here.task_of(path) for path in inside] == ["000042", "000042", None, None]
