"""Looks at every commit of the ledger: is it one event, legal where it stands, and nothing more?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain import machine
from gittasks.domain.errors import GittasksError
from gittasks.domain.fields import BadDocument
from gittasks.domain.frontmatter import parse, split
from gittasks.ledger import effect, history, message
from gittasks.ledger.layout import (
    MESSAGE_LIMIT,
    PRE_REPLAY,
    PROJECT_FILE,
    is_shared_text,
    parse_path,
    path_of,
    root_commit,
)
from gittasks.ledger.trees import changed_paths
from gittasks.plumbing import objects, refs
from gittasks.plumbing.errors import GitError, ObjectMissing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.task import Task
    from gittasks.ledger.view import View
    from gittasks.plumbing.repository import Repository

__all__ = ["Checker", "Finding", "Fold", "Report", "oldest_first", "verify"]

_CHUNK = 200
_SHOWN = 12

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


class Fold:
    """The task graph in the making, with its documents by path; changes in place."""

    def __init__(self, reader: objects.Reader) -> None:
        """Starts without tasks; bodies are read when asked for."""
        self._reader = reader
        self.files: dict[str, str] = {}
        self.tasks: dict[str, Task] = {}
        self._uids: dict[str, str] = {}
        self._dependents: dict[str, set[str]] = {}
        self._children: dict[str | None, set[str]] = {}
        self._heirs: dict[str, set[str]] = {}
        self._last = 0

    def put(self, task: Task) -> None:
        """Adds or replaces a task."""
        self.drop(task.id)
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

    def get(self, task: str) -> Task | None:
        """Returns the task with this six-digit id."""
        return self.tasks.get(task)

    def body(self, task: str) -> bytes:
        """Returns the body of a task that exists."""
        return split(self._reader.blob(self.files[path_of(self.tasks[task])]))[1]

    def revision(self, task: str) -> str | None:
        """Returns the blob id of the task's document."""
        found = self.tasks.get(task)
        return None if found is None else self.files.get(path_of(found))

    def with_uid(self, uid: str) -> str | None:
        """Returns the id of the task with this uid."""
        return self._uids.get(uid)

    def dependents(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks, open or closed, that name the task in `depends_on`."""
        return sorted(self._dependents.get(task, ()))

    def children(self, task: str | None) -> Sequence[str]:
        """Returns the ids of the direct children; of None, the tasks without a parent."""
        return sorted(self._children.get(task, ()))

    def superseders(self, task: str) -> Sequence[str]:
        """Returns the ids of tasks that name the task in `supersedes`."""
        return sorted(self._heirs.get(task, ()))

    def last_id(self) -> int:
        """Returns the highest number in use, 0 when there is no task."""
        return self._last


class Checker:
    """Goes through commits, oldest first, each on top of the one before."""

    def __init__(self, repo: Repository, reader: objects.Reader) -> None:
        """Starts before the first commit."""
        self._repo = repo
        self._reader = reader
        self.fold = Fold(reader)
        self.tree: str | None = None
        self.last: str | None = None
        self._last_time = 0
        self._event_ids: set[str] = set()
        self.late: int = 0
        """How many commits are dated before their parent."""

    def start_at(self, commit: objects.Commit) -> None:
        """Begins with the documents at a commit that is known to be well."""
        self._apply(dict(changed_paths(self._reader, None, commit.tree)), None)
        self._moved_to(commit)

    def check(self, commit: objects.Commit) -> list[Finding]:
        """Returns what is wrong with the next commit, and takes over the tree it has."""
        found: list[tuple[str, str | None, str]] = []
        try:
            self._check(commit, found)
        except ObjectMissing as error:
            found.append(("missing", None, f"An object is missing: {error}"))
        self._moved_to(commit)
        return [Finding(kind, commit.oid, task, words) for kind, task, words in found]

    def _moved_to(self, commit: objects.Commit) -> None:
        self.tree = commit.tree
        self.last = commit.oid
        if commit.committer_time < self._last_time:
            self.late += 1
        self._last_time = commit.committer_time

    def _check(self, commit: objects.Commit, found: list[tuple[str, str | None, str]]) -> None:
        changes: Files = dict(changed_paths(self._reader, self.tree, commit.tree))
        if self.last is None:
            if not _is_root(self._repo, commit):
                found.append(("root", None, "The ledger does not begin as every ledger does."))
            self._apply(changes, found)
            return
        if commit.parents != (self.last,):
            words = f"It has {len(commit.parents)} parents, not just the commit before."
            found.append(("parents", None, words))
        event = self._event(commit, found)
        expected = None if event is None else self._expected(event, found)
        if expected is not None and event is not None:
            actual = {path: None if now is None else now[1] for path, now in changes.items()}
            is_plain = all(now is None or now[0] == objects.FILE for now in changes.values())
            if is_plain and actual == expected[0]:
                self._take(expected[1], expected[0])
                return
            extra = sorted({*actual, *expected[0]})
            words = f"Its tree is not what the event makes of the one before: {', '.join(extra)}."
            found.append(("tree", event.task, words))
        self._apply(changes, found)

    def _event(
        self, commit: objects.Commit, found: list[tuple[str, str | None, str]]
    ) -> Event | None:
        if len(commit.message) > MESSAGE_LIMIT:
            found.append(("message", None, "Its message is too long."))
            return None
        try:
            event = message.decode(commit.message, commit.author_time)
        except GittasksError as error:
            found.append(("message", None, error.message))
            return None
        if event.event_id in self._event_ids:
            found.append(("repeated", event.task, f"The event {event.event_id} is there twice."))
        self._event_ids.add(event.event_id)
        return event

    def _expected(
        self, event: Event, found: list[tuple[str, str | None, str]]
    ) -> tuple[dict[str, str | None], effect.Effect] | None:
        """Returns the blobs of the paths that the event changes, and the effect."""
        try:
            objection = machine.objection(self.fold, event)
            if objection is not None:
                found.append(("illegal", event.task, f"The step is not legal: {objection}."))
                return None
            done = self._effect(history.with_body(event, self._reader))
        except _CANNOT_RUN as error:
            found.append(("effect", event.task, f"The event cannot be run again: {error}"))
            return None
        blobs: dict[str, str | None] = {}
        for path, data in done.files.items():
            oid = None if data is None else objects.object_id(self._repo, "blob", data)
            if self.fold.files.get(path) != oid:
                blobs[path] = oid
        written = None if done.document is None else blobs.get(done.document)
        if event.document != written:
            found.append(("document", event.task, "Its Document is not the blob that it writes."))
        return blobs, done

    def _effect(self, event: Event) -> effect.Effect:
        if not event.is_about_a_task:
            oid = self.fold.files.get(PROJECT_FILE)
            return effect.of_project_event(event, None if oid is None else self._reader.blob(oid))
        assert event.task is not None
        task = self.fold.get(event.task)
        return effect.of_task_event(event, task, b"" if task is None else self.fold.body(task.id))

    def _take(self, done: effect.Effect, blobs: Mapping[str, str | None]) -> None:
        for path, oid in blobs.items():
            if oid is None:
                self.fold.files.pop(path, None)
            else:
                self.fold.files[path] = oid
        if done.task is not None:
            self.fold.put(done.task)

    def _apply(self, changes: Files, found: list[tuple[str, str | None, str]] | None) -> None:
        """Takes over what the tree has, whatever it should have."""
        for path, now in changes.items():
            place = parse_path(path)
            words = None
            if now is None:
                self.fold.files.pop(path, None)
                task = self.fold.get(place[0]) if place else None
                if task is not None and path_of(task) == path:
                    self.fold.drop(task.id)
                continue
            if now[0] != objects.FILE:
                words = f"The file {path} is no plain file."
            elif place is None and path != PROJECT_FILE and not is_shared_text(path):
                words = f"The file {path} does not belong in a ledger."
            elif place is None:
                self.fold.files[path] = now[1]
            else:
                words = self._read(path, now[1])
            if words is not None and found is not None:
                found.append(("file", place[0] if place else None, words))

    def _read(self, path: str, oid: str) -> str | None:
        try:
            task, _ = parse(self._reader.blob(oid), path)
        except BadDocument as error:
            return error.message
        if path_of(task) != path:
            return f"The document {path} stands in the wrong folder: it is {task.state}."
        self.fold.files[path] = oid
        self.fold.put(task)
        return None


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
    findings += _at_the_tip(ledger, checker, tip, findings)
    return Report(tip, count, len(checker.fold.tasks), tuple(findings), _notes(ledger, checker))


def _at_the_tip(
    ledger: View, checker: Checker, tip: str, known: Iterable[Finding]
) -> Iterator[Finding]:
    said = {finding.message for finding in known}
    for problem in ledger.problems():
        if problem.message not in said:
            yield Finding("file", tip, problem.task, problem.message)
    fold = checker.fold.tasks
    cached = {task.id: task for task in ledger.snapshot.all_tasks()}
    for task_id in sorted({*fold, *cached}):
        if fold.get(task_id) != cached.get(task_id):
            words = f"The documents and the read cache disagree about {task_id}."
            yield Finding("cache", tip, task_id, words)


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
    """Yields the commits of a chain, the id alone where a commit is missing."""
    revisions = (tip,) if after is None else (tip, f"^{after}")
    ids = repo.text("rev-list", "--first-parent", "--reverse", *revisions, "--").split()
    for at in range(0, len(ids), _CHUNK):
        part = ids[at : at + _CHUNK]
        for oid, found in zip(part, reader.many(part), strict=True):
            yield oid if found is None else objects.parse_commit(oid, found.data)


def _is_root(repo: Repository, commit: objects.Commit) -> bool:
    empty = objects.object_id(repo, "tree", b"")
    return commit.oid == objects.object_id(repo, "commit", root_commit(empty))
