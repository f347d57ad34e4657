"""Finding a repository, and the way git is run in it."""

from __future__ import annotations

from pathlib import Path

from gittasks.plumbing.repository import Repository
from tests.support.git import git, make_repository


def test_one_process_finds_the_repository_and_the_id_of_a_ref(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "with space")
    (folder / "sub").mkdir()
    repo = Repository.open(str(folder / "sub"), resolve=("refs/heads/master",))
    assert (repo.git_dir, repo.common_dir, repo.worktree, repo.prefix, repo.calls) == (
        str(folder / ".git"),
        str(folder / ".git"),
        str(folder),
        "sub/",
        1,
    )
    assert repo.resolved == {"refs/heads/master": git(folder, "rev-parse", "master")}
