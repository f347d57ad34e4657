"""Pictures of graphs: where boxes stand, and texts that could be taken for the language around."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.cli import drawing
from gittasks.cli.drawing import Arrow, Box, Picture
from gittasks.cli.layout import BOX_HEIGHT, BOX_WIDTH, layout
from tests.support.examples import examples

HOSTILE = (
    'a"]; evil["b', "x --> y", "</svg><script>alert(1)</script>", "]]>&amp;<!--", "#quot;", "`**md**`",
    "back\\slash \\N \\", "two\nlines", "\x1b]0;t\x07\x9b31m", "\u202egnp.exe\u2066", "\ufffe\uffff",
    "\ud800", "%%{init: {}}%%", "end", 'x" URL="javascript:1',
)  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"
NAMES = st.integers(1, 12).map(lambda number: f"{number:06d}")


def picture(*boxes: Box, arrows: tuple[Arrow, ...] = (), about: str | None = None) -> Picture:
    return Picture(boxes, arrows, about)


def titled(text: str) -> Picture:
    return picture(Box("000001", "WORK", drawing.clean(text)))


# Outline.


def test_children_stand_below_their_parent_and_needs_behind_the_title() -> None:
    drawn = drawing.outline(
        picture(
            Box("000001", "NEW", "Whole", age="2 d"),
            Box("000004", "BLOCKED", "Last", "000001", ("000002", "000003"), age="3 min"),
            Box("000002", "WORK", "First", "000001", holder="bob", age="40 s"),
            Box("000003", "MANAGER_REVIEW", "Deeper", "000002", ("000005",)),
            Box("000005", "LANDED", "Alone", "000009"),
        )
    )
    assert drawn == [
        "000001  NEW               2 d  Whole",
        "000004  BLOCKED         3 min    Last <- 000002, 000003",
        "000002  WORK             40 s    First (bob)",
        "000003  MANAGER_REVIEW             Deeper <- 000005",
        "000005  LANDED                 Alone",
    ]


def test_a_ring_of_parents_is_shown_once_from_its_first_task() -> None:
    ring = (Box("000001", "NEW", "a", "000003"), Box("000002", "NEW", "b", "000001"),
            Box("000003", "NEW", "c", "000002"), Box("000004", "NEW", "d", "000004"))  # fmt: skip
    assert drawing.outline(picture(*ring)) == [
        "000001  NEW    a",
        "000002  NEW      b",
        "000003  NEW        c",
        "000004  NEW    d",
    ]


def test_nothing_has_no_lines() -> None:
    assert drawing.outline(picture()) == []


# Languages.

DIAMOND = picture(
    Box("000001", "LANDED", "One"),
    Box("000002", "WORK", "Two"),
    Box("000003", "BLOCKED"),
    arrows=(
        Arrow("000001", "000002", "depends_on"),
        Arrow("000001", "000003", "parent"),
        Arrow("000002", "000003", "supersedes"),
        Arrow("000001", "000003", "follows"),
    ),
)


def test_mermaid() -> None:
    assert drawing.mermaid(DIAMOND) == (
        "flowchart LR\n"
        '  t000001["000001 LANDED<br/>One"]:::landed\n'
        '  t000002["000002 WORK<br/>Two"]:::working\n'
        '  t000003["000003 BLOCKED"]:::waiting\n'
        "  t000001 --> t000002\n"
        "  t000001 -.- t000003\n"
        "  t000002 -.->|superseded by| t000003\n"
        "  t000001 -.->|followed by| t000003\n"
        "  classDef waiting fill:#f6f8fa,stroke:#6e7781,color:#1f2328\n"
        "  classDef working fill:#ddf4ff,stroke:#0969da,color:#1f2328\n"
        "  classDef landed fill:#dafbe1,stroke:#1a7f37,color:#1f2328\n"
    )


def test_dot() -> None:
    assert drawing.dot(DIAMOND) == (
        "digraph tasks {\n"
        "  rankdir=LR;\n"
        '  node [shape=box, style="rounded,filled", fontname="monospace", fontcolor="#1f2328"];\n'
        '  "000001" [label="000001 LANDED\\nOne", color="#1a7f37", fillcolor="#dafbe1"];\n'
        '  "000002" [label="000002 WORK\\nTwo", color="#0969da", fillcolor="#ddf4ff"];\n'
        '  "000003" [label="000003 BLOCKED", color="#6e7781", fillcolor="#f6f8fa"];\n'
        '  "000001" -> "000002";\n'
        '  "000001" -> "000003" [style=dashed, arrowhead=none];\n'
        '  "000002" -> "000003" [style=dotted, label="superseded by"];\n'
        '  "000001" -> "000003" [style=dotted, label="followed by"];\n'
        "}\n"
    )


@pytest.mark.parametrize("title", HOSTILE, ids=ascii)
def test_no_title_gets_out_of_its_label(title: str) -> None:
    label = re.fullmatch(
        r'flowchart LR\n  t000001\["000001 WORK<br/>([^\n]*)"\]:::working\n  classDef [^\n]*\n',
        drawing.mermaid(titled(title)),
    )
    assert label is not None
    assert re.fullmatch(r"(?:\w|[ .,:-]|#\d+;)*", label[1])
    line = drawing.dot(titled(title)).split("\n")[3]
    quoted = re.fullmatch(r'  "000001" \[label="((?:[^"\\]|\\.)*)", color="#\w+", .*\];', line)
    assert quoted is not None
    # Graphviz would put names of the graph in the place of others than these.
    assert set(re.findall(r"\\(.)", quoted[1])) <= {"n", '"', "\\"}
    assert quoted[1].isprintable()


@pytest.mark.parametrize("title", HOSTILE, ids=ascii)
def test_a_drawing_is_plain_xml_with_the_title_as_its_text(title: str) -> None:
    drawn = drawing.svg(titled(title))
    assert drawn.isascii()
    whole = ElementTree.fromstring(drawn)
    assert {part.tag.removeprefix(SVG) for part in whole.iter()} == {
        "svg", "title", "style", "defs", "marker", "path", "g", "rect", "text"
    }  # fmt: skip
    shown = [part.text for part in whole.iter(f"{SVG}text")]
    told = whole.findtext(f"{SVG}g/{SVG}title")
    clean = drawing.clean(title)
    label = clean if len(clean) <= 30 else clean[:29] + "…"
    assert (shown, told) == (["000001 WORK", label], f"000001 WORK {clean}")


def test_a_drawing_asks_for_nothing_from_elsewhere() -> None:
    drawn = drawing.svg(DIAMOND).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert re.findall(r"https?:|href|@import|url\((?!#)|<script|\bon\w+=", drawn) == []
    assert "@media(prefers-color-scheme:dark)" in drawn


def test_the_task_that_a_drawing_is_about_stands_out() -> None:
    drawn = drawing.svg(DIAMOND._replace(about="000002"))
    assert re.findall(r'class="(task .*?)"', drawn) == [
        "task landed", "task working about", "task waiting"
    ]  # fmt: skip


def test_nothing_is_a_small_drawing() -> None:
    assert ElementTree.fromstring(drawing.svg(picture())).get("height") == "24"


# Layout.


@examples(60)
@given(st.lists(st.tuples(NAMES, NAMES), max_size=40))
def test_boxes_never_overlap_and_edges_end_at_their_boxes(edges: list[tuple[str, str]]) -> None:
    names = [f"{number:06d}" for number in range(1, 13)]
    found = layout(names, edges)
    assert sorted(found.boxes) == names
    places = sorted(found.boxes.values())
    for at, (x, y) in enumerate(places):
        assert 0 <= x <= found.width - BOX_WIDTH
        assert 0 <= y <= found.height - BOX_HEIGHT
        for left, top in places[at + 1 :]:
            assert abs(left - x) >= BOX_WIDTH or abs(top - y) >= BOX_HEIGHT
    for (begin, end), points in found.edges.items():
        middles = [found.boxes[name][1] + BOX_HEIGHT // 2 for name in (begin, end)]
        assert [points[0][1], points[-1][1]] == middles
    assert found.edges.keys() == {pair for pair in edges if pair[0] != pair[1]}
    assert layout(names, edges) == found


def test_what_is_needed_stands_to_the_left() -> None:
    found = layout(["1", "2", "3", "4"], [("1", "2"), ("1", "3"), ("2", "4"), ("3", "4")])
    columns = {name: x for name, (x, _) in found.boxes.items()}
    assert columns["1"] < columns["2"] == columns["3"] < columns["4"]


def test_a_ring_is_broken_at_one_edge() -> None:
    found = layout(["1", "2", "3"], [("1", "2"), ("2", "3"), ("3", "1")])
    directions = {pair: points[0][0] < points[-1][0] for pair, points in found.edges.items()}
    assert directions == {("1", "2"): True, ("2", "3"): True, ("3", "1"): False}


def test_a_long_edge_keeps_away_from_the_boxes_between() -> None:
    found = layout(["1", "2", "3"], [("1", "2"), ("2", "3"), ("1", "3")])
    x, y = found.boxes["2"]
    for right, down in found.edges["1", "3"][1:-1]:
        assert not (x <= right <= x + BOX_WIDTH and y <= down <= y + BOX_HEIGHT)


def test_what_stands_alone_is_set_in_rows() -> None:
    found = layout([f"{number:06d}" for number in range(100)], [])
    assert found.width < 3 * found.height
    assert found.height < 3 * found.width


# Bars.


def test_bars_are_as_long_as_what_they_stand_for() -> None:
    assert drawing.bars([("a", 10), ("b", 5), ("c", 0.01), ("d", 0)], 10) == {
        "a": "#" * 10, "b": "#" * 5, "c": "#", "d": ""
    }  # fmt: skip
    assert drawing.bars([("a", 0)]) == {"a": ""}
