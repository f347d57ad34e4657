"""Errors speak in git's own words, one sentence each."""

from __future__ import annotations

import pytest

from gittasks.plumbing.errors import (
    GitError,
    GitTimeout,
    LockTimeout,
    RefLocked,
    RefMoved,
    own_words,
)


@pytest.mark.parametrize(
    ("stderr", "sentence"),
    [
        ("fatal: not a git repository: x\n", "not a git repository: x."),
        ("warning: careful\nfatal: bad object x\n", "bad object x."),
        ("error: first\nfatal: last\n", "last."),
        ("hint: try this\nerror: cannot lock ref\n", "cannot lock ref."),
        ("error: why?\n", "why?"),
        ("something else\n", "something else."),
        ("", ""),
    ],
)
def test_the_line_that_says_most_is_chosen(stderr: str, sentence: str) -> None:
    assert own_words(stderr) == sentence


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (GitError(("log", "-1"), 3, ""), "git log ended with status 3."),
        (GitError(("log",), 128, "fatal: bad revision 'x'\n"), "bad revision 'x'."),
        (GitTimeout(("fetch",), 5), "fetch did not end within 5 seconds."),
        (RefMoved("refs/x", "a", "b"), "refs/x is at b but was expected at a."),
        (RefMoved("refs/x", None, "b"), "refs/x is at b but was expected not to exist."),
        (RefMoved("refs/x", "a", None), "refs/x does not exist but was expected at a."),
        (RefLocked("/g/refs/x.lock"), "The lock file /g/refs/x.lock exists."),
        (
            LockTimeout("/g/write.flk", "process 7", 30, "ledger"),
            "The ledger was not free within 30 seconds; held by process 7.",
        ),
    ],
)
def test_every_error_is_one_sentence(error: Exception, sentence: str) -> None:
    assert str(error) == sentence
