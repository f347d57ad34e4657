"""A graph on which anybody asks for anything: random histories, each step of them legal."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from gittasks.domain import machine
from gittasks.domain.decide import decide
from gittasks.domain.errors import GittasksError
from gittasks.domain.events import Event, brings_body
from gittasks.domain.fields import violations
from gittasks.domain.frontmatter import parse, render
from gittasks.domain.machine import STAGE
from gittasks.domain.requests import (
    Abort,
    Claim,
    Create,
    Edit,
    Facts,
    Feedback,
    Hold,
    Landing,
    Note,
    RecordCheck,
    Release,
    Reorder,
    Reparent,
    Request,
    Resume,
    Speaker,
    SpeakingRole,
    Submit,
)
from gittasks.domain.task import ROLES, Cost, State, Task
from gittasks.domain.task_graph import TaskGraph, evolve
from tests.support.builders import NOW, hexadecimal
from tests.support.decisions import (
    BASE,
    HOST,
    LANDED,
    branch_of,
    clean,
    section,
    task_at,
)

T = TypeVar("T")
TEXTS = ("ok", "Say it.", "two\nlines", " ", "", "\x1b[2J", "\u202eolleh", "\udcff", "x" * 501)
ACTORS = ("bob", "eve", "a\nb", "\udcff\x1b")
BODIES = (b"", b"Do it.", b"Do it.\n", b"\n\n---\n\xff\r\n\n\n", b"## Design\n\nOld.\n")
TASKS = 5
STEPS = 300


class Dice:
    """Random choices."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self, below: int) -> int:
        """Returns a number."""
        return self.random.randrange(below)

    def one(self, choices: Sequence[T]) -> T:
        """Returns one of the choices."""
        return choices[self.random.randrange(len(choices))]

    def likely(self) -> bool:
        """Answers yes three times out of four."""
        return self.random.random() < 0.75


