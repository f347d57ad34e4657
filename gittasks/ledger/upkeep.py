"""Lets git tidy up behind a ledger that has grown; never in anybody's way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository

__all__ = ["collect_in_background"]


def collect_in_background(repo: Repository) -> None:
    """Starts `git gc --auto` where the user has not switched it off, and does not wait for it."""
    start = getattr(repo, "start_detached", None)
    if start is None or repo.config.get("gc.auto") == "0":
        return
    try:
        start("-c", f"gc.auto={repo.config.get('gc.auto') or '6700'}", "gc", "--auto", "--quiet")
    except OSError:
        pass
