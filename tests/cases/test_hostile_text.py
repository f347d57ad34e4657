"""Text that tries to steer a terminal, a pager, a shell, a format string or git itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cases.ground import Team, path_of
from tests.support.cli import Result, tasks_inprocess
from tests.support.git import git

CONTROL = "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x1b[1;1H\x9b31m\x90q\x9c\x7f\x08\r\x0b\x0c"
OVERRIDE = "\u202e\u2066\u200f\u061c\u2028\u2029\ufeff\u200b\u00ad"
LINES = "\u2028\u2029"
TITLE = f"evil{OVERRIDE.replace(LINES, '')}title"
NAME = f"mallory{CONTROL.replace(chr(13), '')}{OVERRIDE}"

FORBIDDEN = {chr(n) for n in range(0x20)} - {"\n", "\t"} | {chr(n) for n in range(0x7F, 0xA0)}
FORBIDDEN |= set(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
)


def raw(text: str) -> set[str]:
    """Returns what a terminal must not get from us."""
    return set(text) & FORBIDDEN


@pytest.fixture
def hostile(team: Team) -> Team:
    """Returns a team whose task, worker and findings try to steer the terminal."""
    task = team.new("One", "--idle", "-m", f"A body {CONTROL}{OVERRIDE}.")
    document = team.document(task)
    spelled = json.dumps(TITLE).encode()
    team.write_by_hand({path_of(task): document.replace(b'"One"', spelled)})
    team.manager("recover")
    team.manager("submit", task, "--enter", "work")
    team.manager("edit", task, "--set", f"labels={json.dumps(['a' + CONTROL.strip()])}", check=None)
    return team


def speak(team: Team, *words: str, at: Path | None = None, check: int | None = 0) -> Result:
    return tasks_inprocess(at or team.folder, *words, check=check, env={"GITTASKS_AGENT": NAME})


def test_no_title_and_no_name_can_steer_the_terminal(hostile: Team) -> None:
    """Guards against a task of somebody else's that takes over the screen or the clipboard."""
    team = hostile
    assert team.show("1")["title"] == TITLE
    tree = Path(speak(team, "start", "1").out.strip())
    team.commit(tree, {"new.txt": "new\n"})
    said = [
        speak(team, "submit", "-m", f"Done {CONTROL}.", at=tree),
        team.manager("note", "1", f"A note {CONTROL}{OVERRIDE}."),
        team.manager("dep", "add", "1", "1", check=5),
        team.manager("claim", "1", "--as", NAME),
        team.manager("claim", "1", "--as", "other", check=6),
        team.manager("feedback", "1", "--as", NAME, "-m", f"No {CONTROL}."),
        team.manager("new", "Two", "--dep", "1", "--check", f"echo {CONTROL.strip()}", check=None),
        team.manager("hold", "1", "-m", f"Why {CONTROL}."),
        team.manager("new", f"x{CONTROL}", check=None),
        team.manager("show", f"1{CONTROL}", check=None),
        team.manager(f"sub{CONTROL}mit", check=None),
        team.manager("config", f"x{CONTROL}", "1", check=2),
        team.manager("list", f"--x{CONTROL}", check=2),
    ]
    for verb in (
        "list --all", "show 1", "show 1 --review", "log", "log 1", "inbox", "ready", "status",
        "dep tree 1", "worktree list", "trust", "trust --list", "whoami", "fsck", "gc --dry-run",
        "recover", "list --color=always", "log --color=always", "show 1 --color=always",
    ):  # fmt: skip
        said += [speak(team, *verb.split(), check=None)]
    for result in said:
        coloured = result.out.replace("\x1b[", "").replace("\x1b[m", "")
        if "\x1b[" in result.out:
            assert all(
                part[:1].isdigit() or part[:1] == "m" for part in result.out.split("\x1b[")[1:]
            )
        assert raw(coloured) == set(), result
        assert raw(result.err) == set(), result


def test_titles_with_control_characters_are_refused_or_escaped(team: Team) -> None:
    """Guards against a title from elsewhere, written by a tool that lets everything through."""
    task, good = team.new("One", "--idle"), team.new("Good", "--idle")
    document = team.document(task)
    uid = document.partition(b'uid: "')[2][:32]
    files: dict[str, bytes | None] = {}
    for number, character in enumerate(sorted({*FORBIDDEN, "\n", "\t"}), 100):
        copy = document.replace(b'"000001"', f'"{number:06d}"'.encode())
        spelled = f'"evil\\u{ord(character):04x}title"'.encode()
        copy = copy.replace(uid, f"{number:032x}".encode()).replace(b'"One"', spelled)
        files[path_of(str(number))] = copy
    team.write_by_hand(files)
    said = [team.manager(verb, check=None) for verb in ("list", "inbox", "fsck", "status")]
    said += [team.manager("show", str(n), check=None) for n in range(100, 100 + len(files))]
    said += [team.manager("recover")]
    assert good in said[0].out
    for result in said:
        assert raw(result.out + result.err) == set(), result
    assert raw(team.git("log", "-9", "--format=%B", "gittasks", "--")) == set()


