"""Pictures of a graph: an outline for terminals, mermaid, dot, and SVG without any other program.

A picture holds texts that others wrote. They are cleaned once, when its boxes are made, and each
language spells what it could take for its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.cli.output import age, cut, escape, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gittasks.domain.task import Task
    from gittasks.workflow.graph_view import GraphView

LABEL_WIDTH = 30
"""How many columns of a title stand in a box."""

_GROUPS = {
    "NEW": "waiting",
    "BLOCKED": "waiting",
    "DESIGN": "working",
    "PLAN": "working",
    "WORK": "working",
    "CHECK": "judged",
    "DESIGN_REVIEW": "judged",
    "PLAN_REVIEW": "judged",
    "WORK_REVIEW": "judged",
    "MANAGER_REVIEW": "judged",
    "HELD_DESIGN": "held",
    "HELD_PLAN": "held",
    "HELD_WORK": "held",
    "LANDED": "landed",
}
_COLOURS = {
    # border, ground, and the border in the dark
    "waiting": ("#6e7781", "#f6f8fa", "#8b949e"),
    "working": ("#0969da", "#ddf4ff", "#58a6ff"),
    "judged": ("#8250df", "#fbefff", "#bc8cff"),
    "held": ("#cf222e", "#ffebe9", "#ff7b72"),
    "landed": ("#1a7f37", "#dafbe1", "#3fb950"),
    "gone": ("#818b98", "#eff2f5", "#656c76"),
}
_WORDS = {"parent": "child", "supersedes": "superseded by", "follows": "followed by"}


class Box(NamedTuple):
    """One task of a picture; every text is clean, and of one line."""

    id: str
    state: str
    """A state, LANDED or ABORTED for a closed task, or UNREAD."""
    title: str = ""
    parent: str | None = None
    needs: tuple[str, ...] = ()
    holder: str = ""
    age: str = ""

    @property
    def group(self) -> str:
        """Returns the word for what its state means, which has a colour."""
        return _GROUPS.get(self.state, "gone")


class Arrow(NamedTuple):
    """From what comes first to what comes of it: `depends_on`, `parent`, `supersedes`, `follows`."""

    begin: str
    end: str
    kind: str


class Picture(NamedTuple):
    """Boxes in the order of siblings, arrows between them, and the task it is about."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    about: str | None = None


def picture(view: GraphView, now: int) -> Picture:
    """Returns the picture of a part of the graph, without secrets; ages are those at `now`."""
    tasks = sorted(view.tasks, key=lambda task: (task.sort_key, task.id))
    boxes = [_box(task, now) for task in tasks]
    boxes += [Box(number, "UNREAD", "(its document cannot be read)") for number in view.unread]
    arrows = tuple(Arrow(edge.named, edge.task, edge.kind) for edge in view.edges)
    return Picture(tuple(boxes), arrows, view.about)


def _box(task: Task, now: int) -> Box:
    from gittasks.domain.redact import redact

    return Box(
        task.id,
        task.state if task.is_open else (task.outcome or task.state).upper(),
        clean(redact(task.title)),
        task.parent,
        task.depends_on,
        clean(redact(task.claimed_by)) if task.claimed_by else "",
        age(now - seconds_of(task.entered_at)) if task.entered_at else "",
    )


def clean(text: str) -> str:
    """Returns a text on one line in which nothing steers a terminal or turns the direction."""
    # No XML may hold the last two, not even by number.
    return escape(" ".join(text.split())).translate({0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD})


def outline(picture: Picture) -> list[str]:
    """Returns one line for each task, children below their parents, and whom each needs."""
    placed = list(_outlined(picture.boxes))
    state_width = max((len(box.state) for box, _ in placed), default=0)
    age_width = max((len(box.age) for box, _ in placed), default=0)
    lines = []
    for box, depth in placed:
        said = [f"{'  ' * depth}{box.title}"]
        if box.holder:
            said.append(f"({box.holder})")
        if box.needs:
            said.append(f"<- {', '.join(box.needs)}")
        line = f"{box.id}  {box.state:<{state_width}}  {box.age:>{age_width}}  {' '.join(said)}"
        lines.append(line.rstrip())
    return lines


def _outlined(boxes: Sequence[Box]) -> Iterator[tuple[Box, int]]:
    """Yields every box once with its depth; a ring of parents begins at its first one."""
    known = {box.id: box for box in boxes}
    below: dict[str | None, list[Box]] = {}
    for box in boxes:
        below.setdefault(box.parent if box.parent in known else None, []).append(box)
    seen: set[str] = set()
    for first in (*below.get(None, ()), *boxes):
        stack = [(first, 0)]
        while stack:
            box, depth = stack.pop()
            if box.id in seen:
                continue
            seen.add(box.id)
            yield box, depth
            stack.extend((child, depth + 1) for child in reversed(below.get(box.id, ())))


def mermaid(picture: Picture) -> str:
    """Returns a flowchart for pages that draw mermaid."""
    lines = ["flowchart LR"]
    for box in picture.boxes:
        title = _for_mermaid(cut(box.title, LABEL_WIDTH))
        label = f"{box.id} {box.state}" + (f"<br/>{title}" if title else "")
        lines.append(f'  t{box.id}["{label}"]:::{box.group}')
    for arrow in picture.arrows:
        word = _WORDS.get(arrow.kind)
        shape = {"depends_on": "-->", "parent": "-.-"}.get(arrow.kind, f"-.->|{word}|")
        lines.append(f"  t{arrow.begin} {shape} t{arrow.end}")
    for group in _groups(picture):
        border, ground, _ = _COLOURS[group]
        lines.append(f"  classDef {group} fill:{ground},stroke:{border},color:#1f2328")
    return "\n".join(lines) + "\n"


