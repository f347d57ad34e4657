"""The server: what the SDK is told of the tools and resources, and the life of the process."""

from __future__ import annotations

import json
import re
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from gittasks import __version__
from gittasks.mcp import resources, tools, waiting, wire
from gittasks.mcp.arguments import Arguments
from gittasks.mcp.changes import Changes, Pulse
from gittasks.mcp.desk import Desk, refusal_of
from gittasks.workflow import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.context import ServerRequestContext

    from gittasks.mcp.tools import Tool
    from gittasks.workflow.project import Options

Result = TypeVar("Result")

_NAME = "gittasks"
_JSON = "application/json"
_NOT_FOUND = 4
_STEERING = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udfff]"
)
_TOOLS = {tool.name: tool for tool in tools.TOOLS}


def serve(options: Options, environ: Mapping[str, str]) -> None:
    """Serves one client on stdin and stdout until its input ends."""
    import gc
    import signal

    # Unlike other commands this one lives for hours.
    gc.enable()
    # A thread that waits for the next line cannot be asked to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(_Session(Desk(options, environ)).run)


class Lanes:
    """What runs beside the event loop: one question, one change and one landing at a time."""

    def __init__(self) -> None:
        """Opens the lanes."""
        self._limiters = {name: anyio.CapacityLimiter(1) for name in ("read", "verb", "submit")}
        # Whoever gives up waiting leaves a thread behind that still works.
        self._locks = {name: threading.Lock() for name in self._limiters}

    async def run(self, lane: str, call: Callable[..., Result], *args: Any) -> Result:
        """Returns what a call returns."""

        def locked() -> Result:
            with self._locks[lane]:
                return call(*args)

        limiter = self._limiters[lane]
        return await anyio.to_thread.run_sync(locked, abandon_on_cancel=True, limiter=limiter)


class _Session:
    """One client, from its first line to its last."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._ended = anyio.Event()
        self._in_lane = Lanes().run
        self._pulse = Pulse(desk, self._in_lane)
        self._changes = Changes(desk, self._pulse, self._in_lane)

    async def run(self) -> None:
        """Serves until the input ends."""
        server: Server[Any] = Server(
            _NAME,
            version=__version__,
            title="git tasks",
            instructions=tools.INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
        )
        source, target = wire.claim_streams()
        pending = wire.Pending()
        out = wire.Outgoing(target, pending)
        lines = wire.Incoming(source, out, pending, self._end)
        async with anyio.create_task_group() as group:
            for task in (self._pulse.run, self._pulse.fetch, self._changes.run):
                group.start_soon(task)
            streams = cast("Any", lines), cast("Any", out)
            async with stdio_server(*streams) as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
            group.cancel_scope.cancel()

    def _end(self) -> None:
        """Lets go whoever waits for something that may never come."""
        self._ended.set()
        self._changes.close()
        self._pulse.beat()

    # Tools.

    async def _list_tools(
        self, _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in tools.TOOLS])

    async def _call_tool(
        self, _context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = _TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r}.")
        given = Arguments(params.arguments or {})
        if tool.kind == "wait":
            found = await self._wait(given)
        elif tool.kind == "read":
            found = await self._in_lane("read", self._desk.ask, partial(_called, tool, given))
        else:
            question = partial(_called, tool, given)
            found = await self._in_lane(tool.kind, self._desk.manage, question)
        text = _text(found)
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=json.loads(text),
            is_error="error" in found,
        )

    async def _wait(self, given: Arguments) -> dict[str, Any]:
        try:
            longest = min(given.number("timeout", tools.WAIT_SECONDS), tools.LONGEST_WAIT)
            since = given.text_or_none("since")
        except Exception as error:  # noqa: BLE001 - wrong arguments are told like anywhere else
            return answers.error_envelope(answers.as_error(refusal_of(error)), None)
        known = await self._in_lane("read", waiting.known_rows, self._desk, since)
        if isinstance(known, dict):
            return known
        deadline = anyio.current_time() + longest
        with self._pulse.wanted():
            while True:
                is_last = anyio.current_time() >= deadline or self._ended.is_set()
                ask = partial(waiting.news, self._desk, known, is_last=is_last)
                found = await self._in_lane("read", ask)
                if found is not None:
                    return found
                if not self._ended.is_set():
                    with anyio.move_on_at(deadline):
                        await self._pulse.next()

    # Resources.

    async def _list_resources(
        self, _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=one.uri, name=one.name, description=one.description, mime_type=_JSON
                )
                for one in resources.RESOURCES
            ]
        )

    async def _list_templates(
        self, _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        task = types.ResourceTemplate(
            uri_template=resources.TEMPLATE,
            name="task",
            description="everything about one task",
            mime_type=_JSON,
        )
        return types.ListResourceTemplatesResult(resource_templates=[task])

    async def _read_resource(
        self, _context: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        found = await self._in_lane("read", resources.read, self._desk, uri)
        if found is None:
            raise _no_resource(uri)
        if "error" in found:
            error = found["error"]
            code = types.INVALID_PARAMS if error["code"] == _NOT_FOUND else types.INTERNAL_ERROR
            raise MCPError(code, _clean(error["message"]), {"uri": uri, **json.loads(_text(error))})
        text = _text(found)
        contents = types.TextResourceContents(uri=uri, mime_type=_JSON, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _subscribe(
        self, context: ServerRequestContext[Any, Any], params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        uri = str(params.uri)
        if not resources.is_known(uri):
            raise _no_resource(uri)
        await self._changes.subscribe(context.session, uri)
        return types.EmptyResult()

    async def _unsubscribe(
        self, _context: ServerRequestContext[Any, Any], params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._changes.unsubscribe(str(params.uri))
        return types.EmptyResult()

    async def _listen(
        self,
        context: ServerRequestContext[Any, Any],
        params: types.SubscriptionsListenRequestParams,
    ) -> types.SubscriptionsListenResult:
        return await self._changes.listen(context, params)


def _called(tool: Tool, given: Arguments, project: Any) -> Any:
    return tool.call(project, given)


def _described(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=True) if tool.kind in ("read", "wait") else None
    return types.Tool(
        name=tool.name, description=tool.description, input_schema=tool.schema, annotations=hints
    )


def _no_resource(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"There is no resource {uri!r}.", {"uri": uri})


def _text(data: Any) -> str:
    """Returns JSON in which nothing can steer a terminal, and that every parser takes."""
    return _STEERING.sub(_spelled, json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def _clean(text: str) -> str:
    return cast("str", json.loads(_text(text)))


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    # Half of a character is none: the bytes that it stands for are no text.
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"
