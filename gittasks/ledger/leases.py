"""Renewals of leases: small refs beside the ledger, so that a long claim leaves no trail of events.

`refs/gittasks/leases/<id>` points to a blob of exactly two lines: the claim that it is about, and
the new end of its lease.

    claim 8c1f0d5b7a6e4f3029184756abcdef01
    until 2026-11-30T17:17:12Z

The ref is overwritten at every renewal, and no commit ever points there. What a fetch brought of
the remote's leases stands below `refs/gittasks/incoming/gittasks/leases/`; of the two the later end counts,
and only for the claim that the task's document names today. So a renewal that outlived its claim
means nothing, whoever left it. Anything else found there counts as absent.

An end moves only forward. A holder whose clock was set back keeps what it has been promised, and
of two renewals at once the later end stays.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.ids import is_id
from gittasks.domain.times import timestamp
from gittasks.ledger import layout
from gittasks.plumbing import refs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gittasks.domain.task import Task
    from gittasks.plumbing.objects import Object, Reader
    from gittasks.plumbing.repository import Repository

__all__ = [
    "INCOMING",
    "LEASES",
    "Kept",
    "all",
    "drop",
    "forget",
    "kept",
    "outgoing",
    "renew",
    "renewed",
    "renewed_of",
]

LEASES = "refs/gittasks/leases/"
INCOMING = layout.INCOMING + "gittasks/leases/"

_ROUNDS = 10
_PAUSE = 0.02
_TEXT = "claim {}\nuntil {}\n"
_SIZE = 66


class Kept(NamedTuple):
    """One ref of a lease as it stands: its task, its claim, the end; None where it is rubbish."""

    ref: str
    oid: str
    task: str | None
    claim: str | None
    until: str | None


def renew(repo: Repository, reader: Reader, task: str, claim: str, until: int) -> None:
    """Moves the end of a claim's lease to a later time; replaces what another claim has left."""
    from gittasks.plumbing import objects
    from gittasks.plumbing.errors import ObjectMissing, RefLocked, RefMoved

    ref = LEASES + task
    end = timestamp(until)
    new = objects.draft(repo, "blob", _TEXT.format(claim, end).encode("ascii"))
    found = reader.get(ref)
    old = None if found is None else found.oid
    for left in reversed(range(_ROUNDS)):
        before = _parsed(found)
        if before is not None and before[0] == claim and before[1] >= end:
            return
        objects.write(repo, (new,))
        try:
            refs.compare_and_swap(repo, ref, new.oid, old, f"{task} lease")
        except RefMoved as moved:
            if not left:
                raise
            old = moved.actual
            found = None if old is None else reader.get(old)
        except (ObjectMissing, RefLocked):
            # A gc beside us took what no ref held yet, or somebody renews in this very moment.
            if not left:
                raise
            time.sleep(_PAUSE)
        else:
            return


def renewed(reader: Reader, task: str, claim: str) -> str | None:
    """Returns the later end that a claim was given, None where it was never renewed."""
    return renewed_of(reader, {task: claim}).get(task)


def renewed_of(reader: Reader, claims: Mapping[str, str]) -> dict[str, str]:
    """Returns the later end for each of these tasks' claims that was renewed, asked all at once."""
    places = [(task, prefix + task) for task in claims for prefix in (LEASES, INCOMING)]
    ends: dict[str, str] = {}
    for (task, _), found in zip(places, reader.many(ref for _, ref in places), strict=True):
        lease = _parsed(found)
        if lease is not None and lease[0] == claims[task]:
            ends[task] = max(lease[1], ends.get(task, ""))
    return ends


def all(repo: Repository, reader: Reader) -> dict[tuple[str, str], str]:
    """Returns every renewal: the later end by task and claim, whether or not the claim holds."""
    ends: dict[tuple[str, str], str] = {}
    for one in kept(repo, reader):
        if one.task and one.claim and one.until:
            key = (one.task, one.claim)
            ends[key] = max(one.until, ends.get(key, ""))
    return ends


def kept(repo: Repository, reader: Reader, known: Mapping[str, str] | None = None) -> list[Kept]:
    """Returns every ref of a lease, ours and those that a fetch has brought, rubbish included.

    Whoever has asked git for these refs already gives them as `known`.
    """
    found = known
    if found is None:
        found = repo.ref_ids([LEASES.rstrip("/"), INCOMING.rstrip("/")])
    rows = []
    for (ref, oid), one in zip(found.items(), reader.many(found.values()), strict=True):
        name = ref.removeprefix(LEASES).removeprefix(INCOMING)
        claim, until = _parsed(one) or (None, None)
        rows.append(Kept(ref, oid, name if is_id(name) else None, claim, until))
    return rows


def outgoing(
    repo: Repository,
    reader: Reader,
    task_of: Callable[[str], Task | None],
    known: Mapping[str, str] | None = None,
) -> list[refs.Change]:
    """Returns how the remote's leases would move, with what a fetch has found there as old value.

    What we renewed further goes there; what was left there for a claim that is over goes away.
    Tasks that are not known here are left alone.
    """
    found = {one.ref: one for one in kept(repo, reader, known) if one.task is not None}
    changes = []
    for name in dict.fromkeys(one.task for one in found.values() if one.task is not None):
        task = task_of(name)
        if task is None:
            continue
        own, there = found.get(LEASES + name), found.get(INCOMING + name)
        end = there.until if there is not None and there.claim == task.claim else None
        old = None if there is None else there.oid
        if own is not None and own.claim is not None and own.claim == task.claim:
            if (own.until or "") > (end or ""):
                changes.append(refs.Change(LEASES + name, own.oid, old))
        elif there is not None and (end is None or task.claim is None):
            changes.append(refs.Change(LEASES + name, None, old))
    return changes


def drop(repo: Repository, task: str) -> None:
    """Forgets the renewals of a task, ours and those that a fetch has brought."""
    forget(repo, ((ref, oid) for ref, oid in _refs_of(repo, task).items()))


def forget(repo: Repository, found: Iterable[tuple[str, str]]) -> None:
    """Removes refs of leases that still have these values; one that was renewed meanwhile stays."""
    from gittasks.plumbing.errors import RefMoved

    for ref, oid in found:
        try:
            refs.compare_and_swap(repo, ref, None, oid, "lease over")
        except RefMoved:
            continue


def _refs_of(repo: Repository, task: str) -> dict[str, str]:
    wanted = (LEASES + task, INCOMING + task)
    return {ref: oid for ref, oid in refs.read_many(repo, wanted).items() if oid is not None}


def _parsed(found: Object | None) -> tuple[str, str] | None:
    """Returns claim and end, None where something else stands there."""
    from gittasks.domain.fields import is_time

    if found is None or found.kind != "blob" or len(found.data) != _SIZE:
        return None
    text = found.data.decode("ascii", "replace")
    claim, until = text[6:38], text[45:65]
    if text != _TEXT.format(claim, until) or claim.strip("0123456789abcdef") or not is_time(until):
        return None
    return claim, until
