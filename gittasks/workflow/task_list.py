"""Many tasks from one file: Markdown, or JSON lines when the first character is `{`.

JSON lines: one object a line with `title` and, if wanted, `body`, `enter` (design, plan, work),
`depends_on`, `parent`, `checks`, `labels`, `priority` and `key`.

Markdown: each heading `# Title` begins a task. The lines right below it, up to the first that is
not `name: value`, are its fields, by the same names; `depends_on` and `labels` are separated by
commas, `check` may be repeated. The rest, up to the next such heading outside of fenced code, is
the body.

`depends_on` and `parent` name tasks by id, or by the `key` of a task of the same file, which wins.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from gittasks.domain.errors import GittasksError, UsageFault
from gittasks.domain.fields import DEPENDENCY_LIMIT, TITLE_LIMIT, is_text, is_title, shown
from gittasks.domain.ids import parse_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

FIELDS = (
    "title", "body", "enter", "depends_on", "parent", "checks", "labels", "priority", "key",
)  # fmt: skip
_FIELD_LINE = re.compile(r"([a-z_]+):(?:[ \t]+(.*?))?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SHOWN_FAULTS = 50


class Listed(NamedTuple):
    """One task of the file, checked; `depends_on` and `parent` hold keys or ids."""

    line: int
    title: str
    body: bytes = b""
    enter: Literal["design", "plan", "work"] | None = None
    depends_on: tuple[str, ...] = ()
    parent: str | None = None
    checks: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    priority: int = 2
    key: str | None = None


class Fault(NamedTuple):
    """One thing wrong with the file: line, field (or ""), sentence."""

    line: int
    field: str
    message: str


def read(data: bytes, file: str) -> list[Listed]:
    """Returns the tasks of a file in its order; raises UsageFault with every fault by line."""
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refusal(file, [Fault(line, "", "This is not UTF-8.")]) from None
    faults: list[Fault] = []
    rows = _json_lines if text.lstrip()[:1] == "{" else _markdown
    tasks = _checked(rows(text, faults), faults)
    if not faults:
        faults += _name_faults(tasks)
    if faults:
        raise _refusal(file, sorted(faults))
    if not tasks:
        raise UsageFault(
            f"There is no task in {shown(file)}.",
            "Begin each task with a line `# Title`, or write one JSON object a line.",
        )
    return tasks


def _refusal(file: str, faults: Sequence[Fault]) -> UsageFault:
    count = "one fault" if len(faults) == 1 else f"{len(faults)} faults"
    lines = [f"{shown(file)} has {count}; nothing was created."]
    for fault in faults[:_SHOWN_FAULTS]:
        where = f"line {fault.line}" + (f", {fault.field}" if fault.field else "")
        lines.append(f"  {where}: {fault.message}")
    if len(faults) > _SHOWN_FAULTS:
        lines.append(f"  {len(faults) - _SHOWN_FAULTS} more faults are not shown.")
    return UsageFault("\n".join(lines), "Correct the lines named and run the command again.")


Row = tuple[int, dict[str, Any], dict[str, int]]
"""The line where a task begins, its raw fields, and the line of each where that is another."""


def _json_lines(text: str, faults: list[Fault]) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        twice: list[str] = []
        try:
            value = json.loads(line, object_pairs_hook=_noting(twice))
        except (ValueError, RecursionError) as error:
            why = str(error) if isinstance(error, ValueError) else "nested too deeply"
            faults.append(Fault(number, "", f"This is not one JSON object a line: {why}."))
            continue
        if not isinstance(value, dict):
            faults.append(Fault(number, "", "This is not a JSON object."))
            continue
        faults += [Fault(number, name, "The field stands here twice.") for name in twice]
        yield number, value, {}


def _noting(twice: list[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, value in pairs:
            if name in values:
                twice.append(shown(name))
            values[name] = value
        return values

    return build


def _markdown(text: str, faults: list[Fault]) -> Iterator[Row]:
    lines = re.split(r"(?<=\n)", text)
    starts = list(_headings(lines))
    before = next((n for n in range(starts[0] if starts else len(lines)) if lines[n].strip()), None)
    if before is not None:
        sentence = "This stands before the first task; begin each task with a line `# Title`."
        faults.append(Fault(before + 1, "", sentence))
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        yield _markdown_row(lines, start, end, faults)


def _headings(lines: Sequence[str]) -> Iterator[int]:
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
            fence = ""
        elif not fence and (line.startswith(("# ", "#\t")) or line.strip() == "#"):
            yield number


def _markdown_row(lines: Sequence[str], start: int, end: int, faults: list[Fault]) -> Row:
    values: dict[str, Any] = {"title": lines[start][1:].strip()}
    where: dict[str, int] = {}
    at = start + 1
    while at < end and (field := _FIELD_LINE.fullmatch(lines[at].rstrip("\r\n"))):
        name, text = field[1], field[2] or ""
        if name in ("check", "checks"):
            values.setdefault("checks", []).append(text)
            where.setdefault("checks", at + 1)
        elif name in values or name == "body":
            faults.append(Fault(at + 1, name, "The field does not stand here, or not twice."))
        else:
            values[name] = _from_text(name, text)
            where[name] = at + 1
        at += 1
    if at < end and not lines[at].strip():
        at += 1
    values["body"] = _without_blank_end("".join(lines[at:end]))
    return start + 1, values, where


def _from_text(name: str, text: str) -> Any:
    if name in ("depends_on", "labels"):
        return [part.strip() for part in text.strip("[]").split(",") if part.strip()]
    if name == "priority" and text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    return text


def _without_blank_end(body: str) -> str:
    kept = body.rstrip()
    if not kept:
        return ""
    rest = body[len(kept) :]
    return kept + rest[: rest.find("\n") + 1] if "\n" in rest else body


def _checked(rows: Iterator[Row], faults: list[Fault]) -> list[Listed]:
    from pydantic import ValidationError

    model = _model()
    tasks = []
    for line, values, where in rows:
        try:
            checked = model.model_validate(values).model_dump(exclude_none=True)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_context=True):
                name = str(one["loc"][0]) if one["loc"] else ""
                faults.append(Fault(where.get(name, line), shown(name), _sentence(one)))
            continue
        checked["body"] = checked.get("body", "").encode()
        for name in ("depends_on", "checks", "labels"):
            checked[name] = tuple(dict.fromkeys(checked.get(name, ())))
        tasks.append(Listed(line, **checked))
    return tasks


def _model() -> Any:
    """Returns the model of one task; made here because only this command pays for pydantic."""
    from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

    text = Annotated[str, AfterValidator(_encodable)]
    line = Annotated[text, AfterValidator(_one_line)]
    name = Annotated[line, BeforeValidator(_named)]

    class OneTask(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)

        title: Annotated[str, AfterValidator(_title)]
        body: text | None = None
        enter: Literal["design", "plan", "work"] | None = None
        depends_on: Annotated[list[name], Field(max_length=DEPENDENCY_LIMIT)] | None = None
        parent: name | None = None
        checks: list[Annotated[text, AfterValidator(_not_blank)]] | None = None
        labels: list[line] | None = None
        priority: Annotated[int, Field(ge=0, le=4)] | None = None
        key: line | None = None

    OneTask.model_rebuild(_types_namespace={**globals(), **locals()})
    return OneTask


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("The text holds half of a character.") from None
    return text


def _title(text: str) -> str:
    if not text.strip():
        raise ValueError("The title is blank.")
    if not is_title(text):
        raise ValueError(f"A title is one line of at most {TITLE_LIMIT} characters.")
    return text


def _not_blank(text: str) -> str:
    if not is_text(text):
        raise ValueError("The text is blank.")
    return text


def _one_line(text: str) -> str:
    if not is_title(text):
        raise ValueError("This is blank, too long, or more than one line.")
    return text


def _named(value: Any) -> Any:
    return str(value) if type(value) is int and value > 0 else value


def _sentence(error: Any) -> str:
    match error["type"]:
        case "missing":
            return "The field is missing."
        case "extra_forbidden":
            from difflib import get_close_matches

            near = get_close_matches(str(error["loc"][0]), FIELDS, 1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(FIELDS)}."
            return f"There is no such field; {hint}"
        case "value_error":
            return str(error["ctx"]["error"])
        case _:
            return str(error["msg"]).removesuffix(".") + f", not {shown(repr(error['input']))}."


def _name_faults(tasks: Sequence[Listed]) -> Iterator[Fault]:
    lines: dict[str, int] = {}
    for task in tasks:
        if task.key is not None and task.key in lines:
            sentence = f"The key {shown(task.key)} stands at line {lines[task.key]} already."
            yield Fault(task.line, "key", sentence)
        elif task.key is not None:
            lines[task.key] = task.line
    for task in tasks:
        for field, names in (("depends_on", task.depends_on), ("parent", (task.parent,))):
            for name in names:
                if name is not None and name not in lines and not _is_spelled(name):
                    sentence = f"{shown(name)} is neither a key of this file nor a task id."
                    yield Fault(task.line, field, sentence)
    ringed = _below_themselves({task.key: task.parent for task in tasks if task.key is not None})
    for task in tasks:
        if task.key in ringed:
            verb = "be its own parent" if task.parent == task.key else "stand below itself"
            yield Fault(task.line, "parent", f"The task {shown(str(task.key))} cannot {verb}.")


def _below_themselves(above: Mapping[str, str | None]) -> set[str]:
    """Returns the keys that stand in a ring of parents."""
    ringed: set[str] = set()
    done: set[str] = set()
    for key in above:
        path: dict[str, None] = {}
        current: str | None = key
        while (
            current is not None and current in above and current not in done and current not in path
        ):
            path[current] = None
            current = above[current]
        if current in path:
            names = list(path)
            ringed.update(names[names.index(str(current)) :])
        done.update(path)
    return ringed


def _is_spelled(name: str) -> bool:
    try:
        parse_id(name)
    except GittasksError:
        return False
    return True
