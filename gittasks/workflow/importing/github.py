"""Issues of GitHub as JSON: `gh issue list --json …`, or what the interface itself answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gittasks.workflow.importing import rows
from gittasks.workflow.importing.items import (
    Gathering,
    Item,
    Unfit,
    about,
    body,
    line,
    priority,
    remark,
    text,
)
from gittasks.workflow.importing.items import rows as rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gittasks.workflow.importing.items import Dump

_PLACE = re.compile(r"https?://[^/]+/(?:repos/)?([^/\s]+/[^/\s]+)/(?:issues|pull)/(\d{1,18})")
_NEEDS = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?\**(?:blocked by|depends on)\**:?\**[ \t]+(.+)$",
    re.IGNORECASE | re.MULTILINE,
)
_NAMED = re.compile(r"(?:([\w.-]+/[\w.-]+))?#(\d{1,18})\b|(https?://\S+)")
_RANK_LABEL = re.compile(r"(?:priority|prio)?\s*[:/-]?\s*(p[0-4]|critical|urgent|high|medium|low)")
_RANKS = {"critical": 0, "urgent": 0, "high": 1, "medium": 2, "low": 3}


def fits(row: Mapping[str, Any]) -> bool:
    """Tells whether a row looks like an issue of GitHub."""
    row = row["items"][0] if isinstance(row.get("items"), list) and row["items"] else row
    return isinstance(row, dict) and type(row.get("number")) is int and "title" in row


def read(data: bytes, file: str) -> Dump:
    """Returns the issues of a file, lowest number first; pull requests are none."""
    into = Gathering()
    for number, row in rows.objects(data, file, into):
        if row.get("pull_request") or "/pull/" in str(row.get("url") or row.get("html_url")):
            into.skipped += 1
            continue
        try:
            into.take(_item(row, file, number))
        except Unfit as why:
            into.fault(file, number, str(why), _name_of(row))
    into.items.sort(key=lambda item: int(item.key.rpartition("#")[2]))
    return into.dump()


def _name_of(row: Mapping[str, Any]) -> str | None:
    return f"#{row['number']}" if type(row.get("number")) is int else None


def _item(row: Mapping[str, Any], file: str, at: int) -> Item:
    number = row.get("number")
    if type(number) is not int or not 0 < number < 10**18:
        raise Unfit("The number is missing; have `gh` write it with --json number,….")
    url = line(row.get("html_url") or row.get("url"), "url") or ""
    place = _PLACE.match(url)
    repo = place[1] if place else ""
    said = text(row.get("body"), "body")
    labels = _labels(row)
    closed = text(row.get("state"), "state").lower() == "closed"
    names = _names(row)
    reason = text(row.get("state_reason") or row.get("stateReason"), "state_reason").lower()
    return Item(
        key=f"{repo}#{number}",
        title=text(row.get("title"), "title"),
        file=file,
        row=at,
        body=body(said, ("Comments", "\n\n".join(_remarks(row)))),
        labels=(*labels, *_goal(row)),
        priority=_rank(labels),
        assignee=names[0] if names else None,
        needs=_needed(said, repo, f"{repo}#{number}"),
        parent=_parent(row, repo),
        closed=closed,
        about=about(
            url=url,
            created=line(row.get("created_at") or row.get("createdAt"), "created_at"),
            assignees=names[1:],
            reason=reason if closed else None,
        ),
        # A list of open issues does not hold what is done; a link to it is no fault.
        loose=True,
    )


def _labels(row: Mapping[str, Any]) -> tuple[str, ...]:
    value = row.get("labels")
    if isinstance(value, list):
        value = [{"name": one} if isinstance(one, str) else one for one in value]
    named = (line(one.get("name"), "labels") for one in rows_of(value, "labels"))
    return tuple(dict.fromkeys(name for name in named if name))


def _goal(row: Mapping[str, Any]) -> tuple[str, ...]:
    found = row.get("milestone")
    title = line(found.get("title"), "milestone") if isinstance(found, dict) else None
    return (f"milestone:{title}",) if title else ()


def _rank(labels: tuple[str, ...]) -> int:
    """Returns the first priority that a label says."""
    for label in labels:
        found = _RANK_LABEL.fullmatch(label.lower())
        if found:
            return priority(found[1], _RANKS)[0]
    return priority(None, _RANKS)[0]


def _names(row: Mapping[str, Any]) -> tuple[str, ...]:
    found = rows_of(row.get("assignees"), "assignees")
    one = row.get("assignee")
    names = [
        line(who.get("login"), "login") for who in found or ([one] if isinstance(one, dict) else [])
    ]
    return tuple(dict.fromkeys(name for name in names if name))


def _remarks(row: Mapping[str, Any]) -> list[str]:
    value = row.get("comments")
    found = []
    # The interface only says how many there are.
    for one in rows_of(value if isinstance(value, list) else None, "comments"):
        who = one.get("author") or one.get("user")
        found.append(
            remark(
                text(who.get("login"), "login") if isinstance(who, dict) else "",
                text(one.get("createdAt") or one.get("created_at"), "created_at")[:10],
                text(one.get("body"), "body"),
            )
        )
    return found


def _needed(said: str, repo: str, own: str) -> tuple[str, ...]:
    """Returns what lines such as `Depends on #12, #14` name."""
    names = (name for told in _NEEDS.findall(said) for name in _keys(told, repo))
    return tuple(dict.fromkeys(name for name in names if name != own))


def _keys(told: str, repo: str) -> list[str]:
    found = []
    for other, number, url in _NAMED.findall(told):
        place = _PLACE.match(url) if url else None
        if place:
            found.append(f"{place[1]}#{place[2]}")
        elif number:
            found.append(f"{other or repo}#{number}")
    return found


def _parent(row: Mapping[str, Any], repo: str) -> str | None:
    above = row.get("parent")
    if isinstance(above, dict):
        url, number = line(above.get("url") or above.get("html_url"), "parent"), above.get("number")
    else:
        url, number = line(row.get("parent_issue_url"), "parent_issue_url"), above
    place = _PLACE.match(url) if url else None
    if place:
        return f"{place[1]}#{place[2]}"
    return f"{repo}#{number}" if type(number) is int else None
