"""The text an agent is given, and what is made of the text that comes back."""

from __future__ import annotations

import pytest

from gittasks.domain.assignment import (
    Dispatched,
    Reading,
    begins_with,
    chosen_section,
    dispatch,
    read_back,
    section_of,
)
from gittasks.domain.errors import UsageFault
from gittasks.domain.machine import STAGE

DESIGN, WORK, REVIEW = STAGE["DESIGN"], STAGE["WORK"], STAGE["DESIGN_REVIEW"]
BODY = b"Do it.\n"
GIVEN = dispatch(BODY, DESIGN)
WROTE = b"## Design\n\nTwo parts.\n"
NOTES = b"## Implementation Notes"
ROUNDS = BODY + b"\n" + NOTES + b"\n\nFirst.\n\n# Review findings\n\n- No.\n"


# What is handed out.


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", b"## Design\n\n"),
        (b"Do it.", b"Do it.\n\n## Design\n\n"),
        (b"Do it.\n", b"Do it.\n\n## Design\n\n"),
        (b"Do it.\n\n", b"Do it.\n\n## Design\n\n"),
        (b"## Design\n\nOld.\n", b"## Design\n\nOld.\n\n## Design\n\n"),
    ],
)
def test_an_author_gets_the_text_and_an_empty_heading(body: bytes, text: bytes) -> None:
    assert dispatch(body, DESIGN) == Dispatched(text, len(text) - 11, "## Design")


def test_a_reviewer_gets_the_document_as_it_is() -> None:
    assert dispatch(BODY + WROTE, REVIEW) == Dispatched(BODY + WROTE)


def test_a_further_round_gets_a_new_heading_below_the_earlier_ones() -> None:
    assert dispatch(ROUNDS, WORK).text == ROUNDS + b"\n" + NOTES + b"\n\n"


# What comes back in order.


@pytest.mark.parametrize(
    "appended",
    [
        b"Two parts.\n",
        b"\n\nTwo parts.\n\n\n",
        b"Two parts.",
        b"Two parts.  \n  \n",
        b"## Design\n\nTwo parts.\n",
    ],
)
def test_what_stands_under_the_own_heading_is_the_section(appended: bytes) -> None:
    assert read_back(GIVEN, GIVEN.text + appended) == Reading(WROTE)


def test_the_own_text_keeps_its_inside() -> None:
    text = b"    indented\n\n\n## Design\n\n```\n## Design\n```"
    assert read_back(GIVEN, GIVEN.text + text) == Reading(b"## Design\n\n" + text + b"\n")


@pytest.mark.parametrize("appended", [b"", b"\n", b"  \n\t\n"])
def test_nothing_appended_is_no_section(appended: bytes) -> None:
    assert read_back(GIVEN, GIVEN.text + appended) == Reading()


@pytest.mark.parametrize("live", [b"Do it.\n\n## Design", b"Do it.\n\n## Design  \n"])
def test_an_editor_may_trim_the_end_of_the_own_heading(live: bytes) -> None:
    assert read_back(GIVEN, live) == Reading()


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_line_endings_are_no_change(end: bytes) -> None:
    live = (GIVEN.text + b"Two parts.\n").replace(b"\n", end)
    assert read_back(GIVEN, live) == Reading(WROTE)


def test_line_endings_of_the_text_itself_are_no_change() -> None:
    given = dispatch(b"Do it.\r\nNow.\r\n", DESIGN)
    live = given.text.replace(b"\r\n", b"\n") + b"Two parts.\n"
    assert read_back(given, live) == Reading(WROTE)


def test_the_own_heading_is_known_by_its_place() -> None:
    given = dispatch(ROUNDS, WORK)
    assert read_back(given, given.text + b"Second.\n") == Reading(NOTES + b"\n\nSecond.\n")


def test_a_heading_in_a_fence_of_the_text_is_text() -> None:
    given = dispatch(b"```\n## Design\n```\n", DESIGN)
    assert read_back(given, given.text + b"Two parts.\n") == Reading(WROTE)


# What comes back changed.


@pytest.mark.parametrize(
    "live",
    [
        b"Do it now.\n\n## Design\n\nTwo parts.\n",
        b"\n## Design\n\nTwo parts.\n",
        b"## Design\n\nTwo parts.\n",
        b"Do it now.\r\n\r\n## Design\r\n\r\nTwo parts.\r\n",
        b"Do it.\n\n## My design\n\nTwo parts.\n",
        b"Do it.\n\n## Design: two\n\nTwo parts.\n",
        b"Do it.\n\n##\n\nTwo parts.\n",
        b"Do it.\n\nTwo parts.\n",
        b"Do it.\n\n\nTwo parts.\n",
    ],
)
def test_a_changed_text_is_restored_and_the_own_part_is_kept(live: bytes) -> None:
    assert read_back(GIVEN, live) == Reading(WROTE, GIVEN.text + b"Two parts.\n")


