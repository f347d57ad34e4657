"""Answers for machines: one document on stdout, whatever happens, and codes that differ."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cases.ground import Team
from tests.support.cli import COMMAND, Result, environment, tasks, tasks_inprocess
from tests.support.git import git, make_repository

OFFSET = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$")


def only(result: Result) -> Any:
    """Returns the one document on stdout; anything beside it fails."""
    document, end = json.JSONDecoder().raw_decode(result.out)
    assert result.out[end:] == "\n"
    assert document["schema_version"] == 1
    assert ("data" in document) != ("error" in document)
    return document


def all_values(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Returns every value of a document with the name of its field."""
    if isinstance(value, dict):
        return [row for key, one in value.items() for row in all_values(one, str(key))]
    if isinstance(value, list):
        return [row for one in value for row in all_values(one, path)]
    return [(path, value)]


def provoke_warnings(folder: Path) -> None:
    """Leaves settings behind that nobody knows, and one that is wrong."""
    git(folder, "config", "gittasks.noSuchSetting", "1")
    git(folder, "config", "--add", "gittasks.copyFiles", "*.none")
    git(folder, "config", "advice.detachedHead", "true")
    git(folder, "config", "color.ui", "always")
    git(folder, "config", "core.pager", "false")


def outside(home: Path) -> Path:
    folder = home / "outside"
    folder.mkdir()
    return folder


def test_every_answer_is_one_document_and_every_class_has_its_code(home: Path, team: Team) -> None:
    """Guards against agents that parse a warning, or take one failure for another."""
    provoke_warnings(team.folder)
    empty = only(tasks(team.folder, "list", "--json"))
    assert empty["data"] == []
    bare = make_repository(home / "bare of a ledger")
    provoke_warnings(bare)
    task = team.new("One")
    team.agent("wim", "claim", task)
    said = {
        "unknown": tasks(team.folder, "show", "7", "--json", check=4),
        "malformed": tasks(team.folder, "show", "seven", "--json", check=None),
        "taken": tasks(team.folder, "claim", task, "--as", "wanda", "--json", check=6),
        "state": tasks(team.folder, "submit", task, "--json", check=5),
        "outside": tasks(outside(home), "list", "--json", check=3),
        "no ledger": tasks(bare, "list", "--json", check=3),
        "usage": tasks(team.folder, "list", "--nonsense", "--json", check=2),
        "no command": tasks(team.folder, "sbumit", "--json", check=2),
        "empty": tasks(team.folder, "claim", "--next", "--json", check=10),
        "empty list": tasks(team.folder, "ready", "--one", "--json", check=10),
    }
    for name, result in said.items():
        error = only(result)["error"]
        assert set(error) == {"code", "name", "message", "hint", "retryable", "task"}, name
        assert error["code"] == result.status
        assert error["message"].endswith((".", ":")), error
    assert said["malformed"].status in (2, 4)
    codes = [said[name].status for name in ("unknown", "taken", "state", "outside", "usage")]
    assert len(set(codes)) == 5
    assert only(said["no ledger"])["error"]["hint"] == "Run `git tasks init`."


READS = [
    ("list",), ("list", "--all"), ("show", "1"), ("log",), ("log", "1"), ("inbox",), ("ready",),
    ("status",), ("whoami",), ("version",), ("dep", "tree", "1"), ("dep", "cycles"),
    ("worktree", "list"), ("trust", "--list"), ("config",), ("fsck",), ("diff", "1"),
    ("prime", "2"), ("check", "2"), ("worktree", "path", "2"), ("gc", "--dry-run"), ("recover",),
    ("trust",), ("help", "submit"), ("help",),
]  # fmt: skip


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_ids_are_text_and_times_have_an_offset(team: Team, words: tuple[str, ...]) -> None:
    """Guards against ids that lose their zeros, and times that mean something else elsewhere."""
    task = team.new("One", "--dep", team.new("Two", "--idle"), "--enter", "work", "--label", "a")
    team.manager("dep", "rm", "2", "1")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    provoke_warnings(team.folder)
    document = only(tasks_inprocess(team.folder, *words, "--json", env={"GITTASKS_AGENT": "wim"}))
    for name, value in all_values(document["data"]):
        if name in ("id", "task", "parent", "depends_on", "blocking_ids"):
            assert value is None or re.fullmatch(r"\d{6}", value), (name, value)
        if name.endswith("_at") or name in ("at", "lease_expires", "waiting_since"):
            assert value is None or OFFSET.match(value), (name, value)


