"""The pool of this host: its file, what was switched at run time, and the runners that live.

All of it is state of this clone, below `<git common dir>/gittasks`, each file replaced whole:

- `agents.json`: the pool file, unless `gittasks.pool` names another one;
- `control.json`: counts and switches that hold until the last runner has ended;
- `runners/<run>.json`: what a runner shows of itself; it counts while its process lives;
- `orders/<id>.json`: what a command asks of a runner, and `<id>.answer.json` what came of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain import pool as pools
from gittasks.domain.errors import Busy, GittasksError, UsageFault
from gittasks.domain.pool import PoolFault, agent_name, slot_name
from gittasks.plumbing.locks import FileLock
from gittasks.workspaces import records
from gittasks.workspaces.places import checkout_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gittasks.domain.pool import Agent, Pool
    from gittasks.workflow.project import Project

ORDER_SECONDS = 10.0
"""How long a runner has to answer an order."""

_LOCK_SECONDS = 10.0
_LEFT_OVER_SECONDS = 3600
_PAUSE = 0.05
_LATE_SECONDS = 5.0


class NoRunner(GittasksError):
    """No runner of this clone lives; exit 1."""

    def __init__(self) -> None:
        """Says so, and how to start one."""
        super().__init__("No runner works here.", "Start one with `git tasks run`.")


# The file.


def pool_path(project: Project, given: str | None = None) -> str:
    """Returns where the pool file is: as it was given, as `gittasks.pool` says, or the usual one."""
    if given is not None:
        return os.path.abspath(given)
    configured = project.config.get("gittasks.pool")
    if configured:
        # The same file from everywhere, so it does not depend on where we stand.
        top = checkout_of(project.repo) or project.repo.common_dir
        return os.path.join(top, os.path.expanduser(configured))
    return os.path.join(project.state_dir, "agents.json")


def load(project: Project, given: str | None = None) -> Pool:
    """Returns the pool; a clone without the usual file gets one. Raises PoolFault."""
    path = pool_path(project, given)
    if given is None and not project.config.get("gittasks.pool"):
        _sow(path)
    try:
        with open(path, "rb") as file:
            data = file.read(pools.FILE_LIMIT + 1)
    except FileNotFoundError:
        if path == os.path.join(project.state_dir, "agents.json"):
            # It could not be written where nothing can; reading goes on without it.
            return pools.parse(pools.seed(), path)
        raise PoolFault(
            path, ["It is not there."], f"Write {path}, or name another file."
        ) from None
    except OSError as error:
        fault = f"It cannot be read: {error.strerror}."
        raise PoolFault(path, [fault], f"Make {path} a readable file.") from error
    return pools.parse(data, path)


def require_startable(project: Project, pool: Pool, given: str | None = None) -> None:
    """Raises PoolFault where a runner would have nobody to give a task to."""
    if not any(agent.enabled for agent in pool.agents):
        path = pool_path(project, given)
        if pool.agents:
            raise PoolFault(path, ["No agent is enabled."], f'Set "enabled" to true in {path}.')
        raise PoolFault(path, ["agents: There is no agent."], f"Add an agent to {path}.")


def sandbox_wish(project: Project, pool: Pool, given: str | None = None) -> pools.SandboxWish:
    """Returns how agents are to be kept apart: as given, as configured, or as the pool says."""
    wish = given or project.config.get("gittasks.sandbox")
    if not wish:
        return pool.sandbox
    for known in pools.SANDBOX_WISHES:
        if wish == known:
            return known
    raise UsageFault(
        f"The setting gittasks.sandbox is {wish!r}.",
        f"Choose one of {', '.join(pools.SANDBOX_WISHES)}.",
    )


def _sow(path: str) -> None:
    """Writes the first pool file where there is none; whoever was first stays."""
    if os.path.lexists(path):
        return
    beside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(beside, "x", encoding="utf-8") as file:
            file.write(pools.seed())
        os.link(beside, path)
    except OSError:
        # A disk that takes nothing is told by whoever needs to write there.
        pass
    finally:
        if os.path.lexists(beside):
            os.unlink(beside)


# What was switched while runners work.


class Control(NamedTuple):
    """The counts and switches of agents, by their name, that differ from the pool file."""

    slots: Mapping[str, int] = {}
    enabled: Mapping[str, bool] = {}


def control(project: Project) -> Control:
    """Returns what was switched since the first runner began."""
    slots: dict[str, int] = {}
    enabled: dict[str, bool] = {}
    for name, said in _switched(project).items():
        if isinstance(said, dict):
            if type(said.get("slots")) is int and said["slots"] > 0:
                slots[name] = said["slots"]
            if isinstance(said.get("enabled"), bool):
                enabled[name] = said["enabled"]
    return Control(slots, enabled)


def switch(
    project: Project, name: str, *, slots: int | None = None, enabled: bool | None = None
) -> None:
    """Sets count or switch of an agent; both are absolute, so that twice is as good as once."""
    with _control_lock(project):
        agents = dict(_switched(project))
        said = agents.get(name)
        own = dict(said) if isinstance(said, dict) else {}
        own |= {} if slots is None else {"slots": slots}
        own |= {} if enabled is None else {"enabled": enabled}
        records.write_json(_control_path(project), {"agents": {**agents, name: own}})


def clear_control(project: Project) -> None:
    """Forgets what was switched, and what runners that have died left; for the first runner."""
    with _control_lock(project):
        _remove(_control_path(project))
        for name in _names(os.path.join(project.state_dir, "runners"), ""):
            path = os.path.join(project.state_dir, "runners", name)
            if _is_left_over(project, path):
                _remove(path)
        for name in _names(os.path.join(project.state_dir, "orders"), ".json"):
            path = os.path.join(project.state_dir, "orders", name)
            order = records.read_json(path)
            if order is None or not records.is_alive(_process(order.get("process"))):
                _remove(path)


def _is_left_over(project: Project, path: str) -> bool:
    """Tells whether a file was left by a runner that is dead; one that begins just now writes too."""
    if path.endswith(".json"):
        view = records.read_json(path) or {}
        return not records.is_alive(_process(view.get("process")))
    try:
        return project.clock() - os.stat(path).st_mtime > _LEFT_OVER_SECONDS
    except OSError:
        return False


def _switched(project: Project) -> dict[str, Any]:
    agents = (records.read_json(_control_path(project)) or {}).get("agents")
    return agents if isinstance(agents, dict) else {}


def _control_path(project: Project) -> str:
    return os.path.join(project.state_dir, "control.json")


def _control_lock(project: Project) -> FileLock:
    path = os.path.join(project.state_dir, "control.flk")
    return FileLock(path, _LOCK_SECONDS, "control of the pool")


# What runners show of themselves.


def views(project: Project) -> list[dict[str, Any]]:
    """Returns what each living runner shows, with its name as `run`."""
    folder = os.path.join(project.state_dir, "runners")
    found = []
    for name in _names(folder, ".json"):
        view = records.read_json(os.path.join(folder, name))
        if view is not None and records.is_alive(_process(view.get("process"))):
            found.append({**view, "run": name.removesuffix(".json")})
    return found


def write_view(project: Project, run_id: str, view: Mapping[str, Any]) -> None:
    """Shows what a runner does."""
    records.write_json(_view_path(project, run_id), dict(view))


def drop_view(project: Project, run_id: str, *, killed: int = 0) -> None:
    """Takes a runner's view away; whoever waits for its end learns how many had to be killed."""
    if killed:
        records.write_json(_view_path(project, run_id, "ended"), {"killed": killed})
    _remove(_view_path(project, run_id))


