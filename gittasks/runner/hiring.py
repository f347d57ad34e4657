"""Seats an agent: takes the task, makes its place, and starts the program with its brief."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.agents import ADAPTERS, orphans
from gittasks.agents.base import Program, RunSpec
from gittasks.agents.environment import agent_environment
from gittasks.domain.errors import GittasksError, Taken
from gittasks.domain.machine import STAGE
from gittasks.plumbing import processes
from gittasks.plumbing.errors import GitError
from gittasks.runner import recovery
from gittasks.runner.seat import Stint
from gittasks.workflow import claim, settle
from gittasks.workspaces import records, runs

if TYPE_CHECKING:
    from gittasks.domain.pool import Agent
    from gittasks.domain.task import Role, Task
    from gittasks.runner.seat import Seat
    from gittasks.runner.team import Team


TRIES = 5
"""How often in a row a task may fail to be begun before it is held."""


class Hope(NamedTuple):
    """A task that is to be given to a seat, and the session that it goes on with, if any."""

    task: Task
    session: runs.Session | None = None


def program_of(entry: Agent) -> Program:
    """Returns which program an entry of the pool names."""
    return Program(entry.type, entry.provider, entry.model, entry.command)


def hire(runner: Team, seat: Seat, hope: Hope) -> bool:
    """Takes a task for a seat and starts its agent; tells whether the task was taken.

    What cannot be started gives the task back: one task that is broken stops none of the others.
    """
    project = runner.project
    task = hope.task
    role: Role = STAGE[task.state].role  # type: ignore[assignment]  # what is in the queue has an owner
    hired = claim.Hired(
        seat.name, role, runner.lease, runner.process, runner.step,
        tuple(runner.wording.ids(task).items()),
    )  # fmt: skip
    try:
        outcome = claim.claim(project, task.id, hired=hired)
        runner.has_written()
        secret = str(outcome.extra["claim_secret"])
        record = records.with_claim(project.state_dir, records.claim_of(secret))
        assert record is not None
        stint = _stint(runner, seat, outcome.task, record, hope.session)
    except Taken:
        # Whoever was faster, or still leaves the tree, is no trouble.
        project.ledger.refresh()
        return False
    except (GittasksError, GitError, OSError) as error:
        return _not_begun(runner, seat, task, _words(error))
    try:
        seat.take(stint, runner.now)
    except (GittasksError, GitError, OSError) as error:
        # That is no fault of the task: whoever can be started is given it.
        words = _words(error)
        runner.say("trouble", slot=seat.name, task=task.id, error=words)
        seat.end_now()
        seat.vacate()
        runner.leave(stint.run)
        settle.give_back(project, record, died=True, reason=words)
        recovery.forget(runner, stint.run)
        runner.provider(seat.entry).has_failed(runner.now, words)
        return True
    runner.has_begun(task.id)
    note_process(runner, seat)
    runner.tell("dispatch", seat, state=task.state, role=role, resumed=hope.session is not None)
    return True


def _not_begun(runner: Team, seat: Seat, task: Task, words: str) -> bool:
    """Leaves a task alone whose place cannot be made; gives it back where it was taken before that.

    One that can never be begun is held, so that somebody hears of it.
    """
    project = runner.project
    tries = runner.avoid(task.id)
    runner.say("trouble", slot=seat.name, task=task.id, error=words)
    project.ledger.refresh()
    record = records.find(project.state_dir, seat.name, uid=task.uid)
    now = project.ledger.graph().get(task.id)
    if record is None or now is None or now.claim != record.claim:
        return False
    runner.has_written()
    runs.drop(project.state_dir, record.claim)
    if tries < TRIES:
        settle.give_back(project, record, died=False, reason=words)
    else:
        settle.hold(project, record, f"No agent can begin here, {tries} times: {words}")
    return True


def _words(error: Exception) -> str:
    return error.message if isinstance(error, GittasksError) else str(error)


def note_process(runner: Team, seat: Seat) -> None:
    """Keeps which process the agent of a seat is, for whoever comes after this runner."""
    stint, agent = seat.stint, seat.agent
    pid = agent.pid if agent is not None else None
    if stint is None or pid is None or (stint.run.process and stint.run.process[0] == pid):
        return
    identity = processes.process_identity(pid)
    state_dir = runner.project.state_dir
    run = stint.run._replace(process=identity)
    runs.write(state_dir, run)
    seat.stint = stint._replace(run=run)
    known = records.with_claim(state_dir, run.claim)
    if known is not None:
        records.write(state_dir, known._replace(process=identity))


def _stint(
    runner: Team,
    seat: Seat,
    task: Task,
    record: records.ClaimRecord,
    session: runs.Session | None,
) -> Stint:
    project = runner.project
    mark = orphans.new_mark(project.host)
    outbox = os.path.join(project.state_dir, "agents", task.id, "outbox", record.claim)
    os.makedirs(outbox, mode=0o700, exist_ok=True)
    log = os.path.join(project.state_dir, "agents", task.id, f"{seat.name}.log")
    run = runs.RunRecord(
        record.claim, task.id, record.uid, seat.name, record.role, task.state, mark, outbox, log,
        runner.process, None, runner.step, runner.now,
        (session.cost, session.tokens) if session else (0.0, 0),
    )  # fmt: skip
    runs.write(project.state_dir, run)
    env = agent_environment(
        project.environ,
        task=task.id,
        role=record.role,
        slot=seat.name,
        secret=record.secret,
        outbox=outbox,
        run=mark,
        program=runner.own_program(),
        names=project.config.get_all("gittasks.agentEnv"),
        has_identity=bool(project.config.get("user.name")),
    )
    tree = project.places.tree(task.id)
    folder = project.places.folder(task.id)
    program = program_of(seat.entry)
    spec = RunSpec(
        program,
        tree,
        folder,
        env,
        log,
        session.session if session else None,
        runner.apart.enter(seat.entry, task, run, env),
        runner.clock,
    )
    capabilities = runner.capabilities(seat.entry)
    brief = runner.wording.brief(task)
    first = brief if session is None else runner.wording.check_failed(task)
    start = ADAPTERS[program.type].start
    return Stint(record, run, spec, start, brief, first, capabilities.live, capabilities.resume)
