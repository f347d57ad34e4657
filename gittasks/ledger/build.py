"""Turns events into commits in memory: documents, trees, messages, each standing on the last."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.domain import machine
from gittasks.domain.errors import GittasksError
from gittasks.domain.events import change_from, data_of
from gittasks.domain.task_graph import Overlay
from gittasks.ledger import effect, message
from gittasks.ledger.layout import PROJECT_FILE
from gittasks.plumbing import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph
    from gittasks.ledger.quarantine import Stray
    from gittasks.ledger.view import View
    from gittasks.plumbing.repository import Repository

__all__ = ["Builder", "author_of"]


class Builder:
    """Commits in the making on top of one commit; nothing is written unless they are signed."""

    def __init__(  # noqa: PLR0913
        self,
        repo: Repository,
        reader: objects.Reader,
        above: objects.Commit,
        graph: Overlay | None,
        settings: bytes | None,
        *,
        host: str,
        now: int,
        committer: tuple[str, str],
        sign: bool = False,
    ) -> None:
        """Starts on a commit; `graph` and `settings` are the tasks and `project.yaml` there."""
        self._repo = repo
        self._reader = reader
        self.graph = graph
        self._settings = settings
        self._host = host
        self._now = now
        self._committer = committer
        self._sign = sign
        self._parent = above.oid
        self._parent_time = above.committer_time
        self._written = 0
        self._blobs: dict[str, str] = {}
        self._rows: dict[str, objects.Rows] = {}
        self._has_lifted = False
        self.tree = above.tree
        self.events: list[Event] = []
        self.commits: list[str] = []
        self.drafts: dict[str, objects.Draft] = {}
        self.files: dict[str, str | None] = {}
        self.tasks: dict[str, Task] = {}

    @classmethod
    def on(
        cls, view: View, above: objects.Commit, graph: Graph | None, settings: bytes | None
    ) -> Builder:
        """Returns one for whoever has this view of the ledger."""
        return cls(
            view.repo,
            view.reader,
            above,
            None if graph is None else Overlay(graph),
            settings,
            host=view.host,
            now=view.clock(),
            committer=view.identity(),
            sign=view.signs,
        )

    def add(self, draft: objects.Draft) -> None:
        """Adds an object that has to be written too."""
        self.drafts[draft.oid] = draft

    def append(self, event: Event, replayed_from: str | None = None) -> None:
        """Adds the commit of one event; the event is kept as a reader will have it."""
        event = event._replace(
            event_id=event.event_id or os.urandom(16).hex(),
            host=event.host or self._host,
            # What the message does not keep must not have an effect either.
            change=change_from(event.kind, data_of(event.change)),
        )
        done = self._task(event) if event.is_about_a_task else self._project(event)
        if done.task is not None:
            event = event._replace(revision=event.revision or self._revision(event.task))
        self._lift(done)
        tree, document = self._grafted(done)
        event = event._replace(document=document)
        text = message.encode(event, replayed_from=replayed_from)
        commit = self._commit(event, tree, text)
        if done.task is not None and self.graph is not None:
            self.graph.put(done.task, done.body)
            if document is not None:
                self._blobs[done.task.id] = document
                self.tasks[document] = done.task
        self.tree = tree
        self.events.append(event)
        self.commits.append(commit)
        self._parent = commit

    def _project(self, event: Event) -> effect.Effect:
        done = effect.of_project_event(event, self._settings)
        self._settings = done.files.get(PROJECT_FILE, self._settings)
        return done

    def _task(self, event: Event) -> effect.Effect:
        assert self.graph is not None
        assert event.task is not None
        objection = machine.objection(self.graph, event)
        if objection is not None:
            raise RuntimeError(
                f"An event {event.kind} of task {event.task} was decided that is not legal:"
                f" {objection}."
            )
        task = self.graph.get(event.task)
        body = b"" if task is None else self.graph.body(event.task)
        return effect.of_task_event(event, task, body, self._strays(event.task))

    def _strays(self, task: str) -> list[str]:
        assert self.graph is not None
        # Only the graph of a ledger knows what its tree has besides.
        known: Callable[[str], Sequence[Stray]] | None = getattr(self.graph.below, "strays", None)
        return [] if known is None else [stray.path for stray in known(task)]

    def _lift(self, done: effect.Effect) -> None:
        """Puts right with the first event what no task's repair would: it is in nobody's hands."""
        if self._has_lifted:
            return
        self._has_lifted = True
        below = None if self.graph is None else self.graph.below
        known: Callable[[], Sequence[Stray]] | None = getattr(below, "loose_strays", None)
        loose = [
            stray
            for stray in (() if known is None else known())
            if not stray.is_newer and stray.path not in done.files and objects.is_path(stray.path)
        ]
        # A folder may stand where a file has to come back.
        for part in (
            [stray for stray in loose if stray.good is None],
            [stray for stray in loose if stray.good is not None],
        ):
            if part:
                rows = {stray.path: stray.row for stray in part}
                self.tree, _ = objects.graft(
                    self._reader, self._repo, self.tree, rows, self.drafts, self._rows
                )
                self.files.update({stray.path: stray.good for stray in part})

    def _revision(self, task: str | None) -> str | None:
        assert self.graph is not None
        assert task is not None
        return self._blobs.get(task) or self.graph.below.revision(task)

    def _grafted(self, done: effect.Effect) -> tuple[str, str | None]:
        """Returns the tree with the files, and the blob of the document if that is new."""
        blobs: dict[str, str | None] = {}
        new: list[objects.Draft] = []
        for path, data in done.files.items():
            if data is None:
                blobs[path] = None
                continue
            new.append(objects.draft(self._repo, "blob", data))
            blobs[path] = new[-1].oid
        rows = {path: None if oid is None else (objects.FILE, oid) for path, oid in blobs.items()}
        tree, _ = objects.graft(self._reader, self._repo, self.tree, rows, self.drafts, self._rows)
        if tree == self.tree:
            if done.task is None or self._strays(done.task.id):
                # From now on what the tree has there counts.
                self.files.update(blobs)
            return tree, None
        for one in new:
            self.add(one)
        self.files.update(blobs)
        return tree, None if done.document is None else blobs[done.document]

    def _commit(self, event: Event, tree: str, text: bytes) -> str:
        when = max(self._now, self._parent_time)
        self._parent_time = when
        author = author_of(event, self._host)
        committer = objects.Signature(*self._committer, when)
        if self._sign:
            return self._signed(tree, author, committer, text)
        data = objects.commit_bytes(tree, (self._parent,), author, committer, text)
        draft = objects.draft(self._repo, "commit", data)
        self.add(draft)
        return draft.oid

    def _signed(
        self, tree: str, author: objects.Signature, committer: objects.Signature, text: bytes
    ) -> str:
        """Lets git sign; only it knows how, and it wants the objects to be there."""
        from gittasks.plumbing.errors import GitError

        drafts = list(self.drafts.values())
        objects.write(self._repo, drafts[self._written :])
        self._written = len(drafts)
        people = {}
        for role, who in (("AUTHOR", author), ("COMMITTER", committer)):
            people[f"GIT_{role}_NAME"] = who.name or "unknown"
            people[f"GIT_{role}_EMAIL"] = who.mail or "unknown"
            people[f"GIT_{role}_DATE"] = f"@{who.time} {who.zone}"
        try:
            oid = self._repo.text(
                "commit-tree", "-S", "-p", self._parent, "-F", "-", tree, stdin=text, env=people
            )
        except GitError as error:
            raise GittasksError(
                f"The event could not be signed, so nothing was changed: {error}",
                "Repair the key, or run `git config gittasks.sign false`.",
            ) from None
        found = self._reader.get(oid)
        assert found is not None
        self.add(objects.Draft(oid, "commit", found.data))
        return oid


def author_of(event: Event, host: str) -> objects.Signature:
    """Returns the author of an event's commit: the actor, at an address that cannot exist."""
    name = "".join(
        c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in event.actor
    ).strip("-.")
    return objects.Signature(
        message.plain(event.actor), f"{name or 'unknown'}@{host}.invalid", event.at
    )
