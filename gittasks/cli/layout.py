"""Where the boxes of a graph stand: layers from left to right, an edge only ever to the right.

What is connected is laid out together, and the parts are set in rows like words on a page. An edge
that closes a ring is turned round for the layout. Long edges pass through places of their own in
the layers between, so that they run between the boxes. The same graph always looks the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BOX_WIDTH = 240
BOX_HEIGHT = 44
_COLUMN_GAP = 56
_ROW_GAP = 14
_THIN = 6
_ROWS = 24
"""How many boxes of a layer stand in one column, before the next column begins."""
_SWEEPS = 4
_PAGE = 1.5
"""How much wider than high the whole should be."""
_DETOURS = 4
"""How many places for long edges there may be for each box."""

Point = tuple[int, int]


class Layout(NamedTuple):
    """The top left corner of each box, the points of each edge, and the size of the whole."""

    boxes: dict[str, Point]
    edges: dict[tuple[str, str], tuple[Point, ...]]
    width: int
    height: int


def layout(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> Layout:
    """Returns the places of boxes and edges; an edge from a box to itself has none."""
    pairs = [pair for pair in dict.fromkeys(edges) if pair[0] != pair[1]]
    parts = [_part(members, inner) for members, inner in _parts(names, pairs)]
    return _paged(parts)


def _parts(
    names: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> list[tuple[list[str], list[tuple[str, str]]]]:
    """Returns what is connected, the boxes that stand alone last."""
    beside: dict[str, list[str]] = {name: [] for name in names}
    for one, other in pairs:
        beside[one].append(other)
        beside[other].append(one)
    part_of: dict[str, int] = {}
    members: list[list[str]] = []
    for name in names:
        if name in part_of:
            continue
        stack = [name]
        part_of[name] = len(members)
        found = []
        while stack:
            here = stack.pop()
            found.append(here)
            for other in beside[here]:
                if other not in part_of:
                    part_of[other] = len(members)
                    stack.append(other)
        members.append(sorted(found))
    inner: list[list[tuple[str, str]]] = [[] for _ in members]
    for pair in pairs:
        inner[part_of[pair[0]]].append(pair)
    return sorted(zip(members, inner, strict=True), key=lambda part: len(part[0]) == 1)


def _part(members: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Layout:
    turned = _turned(members, pairs)
    right: dict[str, dict[str, None]] = {name: {} for name in members}
    for one, other in pairs:
        begin, end = (other, one) if (one, other) in turned else (one, other)
        right[begin][end] = None
    layer = _layers(members, right)
    routes = _routes(right, layer, _DETOURS * len(members))
    rows = _ordered(layer, routes)
    places, width, height = _places(rows, set(members))
    boxes = {name: places[name] for name in members}
    edges = {}
    for pair in pairs:
        is_turned = pair in turned
        points = _points(routes[pair[::-1] if is_turned else pair], places)
        edges[pair] = points[::-1] if is_turned else points
    return Layout(boxes, edges, width, height)


def _turned(members: Sequence[str], pairs: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Returns edges without which there is no ring."""
    following: dict[str, list[str]] = {name: [] for name in members}
    for one, other in pairs:
        following[one].append(other)
    turned: set[tuple[str, str]] = set()
    done: set[str] = set()
    for start in members:
        open_: dict[str, None] = {}
        stack = [(start, False)]
        while stack:
            here, is_left = stack.pop()
            if is_left:
                del open_[here]
                done.add(here)
                continue
            if here in done or here in open_:
                continue
            open_[here] = None
            stack.append((here, True))
            for other in following[here]:
                if other in open_:
                    turned.add((here, other))
                elif other not in done:
                    stack.append((other, False))
    return turned