def killed_by(project: Project, run_id: str) -> int:
    """Returns how many agents a runner that has ended had to kill, and forgets it."""
    path = _view_path(project, run_id, "ended")
    killed = (records.read_json(path) or {}).get("killed")
    _remove(path)
    return killed if isinstance(killed, int) else 0


def rows_of(view: Mapping[str, Any], name: str = "slots") -> list[dict[str, Any]]:
    """Returns the rows of one list of a view, as far as they are any."""
    rows = view.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _view_path(project: Project, run_id: str, ending: str = "json") -> str:
    if not run_id.isalnum():
        raise ValueError(f"{run_id!r} cannot name a runner.")
    return os.path.join(project.state_dir, "runners", f"{run_id}.{ending}")


# What commands ask of runners.


class Order(NamedTuple):
    """What a command asks of a runner."""

    id: str
    verb: str
    data: Mapping[str, Any]


def order(
    project: Project, verb: str, data: Mapping[str, Any], wait: float = ORDER_SECONDS
) -> dict[str, Any]:
    """Asks the runners of this clone for something and returns the answer of the one concerned.

    Raises NoRunner, and Busy where nobody answers in time; then the order is taken back.
    """
    import time

    order_id = place(project, verb, data)
    deadline = time.monotonic() + wait
    try:
        while True:
            is_anybody_there = bool(views(project))
            found = answer_to(project, order_id)
            if found is not None:
                return found
            if not is_anybody_there:
                raise NoRunner
            # Once somebody has taken it the answer is on its way.
            late = time.monotonic() - deadline
            if late > _LATE_SECONDS or (late > 0 and _remove(_order_path(project, order_id))):
                raise Busy(
                    f"No runner has answered within {wait:g} seconds.",
                    "Look with `git tasks pool status`, and try again.",
                )
            time.sleep(_PAUSE)
    finally:
        _remove(_order_path(project, order_id))


