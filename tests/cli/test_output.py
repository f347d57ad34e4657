"""What is printed cannot steer a terminal, fits it, and is coloured only where that is wanted."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping
from contextlib import redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.cli.output import Output, age, cut, escape, seconds_of, width_of

DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
CONTROLS = "".join(map(chr, [*range(32), *range(127, 160)]))


def output(
    environ: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    color: str | None = None,
) -> Output:
    return Output(
        color=color,
        environ={"TERM": "xterm"} if environ is None else environ,
        setting=(settings or {}).get,
    )


@pytest.mark.parametrize("character", [*CONTROLS, *DIRECTIONS, "\ud800", "\u2028"])
def test_nothing_that_steers_a_terminal_is_printed(character: str) -> None:
    shown = escape(f"a{character}b")
    assert shown.isascii()
    assert shown.isprintable()
    assert shown.startswith("a\\")


def test_ordinary_text_of_any_language_is_printed_as_it_is() -> None:
    text = "naïve 日本語 עברית 👩\u200d🚀 a\u00a0b"
    assert escape(text) == text


def test_a_text_of_several_lines_keeps_its_line_ends_and_tabs_only() -> None:
    assert escape("a\r\n\tb\rc\x1b[2J\n", lines=True) == "a\n\tb\\rc\\x1b[2J\n"


@given(st.text())
def test_what_was_escaped_needs_no_escaping(text: str) -> None:
    once = escape(text, lines=True)
    assert escape(once, lines=True) == once
    assert escape(escape(text)) == escape(text)


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    assert [width_of(text) for text in ("abc", "日本", "e\u0301", "👩\u200d🚀")] == [3, 4, 1, 4]


def test_a_text_is_cut_at_the_column_and_says_so() -> None:
    assert [cut("日本語", width) for width in (6, 5, 4, 1, 0)] == [
        "日本語",
        "日本…",
        "日…",
        "…",
        "",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"),
        (172_799, "47 h"), (172_800, "2 d"), (8_640_000, "100 d"),
    ],
)  # fmt: skip
def test_ages_are_said_as_people_say_them(seconds: int, text: str) -> None:
    assert age(seconds) == text


@given(st.integers(0, 10**10))
def test_times_of_documents_are_read_to_the_second(seconds: int) -> None:
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("environ", "settings", "color", "colored"),
    [
        ({}, {}, None, False),
        ({"GIT_PAGER_IN_USE": "true"}, {}, None, True),
        ({"GIT_PAGER_IN_USE": "true", "NO_COLOR": "1"}, {}, None, False),
        ({"GIT_PAGER_IN_USE": "true", "TERM": "dumb"}, {}, None, False),
        ({"GIT_PAGER_IN_USE": "true"}, {"color.ui": "never"}, None, False),
        ({}, {"color.ui": "always"}, None, True),
        ({}, {"color.ui": "always", "color.tasks": "false"}, None, False),
        ({"NO_COLOR": "1"}, {"color.ui": "always"}, "never", False),
        ({"NO_COLOR": "1", "TERM": "dumb"}, {"color.ui": "never"}, "always", True),
        ({}, {"color.ui": "always"}, "auto", False),
    ],
)
def test_colours_follow_the_option_then_git_then_the_environment(
    environ: dict[str, str], settings: dict[str, str], color: str | None, colored: bool
) -> None:
    assert output(environ, settings, color).colored is colored


def test_colour_stands_around_what_was_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    output(color="always").line("a\x1b[31mb", "green")
    assert capsys.readouterr().out == "\x1b[32ma\\x1b[31mb\x1b[m\n"


def test_a_table_is_aligned_by_what_people_see(capsys: pytest.CaptureFixture[str]) -> None:
    output().table([("1", "日本", "x"), ("22", "a\nb", "y")], indent="  ")
    assert capsys.readouterr().out == "  1   日本  x\n  22  a\\nb  y\n"


def test_the_last_column_of_a_table_is_cut_to_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    environ = {"GIT_PAGER_IN_USE": "1", "COLUMNS": "20", "NO_COLOR": "1"}
    output(environ).table([("1", "a long title that does not fit")])
    assert capsys.readouterr().out == "1  a long title tha…\n"


def test_rows_are_escaped_one_by_one_and_coloured_at_the_head(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output(color="always").rows(["000001  a", "000002  \x07"], head=6)
    assert capsys.readouterr().out == "\x1b[33m000001\x1b[m  a\n\x1b[33m000002\x1b[m  \\x07\n"


def test_a_patch_is_coloured_line_by_line_and_cannot_bring_its_own_colours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output(color="always").patch("--- a\n+++ b\n@@ 1 @@\n-x\n+\x1b[5my\n z\n")
    assert capsys.readouterr().out == (
        "\x1b[1m--- a\x1b[m\n\x1b[1m+++ b\x1b[m\n\x1b[36m@@ 1 @@\x1b[m\n"
        "\x1b[31m-x\x1b[m\n\x1b[32m+\\x1b[5my\x1b[m\n z\n"
    )


def test_an_envelope_is_one_line_of_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    output().envelope("tasks", ["\x1b\u202eé\udcff"], "abc", {"truncated": 2})
    text = capsys.readouterr().out
    assert text.isascii()
    assert text.count("\n") == 1
    assert json.loads(text) == {
        "schema_version": 1,
        "kind": "tasks",
        "ledger": "abc",
        "data": ["\x1b\u202eé\udcff"],
        "truncated": 2,
    }


def test_a_stream_that_cannot_carry_a_character_gets_something_it_can() -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    with redirect_stdout(stream):
        output().line("a… → é 日")
    stream.flush()
    assert buffer.getvalue() == b"a... -> \\xe9 \\u65e5\n"


def test_quiet_silences_talk_but_not_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(quiet=True)
    out.say("talk")
    out.detail("detail")
    out.warn("warning\x07")
    assert capsys.readouterr().err == "warning\\x07\n"


def test_only_the_verbose_hear_details(capsys: pytest.CaptureFixture[str]) -> None:
    Output(verbose=True).detail("detail")
    assert capsys.readouterr().err == "detail\n"


def test_bytes_reach_a_file_as_they_are() -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="utf-8")
    with redirect_stdout(stream):
        output().raw(b"a\xff\x1b\r\n")
    assert buffer.getvalue() == b"a\xff\x1b\r\n"
    stream.detach()


def test_bytes_reach_a_person_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    output({"GIT_PAGER_IN_USE": "1", "NO_COLOR": "1"}).raw(b"a\xff\x1b\r\n")
    assert capsys.readouterr().out == "a\\udcff\\x1b\n"


def test_a_closed_stdout_is_no_reason_to_fail() -> None:
    with redirect_stdout(None):
        out = output()
        out.line("lost")
        out.raw(b"lost")
        out.finish()
    assert out.is_terminal is False
