"""Which commits of the ledger came from a remote: those are here to stay, whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.ledger import quarantine
from gittasks.ledger.layout import COPIES
from gittasks.plumbing import refs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gittasks.ledger.quarantine import Stray
    from gittasks.ledger.view import View

__all__ = ["restore", "shared_tips"]


def restore(ledger: View, tip: str, strays: Sequence[Stray], invalid: Iterable[str]) -> bool:
    """Keeps what a look at the whole ledger has found at its tip; tells whether that was news.

    What no remote has is left to whoever writes next: it is not here to stay.
    """
    kept = quarantine.read(ledger.state_dir)
    commits = {*kept.invalid, *_shared(ledger, {*invalid} - {*kept.invalid})}
    tree = ledger.reader.commit(tip).tree
    _, holding = quarantine.laid_over(ledger.reader, kept.strays, tip, tree, {})
    wanted = {stray.path: stray for stray in strays if stray.commit in commits}
    is_known = wanted == {path: stray._replace(lifted=()) for path, stray in holding.items()}
    if is_known and commits == {*kept.invalid}:
        return False
    others = [stray for stray in kept.strays if holding.get(stray.path) != stray]
    after = quarantine.Kept((*others, *wanted.values()), tuple(sorted(commits)))
    if is_known:
        after = after._replace(strays=kept.strays)
    try:
        quarantine.save(ledger.state_dir, after)
        ledger.snapshot.rebuild()
    except OSError:
        # Where nothing can be written the next look finds the same.
        return False
    return not is_known


def _shared(ledger: View, commits: Iterable[str]) -> set[str]:
    """Returns which of some commits a remote has, as far as is known here."""
    wanted = set(commits)
    tips = shared_tips(ledger) if wanted else ()
    if not tips:
        return set()
    return wanted.intersection(ledger.repo.text("rev-list", *tips, "--").split())


def shared_tips(ledger: View) -> list[str]:
    """Returns the tips of the ledger that remotes had when they were last asked."""
    ours = refs.list(ledger.repo, COPIES).values()
    names = refs.list(ledger.repo, "refs/remotes/").items()
    theirs = (oid for name, oid in names if name.endswith(f"/{ledger.short_branch}"))
    return list(dict.fromkeys((*ours, *theirs)))
