"""Every refusal has an exit code that the table explains."""

from __future__ import annotations

import pytest

from gittasks.domain import errors
from gittasks.domain.errors import EXIT_CODES, Cycle, GittasksError, GuardBroken, in_a_sentence

CLASSES = [
    found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, GittasksError)
]


def test_every_exit_code_has_its_name_and_its_class() -> None:
    found = {(cls.exit_code, cls.name) for cls in CLASSES}
    assert found | {(0, "OK")} == {(code, name) for code, (name, _) in EXIT_CODES.items()}


def test_only_a_time_out_is_worth_another_try() -> None:
    assert {cls.exit_code for cls in CLASSES if cls.retryable} == {75}


def test_a_refusal_carries_sentence_hint_and_task() -> None:
    refusal = GuardBroken("uncommitted", "It is dirty.", "Commit.", "000001")
    assert (str(refusal), refusal.message, refusal.hint, refusal.task, refusal.issue) == (
        "It is dirty.", "It is dirty.", "Commit.", "000001", "uncommitted",
    )  # fmt: skip


def test_a_ring_is_spelled_edge_by_edge() -> None:
    assert Cycle(("000001", "000002", "000001")).message == (
        "This would make a ring of dependencies: 000001 needs 000002, 000002 needs 000001."
    )


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("The step is not legal.", "the step is not legal"),
        ("CHECK is claimed by bob.", "CHECK is claimed by bob"),
        ("it is so already", "it is so already"),
        ("", ""),
    ],
)
def test_a_sentence_goes_on_inside_another_one(text: str, inside: str) -> None:
    assert in_a_sentence(text) == inside
