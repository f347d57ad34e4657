"""How ids are spelled, and keys between keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain.errors import UnknownTask, UsageFault
from gittasks.domain.ids import folder_of, is_id, key_between, parse_id, task_id
from tests.support.examples import examples

KEYS = st.integers(1, 999_999).map(task_id)


@pytest.mark.parametrize(
    "text",
    ["42", "000042", "0042", "#42", "task/000042", "refs/heads/task/000042", "task/000042-0f3a",
     " 42 ", "42\n"],
)  # fmt: skip
def test_one_task_is_spelled_in_many_ways(text: str) -> None:
    assert parse_id(text) == "000042"


@pytest.mark.parametrize(
    "text", ["0", "000000", "1000000", "x", "4 2", "-1", "٤٢", "42x", "#", "task/", "1.5", "\x1b42"]
)
def test_what_is_no_number_is_no_task(text: str) -> None:
    with pytest.raises(UnknownTask, match="a task id is a number such as 42"):
        parse_id(text)


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_a_blank_id_is_a_mistake_of_the_caller(text: str) -> None:
    with pytest.raises(UsageFault):
        parse_id(text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [("000042", True), ("42", False), ("0000042", False), ("000000", False), ("00004x", False),
     ("٠٠٠٠٤٢", False), ("00004²", False)],
)  # fmt: skip
def test_a_stored_id_has_six_digits(text: str, answer: bool) -> None:
    assert is_id(text) is answer


def test_a_folder_holds_a_hundred_tasks() -> None:
    assert [folder_of(task_id(n)) for n in (1, 99, 100, 12_345)] == ["0000", "0000", "0001", "0123"]


@examples(50)
@given(low=KEYS, high=KEYS, turns=st.lists(st.booleans(), max_size=60))
def test_there_is_always_a_key_between_two(low: str, high: str, turns: list[bool]) -> None:
    low, high = ("", high) if low >= high else (low, high)
    for up in turns:
        key = key_between(low, high)
        assert low < key < high
        low, high = (key, high) if up else (low, key)


@examples(50)
@given(low=KEYS, turns=st.integers(1, 60))
def test_there_is_always_a_key_after_the_last(low: str, turns: int) -> None:
    for _ in range(turns):
        key = key_between(low, "")
        assert low < key
        low = key


def test_there_is_no_key_where_there_is_no_room() -> None:
    with pytest.raises(ValueError, match="no key between '2' and '1'"):
        key_between("2", "1")
