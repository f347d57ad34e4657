"""How the agents of a runner are kept apart from the rest of the machine, and their work brought in.

Which step is reached is tried once, at the start. In bubblewrap an agent commits into a quarantine,
from which its work is brought in at every end of a turn; below it nothing hinders an agent, and
refs, settings and hooks are compared after its run. What does not fit is told, either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.agents import sandbox
from gittasks.workflow import pool as pools
from gittasks.workspaces import quarantine, trespass
from gittasks.workspaces.branch import HEADS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gittasks.domain.pool import Agent, Pool
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project
    from gittasks.workspaces.runs import RunRecord

_UNTRIED = sandbox.Step("bare", "Nothing was tried yet.")


class _Before(NamedTuple):
    """What stood when a run began: the task's branch, and where its log ended."""

    branch: str
    logged: int


class Apart:
    """The walls around the agents of one runner."""

    def __init__(self, project: Project, pool: Pool, wish: str | None) -> None:
        """Reads what is wished for; raises UsageFault for a wish that is none."""
        self._project = project
        self._wish = pools.sandbox_wish(project, pool, wish)
        self._before: dict[str, _Before] = {}
        self._seen: trespass.Seen | None = None
        self._tip = ""
        self.step = _UNTRIED
        self.is_wished = self._wish != "off"
        """Whether somebody counts on walls."""

    def begin(self) -> None:
        """Tries how far it goes here; raises Refused where a sandbox is required and does not work."""
        project = self._project
        laid = quarantine.trial_mounts(project.repo, project.places)
        room = sandbox.Room("/", quarantine.trial_folder(project.places), laid)
        self.step = sandbox.reached(self._wish, project.environ, room)

    def enter(
        self, entry: Agent, task: Task, run: RunRecord, env: Mapping[str, str]
    ) -> Callable[[Sequence[str]], Sequence[str]]:
        """Prepares the room of a run; returns what puts its walls around an argument list."""
        project = self._project
        places, repo = project.places, project.repo
        assert task.branch is not None
        laid: tuple[quarantine.Mount, ...] = ()
        if self.step.name == "bubblewrap":
            moves = task.state == "WORK"
            made = quarantine.prepare(repo, places, task.id, task.branch, moves=moves)
            laid = quarantine.mounts(repo, places, made, claim=run.claim, outbox=run.outbox)
        room = sandbox.Room(
            places.tree(task.id), places.folder(task.id), laid, entry.write, entry.type
        )
        self._before[run.claim] = _Before(task.branch, trespass.log_size(run.log))
        if self._seen is None and self.step.name != "bubblewrap":
            self._seen, self._tip = trespass.remember(repo), project.ledger.tip
        return lambda argv: sandbox.wrap(self.step, room, argv, env)

    def harvest(self, run: RunRecord) -> str | None:
        """Brings in what an agent has committed; returns why that is not possible."""
        project = self._project
        return quarantine.harvest(project.repo, project.places, run.task).trouble

    def leave(self, run: RunRecord) -> list[str]:
        """Ends the room of a run whose agent is gone; returns what somebody has to be told."""
        project = self._project
        told = [*quarantine.close(project.repo, project.places, run.task)]
        before = self._before.pop(run.claim, None)
        return told if before is None else [*told, *self._attempts(run, before)]

    def _attempts(self, run: RunRecord, before: _Before) -> list[str]:
        places, repo = self._project.places, self._project.repo
        folder = places.folder(run.task)
        told = trespass.attempts(run.log, before.logged, repo.common_dir, places.root, folder)
        # Its own branch does not move under it either, which is how the walls work.
        return [one for one in told if one != f"It tried to move the branch {before.branch}."]

    def moved(self) -> list[str]:
        """Returns what has moved since the last look and should not have, whoever did it."""
        project, seen = self._project, self._seen
        if seen is None:
            return []
        free, landed = self._moved_since(self._tip)
        self._seen, self._tip = trespass.remember(project.repo), project.ledger.tip
        return trespass.compare(
            project.repo,
            seen,
            self._seen,
            ledger=project.branch,
            base=project.base,
            prefix=project.branch_prefix,
            free=free,
            landed=landed,
        )

    def _moved_since(self, tip: str) -> tuple[set[str], set[str]]:
        """Returns the branches that may have moved since a tip of the ledger, and what has landed."""
        ledger = self._project.ledger
        ledger.refresh()
        graph = ledger.graph()
        events = [recorded.event for recorded in ledger.log(since=tip)]
        landed = {e.commit for e in events if e.target == "CLOSED" and e.commit is not None}
        free = {
            HEADS + task.branch
            for id in {event.task for event in events if event.task is not None}
            if (task := graph.get(id)) is not None and task.branch is not None
        }
        held = ledger.snapshot.tasks(row[0] for row in ledger.snapshot.claims())
        return free | {HEADS + task.branch for task in held if task.branch is not None}, landed
