"""The MCP Inspector on the real server, in each of its ways; run with `-m real`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import clients
from tests.support.cli import CHECKOUT, COMMAND, environment, tasks_inprocess
from tests.support.git import make_repository
from tests.support.mcp_clients import PERSON

pytestmark = pytest.mark.real


@pytest.fixture
def folder(home: Path) -> Path:
    made = make_repository(home / "repo")
    tasks_inprocess(made, "init", "-q", env=PERSON)
    tasks_inprocess(made, "new", "First", env=PERSON)
    return made


def inspect(folder: Path, era: str, *words: str) -> tuple[int, Any]:
    """Returns status and result of one request; skips where there is no Inspector."""
    installed = clients.folder()
    program = installed and installed / ".bin" / "mcp-inspector"
    if not program or not program.exists():
        pytest.skip("the MCP Inspector is not installed; see tests/install_clients.sh")
    server = folder.parent / "git-tasks"
    # It starts servers with little of its own environment.
    command = " ".join(f"'{word}'" for word in ("env", f"PYTHONPATH={CHECKOUT}", *COMMAND))
    server.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    server.chmod(0o755)
    options = ("--cli", "-q", "--format", "json", "--protocol-era", era)
    done = subprocess.run(
        [program, *options, server, "mcp", *words],
        cwd=folder,
        env=environment({
            **PERSON, "PATH": clients.search_path(), "MCP_INSPECTOR_SECRET_STORE": "memory",
            "HOME": os.environ["HOME"],
        }),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout or b"null")


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_the_inspector_finds_nothing_wrong(folder: Path, era: str) -> None:
    status, found = inspect(folder, era, "--method", "tools/list", "--strict")
    assert (status, len(found["result"]["tools"])) == (0, 20)
    call = ("--method", "tools/call", "--tool-name", "task_show")
    status, found = inspect(folder, era, *call, "--tool-arg", "id=000001")
    assert (status, found["result"]["structuredContent"]["data"]["title"]) == (0, "First")
    status, found = inspect(folder, era, *call, "--tool-args-json", '{"id": "77"}')
    assert (status, found["result"]["isError"]) == (5, True)
    status, found = inspect(folder, era, "--method", "resources/read", "--uri", "gittasks://inbox")
    assert (status, found["result"]["contents"][0]["uri"]) == (0, "gittasks://inbox")
