"""What this host alone knows of agents at work: the run of each claim, and the sessions it left.

`runs/<claim>.json` is written before an agent is started and goes when its claim has ended, so
that whoever comes after a runner that was killed knows which processes to look for and which
outbox to read. `sessions/<uid>.json` names the session of the last worker of a task: it can go on
with it on this host, if the checks refuse what it has submitted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.workspaces import records

if TYPE_CHECKING:
    from gittasks.workspaces.records import Process


class RunRecord(NamedTuple):
    """One claim that a runner has taken for an agent, or for a check."""

    claim: str
    task: str
    uid: str
    slot: str
    role: str
    state: str
    mark: str
    """The value of GITTASKS_RUN in all that the agent starts."""
    outbox: str
    log: str
    runner: Process | None = None
    process: Process | None = None
    """The agent's own process, once it is there."""
    sandbox: str = ""
    started_at: float = 0.0
    carried: tuple[float, int] = (0.0, 0)
    """Dollars and tokens that a resumed session had cost before this run."""


class Session(NamedTuple):
    """The session that submitted a commit: what it was told by which agent, and how to resume it."""

    agent: str
    session: str
    tip: str
    cost: float = 0.0
    tokens: int = 0


def write(state_dir: str, record: RunRecord) -> None:
    """Keeps the record of a run."""
    records.write_json(_path(state_dir, record.claim), record._asdict())


def drop(state_dir: str, claim: str) -> None:
    """Forgets the record of a run."""
    _remove(_path(state_dir, claim))


def all(state_dir: str) -> list[RunRecord]:
    """Returns the record of every run whose claim has not been seen to end, oldest first."""
    folder = os.path.join(state_dir, "runs")
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    read = (_run(records.read_json(os.path.join(folder, name))) for name in names)
    return sorted((run for run in read if run is not None), key=lambda run: run.started_at)


def is_looked_after(run: RunRecord) -> bool:
    """Tells whether an agent still runs, or its runner still has to bring in what it has left."""
    return records.is_alive(run.process) or records.is_alive(run.runner)


def keep_session(state_dir: str, uid: str, session: Session) -> None:
    """Remembers the session that submitted the work of a task."""
    records.write_json(_session_path(state_dir, uid), session._asdict())


def session_of(state_dir: str, uid: str) -> Session | None:
    """Returns the session that submitted the work of a task last, None where there is none."""
    data = records.read_json(_session_path(state_dir, uid))
    try:
        return None if data is None else Session(**_known(data, Session._fields))
    except TypeError:
        return None


def drop_session(state_dir: str, uid: str) -> None:
    """Forgets the session of a task."""
    _remove(_session_path(state_dir, uid))


def _path(state_dir: str, claim: str) -> str:
    return os.path.join(state_dir, "runs", f"{_file_name(claim)}.json")


def _session_path(state_dir: str, uid: str) -> str:
    return os.path.join(state_dir, "sessions", f"{_file_name(uid)}.json")


def _file_name(name: str) -> str:
    if not name or not name.isalnum():
        raise ValueError(f"{name!r} cannot name a record.")
    return name


def _known(data: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    # A record of a later version may hold more; what we do not know we do not need.
    return {name: value for name, value in data.items() if name in fields}


def _run(data: dict[str, Any] | None) -> RunRecord | None:
    if data is None:
        return None
    try:
        for name in ("runner", "process"):
            value = data.get(name)
            data[name] = None if value is None else (int(value[0]), str(value[1]))
        cost, tokens = data.get("carried", (0.0, 0))
        data["carried"] = (float(cost), int(tokens))
        return RunRecord(**_known(data, RunRecord._fields))
    except (TypeError, ValueError, IndexError):
        return None


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
