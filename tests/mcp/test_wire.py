"""The wire itself, in lines that are written by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import COMMAND, environment, tasks, tasks_inprocess
from tests.support.git import make_repository
from tests.support.mcp_clients import PERSON, SECONDS, Wire, tool

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_repository(tmp_path_factory.mktemp("wire") / "repo")
    tasks_inprocess(made, "init", "-q", env=PERSON)
    tasks_inprocess(made, "new", "First", env=PERSON)
    return made


@pytest.fixture(scope="module")
def wire(folder: Path) -> Iterator[Wire]:
    with Wire(folder) as started:
        started.begin()
        yield started


def about(revision: str = MODERN) -> dict[str, Any]:
    """Returns what a request of the revisions without a handshake carries."""
    prefix = "io.modelcontextprotocol/"
    return {
        "_meta": {
            f"{prefix}protocolVersion": revision,
            f"{prefix}clientInfo": {"name": "test", "version": "1"},
            f"{prefix}clientCapabilities": {},
        }
    }


def shown(answer: dict[str, Any]) -> Any:
    return answer["result"]["structuredContent"]["data"]


# ------------------------------------------------------------------------------------ revisions


def test_every_revision_is_served_until_the_server_is_asked_to_end(folder: Path) -> None:
    with ExitStack() as stack:
        wires = {one: stack.enter_context(Wire(folder)) for one in (*HANDSHAKES, "2099-01-01")}
        modern = stack.enter_context(Wire(folder))
        agreed = {one: each.begin(one)["result"]["protocolVersion"] for one, each in wires.items()}
        assert agreed == {**{one: one for one in HANDSHAKES}, "2099-01-01": "2025-11-25"}
        for each in wires.values():
            each.write(tool("call", "task_show", id=1))
            answer = each.read()
            assert json.loads(answer["result"]["content"][0]["text"])["data"]["title"] == "First"
        found = modern.ask(1, "server/discover", about())["result"]
        assert found["supportedVersions"] == [MODERN]
        call = modern.ask(2, "tools/call", {**about(), "name": "inbox"})["result"]
        assert (call["resultType"], call["structuredContent"]["kind"]) == ("complete", "inbox")
        refusal = modern.ask(3, "tools/list", about("2031-01-01"))["error"]
        assert (refusal["code"], refusal["data"]["supported"]) == (-32022, [MODERN])
        for number, each in ((signal.SIGTERM, modern), (signal.SIGINT, wires[HANDSHAKES[0]])):
            each.process.send_signal(number)
            assert each.process.wait(5) == -number


# ---------------------------------------------------------------------------------------- lines


def test_ids_come_back_as_they_were_sent(wire: Wire) -> None:
    for number in (7, "7", "a b", "\u00e9", 0):
        answer = wire.ask(number, "ping")
        assert answer == {"jsonrpc": "2.0", "id": number, "result": {}}


def test_a_notification_has_no_answer(wire: Wire) -> None:
    wire.write({"jsonrpc": "2.0", "method": "notifications/nothing"})
    wire.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
    assert wire.ask("next", "ping")["id"] == "next"


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (b"{", None, -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', None, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud83d"}}', None, -32700),
        (b"[]", None, -32600),
        (b"42", None, -32600),
        (b'{"id": 5}', 5, -32600),
    ],
)
def test_a_line_that_is_no_message_is_answered_and_forgotten(
    wire: Wire, line: bytes, number: int | None, code: int
) -> None:
    wire.write(b"", line)
    answer = wire.read()
    assert (answer["id"], answer["error"]["code"]) == (number, code)
    assert wire.ask("next", "ping")["id"] == "next"


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("nothing/here", {}, -32601),
        ("prompts/list", {}, -32601),
        ("tools/call", {"name": "nothing"}, -32602),
        ("tools/call", {"name": "inbox", "arguments": 3}, -32602),
        ("resources/read", {"uri": "gittasks://nothing"}, -32602),
        ("resources/read", {"uri": "file:///etc/passwd"}, -32602),
        ("resources/read", {}, -32602),
    ],
)
def test_what_is_not_there_has_a_code(
    wire: Wire, method: str, params: dict[str, Any], code: int
) -> None:
    assert wire.ask(1, method, params)["error"]["code"] == code


def test_odd_letters_and_long_lines_come_through(wire: Wire) -> None:
    title = "\u202eolleh \U0001f600 caf\u00e9"
    body = "x" * 1_000_000
    wire.write(tool(1, "task_create", title=title, body=body))
    assert shown(wire.read())["title"] == title
    wire.write(tool(2, "task_create", title="\x00\u2028"))
    assert wire.read()["result"]["isError"] is True
    assert wire.ask(3, "ping")["id"] == 3


def test_twenty_requests_at_once_are_all_answered(wire: Wire) -> None:
    asked = [tool(n, "task_create", title=f"Task {n}") for n in range(10)]
    asked += [tool(n, "inbox") for n in range(10, 20)]
    wire.write(*asked)
    answers = {answer["id"]: answer for answer in (wire.read() for _ in asked)}
    assert sorted(answers) == list(range(20))
    ids = {shown(answers[n])["id"] for n in range(10)}
    assert len(ids) == 10


def test_a_wait_that_is_cancelled_is_not_answered(wire: Wire) -> None:
    wire.write(tool("wait", "inbox_wait", timeout=60))
    params = {"requestId": "wait"}
    wire.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    assert wire.ask("next", "ping")["id"] == "next"


# ------------------------------------------------------------------------------------- the end


def test_the_end_of_the_input_leaves_nothing_unanswered(folder: Path, tmp_path: Path) -> None:
    real = os.environ["PATH"]
    git = tmp_path / "git"
    git.write_text(f'#!/bin/sh\necho noise >&2\nPATH={real} exec git "$@"\n', encoding="utf-8")
    git.chmod(0o755)
    with Wire(folder, env={"PATH": f"{tmp_path}:{real}"}) as wire:
        wire.begin()
        wire.write(tool(1, "task_show", id="1"), tool(2, "inbox_wait", timeout=600))
        begun = time.monotonic()
        status, lines, err = wire.end()
        assert time.monotonic() - begun < 5
    assert (status, err) == (0, "")
    answers = {line["id"]: shown(line) for line in lines}
    assert answers[1]["title"] == "First"
    assert answers[2] == []


def test_without_the_sdk_it_says_how_to_get_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys; sys.modules['mcp_types'] = sys.modules['mcp'] = None", encoding="utf-8"
    )
    path = f"{tmp_path}:{environment()['PYTHONPATH']}"
    found = tasks(folder, "mcp", env={"PYTHONPATH": path}, check=1)
    assert found.out == ""
    assert found.err.splitlines()[1] == "hint: Install it with `pip install 'gittasks[mcp]'`."


def test_no_other_command_pays_for_it(folder: Path) -> None:
    script = (
        "import sys, gittasks.cli.main as m; sys.argv = ['x', 'inbox']\n"
        "try: m.main()\nexcept SystemExit: print(*(n for n in sys.modules if n in ('mcp', 'anyio')))"
    )
    done = subprocess.run(
        [*COMMAND[:2], "-c", script], cwd=folder, env=environment(), capture_output=True,
        encoding="utf-8", timeout=SECONDS, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == ""
