"""`git tasks watch`: the events of the ledger as lines, from any commit on, as they come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gittasks.cli import following, frame
from gittasks.domain import redact
from gittasks.domain.events import data_of
from gittasks.domain.times import timestamp

if TYPE_CHECKING:
    from gittasks.workflow.log import Entry


@frame.command("watch")
@frame.option("--from", "after", metavar="OID", help="begin after this commit of the ledger")
@frame.option("--jsonl", is_flag=True, help="one JSON object a line; --json means the same")
@frame.option(
    "--until",
    type=frame.Choice(("idle",)),
    help="end once nothing is claimed, ready or at CHECK",
)
def command(session: frame.Session, after: str | None, jsonl: bool, until: str | None) -> int:
    """Print the events of the ledger, oldest first, and then each as it comes.

    Without --from it begins with the next event. The commit of the last line is where another
    watch goes on.
    """
    follower = following.follower(session)
    begin = follower.start(after)
    as_json = jsonl or session.out.json

    def follow() -> None:
        for entry in follower.events(begin, until_idle=until == "idle"):
            if as_json:
                session.out.json_line(as_object(entry))
            else:
                _print(session, entry)
            session.out.flush()

    return following.until_interrupted(follow)


def _print(session: frame.Session, entry: Entry) -> None:
    when = timestamp(entry.event.at)
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