def place(project: Project, verb: str, data: Mapping[str, Any]) -> str:
    """Leaves an order for the runners and returns its id; raises NoRunner."""
    if not views(project):
        raise NoRunner
    order_id = os.urandom(8).hex()
    told = {"verb": verb, "data": dict(data), "process": records.own_process()}
    records.write_json(_order_path(project, order_id), told)
    return order_id


def take_back(project: Project, order_id: str) -> None:
    """Removes an order that nobody has taken, and its answer."""
    _remove(_order_path(project, order_id))
    _remove(_order_path(project, order_id, ".answer"))


def answer_to(project: Project, order_id: str) -> dict[str, Any] | None:
    """Returns the answer to an order and forgets it, None while there is none."""
    path = _order_path(project, order_id, ".answer")
    found = records.read_json(path)
    if found is not None:
        _remove(path)
    return found


def take_orders(
    project: Project, is_mine: Callable[[str, Mapping[str, Any]], bool]
) -> Iterator[Order]:
    """Yields the orders that are for this runner; each is taken by one runner, once.

    What nobody waits for any more is not done.
    """
    folder = os.path.join(project.state_dir, "orders")
    for name in _names(folder, ".json"):
        path = os.path.join(folder, name)
        if name.endswith(".answer.json"):
            continue
        told = records.read_json(path)
        if told is None:
            continue
        if not records.is_alive(_process(told.get("process"))):
            _remove(path)
            continue
        order = Order(name.removesuffix(".json"), str(told.get("verb")), told.get("data") or {})
        if isinstance(order.data, dict) and is_mine(order.verb, order.data) and _remove(path):
            yield order


def answer(project: Project, order: Order, data: Mapping[str, Any]) -> None:
    """Tells whoever has ordered something what came of it."""
    told = {**data, "process": records.own_process()}
    records.write_json(_order_path(project, order.id, ".answer"), told)


def _order_path(project: Project, order_id: str, ending: str = "") -> str:
    return os.path.join(project.state_dir, "orders", f"{order_id}{ending}.json")


# What there is to see.


