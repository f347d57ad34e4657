"""Reads what a person wrote into a document, and says all that is wrong with it at once.

The header is cut into its fields, one key at the start of a line each, and every field is read
for itself: a mistake in one does not hide those in the others. Of YAML only the events are used.
Nothing is built from tags, anchors or aliases, so no document can grow in memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import frontmatter.default_handlers  # noqa: TID253 - this whole module is a cold path
import yaml  # noqa: TID253

from gittasks.domain import fields
from gittasks.domain.errors import UsageFault
from gittasks.domain.fields import BadDocument, Problem, quote, shown
from gittasks.domain.ids import is_id
from gittasks.domain.task import OUTCOMES, STATES, Attention, Cost, Draft, Findings, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Rule = Callable[["Reader", "Node", str], Any]

DEPTH_LIMIT = 20
FIELD_LIMIT = 1000
_NO_FIELD = "This is no field; write one field: value a line."
_TOO_DEEP = f"The value is nested more than {DEPTH_LIMIT} levels deep; write it flat."
NODE_LIMIT = 100_000
PROBLEM_LIMIT = 100

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# libyaml knows no halves of characters, which JSON spells like this.
_HALF = re.compile(r"\\[uU](?:0000)?[dD][89a-fA-F]")
_HALF_LIMIT = 65_536
_FENCE = re.compile(r"^---(?:\n|\Z)", re.MULTILINE)
_NEAR_FENCE = re.compile(rb"^---[ \t\r]+$", re.MULTILINE)
_CONFLICT = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?: |$)")
# A line that does not begin with one of these is the first line of a field.
_CONTINUED = re.compile(r"[ #\]}]|-(?: |$)|$")
_COMMENT = re.compile(" *(#.*)")
_WHOLE = re.compile(r"0|[1-9][0-9]*")
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
# What some reader of YAML takes for a truth value, nothing, a number, a time or a date.
_GUESSED = re.compile(
    r"""(?ix)
    (?: y | n | yes | no | true | false | on | off | null | ~ | = | << | )
    | [-+]? \.? [0-9] [0-9_.,:]* (?: e [-+]? [0-9]+ )?
    | [-+]? 0 [xob] [0-9a-f_]+
    | [-+]? \. (?: inf | nan )
    | [0-9]{4} - [0-9]{1,2} - [0-9]{1,2} (?: [T\ ] .* )?
    """
)
_REQUIRED = ("id", "uid", "title", "state", "entered_at", "created_at", "created_by")
_MEANT = {
    "assigned_to": "assignee",
    "author": "created_by",
    "blocked_by": "depends_on",
    "created": "created_at",
    "dependencies": "depends_on",
    "depends": "depends_on",
    "deps": "depends_on",
    "name": "title",
    "needs": "depends_on",
    "owner": "assignee",
    "status": "state",
    "tags": "labels",
    "worktree": "branch",
}


class Node(NamedTuple):
    """A value as it is written: a text (plain or quoted), a list, or a map of pairs."""

    kind: str
    text: str = ""
    plain: bool = False
    line: int = 0
    items: tuple[Node, ...] = ()
    pairs: tuple[tuple[Node, Node], ...] = ()
    comment: str = ""


class _Unreadable(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class Reader:
    """Turns nodes into values of fields and collects what is wrong with them."""

    def __init__(self) -> None:
        """Starts without problems."""
        self.problems: list[Problem] = []

    @property
    def is_full(self) -> bool:
        """Tells whether more problems would help nobody."""
        return len(self.problems) >= PROBLEM_LIMIT

    def fail(self, line: int, field: str, value: str, message: str) -> None:
        """Adds a problem."""
        if not self.is_full:
            self.problems.append(Problem(line, field, shown(value), message))

    def text(self, node: Node, field: str, check: Callable[[str], bool] = fields.is_text) -> Any:
        """Returns the text of a node, or None if it is none that the field may hold."""
        if node.kind != "text":
            self.fail(node.line, field, node.kind, f"A {node.kind} stands where a text belongs.")
            return None
        if node.plain and self._is_guessed(node, field, check):
            return None
        if not check(node.text):
            found = f'"{shown(node.text)}"' if node.text else "An empty text"
            self.fail(node.line, field, node.text, f"{found} {_COMPLAINTS[check]}")
            return None
        return node.text

    def _is_guessed(self, node: Node, field: str, check: Callable[[str], bool]) -> bool:
        key = field.rpartition(".")[2]
        text = node.text
        if check is is_id and text.isdigit() and text.isascii():
            text = text.zfill(6)
        prefix = "" if "[" in key else f"{key}: "
        spelled = prefix + quote(text)
        if node.comment:
            spelled = prefix + quote(f"{text} {node.comment}".strip())
            self.fail(
                node.line,
                field,
                node.text,
                f"All from the # on is a comment in YAML; write {_cut(spelled)}, or remove it.",
            )
            return True
        if _GUESSED.fullmatch(node.text):
            nothing = node.text.lower() in ("", "~", "null")
            self.fail(
                node.line,
                field,
                node.text,
                f"There is no value; remove the line, or write {_cut(spelled)}."
                if nothing
                else f"{shown(node.text)} is no text in YAML; write {_cut(spelled)}.",
            )
            return True
        return False

    def word(self, node: Node, field: str, words: Sequence[str]) -> Any:
        """Returns the word, or None if it is not one of these."""
        if node.kind == "text" and node.text in words:
            return node.text
        found = f'"{shown(node.text)}"' if node.kind == "text" else f"A {node.kind}"
        meant = node.text.upper() if node.text.upper() in words else node.text.lower()
        self.fail(
            node.line,
            field,
            node.text or node.kind,
            f"{found} is not possible; write {meant}."
            if meant in words
            else f"{found} is not possible; write one of {', '.join(words)}.",
        )
        return None

    def count(
        self, node: Node, field: str, low: int = 0, high: int = fields.COUNT_LIMIT - 1
    ) -> Any:
        """Returns the whole number, or None if it is none within the bounds."""
        if node.kind == "text" and _WHOLE.fullmatch(node.text) and len(node.text) <= 15:
            number = int(node.text)
            if low <= number <= high:
                if node.plain:
                    return number
                key = field.rpartition(".")[2]
                self.fail(
                    node.line, field, node.text, f"A number has no quotes; write {key}: {number}."
                )
                return None
        found = f'"{shown(node.text)}"' if node.kind == "text" else f"A {node.kind}"
        bounds = f"from {low} to {high}" if high < fields.COUNT_LIMIT - 1 else f"from {low} on"
        self.fail(node.line, field, node.text or node.kind, f"{found} is no whole number {bounds}.")
        return None

    def amount(self, node: Node, field: str) -> Any:
        """Returns the sum of money, or None if it is none."""
        if node.kind == "text" and node.plain and _DECIMAL.fullmatch(node.text):
            number = float(node.text)
            if number < fields.COUNT_LIMIT:
                return number
        self.fail(
            node.line, field, node.text or node.kind, "This is no amount; write one such as 0.5."
        )
        return None

    def texts(self, node: Node, field: str, check: Callable[[str], bool] = fields.is_text) -> Any:
        """Returns the texts of a list, or None if one of them is wrong."""
        if node.kind != "list":
            self._no_list(node, field)
            return None
        found = [
            self.text(item, f"{field}[{number}]", check) for number, item in enumerate(node.items)
        ]
        return None if None in found else tuple(found)

    def rows(self, node: Node, field: str, rule: Rule) -> Any:
        """Returns the rows of a list, or None if one of them is wrong."""
        if node.kind != "list":
            self._no_list(node, field)
            return None
        found = [rule(self, item, f"{field}[{number}]") for number, item in enumerate(node.items)]
        return None if None in found else tuple(found)

    def _no_list(self, node: Node, field: str) -> None:
        value = quote(node.text) if node.kind == "text" and node.text else '"…"'
        self.fail(
            node.line,
            field,
            node.text or node.kind,
            f"A {node.kind} stands where a list belongs; write {field}: [{_cut(value)}].",
        )

    def record(self, node: Node, field: str, rules: Mapping[str, Rule]) -> Any:
        """Returns the values of a map that has exactly these keys, or None."""
        pairs = self.pairs(node, field)
        if pairs is None:
            return None
        before = len(self.problems)
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key.text in rules:
                found[key.text] = rules[key.text](self, value, f"{field}.{key.text}")
            else:
                self.fail(
                    key.line, f"{field}.{shown(key.text)}", key.text, _unknown(key.text, rules)
                )
        for key_name in rules:
            if key_name not in found:
                self.fail(node.line, f"{field}.{key_name}", "", f"{key_name} is missing; add it.")
        if len(self.problems) > before or self.is_full:
            return None
        return [found[key_name] for key_name in rules]

    def pairs(self, node: Node, field: str) -> list[tuple[Node, Node]] | None:
        """Returns the keys and values of a map without the keys that stand twice, or None."""
        if node.kind != "map":
            self.fail(
                node.line,
                field,
                node.text or node.kind,
                f"A {node.kind} stands where a map of keys and values belongs.",
            )
            return None
        found: dict[str, tuple[Node, Node]] = {}
        for key, value in node.pairs:
            if key.kind != "text":
                self.fail(key.line, field, key.kind, f"A {key.kind} cannot be a key; write a text.")
            elif key.text in found:
                self.fail(
                    key.line,
                    f"{field}.{shown(key.text)}",
                    key.text,
                    f"The key stands twice, first in line {found[key.text][0].line};"
                    " remove one of them.",
                )
            else:
                found[key.text] = (key, value)
        return list(found.values())

    def fields(
        self, text: str, line: int, rules: Mapping[str, Rule], has_extra: bool
    ) -> tuple[dict[str, Any], dict[str, int], list[tuple[str, str]]]:
        """Returns the fields of a header, the lines they begin in, and the `x-` keys.

        A field that has a problem has the value None.
        """
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        extra: list[tuple[str, str]] = []
        for number, (start, chunk) in enumerate(_chunks(text, line)):
            if number >= FIELD_LIMIT or self.is_full:
                self.fail(start, "", "", f"There are more than {FIELD_LIMIT} fields; remove some.")
                break
            try:
                key, value, rest = _field(chunk, start)
            except _Unreadable as error:
                name, colon, _ = chunk.partition(":")
                name = name.rstrip() if colon else ""
                name = name if name in rules or fields.is_extra(name) else ""
                self.fail(error.line, name, chunk.partition("\n")[0], error.message)
                if name:
                    lines.setdefault(name, start)
                    values.setdefault(name, None)
                continue
            name = key.text
            if name in lines:
                self.fail(
                    start,
                    shown(name),
                    name,
                    f"The key stands twice, first in line {lines[name]}; remove one of them.",
                )
                continue
            lines[name] = start
            if name in rules:
                values[name] = rules[name](self, value, name)
            elif has_extra and fields.is_extra(name):
                extra.append((name, rest))
            else:
                self.fail(start, shown(name), name, _unknown(name, rules))
        return values, lines, extra


# --------------------------------------------------------------------------------- task document


def read(data: bytes, file: str) -> tuple[Task, bytes]:
    """Returns the task and the body of a document; raises BadDocument with all that is wrong."""
    head, body = split(data, file)
    text = header_text(head[4:-4], 2, file)
    reader = Reader()
    values, lines, extra = reader.fields(text, 2, _RULES, has_extra=True)
    # Whoever wrote no field at all is told about that and not about each of them.
    for name in _REQUIRED if lines else ():
        if name not in lines:
            reader.fail(1, name, "", f"The field is missing; add a line {name}: {_EXAMPLES[name]}.")
    wanted = fields.id_of_file(file)
    if wanted and values.get("id") and values["id"] != wanted:
        reader.fail(
            lines["id"],
            "id",
            values["id"],
            f'The file is called {wanted}.md; write id: "{wanted}", or rename the file.',
        )
    if not lines and not reader.problems:
        reader.fail(2, "", "", "The header is empty; it has to name at least id, uid and title.")
    given = {name: value for name, value in values.items() if value is not None}
    task = Task(**{"id": "", "uid": "", "title": "", **given, "extra": tuple(extra)})
    unsure = {name for name, value in values.items() if value is None}
    unsure |= {name for name in _REQUIRED if name not in lines}
    for names, sentence in fields.violations(task, len(body)):
        if unsure.isdisjoint(names):
            field = next((name for name in reversed(names) if name in given), names[0])
            value = given.get(field)
            reader.fail(
                lines.get(field, 1), field, value if isinstance(value, str) else "", sentence
            )
    if reader.problems:
        raise BadDocument(file, sorted(reader.problems, key=lambda problem: problem.line))
    return task, body


def split(data: bytes, file: str) -> tuple[bytes, bytes]:
    """Returns the header with its fences, and the body; raises BadDocument without fences."""
    complaint = _fence_complaint(data)
    if complaint is not None:
        raise BadDocument(file, [complaint])
    # Latin-1 gives every byte back as it was: neither the splitter nor we read the body.
    handler = frontmatter.default_handlers.YAMLHandler(fm_boundary=_FENCE)
    header, body = handler.split(data.decode("latin-1"))
    return f"---\n{header}---\n".encode("latin-1"), body.encode("latin-1")


def _fence_complaint(data: bytes) -> Problem | None:
    if len(data) > fields.DOCUMENT_LIMIT:
        return Problem(
            1,
            "",
            "",
            f"The document has {len(data)} bytes and at most {fields.DOCUMENT_LIMIT} are allowed;"
            " move text into a file of the work branch.",
        )
    first = data.partition(b"\n")[0]
    if first != b"---":
        shown_first = shown(first[:80].decode("utf-8", "replace"))
        message = "The document does not begin with a header; write --- alone in the first line."
        if data[:3] == b"\xef\xbb\xbf":
            message = "The document begins with a byte order mark; save it without one."
        elif first.rstrip() == b"---":
            message = _fence_message(first)
        elif _CONFLICT.match(shown_first):
            message = _CONFLICT_MESSAGE
        return Problem(1, "", shown_first, message)
    if data.find(b"\n---\n", 3) < 0 and not data.endswith(b"\n---"):
        near = _NEAR_FENCE.search(data, 4)
        if near is None:
            return Problem(1, "", "", "The header has no end; write --- alone in a line after it.")
        return Problem(data[: near.start()].count(b"\n") + 1, "", "", _fence_message(near[0]))
    return None


def _fence_message(fence: bytes) -> str:
    if b"\r" in fence:
        return "The lines end in CR LF; let those of the header end in LF alone."
    return "Something follows the fence; write --- alone in the line."


def header_text(raw: bytes, line: int, file: str) -> str:
    """Returns the header as text if any reader can read it alike; raises BadDocument."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        bad = line + raw[: error.start].count(b"\n")
        message = f"The byte 0x{raw[error.start]:02x} is not UTF-8; save the document as UTF-8."
        raise BadDocument(file, [Problem(bad, "", "", message)]) from None
    problems: list[Problem] = []
    hidden = set(filter(fields.is_dangerous, set(text))) - {"\n"}
    for number, content in enumerate(text.split("\n"), line):
        bad_character = next(filter(hidden.__contains__, content), None) if hidden else None
        if bad_character is not None:
            problems.append(Problem(number, "", shown(content), _character_message(bad_character)))
        elif _CONFLICT.match(content):
            problems.append(Problem(number, "", shown(content), _CONFLICT_MESSAGE))
    if problems:
        raise BadDocument(file, problems[:PROBLEM_LIMIT])
    return text


