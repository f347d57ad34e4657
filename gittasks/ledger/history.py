"""The events of the ledger as one stream of `git log`, newest first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.ledger import message
from gittasks.plumbing.errors import GitError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from gittasks.domain.events import Event
    from gittasks.plumbing.objects import Reader
    from gittasks.plumbing.repository import Repository

__all__ = ["Recorded", "commits", "of_task", "since", "with_body"]

# One commit: ids, times, who, then the message as it was written, and what no message can hold.
_FORMAT = "%H%n%T%n%P%n%at%n%ct%n%cn <%ce>%n%B"


class Recorded(NamedTuple):
    """One commit of the ledger, its event, and when it was written by whom."""

    oid: str
    event: Event
    tree: str
    parents: tuple[str, ...]
    committed_at: int
    committer: str
    message: bytes

    @property
    def subject(self) -> str:
        """Returns the line for people."""
        return self.message.split(b"\n", 1)[0].decode("utf-8", "replace")


def since(
    repo: Repository,
    tip: str,
    after: str | None = None,
    *,
    limit: int | None = None,
    invalid: Collection[str] = (),
) -> Iterator[Recorded]:
    """Yields the events up to a commit, newest first, without those up to `after`.

    The first commit of every ledger, which is no event, is left out, and so are `invalid` ones.
    """
    revisions = (tip,) if after is None else (tip, f"^{after}")
    yield from commits(repo, revisions, limit=limit, invalid=invalid)


def of_task(
    repo: Repository,
    tip: str,
    task: str,
    *,
    limit: int | None = None,
    invalid: Collection[str] = (),
) -> Iterator[Recorded]:
    """Yields the events of one task, newest first, without the commits that are `invalid`."""
    wanted = ("--fixed-strings", f"--grep=Task: {task}")
    for one in commits(repo, (*wanted, tip), invalid=invalid):
        # The words may also stand in a text.
        if one.event.task != task:
            continue
        yield one
        if limit is not None:
            limit -= 1
            if limit <= 0:
                return


def commits(
    repo: Repository,
    arguments: Iterable[str],
    *,
    limit: int | None = None,
    invalid: Collection[str] = (),
) -> Iterator[Recorded]:
    """Yields the events that `git log` with these arguments gives; raises Corrupt at a bad one.

    `invalid` are commits that are known to count for nothing: they are left out.
    """
    most = () if limit is None else (f"--max-count={limit + len(invalid)}",)
    command = ("log", "-z", f"--format={_FORMAT}", "--no-color", "--min-parents=1", *most)
    child = repo.start(*command, *arguments, "--")
    try:
        # What ends early is no record; the status tells why.
        while limit != 0 and (record := child.read_to(b"\0")).endswith(b"\0"):
            if invalid and record[: record.index(b"\n")].decode("ascii") in invalid:
                continue
            yield _recorded(record[:-1])
            limit = None if limit is None else limit - 1
        if limit == 0:
            return
        done = child.close()
        if done.status:
            raise GitError(("log",), done.status, os.fsdecode(done.stderr))
    finally:
        # Whoever has seen enough does not make git go on to the beginning.
        child.kill()


def with_body(event: Event, reader: Reader) -> Event:
    """Returns the event with the body that it brought, read from its document."""
    from gittasks.domain.events import Configured, brings_body

    if event.document is None or event.body is not None:
        return event
    if isinstance(event.change, Configured):
        if event.change.path is None:
            return event
        return event._replace(body=reader.blob(event.document))
    if not brings_body(event.change, event.source):
        return event
    from gittasks.domain.frontmatter import split

    return event._replace(body=split(reader.blob(event.document))[1])


def _recorded(record: bytes) -> Recorded:
    oid, tree, parents, at, committed_at, committer, text = record.split(b"\n", 6)
    commit = oid.decode("ascii")
    return Recorded(
        commit,
        message.decode(text, int(at), commit),
        tree.decode("ascii"),
        tuple(parents.decode("ascii").split()),
        int(committed_at),
        os.fsdecode(committer),
        text,
    )
