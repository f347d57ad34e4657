"""Lets git tidy up behind a ledger that has grown; never in anybody's way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.plumbing import background

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository

__all__ = ["collect_in_background"]


def collect_in_background(repo: Repository) -> None:
    """Starts `git gc --auto`, which does nothing where it is not due or switched off."""
    try:
        background.start(repo, "gc", "--auto", "--quiet")
    except OSError:
        # Without it the repository only stays larger.
        pass
