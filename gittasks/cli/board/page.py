"""Makes the page: its data beside a script that draws it, in one file that asks nobody for more.

What others wrote reaches the browser as data only. Each text is spelled so that nothing in it
turns the direction or ends the data, the script makes text of it and never markup, and the page
lets no script and no style run but the two whose digests it names.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from gittasks.cli.layout import BOX_HEIGHT, BOX_WIDTH, layout
from gittasks.cli.output import escape

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = os.path.dirname(__file__)
# In a script tag only these could be taken for something else than data.
_SPELLED = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def prepared(data: Mapping[str, Any]) -> str:
    """Returns the data with the places of boxes and lines, as JSON in plain ASCII."""
    graph = data["graph"]
    shown = {task["id"] for task in data["tasks"]}
    names = [name for name in graph["shown"] if name in shown]
    lines = [line for line in graph["edges"] if line[1] in shown and line[2] in shown]
    found = layout(names, ((begin, end) for _, begin, end in lines))
    drawn = {
        "shown": names,
        "width": found.width,
        "height": found.height,
        "box": [BOX_WIDTH, BOX_HEIGHT],
        "boxes": [[name, *found.boxes[name]] for name in names],
        "lines": [
            [kind, begin, end, *(part for point in found.edges[begin, end] for part in point)]
            for kind, begin, end in lines
            if (begin, end) in found.edges
        ],
    }
    text = json.dumps(_clean({**data, "graph": drawn}), separators=(",", ":"))
    return text.translate(_SPELLED)


def page(data: str, *, tag: str | None = None) -> str:
    """Returns the page around prepared data; with the tag of the data, one that asks for newer."""
    style, script = _file("page.css"), _file("page.js")
    policy = {
        "default-src": "'none'",
        "script-src": _digest(script),
        "style-src": _digest(style),
        "img-src": "data:",
        "connect-src": "'none'" if tag is None else "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    parts = {
        "policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "live": "" if tag is None else f' data-live="yes" data-tag="{_attribute(tag)}"',
        "style": style,
        "data": data,
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _file("page.html"))


def _clean(value: Any) -> Any:
    """Returns a JSON value in whose texts controls and overrides of the direction are spelled out."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, list | tuple):
        return [_clean(one) for one in value]
    if isinstance(value, dict):
        return {name: _clean(one) for name, one in value.items()}
    return value


def _file(name: str) -> str:
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
        return file.read()


def _digest(text: str) -> str:
    import base64
    import hashlib

    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
