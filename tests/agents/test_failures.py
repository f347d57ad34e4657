"""The words of a provider tell whether to wait, to try again or to give up."""

from __future__ import annotations

import pytest

from gittasks.agents.base import Settled
from gittasks.agents.failures import settled

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ('429: {"message":"slow down"}', None),
        ("API Error: Request rejected (429) · x", None),
        ("exceeded retry limit, last status: 429 Too Many Requests", None),
        ("Rate limit reached. Please try again in 1m3.5s.", 63.5),
        ("Usage limit: try again in 3 days, 4 hours and 5 minutes.", 273_900),
        ("rate_limit_error, retry-after: 30", 30),
        ("Rate limit; retry in 250ms", 0.25),
        ("Claude AI usage limit reached|1800003600", 3600),
        ("rate limit, retry after 1800003600", 3600),
        ("usage limit reached|1700000000", None),
        ("usage limit reached|1900000000", 8 * 86_400),
        ("You've hit your session limit · resets 3am", None),
        ("Your credit balance is too low", None),
    ],
)
def test_a_limit_ends_when_its_words_say_so(words: str, seconds: float | None) -> None:
    until = None if seconds is None else NOW + seconds
    assert settled(words, NOW) == Settled("limit", words, until=until)


@pytest.mark.parametrize(
    ("words", "is_retryable"),
    [
        ('401: {"message":"bad key"}', True),
        ("unexpected status 400 Bad Request: prompt is too long", False),
        ("API Error: 404 model not found", False),
        ('{"error": {"type": "invalid_request_error"}}', False),
        ('401: {"type":"invalid_request_error"}', True),
        ("529: overloaded", True),
        ("connection refused after 400 ms", True),
        ("", True),
    ],
)
def test_what_is_wrong_with_the_request_itself_is_not_tried_again(
    words: str, is_retryable: bool
) -> None:
    assert settled(words, NOW) == Settled("error", words, is_retryable=is_retryable)


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("Incomplete response returned, reason: max_output_tokens", "length"),
        ("Incomplete response returned, reason: content_filter", "refused"),
    ],
)
def test_an_answer_that_was_cut_is_no_error(words: str, outcome: str) -> None:
    assert settled(words, NOW).outcome == outcome


def test_a_status_and_a_time_that_are_known_count_more_than_words() -> None:
    assert settled("oh", NOW, status=429, until=NOW + 5) == Settled("limit", "oh", until=NOW + 5)


def test_long_words_are_cut() -> None:
    assert settled("x" * 100_000, NOW) == Settled("error", "x" * 2000)
