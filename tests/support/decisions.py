"""Builds what a decision needs, and tells stories: one request after the other on one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gittasks.domain import machine
from gittasks.domain.decide import decide
from gittasks.domain.events import Event
from gittasks.domain.machine import STAGE
from gittasks.domain.requests import (
    Claim,
    Create,
    Facts,
    GuardReport,
    Hold,
    Landing,
    RecordCheck,
    Request,
    Snapshot,
    Speaker,
    SpeakingRole,
    Submit,
)
from gittasks.domain.task import Draft, State, Task
from gittasks.domain.task_graph import Overlay, TaskGraph, evolve, gap
from gittasks.domain.times import timestamp
from tests.support import builders
from tests.support.builders import NOW, hexadecimal

HOST = "host-a"
BASE = "a" * 40
TIP = "b" * 40
LATER_TIP = "c" * 40
LANDED = "d" * 40
BODY = b"Do it.\n"
LEASE = 3600


def branch_of(number: int) -> str:
    """Returns the branch that the tests give to a task."""
    return f"task/{number:06d}"


def claim_of(number: int) -> str:
    """Returns the claim id that the tests give to a task's holder."""
    return hexadecimal(f"claim {number}")


def task_at(
    state: State,
    number: int = 1,
    *,
    held_by: str | None = None,
    expires: int = LEASE,
    **fields: Any,
) -> Task:
    """Returns a task as it stands when it has come to a state, claimed if somebody holds it."""
    base: dict[str, Any] = {}
    if state not in ("NEW", "BLOCKED"):
        base |= {"branch": branch_of(number), "base": BASE, "dispatched": BASE}
    if state in ("CHECK", "WORK_REVIEW", "MANAGER_REVIEW"):
        base |= {"submitted_tip": TIP, "dispatched": TIP}
    if state in ("WORK_REVIEW", "MANAGER_REVIEW"):
        base["checked_tip"] = TIP
    if state in machine.DRAFTED:
        heading = "## Design" if state == "DESIGN_REVIEW" else "## Todos"
        base["draft"] = Draft(heading, len(BODY))
    if held_by is not None:
        base |= {
            "claimed_by": held_by,
            "claim": claim_of(number),
            "claimed_at": timestamp(NOW),
            "lease_expires": timestamp(NOW + expires),
        }
    return builders.a_task(number, state=state, **{**base, **fields})


def body_of(task: Task) -> bytes:
    """Returns the body that goes with a task of `task_at`."""
    if task.draft is None:
        return BODY
    return BODY + gap(BODY) + section(task.draft.section)


def section(heading: str | None, text: str = "As said.") -> bytes:
    """Returns a section as an author writes it."""
    return f"{heading}\n\n{text}\n".encode()


def a_graph(*tasks: Task, bodies: dict[str, bytes] | None = None) -> TaskGraph:
    """Returns the graph of these tasks."""
    texts = {task.id: body_of(task) for task in tasks} | (bodies or {})
    return TaskGraph({task.id: task for task in tasks}, texts)


def facts(
    role: SpeakingRole | None = "manager",
    actor: str = "ada",
    claim: str | None = None,
    *,
    now: int = NOW,
    host: str = HOST,
    past: Sequence[Event] = (),
    **limits: Any,
) -> Facts:
    """Returns facts about who speaks and when; `past` is the history, oldest first."""

    def history(task: str) -> list[Event]:
        return [event for event in reversed(past) if event.task == task]

    return Facts(now, host, Speaker(actor, role, claim), history=history, **limits)


def clean(tip: str = TIP, branch: str = branch_of(1), **fields: Any) -> GuardReport:
    """Returns the report on a branch with own commits and a tree that nobody touched."""
    there = Snapshot(f"refs/heads/{branch}", tip, tip)
    base: dict[str, Any] = {"now": there, "dispatched": there, "commits": 1, "differs": True}
    return GuardReport(tip, **{**base, **fields})


def finish(task: Task, tip: str | None = None, **fields: Any) -> Submit:
    """Returns the submit of a claimed task by a holder who did all that the stage asks for."""
    stage = STAGE[task.state]
    worked = LATER_TIP if task.submitted_tip == TIP else TIP
    at = tip or (worked if stage.guard == "committed" else task.dispatched or BASE)
    base: dict[str, Any] = {"guard": clean(at, task.branch or branch_of(int(task.id)))}
    if stage.heading is not None:
        base["section"] = section(stage.heading)
    return Submit(task.id, **{**base, **fields})


