"""`git tasks pool`: the agents of this host, and what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.cli import frame, team
from gittasks.cli.output import age, seconds_of
from gittasks.domain.errors import UsageFault

if TYPE_CHECKING:
    from collections.abc import Mapping

command = frame.Group("pool", help="Run agents, look at them and steer them.")

_QUEUE_SHOWN = 10
_COLOURS = (None, "bold", "yellow")


@command.verb("run")
@team.run_options
def run(
    session: frame.Session,
    once: bool,
    max_tasks: int | None,
    dry_run: bool,
    pool_file: str | None,
    sandbox: str | None,
) -> int:
    """Run the agents of the pool; the same as `git tasks run`."""
    from gittasks.workflow import steering

    steering.require_operator(session.project)
    return team.run(session, once, max_tasks, dry_run, pool_file, sandbox)


@command.verb("status")
def status(session: frame.Session) -> None:
    """Show every slot: its task and what it does, or why it is idle."""
    from gittasks.domain.redact import redact
    from gittasks.workflow import pool

    found = pool.status(session.project)
    if session.out.json:
        data = {name: list(rows) for name, rows in found._asdict().items() if name != "file"}
        session.answer("pool", {"file": found.file, **data})
        return
    out, now = session.out, session.project.clock()
    out.table(
        [
            (
                str(row["slot"]),
                str(row["state"]),
                str(row["task"] or "-"),
                str(row["role"] or "-"),
                _since(row["started_at"], now),
                redact(_about(row, now)),
            )
            for row in found.slots
        ],
        _COLOURS,
    )
    for runner in found.runners:
        does = "gives out tasks" if runner["scheduling"] else f"ends, {runner['why'] or 'by order'}"
        out.line(f"Runner {runner['pid']} {does}; agents are kept apart by: {runner['sandbox']}.")
    for check in found.checks:
        since = _since(check["started_at"], now)
        out.line(f"The checks of {check.get('task')} run since {since}.")
    if found.queue:
        ids = [str(row.get("task")) for row in found.queue]
        more = " …" if len(ids) > _QUEUE_SHOWN else ""
        out.line(f"Ready: {len(ids)}, first {' '.join(ids[:_QUEUE_SHOWN])}{more}")
    if not found.slots:
        out.say(f"There is no agent in {found.file}.")
    elif not found.runners:
        out.say("No runner works here; start one with `git tasks run`.")


def _since(at: Any, now: int) -> str:
    return age(now - seconds_of(at)) if isinstance(at, str) else "-"


def _about(row: Mapping[str, Any], now: int) -> str:
    """Returns what an agent does now and what it has used, or why a slot rests."""
    parts = []
    doing = row["activity"] if row["task"] else None
    if row["why"]:
        parts.append(str(row["why"]))
    elif isinstance(doing, dict):
        tool = doing.get("tool")
        what = f"{tool} {doing.get('target') or ''}".strip() if tool else "thinking"
        parts.append(f"{what} ({_since(doing['since'], now)})")
    if row["task"] and row["tokens"]:
        parts.append(f"{row['tokens']} tokens")
    if row["task"] and row["cost"]:
        parts.append(f"{row['cost']:.2f} dollars")
    if row["wanted"] != row["total"]:
        parts.append(f"{row['wanted']} slots wanted")
    return ", ".join(parts)


@command.verb("scale")
@frame.argument("agent")
@frame.argument("count", required=False, metavar="N")
def scale(session: frame.Session, agent: str, count: str | None) -> None:
    """Set how many slots an agent has until the runners end; AGENT=N is fine, too."""
    from gittasks.workflow import steering

    name, _, behind = (agent, "", count) if count is not None else agent.rpartition("=")
    number = behind or ""
    if not name or not (number.isascii() and number.isdigit() and len(number) < 10):
        raise UsageFault(
            f"{number or agent!r} is no number of slots.", "Write `git tasks pool scale AGENT N`."
        )
    slots = int(number)
    most = steering.scale(session.project, name, slots)
    if not session.answer("scale", {"agent": name, "slots": slots, "max": most}):
        session.out.line(f"{name}: {slots} slot{'s' * (slots != 1)}")


@command.verb("enable")
@frame.argument("agent")
def enable(session: frame.Session, agent: str) -> None:
    """Let an agent be given tasks until the runners end."""
    from gittasks.workflow import steering

    steering.enable(session.project, agent, enabled=True)
    if not session.answer("enable", {"agent": agent, "enabled": True}):
        session.out.line(f"{agent}: enabled")


@command.verb("disable")
@frame.argument("agent")
def disable(session: frame.Session, agent: str) -> None:
    """Give an agent nothing more until the runners end; what it works on it finishes."""
    from gittasks.workflow import steering

    steering.enable(session.project, agent, enabled=False)
    if not session.answer("disable", {"agent": agent, "enabled": False}):
        session.out.line(f"{agent}: disabled")


@command.verb("stop")
@frame.option("--now", is_flag=True, help="kill the agents at once")
def stop(session: frame.Session, now: bool) -> None:
    """End the runners of this clone and wait for it; tasks at work are given back."""
    from gittasks.workflow import steering

    stopped = steering.stop(session.project, at_once=now)
    if session.answer("stop", {"runners": list(stopped.runners), "killed": stopped.killed}):
        return
    count = len(stopped.runners)
    if not count:
        session.out.line("No runner works here.")
        return
    session.out.line("The runner has ended." if count == 1 else f"{count} runners have ended.")
    if stopped.killed:
        session.out.say(f"Of the agents, {stopped.killed} had to be killed.")


@command.verb("send")
@team.send_words
def send(
    session: frame.Session, target: str, words: tuple[str, ...], messages: tuple[str, ...]
) -> None:
    """Say something to an agent at work; the same as `git tasks send`."""
    from gittasks.workflow import steering

    team.send(session, steering.send, target, words, messages)


@command.verb("kill")
@frame.argument("target", metavar="SLOT|ID")
def kill(session: frame.Session, target: str) -> None:
    """End an agent at work; the same as `git tasks kill`."""
    from gittasks.workflow import steering

    team.kill(session, steering.kill, target)


@command.verb("tail")
@team.tail_options
def tail(session: frame.Session, target: str | None, count: int, follow: bool) -> int:
    """Print the end of what agents have written; the same as `git tasks tail`."""
    from gittasks.workflow import transcripts

    found = transcripts.transcripts(session.project, target)
    return team.tail(session, found, target, count, follow)
