"""Tells those who follow a resource when it says something else.

The branch of the ledger is looked at four times a second, which reads one small file; the
resources are read again when it has moved, and now and then, for what does not depend on it alone.
While nobody follows or waits, nothing is looked at. In a clone that shares, what others did is
fetched meanwhile.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from gittasks.mcp import resources
from gittasks.workflow import tip

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

    from gittasks.mcp.desk import Desk
    from gittasks.workflow.project import Project

TICK = 0.25
"""How many seconds pass between two looks at the branch."""
AFRESH = 2.0
"""How many seconds an answer may stand that depends on more than the branch."""


class Pulse:
    """Beats whenever the ledger may have moved, and every few seconds, while somebody listens."""

    def __init__(self, desk: Desk, in_lane: Callable[..., Awaitable[Any]]) -> None:
        """Takes how to do something beside the event loop."""
        self._desk = desk
        self._in_lane = in_lane
        self._listeners = 0
        self._awake = anyio.Event()
        self._beat = anyio.Event()

    @contextmanager
    def wanted(self) -> Iterator[None]:
        """Keeps it beating."""
        self._listeners += 1
        self._awake.set()
        try:
            yield
        finally:
            self._listeners -= 1

    async def next(self) -> None:
        """Waits for the next beat."""
        await self._beat.wait()

    def beat(self) -> None:
        """Wakes everybody who waits."""
        beat, self._beat = self._beat, anyio.Event()
        beat.set()

    async def run(self) -> None:
        """Beats until it is cancelled."""
        seen = None
        while True:
            await self._until_wanted()
            due = time.monotonic() + AFRESH
            project = await self._in_lane("read", self._opened)
            while project is None or (found := tip.mark(project)) == seen:
                if time.monotonic() >= due:
                    break
                await anyio.sleep(TICK)
            else:
                seen = found
            self.beat()

    async def fetch(self) -> None:
        """Takes over what others did, now and then, until it is cancelled."""
        while True:
            await self._until_wanted()
            pause = await self._in_lane("verb", self._fetched)
            await anyio.sleep(pause)

    async def _until_wanted(self) -> None:
        while not self._listeners:
            if self._awake.is_set():
                self._awake = anyio.Event()
            await self._awake.wait()

    def _opened(self) -> Project | None:
        try:
            project = self._desk.open()
            # Once that has worked, it works without git.
            tip.mark(project)
        except Exception:  # noqa: BLE001 - it is told to whoever asks; here it only is no ledger
            return None
        return project

    def _fetched(self) -> float:
        """Fetches, and returns how long to leave it at that."""
        try:
            project = self._desk.open()
            try:
                return tip.fetch(project)
            finally:
                project.close()
        except Exception:  # noqa: BLE001 - what is here can be followed all the same
            return tip.FETCH_INTERVAL


class Changes:
    """Those who follow resources, in either way that the protocol has for it."""

    def __init__(self, desk: Desk, pulse: Pulse, in_lane: Callable[..., Awaitable[Any]]) -> None:
        """Starts without any."""
        self._desk = desk
        self._pulse = pulse
        self._in_lane = in_lane
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus)
        self._sessions: dict[str, ServerSession] = {}
        self._listening: dict[str, int] = {}
        self._said: dict[str, str] = {}
        self._awake = anyio.Event()

    async def subscribe(self, session: ServerSession, uri: str) -> None:
        """Lets a client follow a resource until it unsubscribes."""
        await self._remember((uri,))
        self._sessions[uri] = session
        self._awake.set()

    def unsubscribe(self, uri: str) -> None:
        """Lets a client follow it no longer."""
        self._sessions.pop(uri, None)

    async def listen(
        self,
        context: ServerRequestContext[Any, Any],
        params: types.SubscriptionsListenRequestParams,
    ) -> types.SubscriptionsListenResult:
        """Answers with a stream of what changes."""
        wanted = params.notifications.resource_subscriptions or ()
        uris = [uri for uri in dict.fromkeys(wanted) if resources.is_known(uri)]
        await self._remember(uris)
        for uri in uris:
            self._listening[uri] = self._listening.get(uri, 0) + 1
        self._awake.set()
        try:
            # From here to where it hears of changes nothing else can run.
            return await self._streams(context, params)
        finally:
            for uri in uris:
                self._listening[uri] -= 1

    def close(self) -> None:
        """Ends every stream in good order."""
        self._streams.close()

    async def run(self) -> None:
        """Tells of changes until it is cancelled."""
        while True:
            if not self._followed():
                self._awake = anyio.Event()
                await self._awake.wait()
            with self._pulse.wanted():
                await self._pulse.next()
                for uri in self._followed():
                    await self._tell_if_changed(uri)

    def _followed(self) -> list[str]:
        listening = (uri for uri, count in self._listening.items() if count)
        return list(dict.fromkeys((*self._sessions, *listening)))

    async def _remember(self, uris: Sequence[str]) -> None:
        for uri in uris:
            if uri not in self._followed():
                self._said[uri] = await self._content(uri)

    async def _tell_if_changed(self, uri: str) -> None:
        found = await self._content(uri)
        if found == self._said.get(uri):
            return
        self._said[uri] = found
        await self._bus.publish(ResourceUpdated(uri=uri))
        if uri in self._sessions:
            await self._sessions[uri].send_resource_updated(uri)

    async def _content(self, uri: str) -> str:
        """Returns what a resource says, whatever commit it is true for."""
        found = await self._in_lane("read", resources.read, self._desk, uri)
        return json.dumps({**(found or {}), "ledger": None, "notes": None})
