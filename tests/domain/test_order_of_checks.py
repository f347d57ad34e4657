"""Malformed input is told first, then an unknown id, state and role, the claim, and the guard."""

from __future__ import annotations

import pytest

from gittasks.domain.decide import decide
from gittasks.domain.errors import GittasksError
from gittasks.domain.requests import (
    Create,
    Edit,
    Facts,
    Feedback,
    Hold,
    Note,
    RecordCheck,
    Release,
    Reorder,
    Reparent,
    Request,
    Submit,
)
from tests.support.builders import hexadecimal
from tests.support.decisions import TIP, a_graph, clean, facts, finish, task_at

UID = hexadecimal("new")
NOBODY = facts(None)
HELD_WORK = task_at("WORK", 1, held_by="bob")
GRAPH = a_graph(
    HELD_WORK, task_at("CLOSED", 2), task_at("NEW", 3), task_at("DESIGN", 4), task_at("CHECK", 5)
)
BROKEN = finish(HELD_WORK, guard=clean(commits=0))
NOT_HOLDER = facts("worker", "eve")
HOLDER = facts("worker", "bob", HELD_WORK.claim)

CASES: dict[str, tuple[Request, Facts, int]] = {
    "a blank title before an unknown dependency": (
        Create(" ", UID, depends_on=("000099",)), facts(), 2,
    ),
    "a priority that is none before an unknown parent": (
        Create("New", UID, priority=9, parent="000099"), facts(), 2,
    ),
    "a blank label before an unknown dependency": (
        Create("New", UID, labels=("",), depends_on=("000099",)), facts(), 2,
    ),
    "an unknown dependency before a closed parent": (
        Create("New", UID, depends_on=("000099",), parent="000002"), facts(), 4,
    ),
    "a blank reason before an unknown task": (Hold("000099", " "), facts(), 2),
    "an unknown task to hold before the role": (Hold("000099", "wait"), NOBODY, 4),
    "blank findings before an unknown task": (Feedback("000099", (" ",)), facts(), 2),
    "an unknown task to send back before the role": (Feedback("000099", ("x",)), NOBODY, 4),
    "a blank note before an unknown task": (Note("000099", " "), facts(), 2),
    "an unknown task to note before anything": (Note("000099", "x"), NOBODY, 4),
    "an artifact without a name before an unknown task": (
        Note("000099", artifacts=((" ", "x"),)), facts(), 2,
    ),
    "an entry that is none before an unknown task": (
        Submit("000099", enter="CHECK"), facts(), 2,
    ),
    "close and enter together before an unknown task": (
        Submit("000099", enter="WORK", close=True), facts(), 2,
    ),
    "an unknown task to submit before the role": (Submit("000099"), NOBODY, 4),
    "a field that is none before an unknown task": (
        Edit("000099", set=(("state", "NEW"),)), facts(), 2,
    ),
    "a value that is none before an unknown task": (
        Edit("000099", set=(("priority", "high"),)), facts(), 2,
    ),
    "an unknown dependency before the role": (
        Edit("000003", add_dependencies=("000099",)), NOBODY, 4,
    ),
    "an unknown dependency before the state": (
        Edit("000004", add_dependencies=("000099",)), facts(), 4,
    ),
    "an unknown dependency to remove before the role": (
        Edit("000003", remove_dependencies=("000099",)), NOBODY, 4,
    ),
    "the role before the claim at an edit": (Edit("000001", body=b"New.\n"), NOBODY, 5),
    "the claim at an edit of what the holder works from": (
        Edit("000001", body=b"New.\n"), facts(), 6,
    ),
    "the state of dependencies before the claim": (
        Edit("000001", body=b"New.\n", add_dependencies=("000003",)), facts(), 5,
    ),
    "an unknown parent before the role": (Reparent("000003", "000099"), NOBODY, 4),
    "a closed task before its parent": (Reparent("000002", "000003"), facts(), 5),
    "no sibling before an unknown task": (Reorder("000099", "before"), facts(), 2),
    "itself as sibling before the role": (Reorder("000003", "after", "000003"), NOBODY, 2),
    "an unknown sibling before the role": (Reorder("000003", "after", "000099"), NOBODY, 4),
    "the role before the claim": (BROKEN, facts("reviewer"), 5),
    "the claim before the guard": (BROKEN, NOT_HOLDER, 6),
    "the guard last": (BROKEN, HOLDER, 5),
    "the claim before the section": (finish(HELD_WORK, section=None), NOT_HOLDER, 6),
    "the role before the claim of a check": (RecordCheck("000005", TIP), NOBODY, 5),
    "the role of a forced release before the claim": (
        Release("000003", why="forced"), NOBODY, 5,
    ),
    "a plain release of what somebody holds": (Release("000001"), facts(), 6),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_refusals_come_in_one_order(case: str) -> None:
    request, said, code = CASES[case]
    with pytest.raises(GittasksError) as refused:
        decide(GRAPH, request, said)
    assert refused.value.exit_code == code


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_is_a_sentence_and_its_hint_a_way_out(case: str) -> None:
    request, said, _code = CASES[case]
    with pytest.raises(GittasksError) as refused:
        decide(GRAPH, request, said)
    hint = refused.value.hint or "Run it."
    assert (refused.value.message[-1], hint[0].isupper(), hint[-1]) == (".", True, ".")


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_changes_nothing(case: str) -> None:
    request, said, _code = CASES[case]
    before = a_graph(*GRAPH.tasks.values())
    with pytest.raises(GittasksError):
        decide(GRAPH, request, said)
    assert before == GRAPH
