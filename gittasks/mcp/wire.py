"""The two streams: a JSON document on each line, and nothing else.

While they are served, the standard streams themselves lead nowhere, so that no child and no stray
`print` can get between the lines. When the input ends, what was asked is still answered: whoever
pipes some lines into the server gets their answers.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio
import anyio.to_thread
import mcp_types as types
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Callable

GRACE_SECONDS = 5.0
"""How long the end of the input waits for answers."""


class Pending:
    """The requests that were not answered yet."""

    def __init__(self) -> None:
        """Starts without any."""
        self._ids: set[str] = set()
        self._none = anyio.Event()

    def note(self, message: types.JSONRPCMessage) -> None:
        """Notes a request that came in, or that nobody wants its answer any more."""
        if isinstance(message, types.JSONRPCRequest):
            self._ids.add(json.dumps(message.id))
        elif isinstance(message, types.JSONRPCNotification):
            params = message.params or {}
            if message.method == "notifications/cancelled":
                self.answered(params.get("requestId"))

    def answered(self, request: Any) -> None:
        """Notes that a request has its answer."""
        self._ids.discard(json.dumps(request))
        if not self._ids:
            self._none.set()

    async def settle(self) -> None:
        """Waits until all have their answer, or long enough."""
        with anyio.move_on_after(GRACE_SECONDS):
            while self._ids:
                self._none = anyio.Event()
                await self._none.wait()


class Outgoing:
    """Where the SDK writes its lines: in plain ASCII, so that no reader takes one for two."""

    def __init__(self, file: int, pending: Pending) -> None:
        """Takes the descriptor."""
        self._file = file
        self._pending = pending
        self._lock = anyio.Lock()
        self._is_gone = False

    async def write(self, text: str) -> None:
        """Writes one document."""
        message = json.loads(text)
        await self.send(message)
        if "id" in message and "method" not in message:
            self._pending.answered(message["id"])

    async def flush(self) -> None:
        """Does nothing: what was written is gone already."""

    async def send(self, message: Any) -> None:
        """Writes one document; once nobody reads any more, that is nobody's loss."""
        line = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        async with self._lock:
            if not self._is_gone:
                await anyio.to_thread.run_sync(self._write, line, abandon_on_cancel=True)

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except BrokenPipeError:
            self._is_gone = True


class Incoming:
    """Where the SDK reads its lines; what is no message is answered here."""

    def __init__(
        self, file: BinaryIO, out: Outgoing, pending: Pending, ended: Callable[[], None]
    ) -> None:
        """Takes the file, and what to do when it ends."""
        self._file = file
        self._out = out
        self._pending = pending
        self._ended = ended
        self._limiter = anyio.CapacityLimiter(1)

    def __aiter__(self) -> Incoming:
        """Returns itself."""
        return self

    async def __anext__(self) -> str:
        """Returns the next line that is a message."""
        while True:
            line = await anyio.to_thread.run_sync(
                self._file.readline, abandon_on_cancel=True, limiter=self._limiter
            )
            if not line:
                self._ended()
                await self._pending.settle()
                raise StopAsyncIteration
            text = line.decode("utf-8", "replace")
            if not text.strip():
                continue
            try:
                message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
            except ValidationError as error:
                await self._out.send(_refused(text, error))
                continue
            self._pending.note(message)
            return text


def _refused(text: str, error: ValidationError) -> dict[str, Any]:
    """Returns what is said to a line that is no message."""
    code, words, request = types.PARSE_ERROR, "This line is not JSON", None
    if error.errors()[0]["type"] != "json_invalid":
        code, words = types.INVALID_REQUEST, "This is not a message of JSON-RPC 2.0"
        said = json.loads(text)
        given = said.get("id") if isinstance(said, dict) else None
        request = given if isinstance(given, str | int) else None
    return {"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": words}}


def claim_streams() -> tuple[BinaryIO, int]:
    """Returns stdin and stdout, and puts others in their places for everybody else."""
    import fcntl

    source, target = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(source, "rb"), target
