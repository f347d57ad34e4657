"""The words of a runner's agents: from the prompts as they are at the tip of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import GittasksError
from gittasks.workflow import prompts as workflow

if TYPE_CHECKING:
    from gittasks.domain.task import Task
    from gittasks.domain.turn import Issue
    from gittasks.prompts.fragments import Prompts
    from gittasks.runner.seat import Stint
    from gittasks.workflow.project import Project


class Wording:
    """The prompts, read again when the ledger has moved; a faulty one leaves the last good ones."""

    def __init__(self, project: Project) -> None:
        """Reads all prompts; raises UsageFault, naming file and line, where one is faulty."""
        self._project = project
        self._prompts = workflow.prompts_of(project)
        self._tip = project.ledger.tip
        self._trouble: str | None = None
        self._told: str | None = None

    @property
    def prompts(self) -> Prompts:
        """Returns the prompts as they are now."""
        tip = self._project.ledger.tip
        if tip != self._tip:
            self._tip = tip
            try:
                self._prompts = workflow.prompts_of(self._project)
                self._trouble = None
            except GittasksError as error:
                self._trouble = error.message
        return self._prompts

    def trouble(self) -> str | None:
        """Returns, once, what is wrong with the prompts that the ledger has by now."""
        assert self.prompts
        told, self._told = self._told, self._trouble
        return None if self._trouble == told else self._trouble

    def ids(self, task: Task) -> dict[str, str]:
        """Returns which of the ledger's prompts an agent at a task's state is given, by blob."""
        ids = self.prompts.ids
        return {name: ids[name] for name in workflow.names_of(task) if name in ids}

    def brief(self, task: Task) -> str:
        """Returns all that an agent is told that knows nothing yet."""
        return workflow.dispatch_prompt(self._project, self.prompts, task)[0]

    def check_failed(self, task: Task) -> str:
        """Returns what a worker is told whose submitted commit was refused by the checks."""
        return workflow.check_failed_prompt(self._project, self.prompts, task)

    def nudge(self, stint: Stint, issue: Issue, detail: str) -> str:
        """Returns what an agent is told whose turn has left an issue."""
        task = self._project.task(stint.run.task)
        return workflow.nudge(self.prompts, issue, task, detail=detail)