def test_json_escapes_what_a_terminal_would_obey(hostile: Team) -> None:
    """Guards against `git tasks list --json` typed at a terminal."""
    for verb in ("list --all", "show 1", "log", "inbox", "ready", "status"):
        answer = speak(hostile, *verb.split(), "--json").out
        assert raw(answer) == set(), verb
        json.loads(answer)
    assert json.loads(speak(hostile, "list", "--json").out)["data"][0]["title"] == TITLE
    for line in speak(hostile, "log", "--jsonl").out.splitlines():
        assert raw(line) == set()


def test_the_ledger_reads_well_with_plain_git(hostile: Team) -> None:
    """Guards against commit messages that steer the terminal of whoever runs `git log`."""
    tree = Path(speak(hostile, "start", "1").out.strip())
    speak(hostile, "note", "1", f"A note {CONTROL}{OVERRIDE}.", at=tree)
    log = hostile.git("log", "--format=%an%n%ae%n%cn%n%B", "gittasks", "--")
    assert raw(log) == set()
    assert all(len(line) <= 72 for line in hostile.subjects())
    assert git(hostile.folder, "fsck", "--strict", "--no-dangling") == ""


def test_names_of_branches_and_folders_do_not_come_from_titles(hostile: Team) -> None:
    """Guards against a title that becomes a path or an argument of git."""
    tree = Path(speak(hostile, "start", "1").out.strip())
    assert hostile.git("symbolic-ref", "HEAD", at=tree) == "refs/heads/task/000001"
    assert tree == hostile.folder.with_name("project.tasks") / "000001/tree"
    hostile.commit(tree, {"new.txt": "new\n"})
    speak(hostile, "submit", "-m", "Done.", at=tree)
    hostile.approve("1")
    hostile.manager("submit", "1")
    message = hostile.git("log", "-1", "--format=%B", "master")
    assert raw(message) == set()
    assert message.splitlines()[0].startswith("000001: evil")


ARGUMENTS = ["--upload-pack=touch owned", "-x", "--", "@{-1}", "$(touch owned)", "; touch owned",
             "../../../owned", "a\\", "%n%h", "HEAD", "'; DROP TABLE tasks; --", "*", "\u200b", "😀"]  # fmt: skip


@pytest.mark.parametrize("text", ARGUMENTS)
def test_no_text_becomes_an_option_a_command_or_a_path(team: Team, text: str) -> None:
    """Guards against words of the user that a shell, git or SQL reads as something else."""
    made = team.manager("new", f"--title={text}", f"--label={text}", f"--assignee={text}",
                        f"--idempotency-key={text}", "--enter", "work", check=None)  # fmt: skip
    if made.status == 0:
        shown = team.show("1")
        assert (shown["title"], shown["labels"], shown["assignee"]) == (text, [text], text)
        team.manager("note", "1", "--", text)
        team.manager("claim", "1", f"--as={text}")
        assert team.show("1")["claimed_by"] == text
        team.manager("list", f"--label={text}")
        team.manager("list", f"--state={text}", check=None)
    else:
        assert made.status == 2
    for verb in ("show", "claim", "log", "diff", "check"):
        assert team.manager(verb, "--", text, check=None).status in (2, 4)
    team.manager("log", f"--since={text}", check=None)
    team.manager("config", "--edit", text, check=None)
    team.manager("fsck")
    assert not (team.folder / "owned").exists()
    assert not list(team.folder.parent.rglob("owned"))


def test_paths_of_the_project_with_odd_names_are_shown_safely(team: Team) -> None:
    """Guards against a file name that steers the terminal in a refusal or a diff."""
    odd = "od\x1b[2Jd\n\u202e.txt"
    task = team.new("One")
    tree = team.start(task)
    (tree / odd).write_text("new\n", encoding="utf-8")
    refused = team.agent("wim", "submit", "-m", "Done.", at=tree, check=5)
    assert raw(refused.err) == set()
    team.commit(tree, {odd: "new\n"})
    team.agent("wim", "submit", "-m", "Done.", at=tree)
    for words in (("diff", task, "--stat"), ("diff", task), ("show", task, "--review")):
        assert raw(team.manager(*words).out) == set(), words
    team.approve(task)
    (team.folder / odd).write_text("mine\n", encoding="utf-8")
    refused = team.manager("submit", task, check=5)
    assert raw(refused.err) == set()


def test_bytes_that_are_no_text_are_an_error_and_no_crash(team: Team) -> None:
    """Guards against a command line of another encoding."""
    word = os.fsdecode(b"caf\xe9")
    for words in (
        ("new", word), ("new", "x", "--label", word), ("claim", "1", "--as", word),
        ("note", "1", word), ("show", word), ("-C", word, "list"), ("hold", "1", "-m", word),
    ):  # fmt: skip
        team.new("One")
        said = team.manager(*words, "--json", check=None)
        assert said.status in (0, 2, 3, 4), (words, said)
    for verb in ("list", "status", "inbox", "ready", "log", "fsck"):
        team.manager(verb)