class Status(NamedTuple):
    """The pool as it is now: the runners, every slot, the checks that run, the queue."""

    file: str
    runners: tuple[Mapping[str, Any], ...]
    slots: tuple[Mapping[str, Any], ...]
    checks: tuple[Mapping[str, Any], ...]
    queue: tuple[Mapping[str, Any], ...]


def status(project: Project) -> Status:
    """Returns what the pool file, the switches and the living runners say together.

    A faulty file raises PoolFault only where no runner could tell instead.
    """
    living = views(project)
    switched = control(project)
    slots = [_shown(row, switched) for view in living for row in rows_of(view)]
    known = {row["agent"] for row in slots}
    try:
        agents = load(project).agents
    except PoolFault:
        if not living:
            raise
        agents = ()
    for agent in agents:
        if agent_name(agent) not in known:
            slots += _unattended(agent, bool(living))
    return Status(
        pool_path(project),
        tuple(_runner(view) for view in living),
        tuple(slots),
        tuple(_timed(row, "started_at") for view in living for row in rows_of(view, "checks")),
        tuple(rows_of(living[0], "queue")) if living else (),
    )


_SLOT_FIELDS: tuple[str, ...] = (
    "slot", "agent", "type", "provider", "model", "index", "total", "max", "enabled", "state",
    "task", "role", "pid", "started_at", "activity", "tokens", "cost", "context", "compactions",
    "session", "log", "retry", "why",
)  # fmt: skip


def _shown(row: Mapping[str, Any], switched: Control) -> dict[str, Any]:
    """Returns a row of a view, with what was switched since the runner wrote it."""
    shown: dict[str, Any] = dict.fromkeys(_SLOT_FIELDS) | _timed(row, "started_at")
    for name, field in (("activity", "since"), ("retry", "at")):
        if isinstance(shown[name], dict):
            shown[name] = _timed(shown[name], field)
    name = shown["agent"]
    shown["wanted"] = switched.slots.get(name, shown["total"])
    is_enabled = switched.enabled.get(name, shown["enabled"])
    if shown["state"] == "IDLE" and not is_enabled:
        shown |= {"state": "DISABLED", "why": "the agent is disabled"}
    return {**shown, "enabled": is_enabled}


def _unattended(agent: Agent, has_runner: bool) -> list[dict[str, Any]]:
    """Returns the rows of an agent that no runner has slots of."""
    why = "the agent is disabled"
    if agent.enabled:
        why = "another pool file is in use" if has_runner else "no runner works here"
    return [
        dict.fromkeys(_SLOT_FIELDS)
        | {
            "slot": slot_name(agent, number),
            "agent": agent_name(agent),
            "type": agent.type,
            "provider": agent.provider,
            "model": agent.model,
            "index": number,
            "total": agent.slots,
            "max": agent.max_slots,
            "enabled": agent.enabled,
            "state": "IDLE" if agent.enabled else "DISABLED",
            "why": why,
            "wanted": agent.slots,
        }
        for number in range(1, agent.slots + 1)
    ]


def _runner(view: Mapping[str, Any]) -> dict[str, Any]:
    process = _process(view.get("process"))
    assert process is not None
    shown = {name: view.get(name) for name in ("run", "scheduling", "why", "sandbox", "at")}
    return _timed({**shown, "pid": process[0]}, "at")


def _timed(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns a row in which a number of seconds has become a time."""
    from gittasks.domain.times import timestamp

    value = row.get(name)
    if not isinstance(value, int | float) or not 0 <= value < 1e11:
        return {**row, name: None}
    return {**row, name: timestamp(int(value))}


def _process(value: Any) -> records.Process | None:
    try:
        return int(value[0]), str(value[1])
    except (TypeError, ValueError, IndexError, KeyError):
        return None


def _names(folder: str, ending: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(ending))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remove(path: str) -> bool:
    """Removes a file; returns whether it was us who did."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
