"""The canonical form of a task document: what is written, and that it is read back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gittasks.domain import frontmatter, strict
from gittasks.domain.errors import UsageFault
from gittasks.domain.task import Attention, Cost, Draft, Findings, Task

TOKEN = "0123456789abcdef" * 2
COMMIT = "0123456789" * 4
TIME = "2026-11-30T17:17:12Z"

FULL = Task(
    "000042",
    TOKEN,
    'Fix: the "login" \\ #3 é😀',
    state="PLAN_REVIEW",
    entered_at=TIME,
    parent="000001",
    position="000041i",
    depends_on=("000001", "000002"),
    supersedes="000003",
    follows="000004",
    labels=("ui", 'a", "b'),
    priority=1,
    checks=("make test", "echo a\n\tb"),
    assignee="pi",
    claimed_by="pi",
    claim=TOKEN,
    claimed_at=TIME,
    lease_expires=TIME,
    branch="task/000042",
    base="main",
    dispatched=COMMIT,
    submitted_tip=COMMIT,
    checked_tip=COMMIT,
    landed=COMMIT,
    draft=Draft("## Design", 4),
    rejections=1,
    check_failures=2,
    former_ids=("000041",),
    findings=Findings("WORK", 1, ("one\ntwo", "no")),
    attention=(Attention("e1", "rejected", "\u202etext\ufeff\x7f\x85\u2028"),),
    proposed_by="Eve",
    artifacts=(("report", "a: b"), ('quoted": "name', "")),
    costs=(Cost("WORK", "pi-1", 12, 0.5, 100), Cost("PLAN", "", 0, 1e-07, 0)),
    created_at=TIME,
    created_by="Ada",
    extra=(("x-plain", " http://example.org/a-b_c"), ("x-text", ' "no"')),
)
FULL_TEXT = r"""---
id: "000042"
uid: "0123456789abcdef0123456789abcdef"
title: "Fix: the \"login\" \\ #3 é😀"
state: PLAN_REVIEW
entered_at: "2026-11-30T17:17:12Z"
parent: "000001"
position: "000041i"
depends_on: ["000001", "000002"]
supersedes: "000003"
follows: "000004"
labels: ["ui", "a\", \"b"]
priority: 1
checks:
  - "make test"
  - "echo a\n\tb"
assignee: "pi"
claimed_by: "pi"
claim: "0123456789abcdef0123456789abcdef"
claimed_at: "2026-11-30T17:17:12Z"
lease_expires: "2026-11-30T17:17:12Z"
branch: "task/000042"
base: "main"
dispatched: "0123456789012345678901234567890123456789"
submitted_tip: "0123456789012345678901234567890123456789"
checked_tip: "0123456789012345678901234567890123456789"
landed: "0123456789012345678901234567890123456789"
draft:
  section: "## Design"
  offset: 4
rejections: 1
check_failures: 2
former_ids: ["000041"]
findings:
  state: WORK
  round: 1
  items:
    - "one\ntwo"
    - "no"
attention:
  - {"event": "e1", "kind": "rejected", "text": "\u202etext\ufeff\u007f\u0085\u2028"}
proposed_by: "Eve"
artifacts:
  "report": "a: b"
  "quoted\": \"name": ""
costs:
  - {"state": "WORK", "slot": "pi-1", "seconds": 12, "cost": 0.5, "tokens": 100}
  - {"state": "PLAN", "slot": "", "seconds": 0, "cost": 1.0e-07, "tokens": 0}
