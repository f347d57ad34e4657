"""Tasks of another ledger, as `git tasks export` writes them: one JSON object a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain import frontmatter
from gittasks.domain.errors import UsageFault
from gittasks.domain.fields import is_extra, is_token
from gittasks.domain.task import PRIORITY
from gittasks.workflow.importing import rows
from gittasks.workflow.importing.items import Gathering, Item, Unfit, about, line, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gittasks.workflow.importing.items import Dump


def fits(row: Mapping[str, Any]) -> bool:
    """Tells whether a row looks like a task of a ledger."""
    return {"id", "uid", "state", "title"} <= {*row}


def read(data: bytes, file: str) -> Dump:
    """Returns the tasks of a file in its order."""
    into = Gathering()
    for number, row in rows.lines(data, file, into):
        try:
            into.take(_item(row, file, number))
        except Unfit as why:
            into.fault(
                file, number, str(why), row["id"] if isinstance(row.get("id"), str) else None
            )
    return into.dump()


def _item(row: Mapping[str, Any], file: str, number: int) -> Item:
    uid = text(row.get("uid"), "uid")
    if not is_token(uid):
        raise Unfit("The uid is none; take the line as it was exported.")
    state = text(row.get("state"), "state")
    rank = row.get("priority", PRIORITY)
    if type(rank) is not int or not 0 <= rank <= 4:
        raise Unfit("The priority is none; write a number from 0 to 4.")
    return Item(
        key=text(row.get("id"), "id"),
        title=text(row.get("title"), "title"),
        file=file,
        row=number,
        body=text(row.get("body"), "body"),
        labels=_texts(row, "labels"),
        priority=rank,
        assignee=text(row.get("assignee"), "assignee") or None,
        checks=_texts(row, "checks"),
        needs=_texts(row, "depends_on"),
        parent=text(row.get("parent"), "parent") or None,
        follows=text(row.get("follows"), "follows") or None,
        closed=state == "CLOSED",
        about=about(
            state="" if state in ("NEW", "CLOSED") else state,
            outcome=line(row.get("outcome"), "outcome"),
            supersedes=line(row.get("supersedes"), "supersedes"),
            proposed_by=line(row.get("proposed_by"), "proposed_by"),
        ),
        extra=tuple((name, _raw(name, row[name])) for name in row if is_extra(name)),
        uid=uid,
    )


def _texts(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = row.get(name, [])
    if not isinstance(value, list) or not all(
        isinstance(one, str) and one.strip() for one in value
    ):
        raise Unfit(f"The field {name} is no list of texts; take the line as it was exported.")
    return tuple(value)


def _raw(name: str, value: Any) -> str:
    """Returns the text after the colon of a key of the user's own."""
    try:
        return str(frontmatter.check_field(name, value))
    except UsageFault as refusal:
        raise Unfit(refusal.message) from None
