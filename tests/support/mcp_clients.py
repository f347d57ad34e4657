"""Two clients of the server: the official one, and hand-written lines."""

from __future__ import annotations

import json
import os
import queue
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from tests.support.cli import COMMAND, environment

SECONDS = 30
PERSON = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


class Manager:
    """A manager who has nothing but the tools and resources of one server."""

    def __init__(self, portal: BlockingPortal, client: Client, told: queue.Queue[str]) -> None:
        """Takes a connected client, and where the names of changed resources arrive."""
        self._portal = portal
        self.client = client
        self.told = told

    def run(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Returns what a method of the client returns."""

        async def called() -> Any:
            return await call(*args, **options)

        return self._portal.call(called)

    def result(self, tool: str, **given: Any) -> types.CallToolResult:
        """Returns the result of a tool as it came."""
        found = self.run(self.client.call_tool, tool, given)
        assert isinstance(found, types.CallToolResult)
        return found

    def call(self, tool: str, **given: Any) -> dict[str, Any]:
        """Returns the envelope of a tool that does what is asked."""
        found = self.result(tool, **given)
        assert not found.is_error, found
        return envelope(found)

    def data(self, tool: str, **given: Any) -> Any:
        """Returns the data of a tool that does what is asked."""
        return self.call(tool, **given)["data"]

    def refused(self, tool: str, **given: Any) -> dict[str, Any]:
        """Returns the error of a tool that refuses."""
        found = self.result(tool, **given)
        assert found.is_error, found
        error: dict[str, Any] = envelope(found)["error"]
        return error

    def read(self, name: str) -> dict[str, Any]:
        """Returns the envelope of a resource."""
        found = self.run(self.client.read_resource, f"gittasks://{name}", cache_mode="bypass")
        (contents,) = found.contents
        read: dict[str, Any] = json.loads(contents.text)
        return read

    def unread(self, name: str) -> tuple[int, str]:
        """Returns code and words of a resource that cannot be read."""
        try:
            self.read(name)
        except MCPError as error:
            return error.error.code, error.error.message
        raise AssertionError(f"{name} can be read.")


def envelope(result: types.CallToolResult) -> dict[str, Any]:
    """Returns what a tool answered, which stands in its text and beside it."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    found: dict[str, Any] = json.loads(content.text)
    assert found == result.structured_content
    return found


@contextmanager
def managing(
    folder: Path, *words: str, mode: str = "auto", env: Mapping[str, str | None] | None = None
) -> Iterator[Manager]:
    """Connects the official client to a server that runs in a folder."""
    told: queue.Queue[str] = queue.Queue()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            told.put(message.params.uri)

    server = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], "mcp", *words],
        cwd=folder,
        env=environment({**PERSON, **(env or {})}),
    )
    with (
        start_blocking_portal() as portal,
        open(os.devnull, "w", encoding="utf-8") as nowhere,
    ):
        client = Client(
            stdio_client(server, errlog=nowhere), mode=mode, message_handler=hear
        )  # fmt: skip
        with portal.wrap_async_context_manager(client):
            yield Manager(portal, client, told)


class Wire:
    """One server to which lines are written by hand."""

    def __init__(
        self, folder: Path, *words: str, env: Mapping[str, str | None] | None = None
    ) -> None:
        """Starts it."""
        self.process = subprocess.Popen(
            [*COMMAND, "mcp", *words],
            cwd=folder,
            env=environment({**PERSON, **(env or {})}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def write(self, *messages: Any) -> None:
        """Writes one line for each; bytes go as they are."""
        assert self.process.stdin is not None
        for one in messages:
            line = one if isinstance(one, bytes) else json.dumps(one).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Returns the next line."""
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def ask(self, number: Any, method: str, params: Any = None) -> dict[str, Any]:
        """Returns the answer to one request; nothing else may come before it."""
        self.write(request(number, method, params))
        return self.read()

    def begin(self, revision: str = "2025-11-25") -> dict[str, Any]:
        """Shakes hands and returns the answer."""
        who = {"name": "test", "version": "1"}
        given = {"protocolVersion": revision, "capabilities": {}, "clientInfo": who}
        answer = self.ask(0, "initialize", given)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """Ends its input; returns the status, what it still says, and its talk."""
        out, err = self.process.communicate(timeout=SECONDS)
        lines = [json.loads(line) for line in out.splitlines()]
        return self.process.returncode, lines, err.decode()

    def __enter__(self) -> Wire:
        """Returns itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves no process behind."""
        self.process.kill()
        self.process.communicate()


def request(number: Any, method: str, params: Any = None) -> dict[str, Any]:
    """Returns a request."""
    asked = {"jsonrpc": "2.0", "id": number, "method": method}
    return asked if params is None else {**asked, "params": params}


def tool(number: Any, name: str, **given: Any) -> dict[str, Any]:
    """Returns the request that calls a tool."""
    return request(number, "tools/call", {"name": name, "arguments": given})
