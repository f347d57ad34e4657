"""Warns about secrets that were just written: nothing written into a ledger can be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gittasks.domain.events import Event

_FREE = ("title", "labels", "checks", "findings", "remark", "reason", "held_reason", "set",
         "artifacts", "extra")  # fmt: skip
"""The fields of changes that hold what somebody typed."""


def warnings(events: Iterable[Event]) -> tuple[str, ...]:
    """Returns a sentence for each task into which something like a secret was written."""
    found: dict[str, None] = {}
    for event in events:
        if any(map(_holds_secret, _texts(event))):
            found[event.task or ""] = None
    return tuple(
        f"What you wrote into {task or 'the ledger'} looks like a secret; it is in the history"
        " now, so change the secret itself."
        for task in found
    )


def _texts(event: Event) -> Iterator[str]:
    yield event.text
    if event.body:
        yield event.body.decode("utf-8", "replace")
    for name, value in zip(event.change._fields, event.change, strict=True):
        if value and name in _FREE:
            yield from _strings(value)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _strings(item)


def _holds_secret(text: str) -> bool:
    if not text:
        return False
    from gittasks.domain.redact import holds_secret

    return holds_secret(text)
