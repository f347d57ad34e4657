"""Which commits of the ledger came from a remote: those are here to stay, whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.ledger import quarantine
from gittasks.ledger.layout import COPIES
from gittasks.plumbing import merging, refs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gittasks.ledger.quarantine import Stray
    from gittasks.ledger.view import View

__all__ = ["restore", "shared_tips"]


def restore(ledger: View, tip: str, strays: Sequence[Stray]) -> bool:
    """Keeps what a look at the whole ledger has found at its tip; tells whether that was news.

    What no remote has is left to whoever writes next: it is not here to stay.
    """
    kept = quarantine.load(ledger.state_dir)
    commits = {stray.commit for stray in kept}
    commits |= _shared(ledger, {stray.commit for stray in strays} - commits)
    tree = ledger.reader.commit(tip).tree
    _, holding = quarantine.laid_over(ledger.reader, kept, tip, tree, {})
    wanted = {stray.path: stray for stray in strays if stray.commit in commits}
    if wanted == {path: stray._replace(lifted=()) for path, stray in holding.items()}:
        return False
    others = [stray for stray in kept if holding.get(stray.path) != stray]
    try:
        quarantine.save(ledger.state_dir, [*others, *wanted.values()])
        ledger.snapshot.rebuild()
    except OSError:
        # Where nothing can be written the next look finds the same.
        return False
    return True


def _shared(ledger: View, commits: Iterable[str]) -> set[str]:
    """Returns which of some commits a remote has, as far as is known here."""
    wanted = set(commits)
    tips = shared_tips(ledger) if wanted else ()
    if not tips:
        return set()
    return {one for one in wanted if any(merging.is_ancestor(ledger.repo, one, t) for t in tips)}


def shared_tips(ledger: View) -> list[str]:
    """Returns the tips of the ledger that remotes had when they were last asked."""
    ours = refs.list(ledger.repo, COPIES).values()
    names = refs.list(ledger.repo, "refs/remotes/").items()
    theirs = (oid for name, oid in names if name.endswith(f"/{ledger.short_branch}"))
    return list(dict.fromkeys((*ours, *theirs)))
