"""The user's checkout when it stops in the middle of following the base."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.hostile.ground import begun, reviewed, status
from tests.support.cli import tasks
from tests.support.git import git

BEFORE = {"a.txt": "old a\n", "b.txt": "old b\n", "c.txt": "old c\n", "folder/x": "x\n", "gone": ""}
AFTER = {"a.txt": "new a\n", "b.txt": "new b\n", "c.txt": "new c\n", "é new": "new\n"}


@pytest.fixture
def stuck(once: Path, tmp_path: Path) -> Path:
    """Returns a repository whose landing has moved the refs and not the checkout."""
    return Path(shutil.copytree(once, tmp_path / "repo", symlinks=True))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns what each test copies."""
    repo = begun(tmp_path_factory.mktemp("once") / "repo", "Change much", files=BEFORE)
    changes: dict[str, str | None] = {"gone": None, "folder/x": None, "folder": "a file now\n"}
    reviewed(repo, "1", {**changes, **AFTER})
    records = repo / ".git" / "gittasks" / "landing"
    old = git(repo, "rev-parse", "master")
    tip = git(repo, "rev-parse", "task/000001")
    tasks(repo, "submit", "1")
    new = git(repo, "rev-parse", "master")
    git(repo, "read-tree", "-m", "-u", new, old)
    record = {
        "task": "000001",
        "uid": tasks(repo, "show", "1", "--json").json()["data"]["uid"],
        "base": "refs/heads/master",
        "base_old": old,
        "tip": tip,
        "commit": new,
        "mode": "merge",
        "branch": "task/000001",
        "process": None,
        "at": 0,
        "actor": "Ada",
        "remark": None,
    }
    (records / "000001.json").write_text(json.dumps(record), encoding="utf-8")
    return repo


def _arrive(repo: Path, *names: str) -> None:
    for name in names:
        (repo / name).write_text(AFTER[name], encoding="utf-8")


def _has_followed(repo: Path) -> bool:
    texts = {name: (repo / name).read_text(encoding="utf-8") for name in AFTER}
    return texts == AFTER and (repo / "folder").read_text() == "a file now\n"


def test_files_that_arrived_before_a_kill_do_not_stop_the_others(stuck: Path) -> None:
    _arrive(stuck, "a.txt", "é new")
    os.unlink(stuck / "gone")
    os.unlink(stuck / "folder" / "x")
    (stuck / "folder").rmdir()
    (stuck / "folder").write_text("a file now\n")
    tasks(stuck, "recover")
    assert (status(stuck), _has_followed(stuck)) == ([], True)


def test_a_file_that_was_cut_off_is_written_again(stuck: Path) -> None:
    (stuck / "a.txt").write_text("new", encoding="utf-8")
    (stuck / "é new").write_text("", encoding="utf-8")
    tasks(stuck, "recover")
    assert (status(stuck), _has_followed(stuck)) == ([], True)


def test_a_file_of_the_users_own_stops_it_and_keeps_its_bytes(stuck: Path) -> None:
    _arrive(stuck, "a.txt")
    (stuck / "b.txt").write_text("mine\n", encoding="utf-8")
    index = (stuck / ".git" / "index").read_bytes()
    said = tasks(stuck, "recover")
    assert "could not follow" in said.out
    assert (stuck / "b.txt").read_text(encoding="utf-8") == "mine\n"
    assert (stuck / ".git" / "index").read_bytes() == index


def test_it_goes_on_when_the_users_file_is_out_of_the_way(stuck: Path) -> None:
    _arrive(stuck, "a.txt")
    (stuck / "b.txt").write_text("mine\n", encoding="utf-8")
    tasks(stuck, "recover")
    git(stuck, "checkout", "--", "b.txt")
    tasks(stuck, "recover")
    assert (status(stuck), _has_followed(stuck)) == ([], True)


def test_the_empty_lock_of_a_killed_git_goes_when_it_is_old(stuck: Path) -> None:
    lock = stuck / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (1, 1))
    tasks(stuck, "recover")
    assert (status(stuck), _has_followed(stuck), lock.exists()) == ([], True, False)


def test_the_lock_of_a_commit_that_waits_for_an_editor_stays(stuck: Path) -> None:
    lock = stuck / ".git" / "index.lock"
    lock.write_bytes(b"DIRC and so on")
    os.utime(lock, (1, 1))
    said = tasks(stuck, "recover")
    assert ("could not follow" in said.out, lock.read_bytes()) == (True, b"DIRC and so on")


def test_what_the_user_has_staged_beside_it_stays_staged(stuck: Path) -> None:
    (stuck / "own.txt").write_text("own\n", encoding="utf-8")
    git(stuck, "add", "own.txt")
    _arrive(stuck, "b.txt")
    tasks(stuck, "recover")
    assert (status(stuck), _has_followed(stuck)) == (["A  own.txt"], True)
    assert [name for name in os.listdir(stuck / ".git") if name.startswith("index")] == ["index"]
