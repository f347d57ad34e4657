"""`--at` on every read: the answer is the one of then; whatever is about the present refuses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gittasks.cli import catalogue, frame
from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository

READS = {
    "board", "config", "dep cycles", "dep tree", "diff", "export", "graph", "inbox", "list", "log", "ready",
    "review-packet", "show", "stats", "status", "timeline",
}  # fmt: skip
ASKED = (
    "config", "dep cycles", "dep tree 2", "graph", "inbox", "list --all", "log", "ready", "review-packet 1",
    "show 1", "stats", "status", "timeline 1",
)  # fmt: skip


def _declared() -> Iterator[frame.Command]:
    for name in catalogue.COMMANDS:
        found = catalogue.load(name)
        yield from found.commands.values() if isinstance(found, frame.Group) else (found,)


def test_all_reads_take_it_and_nothing_else() -> None:
    declared = {command.name: command.past for command in _declared()}
    assert {name for name, past in declared.items() if past} == READS & declared.keys()


def _said(folder: Path, words: str, *more: str) -> Any:
    return json.loads(tasks_inprocess(folder, *words.split(), "--json", *more).out)


@pytest.fixture
def story(home: Path) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Returns a repository, and what each read said when the ledger was at each of some commits."""
    folder = make_repository(home / "project")
    said: dict[str, dict[str, Any]] = {}

    def remember() -> None:
        tip = git(folder, "rev-parse", "gittasks")
        said[tip] = {words: _said(folder, words) for words in ASKED}
        # Until when the numbers go is the time of the question, or of the commit.
        said[tip]["stats"] = _said(folder, "stats", "--at", tip)

    tasks_inprocess(folder, "init")
    tasks_inprocess(folder, "new", "One", "--enter", "work", "--check", "true")
    tasks_inprocess(folder, "new", "Two", "--dep", "1", "--enter", "design")
    remember()
    tasks_inprocess(folder, "claim", "1", "--as", "pi", "--no-worktree")
    remember()
    tasks_inprocess(folder, "hold", "1", "-m", "Which?")
    tasks_inprocess(folder, "edit", "1", "--title", "First")
    remember()
    tasks_inprocess(folder, "abort", "1")
    tasks_inprocess(folder, "new", "Three")
    return folder, said


def test_every_read_says_what_it_said_then(
    story: tuple[Path, dict[str, dict[str, Any]]],
) -> None:
    folder, said = story
    for commit, answers in said.items():
        for words, answer in answers.items():
            assert _said(folder, words, "--at", commit) == answer, words


def test_looking_back_writes_nothing(story: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    folder, said = story
    cache = folder / ".git" / "gittasks" / "cache.db"
    before = cache.read_bytes()
    for commit in said:
        tasks_inprocess(folder, "list", "--at", commit)
    assert cache.read_bytes() == before


@pytest.mark.parametrize(
    "spelling",
    ["HEAD~99", "master", "nothing", "2024-06-01", "1960-01-01", "0001-01-01", "HEAD..HEAD"],
)
def test_what_is_not_of_the_ledger_is_not_found(
    story: tuple[Path, dict[str, dict[str, Any]]], spelling: str
) -> None:
    refused = tasks_inprocess(story[0], "list", "--json", "--at", spelling, check=4)
    assert json.loads(refused.out)["error"]["name"] == "NOTFOUND"


@pytest.mark.parametrize(
    "words",
    [("new", "X"), ("claim", "1"), ("gc",), ("dep", "add", "1", "2"), ("watch",), ("sync",)],
)
def test_what_is_about_the_present_refuses_it(
    story: tuple[Path, dict[str, dict[str, Any]]], words: tuple[str, ...]
) -> None:
    tip = git(story[0], "rev-parse", "gittasks")
    refused = tasks_inprocess(story[0], *words, "--at", "HEAD", check=2)
    assert "does not take --at: it is about the present." in refused.err
    assert git(story[0], "rev-parse", "gittasks") == tip


def test_a_log_goes_on_past_a_commit_that_is_no_event(
    story: tuple[Path, dict[str, dict[str, Any]]],
) -> None:
    folder = story[0]
    whole = tasks_inprocess(folder, "log").out
    tip = git(folder, "rev-parse", "gittasks")
    words = ("-c", "user.name=Eve", "-c", "user.email=e@e", "commit-tree", f"{tip}^{{tree}}")
    git(folder, "update-ref", "refs/heads/gittasks", git(folder, *words, "-p", tip, "-m", "x"))
    told = tasks_inprocess(folder, "log")
    assert told.out == whole
    assert "is not an event of the ledger" in told.err
    assert "`git tasks recover` leaves it out." in told.err


@pytest.mark.parametrize(
    "words", [("config", "rejection_limit", "5"), ("config", "--unset", "rejection_limit")]
)
def test_the_settings_of_then_can_be_read_and_not_changed(
    story: tuple[Path, dict[str, dict[str, Any]]], words: tuple[str, ...]
) -> None:
    folder = story[0]
    tasks_inprocess(folder, "config", "rejection_limit", "4")
    assert tasks_inprocess(folder, "config", "rejection_limit", "--at", "HEAD~1").out == "2\n"
    tip = git(folder, "rev-parse", "gittasks")
    refused = tasks_inprocess(folder, *words, "--at", "HEAD~1", check=2)
    assert "The past cannot be changed." in refused.err
    assert git(folder, "rev-parse", "gittasks") == tip