def _layers(members: Sequence[str], right: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Returns the layer of each box: behind all that point at it, and not farther than needed."""
    waits = dict.fromkeys(members, 0)
    for others in right.values():
        for other in others:
            waits[other] += 1
    firsts = [name for name in members if not waits[name]]
    layer = dict.fromkeys(members, 0)
    order = list(firsts)
    for here in order:
        for other in right[here]:
            layer[other] = max(layer[other], layer[here] + 1)
            waits[other] -= 1
            if not waits[other]:
                order.append(other)
    for name in firsts:
        if right[name]:
            layer[name] = min(layer[other] for other in right[name]) - 1
    return layer


def _routes(
    right: Mapping[str, Iterable[str]], layer: dict[str, int], most: int
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Returns the stops of each edge; those on the way get a layer, too, while there are few."""
    routes = {}
    made = 0
    for one, others in right.items():
        for other in others:
            stops: tuple[str, ...] = ()
            between = range(layer[one] + 1, layer[other])
            if made + len(between) <= most:
                stops = tuple(f"{one} {other} {at}" for at in between)
                layer.update(zip(stops, between, strict=True))
                made += len(stops)
            routes[one, other] = (one, *stops, other)
    return routes


def _ordered(
    layer: Mapping[str, int], routes: Mapping[tuple[str, str], Sequence[str]]
) -> list[list[str]]:
    """Returns the layers, each in an order in which few edges cross."""
    rows: list[list[str]] = [[] for _ in range(max(layer.values()) + 1)]
    for name in sorted(layer):
        rows[layer[name]].append(name)
    before: dict[str, list[str]] = {name: [] for name in layer}
    behind: dict[str, list[str]] = {name: [] for name in layer}
    for stops in routes.values():
        for one, other in zip(stops, stops[1:], strict=False):
            behind[one].append(other)
            before[other].append(one)
    place = {name: at for row in rows for at, name in enumerate(row)}
    for sweep in range(_SWEEPS):
        forward = not sweep % 2
        beside = before if forward else behind
        for row in rows if forward else reversed(rows):
            wish = {
                name: sum(place[other] for other in beside[name]) / len(beside[name])
                if beside[name]
                else place[name]
                for name in row
            }
            row.sort(key=lambda name: (wish[name], name))
            place.update((name, at) for at, name in enumerate(row))
    return rows


def _places(rows: Sequence[Sequence[str]], boxes: set[str]) -> tuple[dict[str, Point], int, int]:
    """Returns the places, with the size of the whole; a layer of many is broken into columns."""
    columns: list[list[tuple[str, int]]] = []
    for row in rows:
        for at in range(0, len(row), _ROWS):
            column = []
            height = 0
            for name in row[at : at + _ROWS]:
                column.append((name, height))
                height += _ROW_GAP + (BOX_HEIGHT if name in boxes else _THIN)
            columns.append([*column, ("", height - _ROW_GAP)])
    tallest = max(column[-1][1] for column in columns)
    places: dict[str, Point] = {}
    x = 0
    for column in columns:
        down = (tallest - column[-1][1]) // 2
        for name, y in column[:-1]:
            places[name] = (x, y + down)
        x += BOX_WIDTH + _COLUMN_GAP
    return places, x - _COLUMN_GAP, tallest


def _points(stops: Sequence[str], places: Mapping[str, Point]) -> tuple[Point, ...]:
    """Returns the points of an edge, from the right of one box to the left of another."""
    first, last = places[stops[0]], places[stops[-1]]
    points = [(first[0] + BOX_WIDTH, first[1] + BOX_HEIGHT // 2)]
    for stop in stops[1:-1]:
        x, y = places[stop]
        points += [(x, y + _THIN // 2), (x + BOX_WIDTH, y + _THIN // 2)]
    return (*points, (last[0], last[1] + BOX_HEIGHT // 2))


def _paged(parts: Sequence[Layout]) -> Layout:
    """Returns the parts set in rows, each row as high as its highest part."""
    area = sum((part.width + _COLUMN_GAP) * (part.height + 2 * _ROW_GAP) for part in parts)
    room = max([int((area * _PAGE) ** 0.5), *(part.width for part in parts)], default=0)
    boxes: dict[str, Point] = {}
    edges: dict[tuple[str, str], tuple[Point, ...]] = {}
    x = y = height = width = 0
    for part in parts:
        if x and x + part.width > room:
            x, y, height = 0, y + height + 2 * _ROW_GAP, 0
        for name, (left, top) in part.boxes.items():
            boxes[name] = (x + left, y + top)
        for pair, points in part.edges.items():
            edges[pair] = tuple((x + left, y + top) for left, top in points)
        width = max(width, x + part.width)
        height = max(height, part.height)
        x += part.width + _COLUMN_GAP
    return Layout(boxes, edges, width, y + height)
