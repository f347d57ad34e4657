"""The events of the ledger as one stream of `git log`, newest first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Corrupt
from gittasks.ledger import message
from gittasks.plumbing.errors import GitError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.projections.table import Fact
    from gittasks.plumbing.objects import Commit, Reader
    from gittasks.plumbing.repository import Repository

__all__ = ["Recorded", "commits", "fact", "facts", "of_task", "since", "with_body"]

# One commit: ids, times, who, then the message as it was written, and what no message can hold.
_FORMAT = "%H%n%T%n%P%n%at%n%ct%n%cn <%ce>%n%B"
# What a fold has to know of one.
_FACT = "%H%n%P%n%at%n%ct%n%B"


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
    bad: Callable[[Corrupt], None] | None = None,
) -> Iterator[Recorded]:
    """Yields the events that `git log` with these arguments gives; raises Corrupt at a bad one.

    With `bad` that is told instead, and the others follow. `invalid` are commits that are known to
    count for nothing: they are left out.
    """
    most = () if limit is None else (f"--max-count={limit + len(invalid)}",)
    if limit == 0:
        return
    for record in _records(repo, _FORMAT, (*most, *arguments)):
        if invalid and record[: record.index(b"\n")].decode("ascii") in invalid:
            continue
        try:
            found = _recorded(record)
        except Corrupt as error:
            if bad is None:
                raise
            bad(error)
            continue
        yield found
        limit = None if limit is None else limit - 1
        if limit == 0:
            return


def facts(
    repo: Repository,
    tip: str,
    after: str | None = None,
    *,
    about: str | None = None,
    invalid: Collection[str] = (),
) -> Iterator[Fact]:
    """Yields what folds are told of each commit behind `after`, oldest first.

    What is no event, or is known to be `invalid`, is told as that, and never stops the rest. With
    `about` most commits are left out that do not concern this task.
    """
    revisions = (tip,) if after is None else (tip, f"^{after}")
    wanted = () if about is None else ("--fixed-strings", f"--grep=Task: {about}")
    for record in _records(repo, _FACT, ("--reverse", "--first-parent", *wanted, *revisions)):
        oid, parents, at, committed_at, text = record.split(b"\n", 4)
        above = parents.decode("ascii").split()
        yield _fact(oid.decode("ascii"), above, int(at), int(committed_at), text, invalid)


def fact(commit: Commit, invalid: Collection[str] = ()) -> Fact:
    """Returns what folds are told of one commit that was read as an object."""
    return _fact(
        commit.oid, commit.parents, commit.author_time, commit.committer_time, commit.message,
        invalid,
    )  # fmt: skip


def _fact(
    oid: str,
    parents: Sequence[str],
    at: int,
    committed_at: int,
    text: bytes,
    invalid: Collection[str],
) -> Fact:
    from gittasks.domain.projections.table import Fact

    event, reason = None, ""
    if oid in invalid:
        reason = "It does not verify."
    elif len(parents) > 1:
        reason = "It is a merge."
    else:
        try:
            event = message.decode(text, at, oid)
        except Corrupt as error:
            reason = error.message
    return Fact(oid, committed_at, event, reason, parents[0] if parents else "")


def _records(repo: Repository, form: str, arguments: Iterable[str]) -> Iterator[bytes]:
    """Yields what `git log` says of each commit but the first of all ledgers, which is no event."""
    command = ("log", "-z", f"--format={form}", "--no-color", "--min-parents=1")
    child = repo.start(*command, *arguments, "--")
    try:
        # What ends early is no record; the status tells why.
        while (record := child.read_to(b"\0")).endswith(b"\0"):
            yield record[:-1]
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
