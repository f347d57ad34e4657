"""The agent programs we know how to speak with: one module each, and the table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gittasks.agents.base import Adapter


def _claude() -> Adapter:
    from gittasks.agents import claude

    return claude


def _codex() -> Adapter:
    from gittasks.agents import codex

    return codex


def _command() -> Adapter:
    from gittasks.agents import command

    return command


def _pi() -> Adapter:
    from gittasks.agents import pi

    return pi


def _scripted() -> Adapter:
    from gittasks.agents import scripted

    return scripted


_LOADERS: dict[str, Callable[[], Adapter]] = {
    "claude": _claude,
    "codex": _codex,
    "command": _command,
    "pi": _pi,
    "scripted": _scripted,
}


class _Adapters(Mapping[str, "Adapter"]):
    """The adapters by the type that the pool file names; each is loaded when it is asked for."""

    def __getitem__(self, name: str) -> Adapter:
        return _LOADERS[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(_LOADERS)

    def __len__(self) -> int:
        return len(_LOADERS)


ADAPTERS: Mapping[str, Adapter] = _Adapters()
"""Every kind of agent."""