_CONFLICT_MESSAGE = "A merge left its conflict here; keep one side and remove the marker lines."


def _character_message(character: str) -> str:
    if character == "\r":
        return "The line ends in CR LF; let it end in LF alone."
    if character == "\t":
        return "There is a tab; write blanks, or \\t inside of double quotes."
    return (
        f"There is a character that cannot be seen, U+{ord(character):04X};"
        f" remove it, or write \\u{ord(character):04x} inside of double quotes."
    )


# ------------------------------------------------------------------------------------------ YAML


def _chunks(text: str, line: int) -> Iterable[tuple[int, str]]:
    start, chunk = line, list[str]()
    for number, content in enumerate(text.removesuffix("\n").split("\n"), line):
        if chunk and _CONTINUED.match(content):
            chunk.append(content)
            continue
        if chunk:
            yield start, "\n".join(chunk) + "\n"
        elif not content.strip() or content.lstrip().startswith("#"):
            continue
        start, chunk = number, [content]
    if chunk:
        yield start, "\n".join(chunk) + "\n"


def _field(chunk: str, line: int) -> tuple[Node, Node, str]:
    """Returns the key, the value, and the text behind the colon of the lines of one field."""
    if chunk.startswith(("%", "...", "--- ")):
        raise _Unreadable(line, _NO_FIELD)
    root, column, end = _compose(chunk, line)
    if root.kind == "list":
        raise _Unreadable(line, "The header is a list; write one field: value a line.")
    # Only a text can be a key in the first column: lists and explicit keys begin with a mark.
    if column or len(root.pairs) != 1:
        raise _Unreadable(line, _NO_FIELD)
    key, value = root.pairs[0]
    return key, value, chunk[chunk.index(":", end) + 1 : -1]


