"""Markdown files that begin with a header in YAML, as other tools write them.

Every scalar is a text, whatever YAML would guess: 0042 stays 0042, and no is no boolean.
"""

from __future__ import annotations

import re
from typing import Any

from gittasks.workflow.importing.items import Unfit, plain

_HEADER_LIMIT = 64 * 1024
_AT = re.compile(r"^(\s*(?:-|assignee:)\s+)(@[^\s'\"]+)\s*$", re.MULTILINE)
"""A name such as @ann, which some tools leave without the quotes that YAML wants."""


def split(document: str) -> tuple[dict[str, Any], str]:
    """Returns the fields of the header and the text below it; raises Unfit without a header."""
    lines = plain(document).split("\n")
    if lines[0].rstrip() != "---":
        raise Unfit("There is no header; begin the file with a line of three dashes.")
    end = next((n for n, one in enumerate(lines[1:], 1) if one.rstrip() == "---"), None)
    if end is None:
        raise Unfit("The header has no end; close it with a line of three dashes.")
    header = "\n".join(lines[1:end])
    if len(header) > _HEADER_LIMIT:
        raise Unfit("The header is too long; shorten it.")
    return _fields(header), "\n".join(lines[end + 1 :])


def _fields(header: str) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.load(_AT.sub(r'\1"\2"', header), Loader=yaml.BaseLoader)
    except RecursionError:
        raise Unfit("The header is nested too deeply; write plain fields.") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 2}" if mark is not None else ""
        raise Unfit(f"The header is no YAML{where}; correct it.") from None
    if found in (None, ""):
        return {}
    if not isinstance(found, dict):
        raise Unfit("The header has no fields; write lines such as `id: NAME`.")
    return {str(name): value for name, value in found.items()}
