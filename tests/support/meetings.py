"""Lets two clones meet: what one has done alone is decided again on top of what the other has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gittasks.domain import machine
from gittasks.domain.config import Project
from gittasks.domain.decide import decide
from gittasks.domain.events import Event, change_from, data_of
from gittasks.domain.fields import violations
from gittasks.domain.frontmatter import parse, render
from gittasks.domain.replay import Common, replay
from gittasks.domain.replayed import Local, Replayed
from gittasks.domain.requests import Request, SpeakingRole
from gittasks.domain.task import Task
from gittasks.domain.task_graph import TaskGraph, evolve
from gittasks.ledger.message import encode
from tests.support.builders import hexadecimal
from tests.support.decisions import Story, facts

PROJECT = Project("main")


class Clone(Story):
    """A clone: what it has in common with others, and what only it has done since."""

    def __init__(self, *tasks: Task, name: str = "b", settings: Project = PROJECT) -> None:
        super().__init__(*tasks, host=f"host-{name}")
        self.name = name
        self.settings = settings
        self.texts: dict[str, bytes | None] = {}
        self.local: list[Local] = []
        self.renewed: dict[str | None, str] = {}
        self.unreadable: set[str] = set()
        self.quarantined: dict[str, str] = {}

    def says(
        self,
        request: Request,
        role: SpeakingRole | None = "manager",
        actor: str = "ada",
        claim: str | None = None,
    ) -> list[Event]:
        """Carries a request out and returns its events."""
        said = facts(
            role, actor, claim, now=self.now, host=self.host, past=self.past,
            rejection_limit=self.settings.rejection_limit,
            check_failure_limit=self.settings.check_failure_limit,
        )  # fmt: skip
        return self.has(*decide(self.graph, request, said))

    def has(self, *events: Event) -> list[Event]:
        """Takes events over as its own; each has to be legal."""
        made = []
        for event in events:
            number = len(self.past)
            named = event._replace(
                event_id=event.event_id or hexadecimal(f"{self.name} {number}"),
                at=event.at or self.now,
            )
            self.local.append(self.seen(named))
            self.graph = stepped(self.graph, named)
            self.past.append(named)
            made.append(named)
        self.now += 60
        return made

    def seen(self, event: Event, message: str | None = None) -> Local:
        """Returns an event as this clone looks back at it."""
        text = encode(event).decode() if message is None else message
        if not event.is_about_a_task:
            path = getattr(event.change, "path", None)
            return Local(event, text, settings=self.settings, text=self.texts.get(path or ""))
        task = self.graph.get(event.task or "")
        return Local(event, text, task, b"" if task is None else self.graph.body(task.id))

    def claims(self, number: int = 1, actor: str = "bob") -> str:
        """Claims a task as the owner of its state, under a claim that is of this clone only."""
        self._claims += sum(map(ord, self.name))
        return super().claims(number, actor)

    def twin(self, name: str = "a") -> Clone:
        """Returns another clone that has the same and has done nothing alone."""
        other = Clone(name=name, settings=self.settings)
        other.graph, other.past, other.texts = self.graph, list(self.past), dict(self.texts)
        other.now = self.now
        return other

    def common(self) -> Common:
        """Returns all that this clone has as what all others agree on."""

        def history(task: str) -> Iterator[Event]:
            return (event for event in reversed(self.past) if event.task == task)

        def owner(branch: str) -> str | None:
            return next((t.uid for t in self.graph.tasks.values() if t.branch == branch), None)

        return Common(
            self.graph, self.settings, self.texts.get, history, branches=owner,
            is_unreadable=self.unreadable.__contains__,
            renewed=lambda task: self.renewed.get(task.claim), quarantined=self.quarantined.get,
        )  # fmt: skip


class Meeting(NamedTuple):
    """What a replay has made: what it says, and the clone that it leaves behind."""

    replayed: Replayed
    clone: Clone

    @property
    def events(self) -> list[Event]:
        """Returns what was written, in order."""
        return [step.event for step in self.replayed.steps]

    @property
    def told(self) -> list[tuple[str, str | None]]:
        """Returns the kinds of what was written, and which task each is about."""
        return [(event.kind, event.task) for event in self.events]

    def task(self, number: int = 1) -> Task:
        """Returns a task as it is now."""
        return self.clone.task(number)

    def rows(self, number: int = 1) -> list[str]:
        """Returns what the manager finds in the inbox about a task."""
        return [row.text for row in self.task(number).attention]


def stepped(graph: TaskGraph, event: Event) -> TaskGraph:
    """Returns the graph after an event, which has to be legal and to give a good document."""
    objection = machine.objection(graph, event)
    assert objection is None, f"{event.kind} of {event.task}: {objection}"
    if not event.is_about_a_task:
        return graph
    assert event.task is not None
    before = graph.get(event.task)
    task, body = evolve(before, graph.body(event.task) if before else b"", event)
    assert violations(task, len(body)) == []
    assert parse(render(task, body)) == (task, body)
    return graph.with_task(task, body)


def meets(theirs: Clone, ours: Clone) -> Meeting:
    """Replays what only our clone has on top of what the other one has, and checks the rules."""
    replayed = replay(theirs.common(), ours.local)
    after = applied(theirs, replayed, ours.name)
    check_ids(theirs.past, ours.local, replayed)
    again = replay(theirs.common(), after.local)
    assert [step.event for step in again.steps] == [step.event for step in replayed.steps]
    assert (again.renamed, again.lost, again.rejected) == ((), (), ())
    return Meeting(replayed, after)


def applied(theirs: Clone, replayed: Replayed, name: str = "b") -> Clone:
    """Returns the clone that has what a replay says on top of what all others have."""
    after = theirs.twin(name)
    for event in (step.event for step in replayed.steps):
        plain = event._replace(change=change_from(event.kind, data_of(event.change)))
        assert plain == event
        after.has(event)
        if not event.is_about_a_task:
            _configure(after, event)
    return after


def _configure(clone: Clone, event: Event) -> None:
    change = event.change
    path = getattr(change, "path", None)
    if path is not None:
        clone.texts[path] = event.body
    elif event.kind == "configure":
        fields: Mapping[str, object] = dict(change.set)  # type: ignore[union-attr]
        defaults = Project._field_defaults
        unset = {name: defaults[name] for name in change.unset}  # type: ignore[union-attr]
        clone.settings = clone.settings._replace(**{**fields, **unset})


def check_ids(past: Iterable[Event], local: Sequence[Local], replayed: Replayed) -> None:
    """Checks that no event is there twice, and that each of ours is there once."""
    made = [step.event.event_id for step in replayed.steps]
    assert len(set(made)) == len(made)
    assert not set(made) & {event.event_id for event in past}
    done = [step.source for step in replayed.steps if step.source is not None]
    assert sorted(done) == list(range(len(local)))
    for step in replayed.steps:
        if step.source is not None:
            assert step.event.event_id == local[step.source].event.event_id