def _for_mermaid(text: str) -> str:
    # Whatever is neither letter nor digit could mean something, and has a number.
    return "".join(c if c.isalnum() or c in " .,:_-" else f"#{ord(c)};" for c in text)


def dot(picture: Picture) -> str:
    """Returns a graph for Graphviz."""
    lines = [
        "digraph tasks {",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled", fontname="monospace", fontcolor="#1f2328"];',
    ]
    for box in picture.boxes:
        border, ground, _ = _COLOURS[box.group]
        title = _for_dot(cut(box.title, LABEL_WIDTH))
        label = f"{box.id} {box.state}" + (f"\\n{title}" if title else "")
        lines.append(f'  "{box.id}" [label="{label}", color="{border}", fillcolor="{ground}"];')
    for arrow in picture.arrows:
        word = _WORDS.get(arrow.kind, "")
        more = {"depends_on": "", "parent": " [style=dashed, arrowhead=none]"}.get(
            arrow.kind, f' [style=dotted, label="{word}"]'
        )
        lines.append(f'  "{arrow.begin}" -> "{arrow.end}"{more};')
    return "\n".join([*lines, "}"]) + "\n"


def _for_dot(text: str) -> str:
    # In quotes a backslash begins an escape, and `&` an entity.
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


def svg(picture: Picture, title: str = "The graph of tasks") -> str:
    """Returns a drawing in plain ASCII that needs nothing else, for light and dark pages."""
    from gittasks.cli.layout import BOX_HEIGHT, BOX_WIDTH, layout

    names = [box.id for box in picture.boxes]
    found = layout(names, ((arrow.begin, arrow.end) for arrow in picture.arrows))
    width, height = max(found.width, BOX_WIDTH) + 2 * _MARGIN, found.height + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gittasks" width="{width}"'
        f' height="{height}" viewBox="{-_MARGIN} {-_MARGIN} {width} {height}" role="img"'
        ' aria-labelledby="gittasks-title">',
        f'<title id="gittasks-title">{_for_xml(title)}</title>',
        f"<style>{_style(picture)}</style>",
        '<defs><marker id="gittasks-end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for arrow in picture.arrows:
        points = found.edges.get((arrow.begin, arrow.end))
        if points is not None:
            lines.append(f'<path class="{_KINDS[arrow.kind]}" d="{_curve(points)}"/>')
    for box in picture.boxes:
        x, y = found.boxes[box.id]
        about = " about" if box.id == picture.about else ""
        head = f"{box.id} {box.state}"
        whole = _for_xml(f"{head} {box.title}".rstrip())
        lines += [
            f'<g class="task {box.group}{about}" transform="translate({x} {y})"><title>{whole}</title>',
            f'<rect width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
            f'<path class="mark" d="M4 6v{BOX_HEIGHT - 12}"/>',
            f'<text x="14" y="18" class="head">{_for_xml(head)}</text>',
            f'<text x="14" y="34">{_for_xml(cut(box.title, LABEL_WIDTH))}</text></g>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


_MARGIN = 12
_KINDS = {"depends_on": "needs", "parent": "child", "supersedes": "after", "follows": "after"}
_STYLE = (
    ".gittasks{background:#fff;font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}"
    ".gittasks text{fill:#1f2328}.gittasks .head{font-weight:600}"
    ".gittasks rect{fill:#f6f8fa;stroke:#d0d7de}.gittasks .about rect{stroke-width:3}"
    ".gittasks .mark{stroke-width:4;stroke-linecap:round}"
    ".gittasks path{fill:none;stroke:#6e7781;stroke-width:1.5}"
    ".gittasks marker path{fill:#6e7781;stroke:none}"
    ".gittasks .needs{marker-end:url(#gittasks-end)}"
    ".gittasks .child{stroke-dasharray:5 4}"
    ".gittasks .after{stroke-dasharray:1 4;marker-end:url(#gittasks-end)}"
)
_DARK = (
    ".gittasks{background:#0d1117}.gittasks text{fill:#e6edf3}"
    ".gittasks rect{fill:#161b22;stroke:#30363d}"
    ".gittasks path{stroke:#8b949e}.gittasks marker path{fill:#8b949e;stroke:none}"
)


def _style(picture: Picture) -> str:
    light = dark = ""
    for group in _groups(picture):
        border, _, in_the_dark = _COLOURS[group]
        light += f".gittasks .{group} .mark,.gittasks .{group}.about rect{{stroke:{border}}}"
        dark += f".gittasks .{group} .mark,.gittasks .{group}.about rect{{stroke:{in_the_dark}}}"
    return f"{_STYLE}{light}@media(prefers-color-scheme:dark){{{_DARK}{dark}}}"


def _groups(picture: Picture) -> list[str]:
    used = {box.group for box in picture.boxes}
    return [group for group in _COLOURS if group in used]


def _curve(points: Sequence[tuple[int, int]]) -> str:
    (x, y), *rest = points
    parts = [f"M{x} {y}"]
    for right, down in rest:
        middle = (x + right) // 2
        parts.append(f"H{right}" if down == y else f"C{middle} {y} {middle} {down} {right} {down}")
        x, y = right, down
    return "".join(parts)


def _for_xml(text: str) -> str:
    for character, entity in _ENTITIES.items():
        text = text.replace(character, entity)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


_ENTITIES = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"
}  # fmt: skip


def bars(rows: Iterable[tuple[str, float]], width: int = 40) -> Mapping[str, str]:
    """Returns a bar for each name, the longest one of this width; what is not nothing is seen."""
    found = dict(rows)
    longest = max(found.values(), default=0)
    if longest <= 0:
        return dict.fromkeys(found, "")
    return {
        name: "#" * max(round(value / longest * width), int(value > 0))
        for name, value in found.items()
    }