def _compose(chunk: str, line: int) -> tuple[Node, int, int]:
    """Returns the node of a chunk, the column of its first key, and where that key ends."""
    half = len(chunk) <= _HALF_LIMIT and _HALF.search(chunk) is not None
    # Each level: the kind, the line, and the nodes in it; the lowest one holds the root.
    levels: list[tuple[str, int, list[Node]]] = [("list", line, [])]
    column, end, count = -1, 0, 0
    try:
        events: Iterable[Any] = yaml.parse(chunk, Loader=yaml.SafeLoader if half else _Loader)
        for event in events:
            start: Any = event.start_mark
            stop: Any = event.end_mark
            if isinstance(event, yaml.NodeEvent):
                count += 1
                _require_simple(event, line, count, len(levels))
            if isinstance(event, yaml.ScalarEvent):
                levels[-1][2].append(_scalar(event, chunk, line))
                if column < 0:
                    column, end = start.column, stop.index
            elif isinstance(event, yaml.CollectionStartEvent):
                kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
                levels.append((kind, line + start.line, []))
            elif isinstance(event, yaml.CollectionEndEvent):
                level = levels.pop()
                levels[-1][2].append(_collection(*level))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if "depth" in str(error.problem):
            raise _Unreadable(line, _TOO_DEEP) from None
        raise _Unreadable(
            line if mark is None else min(line + mark.line, line + chunk.count("\n") - 1),
            f"YAML cannot read this: {error.problem}; write the text in double quotes.",
        ) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        raise _Unreadable(line, "YAML cannot read this; write the text in double quotes.") from None
    return levels[0][2][0], column, end


