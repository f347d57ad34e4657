"""The task graph as others see it: `task_graph_projection_v0` at the commit we look at.

Nothing here writes, and there is no way from the object back to the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain.projections import graph_v0
from gittasks.domain.projections.graph_v0 import GATE_LIMIT

if TYPE_CHECKING:
    from gittasks.domain.projections.table import World
    from gittasks.workflow.project import Project

__all__ = ["GATE_LIMIT", "View", "projection"]


def projection(
    project: Project,
    task_id: str | None = None,
    *,
    gate_limit: int = GATE_LIMIT,
    everything: bool = False,
    history: bool = False,
) -> dict[str, Any] | None:
    """Returns the graph around a task, else around the one that matters most; None without any.

    `everything` lifts the limits, and without a task it draws the whole project; `history` draws
    the repairs and gates that are done, too.
    """
    options = graph_v0.Options(gate_limit, everything, history)
    return View(project).around(task_id, options)


class View:
    """One commit of the ledger, folded once for several graphs."""

    def __init__(self, project: Project) -> None:
        """Reads the world at the commit that the project looks at."""
        from gittasks.ledger import worlds

        ledger = project.ledger
        tip = ledger.tip
        self.world: World = worlds.at(ledger, tip)
        self.source = graph_v0.Source(project.branch, tip, ledger.reader.commit(tip).committer_time)
        self._unreadable = frozenset(
            problem.task for problem in ledger.snapshot.problems() if problem.task is not None
        )

    @property
    def selected(self) -> str | None:
        """Returns the task that matters most at this commit."""
        return graph_v0.selected(self.world)

    def around(
        self,
        task_id: str | None,
        options: graph_v0.Options = graph_v0.Options(),  # noqa: B008  # a NamedTuple is immutable
    ) -> dict[str, Any] | None:
        """Returns the graph around a task, else around the one that matters most."""
        return graph_v0.build(
            self.world, task_id, self.source, options, unreadable=self._unreadable
        )
