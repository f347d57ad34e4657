"""A command reads a prompt, works and ends; its exit tells how the turn ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.agents import orphans
from gittasks.agents.base import Activity, Event, Exited, Settled, Started, Usage
from tests.agents.conversation import MARK, NOW, Conversation, probe, spec


def sh(folder: Path, script: str) -> Conversation:
    return Conversation(spec(folder, "command", "sh", "-c", script))


def test_the_prompt_is_the_input_and_the_tree_the_folder(tmp_path: Path) -> None:
    talk = sh(tmp_path, "cat; pwd")
    told = talk.turn("Do this.\nAnd that.\n")
    log = f"Do this.\nAnd that.\n{tmp_path}/tree\n"
    assert (told, talk.log.read_text()) == ([Started(), Settled("done"), Exited(0)], log)


@pytest.mark.parametrize(
    ("script", "settled"),
    [
        ("exit 75", Settled("limit", "exit code 75")),
        ("echo oh >&2; exit 3", Settled("error", "exit code 3\noh")),
        ("kill -9 $$", Settled("error", "signal 9")),
        ("echo gittasks-limit: 90", Settled("limit", "exit code 0", until=NOW + 90)),
        ("echo gittasks-limit: 1e9; exit 1", Settled("limit", "exit code 1", until=NOW + 691_200)),
        ("echo gittasks-limit: soon", Settled("limit", "exit code 0")),
        ("echo gittasks-limit: nan", Settled("limit", "exit code 0")),
        (
            "printf 'gittasks-limit: 2027-01-15T10:00:01+02:00' >&2; exit 2",
            Settled(
                "limit", "exit code 2\ngittasks-limit: 2027-01-15T10:00:01+02:00", until=NOW + 1
            ),
        ),
    ],
)
def test_the_exit_tells_how_the_turn_ended(tmp_path: Path, script: str, settled: Settled) -> None:
    told = sh(tmp_path, script).turn()
    assert [event for event in told if isinstance(event, Settled)] == [settled]


def test_what_a_command_reports_is_heard_and_what_makes_no_sense_is_not(tmp_path: Path) -> None:
    lines = [
        'gittasks-usage: {"cost": 0.5, "tokens": 7, "context": 40}',
        "gittasks-activity: pytest tests",
        "gittasks-usage: []",
        "gittasks-usage: {",
        'gittasks-usage: {"cost": -1, "tokens": true, "output": 1e999}',
        "gittasks-activity:",
        "gittasks-else: x",
        " gittasks-activity: x",
    ]
    talk = sh(tmp_path, f"cat >/dev/null; cat <<'END'\n{chr(10).join(lines)}\nEND")
    between: list[Event] = [
        Usage(0.5, 7, 0, 40.0),
        Activity("command", "pytest tests", "pytest tests"),
        Usage(),
    ]
    assert talk.turn()[1:-2] == between


def test_each_prompt_is_a_new_process_and_the_usage_adds_up(tmp_path: Path) -> None:
    talk = sh(tmp_path, """echo 'gittasks-usage: {"tokens": 5}'; echo $$ >>pids""")
    first, pid = talk.turn(), talk.run.pid
    second = talk.turn()
    assert (first[1], second[1], pid) == (Usage(0.0, 5), Usage(0.0, 10), None)
    assert len({*(tmp_path / "tree" / "pids").read_text().split()}) == 2


@pytest.mark.parametrize("how", ["interrupt", "close", "terminate", "kill"])
def test_what_we_end_is_aborted(tmp_path: Path, how: str) -> None:
    talk = sh(tmp_path, "echo 'gittasks-activity: sleep'; sleep 60; exit 1")
    talk.run.prompt("Sleep.")
    talk.until_told(Activity)
    getattr(talk.run, how)()
    code = -9 if how == "kill" else -15
    assert talk.ended() == [Settled("aborted"), Exited(code)]


def test_killing_reaches_what_left_the_group(tmp_path: Path) -> None:
    what = spec(tmp_path, "command", "sh", "-c", "setsid sleep 60 & sleep 0.05")
    talk = Conversation(what)
    talk.turn()
    before = len(orphans.marked(what.env[MARK]))
    talk.run.kill()
    assert (before, orphans.marked(what.env[MARK])) == (1, [])


def test_a_program_that_is_not_there_is_an_error_that_stays(tmp_path: Path) -> None:
    told = Conversation(spec(tmp_path, "command", "no-such-agent")).turn()
    words = "The program no-such-agent cannot be started: No such file or directory."
    assert told == [Settled("error", words, is_retryable=False)]


def test_the_sandbox_stands_around_the_command(tmp_path: Path) -> None:
    what = spec(tmp_path, "command", "printenv", "INSIDE")
    talk = Conversation(what._replace(wrap=lambda argv: ("env", "INSIDE=yes", *argv)))
    talk.turn()
    assert talk.log.read_text() == "yes\n"


@pytest.mark.parametrize(
    ("command", "problems"),
    [
        ((), ("A `command` agent needs a command.",)),
        (("sh", "-c"), ()),
        (("no-such-agent",), ("There is no program no-such-agent here.",)),
        (("/no/such/agent",), ("There is no program /no/such/agent here.",)),
        (("tools/agent",), ()),
    ],
)
def test_a_program_that_cannot_be_there_is_a_problem(
    command: tuple[str, ...], problems: tuple[str, ...]
) -> None:
    assert probe("command", *command) == problems
