"""Plain lines are read as click would read them; all others are left to it."""

from __future__ import annotations

from typing import Any

import click
from hypothesis import example, given
from hypothesis import strategies as st

from gittasks.cli import clicked, frame


@frame.command("sample")
@frame.argument("task")
@frame.argument("needs", nargs=-1)
@frame.option("-m", "--message", "messages", multiple=True)
@frame.option("-F", "file")
@frame.option("--force", is_flag=True)
@frame.option("--limit", type=frame.IntRange(min=0, max=9))
@frame.option("--sort", type=frame.Choice(("id", "age")), default="id")
def sample(session: frame.Session, **values: Any) -> None:
    """Do nothing."""


@frame.command("bare")
@frame.argument("task", required=False)
@frame.option("--reason", required=True)
def bare(session: frame.Session, **values: Any) -> None:
    """Do nothing."""


@frame.command("many")
@frame.argument("needs", nargs=-1, required=True)
def many(session: frame.Session, **values: Any) -> None:
    """Do nothing."""


Read = tuple[dict[str, Any], frame.Globals]
WORDS = [
    *("1", "2", "", "-", "--", "a=b", "-1", "10", "x", "worker", "boss", "id", "age", "auto"),
    *("-m", "-mx", "--message", "--message=", "--message=a=b", "--mess", "-F", "-F=x", "--force"),
    *("--force=1", "--limit", "--limit=3", "--limit=x", "--sort", "--sort=age", "--reason=r"),
    *("--reason", "-q", "-v", "-qv", "--json", "--json=1", "-C", "-Cx", "--as", "--as=eve"),
    *("--role", "--role=worker", "--role=boss", "--color=auto", "--color=pink", "--no-pager"),
    *("-h", "--help", "--nonsense", "-x"),
]


def by_click(command: frame.Command, words: list[str]) -> Read | None:
    session = frame.Session()
    made = clicked.made(command)
    context = click.Context(made, info_name="x")
    context.meta["gittasks.session"] = session
    try:
        with context.scope(cleanup=False):
            made.parse_args(context, list(words))
    except (click.ClickException, click.exceptions.Exit):
        return None
    return context.params, session.options


def by_ourselves(command: frame.Command, words: list[str]) -> Read | None:
    session = frame.Session()
    values = command.read(words, session)
    return None if values is None else (values, session.options)


lines = st.lists(st.sampled_from(WORDS), max_size=7)


@given(st.sampled_from([sample, bare, many]), lines)
@example(sample, ["1", "-m", "--", "--", "-q"])
@example(sample, ["-C", "a", "1", "-C", "b"])
def test_what_we_read_is_what_click_reads(command: frame.Command, words: list[str]) -> None:
    read = by_ourselves(command, words)
    assert read is None or read == by_click(command, words)


def is_plain(words: list[str]) -> bool:
    """Tells whether each option is spelled out: no bundles, no values glued to a letter."""
    return not any(word[:1] == "-" and word[:2] != "--" and len(word) > 2 for word in words)


@given(st.sampled_from([sample, bare, many]), lines.filter(is_plain))
def test_what_click_reads_and_is_plain_we_read(command: frame.Command, words: list[str]) -> None:
    if (expected := by_click(command, words)) is not None:
        assert by_ourselves(command, words) == expected
