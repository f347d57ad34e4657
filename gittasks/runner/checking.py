"""Runs the checks of what workers have submitted: claimed first, then in processes of their own.

A check is `git tasks check ID --record`. It goes on when the runner dies and records its verdict
itself; the runner only starts it, looks whether it has ended, and gives back what it left.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.agents import orphans
from gittasks.domain.errors import GittasksError, Taken, UnknownTask
from gittasks.plumbing import processes
from gittasks.plumbing.dialogue import Dialogue
from gittasks.workflow import check, claim, settle
from gittasks.workflow.trust import trust_of
from gittasks.workspaces import records, runs
from gittasks.workspaces.places import checkout_of

if TYPE_CHECKING:
    from gittasks.domain.task import Task
    from gittasks.runner.team import Team

AGENT = "checker"
"""What the slots of the runner itself are called."""

TRIES = 3
"""How often a check may come to no verdict before this runner leaves it alone."""

_RETRY = 10.0
_SOON = 0.2
_KILL = 9
_LINES = 200


class Running(NamedTuple):
    """One check that runs: its claim, the process, and what it has said up to now."""

    record: records.ClaimRecord
    run: runs.RunRecord
    process: Dialogue
    said: list[bytes]


class Checker:
    """The runner's own seat: checks, a few at a time."""

    def __init__(self, runner: Team, places: int) -> None:
        """Takes how many checks may run at a time."""
        self._runner = runner
        self._places = places
        self._tries: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self.running: dict[str, Running] = {}

    def tick(self, *, is_starting: bool) -> None:
        """Notes which checks have ended, and starts others where there is room."""
        for task, running in list(self.running.items()):
            running.said.extend(running.process.lines())
            if running.process.code() is not None:
                del self.running[task]
                self._ended(running)
        if not is_starting:
            return
        for waiting in self.waiting():
            if len(self.running) >= self._places:
                return
            if self._not_before.get(waiting.id, 0.0) <= self._runner.now:
                self._start(waiting)

    def waiting(self) -> list[Task]:
        """Returns the tasks at CHECK that this clone may check, first to last.

        What has come to no verdict time and again waits for another runner, or for a person.
        """
        runner = self._runner
        project = runner.project
        rows = project.ledger.ready(("checker",), None, None)
        if not rows:
            return []
        tasks = project.ledger.snapshot.tasks(row.id for row in rows)
        trust = trust_of(project)
        return [
            task
            for task in tasks
            if task.state == "CHECK"
            and task.claim is None
            and task.id not in self.running
            and self._tries.get(task.id, 0) < TRIES
            and not trust.untrusted(task.checks)
        ]

    def stop(self) -> None:
        """Ends every check that runs; the tasks wait at CHECK for the next runner."""
        for running in self.running.values():
            running.process.signal(_KILL)
            self._runner.sweep(running.run.mark)
            check.sweep(self._runner.project, running.run.task)
            self._ended(running)
        self.running.clear()

    def _start(self, task: Task) -> None:
        runner = self._runner
        project = runner.project
        hired = claim.Hired(AGENT, "checker", runner.lease, records.own_process())
        try:
            outcome = claim.claim(project, task.id, with_tree=False, hired=hired)
        except GittasksError as error:
            if isinstance(error, Taken):
                # Whoever submitted it still leaves the tree, or somebody else checks it.
                self._not_before[task.id] = runner.now + _SOON
                return
            self._note_failure(task.id)
            runner.say("trouble", task=task.id, error=error.message)
            return
        runner.has_written()
        secret = str(outcome.extra["claim_secret"])
        record = records.with_claim(project.state_dir, records.claim_of(secret))
        assert record is not None
        run = runs.RunRecord(
            record.claim, task.id, record.uid, AGENT, "checker", "CHECK", orphans.new_mark(project.host),
            "", os.path.join(project.state_dir, "checks", task.id, "runner.log"),
            runner.process, None, "", runner.now,
        )  # fmt: skip
        runs.write(project.state_dir, run)
        env = {
            **{k: v for k, v in project.environ.items() if not k.startswith("GITTASKS_")},
            "GITTASKS_CLAIM": secret,
            "GITTASKS_AGENT": AGENT,
            "GITTASKS_RUN": run.mark,
        }
        argv = (*runner.own_program(), "check", task.id, "--record", "--json")
        cwd = checkout_of(project.repo) or project.repo.common_dir
        process = Dialogue(argv, cwd=cwd, env=env, log=run.log, takes_input=False)
        identity = processes.process_identity(process.pid)
        run = run._replace(process=identity)
        runs.write(project.state_dir, run)
        records.write(project.state_dir, record._replace(process=identity))
        self.running[task.id] = Running(record, run, process, [])
        runner.say("check", task=task.id)

    def _ended(self, running: Running) -> None:
        runner = self._runner
        project = runner.project
        task_id = running.run.task
        said = _envelope(running.said)
        project.ledger.refresh()
        try:
            settle.require_present(project, running.record)
        except (Taken, UnknownTask):
            task = project.ledger.graph().get(task_id)
            runner.say("checked", task=task_id, target=None if task is None else task.state)
        else:
            # It ended without a verdict: whatever kept it from one is not over in a moment.
            self._note_failure(task_id)
            check.sweep(project, task_id)
            code = running.process.code()
            why = said or running.process.error_tail() or f"it ended with {code}"
            runner.say("trouble", task=task_id, error=f"The check did not come to a verdict: {why}")
            try:
                settle.give_back(
                    project, running.record, died=code is not None and code < 0, reason=why[:_LINES]
                )
            except GittasksError as error:
                runner.say("trouble", task=task_id, error=error.message)
        runner.has_written()
        records.drop(project.state_dir, running.record.claim)
        runs.drop(project.state_dir, running.run.claim)

    def _note_failure(self, task_id: str) -> None:
        self._tries[task_id] = self._tries.get(task_id, 0) + 1
        self._not_before[task_id] = self._runner.now + _RETRY


def _envelope(lines: list[bytes]) -> str:
    """Returns what a check has said was wrong, if it said it in one document."""
    try:
        data = json.loads(b"\n".join(lines))
    except ValueError:
        return ""
    error = data.get("error") if isinstance(data, dict) else None
    return str(error.get("message", "")) if isinstance(error, dict) else ""
