"""What holds for every task, every body, and every text that could pass for a document."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gittasks.domain import frontmatter, strict
from gittasks.domain.fields import quote
from gittasks.domain.frontmatter import BadDocument
from gittasks.domain.task import STATES, Attention, Cost, Draft, Findings, Task

# Hypothesis may take as long as it likes on a busy machine; the number of examples is the limit.
quick = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

HOSTILE = st.sampled_from(
    ["no", "000123", "12:30", "@x", "a: b", "- x", "[", '"', "a\nb", "---", "\u202e", "\ufeff",
     "\x00", "\x85", "\u2028", "<<", "*a", "# x", "x #y", "\\", "{}", "~", "\ufffe", "é", "😀", "\xa0",
     "a\u200db", "\t", "\r\n", "%", "&a b", "!t", "'", "|", ">", "\x7f", "', '", '", "', '": "']
)  # fmt: skip
CHARACTERS = st.characters(exclude_categories=["Cs"])
ANY_TEXT = st.text(CHARACTERS, max_size=12) | st.lists(HOSTILE, max_size=3).map("".join)
TEXT = ANY_TEXT.filter(lambda text: text.strip() != "")
ONE_LINE = TEXT.map(
    lambda text: "".join(c for c in text if c.isprintable() or c in "\u202e\ufeff\u200d\xa0")
).filter(lambda text: text.strip() != "")
ID = st.integers(1, 999_998).map(lambda number: f"{number:06d}")
TOKEN = st.text("0123456789abcdef", min_size=32, max_size=32)
COMMIT = st.text("0123456789abcdef", min_size=40, max_size=40)
TIME = st.datetimes().map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20))
COUNT = st.integers(0, 10**15 - 1)
EXTRA = st.dictionaries(
    st.from_regex(r"x-[a-z0-9][a-z0-9_.-]{0,8}", fullmatch=True),
    st.one_of(
        ANY_TEXT.map(lambda text: " " + quote(text)),
        st.sampled_from([" 1", " no", " http://a.b/c", "", "\n- a\n- b", " |\n  a\n\n", " [a,\n b]",
                         " a b:c", " 'it'", "\n  # note\n  a: 1", " a-", " a:b", " # note"]),
    ),
    max_size=3,
).map(lambda found: tuple(found.items()))  # fmt: skip


def many(
    values: st.SearchStrategy[Any], least: int = 0, unique: bool = False
) -> st.SearchStrategy[Any]:
    return st.lists(values, min_size=least, max_size=3, unique=unique).map(tuple)


ENTERED: st.SearchStrategy[Any] = st.sampled_from(["DESIGN", "PLAN", "WORK"])
FINDINGS = st.tuples(ENTERED, st.integers(1, 99), many(TEXT, least=1)).map(
    lambda values: Findings(*values)
)
ATTENTION = st.tuples(TEXT, TEXT, ANY_TEXT).map(lambda values: Attention(*values))
MONEY = st.floats(0, 10**14)
COST = st.tuples(st.sampled_from(STATES), ANY_TEXT, COUNT, MONEY, COUNT).map(
    lambda values: Cost(*values)
)
REQUIRED: dict[str, st.SearchStrategy[Any]] = {
    "id": st.just("999999"),
    "uid": TOKEN,
    "title": ONE_LINE,
    "state": st.sampled_from(STATES),
    "entered_at": TIME,
    "created_at": TIME,
    "created_by": TEXT,
}
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "parent": ID,
    "position": st.text("0123456789abcz", min_size=1, max_size=9),
    "depends_on": many(ID, unique=True),
    "supersedes": ID,
    "labels": many(TEXT),
    "priority": st.integers(0, 4),
    "checks": many(TEXT),
    "assignee": TEXT,
    "branch": st.just("task/999999"),
    "landed": COMMIT,
    "rejections": COUNT,
    "former_ids": many(ID),
    "findings": FINDINGS,
    "attention": many(ATTENTION),
    "artifacts": st.dictionaries(ONE_LINE, ANY_TEXT, max_size=3).map(
        lambda found: tuple(found.items())
    ),
    "costs": many(COST),
    "extra": EXTRA,
}
CLAIM = st.fixed_dictionaries(
    {"claimed_by": TEXT, "claim": TOKEN, "claimed_at": TIME, "lease_expires": TIME}
)


@st.composite
def documents(draw: st.DrawFn) -> tuple[Task, bytes]:
    """Returns a task in which no field contradicts another, and a body."""
    body = draw(st.binary(max_size=20) | st.sampled_from([b"\n---\n", b"---", b"\r\n\xef\xbb\xbf"]))
    task = Task(**draw(st.fixed_dictionaries(REQUIRED, optional=OPTIONAL)))
    changes: dict[str, Any] = dict(draw(CLAIM | st.just({})))
    if task.state == "BLOCKED":
        changes["enters"] = draw(ENTERED)
    elif task.state == "CLOSED":
        changes["outcome"] = draw(st.sampled_from(["landed", "aborted"]))
    elif task.state.startswith("HELD_"):
        changes["held_reason"] = draw(TEXT)
    elif task.state in ("DESIGN_REVIEW", "PLAN_REVIEW"):
        changes["draft"] = Draft(draw(TEXT), draw(st.integers(0, len(body))))
    return task._replace(**changes), body


def outcome(reader: Any, data: bytes) -> Any:
    """Returns what the reader makes of the bytes; None if it refuses them."""
    try:
        return reader(data, "")
    except BadDocument:
        return None


def require_yaml_agrees(task: Task, header: str) -> None:
    loaded = yaml.safe_load(header.replace("\n...", "\n"))
    shown = frontmatter.task_dict(task)
    ours = {name: value for name, value in loaded.items() if not name.startswith("x-")}
    assert ours == {name: shown[name] for name in ours}


@quick
@given(documents())
def test_what_is_written_is_read_back(document: tuple[Task, bytes]) -> None:
    task, body = document
    assert frontmatter.parse(frontmatter.render(task, body)) == (task, body)


@quick
@given(documents())
def test_what_is_canonical_is_written_as_it_was(document: tuple[Task, bytes]) -> None:
    data = frontmatter.render(*document)
    assert frontmatter.render(*frontmatter.parse(data)) == data


@quick
@given(documents())
def test_both_readers_read_the_same(document: tuple[Task, bytes]) -> None:
    data = frontmatter.render(*document)
    assert strict.read(data, "") == frontmatter.parse(data)


@quick
@given(documents())
def test_yaml_reads_the_same(document: tuple[Task, bytes]) -> None:
    header, _ = frontmatter.split(frontmatter.render(*document))
    require_yaml_agrees(document[0], header[4:-4].decode())


@quick
@given(documents())
def test_the_header_in_json_is_read_back(document: tuple[Task, bytes]) -> None:
    assert frontmatter.from_header_json(frontmatter.header_json(document[0])) == document[0]


@quick
@given(documents())
def test_a_header_has_no_character_that_hides(document: tuple[Task, bytes]) -> None:
    task = document[0]._replace(extra=())
    header = frontmatter.render_header(task).decode()
    assert [c for c in header if c in "\x00\x7f\x85\u200e\u2028\u202e\u2066\ufeff\ufffe"] == []


@quick
@given(
    documents(),
    st.lists(
        st.tuples(st.integers(0, 900), st.integers(0, 3), HOSTILE | ANY_TEXT),
        min_size=1,
        max_size=3,
    ),
)
def test_a_document_that_was_changed_by_hand_is_refused_or_read_by_both_alike(
    document: tuple[Task, bytes], edits: list[tuple[int, int, str]]
) -> None:
    data = frontmatter.render(*document)
    for place, length, text in edits:
        at = place % len(data)
        data = data[:at] + text.encode() + data[at + length :]
    assert outcome(frontmatter.parse, data) == outcome(strict.read, data)


@quick
@given(documents(), st.integers(0, 99), HOSTILE | ANY_TEXT)
def test_a_line_that_was_written_by_hand_is_refused_or_means_what_yaml_says(
    document: tuple[Task, bytes], place: int, text: str
) -> None:
    task = document[0]._replace(extra=())
    lines = frontmatter.render_header(task).decode().split("\n")
    at = 1 + place % (len(lines) - 3)
    name, colon, _ = lines[at].partition(": ")
    lines[at] = f"{name}{colon}{text}"
    header = "\n".join(lines)
    read = outcome(frontmatter.parse, header.encode())
    if read is not None:
        require_yaml_agrees(read[0], header[4:-4])


@quick
@given(st.from_regex(r"[-+.~<=]?[0-9A-Za-z_.,:+~<=# -]{0,9}", fullmatch=True))
@example("+.5")
@example("190:20:30")
@example("1e3")
@example("a #b")
def test_a_plain_text_is_refused_or_a_text_for_yaml_too(text: str) -> None:
    document = f'---\nid: "000001"\nuid: "{"0" * 32}"\ntitle: {text}\nstate: NEW\n'
    times = "".join(f'{name}: "2026-01-01T00:00:00Z"\n' for name in ("entered_at", "created_at"))
    read = outcome(frontmatter.parse, f'{document}{times}created_by: "a"\n---\n'.encode())
    if read is not None:
        assert yaml.safe_load(f"title: {text}") == {"title": read[0].title}


@quick
@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda raw: b"---\n" + raw + b"\n---\n"))
@example(b'---\nid: "\\ud800\n---\n')
@example(b'---\nx-a: "\\Uffffffff\\ud800"\n---\n')
def test_any_bytes_are_refused_without_a_crash(data: bytes) -> None:
    assert outcome(frontmatter.parse, data) is None


@quick
@given(documents(), st.text(CHARACTERS, max_size=30))
def test_any_text_in_a_header_is_refused_or_read(document: tuple[Task, bytes], text: str) -> None:
    data = frontmatter.render(*document)
    changed = data.replace(b"\nstate:", b"\n" + text.encode() + b"\nstate:", 1)
    assert outcome(frontmatter.parse, changed) == outcome(strict.read, changed)


@quick
@given(documents())
def test_own_fields_are_kept_byte_for_byte(document: tuple[Task, bytes]) -> None:
    header = frontmatter.render_header(document[0]).decode()
    own = "".join(f"{name}:{text}\n" for name, text in document[0].extra)
    assert header.endswith(f"\n{own}---\n")
