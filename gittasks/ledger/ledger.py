"""The ledger of one repository: what the tasks are, and the one way to change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.ledger.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.config import Project
    from gittasks.domain.events import Event
    from gittasks.domain.task_graph import Graph
    from gittasks.ledger.writing import Appended
    from gittasks.plumbing import refs

__all__ = ["Ledger"]


class Ledger(View):
    """The ledger branch of a repository; it need not exist yet."""

    def create(self, settings: Project, actor: str) -> str:
        """Begins the ledger with these settings and returns the commit of its first event."""
        from gittasks.ledger import writing

        return writing.create(self, settings, actor)

    def heal(self) -> bool:
        """Brings back a branch that is gone where its last tip is certain; tells whether it is back."""
        from gittasks.ledger import recover

        with self.locked():
            tip = recover.writable_tip(self)
        self.refresh()
        return tip is not None

    def append(
        self,
        decide: Callable[[Graph], Sequence[Event]],
        *,
        also: Sequence[refs.Change] | Callable[[], Sequence[refs.Change]] = (),
    ) -> Appended:
        """Writes what `decide` says on the newest graph, and moves the other refs with it.

        Whoever loses a race decides again; changes of other refs that were given as values and
        no longer fit raise RefMoved. No events: nothing is written and no ref moves.
        """
        from gittasks.ledger import writing

        return writing.append(self, decide, also)