def _require_simple(event: Any, line: int, count: int, depth: int) -> None:
    line += event.start_mark.line
    if isinstance(event, yaml.AliasEvent):
        raise _Unreadable(line, f"*{event.anchor} is an alias; write the value itself.")
    if event.anchor is not None:
        raise _Unreadable(line, f"&{shown(event.anchor)} is an anchor; remove it.")
    if event.tag is not None:
        raise _Unreadable(line, f"{shown(event.tag)} is a tag; remove it.")
    if depth > DEPTH_LIMIT:
        raise _Unreadable(line, _TOO_DEEP)
    if count > NODE_LIMIT:
        raise _Unreadable(line, f"The field has more than {NODE_LIMIT} values; write fewer.")


def _scalar(event: Any, chunk: str, line: int) -> Node:
    plain = not event.style
    text = event.value
    if not text.isprintable() and fields.has_control(text):
        # Two halves spelled as JSON does are one character.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    comment = ""
    if plain:
        match = _COMMENT.match(chunk, event.end_mark.index)
        comment = match[1] if match else ""
    return Node("text", text, plain, line + event.start_mark.line, comment=comment)


def _collection(kind: str, line: int, nodes: list[Node]) -> Node:
    if kind == "list":
        return Node(kind, line=line, items=tuple(nodes))
    return Node(kind, line=line, pairs=tuple(zip(nodes[::2], nodes[1::2], strict=True)))


