"""`git tasks import`: takes over the tasks of another tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.cli import frame

if TYPE_CHECKING:
    from gittasks.workflow.importing.items import Fault
    from gittasks.workflow.importing.writer import Brought, Imported

_SHOWN_FAULTS = 50
_SOURCES = ("beads", "backlog", "ticket", "github", "gittasks")


@frame.command("import")
@frame.argument("place", metavar="PATH")
@frame.option("--from", "source", type=frame.Choice(_SOURCES), help="which tool has written it")
@frame.option("--all", "everything", is_flag=True, help="closed ones too; they come as aborted")
@frame.option("--drop-links", is_flag=True, help="keep links that do not hold as words only")
@frame.option("--idempotency-key", metavar="KEY", help="tell apart projects whose ids are alike")
@frame.option("--dry-run", is_flag=True, help="only say what would be created")
def command(
    session: frame.Session,
    place: str,
    source: Any,
    everything: bool,
    drop_links: bool,
    idempotency_key: str | None,
    dry_run: bool,
) -> int:
    """Take over the tasks of another tool, and print their ids.

    PATH is a file of JSON (beads, GitHub, or `git tasks export`; - is stdin), or a folder (of
    beads, Backlog.md or ticket). Imported again, only what is new comes. Rows with a fault are
    left out and listed, and the exit status is then 1.
    """
    from gittasks.workflow.importing import writer

    done = writer.bring(
        session.project,
        session.path(place),
        "stdin" if place == "-" else place,
        source,
        wish=writer.Wish(everything, drop_links, dry_run, idempotency_key),
        data=session.read_text(place) if place == "-" else None,
    )
    for note in done.notes:
        session.out.say(note)
    _tell_faults(session, done)
    if not session.answer("import", _as_object(done)):
        _tell_tasks(session, done)
    return 1 if done.faults else 0


def _tell_faults(session: frame.Session, done: Imported) -> None:
    for fault in done.faults[:_SHOWN_FAULTS]:
        session.out.warn(_line(fault))
    if len(done.faults) > _SHOWN_FAULTS:
        more = len(done.faults) - _SHOWN_FAULTS
        session.out.warn(f"{more} more rows have a fault; --json names them all.")


def _line(fault: Fault) -> str:
    where = fault.file + (f":{fault.row}" if fault.row else "")
    return f"{where}: {fault.key}: {fault.message}" if fault.key else f"{where}: {fault.message}"


def _tell_tasks(session: frame.Session, done: Imported) -> None:
    if done.created:
        session.out.rows([one.id or f"{one.key}  {one.title}" for one in done.created])
    session.out.say(_summary(done))


def _summary(done: Imported) -> str:
    from gittasks.workflow.importing.sources import TITLES

    would = "would be" if done.dry_run else ("was" if len(done.created) == 1 else "were")
    parts = [f"{_tasks(len(done.created))} {would} imported from {TITLES[done.source]}"]
    if done.known:
        parts.append(f"{len(done.known)} {'is' if len(done.known) == 1 else 'are'} here already")
    if done.closed:
        parts.append(f"{len(done.closed)} closed left out (--all brings them, too)")
    if done.skipped:
        parts.append(f"{done.skipped} {'is' if done.skipped == 1 else 'are'} no task")
    if done.faults:
        parts.append(f"{_rows(len(done.faults))} left out with a fault")
    return "; ".join(parts) + "."


def _tasks(count: int) -> str:
    return "One task" if count == 1 else f"{count or 'No'} tasks"


def _rows(count: int) -> str:
    return "one row" if count == 1 else f"{count} rows"


def _as_object(done: Imported) -> dict[str, Any]:
    data: dict[str, Any] = {
        "source": done.source,
        "dry_run": done.dry_run,
        "created": [_brought(one) for one in done.created],
        "known": [_brought(one) for one in done.known],
        "ids": {one.key: one.id for one in (*done.known, *done.created) if one.id is not None},
        "closed": list(done.closed),
        "counts": {
            "created": len(done.created),
            "known": len(done.known),
            "closed": len(done.closed),
            "skipped": done.skipped,
            "faults": len(done.faults),
        },
    }
    if done.faults:
        data["problems"] = [
            {"path": one.file, "row": one.row or None, "key": one.key, "message": one.message}
            for one in done.faults
        ]
    return data


def _brought(one: Brought) -> dict[str, Any]:
    return {"key": one.key, "id": one.id, "title": one.title}
