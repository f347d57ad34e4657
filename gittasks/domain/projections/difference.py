"""What differs between the worlds at two commits: tasks, fields, the inbox, who works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gittasks.domain.projections.persistent import Persistent
    from gittasks.domain.projections.table import World


class Difference(NamedTuple):
    """From one commit to another: what came, what closed, and for each task each field that differs.

    `changed` has the fields of tasks that were there before, as (before, after); `gone` are tasks
    that are only there on the other side, as when it goes back in time.
    """

    created: tuple[str, ...]
    gone: tuple[str, ...]
    closed: tuple[str, ...]
    changed: Mapping[str, Mapping[str, tuple[Any, Any]]]
    inbox_added: tuple[str, ...]
    inbox_cleared: tuple[str, ...]
    claimed: tuple[str, ...]
    unclaimed: tuple[str, ...]


def difference(before: World, after: World) -> Difference:
    """Returns what differs; what both have in common is not looked at."""
    created, gone, closed = [], [], []
    changed: dict[str, dict[str, tuple[Any, Any]]] = {}
    for task in after.graph.tasks.changed_since(before.graph.tasks):
        old, new = before.graph.get(task), after.graph.get(task)
        if new is None:
            gone.append(task)
            continue
        if not new.is_open and (old is None or old.is_open):
            closed.append(task)
        if old is None:
            created.append(task)
            continue
        changed[task] = {
            name: (was, now)
            for name, was, now in zip(old._fields, old, new, strict=True)
            if was != now
        }
    came, left = _keys(before.inbox.entries, after.inbox.entries)
    begun, ended = _keys(before.working.claims, after.working.claims)
    return Difference(tuple(created), tuple(gone), tuple(closed), changed, came, left, begun, ended)


def _keys(
    before: Persistent[Any], after: Persistent[Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the keys that are new, and those that are gone."""
    differing = tuple(after.changed_since(before))
    new = tuple(key for key in differing if before.get(key) is None)
    return new, tuple(key for key in differing if after.get(key) is None)
