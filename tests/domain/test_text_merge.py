"""Two people change one text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain.text_merge import merged
from tests.support.examples import examples

OLD = b"one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        (b"ONE\ntwo\nthree\nfour\nfive\n", b"one\ntwo\nthree\nfour\nFIVE\n", b"ONE\ntwo\nthree\nfour\nFIVE\n"),
        (OLD, b"other\n", b"other\n"),
        (b"other\n", OLD, b"other\n"),
        (b"same\n", b"same\n", b"same\n"),
        (b"zero\n" + OLD, OLD + b"six\n", b"zero\n" + OLD + b"six\n"),
        (b"one\nthree\nfour\nfive\n", b"one\ntwo\nthree\nfour\n", b"one\nthree\nfour\n"),
        (b"ONE\ntwo\nthree\nfour\nfive\nsix\n", b"ONE\ntwo\nthree\nfour\nfive\n", b"ONE\ntwo\nthree\nfour\nfive\nsix\n"),
    ],
    ids=[
        "different lines", "only theirs", "only ours", "the same", "both ends", "two deletions",
        "one change in both",
    ],
)  # fmt: skip
def test_changes_of_different_places_are_both_there(
    ours: bytes, theirs: bytes, both: bytes
) -> None:
    assert merged(OLD, ours, theirs) == both


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (b"one\nTWO\nthree\nfour\nfive\n", b"one\nzwei\nthree\nfour\nfive\n"),
        (OLD + b"six\n", OLD + b"sechs\n"),
        (b"one\nTWO\nthree\nfour\nfive\n", b"one\ntwo\nTHREE\nfour\nfive\n"),
        (b"", b"one\nTWO\nthree\nfour\nfive\n"),
    ],
    ids=["one line", "two additions at the end", "neighbours", "deleted and changed"],
)
def test_changes_that_meet_are_a_conflict(ours: bytes, theirs: bytes) -> None:
    assert merged(OLD, ours, theirs) is None


def _numbered(count: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(count))


@pytest.mark.parametrize("count", [2_000, 20_000], ids=["too many changes", "too many lines"])
def test_a_text_too_large_to_compare_counts_as_changed_in_one_place(count: int) -> None:
    old = _numbered(count)
    ours = old.replace(b"1", b"x")
    theirs = old.replace(b"2", b"y")
    assert merged(old, ours, theirs) is None


def test_a_change_outside_of_a_place_too_large_to_compare_is_merged() -> None:
    old = _numbered(2_001)
    ours = old.replace(b"1", b"x")
    assert merged(old, ours, old + b"end\n") == ours + b"end\n"


def test_a_large_text_with_few_changes_is_merged_line_by_line() -> None:
    old = _numbered(5_000)
    ours = b"first\n" + old.replace(b"\n4000\n", b"\n")
    theirs = old.replace(b"\n2000\n", b"\ntwo\nthousand\n") + b"last\n"
    assert merged(old, ours, theirs) == (
        b"first\n"
        + old.replace(b"\n4000\n", b"\n").replace(b"\n2000\n", b"\ntwo\nthousand\n")
        + b"last\n"
    )


def test_blank_lines_everywhere_take_no_time() -> None:
    old = b"\n".join(b"%d\n" % number for number in range(4_000))
    ours = b"\n".join(b"x%d\n" % number for number in range(4_000))
    assert merged(old, ours, old.replace(b"\n7\n", b"\nseven\n")) is None


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"d"]), max_size=8).map(b"".join)


@examples(200)
@given(LINES, LINES)
def test_a_change_of_one_side_alone_is_taken_whole(old: bytes, new: bytes) -> None:
    assert (merged(old, new, old), merged(old, old, new)) == (new, new)


@examples(300)
@given(LINES, LINES)
def test_what_both_have_changed_alike_is_there_once(old: bytes, new: bytes) -> None:
    assert merged(old, new, new) == new


@examples(300)
@given(LINES, LINES, LINES)
def test_changes_of_the_two_halves_are_both_there(head: bytes, ours: bytes, theirs: bytes) -> None:
    middle = b"1\n2\n3\n"
    old = head + b"\n" + middle + head
    both = merged(old, ours + b"\n" + middle + head, head + b"\n" + middle + theirs)
    assert both == ours + b"\n" + middle + theirs


@examples(200)
@given(LINES, LINES, LINES)
def test_it_does_not_matter_who_comes_first(old: bytes, ours: bytes, theirs: bytes) -> None:
    assert merged(old, ours, theirs) == merged(old, theirs, ours)


@examples(200)
@given(LINES, LINES, LINES)
def test_a_merge_has_no_line_that_nobody_wrote(old: bytes, ours: bytes, theirs: bytes) -> None:
    both = merged(old, ours, theirs)
    known = set((old + b"\n" + ours + b"\n" + theirs).splitlines())
    assert both is None or set(both.splitlines()) <= known