# ----------------------------------------------------------------------------------- the fields


def check_field(name: str, value: object) -> Any:
    """Returns the value as the task keeps it; raises UsageFault naming field and value."""
    if fields.is_extra(name):
        return " " + _extra_text(name, value)
    return check_value(name, value, _RULES)


def check_value(name: str, value: object, rules: Mapping[str, Rule]) -> Any:
    """Returns the value as the rule of that name takes it; raises UsageFault."""
    if name not in rules:
        raise UsageFault(
            f'There is no field "{shown(name)}": {_unknown(name, rules)}',
            f"Choose one of {', '.join(rules)}.",
        )
    reader = Reader()
    found = rules[name](reader, node_of(value), name)
    if reader.problems:
        raise UsageFault(
            "\n".join(f"{problem.field}: {problem.message}" for problem in reader.problems)
        )
    return found


def node_of(value: object) -> Node:
    """Returns the node that a document would have for plain Python data."""
    if isinstance(value, str):
        return Node("text", value)
    if isinstance(value, dict):
        return Node(
            "map", pairs=tuple((node_of(key), node_of(item)) for key, item in value.items())
        )
    if isinstance(value, (list, tuple)):
        return Node("list", items=tuple(node_of(item) for item in value))
    if value is None or isinstance(value, bool):
        return Node("text", {None: "null", True: "true", False: "false"}[value], plain=True)
    # Python refuses to spell numbers of thousands of digits.
    too_long = isinstance(value, int) and abs(value) > fields.COUNT_LIMIT
    return Node("text", "a huge number" if too_long else str(value), plain=True)


