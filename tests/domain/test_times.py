"""Times are spelled and read without a clock or a calendar of the machine's."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain.times import seconds_of, timestamp


@given(st.integers(min_value=-2_000_000_000, max_value=250_000_000_000))
def test_a_time_is_spelled_as_the_calendar_has_it_and_read_back(seconds: int) -> None:
    text = timestamp(seconds)
    assert text == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    assert seconds_of(text) == seconds
