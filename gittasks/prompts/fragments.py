"""The language of the prompts: how the Markdown files of this folder are checked and filled in.

`{{title}}` stands for a value. A list is a part between `{{#findings}}` and `{{/findings}}`, each
on a line of its own; the part is repeated for every item, and left out where there is none. Inside
it the fields of an item may be used, and `{{number}}`, which counts them. Everything else is
literal. Several blank lines become one.

How a value is written follows from its kind. A *word*, one or a few that the tool itself has
chosen, stands as it is. A *line* is put between double quotes. A *text* needs a line of its own
and gets `> ` before each of its lines: nothing that somebody else has written can be taken for a
sentence of the prompt. What cannot be seen is spelled out, and what is too long is shortened.

The first line is words: a prompt that began with `/` or `-` would be read as a command or an option.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Literal

from gittasks.domain.errors import UsageFault
from gittasks.domain.fields import is_dangerous
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Kind = Literal["word", "line", "text"]
    Variables = Mapping[str, Kind | Mapping[str, Kind]]
    Value = str | bool | Sequence[Mapping[str, str]]

__all__ = ["PROMPTS", "BadPrompts", "Fault", "Prompt", "Prompts", "faults_of", "load", "own"]

LINE_LIMIT = 1_000
"""How many characters of a line are shown."""
TEXT_LIMIT = 25_000
"""How many characters of a text are shown."""
LIST_LIMIT = 100_000
"""How many characters the items of a list may fill before the rest is only counted."""

NUMBER = "number"
"""The variable that counts the items of a list."""

_MARK = re.compile(r"\{\{ ?([#/^&>!]?) ?([\w.-]+) ?\}\}")
_ALONE = re.compile(r"(\s*)\{\{ ?([#/]?) ?([\w.-]+) ?\}\}\s*")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]*")
_BLANK = re.compile(r"\n{3,}")


class Prompt(NamedTuple):
    """What a prompt is for, and the variables it may use; a list has fields."""

    purpose: str
    variables: Variables


class Fault(NamedTuple):
    """One thing wrong with a prompt: which, in which line, and what."""

    name: str
    line: int
    message: str

    @property
    def told(self) -> str:
        """Returns it as one line."""
        return f"prompts/{self.name}.md, line {self.line}: {self.message}"


class BadPrompts(UsageFault):
    """Prompts that cannot be used; `faults` has all that is wrong with them."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        """Lists every fault on a line of its own."""
        self.faults = tuple(faults)
        name = faults[0].name
        remove = f"`git tasks config --unset prompts/{name}`"
        super().__init__(
            "\n".join(
                [
                    "The prompts of this project cannot be used.",
                    *(f"  {fault.told}" for fault in faults),
                ]
            ),
            f"Correct it with `git tasks config --edit prompts/{name}`, or go back to the text "
            f"that came with the tool with {remove}."
            if name in PROMPTS
            else f"Remove it with {remove}.",
        )


_TASK: dict[str, Kind | Mapping[str, Kind]] = {
    "id": "word", "title": "line", "state": "word", "role": "word", "author": {}, "reviewer": {},
}  # fmt: skip
_DRAFT: dict[str, Mapping[str, Kind]] = {"draft": {}}
_FINDINGS: dict[str, Mapping[str, Kind]] = {"findings": {"finding": "text"}}
_FAILURES: dict[str, Mapping[str, Kind]] = {
    "failures": {"command": "text", "result": "word", "output": "text"}
}
_WORK: dict[str, Mapping[str, Kind]] = {
    "checks": {"command": "text"},
    "moved": {"count": "word", "commit": "word"},
}
_ISSUE: dict[str, Kind | Mapping[str, Kind]] = {
    **_TASK, "commit": "word", "details": {"detail": "text"},
}  # fmt: skip

PROMPTS: dict[str, Prompt] = {
    "brief": Prompt(
        "goes before the prompt of the state: who, which task, how to end",
        {**_TASK, "remarks": {"by": "line", "remark": "text"}},
    ),
    "DESIGN": Prompt("write a design", {**_TASK, **_DRAFT}),
    "DESIGN-with-findings": Prompt(
        "write it again, settling the findings", {**_TASK, **_DRAFT, **_FINDINGS}
    ),
    "DESIGN_REVIEW": Prompt("judge a design", _TASK),
    "PLAN": Prompt("write todos", {**_TASK, **_DRAFT}),
    "PLAN-with-findings": Prompt(
        "write them again, settling the findings", {**_TASK, **_DRAFT, **_FINDINGS}
    ),
    "PLAN_REVIEW": Prompt("judge todos", _TASK),
    "WORK": Prompt("do the work", {**_TASK, **_WORK}),
    "WORK-with-findings": Prompt(
        "go on with it, settling the findings", {**_TASK, **_WORK, **_FINDINGS, **_FAILURES}
    ),
    "WORK_REVIEW": Prompt("judge the change", _TASK),
    "check-failed": Prompt(
        "a check failed, and the session that did the work goes on", {**_TASK, **_FAILURES}
    ),
    "missing-result": Prompt("the turn ended and nothing was handed in", _ISSUE),
    "missing-design": Prompt("submitted without a design", _ISSUE),
    "missing-todos": Prompt("submitted without todos", _ISSUE),
    "missing-notes": Prompt("submitted without notes", _ISSUE),
    "modified-assignment": Prompt("the assignment was changed, and has been restored", _ISSUE),
    "assignment-changed": Prompt("the task was edited meanwhile", _ISSUE),
    "uncommitted": Prompt("the work is not committed", _ISSUE),
    "modified-worktree": Prompt("the tree was changed where it has to stay as it is", _ISSUE),
    "rewritten": Prompt("the history of the branch was rewritten", _ISSUE),
    "looping": Prompt("the same call was made again and again", _ISSUE),
    "aborted": Prompt("the turn was broken off in the middle of a command", _ISSUE),
    "blocked": Prompt("the agent wants the task held; asked once", _ISSUE),
}
"""Every prompt that there is."""


class _Line(NamedTuple):
    """One line: literal text at even places, names of variables at odd ones."""

    parts: tuple[str, ...]


class _Quoted(NamedTuple):
    """A text on a line of its own."""

    indent: str
    name: str


class _Section(NamedTuple):
    """What is repeated for each item of a list."""

    name: str
    nodes: tuple[_Line | _Quoted, ...]


_Node = _Line | _Quoted | _Section


class Prompts(NamedTuple):
    """All prompts, checked: rendering them cannot fail any more.

    `sources` tells for each whether it is the tool's `own` or an `override`; `ids` has the blobs
    of the overrides.
    """

    templates: Mapping[str, tuple[_Node, ...]]
    sources: Mapping[str, Literal["own", "override"]]
    ids: Mapping[str, str]

    def render(self, name: str, **values: Value) -> str:
        """Returns the text of a prompt, given a value for each of its variables."""
        kinds = PROMPTS[name].variables
        if kinds.keys() != values.keys():
            raise TypeError(f"{name} takes {', '.join(kinds)}; it was given {', '.join(values)}.")
        text = "\n".join(_rendered(self.templates[name], kinds, values))
        return _BLANK.sub("\n\n", text).strip() + "\n"


def load(
    overrides: Mapping[str, str] | None = None, ids: Mapping[str, str] | None = None
) -> Prompts:
    """Returns all prompts, own ones replaced by overrides; raises BadPrompts naming every fault."""
    replaced = overrides or {}
    faults = [fault for name in replaced if name not in PROMPTS for fault in _unknown(name)]
    templates: dict[str, tuple[_Node, ...]] = {}
    for name in PROMPTS:
        text = replaced[name] if name in replaced else own(name)
        templates[name] = _parsed(name, text, faults)
    if faults:
        raise BadPrompts(faults)
    sources = {name: "override" if name in replaced else "own" for name in PROMPTS}
    return Prompts(templates, sources, ids or {})  # type: ignore[arg-type]  # two literals


def own(name: str) -> str:
    """Returns a prompt as it came with the tool."""
    path = os.path.join(os.path.dirname(__file__), f"{name}.md")
    with open(path, encoding="utf-8") as file:
        return file.read()


def faults_of(name: str, text: str) -> tuple[Fault, ...]:
    """Returns all that is wrong with a text for one of the prompts."""
    faults: list[Fault] = []
    _parsed(name, text, faults)
    return tuple(faults)


# ------------------------------------------------------------------------------------------ reading


def _unknown(name: str) -> Iterator[Fault]:
    from difflib import get_close_matches

    near = get_close_matches(name, PROMPTS, 1)
    way = f"did you mean {near[0]}?" if near else f"the prompts are {', '.join(PROMPTS)}."
    yield Fault(name, 1, f"there is no prompt of this name; {way}")


def _parsed(name: str, text: str, faults: list[Fault]) -> tuple[_Node, ...]:
    """Returns the nodes of a prompt; what is wrong with it is added to the faults."""
    parser = _Parser(name, faults)
    # A byte order mark is no word.
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        parser.take(number, line)
    parser.end()
    return tuple(parser.nodes)


class _Parser:
    """Reads one prompt line by line."""

    def __init__(self, name: str, faults: list[Fault]) -> None:
        self.nodes: list[_Node] = []
        self._name = name
        self._faults = faults
        self._kinds = PROMPTS[name].variables
        self._open: tuple[int, str, list[_Line | _Quoted]] | None = None
        self._has_begun = False
        self._at = 0

    def take(self, number: int, line: str) -> None:
        """Reads the next line."""
        self._at = number
        if any(is_dangerous(char) and char != "\t" for char in line):
            self._fault("it holds a character that cannot be seen, or is not UTF-8.")
        alone = _ALONE.fullmatch(line)
        if not self._has_begun and line.strip():
            self._has_begun = True
            if line.lstrip()[0] in "/-" or (alone and alone[2]):
                self._fault("a prompt begins with words, not with `/`, `-` or a list.")
        if alone and alone[2] == "#":
            self._begin(alone[3])
        elif alone and alone[2] == "/":
            self._close(alone[3])
        elif alone and self._kind(alone[3]) == "text":
            self._add(_Quoted(alone[1], alone[3]))
        else:
            self._add(_Line(tuple(self._words(line))))

    def end(self) -> None:
        """Says what is missing at the end."""
        if self._open is not None:
            self._at, name, _ = self._open
            self._fault(f"{_opening(name)} is never closed: write {_closing(name)} on a line.")
        if not self._has_begun:
            self._at = 1
            self._fault("it is empty.")

    def _begin(self, name: str) -> None:
        if self._open is not None:
            self._fault(
                f"{_opening(name)} stands inside {_opening(self._open[1])}: close that first."
            )
            return
        if isinstance(self._kinds.get(name), str):
            self._fault(
                f"{_opening(name)} opens no list: write {_value(name)}, which is one value."
            )
        elif name not in self._kinds:
            self._fault(f"there is no list {name} here; {self._choice()}")
        self._open = (self._at, name, [])

    def _close(self, name: str) -> None:
        if self._open is None or self._open[1] != name:
            self._fault(f"{_closing(name)} closes what is not open.")
            return
        self.nodes.append(_Section(name, tuple(self._open[2])))
        self._open = None

    def _words(self, line: str) -> Iterator[str]:
        """Yields literal text and names of variables in turn."""
        at = 0
        for mark in _MARK.finditer(line):
            sign, name = mark.groups()
            kind = self._kind(name)
            if sign:
                self._fault(
                    f"{mark[0]} is no value: what opens and closes a list stands on a line of "
                    "its own, and nothing else begins with a sign."
                )
            elif kind == "text":
                self._fault(f"{mark[0]} stands on a line of its own, because it is quoted.")
            elif kind == "list":
                self._fault(
                    f"{mark[0]} is a list: put {_opening(name)} and {_closing(name)}, on lines of "
                    "their own, around what is said for each item."
                )
            elif kind is None:
                self._fault(self._no_variable(name))
            yield line[at : mark.start()]
            yield name
            at = mark.end()
        yield line[at:]

    def _kind(self, name: str) -> str | None:
        if self._open is not None:
            fields = self._kinds.get(self._open[1])
            if isinstance(fields, str) or fields is None:
                # It is no list, which has been said; what its fields are nobody knows.
                return "word"
            if name in fields:
                return fields[name]
            if name == NUMBER and fields:
                return "word"
        kind = self._kinds.get(name)
        return kind if kind is None or isinstance(kind, str) else "list"

    def _no_variable(self, name: str) -> str:
        for listed, fields in self._kinds.items():
            if not isinstance(fields, str) and name in fields:
                return (
                    f"{_value(name)} stands only between {_opening(listed)} and {_closing(listed)}."
                )
        return f"there is no variable {name} here; {self._choice()}"

    def _choice(self) -> str:
        names = [
            name if isinstance(kind, str) else f"#{name}" for name, kind in self._kinds.items()
        ]
        if self._open is not None:
            fields = self._kinds.get(self._open[1])
            names += fields if fields is not None and not isinstance(fields, str) else ()
        return f"choose one of {', '.join(names)}."

    def _add(self, node: _Line | _Quoted) -> None:
        if self._open is not None:
            self._open[2].append(node)
        else:
            self.nodes.append(node)

    def _fault(self, message: str) -> None:
        self._faults.append(Fault(self._name, self._at, message))


def _value(name: str) -> str:
    return "{{" + name + "}}"


def _opening(name: str) -> str:
    return _value("#" + name)


def _closing(name: str) -> str:
    return _value("/" + name)


# ---------------------------------------------------------------------------------------- rendering


def _rendered(
    nodes: Iterable[_Node], kinds: Variables, values: Mapping[str, Value]
) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, _Section):
            yield from _repeated(node, kinds, values)
        else:
            yield _filled(node, kinds, values)


def _repeated(section: _Section, kinds: Variables, values: Mapping[str, Value]) -> Iterator[str]:
    value = values[section.name]
    items: Sequence[Mapping[str, str]]
    if isinstance(value, bool):
        items = ({},) if value else ()
    else:
        assert not isinstance(value, str)
        items = value
    fields = kinds[section.name]
    assert not isinstance(fields, str)
    inner: Variables = {**kinds, **fields, NUMBER: "word"}
    size = 0
    for number, item in enumerate(items, 1):
        if size > LIST_LIMIT:
            yield f"> … {len(items) - number + 1} more: `git tasks show`"
            return
        given = {**values, **item, NUMBER: str(number)}
        text = "\n".join(_filled(node, inner, given) for node in section.nodes)
        size += len(text)
        yield text


def _filled(node: _Line | _Quoted, kinds: Variables, values: Mapping[str, Value]) -> str:
    if isinstance(node, _Quoted):
        return _quoted(str(values[node.name]), node.indent)
    return "".join(
        _inline(str(values[part]), kinds[part] == "word") if place % 2 else part
        for place, part in enumerate(node.parts)
    )


def _inline(value: str, is_word: bool) -> str:
    if is_word and _WORD.fullmatch(value):
        return value
    return _visible(json.dumps(_shortened(value, LINE_LIMIT), ensure_ascii=False))


def _quoted(value: str, indent: str) -> str:
    text = value.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    lines = _shortened(text, TEXT_LIMIT).split("\n")
    return "\n".join(f"{indent}> {_visible(line)}".rstrip() for line in lines)


def _shortened(text: str, limit: int) -> str:
    more = len(text) - limit
    return text if more <= 0 else f"{text[:limit]} … ({more} more characters)"


def _visible(text: str) -> str:
    """Returns a text in which nothing hides, turns round or moves a cursor."""
    if text.isprintable():
        return text
    return "".join(char if _is_seen(char) else _spelled(char) for char in text)


def _is_seen(char: str) -> bool:
    # Spaces of other scripts count as not printable, and do no harm.
    return char.isprintable() or char == "\t" or (char.isspace() and not is_dangerous(char))


def _spelled(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
