"""Settles what an earlier runner of this clone has left when it died, and what nobody looks after."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.domain.errors import GittasksError, Taken, UnknownTask
from gittasks.plumbing.errors import GitError, LockTimeout
from gittasks.plumbing.locks import FileLock
from gittasks.runner import settling
from gittasks.workflow import check, settle
from gittasks.workspaces import records, runs

if TYPE_CHECKING:
    from gittasks.runner.team import Team
    from gittasks.workspaces.runs import RunRecord

TRIES = 3
"""How often a run that cannot be settled is tried again by one runner."""

_PATIENCE = 30.0
_LATE = "It could not be settled when its agent ended."


def recover(runner: Team) -> None:
    """Settles every run that nobody looks after: its last valid entry is committed, else it died."""
    path = os.path.join(runner.project.state_dir, "recovery.flk")
    lock = FileLock(path, _PATIENCE, "recovery of runs")
    try:
        lock.acquire()
    except LockTimeout:
        # Whoever has it does what we would do.
        return
    try:
        for run in _left(runner):
            _settle(runner, run)
        give_back_strays(runner)
    finally:
        lock.release()


def is_anything_left(runner: Team) -> bool:
    """Tells whether something that an earlier runner began, or this one, has not come to its end."""
    return bool(_left(runner))


def _left(runner: Team) -> list[RunRecord]:
    """Returns the runs whose runner is dead, and our own that could not be settled in their time."""
    at_work = runner.at_work()
    return [
        run
        for run in runs.all(runner.project.state_dir)
        if (_is_own(runner, run) or not records.is_alive(run.runner))
        and run.claim not in at_work
        and runner.unsettled.get(run.claim, 0) < TRIES
    ]


def _is_own(runner: Team, run: RunRecord) -> bool:
    return run.runner is not None and run.runner == runner.process


def _settle(runner: Team, run: RunRecord) -> None:
    if run.role == "checker" and records.is_alive(run.process):
        # A check records its verdict itself.
        return
    project = runner.project
    runner.sweep(run.mark)
    if run.role == "checker":
        check.sweep(project, run.task)
    record = records.with_claim(project.state_dir, run.claim)
    try:
        runner.leave(run)
        if record is not None:
            _conclude(runner, run, record)
    except (Taken, UnknownTask):
        # The claim had ended before its runner did.
        pass
    except (GittasksError, GitError, OSError) as error:
        runner.unsettled[run.claim] = runner.unsettled.get(run.claim, 0) + 1
        words = error.message if isinstance(error, GittasksError) else str(error)
        runner.say("trouble", slot=run.slot, task=run.task, error=words)
        if runner.unsettled[run.claim] >= TRIES:
            # Nobody has to wait for us any more.
            runs.write(project.state_dir, run._replace(runner=None))
        return
    forget(runner, run)


def _conclude(runner: Team, run: RunRecord, record: records.ClaimRecord) -> None:
    project = runner.project
    settle.require_present(project, record)
    result = settling.take_notes_and_results(runner, run, record).result
    if result is not None:
        outcome = settle.record_entry(project, result, record)
        runner.say(
            "settled", slot=run.slot, task=run.task, verb=result.verb,
            source=outcome.source, target=outcome.target,
        )  # fmt: skip
        runner.has_written()
        return
    died = not _is_own(runner, run)
    reason = settle.RUNNER_DIED if died else _LATE
    settle.give_back(project, record, died=died, reason=reason)
    runner.has_written()
    runner.say("died" if died else "released", slot=run.slot, task=run.task, error=reason)


def forget(runner: Team, run: RunRecord) -> None:
    """Takes away what was kept of a run whose claim has ended: its record, its outbox."""
    import shutil

    state_dir = runner.project.state_dir
    if run.outbox:
        shutil.rmtree(run.outbox, ignore_errors=True)
    record = records.with_claim(state_dir, run.claim)
    if record is not None and record.process is not None:
        # Nothing of it runs any more; the record itself stays where its claim was taken away.
        records.write(state_dir, record._replace(process=None))
    runs.drop(state_dir, run.claim)


def give_back_strays(runner: Team) -> None:
    """Gives back what this clone's runners hold and nobody works on: a claim heard of too late."""
    project = runner.project
    # Between two prompts an agent may have no process, and is its runner's all the same.
    theirs = {
        run.claim
        for run in runs.all(project.state_dir)
        if not _is_own(runner, run) and records.is_alive(run.runner)
    }
    cared_for = runner.at_work() | theirs
    graph = project.ledger.graph()
    for record in records.all(project.state_dir):
        is_ours = record.process is not None and record.process == runner.process
        is_dead = record.process is not None and not records.is_alive(record.process)
        if record.claim in cared_for or not (is_ours or is_dead):
            continue
        task = graph.get(record.task)
        if task is None or task.claim != record.claim:
            continue
        try:
            settle.give_back(project, record, died=is_dead, reason=settle.RUNNER_DIED)
            runner.has_written()
        except GittasksError as error:
            runner.say("trouble", task=record.task, error=error.message)
