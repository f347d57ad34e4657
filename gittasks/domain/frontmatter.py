"""The task document: a header of YAML between two fences, then the body.

A document is UTF-8 text of at most 4 MiB. Its first line is `---`, the header follows, the next
line that is exactly `---` ends it, and everything after that line is the body. The body is never
read, changed, trimmed or completed: it may hold any bytes, also lines of three dashes.

The header has one field a line, in the order of this table. A field that has nothing to say is
left out; `id`, `uid`, `title`, `state`, `entered_at`, `created_at` and `created_by` never are.

| field | value |
|---|---|
| `id` | six digits in quotes, as in the name of the file |
| `uid` | 32 hexadecimal digits; the same in every clone, also after a renumbering |
| `title` | one line of at most 500 characters |
| `state` | a bare word, one of the states |
| `entered_at` | when the task came into its state |
| `enters` | DESIGN, PLAN or WORK; exactly while the task is BLOCKED |
| `outcome` | landed or aborted; exactly when the task is CLOSED |
| `parent` | id |
| `position` | key that orders the task among its siblings in place of its id |
| `depends_on` | ids, at most 1,000 |
| `supersedes`, `follows` | id |
| `labels` | texts |
| `priority` | 0 to 4; 2 when left out |
| `checks` | commands, one a line |
| `assignee` | name |
| `claimed_by`, `claim`, `claimed_at`, `lease_expires` | the claim: all four or none |
| `branch`, `base` | the branch of the task, and where it began |
| `dispatched`, `submitted_tip`, `checked_tip`, `landed` | full ids of commits |
| `draft` | `section`, `offset`: its heading, and the byte of the body where it begins; only in review |
| `rejections`, `check_failures` | numbers; 0 when left out |
| `former_ids` | ids the task had before it was renumbered |
| `findings` | `state`, `round`, `items`: what the next author has to answer |
| `held_reason` | text, also of several lines; exactly while the task is held |
| `attention` | rows of `event`, `kind`, `text` that the manager has to look at |
| `proposed_by` | name |
| `artifacts` | names and values |
| `costs` | rows of `state`, `slot`, `seconds`, `cost`, `tokens`, one for each claim that ended |
| `created_at`, `created_by` | when, and who |
| `x-…` | the user's own fields, after all others, kept byte for byte |

Spelling: a text stands in double quotes as in JSON, on one line, so that JSON, YAML 1.1 and
YAML 1.2 read the same. Control characters, line ends, byte order marks, halves of characters and
the marks that turn the direction of writing are spelled `\\uXXXX`; all other text is as it is.
Times are UTC, such as `"2026-11-30T17:17:12Z"`. States, outcomes and numbers stand bare. Ids and
labels are a list on one line, `["000001", "000002"]`. Other lists have one item a line behind
`  - `, rows of several values are maps in braces, `draft`, `findings` and `artifacts` are maps
with a key a line.

Reading is strict, whoever wrote the document. Whatever two readers of YAML could take for
different things is refused with the line, the field and what to write instead: ids, numbers,
dates, `no` and the like without quotes, keys that stand twice, anchors, aliases, tags, merged
maps, tabs, CR LF, byte order marks, comments behind a text. All problems of a document are told
at once. Plain texts that cannot be mistaken, block texts and other orders of the fields are read,
and become canonical when the document is written the next time. Comments go then, apart from
those inside of the user's own fields.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gittasks.domain.fields import (
    AUTHOR_STATES,
    COUNT_LIMIT,
    DOCUMENT_LIMIT,
    BadDocument,
    Problem,
    id_of_file,
    is_branch,
    is_commit,
    is_dangerous,
    is_extra,
    is_key,
    is_name,
    is_text,
    is_time,
    is_title,
    is_token,
    quote,
    read_json,
    read_text,
    read_texts,
    violations,
)
from gittasks.domain.ids import is_id
from gittasks.domain.task import OUTCOMES, STATES, Attention, Cost, Draft, Findings, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "BadDocument",
    "Problem",
    "check_field",
    "from_header_json",
    "header_json",
    "parse",
    "render",
    "render_header",
    "split",
    "task_dict",
]

# How a field stands in the canonical form: a quoted text, a bare word, a number, texts in
# brackets on one line, or lines of its own below the key.
_TEXT, _WORD, _COUNT, _TEXTS, _BLOCK = range(5)

_DEFAULTS: list[Any] = [Task._field_defaults.get(name) for name in Task._fields]
_REQUIRED = ("id", "uid", "title", "state", "entered_at", "created_at", "created_by")
_OMITTED: list[Any] = [
    None if name in _REQUIRED else Task._field_defaults[name] for name in Task._fields
]
_INDEX = {name: index for index, name in enumerate(Task._fields)}
_EXTRA = _INDEX["extra"]
_PLAIN = bytes([10, *range(32, 127)])
_ATTENTION = Attention._fields
_COST = Cost._fields
_compact = json.JSONEncoder(separators=(",", ":")).encode


def parse(data: bytes, file: str = "") -> tuple[Task, bytes]:
    """Returns the task and the body of a document; raises BadDocument with all that is wrong."""
    end = data.find(b"\n---\n", 3)
    if end >= 4 and len(data) <= DOCUMENT_LIMIT and data[:4] == b"---\n":
        body = data[end + 5 :]
        task = _canonical(data[4:end], len(body))
        if task is not None and id_of_file(file) in ("", task.id):
            return task, body
    from gittasks.domain import strict

    return strict.read(data, file)


def split(data: bytes) -> tuple[bytes, bytes]:
    """Returns the header with both fences, and the body; raises BadDocument without fences."""
    end = data.find(b"\n---\n", 3)
    if end < 0 or data[:4] != b"---\n":
        from gittasks.domain import strict

        return strict.split(data, "")
    return data[: end + 5], data[end + 5 :]


def render(task: Task, body: bytes) -> bytes:
    """Returns the document in its canonical form; the body follows as it is."""
    return render_header(task) + body


def render_header(task: Task) -> bytes:
    """Returns the canonical header of the task with both fences."""
    lines = ["---"]
    value: Any
    for (name, form, _), value, omitted in zip(_FORMS, task, _OMITTED, strict=False):
        if value == omitted:
            continue
        if form == _TEXT:
            lines.append(f"{name}: {quote(value)}")
        elif form == _TEXTS:
            lines.append(f"{name}: [{', '.join(map(quote, value))}]")
        elif form == _BLOCK:
            lines.append(name + ":")
            lines += _WRITERS[name](value)
        else:
            lines.append(f"{name}: {value}")
    for name, text in task.extra:
        lines.append(f"{name}:{text}")
    lines.append("---\n")
    return "\n".join(lines).encode()


def header_json(task: Task) -> str:
    """Returns the task as one line of JSON without what is default; nothing is lost."""
    return _compact(
        {
            name: value
            for name, value, default in zip(Task._fields, task, _DEFAULTS, strict=True)
            if value != default
        }
    )


def from_header_json(text: str) -> Task:
    """Returns the task that `header_json` wrote."""
    values = _DEFAULTS[:]
    for name, value in json.loads(text).items():
        values[_INDEX[name]] = value if type(value) is not list else _rebuilt(name, value)
    return Task._make(values)


def task_dict(task: Task) -> dict[str, Any]:
    """Returns the task for JSON output: every field by its name, lists always lists."""
    result: dict[str, Any] = {}
    for name, value in zip(Task._fields[:_EXTRA], task, strict=False):
        if type(value) is tuple:
            result[name] = [_plain(item) for item in value]
        else:
            result[name] = _plain(value)
    result["artifacts"] = dict(task.artifacts)
    for name, text in task.extra:
        bare = text.strip()
        decoded = read_text(bare)
        result[name] = bare if decoded is None else decoded
    return result


def check_field(name: str, value: object) -> Any:
    """Returns the value as the task keeps it; raises UsageFault naming field and value."""
    from gittasks.domain import strict

    return strict.check_field(name, value)


def _plain(value: Any) -> Any:
    if not hasattr(value, "_asdict"):
        return value
    return {
        name: list(item) if type(item) is tuple else item for name, item in value._asdict().items()
    }


def _rebuilt(name: str, value: list[Any]) -> Any:
    if name == "draft":
        return Draft(*value)
    if name == "findings":
        return Findings(value[0], value[1], tuple(value[2]))
    if name == "attention":
        return tuple(Attention(*item) for item in value)
    if name == "costs":
        return tuple(Cost(*item) for item in value)
    if name in ("artifacts", "extra"):
        return tuple((key, text) for key, text in value)
    return tuple(value)


# ------------------------------------------------------------------------------ canonical reader
# It returns None for whatever it does not know; the strict reader then finds out what that is.


def _canonical(raw: bytes, size: int) -> Task | None:
    text = _safe_text(raw)
    if text is None:
        return None
    values = _DEFAULTS[:]
    lines = text.split("\n")
    position, count, last = 0, len(lines), -1
    while position < count:
        name, colon, rest = lines[position].partition(":")
        position += 1
        known = _KNOWN.get(name)
        if known is None:
            # The user's keys come last.
            extra = _read_extra(lines[position - 1 :])
            if extra is None:
                return None
            values[_EXTRA] = extra
            break
        index, form, check = known
        # Ascending order also means that no key stands twice.
        if index <= last or not colon:
            return None
        last = index
        if form == _BLOCK:
            start = position
            while position < count and lines[position][:2] == "  ":
                position += 1
            value = None if rest or start == position else check(lines[start:position])
        else:
            value = _read_inline(rest, form, check)
        if value is None:
            return None
        values[index] = value
    if not all(values[index] for index in _REQUIRED_INDEXES):
        return None
    task = Task._make(values)
    return None if violations(task, size) else task


def _read_inline(rest: str, form: int, check: Callable[[str], Any]) -> Any:
    if rest[:1] != " ":
        return None
    if form == _TEXT:
        value = read_text(rest[1:])
        return value if value is not None and check(value) else None
    if form == _TEXTS:
        return read_texts(rest[1:], check)
    return check(rest[1:])


def _safe_text(raw: bytes) -> str | None:
    if not raw.translate(None, _PLAIN):
        return raw.decode("ascii")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    if any(is_dangerous(character) for character in set(text) if character != "\n"):
        return None
    return text


def _read_count(raw: str) -> int | None:
    if not (raw.isdigit() and raw.isascii()) or len(raw) > 15 or (raw[0] == "0" and raw != "0"):
        return None
    return int(raw)


def _read_priority(raw: str) -> int | None:
    return int(raw) if raw in ("0", "1", "2", "3", "4") else None


def _read_extra(lines: Sequence[str]) -> tuple[tuple[str, str], ...] | None:
    extra: dict[str, str] = {}
    for line in lines:
        name, _, rest = line.partition(":")
        if not is_extra(name) or name in extra or rest[:1] != " ":
            return None
        if read_text(rest[1:]) is None and not _is_simple(rest[1:]):
            return None
        extra[name] = rest
    return tuple(extra.items())


def _is_simple(raw: str) -> bool:
    # Words, numbers and addresses: nothing in them can mean anything to a reader of YAML.
    return (
        raw[:1].isalnum()
        and raw.isascii()
        and ": " not in raw
        and raw[-1] not in ": "
        and raw.translate(_WORD_MARKS).isalnum()
    )


_WORD_MARKS = dict.fromkeys(map(ord, " _./:-"))


def _read_lines(lines: Sequence[str], indent: str = "  - ") -> tuple[str, ...] | None:
    values = []
    for line in lines:
        value = read_text(line[len(indent) :])
        if value is None or not is_text(value) or not line.startswith(indent):
            return None
        values.append(value)
    return tuple(values)


def _write_lines(values: Sequence[str]) -> list[str]:
    return [f"  - {quote(value)}" for value in values]


def _read_draft(lines: Sequence[str]) -> Draft | None:
    if len(lines) != 2 or lines[0][:11] != "  section: " or lines[1][:10] != "  offset: ":
        return None
    section, offset = read_text(lines[0][11:]), _read_count(lines[1][10:])
    if section is None or offset is None or not is_text(section):
        return None
    return Draft(section, offset)


def _write_draft(draft: Draft) -> list[str]:
    return [f"  section: {quote(draft.section)}", f"  offset: {draft.offset}"]


def _read_findings(lines: Sequence[str]) -> Findings | None:
    if len(lines) < 4 or lines[0][:9] != "  state: " or lines[1][:9] != "  round: ":
        return None
    state, number = lines[0][9:], _read_count(lines[1][9:])
    items = _read_lines(lines[3:], "    - ")
    if state not in AUTHOR_STATES or not number or lines[2] != "  items:" or items is None:
        return None
    return Findings(state, number, items)  # type: ignore[arg-type]


def _write_findings(findings: Findings) -> list[str]:
    return [
        f"  state: {findings.state}",
        f"  round: {findings.round}",
        "  items:",
        *(f"    - {quote(item)}" for item in findings.items),
    ]


def _read_attention(lines: Sequence[str]) -> tuple[Attention, ...] | None:
    rows = []
    for line in lines:
        row = read_json(line[4:])
        if type(row) is not dict or tuple(row) != _ATTENTION:
            return None
        values = tuple(row.values())
        if not all(type(value) is str for value in values):
            return None
        rows.append(Attention(*values))
        if not is_text(rows[-1].event) or not is_text(rows[-1].kind):
            return None
    return tuple(rows) if _write_attention(rows) == lines else None


def _write_attention(rows: Sequence[Attention]) -> list[str]:
    return [
        f'  - {{"event": {quote(row.event)}, "kind": {quote(row.kind)}, "text": {quote(row.text)}}}'
        for row in rows
    ]


def _read_costs(lines: Sequence[str]) -> tuple[Cost, ...] | None:
    rows = []
    for line in lines:
        row = read_json(line[4:])
        if type(row) is not dict or tuple(row) != _COST:
            return None
        state, slot, seconds, cost, tokens = row.values()
        if state not in STATES or type(slot) is not str or type(cost) is not float:
            return None
        if type(seconds) is not int or type(tokens) is not int:
            return None
        if not (
            0 <= seconds < COUNT_LIMIT and 0 <= tokens < COUNT_LIMIT and 0 <= cost < COUNT_LIMIT
        ):
            return None
        rows.append(Cost(state, slot, seconds, cost, tokens))
    return tuple(rows) if _write_costs(rows) == lines else None


def _write_costs(rows: Sequence[Cost]) -> list[str]:
    return [
        f'  - {{"state": {quote(row.state)}, "slot": {quote(row.slot)}, "seconds": {row.seconds},'
        f' "cost": {_number(row.cost)}, "tokens": {row.tokens}}}'
        for row in rows
    ]


def _number(value: float) -> str:
    # YAML 1.1 takes 1e-07 for a text: it wants a point in every number that has an exponent.
    text = repr(float(value))
    return text if "." in text else text.replace("e", ".0e")


def _read_artifacts(lines: Sequence[str]) -> tuple[tuple[str, str], ...] | None:
    found: dict[str, str] = {}
    for line in lines:
        # An escaped quote stands behind a backslash, so this separator is in no name.
        name, middle, value = line[2:].partition('": "')
        key, text = read_text(name + '"'), read_text('"' + value)
        if not middle or key is None or text is None or key in found or not is_name(key):
            return None
        found[key] = text
    return tuple(found.items())


def _write_artifacts(artifacts: Sequence[tuple[str, str]]) -> list[str]:
    return [f"  {quote(name)}: {quote(value)}" for name, value in artifacts]


def _one_of(words: Sequence[str]) -> Callable[[str], str | None]:
    return {word: word for word in words}.get


_FORMS: tuple[tuple[str, int, Any], ...] = (
    ("id", _TEXT, is_id),
    ("uid", _TEXT, is_token),
    ("title", _TEXT, is_title),
    ("state", _WORD, _one_of(STATES)),
    ("entered_at", _TEXT, is_time),
    ("enters", _WORD, _one_of(AUTHOR_STATES)),
    ("outcome", _WORD, _one_of(OUTCOMES)),
    ("parent", _TEXT, is_id),
    ("position", _TEXT, is_key),
    ("depends_on", _TEXTS, is_id),
    ("supersedes", _TEXT, is_id),
    ("follows", _TEXT, is_id),
    ("labels", _TEXTS, is_text),
    ("priority", _COUNT, _read_priority),
    ("checks", _BLOCK, _read_lines),
    ("assignee", _TEXT, is_text),
    ("claimed_by", _TEXT, is_text),
    ("claim", _TEXT, is_token),
    ("claimed_at", _TEXT, is_time),
    ("lease_expires", _TEXT, is_time),
    ("branch", _TEXT, is_branch),
    ("base", _TEXT, is_branch),
    ("dispatched", _TEXT, is_commit),
    ("submitted_tip", _TEXT, is_commit),
    ("checked_tip", _TEXT, is_commit),
    ("landed", _TEXT, is_commit),
    ("draft", _BLOCK, _read_draft),
    ("rejections", _COUNT, _read_count),
    ("check_failures", _COUNT, _read_count),
    ("former_ids", _TEXTS, is_id),
    ("findings", _BLOCK, _read_findings),
    ("held_reason", _TEXT, is_text),
    ("attention", _BLOCK, _read_attention),
    ("proposed_by", _TEXT, is_text),
    ("artifacts", _BLOCK, _read_artifacts),
    ("costs", _BLOCK, _read_costs),
    ("created_at", _TEXT, is_time),
    ("created_by", _TEXT, is_text),
)
_KNOWN = {name: (index, form, check) for index, (name, form, check) in enumerate(_FORMS)}
_REQUIRED_INDEXES = tuple(_INDEX[name] for name in _REQUIRED)
_WRITERS: dict[str, Callable[[Any], list[str]]] = {
    "checks": _write_lines,
    "draft": _write_draft,
    "findings": _write_findings,
    "attention": _write_attention,
    "artifacts": _write_artifacts,
    "costs": _write_costs,
}