def after(graph: TaskGraph, events: Sequence[Event]) -> TaskGraph:
    """Returns the graph after events; each has to be legal on the graph before it."""
    for event in events:
        objection = machine.objection(graph, event)
        assert objection is None, f"{event.kind} of {event.task}: {objection}"
        assert event.task is not None
        task = graph.get(event.task)
        now, body = evolve(task, graph.body(event.task) if task else b"", event)
        graph = graph.with_task(now, body)
    return graph


def decided(graph: TaskGraph, request: Request, said: Facts) -> tuple[Task, bytes]:
    """Returns the first task that a decision touches as it is afterwards, and its body."""
    events = decide(graph, request, said)
    assert events
    assert events[0].task is not None
    later = after(graph, events)
    return later.tasks[events[0].task], later.bodies[events[0].task]


class Story:
    """A graph with a past and a clock, on which one request follows the other."""

    def __init__(self, *tasks: Task, host: str = HOST, **limits: int) -> None:
        self.graph = a_graph(*tasks)
        self.past: list[Event] = []
        self.now = NOW
        self.host = host
        self.limits = limits
        self._claims = 0

    def says(
        self,
        request: Request,
        role: SpeakingRole | None = "manager",
        actor: str = "ada",
        claim: str | None = None,
    ) -> list[Event]:
        """Carries a request out and returns its events."""
        said = facts(
            role, actor, claim, now=self.now, host=self.host, past=self.past, **self.limits
        )
        events = decide(self.graph, request, said)
        self.graph = after(self.graph, events)
        self.past += events
        self.now += 60
        return events

    def task(self, number: int = 1) -> Task:
        """Returns a task as it is now."""
        return self.graph.tasks[f"{number:06d}"]

    def body(self, number: int = 1) -> bytes:
        """Returns a task's body as it is now."""
        return self.graph.bodies[f"{number:06d}"]

    def creates(self, number: int = 1, body: bytes = BODY, **fields: Any) -> Task:
        """Writes a task down as the manager."""
        self.says(Create(f"Task {number}", hexadecimal(f"uid {number}"), body, **fields))
        return self.task(number)

    def claims(self, number: int = 1, actor: str = "bob") -> str:
        """Claims a task as the owner of its state and returns the claim."""
        task = self.task(number)
        self._claims += 1
        claim = hexadecimal(f"story {self._claims}")
        tip = task.submitted_tip or BASE
        request = Claim(task.id, claim, self.now + LEASE, branch_of(number), BASE, tip)
        self.says(request, STAGE[task.state].role, actor)
        return claim

    def finishes(self, number: int = 1, actor: str = "bob", **fields: Any) -> list[Event]:
        """Claims and submits a task in one go."""
        claim = self.claims(number, actor)
        task = self.task(number)
        return self.says(finish(task, **fields), STAGE[task.state].role, actor, claim)

    def is_checked(self, number: int = 1, *findings: str) -> list[Event]:
        """Records a check of the submitted tip, which fails with findings."""
        task = self.task(number)
        assert task.submitted_tip is not None
        return self.says(
            RecordCheck(task.id, task.submitted_tip, findings=findings), "checker", "runner"
        )

    def lands(self, number: int = 1) -> list[Event]:
        """Lands a task that waits for it."""
        task = self.task(number)
        assert task.submitted_tip is not None
        return self.says(Submit(task.id, landing=Landing(task.submitted_tip, LANDED, "merge")))

    def goes_to(self, state: State, number: int = 1) -> None:
        """Takes a task the straight way to a state; NEW tasks enter at DESIGN."""
        while (task := self.task(number)).state != state:
            if task.state == "NEW":
                self.says(Submit(task.id))
            elif task.state == "CHECK":
                self.is_checked(number)
            elif task.state == "MANAGER_REVIEW":
                self.lands(number)
            else:
                self.finishes(number)

    def holds(self, number: int = 1, reason: str = "wait") -> list[Event]:
        """Holds a task as the manager."""
        return self.says(Hold(f"{number:06d}", reason))


def replayed(events: Sequence[Event]) -> Overlay:
    """Returns the graph that events make, from the first one on."""
    graph = Overlay(TaskGraph())
    for event in events:
        assert event.task is not None
        task = graph.get(event.task)
        graph.put(*evolve(task, graph.body(event.task) if task else b"", event))
    return graph