def _extra_text(name: str, value: object) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < fields.COUNT_LIMIT:
        return str(value)
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return f"[{', '.join(map(quote, value))}]"
    raise UsageFault(f"{name}: Write a text, a whole number, true, false, or a list of texts.")


def _unknown(name: str, rules: Mapping[str, Rule]) -> str:
    import difflib

    meant = _MEANT.get(name.lower(), "")
    if meant not in rules:
        meant = next(iter(difflib.get_close_matches(name[:40].lower(), rules, 1, 0.75)), "")
    if meant:
        return f"The key is unknown; did you mean {meant}?"
    if name == "<<":
        return "<< merges another map in; write the fields themselves."
    own = f"x-{name}"
    if rules is _RULES and fields.is_extra(own):
        return f"The key is unknown; remove it, or call it {own} to keep it as your own."
    return "The key is unknown; remove it."


def _cut(text: str) -> str:
    return text if len(text) <= 2 * fields.NAME_LIMIT else text[: fields.NAME_LIMIT] + "…"


def text_rule(check: Callable[[str], bool] = fields.is_text) -> Rule:
    """Returns the rule of a field that holds a text."""
    return lambda reader, node, field: reader.text(node, field, check)


def texts_rule(check: Callable[[str], bool] = fields.is_text) -> Rule:
    """Returns the rule of a field that holds a list of texts."""
    return lambda reader, node, field: reader.texts(node, field, check)


def word_rule(words: Sequence[str]) -> Rule:
    """Returns the rule of a field that holds one of these words."""
    return lambda reader, node, field: reader.word(node, field, words)


def count_rule(low: int, high: int = fields.COUNT_LIMIT - 1) -> Rule:
    """Returns the rule of a field that holds a whole number."""
    return lambda reader, node, field: reader.count(node, field, low, high)


def _any_text(_text: str) -> bool:
    return True


def _items(reader: Reader, node: Node, field: str) -> Any:
    items = reader.texts(node, field)
    if items == ():
        reader.fail(node.line, field, "", "There is no finding; remove the lines, or add one.")
        return None
    return items


def _draft(reader: Reader, node: Node, field: str) -> Any:
    values = reader.record(node, field, {"section": text_rule(), "offset": count_rule(0)})
    return None if values is None else Draft(*values)


def _findings(reader: Reader, node: Node, field: str) -> Any:
    rules = {"state": word_rule(fields.AUTHOR_STATES), "round": count_rule(1), "items": _items}
    values = reader.record(node, field, rules)
    return None if values is None else Findings(*values)


