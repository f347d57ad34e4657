"""What is wrong with a document is told with the line, the field and the fix, all at once."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from gittasks.domain import strict
from gittasks.domain.frontmatter import BadDocument, parse
from gittasks.domain.task import Cost, Task

TOKEN = "0123456789abcdef" * 2
TIME = "2026-11-30T17:17:12Z"
FILE = "tasks/0000/000042.md"
GOOD = {
    "id": '"000042"',
    "uid": f'"{TOKEN}"',
    "title": '"Fix"',
    "state": "NEW",
    "entered_at": f'"{TIME}"',
    "created_at": f'"{TIME}"',
    "created_by": '"Ada"',
}


def document(text: str) -> bytes:
    """Returns a document with these fields, and good ones for the others that have to be there."""
    named = {line.partition(":")[0] for line in text.split("\n")}
    others = "".join(f"{name}: {value}\n" for name, value in GOOD.items() if name not in named)
    return f"---\n{text}{others}---\nbody".encode()


def problems(data: bytes, file: str = FILE) -> list[str]:
    """Returns the lines of problems; fails if there are none."""
    with pytest.raises(BadDocument) as caught:
        parse(data, file)
    return [
        f"{problem.line} {problem.field}: {problem.message}" for problem in caught.value.problems
    ]


def task_of(text: str) -> Task:
    return parse(document(text), FILE)[0]


def test_the_error_lists_all_problems_with_the_file() -> None:
    with pytest.raises(BadDocument) as caught:
        parse(document("id: 000042\ntitle: no\ndeps: [000041]\n"), FILE)
    error = caught.value
    assert (error.message, error.hint, error.task, error.file, error.exit_code) == (
        "The document tasks/0000/000042.md does not verify.\n"
        '  line 2, id: 000042 is no text in YAML; write id: "000042".\n'
        '  line 3, title: no is no text in YAML; write title: "no".\n'
        "  line 4, deps: The key is unknown; did you mean depends_on?",
        "Correct the lines named with `git tasks edit 000042`.",
        "000042",
        FILE,
        9,
    )


def test_the_error_of_a_text_without_a_name_says_so() -> None:
    with pytest.raises(BadDocument) as caught:
        parse(b"x")
    assert (caught.value.message, caught.value.hint, caught.value.task) == (
        "The document (without a name) does not verify.\n"
        "  line 1: The document does not begin with a header; write --- alone in the first line.",
        "Correct the lines named.",
        None,
    )


def test_the_error_shows_fifty_problems_at_most() -> None:
    with pytest.raises(BadDocument) as caught:
        parse(b"---\n" + b"a\n" * 1000 + b"---\n", FILE)
    lines = caught.value.message.split("\n")
    assert (len(lines), lines[-1]) == (52, "  50 more problems are not shown.")


def test_a_problem_shows_the_value_escaped_and_shortened() -> None:
    with pytest.raises(BadDocument) as caught:
        parse(document('title: "' + "a\\e" * 300 + '"\n'), FILE)
    assert caught.value.problems[0].value == "a\\u001b" * 30 + "…"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: Fix the login", "Fix the login"),
        ("title: 'It''s'", "It's"),
        ("title: Fix\n  the login", "Fix the login"),
        ("title: 3 bugs: no", None),
        ("title: 3 bugs, no: none", None),
        ("title: 3 bugs", "3 bugs"),
        ("title: >-\n  Fix\n  it", "Fix it"),
        ('"title": "Fix"', "Fix"),
        ('title: "Fix" # note', "Fix"),
        ('title: "\\uD83D\\uDE00"', "😀"),
        ("title: nobody", "nobody"),
    ],
)
def test_texts_that_cannot_be_mistaken_are_read(text: str, expected: str | None) -> None:
    data = document(f"{text}\n").replace(b'title: "Fix"\ns', b"s")
    try:
        found = parse(data, FILE)[0].title
    except BadDocument:
        found = None
    assert found == expected


@pytest.mark.parametrize(
    "value",
    ["no", "Yes", "on", "OFF", "y", "true", "2026-01-02", "2026-01-02 10:00", "22:30", "1_000",
     "0x1f", "0o17", "000123", "1e3", "-1", "+.5", ".inf", "-.NaN", "=", "12.5"],
)  # fmt: skip
def test_a_text_that_yaml_guesses_about_is_refused(value: str) -> None:
    assert problems(document(f"title: {value}\n")) == [
        f'2 title: {value} is no text in YAML; write title: "{value}".'
    ]


@pytest.mark.parametrize("value", ["", " ~", " null", " Null"])
def test_a_field_without_a_value_is_refused(value: str) -> None:
    assert problems(document(f"assignee:{value}\n")) == [
        f'2 assignee: There is no value; remove the line, or write assignee: "{value.strip()}".'
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: Fix issue #3", '2 title: All from the # on is a comment in YAML; write title:'
         ' "Fix issue #3", or remove it.'),
        ("title: a: b", "2 title: YAML cannot read this: mapping values are not allowed in this"
         " context; write the text in double quotes."),
        ("title: @x", "2 title: YAML cannot read this: found character that cannot start any"
         " token; write the text in double quotes."),
        ('title: "Fix', "2 title: YAML cannot read this: found unexpected end of stream; write"
         " the text in double quotes."),
        ('title: "\\uD800" "', "2 title: YAML cannot read this: found unexpected end of stream;"
         " write the text in double quotes."),
        ('title: "\\UFFFFFFFF\\ud800"', "2 title: YAML cannot read this; write the text in double"
         " quotes."),
        ("title: [a]", "2 title: A list stands where a text belongs."),
        ("title: {a: b}", "2 title: A map stands where a text belongs."),
        ('title: "a\\nb"', '2 title: "a\\nb" is no title; write one line of at most 500'
         " characters."),
        ('title: "\\ud800"', '2 title: "\\ud800" is no title; write one line of at most 500'
         " characters."),
        ('created_by: ""', "2 created_by: An empty text is blank; write a text, or remove the"
         " line."),
        ("parent: 42", '2 parent: 42 is no text in YAML; write parent: "000042".'),
        ('parent: "42"', '2 parent: "42" is no task id; write six digits such as "000042".'),
        ('parent: "000000"', '2 parent: "000000" is no task id; write six digits such as'
         ' "000042".'),
        ('parent: "٠٠٠٠٤٢"', '2 parent: "٠٠٠٠٤٢" is no task id; write six digits such as'
         ' "000042".'),
        ('uid: "0"', '2 uid: "0" is not 32 lower-case hexadecimal digits; write those of the'
         " ledger."),
        ("state: work", '2 state: "work" is not possible; write WORK.'),
        ("state: [NEW]", "2 state: A list is not possible; write one of NEW, BLOCKED, DESIGN,"
         " DESIGN_REVIEW, PLAN, PLAN_REVIEW, WORK, CHECK, WORK_REVIEW, MANAGER_REVIEW,"
         " HELD_DESIGN, HELD_PLAN, HELD_WORK, CLOSED."),
        ("enters: NEW", '2 enters: "NEW" is not possible; write one of DESIGN, PLAN, WORK.'),
        ("outcome: LANDED", '2 outcome: "LANDED" is not possible; write landed.'),
        ("priority: 5", '2 priority: "5" is no whole number from 0 to 4.'),
        ('priority: "1"', "2 priority: A number has no quotes; write priority: 1."),
        ("priority: [1]", "2 priority: A list is no whole number from 0 to 4."),
        ("rejections: 01", '2 rejections: "01" is no whole number from 0 on.'),
        ("rejections: 9999999999999999", '2 rejections: "9999999999999999" is no whole number'
         " from 0 on."),
        ("depends_on: 000001", '2 depends_on: A text stands where a list belongs; write'
         ' depends_on: ["000001"].'),
        ("depends_on: {a: b}", '2 depends_on: A map stands where a list belongs; write'
         ' depends_on: ["…"].'),
        ("depends_on: [000001]", '2 depends_on[0]: 000001 is no text in YAML; write "000001".'),
        ('depends_on: ["000001", "000001"]', '2 depends_on: "000001" is named twice; remove one'
         " of them."),
        ('depends_on: ["000042"]', '2 depends_on: A task cannot depend on itself; remove'
         ' "000042".'),
        ('parent: "000042"', "2 parent: A task cannot point at itself; remove the line."),
        ("checks:\n  - make: test", "3 checks[0]: A map stands where a text belongs."),
        ('checks: [""]', "2 checks[0]: An empty text is blank; write a text, or remove the line."),
        ("checks:\n  - make # all", "3 checks[0]: All from the # on is a comment in YAML; write"
         ' "make # all", or remove it.'),
        ("branch: -x", '2 branch: "-x" is nothing that git can take for a branch; write one'
         " without blanks that does not begin with -."),
        ('landed: "abc"', '2 landed: "abc" is no commit; write its full id of 40 or 64'
         " lower-case hexadecimal digits."),
        ("position: A", '2 position: "A" is no position; write lower-case letters and digits.'),
        ("draft: x", "2 draft: A text stands where a map of keys and values belongs."),
        ("draft: {section: a, section: b, size: 1, [c]: d}",
         "2 draft.section: The key stands twice, first in line 2; remove one of them.\n"
         "2 draft: A list cannot be a key; write a text.\n"
         "2 draft.size: The key is unknown; remove it.\n"
         "2 draft.offset: offset is missing; add it."),
        ("findings:\n  state: CHECK\n  round: 0\n  items: []",
         '3 findings.state: "CHECK" is not possible; write one of DESIGN, PLAN, WORK.\n'
         '4 findings.round: "0" is no whole number from 1 on.\n'
         "5 findings.items: There is no finding; remove the lines, or add one."),
        ("attention: {}", '2 attention: A map stands where a list belongs; write attention:'
         ' ["…"].'),
        ("attention:\n  - {event: a, kind: yes, text: ''}",
         '3 attention[0].kind: yes is no text in YAML; write kind: "yes".'),
        ("costs:\n  - {state: WORK, slot: '', seconds: 1, cost: -1, tokens: 2}",
         "3 costs[0].cost: This is no amount; write one such as 0.5."),
        ("costs:\n  - {state: WORK, slot: '', seconds: 1, cost: 1e99, tokens: 2}",
         "3 costs[0].cost: This is no amount; write one such as 0.5."),
        ("artifacts: []", "2 artifacts: A list stands where a map of keys and values belongs."),
        ("artifacts: {a: b, a: c, no: d}",
         "2 artifacts.a: The key stands twice, first in line 2; remove one of them.\n"
         '2 artifacts.no: no is no text in YAML; write no: "no".'),
        (f'artifacts: {{"{"n" * 201}": b}}', f'2 artifacts.{"n" * 60}…: "{"n" * 60}…" is no name;'
         " write one line of at most 200 characters, none of them a control character."),
        ("x-tag: !foo a", "2 x-tag: !foo is a tag; remove it."),
        ("x-tag: ! a", "2 x-tag: ! is a tag; remove it."),
        ("x-anchor: &foo a", "2 x-anchor: &foo is an anchor; remove it."),
        ("x-alias:\n  *foo", "3 x-alias: *foo is an alias; write the value itself."),
        ("x-a: 1\nx-a: 2", "3 x-a: The key stands twice, first in line 2; remove one of them."),
        ('title: "a"\ntitle: "b"', "3 title: The key stands twice, first in line 2; remove one of"
         " them."),
        ('title: "a\ntitle: "b"', "2 title: YAML cannot read this: found unexpected end of"
         " stream; write the text in double quotes.\n3 title: The key stands twice, first in line"
         " 2; remove one of them."),
        ("<<: {a: b}", "2 <<: << merges another map in; write the fields themselves."),
        ("content: a", "2 content: The key is unknown; remove it, or call it x-content to keep it"
         " as your own."),
        ("handler: a", "2 handler: The key is unknown; remove it, or call it x-handler to keep it"
         " as your own."),
        ("titel: a", "2 titel: The key is unknown; did you mean title?"),
        ("a b: c", "2 a b: The key is unknown; remove it."),
        ("? a", "2 : This is no field; write one field: value a line."),
        ("[a]: b", "2 : This is no field; write one field: value a line."),
        ("...", "2 : This is no field; write one field: value a line."),
        ("--- ", "2 : This is no field; write one field: value a line."),
        ('title: "a\tb"', "2 : There is a tab; write blanks, or \\t inside of double quotes."),
        ('title: "a\x1b"', "2 : There is a character that cannot be seen, U+001B; remove it, or"
         " write \\u001b inside of double quotes."),
        ('title: "a\u2028\ufeff"', "2 : There is a character that cannot be seen, U+2028; remove"
         " it, or write \\u2028 inside of double quotes."),
        ("<<<<<<< ours\ntitle: a\n=======\ntitle: b\n>>>>>>> theirs",
         "2 : A merge left its conflict here; keep one side and remove the marker lines.\n"
         "4 : A merge left its conflict here; keep one side and remove the marker lines.\n"
         "6 : A merge left its conflict here; keep one side and remove the marker lines."),
        ('title: "a"\r', "2 : The line ends in CR LF; let it end in LF alone."),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_the_fix(text: str, expected: str) -> None:
    assert "\n".join(problems(document(f"{text}\n"))) == expected


@pytest.mark.parametrize(
    "value",
    ["2026-11-30", "2026-11-30T17:17:12", "2026-11-30T17:17:12+00:00", "2026-02-29T00:00:00Z",
     "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "0000-01-01T00:00:00Z",
     "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2100-02-29T00:00:00Z",
     "2026-0x-01T00:00:00Z", "٢٠٢٦-01-01T00:00:00Z", "2026-01-01t00:00:00z"],
)  # fmt: skip
def test_a_moment_that_never_was_is_refused(value: str) -> None:
    assert problems(document(f'created_at: "{value}"\n')) == [
        f'2 created_at: "{value}" is no time; write one in UTC such as "2026-11-30T17:17:12Z".'
    ]


@pytest.mark.parametrize("value", ["2024-02-29T00:00:00Z", "2000-02-29T23:59:59Z"])
def test_a_leap_day_is_a_day(value: str) -> None:
    assert task_of(f'created_at: "{value}"\n').created_at == value


CLAIM = f'claim: "{TOKEN}"\nclaimed_at: "{TIME}"\nlease_expires: "{TIME}"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("state: BLOCKED", "2 state: A task that is BLOCKED names the state it enters; add enters:"
         " WORK."),
        ("enters: WORK", "2 enters: Only a task that is BLOCKED enters a state; remove the line,"
         " as state is NEW."),
        ("state: CLOSED", "2 state: A task that is CLOSED has an outcome; add outcome: landed or"
         " outcome: aborted."),
        ("outcome: landed", "2 outcome: Only a task that is CLOSED has an outcome; remove the"
         " line, as state is NEW."),
        ("state: HELD_PLAN", '2 state: A task that is HELD_PLAN says why; add held_reason: "…".'),
        ("held_reason: why", "2 held_reason: Only a held task has a held_reason; remove the line,"
         " as state is NEW."),
        ("claimed_by: pi", "2 claimed_by: A claim is told by four fields, all or none; add claim,"
         " claimed_at, lease_expires, or remove claimed_by."),
        (CLAIM.rstrip(), "4 lease_expires: A claim is told by four fields, all or none; add"
         " claimed_by, or remove claim, claimed_at, lease_expires."),
        ("draft: {section: '## Plan', offset: 1}", "2 draft: A task that is NEW has no draft;"
         " remove these lines."),
        ("draft: {section: '## Plan', offset: 5}\nstate: PLAN_REVIEW", "2 draft: The draft begins"
         " at byte 5 of a body of 4 bytes; write the offset where its heading begins."),
        ('supersedes: "000042"', "2 supersedes: A task cannot point at itself; remove the line."),
        ('follows: "000042"', "2 follows: A task cannot point at itself; remove the line."),
    ],
)  # fmt: skip
def test_fields_that_contradict_each_other_are_told(text: str, expected: str) -> None:
    assert problems(document(f"{text}\n")) == [expected]


def test_a_field_with_a_mistake_contradicts_nothing() -> None:
    assert problems(document("state: closed\noutcome: landed\n")) == [
        '2 state: "closed" is not possible; write CLOSED.'
    ]


def test_fields_that_are_missing_are_told() -> None:
    assert problems(b'---\ntitle: "Fix"\nstate: BLOCKED\n---\n') == [
        '1 id: The field is missing; add a line id: "000042".',
        '1 uid: The field is missing; add a line uid: "…", 32 hexadecimal digits.',
        '1 entered_at: The field is missing; add a line entered_at: "2026-11-30T17:17:12Z".',
        '1 created_at: The field is missing; add a line created_at: "2026-11-30T17:17:12Z".',
        '1 created_by: The field is missing; add a line created_by: "…".',
        "3 state: A task that is BLOCKED names the state it enters; add enters: WORK.",
    ]


def test_a_file_with_the_name_of_another_task_is_told() -> None:
    assert problems(document(""), "tasks/0000/000043.md") == [
        '2 id: The file is called 000043.md; write id: "000043", or rename the file.'
    ]


@pytest.mark.parametrize("file", ["", "notes.md", "closed/0000/000042.md", "000042.md"])
def test_only_the_name_of_a_task_has_to_be_its_id(file: str) -> None:
    assert parse(document(""), file)[0].id == "000042"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "1 : The document does not begin with a header; write --- alone in the first line."),
        (b"\xef\xbb\xbf---\n---\n", "1 : The document begins with a byte order mark; save it"
         " without one."),
        (b"---\r\nid: 1\r\n---\r\n", "1 : The lines end in CR LF; let those of the header end in"
         " LF alone."),
        (b"--- \n---\n", "1 : Something follows the fence; write --- alone in the line."),
        (b"----\n---\n", "1 : The document does not begin with a header; write --- alone in the"
         " first line."),
        (b"<<<<<<< ours\n---\n", "1 : A merge left its conflict here; keep one side and remove"
         " the marker lines."),
        (b"---\nid: 1\n", "1 : The header has no end; write --- alone in a line after it."),
        (b"---", "1 : The header has no end; write --- alone in a line after it."),
        (b"---\nid: 1\n---\r\n", "3 : The lines end in CR LF; let those of the header end in LF"
         " alone."),
        (b"---\nid: 1\n--- \n", "3 : Something follows the fence; write --- alone in the line."),
        (b"---\n---\nbody", "2 : The header is empty; it has to name at least id, uid and title."),
        (b"---\n\n# note\n---", "2 : The header is empty; it has to name at least id, uid and"
         " title."),
        (b"---\n- a\n- b\n---\n", "2 : The header is a list; write one field: value a line."),
        (b"---\n[]\n---\n", "2 : The header is a list; write one field: value a line."),
        (b"---\nid\n---\n", "2 : This is no field; write one field: value a line."),
        (b"---\n{id: 1}\n---\n", "2 : This is no field; write one field: value a line."),
        (b"---\n  id: 1\n---\n", "2 : This is no field; write one field: value a line."),
        (b"---\n%TAG\n---\n", "2 : This is no field; write one field: value a line."),
        (b"---\na: 1\nb: \xff\n---\n", "3 : The byte 0xff is not UTF-8; save the document as"
         " UTF-8."),
        (b"---\na: \x00\n---\n", "2 : There is a character that cannot be seen, U+0000; remove"
         " it, or write \\u0000 inside of double quotes."),
    ],
)  # fmt: skip
def test_a_document_without_a_proper_header_is_refused(data: bytes, expected: str) -> None:
    assert problems(data) == [expected]


NINE = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"x-{name}: &{name} [" + ",".join(["*" + before] * 9) + "]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("data", "last"),
    [
        (document(NINE), "10 x-i: &i is an anchor; remove it."),
        (
            document("x-deep: " + "[" * 5000 + "]" * 5000 + "\n"),
            "2 x-deep: The value is nested more than 20 levels deep; write it flat.",
        ),
        (
            document("x-deep: " + "[" * 100 + "]" * 100 + "\n"),
            "2 x-deep: The value is nested more than 20 levels deep; write it flat.",
        ),
        (
            document("x-deep:\n" + "".join(f"{' ' * depth}a:\n" for depth in range(1, 2500))),
            "21 x-deep: The value is nested more than 20 levels deep; write it flat.",
        ),
        (
            document("attention:\n  - " + "[" * 5000 + "]" * 5000 + "\n"),
            "2 attention: The value is nested more than 20 levels deep; write it flat.",
        ),
        (
            document("depends_on: [" + ", ".join(f'"{n:06d}"' for n in range(50, 5050)) + "]\n"),
            "2 depends_on: There are 5000 dependencies and at most 1000 are allowed; put a task"
            " between them.",
        ),
        (
            document("depends_on: [" + "1," * 300_000 + "]\n"),
            "2 depends_on: The field has more than 100000 values; write fewer.",
        ),
        (
            document("".join(f"x-{n}:\n" for n in range(1001))),
            "1002 : There are more than 1000 fields; remove some.",
        ),
        (document("depends_on: [" + "x," * 5000 + "]\n"),
         '2 depends_on[99]: "x" is no task id; write six digits such as "000042".'),
        (
            document("") + b"x" * 20_000_000,
            f"1 : The document has {20_000_000 + len(document(''))} bytes and at most 4194304 are"
            " allowed; move text into a file of the work branch.",
        ),
    ],
    ids=["aliases", "brackets", "few-brackets", "levels", "rows", "needs", "values", "fields",
         "mistakes", "size"],
)  # fmt: skip
def test_a_bomb_is_refused_at_once(data: bytes, last: str) -> None:
    before = time.process_time()
    found = problems(data)
    assert found[-1] == last
    assert time.process_time() - before < 5


def test_what_is_uncanonical_but_plain_is_read() -> None:
    text = (
        "title: Fix the login\npriority: 2 # the default\nlabels:\n- ui\n- 'a b'\n"
        "depends_on: []\nenters: WORK\nstate: 'BLOCKED'\n"
        "checks: [make test]\ncosts:\n- state: WORK\n  slot: a\n  seconds: 1\n  cost: 1\n"
        "  tokens: 2\nartifacts: {report: ''}\n"
    )
    assert task_of(text) == Task(
        "000042",
        TOKEN,
        "Fix the login",
        state="BLOCKED",
        entered_at=TIME,
        enters="WORK",
        labels=("ui", "a b"),
        checks=("make test",),
        artifacts=(("report", ""),),
        costs=(Cost("WORK", "a", 1, 1.0, 2),),
        created_at=TIME,
        created_by="Ada",
    )


COST = '"slot": "", "seconds": 1, "cost": 0.5, "tokens": 2}'


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ('labels: ["a\\u0062"]', True),
        ('labels: ["a\\", 1]', False),
        ('labels: ["a"b"]', False),
        ('labels: ["a", 1, "b"]', False),
        ('labels: ["a",  "b"]', True),
        ('labels: [""]', False),
        ('labels:["a"]', False),
        ("labels:", False),
        ("priority: 2", True),
        ('checks:\n  "a"', False),
        ('checks: \n  - "a"', True),
        ('checks:\n  - ""', False),
        ('draft:\n  section: "a"', False),
        ('draft:\n  section: ""\n  offset: 1', False),
        ('draft:\n  section: a\n  offset: 1', True),
        ('draft:\n  offset: 1\n  section: "a"', True),
        ('findings:\n  state: WORK\n  round: 1\n  items: ["a"]', True),
        ('findings:\n  state: WORK\n  round: 0\n  items:\n    - "a"', False),
        ('findings:\n  state: CHECK\n  round: 1\n  items:\n    - "a"', False),
        ('findings:\n  state: WORK\n  round: 1\n  items:\n  - "a"', True),
        ('attention:\n  - {"kind": "a", "event": "b", "text": ""}', True),
        ('attention:\n  - {"event": "a", "kind": "b", "text": 1}', False),
        ('attention:\n  - {"event": "", "kind": "b", "text": ""}', False),
        ('attention:\n  - {"event": "a", "kind": " ", "text": ""}', False),
        ('attention:\n  - {"event": "a",  "kind": "b", "text": ""}', True),
        (f'costs:\n  - {{"state": "WORK", {COST}', True),
        (f'costs:\n  - {{"state":  "WORK", {COST}', True),
        (f'costs:\n  - {{"state": "WORKING", {COST}', False),
        (f'costs:\n  - {{"state": "WORK", {COST.replace("0.5", "1")}', True),
        (f'costs:\n  - {{"state": "WORK", {COST.replace("0.5", "-0.5")}', False),
        (f'costs:\n  - {{"state": "WORK", {COST.replace("2", "2.0")}', False),
        (f'costs:\n  - {{"state": "WORK", {COST.replace("1", "true")}', False),
        (f'costs:\n  - {{"state": "WORK", {COST.replace("2", "9" * 16)}', False),
        (f'costs:\n  - {{"state": "WORK", {COST.replace("}", ", more: 1}")}', False),
        ("costs:\n  - " + "[" * 5000, False),
        ('artifacts:\n  "a": "b"\n  "a": "c"', False),
        ('artifacts:\n  "a": b', True),
        ('artifacts:\n  "": "b"', False),
        ("x-own: a: b", False),
        ("x-own: a #b", True),
        ("x-own: a:", False),
        ("x-own: a\nx-own: b", False),
        ("x-own:a", False),
        ("x-: a", False),
        ("x-é: a", False),
        (f"x-{'n' * 200}: a", False),
    ],
)  # fmt: skip
def test_what_is_almost_canonical_is_taken_by_the_strict_rules(text: str, is_read: bool) -> None:
    # What stands in its canonical place reaches the fast reader, which must never take what the
    # strict one refuses.
    state = "PLAN_REVIEW" if text.startswith("draft") else "NEW"
    before = "---" if text.startswith("x-") else "created_at"
    changed = document("").replace(b"NEW", state.encode())
    place = changed.index(f"\n{before}".encode()) + 1
    changed = changed[:place] + text.encode() + b"\n" + changed[place:]
    fast, slow = _outcome(parse, changed), _outcome(strict.read, changed)
    assert (fast, fast is not None) == (slow, is_read)


def _outcome(reader: Callable[[bytes, str], tuple[Task, bytes]], data: bytes) -> object:
    try:
        return reader(data, FILE)
    except BadDocument:
        return None