WRITES = [
    ("new", "Two"), ("edit", "1", "--title", "Other"), ("note", "1", "A note."),
    ("dep", "add", "1", "2"), ("reparent", "1", "2"), ("reorder", "1", "--first"),
    ("submit", "1", "--enter", "work"), ("hold", "3", "-m", "x"), ("claim", "3"), ("start", "3"),
    ("abort", "1"), ("config", "lease", "2h"), ("trust", "1"), ("init",), ("gc",),
]  # fmt: skip


@pytest.mark.parametrize("words", WRITES, ids=lambda words: words[0])
def test_every_verb_answers_machines(team: Team, words: tuple[str, ...]) -> None:
    """Guards against a verb whose answer has to be read by a person."""
    for number in range(2):
        team.new(f"Task {number}", "--idle")
    team.new("Ready")
    document = only(tasks_inprocess(team.folder, *words, "--json"))
    assert "data" in document
    again = tasks_inprocess(team.folder, *words, "--json", check=None)
    assert again.status in (0, 5)
    only(again)


@pytest.mark.parametrize("place", ["before", "after", "between"])
def test_options_are_understood_wherever_they_stand(team: Team, place: str) -> None:
    """Guards against `--json` that counts only in one place, so that stdout is text once."""
    task = team.new("One")
    words = {
        "before": ("--json", "--as", "wim", "claim", task),
        "after": ("claim", task, "--json", "--as", "wim"),
        "between": ("claim", "--json", task, "--as=wim"),
    }[place]
    assert only(team.manager(*words))["data"]["claimed_by"] == "wim"


@pytest.mark.parametrize("spelling", ["1", "000001", "#1", "task/000001", "01", " 1 "])
def test_every_spelling_of_an_id_is_the_same_task(team: Team, spelling: str) -> None:
    """Guards against a number that is read as something else."""
    task = team.new("One")
    assert team.show(spelling)["id"] == task


@pytest.mark.parametrize(
    "spelling",
    [
        "0",
        "-1",
        "1.0",
        "0x1",
        "1e0",
        "one",
        "",
        "1 2",
        "1;2",
        "١",
        "²",
        "1000000",
        "9" * 99,
    ],
)
def test_what_is_no_id_is_refused(team: Team, spelling: str) -> None:
    """Guards against a spelling that is taken for another task."""
    team.new("One")
    refused = team.manager("show", "--json", "--", spelling, check=None)
    assert refused.status in (2, 4), refused
    assert only(refused)["error"]["message"]


def test_numbers_of_seven_digits_do_not_break_the_listing(team: Team) -> None:
    """Guards against a sort that depends on the width of the numbers."""
    names = [team.new(f"Task {n}", "--idle") for n in range(11)]
    listed = [row["id"] for row in only(team.manager("list", "--json"))["data"]]
    assert listed == names


def test_a_closed_pipe_is_no_failure(team: Team) -> None:
    """Guards against a traceback when somebody pipes into `head`."""
    for number in range(30):
        team.new(f"Task {number} {'x' * 400}", "--idle")
    for words in ("log", "list", "list --json", "log --jsonl", "show 1"):
        line = f"{' '.join(COMMAND)} {words} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", line], cwd=team.folder, env=environment(), capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("0\n", ""), words


@pytest.mark.parametrize("descriptor", ["1", "2", "0"])
def test_closed_standard_streams_do_no_harm(team: Team, descriptor: str) -> None:
    """Guards against a file of the user's that is opened as number 1 and then printed into."""
    line = f"{' '.join(COMMAND)} new One --enter work {descriptor}>&-"
    done = subprocess.run(
        ["sh", "-c", line], cwd=team.folder, env=environment(), capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr
    assert b"defect" not in done.stderr
    assert team.state("1") == "WORK"
    assert git(team.folder, "fsck", "--strict", "--no-dangling") == ""


def test_a_full_disk_for_the_output_is_an_error(team: Team) -> None:
    """Guards against half an answer that ends with success."""
    team.new("One")
    done = subprocess.run(
        ["sh", "-c", f"{' '.join(COMMAND)} list --json >/dev/full"],
        cwd=team.folder, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "space" in done.stderr
