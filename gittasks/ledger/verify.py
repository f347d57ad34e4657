"""Looks at every commit of the ledger: is it one event, legal where it stands, and nothing more?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain import machine
from gittasks.domain.errors import GittasksError
from gittasks.domain.fields import BadDocument
from gittasks.domain.frontmatter import parse, split
from gittasks.domain.task_graph import numbers_of
from gittasks.ledger import effect, history, message, origins, quarantine
from gittasks.ledger.layout import (
    MESSAGE_LIMIT,
    PRE_REPLAY,
    PROJECT_FILE,
    parse_path,
    path_of,
    root_commit,
    task_path,
)
from gittasks.ledger.quarantine import Stray, belongs, in_one_line, row_of
from gittasks.ledger.tree_pairs import BadTree, TreePairs
from gittasks.ledger.trees import changed_paths
from gittasks.plumbing import objects, refs
from gittasks.plumbing.errors import GitError, ObjectMissing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.task import Task
    from gittasks.ledger.graph import LedgerGraph
    from gittasks.ledger.quarantine import Row
    from gittasks.ledger.view import View
    from gittasks.plumbing.repository import Repository

__all__ = ["Checker", "Finding", "Fold", "Report", "is_root", "oldest_first", "verify"]

_CHUNK = 200
_NEAR = 64
_SHOWN = 12
_NAMED = 5

# What carrying out an event made by a hostile hand can end in.
_CANNOT_RUN = (GittasksError, LookupError, TypeError, ValueError, AttributeError, AssertionError)

Files = dict[str, tuple[str, str] | None]


class Finding(NamedTuple):
    """One thing that is not as it should be: what kind, at which commit, which task, in words."""

    kind: str
    commit: str
    task: str | None
    message: str


class Report(NamedTuple):
    """What a check of the whole ledger found; `notes` are worth knowing and no fault."""

    tip: str
    commits: int
    tasks: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


class Settled(NamedTuple):
    """A stray that a valid event has ended: in which commit, and by writing the very same."""

    stray: Stray
    commit: str
    is_same: bool


class Fold:
    """The task graph in the making, with what counts at each path; changes in place."""

    def __init__(self, reader: objects.Reader, below: LedgerGraph | None = None) -> None:
        """Starts with the tasks below, else without any; bodies are read when asked for."""
        self._reader = reader
        self._below = below
        self._files: dict[str, str | None] = {}
        self.tasks: dict[str, Task] = {}
        self.strays_by_path: dict[str, Stray] = {}
        self._uids: dict[str, str] = {}
        self._dependents: dict[str, set[str]] = {}
        self._children: dict[str | None, set[str]] = {}
        self._heirs: dict[str, set[str]] = {}
        self._last = 0
        self._gone: set[str] = set()

    def put(self, task: Task) -> None:
        """Adds or replaces a task."""
        self.drop(task.id)
        self._gone.discard(task.id)
        self.tasks[task.id] = task
        self._uids.setdefault(task.uid, task.id)
        for needed in task.depends_on:
            self._dependents.setdefault(needed, set()).add(task.id)
        self._children.setdefault(task.parent, set()).add(task.id)
        if task.supersedes is not None:
            self._heirs.setdefault(task.supersedes, set()).add(task.id)
        self._last = max(self._last, int(task.id))

    def drop(self, task_id: str) -> None:
        """Removes a task, if it is there."""
        self._gone.add(task_id)
        task = self.tasks.pop(task_id, None)
        if task is None:
            return
        if self._uids.get(task.uid) == task_id:
            del self._uids[task.uid]
        for needed in task.depends_on:
            self._dependents[needed].discard(task_id)
        self._children[task.parent].discard(task_id)
        if task.supersedes is not None:
            self._heirs[task.supersedes].discard(task_id)

    def set_file(self, path: str, oid: str | None) -> None:
        """Says what counts at a path, None where nothing does."""
        self._files[path] = oid

    def file(self, path: str) -> str | None:
        """Returns the blob that counts at a path."""
        if path in self._files or self._below is None:
            return self._files.get(path)
        return self._files.setdefault(path, self._below.file(path))

    def get(self, task: str) -> Task | None:
        """Returns the task with this six-digit id."""
        found = self.tasks.get(task)
        if found is not None or self._below is None or task in self._gone:
            return found
        return self._below.get(task)

    def body(self, task: str) -> bytes:
        """Returns the body of a task that exists."""
        blob = self.revision(task)
        assert blob is not None
        return split(self._reader.blob(blob))[1]

    def revision(self, task: str) -> str | None:
        """Returns the blob id of the task's document."""
        found = self.get(task)
        return None if found is None else self.file(path_of(found))

    def strays(self, task: str) -> Sequence[Stray]:
        """Returns the paths of a task at which the tree does not count."""
        if not self.strays_by_path:
            return ()
        paths = (task_path(task, closed=closed) for closed in (False, True))
        return [self.strays_by_path[path] for path in paths if path in self.strays_by_path]

    def loose_strays(self) -> Sequence[Stray]:
        """Returns the paths of no task at which the tree does not count."""
        return [stray for stray in self.strays_by_path.values() if self.is_loose(stray)]

    def is_loose(self, stray: Stray) -> bool:
        """Tells whether a stray is of no task that there is, so that any event puts it right."""
        return stray.task is None or self.get(stray.task) is None

    def with_uid(self, uid: str) -> str | None:
        """Returns the id of the task with this uid."""
        found = self._uids.get(uid)
        if found is not None or self._below is None:
            return found
        below = self._below.with_uid(uid)
        return below if below is not None and self._is_below(below) else None

    def dependents(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks, open or closed, that name the task in `depends_on`."""
        below = () if self._below is None else self._below.dependents(task)
        return self._merged(below, self._dependents.get(task, ()))

    def children(self, task: str | None) -> Sequence[str]:
        """Returns the ids of the direct children; of None, the tasks without a parent."""
        below = () if self._below is None else self._below.children(task)
        return self._merged(below, self._children.get(task, ()))

    def superseders(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks that name the task in `supersedes`."""
        below = () if self._below is None else self._below.superseders(task)
        return self._merged(below, self._heirs.get(task, ()))

    def last_id(self) -> int:
        """Returns the highest number in use, 0 when there is no task."""
        return max(self._last, 0 if self._below is None else self._below.last_id())

    def free_id(self, first: int) -> int:
        """Returns the lowest number from `first` on that means nothing and never has."""
        used = {number for task in self.tasks.values() for number in numbers_of(task)}
        used.update(int(stray.task) for stray in self.strays_by_path.values() if stray.task)
        while True:
            number = first if self._below is None else self._below.free_id(first)
            if number not in used:
                return number
            first = number + 1

    def _merged(self, below: Sequence[str], own: Iterable[str]) -> Sequence[str]:
        return sorted({*filter(self._is_below, below), *own})

    def _is_below(self, task: str) -> bool:
        return task not in self.tasks and task not in self._gone


class Checker:
    """Goes through commits, oldest first, each on top of the one before.

    A commit that is not as it should be counts for nothing: what it did to the tree is a stray at
    each path, and what follows is judged against what counts. With any event may go what is
    no task's, whether or not whoever wrote it knew.
    """

    def __init__(self, repo: Repository, reader: objects.Reader, fold: Fold | None = None) -> None:
        """Starts before the first commit; a fold already has what counts where `start_at` says."""
        self._repo = repo
        self._reader = reader
        self._trees = TreePairs(reader, repo.oid_length // 2)
        self._is_begun = fold is not None
        self.fold = Fold(reader) if fold is None else fold
        self.tree: str | None = None
        self.last: str | None = None
        self._last_time = 0
        self._event_ids: set[str] = set()
        self.touched: dict[str, set[str]] = {}
        """The commits that count for nothing, and the paths at which they have left something."""
        self.settled: list[Settled] = []
        """The strays that valid events have ended."""
        self.repairs: dict[str, dict[str, None]] = {}
        """The valid commits that have put right what commits that count for nothing have left."""
        self.unread: set[str] = set()
        """The commits of which nobody can say what they did."""
        self._left_by: dict[str, set[str]] = {}
        self.late: int = 0
        """How many commits are dated before their parent."""

    @property
    def strays(self) -> dict[str, Stray]:
        """Returns the paths at which the tree of the last commit does not count."""
        return self.fold.strays_by_path

    def left_something(self) -> frozenset[str]:
        """Returns the commits of which something is left in the tree that does not count."""
        return frozenset(commit for commits in self._left_by.values() for commit in commits)

    def start_at(self, commit: objects.Commit) -> None:
        """Begins at a commit that is known to be well, with its documents or those of the fold."""
        if not self._is_begun:
            for path, now in changed_paths(self._trees, None, commit.tree):
                if now is not None and now[0] == objects.FILE and belongs(path):
                    self._read(path, now[1])
        self._moved_to(commit)

    def check(self, commit: objects.Commit) -> list[Finding]:
        """Returns what is wrong with the next commit; only one that is right counts."""
        found: list[tuple[str, str | None, str]] = []
        changes: Files = {}
        try:
            changes = dict(changed_paths(self._trees, self.tree, commit.tree))
            self._judge(commit, changes, found)
        except ObjectMissing as error:
            self.unread.add(commit.oid)
            found.append(("missing", None, f"An object is missing: {error}"))
        except BadTree as error:
            self.unread.add(commit.oid)
            found.append(("tree", None, f"A folder of the tree names {error} twice."))
        if any(kind != "repeated" for kind, _, _ in found):
            self._set_aside(commit, changes, found)
        self._moved_to(commit)
        return [Finding(kind, commit.oid, task, in_one_line(words)) for kind, task, words in found]

    def _moved_to(self, commit: objects.Commit) -> None:
        self.tree = commit.tree
        self.last = commit.oid
        if commit.committer_time < self._last_time:
            self.late += 1
        self._last_time = commit.committer_time

    def _judge(
        self, commit: objects.Commit, changes: Files, found: list[tuple[str, str | None, str]]
    ) -> None:
        if self.last is None:
            if not is_root(self._repo, commit.oid):
                found.append(("root", None, "The ledger does not begin as every ledger does."))
            return
        if commit.parents != (self.last,):
            words = f"The commit has {len(commit.parents)} parents, not just the one before."
            found.append(("parents", None, words))
        event = self._event(commit, found)
        expected = None if event is None else self._expected(event, found)
        if expected is None or event is None:
            return
        wanted, good, done = expected
        lifted = {
            path: now
            for path, now in changes.items()
            if path not in good and self._may_lift(path, now)
        }
        rest = {path: now for path, now in changes.items() if path not in lifted}
        if rest != {path: row_of(oid) for path, oid in wanted.items()}:
            words = (
                f"The tree is not what the event makes of the one before: {_named(rest, wanted)}."
            )
            found.append(("tree", event.task, words))
        elif all(kind == "repeated" for kind, _, _ in found):
            for path in lifted:
                self._settle(path, commit, is_same=False)
            self._take(commit, good, done)

    def _event(
        self, commit: objects.Commit, found: list[tuple[str, str | None, str]]
    ) -> Event | None:
        if len(commit.message) > MESSAGE_LIMIT:
            found.append(("message", None, "The message is too long."))
            return None
        try:
            event = message.decode(commit.message, commit.author_time)
        except GittasksError as error:
            newer = error.hint is not None and "newer" in error.hint
            words = f"{error.message} {error.hint}" if newer else error.message
            found.append(("newer" if newer else "message", None, words))
            return None
        if event.event_id in self._event_ids:
            found.append(("repeated", event.task, f"The event {event.event_id} is there twice."))
        self._event_ids.add(event.event_id)
        return event

    def _expected(
        self, event: Event, found: list[tuple[str, str | None, str]]
    ) -> tuple[dict[str, str | None], dict[str, str | None], effect.Effect] | None:
        """Returns what the event changes in the tree, what counts after it, and its effect."""
        try:
            objection = machine.objection(self.fold, event)
            if objection is not None:
                found.append(("illegal", event.task, f"The step is not legal: {objection}."))
                return None
            done = self._effect(history.with_body(event, self._reader))
        except _CANNOT_RUN as error:
            found.append(("effect", event.task, f"The event cannot be run again: {error}"))
            return None
        good = {
            path: None if data is None else objects.object_id(self._repo, "blob", data)
            for path, data in done.files.items()
        }
        wanted = {path: oid for path, oid in good.items() if self._row(path) != row_of(oid)}
        written = good[done.document] if wanted and done.document is not None else None
        if event.document != written:
            found.append(
                ("document", event.task, "The Document is not the blob that the event writes.")
            )
        return wanted, good, done

    def _row(self, path: str) -> Row:
        """Returns what the tree has at a path before the commit."""
        stray = self.strays.get(path)
        return row_of(self.fold.file(path)) if stray is None else stray.bad

    def _effect(self, event: Event) -> effect.Effect:
        if not event.is_about_a_task:
            oid = self.fold.file(PROJECT_FILE)
            return effect.of_project_event(event, None if oid is None else self._reader.blob(oid))
        assert event.task is not None
        task = self.fold.get(event.task)
        body = b"" if task is None else self.fold.body(task.id)
        strays = [stray.path for stray in self.fold.strays(event.task)]
        return effect.of_task_event(event, task, body, strays)

    def _may_lift(self, path: str, now: Row) -> bool:
        """Tells whether any event may do this to a path."""
        if not belongs(path):
            return now is None
        stray = self.strays.get(path)
        return stray is not None and now == stray.row and self.fold.is_loose(stray)

    def _take(
        self, commit: objects.Commit, good: Mapping[str, str | None], done: effect.Effect
    ) -> None:
        for path, oid in good.items():
            self.fold.set_file(path, oid)
            stray = self.strays.get(path)
            self._settle(path, commit, is_same=stray is not None and stray.bad == row_of(oid))
        if done.task is not None:
            self.fold.put(done.task)

    def _settle(self, path: str, commit: objects.Commit, *, is_same: bool) -> None:
        """Ends the stray at a path, if there is one."""
        stray = self.strays.pop(path, None)
        if stray is not None:
            self.settled.append(Settled(stray, commit.oid, is_same))
        for bad in self._left_by.pop(path, ()):
            self.repairs.setdefault(bad, {})[commit.oid] = None

    def _set_aside(
        self, commit: objects.Commit, changes: Files, found: list[tuple[str, str | None, str]]
    ) -> None:
        """Notes at which paths the tree does not count from this commit on."""
        reason = in_one_line(found[0][2])
        touched = self.touched.setdefault(commit.oid, set())
        for path, now in changes.items():
            place = parse_path(path)
            task = place[0] if place else None
            words = self._fault(path, now)
            if words is not None:
                found.append(("file", task, words))
            good = self.fold.file(path) if belongs(path) else None
            before = self.strays.pop(path, None)
            if now == row_of(good):
                self._left_by.pop(path, None)
                continue
            touched.add(path)
            self._left_by.setdefault(path, set()).add(commit.oid)
            self.strays[path] = (
                Stray(path, task, now, good, commit.oid, reason)
                if before is None
                else before._replace(bad=now, lifted=())
            )

    def _fault(self, path: str, now: Row) -> str | None:
        """Returns what is wrong with a file for itself."""
        if now is None:
            return None
        if now[0] != objects.FILE:
            return f"The file {path} is no plain file."
        if not belongs(path):
            return f"The file {path} does not belong in a ledger."
        if parse_path(path) is None:
            return None
        try:
            task, _ = parse(self._reader.blob(now[1]), path)
        except BadDocument as error:
            return error.message
        except ObjectMissing as error:
            return f"The document {path} is missing: {error}"
        if path_of(task) != path:
            return f"The document {path} stands in the wrong folder: it is {task.state}."
        return None

    def _read(self, path: str, oid: str) -> None:
        """Takes over a file as one that counts, if it can be read."""
        if parse_path(path) is None:
            self.fold.set_file(path, oid)
            return
        try:
            task, _ = parse(self._reader.blob(oid), path)
        except BadDocument:
            return
        if path_of(task) == path:
            self.fold.set_file(path, oid)
            self.fold.put(task)


def _named(changes: Files, wanted: Mapping[str, str | None]) -> str:
    return _some(sorted({*changes, *wanted}))


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def verify(ledger: View) -> Report:
    """Checks the whole ledger, from its first commit to its tip."""
    tip = ledger.tip
    checker = Checker(ledger.repo, ledger.reader)
    findings: list[Finding] = []
    count = 0
    try:
        for commit in oldest_first(ledger.repo, ledger.reader, tip):
            if isinstance(commit, str):
                raise ObjectMissing((), 128, f"the commit {commit} is missing")
            findings += checker.check(commit)
            count += 1
    except GitError as error:
        # Nothing can be said about what stands on something that is not there.
        findings.append(Finding("missing", tip, None, f"The history cannot be read: {error}"))
        return Report(tip, count, 0, tuple(findings), _notes(ledger, checker))
    origins.restore(ledger, tip, tuple(checker.strays.values()), checker.touched)
    left = checker.left_something()
    past = [finding for finding in findings if _is_past(checker, left, finding)]
    findings = [finding for finding in findings if not _is_past(checker, left, finding)]
    findings += _at_the_tip(ledger, checker, tip, findings)
    notes = (*(_outcome(checker, finding) for finding in past), *_notes(ledger, checker))
    return Report(tip, count, len(checker.fold.tasks), tuple(findings), notes)


def _is_past(checker: Checker, left: Collection[str], finding: Finding) -> bool:
    """Tells whether nothing is left in the tree of what a commit that does not count did."""
    return (
        finding.commit in checker.touched
        and finding.kind != "root"
        and finding.commit not in checker.unread
        and finding.commit not in left
    )


def _outcome(checker: Checker, finding: Finding) -> str:
    """Says what was found and what has become of it since."""
    by = [commit[:_SHOWN] for commit in checker.repairs.get(finding.commit, ())]
    if by:
        words = f"Repaired since, by {_some(by)}."
    elif checker.touched[finding.commit]:
        words = "Undone since."
    else:
        words = "It left nothing."
    return f"The commit {finding.commit[:_SHOWN]} is not valid: {finding.message} {words}"


def _at_the_tip(
    ledger: View, checker: Checker, tip: str, known: Iterable[Finding]
) -> Iterator[Finding]:
    said = {finding.message for finding in known}
    fold = checker.fold
    held = {stray.path: stray for stray in ledger.snapshot.strays()}
    for problem in ledger.problems():
        words = in_one_line(problem.message)
        if words not in said and problem.path not in held:
            yield Finding("file", tip, problem.task, words)
    for stray in held.values():
        is_loose = fold.is_loose(stray)
        hint = "" if is_loose else f" Repair it: git tasks edit {stray.task}."
        task = None if is_loose else stray.task
        yield Finding("quarantine", stray.commit, task, stray.words + hint)
    tasks = fold.tasks
    cached = {task.id: _unmarked(task) for task in ledger.snapshot.all_tasks()}
    # What a hand committed here counts until the next write, whatever it is.
    pending = {stray.task for path, stray in checker.strays.items() if path not in held}
    for task_id in sorted({*tasks, *cached} - pending):
        if tasks.get(task_id) != cached.get(task_id):
            words = f"The documents and the read cache disagree about {task_id}."
            yield Finding("cache", tip, task_id, words)


def _unmarked(task: Task) -> Task:
    if not task.attention:
        return task
    rows = tuple(row for row in task.attention if row.kind != quarantine.MARK)
    return task._replace(attention=rows)


def _notes(ledger: View, checker: Checker) -> tuple[str, ...]:
    notes = [
        f"A former tip is kept at {name} ({oid[:_SHOWN]})."
        for name, oid in refs.list(ledger.repo, PRE_REPLAY).items()
    ]
    if checker.late:
        notes.append(f"{checker.late} commits are dated before their parent, which makes git slow.")
    return tuple(notes)


def oldest_first(
    repo: Repository, reader: objects.Reader, tip: str, after: str | None = None
) -> Iterator[objects.Commit | str]:
    """Yields the commits of a chain, the id alone where a commit is missing.

    Where a hand has merged two chains it is the one through `after`, else the longest.
    """
    near = None if after is None else _near(reader, tip, after)
    if near is not None:
        yield from near
        return
    ids = _line(repo, tip, after)
    for at in range(0, len(ids), _CHUNK):
        part = ids[at : at + _CHUNK]
        for oid, found in zip(part, reader.many(part), strict=True):
            yield oid if found is None else objects.parse_commit(oid, found.data)


def _near(reader: objects.Reader, tip: str, after: str) -> list[objects.Commit] | None:
    """Returns the commits between two that are close to each other, without starting git."""
    found: list[objects.Commit] = []
    current = tip
    while current != after:
        one = reader.get(current) if len(found) < _NEAR else None
        if one is None or one.kind != "commit":
            return None
        found.append(objects.parse_commit(one.oid, one.data))
        if len(found[-1].parents) != 1:
            return None
        current = found[-1].parents[0]
    return found[::-1]


def _line(repo: Repository, tip: str, after: str | None) -> list[str]:
    revisions = (tip,) if after is None else (tip, f"^{after}")
    listed = repo.text("rev-list", "--topo-order", "--reverse", "--parents", *revisions, "--")
    parents: dict[str, list[str]] = {}
    length = {} if after is None else {after: 1 << 60}
    for line in listed.splitlines():
        oid, *above = line.split(" ")
        parents[oid] = above
        length[oid] = 1 + max((length.get(one, 0) for one in above), default=0)
    chain: list[str] = []
    current: str | None = tip
    while current in parents:
        chain.append(current)
        current = max(parents[current], key=lambda one: length.get(one, 0), default=None)
    return chain[::-1]


def is_root(repo: Repository, oid: str) -> bool:
    """Tells whether a commit is the one that every ledger begins with."""
    empty = objects.object_id(repo, "tree", b"")
    return oid == objects.object_id(repo, "commit", root_commit(empty))
