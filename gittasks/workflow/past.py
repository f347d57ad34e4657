"""Which commit of the ledger `--at` means: an object id, a ref, HEAD~3, or a date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import UnknownTask, UsageFault

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository


def commit_at(repo: Repository, tip: str, spelling: str) -> str:
    """Returns the commit that is meant; HEAD and @ are the tip, a date the last event until then.

    Raises UnknownTask where it is none of the ledger, and UsageFault for words without meaning.
    """
    name = spelling.strip()
    if not name or name.startswith("-"):
        raise UsageFault(f"--at {spelling!r} names no commit.", _HINT)
    found = named(repo, name, tip)
    if found is None:
        seconds = _seconds(name)
        if seconds is None:
            raise UnknownTask(f"The commit {spelling} is not part of the ledger.", _HINT)
        return _until(repo, tip, seconds, spelling)
    from gittasks.plumbing import merging

    if found != tip and not merging.is_ancestor(repo, found, tip):
        raise UnknownTask(f"The commit {spelling} is not part of the ledger.", _HINT)
    return found


_HINT = (
    "Name a commit of `git tasks log`, HEAD~N, or a date such as 2026-11-30 or 2026-11-30T12:00Z."
)


def named(repo: Repository, name: str, tip: str) -> str | None:
    """Returns the commit that git knows by a name; HEAD and @ are the tip of the ledger."""
    name = name.strip()
    for word in ("HEAD", "@"):
        rest = name.removeprefix(word)
        if rest != name and rest[:1] in ("", "~", "^"):
            name = tip + rest
            break
    asked = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    found = "" if name.startswith("-") else repo.text(*asked, check=False)
    # A range is more than one commit.
    return found if found.isalnum() else None


def _seconds(text: str) -> int | None:
    """Returns the seconds since 1970 that a date means, a day its end; None where it is none.

    What is too far away for a clock is before everything. A time without a zone is one of the place where it is read.
    """
    from datetime import datetime, timedelta

    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    try:
        if len(text) <= len("2026-11-30"):
            when += timedelta(days=1, seconds=-1)
        return int(when.timestamp())
    except (OverflowError, OSError, ValueError):
        return -1


def _until(repo: Repository, tip: str, seconds: int, spelling: str) -> str:
    # The dates of a ledger never go back, and the last commit until then is the state of then.
    # The first commit of all ledgers is no event, and older than any of them.
    asked = ("rev-list", "--max-count=1", "--min-parents=1", f"--min-age={seconds}", tip, "--")
    found = "" if seconds < 0 else repo.text(*asked)
    if not found:
        raise UnknownTask(
            f"There was no ledger at {spelling}.", "Run `git tasks log` to see when it began."
        )
    return found