def _attention(reader: Reader, node: Node, field: str) -> Any:
    values = reader.record(
        node, field, {"event": text_rule(), "kind": text_rule(), "text": text_rule(_any_text)}
    )
    return None if values is None else Attention(*values)


def _cost(reader: Reader, node: Node, field: str) -> Any:
    rules: dict[str, Rule] = {
        "state": word_rule(STATES),
        "slot": text_rule(_any_text),
        "seconds": count_rule(0),
        "cost": lambda reader, node, field: reader.amount(node, field),
        "tokens": count_rule(0),
    }
    values = reader.record(node, field, rules)
    return None if values is None else Cost(*values)


def _artifacts(reader: Reader, node: Node, field: str) -> Any:
    pairs = reader.pairs(node, field)
    if pairs is None:
        return None
    found = [
        (
            reader.text(key, f"{field}.{shown(key.text)}", fields.is_name),
            reader.text(value, f"{field}.{shown(key.text)}", _any_text),
        )
        for key, value in pairs
    ]
    if len(found) < len(node.pairs) or any(None in pair for pair in found):
        return None
    return tuple(found)


_COMPLAINTS: dict[Callable[[str], bool], str] = {
    is_id: 'is no task id; write six digits such as "000042".',
    fields.is_token: "is not 32 lower-case hexadecimal digits; write those of the ledger.",
    fields.is_title: "is no title; write one line of at most 500 characters.",
    fields.is_time: 'is no time; write one in UTC such as "2026-11-30T17:17:12Z".',
    fields.is_text: "is blank; write a text, or remove the line.",
    fields.is_name: "is no name; write one line of at most 200 characters, none of them a"
    " control character.",
    fields.is_commit: "is no commit; write its full id of 40 or 64 lower-case hexadecimal digits.",
    fields.is_branch: "is nothing that git can take for a branch; write one without blanks that"
    " does not begin with -.",
    fields.is_duration: "is no length of time; write one such as 24h, 30m or 90s.",
    fields.is_version: "is no version; write numbers with points between them, such as 1.2.",
    fields.is_key: "is no position; write lower-case letters and digits.",
}

_RULES: dict[str, Rule] = {
    "id": text_rule(is_id),
    "uid": text_rule(fields.is_token),
    "title": text_rule(fields.is_title),
    "state": word_rule(STATES),
    "entered_at": text_rule(fields.is_time),
    "enters": word_rule(fields.AUTHOR_STATES),
    "outcome": word_rule(OUTCOMES),
    "parent": text_rule(is_id),
    "position": text_rule(fields.is_key),
    "depends_on": texts_rule(is_id),
    "supersedes": text_rule(is_id),
    "follows": text_rule(is_id),
    "labels": texts_rule(),
    "priority": count_rule(0, 4),
    "checks": texts_rule(),
    "assignee": text_rule(),
    "claimed_by": text_rule(),
    "claim": text_rule(fields.is_token),
    "claimed_at": text_rule(fields.is_time),
    "lease_expires": text_rule(fields.is_time),
    "branch": text_rule(fields.is_branch),
    "base": text_rule(fields.is_branch),
    "dispatched": text_rule(fields.is_commit),
    "submitted_tip": text_rule(fields.is_commit),
    "checked_tip": text_rule(fields.is_commit),
    "landed": text_rule(fields.is_commit),
    "draft": _draft,
    "rejections": count_rule(0),
    "check_failures": count_rule(0),
    "former_ids": texts_rule(is_id),
    "findings": _findings,
    "held_reason": text_rule(),
    "attention": lambda reader, node, field: reader.rows(node, field, _attention),
    "proposed_by": text_rule(),
    "artifacts": _artifacts,
    "costs": lambda reader, node, field: reader.rows(node, field, _cost),
    "created_at": text_rule(fields.is_time),
    "created_by": text_rule(),
}

_EXAMPLES = {
    "id": '"000042"',
    "uid": '"…", 32 hexadecimal digits',
    "title": '"…"',
    "state": "NEW",
    "entered_at": '"2026-11-30T17:17:12Z"',
    "created_at": '"2026-11-30T17:17:12Z"',
    "created_by": '"…"',
}