class World:
    """A graph on which anybody asks for anything."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.graph = TaskGraph()
        self.past: list[Event] = []
        self.now = NOW
        self.count = 0

    def fresh(self, digits: int = 32) -> str:
        """Returns digits that were not there before."""
        self.count += 1
        return hexadecimal(f"world {self.count}", digits)

    def some(self) -> str:
        """Returns the id of a task, now and then of one that does not exist."""
        ids = [*self.graph.tasks, "000099"]
        return ids[-1] if self.dice.number(40) == 1 else self.dice.one(ids[:-1] or ids)

    def speaker(self, task: Task | None, verb: str) -> Speaker:
        """Returns who speaks, most likely who may."""
        if task is not None and self.dice.likely():
            claims = {e.claim for e in self.past if e.task == task.id and e.claim}
            claim = task.claim if self.dice.likely() else self.dice.one([None, *sorted(claims)])
            role = STAGE[task.state].role if verb in AGENTS else "manager"
            if role != "manager" or self.dice.likely():
                return Speaker(task.claimed_by or self.dice.one(ACTORS), role or "manager", claim)
        roles: tuple[SpeakingRole | None, ...] = (*ROLES, "tool", None)
        role_ = "manager" if self.dice.likely() else self.dice.one(roles)
        return Speaker(self.dice.one(ACTORS), role_, None)

    def asks(self) -> None:
        """Asks for one thing, checks the answer, and lets it happen."""
        self.now += self.dice.one((1, 60, 4000))
        verb = self.verb()
        task = None if verb == "create" else self.graph.get(self.some())
        if task is not None and self.dice.number(5) < 3:
            request, speaker = _next_step(self, task)
        else:
            request = VERBS[verb](self, task or task_at("NEW", 99))
            speaker = self.speaker(task, verb)
        facts = Facts(self.now, HOST, speaker, 2, 3, self.history)
        before = dict(self.graph.tasks), dict(self.graph.bodies)
        try:
            events = decide(self.graph, request, facts)
        except GittasksError:
            events = []
        else:
            assert decide(self.graph, request, facts) == events
        assert (self.graph.tasks, self.graph.bodies) == before
        self.carry_out(events)

    def verb(self) -> str:
        """Returns what to ask for; first of all that there is a task."""
        alive = sum(task.is_open for task in self.graph.tasks.values())
        if not self.graph.tasks or (alive < TASKS and self.dice.number(4) == 0):
            return "create"
        return self.dice.one(list(VERBS))

    def history(self, task: str) -> Iterable[Event]:
        """Returns the events of a task, newest first."""
        return (event for event in reversed(self.past) if event.task == task)

    def carry_out(self, events: Sequence[Event]) -> None:
        """Takes events one by one: each is legal before it and gives a document that verifies."""
        for event in events:
            assert machine.objection(self.graph, event) is None
            assert event.task is not None
            former = self.graph.get(event.task)
            body = self.graph.body(event.task) if former else b""
            task, after = evolve(former, body, event)
            assert violations(task, len(after)) == []
            assert parse(render(task, after)) == (task, after)
            assert brings_body(event.change, event.source) or event.body is None
            self.graph = self.graph.with_task(task, after)
        self.past += events


# What is asked for.


def _create(world: World, _task: Task) -> Request:
    dice = world.dice
    needs = tuple(world.some() for _ in range(dice.number(3))) if world.graph.tasks else ()
    optional: dict[str, Any] = {}
    if world.graph.tasks and dice.likely():
        fresh = [task.id for task in world.graph.tasks.values() if task.state == "NEW"]
        link = dice.one(("parent", "parent", "supersedes", "follows"))
        optional[link] = dice.one(fresh) if fresh and link == "parent" else world.some()
    title = "Title" if dice.likely() else dice.one(TEXTS)
    labels = (dice.one(TEXTS),) if dice.number(9) == 0 else ()
    return Create(
        title, world.fresh(), dice.one(BODIES), labels, dice.number(6) or 2, ("make",),
        needs, **optional,
    )  # fmt: skip


def _submit(world: World, task: Task) -> Request:
    dice, stage = world.dice, STAGE[task.state]
    if task.state in ("NEW", "BLOCKED"):
        enter: State | None = dice.one((None, "DESIGN", "PLAN", "WORK", "WORK"))
        return Submit(task.id, enter, dice.number(5) == 0, has_commits=dice.number(3) == 0)
    tip = world.fresh(40) if stage.guard == "committed" and dice.likely() else task.dispatched
    guard = clean(tip or BASE, task.branch or branch_of(1), commits=dice.number(8))
    landing = Landing(task.submitted_tip or BASE, LANDED, "merge") if dice.likely() else None
    return Submit(
        task.id,
        section=section(stage.heading, dice.one(TEXTS[:3])) if dice.likely() else None,
        guard=guard if dice.likely() else None,
        landing=landing,
        no_change=dice.number(4) == 0,
        remark=dice.one(TEXTS),
        cost=Cost(task.state, "pi", dice.number(9), 0.25, dice.number(9)),
    )


def _edit(world: World, task: Task) -> Request:
    dice = world.dice
    values: tuple[tuple[str, Any], ...] = (
        ("title", dice.one(TEXTS)),
        ("priority", dice.number(6)),
        ("labels", (dice.one(TEXTS),)),
        ("checks", (dice.one(TEXTS), "make")),
        ("assignee", dice.one(ACTORS)),
        ("depends_on", (world.some(), world.some())),
        ("x-note", f' "{dice.number(9)}"'),
        ("state", "WORK"),
    )
    chosen = (dice.one(values),) if dice.likely() else ()
    return Edit(
        task.id,
        chosen,
        (dice.one(values)[0],) if dice.number(3) == 0 else (),
        dice.one(BODIES) if dice.number(3) == 0 else None,
        (world.some(),) if dice.number(3) == 0 else (),
        task.depends_on[:1] if dice.number(3) == 0 else (),
        dice.number(2) == 0,
    )


def _check(world: World, task: Task) -> Request:
    tip = task.submitted_tip or BASE
    findings = ("make: 1",) if world.dice.number(2) else ()
    return RecordCheck(task.id, tip if world.dice.likely() else BASE, findings=findings)


def _claim(world: World, task: Task) -> Request:
    ends = world.now + world.dice.one((3600, 1))
    tip = task.submitted_tip or BASE
    return Claim(task.id, world.fresh(), ends, branch_of(int(task.id)), BASE, tip)


VERBS: dict[str, Callable[[World, Task], Request]] = {
    "create": _create,
    "submit": _submit,
    "feedback": lambda w, t: Feedback(
        t.id, tuple(w.dice.one(TEXTS) for _ in range(2)), clean(t.dispatched or BASE)
    ),
    "check": _check,
    "hold": lambda w, t: Hold(t.id, w.dice.one(TEXTS)),
    "resume": lambda w, t: Resume(t.id, w.dice.one(TEXTS)),
    "abort": lambda w, t: Abort(t.id, w.dice.one(TEXTS), recursive=w.dice.likely()),
    "claim": _claim,
    "release": lambda w, t: Release(
        t.id, w.dice.one(TEXTS), w.dice.one(("released", "expired", "forced", "died"))
    ),
    "edit": _edit,
    "note": lambda w, t: Note(
        t.id, w.dice.one(TEXTS), ((w.dice.one(TEXTS), "1"), ("pr", "2"))[w.dice.number(2) :]
    ),
    "reparent": lambda w, t: Reparent(t.id, w.some() if w.dice.likely() else None),
    "reorder": lambda w, t: Reorder(
        t.id, w.dice.one(("before", "after", "first", "last")), w.some()
    ),
}
AGENTS = ("submit", "feedback", "check", "claim", "release")


def _next_step(world: World, task: Task) -> tuple[Request, Speaker]:
    """Returns what takes a task on, most likely, and who may ask for it."""
    dice, stage = world.dice, STAGE[task.state]
    manager = Speaker("ada", "manager")
    if task.state in machine.HELD and dice.likely():
        wait = Edit(task.id, add_dependencies=(world.some(),))
        return (Resume(task.id) if dice.likely() else wait), manager
    if task.state == "MANAGER_REVIEW" and not dice.likely():
        return Feedback(task.id, ("Again.",)), manager
    if task.state == "BLOCKED" and dice.number(3) == 0:
        return Edit(task.id, remove_dependencies=task.depends_on[:1]), manager
    if not stage.claimable:
        enter: State | None = dice.one((None, "DESIGN", "PLAN", "WORK"))
        landing = Landing(task.submitted_tip or BASE, LANDED, "merge")
        if task.state == "MANAGER_REVIEW":
            return Submit(task.id, landing=landing), manager
        if world.graph.children(task.id):
            return Submit(task.id, close=True), manager
        return Submit(task.id, enter), manager
    owner = Speaker(task.claimed_by or dice.one(ACTORS), stage.role, task.claim)
    if task.state == "CHECK":
        return _check(world, task), owner
    if task.claim is None:
        return _claim(world, task), owner
    if stage.heading is None and dice.number(3) == 0:
        return Feedback(task.id, (dice.one(TEXTS[:3]),), clean(task.dispatched or BASE)), owner
    if dice.number(12) == 0:
        return Hold(task.id, "Which?"), owner
    tip = world.fresh(40) if stage.guard == "committed" else task.dispatched or BASE
    guard = clean(tip, task.branch or "")
    return Submit(task.id, section=section(stage.heading), guard=guard), owner
