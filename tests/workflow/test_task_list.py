"""Files that hold many tasks: what is read, and how every fault is told."""

from __future__ import annotations

import pytest

from gittasks.domain.errors import UsageFault
from gittasks.workflow.task_list import Listed, read


def refusal(data: bytes, file: str = "plan") -> str:
    with pytest.raises(UsageFault) as caught:
        read(data, file)
    return caught.value.message


def test_json_lines_give_every_field() -> None:
    line = (
        b'{"title": "One", "body": "B\\n", "enter": "work", "depends_on": ["a", 7], "parent": "3",'
        b' "checks": ["true"], "labels": ["ui"], "priority": 0, "key": "k"}\n'
    )
    assert read(b'\n{"title": "Zero", "key": "a"}\n' + line, "plan") == [
        Listed(2, "Zero", key="a"),
        Listed(3, "One", b"B\n", "work", ("a", "7"), "3", ("true",), ("ui",), 0, "k"),
    ]


def test_the_first_character_decides_whatever_the_file_is_called() -> None:
    assert read(b' \n{"title": "One"}', "plan.md")[0].title == "One"


def test_a_null_is_a_field_left_out() -> None:
    data = b'{"title": "One", "body": null, "enter": null, "depends_on": null, "key": null}'
    assert read(data, "plan") == [Listed(1, "One")]


def test_markdown_gives_fields_below_the_heading_and_the_body_after_them() -> None:
    text = """\ufeff# Fix the login
key: login
enter: design
depends_on: other, 12
labels: ui, auth
check: make test
check: make lint, all
priority: 1

Some text.

## A part of it

# Other
key: other
Text at once.
"""
    assert read(text.encode(), "plan") == [
        Listed(
            1, "Fix the login", b"Some text.\n\n## A part of it\n", "design", ("other", "12"),
            None, ("make test", "make lint, all"), ("ui", "auth"), 1, "login",
        ),
        Listed(14, "Other", b"Text at once.\n", key="other"),
    ]  # fmt: skip


def test_a_heading_inside_of_fenced_code_begins_no_task() -> None:
    text = b"# One\n\n```sh\n# not a task\n~~~\n```\n\n# Two\n"
    assert [task.title for task in read(text, "plan")] == ["One", "Two"]


def test_the_line_ends_of_a_body_stay_as_they_are() -> None:
    assert read(b"# One\r\nkey: a\r\n\r\nText\r\n  more\x0c\r\n\r\n", "plan") == [
        Listed(1, "One", b"Text\r\n  more\x0c\r\n", key="a")
    ]


def test_a_body_without_a_last_line_end_stays_without_one() -> None:
    assert read(b"# One\n\nText", "plan")[0].body == b"Text"


def test_every_fault_is_told_with_its_line() -> None:
    data = (
        b'{"title": "", "deps": []}\n'
        b'{"titel": 1}\n'
        b"nope\n"
        b"[1]\n"
        b'{"title": "x", "priority": 9, "enter": "foo", "depends_on": [true], "title": "y"}\n'
        b'{"title": "x", "priority": true, "checks": [" "], "body": "\\ud800"}'
    )
    assert refusal(data).splitlines() == [
        "plan has 13 faults; nothing was created.",
        "  line 1, deps: There is no such field; did you mean depends_on?",
        "  line 1, title: The title is blank.",
        "  line 2, titel: There is no such field; did you mean title?",
        "  line 2, title: The field is missing.",
        "  line 3: This is not one JSON object a line: Expecting value: line 1 column 1 (char 0).",
        "  line 4: This is not a JSON object.",
        "  line 5, depends_on: Input should be a valid string, not True.",
        "  line 5, enter: Input should be 'design', 'plan' or 'work', not 'foo'.",
        "  line 5, priority: Input should be less than or equal to 4, not 9.",
        "  line 5, title: The field stands here twice.",
        "  line 6, body: The text holds half of a character.",
        "  line 6, checks: The text is blank.",
        "  line 6, priority: Input should be a valid integer, not True.",
    ]


def test_faults_of_markdown_name_the_line_of_the_field() -> None:
    text = b"hello\n\n# One\nkey: a\npriority: high\nkey: b\nfoo: bar\n\n#\n"
    assert refusal(text).splitlines() == [
        "plan has 5 faults; nothing was created.",
        "  line 1: This stands before the first task; begin each task with a line `# Title`.",
        "  line 5, priority: Input should be a valid integer, not 'high'.",
        "  line 6, key: The field does not stand here, or not twice.",
        "  line 7, foo: There is no such field; the fields are title, body, enter, depends_on,"
        " parent, checks, labels, priority, key.",
        "  line 9, title: The title is blank.",
    ]


def test_names_that_are_neither_a_key_nor_an_id_are_faults() -> None:
    data = (
        b'{"title": "A", "key": "a", "parent": "nowhere"}\n'
        b'{"title": "B", "key": "a", "depends_on": ["#7", "task/000008", "b", 0]}\n'
    )
    assert refusal(data.replace(b", 0]", b"]")).splitlines() == [
        "plan has 3 faults; nothing was created.",
        "  line 1, parent: nowhere is neither a key of this file nor a task id.",
        "  line 2, depends_on: b is neither a key of this file nor a task id.",
        "  line 2, key: The key a stands at line 1 already.",
    ]


def test_a_key_of_the_file_wins_over_an_id() -> None:
    data = b'{"title": "A", "key": "1"}\n{"title": "B", "depends_on": [1]}\n'
    assert read(data, "plan")[1].depends_on == ("1",)


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf"], ids=["empty", "blank", "mark"])
def test_a_file_without_a_task_is_refused(data: bytes) -> None:
    assert refusal(data) == "There is no task in plan."


def test_bytes_that_are_no_utf8_are_refused_with_their_line() -> None:
    assert refusal(b"# One\n\n\xff\n").splitlines()[1] == "  line 3: This is not UTF-8."


def test_a_nest_too_deep_for_json_is_a_fault_and_no_crash() -> None:
    assert "not one JSON object a line" in refusal(b'{"title": ' + b"[" * 100_000)


def test_a_title_of_two_lines_is_a_fault() -> None:
    assert "A title is one line" in refusal(b'{"title": "a\\nb"}')


def test_the_list_of_faults_is_bounded() -> None:
    lines = refusal(b'{"title": 1}\n' * 80).splitlines()
    assert lines[0] == "plan has 80 faults; nothing was created."
    assert lines[-1] == "  30 more faults are not shown."
    assert len(lines) == 52


def test_the_name_of_the_file_is_shown_escaped() -> None:
    assert refusal(b"", "a\x1b[2Jb") == "There is no task in a\\u001b[2Jb."
