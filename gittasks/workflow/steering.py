"""Steers agents at work from another terminal: counts, switches, words, and the end.

Whoever sits at this machine may do it; an agent at work may not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain.errors import Busy, Refused, UnknownTask, UsageFault, WrongRole
from gittasks.domain.fields import shown
from gittasks.domain.pool import SLOT_LIMIT, PoolFault, agent_name
from gittasks.workflow import pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gittasks.workflow.project import Project

STOP_SECONDS = 60.0
"""How long runners have to end; each gives its agents some seconds."""

_PAUSE = 0.1
_ASK_AGAIN = 5.0


class UnknownAgent(UnknownTask):
    """An agent or slot that neither a runner nor the pool file knows; exit 4."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        """Lists those that there are."""
        names = ", ".join(dict.fromkeys(known))
        hint = f"Choose one of {names}." if names else "Add one to the pool file."
        super().__init__(f"There is no {kind} {shown(name)}.", hint)


class Stopped(NamedTuple):
    """The runners that were ended, and how many agents had to be killed for it."""

    runners: tuple[str, ...]
    killed: int = 0


def scale(project: Project, name: str, count: int) -> int | None:
    """Sets how many slots an agent has while runners work; returns the most that it may have."""
    require_operator(project)
    most = _agents(project).get(name, 0)
    if most == 0:
        raise UnknownAgent("agent", name, _agents(project))
    if count < 1:
        raise UsageFault(
            "An agent has at least one slot.", f"Give it nothing: `git tasks pool disable {name}`."
        )
    if count > (most or SLOT_LIMIT):
        limit = "maxSlots allows" if most else "an agent can have"
        raise UsageFault(
            f"{count} slots are more than the {most or SLOT_LIMIT} that {limit}.",
            "Give a smaller number, or change the pool file and start the runner anew.",
        )
    _require_runner(project)
    pool.switch(project, name, slots=count)
    return most


def enable(project: Project, name: str, *, enabled: bool) -> None:
    """Lets an agent be given tasks while runners work, or lets it finish and gives it no more."""
    require_operator(project)
    if name not in _agents(project):
        raise UnknownAgent("agent", name, _agents(project))
    _require_runner(project)
    pool.switch(project, name, enabled=enabled)


def send(project: Project, target: str, text: str) -> dict[str, Any]:
    """Says something to the agent of a slot or task; returns which slot and task it was."""
    require_operator(project)
    if not text.strip():
        raise UsageFault("There is nothing to say.", "Give a text, or - to read it from stdin.")
    return _done(pool.order(project, "send", {**_meant(project, target), "text": text}))


def kill(project: Project, target: str) -> dict[str, Any]:
    """Ends the agent of a slot or task, whose task is given back."""
    require_operator(project)
    actor = project.speaker("kill").actor
    return _done(pool.order(project, "kill", {**_meant(project, target), "by": actor}))


def stop(project: Project, *, at_once: bool = False, wait: float = STOP_SECONDS) -> Stopped:
    """Ends every runner of this clone and waits until they are gone; none is fine.

    Raises Busy where one takes longer.
    """
    import time

    require_operator(project)
    begun = sorted(view["run"] for view in pool.views(project))
    actor = project.speaker("kill").actor
    deadline = time.monotonic() + wait
    asked: list[str] = []
    ask_at = 0.0
    try:
        while left := _living(project, begun):
            now = time.monotonic()
            if now > deadline:
                pids = ", ".join(str(pid) for pid in left.values())
                raise Busy(
                    f"A runner has not ended within {wait:g} seconds: process {pids}.",
                    f"Wait, or end it with `kill {pids.replace(',', '')}`.",
                )
            if now >= ask_at:
                ask_at = now + _ASK_AGAIN
                asked += [_ask_to_stop(project, run, actor, at_once) for run in left]
            time.sleep(_PAUSE)
    finally:
        for order_id in asked:
            pool.take_back(project, order_id)
    return Stopped(tuple(begun), sum(pool.killed_by(project, run) for run in begun))


def require_operator(project: Project) -> None:
    """Raises WrongRole for an agent at work: the pool is steered from outside."""
    if project.environ.get("GITTASKS_CLAIM") or project.environ.get("GITTASKS_RUN"):
        raise WrongRole(
            "An agent at work does not steer the pool.",
            "Ask the manager with `git tasks hold --reason TEXT`.",
        )


def known_slots(project: Project) -> list[str]:
    """Returns the names of all slots, those of living runners first."""
    return [str(row["slot"]) for row in pool.status(project).slots]


def _agents(project: Project) -> dict[str, int | None]:
    """Returns the agents of runners and pool file, each with the most slots that it may have."""
    living = pool.views(project)
    found: dict[str, int | None] = {}
    try:
        found = {agent_name(agent): agent.max_slots for agent in pool.load(project).agents}
    except PoolFault:
        if not living:
            raise
    # A runner may have been started with another file; it is the one that has to do it.
    for row in (row for view in living for row in pool.rows_of(view)):
        most = row.get("max")
        found[str(row.get("agent"))] = most if isinstance(most, int) else None
    return found


def _require_runner(project: Project) -> None:
    if not pool.views(project):
        raise pool.NoRunner


def _meant(project: Project, target: str) -> dict[str, str]:
    """Returns which slot or task is meant, as an order says it."""
    living = pool.views(project)
    if not living:
        raise pool.NoRunner
    rows = [row for view in living for row in pool.rows_of(view)]
    if any(row.get("slot") == target for row in rows):
        return {"slot": target}
    task_id = task_meant(project, target)
    if task_id is None:
        raise UnknownAgent("slot", target, (str(row.get("slot")) for row in rows))
    # What runners show may be a second old; the ledger is not.
    holder = project.task(task_id, reading=True).claimed_by
    if any(row.get("slot") == holder for row in rows):
        return {"slot": str(holder), "task": task_id}
    if any(row.get("task") == task_id for view in living for row in pool.rows_of(view, "checks")):
        raise Refused(
            f"No agent works on {task_id}; its checks run.",
            f"Stop them with `git tasks hold {task_id} --reason TEXT`.",
            task_id,
        )
    raise Refused(
        f"No agent works on {task_id}.",
        "Run `git tasks pool status` to see who does what.",
        task_id,
    )


def task_meant(project: Project, target: str) -> str | None:
    """Returns the id of the task that a word spells, None where it spells none."""
    number = target.strip().removeprefix("#").removeprefix("task/")
    if target.strip() != "." and not (number.isascii() and number.isdigit()):
        return None
    return project.task(project.resolve(target), reading=True).id


def _done(answer: Mapping[str, Any]) -> dict[str, Any]:
    slot, task = answer.get("slot"), answer.get("task")
    if answer.get("done") is not True:
        raise Refused(
            str(answer.get("why") or "The runner has refused."),
            "Run `git tasks pool status` to see what the slots do.",
            task if isinstance(task, str) else None,
        )
    return {"slot": slot, "task": task}


def _living(project: Project, runs: Iterable[str]) -> dict[str, int]:
    """Returns those of the runners that live, with their process."""
    known = frozenset(runs)
    return {view["run"]: view["process"][0] for view in pool.views(project) if view["run"] in known}


def _ask_to_stop(project: Project, run: str, actor: str, at_once: bool) -> str:
    told = {"runner": run, "at_once": at_once, "why": f"ended by {actor}"}
    try:
        return pool.place(project, "stop", told)
    except pool.NoRunner:
        # It has ended in this moment.
        return run
