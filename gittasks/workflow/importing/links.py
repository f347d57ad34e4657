"""Decides which items become tasks, and which of their links hold.

A link to something closed is over: it is not made, and kept as a word. A link to nothing known, or
one that would close a ring, is a fault of its row; whatever needs a row that is left out is left
out, too, because a task without one of its dependencies would start too early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.fields import DEPENDENCY_LIMIT, shown
from gittasks.workflow.importing.items import Fault, Item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gittasks.workflow.importing.items import Dump

_SHOWN_RING = 12


class Placed(NamedTuple):
    """An item that becomes a task, with the links that are made; the others are words."""

    item: Item
    needs: tuple[str, ...] = ()
    parent: str | None = None
    follows: str | None = None
    lost_needs: tuple[str, ...] = ()
    lost_parent: str | None = None
    lost_follows: str | None = None


class Plan(NamedTuple):
    """What to create, in the order of the source, and what happens to the rest; keys throughout."""

    new: Sequence[Placed]
    known: Sequence[Item]
    """What is in the ledger already."""
    over: Sequence[Item]
    """What is closed and was not asked for."""
    faults: Sequence[Fault]


class Rules(NamedTuple):
    """How to decide: what the ledger has, whether closed items come, whether bad links do harm."""

    known: Callable[[str], bool]
    """Tells whether the ledger has a task for a key."""
    closed: Callable[[str], bool]
    """Tells whether the ledger's task for a key is closed."""
    everything: bool = False
    drop_links: bool = False


class _Bad(NamedTuple):
    """A link that cannot be made, and why."""

    field: str
    name: str
    why: str


def plan(dump: Dump, rules: Rules) -> Plan:
    """Returns what becomes of the items of a dump."""
    faults = list(dump.faults)
    items = _by_key(dump.items, faults)
    names = {key.casefold(): key for key in items}
    refused = {fault.key.casefold() for fault in faults if fault.key is not None} - {*names}
    known, over, placed = [], [], {}
    bad: dict[str, list[_Bad]] = {}
    for item in items.values():
        if rules.known(item.key):
            known.append(item)
        elif item.closed and not rules.everything:
            over.append(item)
        else:
            placed[item.key], bad[item.key] = _place(item, items, names, refused, rules)
    _mark_rings(placed, bad)
    if rules.drop_links:
        placed = {key: _without(one, bad[key]) for key, one in placed.items()}
    else:
        _leave_out(placed, bad, faults)
    faults.sort(key=lambda fault: (fault.file, fault.row))
    return Plan(list(placed.values()), known, over, faults)


def _by_key(items: Sequence[Item], faults: list[Fault]) -> dict[str, Item]:
    found: dict[str, Item] = {}
    first: dict[str, Item] = {}
    for item in items:
        before = first.setdefault(item.key.casefold(), item)
        if before is item:
            found[item.key] = item
            continue
        where = before.file if before.file != item.file else f"line {before.row}"
        why = f"The id {shown(item.key)} stands in {where} already; give one of them another id."
        faults.append(Fault(item.file, item.row, item.key, why))
    return found


def _place(
    item: Item, items: Mapping[str, Item], names: Mapping[str, str], refused: set[str], rules: Rules
) -> tuple[Placed, list[_Bad]]:
    bad: list[_Bad] = []

    def target(field: str, name: str) -> str | None:
        """Returns the key that a link leads to; None where it is over or bad, which is noted."""
        key = names.get(name.casefold())
        if key == item.key:
            bad.append(_Bad(field, name, "It points at itself; remove the link."))
        elif key is not None:
            return key if _holds(field, item, items[key], rules) else None
        elif rules.known(name):
            return None if field == "parent" and rules.closed(name) else name
        elif name.casefold() in refused:
            bad.append(_Bad(field, name, f"It needs {shown(name)}, which has a fault itself."))
        elif not item.loose:
            why = f"There is no {shown(name)} here, nor was it imported before; correct the link."
            bad.append(_Bad(field, name, why))
        return None

    # Whatever a closed item needed is there.
    found = {name: target("needs", name) for name in item.needs if not item.closed}
    parent = target("parent", item.parent) if item.parent else None
    follows = target("follows", item.follows) if item.follows else None
    made = tuple(dict.fromkeys(key for key in found.values() if key is not None))
    if len(made) > DEPENDENCY_LIMIT:
        why = f"It needs more than {DEPENDENCY_LIMIT} others; group some of them below a parent."
        bad += [_Bad("needs", key, why) for key in made[DEPENDENCY_LIMIT:]]
    placed = Placed(
        item,
        made,
        parent,
        follows,
        tuple(name for name in item.needs if found.get(name) is None),
        item.parent if parent is None else None,
        item.follows if follows is None else None,
    )
    return placed, bad


