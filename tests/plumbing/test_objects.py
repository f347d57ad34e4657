"""Reading objects, and building and writing new ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.plumbing import objects
from gittasks.plumbing.objects import Reader, Signature
from gittasks.plumbing.repository import Repository
from tests.support.git import git, make_repository

ADA = Signature("Ada", "ada@example.org", 1_700_000_000)


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_git_reads_back_the_commit_that_was_built_in_memory(
    tmp_path: Path, object_format: str
) -> None:
    folder = make_repository(tmp_path / "r", object_format=object_format)
    repo = Repository.open(str(folder))
    blob = objects.draft(repo, "blob", b"hello\n")
    with Reader(repo) as reader:
        changes = {"tasks/0000/000042.md": (objects.FILE, blob.oid)}
        root, trees = objects.graft(reader, repo, git(folder, "rev-parse", "HEAD^{tree}"), changes)
    commit = objects.draft(repo, "commit", objects.commit_bytes(root, (), ADA, ADA, b"subject\n"))
    objects.write(repo, [blob, *trees, commit])
    assert git(folder, "ls-tree", "-r", "--name-only", commit.oid).splitlines() == [
        "app.txt",
        "tasks/0000/000042.md",
    ]
    assert git(folder, "fsck", "--strict", "--no-dangling", commit.oid) == ""
