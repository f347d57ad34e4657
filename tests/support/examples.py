"""How many examples a property gets: the same ones in every run, and none kept between runs."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int = 100, **more: object) -> settings:
    """Returns the settings of a property that is tried on so many examples."""
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        **more,  # type: ignore[arg-type]
    )
