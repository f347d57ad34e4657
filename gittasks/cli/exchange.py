"""How a sync is told: what came, what went, and what became of our own events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.workflow.answers import as_synced

if TYPE_CHECKING:
    from gittasks.cli import frame
    from gittasks.workflow.sync import Synced

TAKEN = 6
"""The exit code of a sync that could not apply an event of this clone."""


def tell(session: frame.Session, done: Synced) -> int:
    """Tells what a sync did, or would do, and returns the exit code."""
    out = session.out
    if done.began:
        out.say(f"This clone shares its ledger through {done.remote} from now on."
                if not done.dry_run else f"This clone would share its ledger through {done.remote}.")  # fmt: skip
    for note in done.notes:
        out.say(note)
    if not session.answer("sync", as_synced(done), done.tip):
        out.line(_line(done))
    return TAKEN if done.rejected and not done.dry_run else 0


def _line(done: Synced) -> str:
    would = "would be " if done.dry_run else ""
    words = []
    if done.received:
        words.append(f"{_events(done.received)} {would}received")
    published = done.pending if done.dry_run else done.published
    if published:
        words.append(f"{_events(published)} {would}published")
    if done.branches:
        count = len(done.branches)
        words.append(f"{'one branch' if count == 1 else f'{count} branches'} {would}published")
    for one in done.renumbered:
        words.append(f"{one.old} {'would be' if done.dry_run else 'is now'} {one.new}")
    for kind, task, _ in done.rejected:
        fate = "would not be applied" if done.dry_run else "was not applied"
        words.append(f"{kind}{f' of {task}' if task else ''} {fate}")
    if not done.dry_run and done.pending:
        words.append(f"{_events(done.pending)} not published")
    return f"{done.remote}: {', '.join(words) or 'nothing to do'}"


def _events(count: int) -> str:
    return "one event" if count == 1 else f"{count} events"
