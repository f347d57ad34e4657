"""How events get into the ledger, and how they never get in twice or half.

Queue for the lock; read the tip once; decide on that graph; build the commits in memory; keep
their bytes in the journal; write them; move the branch from the tip that was read. If it has
moved meanwhile, decide again.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Busy, Corrupt, GittasksError, Refused, UnknownTask, in_a_sentence
from gittasks.domain.events import Event, Initialized
from gittasks.ledger import journal, layout, message, recover, repair
from gittasks.ledger.build import Builder
from gittasks.ledger.graph import LedgerGraph
from gittasks.ledger.locking import unwritable
from gittasks.plumbing import objects, refs
from gittasks.plumbing.errors import GitError, ObjectMissing, RefLocked, RefMoved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.config import Project
    from gittasks.domain.task_graph import Graph
    from gittasks.ledger.view import View

    Decide = Callable[[Graph], Sequence[Event]]
    Also = Sequence[refs.Change] | Callable[[], Sequence[refs.Change]]

__all__ = ["Appended", "append", "create", "prepared", "require_not_checked_out", "settled"]

_ROUNDS = 10
_REPAIRS = ("edit", "note")
"""What may be said about a task that something invalid has arrived of."""
_GC_EVERY = 256


class Appended(NamedTuple):
    """What an append wrote: events as they stand in the ledger, one commit each, and the tips."""

    events: tuple[Event, ...]
    commits: tuple[str, ...]
    tip: str
    before: str | None


def create(ledger: View, settings: Project, actor: str) -> str:
    """Begins the ledger with these settings and returns the commit of its first event."""
    from gittasks.domain.config import project_dict

    pairs = tuple(
        (name, tuple(value) if isinstance(value, list) else value)
        for name, value in project_dict(settings).items()
    )
    event = Event("", ledger.clock(), actor, "operator", ledger.host, Initialized(pairs))
    with ledger.locked():
        if refs.read(ledger.repo, ledger.branch) is not None:
            raise Refused(f"There is a branch {ledger.short_branch} already.")
        empty = objects.draft(ledger.repo, "tree", b"")
        root = objects.draft(ledger.repo, "commit", layout.root_commit(empty.oid))
        commits = Builder.on(ledger, objects.parse_commit(root.oid, root.data), None, None)
        commits.add(empty)
        commits.add(root)
        commits.append(event)
        _publish(ledger, commits, None, ())
        ledger.is_at(commits.commits[-1])
    return commits.commits[-1]


def append(ledger: View, decide: Decide, also: Also) -> Appended:
    """Writes what `decide` says on the newest graph, and moves the other refs with it."""
    with ledger.locked():
        require_not_checked_out(ledger)
        for tried in range(_ROUNDS):
            try:
                return _append(ledger, decide, also)
            except RefMoved as error:
                if error.name not in (ledger.branch, layout.BACKUP) and not callable(also):
                    raise
                _pause(tried)
            except ObjectMissing as error:
                if not journal.restore_all(ledger.repo, ledger.reader, ledger.state_dir):
                    raise Corrupt(
                        f"The ledger is damaged: {error}", "Run `git tasks recover` to repair it."
                    ) from None
    raise Busy("Others change the ledger all the time.", "Try again.")


def _append(ledger: View, decide: Decide, also: Also) -> Appended:
    above = recover.writable_tip(ledger)
    ledger.is_at(above and above.oid)
    # Raises where there is no ledger.
    before = ledger.tip
    assert above is not None
    commits = prepared(ledger, above, decide)
    if commits is None:
        return Appended((), (), before, before)
    _publish(ledger, commits, before, also() if callable(also) else also)
    return settled(ledger, commits, before)


def prepared(ledger: View, above: objects.Commit, decide: Decide) -> Builder | None:
    """Returns the commits of a decision on the tip, None where nothing is to do; writes nothing."""
    snapshot = ledger.snapshot
    graph = LedgerGraph(snapshot, lambda: ledger.reader)
    events = _verified(graph, _decided(decide, graph))
    if not events:
        return None
    commits = Builder.on(ledger, above, graph, snapshot.text(layout.PROJECT_FILE))
    for event in events:
        commits.append(event)
    return commits


def _verified(graph: LedgerGraph, events: Sequence[Event]) -> Sequence[Event]:
    """Returns the events that may be written while something that arrived does not verify.

    Raises Corrupt for a step of a task that has to be repaired first; what merely follows from
    the step of another task waits for the repair.
    """
    kept = []
    for event in events:
        reason = None if event.task is None else graph.quarantined(event.task)
        if reason is None or event.kind in _REPAIRS:
            kept.append(event)
        elif event.kind != "unblock":
            raise Corrupt(
                f"The task {event.task} keeps its last good state, because {in_a_sentence(reason)}.",
                f"Look at it with `git tasks fsck`; the manager repairs it with"
                f" `git tasks edit {event.task}`.",
                event.task,
            )
    return kept


def settled(ledger: View, commits: Builder, before: str) -> Appended:
    """Tells the view and the read cache of commits that are the tip of the branch by now."""
    tip = commits.commits[-1]
    ledger.is_at(tip)
    ledger.has_written = True
    ledger.advance(before, commits.tree, commits.files, commits.tasks)
    _tidy_now_and_then(ledger, commits)
    return Appended(tuple(commits.events), tuple(commits.commits), tip, before)


def _decided(decide: Decide, graph: LedgerGraph) -> Sequence[Event]:
    try:
        return decide(graph)
    except UnknownTask as error:
        bad = graph.problem(error.task) if error.task else None
        raise bad or error from None


def _publish(
    ledger: View, commits: Builder, before: str | None, also: Sequence[refs.Change]
) -> None:
    """Writes the objects and moves the refs; afterwards every object is there."""
    tip = commits.commits[-1]
    drafts = tuple(commits.drafts.values())
    try:
        entry = journal.keep(ledger.state_dir, before, tip, drafts)
    except OSError as error:
        raise unwritable(error) from None
    backup = ledger.reader.get(layout.BACKUP)
    changes = (
        # First, so that a process killed between two refs has moved this one.
        refs.Change(ledger.branch, tip, before),
        refs.Change(layout.BACKUP, tip, backup and backup.oid),
        *also,
    )
    try:
        objects.write(ledger.repo, drafts)
        repair.patient_transaction(ledger, changes, _note(commits), drafts)
    except GitError as error:
        # What git says last is not always what it did.
        if not _is_written(ledger, commits, before):
            journal.drop(entry)
            raise _told(error) from None
    _settle(ledger, drafts)


def _settle(ledger: View, drafts: Sequence[objects.Draft]) -> None:
    """Makes sure that a gc beside us has taken nothing, and clears the journal."""
    journal.restore(ledger.repo, ledger.reader, drafts)
    old, recent = journal.sorted_out(ledger.state_dir)
    for path in (*old, *recent):
        journal.restore_entry(ledger.repo, ledger.reader, path)
    for path in old:
        journal.drop(path)


def _is_written(ledger: View, commits: Builder, before: str | None) -> bool:
    """Tells whether our commits are in the ledger although the move was refused."""
    now = refs.read(ledger.repo, ledger.branch)
    if now is None or now == before:
        return False
    wanted = {event.event_id for event in commits.events}
    current: str | None = now
    while current is not None and current != before:
        if current == commits.commits[-1]:
            return True
        commit = ledger.reader.commit(current)
        if wanted.intersection(message.event_ids(commit.message)):
            return True
        current = commit.parents[0] if commit.parents else None
    return False


def _tidy_now_and_then(ledger: View, commits: Builder) -> None:
    # Ids are random, so this needs no count of what is there.
    if any(int(event.event_id[:8], 16) % _GC_EVERY == 0 for event in commits.events):
        from gittasks.ledger import upkeep

        upkeep.collect_in_background(ledger.repo)


def require_not_checked_out(ledger: View) -> None:
    """Raises Refused while some worktree has the branch of the ledger checked out."""
    where = repair.checked_out_at(ledger.repo, ledger.branch)
    if where is not None:
        raise Refused(
            f"The ledger is checked out at {where}, so nothing can be written to it.",
            f"Switch that checkout to another branch than {ledger.short_branch}.",
        )


def _told(error: GitError) -> Exception:
    """Returns what a failed move of the branch means for whoever wanted it."""
    if isinstance(error, RefMoved | ObjectMissing):
        return error
    if isinstance(error, RefLocked):
        return Busy(
            f"Another git process holds {error.path}.",
            "Try again; `git tasks recover` removes it if its process is dead.",
        )
    return GittasksError(f"The ledger was not changed: {error}")


def _note(commits: Builder) -> str:
    more = len(commits.events) - 1
    return f"gittasks: {message.subject(commits.events[0])}" + (f" and {more} more" if more else "")


def _pause(tried: int) -> None:
    """Waits a random while, longer each time."""
    longest = min(0.01 * 2**tried, 1.0)
    time.sleep(longest * os.urandom(1)[0] / 255)
