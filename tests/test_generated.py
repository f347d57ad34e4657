"""The pages that are derived from the code say what the code says."""

from __future__ import annotations

import pytest

from gittasks.domain import machine
from tests import generated


@pytest.mark.parametrize("page", generated.PAGES)
def test_a_generated_page_is_up_to_date(page: str) -> None:
    on_disk = (generated.CHECKOUT / page).read_text(encoding="utf-8")
    assert on_disk == generated.PAGES[page](), "run `python -m tests.generated`"


def test_the_diagram_shows_every_state() -> None:
    drawn = generated.states_page().split("```mermaid")[1]
    assert [state for state in machine.STAGE if state not in drawn] == []
