"""`git tasks watch`: events and signals of the ledger as lines, from any cursor on, as they come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gittasks.cli import following, frame
from gittasks.domain import redact
from gittasks.domain.events import data_of
from gittasks.domain.times import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.workflow.log import Entry
    from gittasks.workflow.watch import Cursor, Told


@frame.command("watch")
@frame.option(
    "--from", "after", metavar="OID[:N]", help="begin after this commit, or after its line N"
)
@frame.option("--jsonl", is_flag=True, help="one JSON object a line; --json means the same")
@frame.option(
    "--signal",
    "wanted",
    multiple=True,
    metavar="NAME",
    help="only this signal, such as task_completed or inbox_added; repeatable",
)
@frame.option(
    "--exec",
    "line",
    metavar="COMMAND",
    help="run COMMAND for each line, with the line's JSON on its stdin",
)
@frame.option(
    "--until",
    type=frame.Choice(("idle",)),
    help="end once nothing is claimed, ready or at CHECK",
)
def command(
    session: frame.Session,
    after: str | None,
    jsonl: bool,
    wanted: tuple[str, ...],
    line: str | None,
    until: str | None,
) -> int:
    """Print the events of the ledger, oldest first, and then each as it comes.

    Without --from it begins with the next event. As JSON each event is followed by its signals:
    what the projections have to tell of it. Commit and ordinal of the last line (OID:N) are where
    another watch goes on. COMMAND is split as a shell would, and run without one;
    when it has failed for a line, the watch goes on and ends with 1.
    """
    from gittasks.workflow import watch

    names = watch.known_signals(wanted)
    handler = None if line is None else watch.handler(session.project, line)
    follower = following.follower(session)
    begin = follower.start(after)
    as_json = jsonl or session.out.json
    signals = as_json or handler is not None or bool(names)
    failures = []

    def follow() -> None:
        for told in follower.events(begin, signals=signals, until_idle=until == "idle"):
            for row in lines(told, begin, names):
                if as_json:
                    session.out.json_line(row)
                elif row["signal"] is None or names:
                    _print(session, told.entry, row)
                if handler is not None:
                    session.out.flush()
                    failure = handler(row)
                    if failure is not None:
                        failures.append(row)
                        session.out.warn(failure)
            session.out.flush()

    return following.until_interrupted(follow) or int(bool(failures))


def lines(told: Told, begin: Cursor, names: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Yields the lines of one event: itself, and its signals; those up to the cursor are known."""
    known = -1
    if told.entry.oid == begin.commit and begin.ordinal is not None:
        known = begin.ordinal
    rows = (as_object(told.entry), *_signals(told))
    for row in rows[known + 1 :]:
        if not names or row["signal"] in names:
            yield row


def _signals(told: Told) -> Iterator[dict[str, Any]]:
    event = told.entry.event
    for ordinal, signal in enumerate(told.signals, 1):
        yield {
            "oid": told.entry.oid,
            "ordinal": ordinal,
            "at": timestamp(event.at),
            "event": event.kind,
            "signal": signal.name,
            "projection": signal.projection,
            "task": signal.task,
            "data": redact.redact_all(dict(signal.data)),
        }


def _print(session: frame.Session, entry: Entry, row: dict[str, Any]) -> None:
    when = timestamp(entry.event.at)
    if row["signal"] is not None:
        about = "".join(f" {name}={value}" for name, value in row["data"].items())
        told = f"{row['signal']} {row['task'] or ''}{about}"
        session.out.headed(entry.oid[:10], f" {when[:10]} {when[11:19]}  {told}")
        return
    title = getattr(entry.event.change, "title", None)
    about = f": {title}" if title and entry.event.kind == "create" else ""
    told = redact.redact(f"{entry.subject}{about}")
    session.out.headed(entry.oid[:10], f" {when[:10]} {when[11:19]}  {told}")


def as_object(entry: Entry) -> dict[str, Any]:
    """Returns one event as a line of JSON has it, without secrets and absolute paths."""
    event = entry.event
    data: dict[str, Any] = {"actor": event.actor, "role": event.role}
    if event.task is not None:
        data |= {"from": event.source, "to": event.target}
    data |= json.loads(data_of(event.change))
    if event.kind == "note":
        # The text of every other event says in words what its data says.
        data["text"] = event.text
    return {
        "oid": entry.oid,
        "ordinal": 0,
        "at": timestamp(event.at),
        "event": event.kind,
        "signal": None,
        "projection": None,
        "task": event.task,
        "data": redact.redact_all(data),
    }