created_at: "2026-11-30T17:17:12Z"
created_by: "Ada"
x-plain: http://example.org/a-b_c
x-text: "no"
---
body
"""
SMALL = Task("000042", TOKEN, "Fix", entered_at=TIME, created_at=TIME, created_by="Ada")
SMALL_TEXT = f"""---
id: "000042"
uid: "{TOKEN}"
title: "Fix"
state: NEW
entered_at: "{TIME}"
created_at: "{TIME}"
created_by: "Ada"
---
"""


def test_every_field_is_written_in_its_place_and_form() -> None:
    assert frontmatter.render(FULL, b"body\n").decode() == FULL_TEXT


def test_every_field_is_read_back() -> None:
    assert frontmatter.parse(FULL_TEXT.encode(), "tasks/0000/000042.md") == (FULL, b"body\n")


def test_the_strict_reader_reads_the_canonical_form_alike() -> None:
    assert strict.read(FULL_TEXT.encode(), "tasks/0000/000042.md") == (FULL, b"body\n")


def test_what_is_default_is_left_out() -> None:
    assert frontmatter.render(SMALL, b"").decode() == SMALL_TEXT


def test_what_is_left_out_is_default() -> None:
    assert frontmatter.parse(SMALL_TEXT.encode()) == (SMALL, b"")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"state": "BLOCKED", "enters": "PLAN"}, "enters: PLAN"),
        ({"state": "CLOSED", "outcome": "landed"}, "outcome: landed"),
        ({"state": "HELD_WORK", "held_reason": "a\nb"}, 'held_reason: "a\\nb"'),
        ({"title": "\ud800"}, None),
    ],
)
def test_fields_of_some_states_are_written_and_read(
    changes: dict[str, Any], line: str | None
) -> None:
    task = SMALL._replace(**changes)
    document = frontmatter.render(task, b"x")
    assert (line or "\\ud800") in document.decode()
    assert line is None or frontmatter.parse(document) == (task, b"x")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n\n    code\n---\n----\n+++\n```\na: b\n```\n  \n\n\n",
        b"no line end",
        b"---",
        b"\xef\xbb\xbfmark\r\n\x00\xff\xfe",
        b"x" * 1_000_000,
    ],
    ids=["empty", "fences", "no-line-end", "only-a-fence", "any-bytes", "one-long-line"],
)
@pytest.mark.parametrize("note", ["", "# a comment makes it uncanonical\n"])
def test_a_body_stays_as_it_is(body: bytes, note: str) -> None:
    document = SMALL_TEXT.replace("created_by", note + "created_by").encode() + body
    assert frontmatter.parse(document) == (SMALL, body)


def test_the_body_follows_the_first_fence_after_the_header() -> None:
    assert frontmatter.split(b"---\na: 1\n---\n\n---\nb\n") == (b"---\na: 1\n---\n", b"\n---\nb\n")


def test_a_header_may_be_empty_for_splitting() -> None:
    assert frontmatter.split(b"---\n---\nbody") == (b"---\n---\n", b"body")


def test_a_closing_fence_may_end_the_file() -> None:
    assert frontmatter.split(b"---\na: 1\n---") == (b"---\na: 1\n---\n", b"")


def test_a_text_without_fences_is_not_split() -> None:
    with pytest.raises(frontmatter.BadDocument, match="does not begin with a header"):
        frontmatter.split(b"body")


@pytest.mark.parametrize("task", [FULL, SMALL], ids=["full", "small"])
def test_the_header_in_json_loses_nothing(task: Task) -> None:
    assert frontmatter.from_header_json(frontmatter.header_json(task)) == task


def test_the_header_in_json_leaves_defaults_out() -> None:
    assert frontmatter.header_json(SMALL) == (
        f'{{"id":"000042","uid":"{TOKEN}","title":"Fix","entered_at":"{TIME}",'
        f'"created_at":"{TIME}","created_by":"Ada"}}'
    )


def test_json_output_has_every_field() -> None:
    assert frontmatter.task_dict(SMALL) == {
        **dict.fromkeys(Task._fields[:-1]),
        "id": "000042",
        "uid": TOKEN,
        "title": "Fix",
        "state": "NEW",
        "entered_at": TIME,
        "depends_on": [],
        "labels": [],
        "priority": 2,
        "checks": [],
        "rejections": 0,
        "check_failures": 0,
        "former_ids": [],
        "attention": [],
        "artifacts": {},
        "costs": [],
        "created_at": TIME,
        "created_by": "Ada",
    }


def test_json_output_names_the_parts_of_fields() -> None:
    shown = frontmatter.task_dict(FULL)
    assert {name: shown[name] for name in ("draft", "findings", "attention", "artifacts")} == {
        "draft": {"section": "## Design", "offset": 4},
        "findings": {"state": "WORK", "round": 1, "items": ["one\ntwo", "no"]},
        "attention": [
            {"event": "e1", "kind": "rejected", "text": "\u202etext\ufeff\x7f\x85\u2028"}
        ],
        "artifacts": {"report": "a: b", 'quoted": "name': ""},
    }


def test_json_output_gives_own_fields_as_texts() -> None:
    shown = frontmatter.task_dict(FULL)
    assert (shown["x-plain"], shown["x-text"]) == ("http://example.org/a-b_c", "no")


OWN = 'x-list:\n- a: 1\n#  note\n\nx-text : |+\n  Two\n\nx-none:\n"x-quoted": [a,\n  b\n]\n'


def test_own_fields_stay_byte_for_byte_behind_all_others() -> None:
    document = SMALL_TEXT.replace("state:", OWN + "state:").encode()
    task, body = frontmatter.parse(document)
    kept = OWN.replace("x-text :", "x-text:").replace('"x-quoted"', "x-quoted")
    assert frontmatter.render(task, body).decode() == SMALL_TEXT[:-4] + kept + "---\n"


def test_own_fields_stay_the_same_when_written_again() -> None:
    document = SMALL_TEXT.replace("state:", OWN + "state:").encode()
    once = frontmatter.render(*frontmatter.parse(document))
    assert frontmatter.render(*frontmatter.parse(once)) == once


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("title", "Fix it", "Fix it"),
        ("depends_on", ["000001"], ("000001",)),
        ("priority", 0, 0),
        ("state", "WORK", "WORK"),
        ("findings", {"state": "WORK", "round": 1, "items": ["a"]}, Findings("WORK", 1, ("a",))),
        (
            "costs",
            [{"state": "WORK", "slot": "", "seconds": 1, "cost": 0.5, "tokens": 2}],
            (Cost("WORK", "", 1, 0.5, 2),),
        ),
        ("artifacts", {"a": "b"}, (("a", "b"),)),
        ("x-own", "no", ' "no"'),
        ("x-own", True, " true"),
        ("x-own", False, " false"),
        ("x-own", 7, " 7"),
        ("x-own", ["a", "b"], ' ["a", "b"]'),
    ],
)
def test_a_field_is_checked_as_plain_data(name: str, value: object, kept: object) -> None:
    assert frontmatter.check_field(name, value) == kept


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("title", " ", 'title: " " is no title; write one line of at most 500 characters.'),
        ("title", None, 'title: There is no value; remove the line, or write title: "null".'),
        ("title", True, 'title: true is no text in YAML; write title: "true".'),
        ("priority", 5, 'priority: "5" is no whole number from 0 to 4.'),
        ("priority", 10**16, 'priority: "a huge number" is no whole number from 0 to 4.'),
        ("priority", [], "priority: A list is no whole number from 0 to 4."),
        ("depends_on", ["1", "x"], 'depends_on[0]: "1" is no task id; write six digits such as'
         ' "000042".\ndepends_on[1]: "x" is no task id; write six digits such as "000042".'),
        ("deps", [], 'There is no field "deps": The key is unknown; did you mean depends_on?'),
        ("x-own", {}, "x-own: Write a text, a whole number, true, false, or a list of texts."),
        ("x-own", 10**15, "x-own: Write a text, a whole number, true, false, or a list of texts."),
    ],
)  # fmt: skip
def test_a_field_with_a_wrong_value_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(UsageFault) as caught:
        frontmatter.check_field(name, value)
    assert caught.value.message == message


def test_yaml_reads_every_field_as_we_do() -> None:
    header = FULL_TEXT.split("---\n")[1]
    loaded = yaml.safe_load(header)
    shown = frontmatter.task_dict(FULL)
    assert loaded == {name: shown[name] for name in loaded}


def test_the_canonical_form_is_read_without_yaml() -> None:
    program = (
        "import sys; from gittasks.domain.frontmatter import parse;"
        f"parse({FULL_TEXT.encode()!r});"
        "print([name for name in ('yaml', 'frontmatter', 'datetime', 'pathlib', 'dataclasses')"
        " if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == "[]\n"
