"""The task graph as others see it: `task_graph_projection_v0` at the commit we look at.

Nothing here writes, and there is no way from the object back to the ledger.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain.projections import graph_v0
from gittasks.domain.projections.graph_v0 import GATE_LIMIT
from gittasks.workflow.queries import Waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.domain.projections.table import World
    from gittasks.workflow.project import Project

__all__ = ["GATE_LIMIT", "Graphs", "View", "of_items", "projection"]


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
        """Looks at the commit that the project looks at; nothing is read before it is asked for."""
        self._project = project

    @cached_property
    def world(self) -> World:
        """Returns all that the ledger says at the commit."""
        from gittasks.ledger import worlds

        return worlds.at(self._project.ledger, self._project.ledger.tip)

    @cached_property
    def source(self) -> graph_v0.Source:
        """Returns where the world comes from."""
        ledger = self._project.ledger
        at = ledger.reader.commit(ledger.tip).committer_time
        return graph_v0.Source(self._project.branch, ledger.tip, at)

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
        problems = self._project.ledger.snapshot.problems()
        unreadable = {problem.task for problem in problems if problem.task is not None}
        return graph_v0.build(self.world, task_id, self.source, options, unreadable=unreadable)


class Graphs(NamedTuple):
    """The graphs around what waits; where nothing waits, the task that matters most instead."""

    by_task: dict[str, dict[str, Any]]
    instead: Waiting | None = None


def of_items(project: Project, waiting: Sequence[str], gate_limit: int | None = None) -> Graphs:
    """Returns the graphs around the tasks that wait for the manager."""
    view = View(project)
    options = graph_v0.Options(GATE_LIMIT if gate_limit is None else gate_limit)
    instead = None if waiting else _instead(project, view)
    tasks = waiting if instead is None else (instead.task.id,)
    drawn = ((task, view.around(task, options)) for task in tasks)
    return Graphs({task: graph for task, graph in drawn if graph is not None}, instead)


def _instead(project: Project, view: View) -> Waiting | None:
    selected = view.selected
    task = None if selected is None else project.ledger.snapshot.task(selected)
    if task is None:
        return None
    is_claimed = task.claimed_by is not None
    reason = f"claimed by {task.claimed_by}" if is_claimed else "ready to be taken"
    command = f"git tasks {'show' if is_claimed else 'start'} {task.id}"
    blocking = project.ledger.snapshot.blocking(task.id)
    return Waiting(task, 0, reason, command, blocking, task.entered_at)