def _holds(field: str, item: Item, other: Item, rules: Rules) -> bool:
    """Tells whether a link to another item of the source is made, or is over."""
    match field:
        case "needs":
            return not other.closed
        case "parent" if rules.known(other.key):
            return not rules.closed(other.key)
        case "parent":
            return not other.closed or item.closed
        case _:
            return not other.closed or rules.everything or rules.known(other.key)


def _without(placed: Placed, bad: Sequence[_Bad]) -> Placed:
    """Returns an item whose links in rings are words."""
    for one in bad:
        if one.field == "needs" and one.name in placed.needs:
            placed = placed._replace(
                needs=tuple(name for name in placed.needs if name != one.name),
                lost_needs=(*placed.lost_needs, one.name),
            )
        elif one.field == "parent" and one.name == placed.parent:
            placed = placed._replace(parent=None, lost_parent=one.name)
    return placed


def _leave_out(
    placed: dict[str, Placed], bad: Mapping[str, list[_Bad]], faults: list[Fault]
) -> None:
    """Takes out the rows with bad links, and then all that would need them."""
    users: dict[str, list[str]] = {}
    for key, one in placed.items():
        for other in _linked(one):
            users.setdefault(other, []).append(key)
    waiting = [
        (key, " ".join(dict.fromkeys(one.why for one in bad[key]))) for key in placed if bad[key]
    ]
    gone = {key for key, _ in waiting}
    while waiting:
        key, why = waiting.pop()
        item = placed.pop(key).item
        faults.append(Fault(item.file, item.row, key, why))
        for user in users.get(key, ()):
            if user not in gone:
                gone.add(user)
                waiting.append((user, f"It needs {shown(key)}, which has a fault itself."))


def _linked(placed: Placed) -> Iterator[str]:
    yield from placed.needs
    if placed.parent is not None:
        yield placed.parent
    if placed.follows is not None:
        yield placed.follows


# Rings: a parent waits for its children, too.


def _mark_rings(placed: Mapping[str, Placed], bad: Mapping[str, list[_Bad]]) -> None:
    _mark_parents(placed, bad)
    waits: dict[str, list[str]] = {
        key: [name for name in one.needs if name in placed] for key, one in placed.items()
    }
    for key, one in placed.items():
        # What a ledger allows comes from a ledger as it is.
        if one.parent not in waits or one.item.uid is not None:
            continue
        if not any(b.field == "parent" for b in bad[key]):
            waits[one.parent].append(key)
    for ring in _rings(waits):
        members = set(ring)
        told = ", ".join(map(shown, ring[:_SHOWN_RING])) + (
            ", …" if len(ring) > _SHOWN_RING else ""
        )
        for key in ring:
            for name in placed[key].needs:
                if name in members:
                    why = (
                        f"It waits for {shown(name)} in a ring of {told}, where a parent waits for"
                        " its children; remove one of the links."
                    )
                    bad[key].append(_Bad("needs", name, why))


def _mark_parents(placed: Mapping[str, Placed], bad: Mapping[str, list[_Bad]]) -> None:
    """Notes every item that stands below itself."""
    clear: set[str] = set()
    for start in placed:
        path: dict[str, None] = {}
        key: str | None = start
        while key is not None and key in placed and key not in clear and key not in path:
            path[key] = None
            key = placed[key].parent
        if key is not None and key in path:
            way = list(path)
            for one in way[way.index(key) :]:
                above = placed[one].parent
                assert above is not None
                why = f"It stands below {shown(above)}, and that below it; correct its parent."
                bad[one].append(_Bad("parent", above, why))
        clear.update(path)


def _rings(edges: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Returns the groups in which each can be reached from each other one (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    inside: set[str] = set()
    found = []
    for start in edges:
        if start in index:
            continue
        work = [(start, iter(edges[start]))]
        while work:
            key, rest = work[-1]
            if key not in index:
                index[key] = low[key] = len(index)
                stack.append(key)
                inside.add(key)
            for other in rest:
                if other not in index:
                    work.append((other, iter(edges[other])))
                    break
                if other in inside:
                    low[key] = min(low[key], index[other])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[key])
                if low[key] == index[key]:
                    at = _last(stack, key)
                    group, stack[at:] = stack[at:], []
                    inside.difference_update(group)
                    if len(group) > 1:
                        found.append(group)
    return found


def _last(stack: Sequence[str], key: str) -> int:
    at = len(stack) - 1
    while stack[at] != key:
        at -= 1
    return at