def test_what_was_written_above_the_own_heading_is_kept_below_it() -> None:
    reading = read_back(GIVEN, b"Do it.\n\nOne more.\n## Design\nTwo parts.\n")
    assert reading.repaired == GIVEN.text + b"One more.\nTwo parts.\n"


def test_a_line_that_only_looks_like_a_heading_is_kept() -> None:
    reading = read_back(GIVEN, b"Do it.\n\n#!/bin/sh\n")
    assert reading.repaired == GIVEN.text + b"#!/bin/sh\n"


@pytest.mark.parametrize("live", [b"", b"Do it now.\n\n## Design\n\n", b"Do it.\n"])
def test_a_changed_text_without_an_own_part_is_restored_empty(live: bytes) -> None:
    assert read_back(GIVEN, live) == Reading(None, GIVEN.text)


def test_a_changed_text_without_a_heading_keeps_all_from_the_change_on() -> None:
    reading = read_back(GIVEN, b"Do it now.\n\nTwo parts.\n")
    assert reading.repaired == GIVEN.text + b"Do it now.\n\nTwo parts.\n"


def test_a_cut_text_has_nothing_to_keep() -> None:
    given = dispatch(b"One.\nTwo.\n", DESIGN)
    assert read_back(given, b"One.") == Reading(None, given.text)


def test_earlier_sections_are_restored_and_the_own_one_is_told_apart() -> None:
    given = dispatch(ROUNDS, WORK)
    live = given.text.replace(b"First.", b"Changed.") + b"Second.\n"
    assert read_back(given, live) == Reading(NOTES + b"\n\nSecond.\n", given.text + b"Second.\n")


def test_a_deleted_earlier_section_leaves_the_last_heading_as_the_own_one() -> None:
    given = dispatch(ROUNDS, WORK)
    live = BODY + b"\n" + NOTES + b"\n\nSecond.\n"
    assert read_back(given, live) == Reading(NOTES + b"\n\nSecond.\n", given.text + b"Second.\n")


def test_a_repaired_text_is_in_order() -> None:
    reading = read_back(GIVEN, b"Do it now.\n\n## Design\n\nTwo parts.\n")
    assert read_back(GIVEN, reading.repaired or b"") == Reading(WROTE)


@pytest.mark.parametrize("live", [BODY, b"Do it.", b"Do it.\r\n", b"Do it.\n\n"])
def test_a_reviewer_who_wrote_nothing_changed_nothing(live: bytes) -> None:
    assert read_back(dispatch(BODY, REVIEW), live) == Reading()


def test_a_reviewers_changes_are_restored() -> None:
    assert read_back(dispatch(BODY, REVIEW), b"Do it.\nLooks good.\n") == Reading(None, BODY)


# A section given with the command.


@pytest.mark.parametrize(
    "text", [b"Two parts.", b"\nTwo parts.\r\n", b"## Design\nTwo parts.\n", WROTE]
)
def test_a_text_becomes_a_section_with_one_heading(text: bytes) -> None:
    assert section_of("## Design", text) == WROTE


def test_a_given_text_goes_before_an_empty_file() -> None:
    assert chosen_section("## Design", b"Two parts.", None) == WROTE


def test_a_given_text_may_be_that_of_the_file() -> None:
    assert chosen_section("## Design", b"Two parts.", WROTE) == WROTE


def test_without_a_given_text_the_file_counts() -> None:
    assert chosen_section("## Design", None, WROTE) == WROTE
    assert chosen_section("## Design", None, None) is None


@pytest.mark.parametrize(
    ("given", "written", "why"),
    [(b" \n", None, "is blank"), (b"Three parts.", WROTE, "has another text under ## Design")],
)
def test_a_given_text_that_would_lose_another_is_refused(
    given: bytes, written: bytes | None, why: str
) -> None:
    with pytest.raises(UsageFault, match=why):
        chosen_section("## Design", given, written)


def test_a_former_assignment_is_lost_only_where_its_text_stands_nowhere_else() -> None:
    assert begins_with(b"body\n\n## Notes\n\ndone\n", b"body\r\n\r\n## Notes\r\n\r\n")
    assert not begins_with(b"body\n\n## Notes\n\n", b"body\n\n## Notes\n\nhalf\n")
