"""Writes tasks down: one, or many from a file in one ref update."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from gittasks.domain import machine
from gittasks.domain.errors import Cycle, UsageFault
from gittasks.domain.ids import parse_id
from gittasks.domain.requests import Abort, Create, Reparent, Submit
from gittasks.domain.rules.create import checked_title
from gittasks.domain.task import PRIORITY
from gittasks.domain.task_graph import free_ids
from gittasks.workflow.project import Publishing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gittasks.domain.requests import Request
    from gittasks.domain.task_graph import Graph
    from gittasks.ledger.writing import Appended
    from gittasks.workflow.project import Outcome, Project
    from gittasks.workflow.task_list import Listed

Entry = Literal["design", "plan", "work"]


class Wanted(NamedTuple):
    """One task to create: the request, where it is dispatched to, and its key in the file."""

    create: Create
    enter: Entry | None = None
    key: str | None = None
    over: str | None = None
    """Why it is closed as soon as it is written down, where it is."""


class New(NamedTuple):
    """One task as a person writes it down: ids in any spelling, None where nothing was said."""

    title: str
    body: bytes | None = None
    depends_on: Sequence[str] = ()
    checks: Sequence[str] = ()
    parent: str | None = None
    labels: Sequence[str] = ()
    priority: int = PRIORITY
    supersedes: str | None = None
    follows: str | None = None
    assignee: str | None = None
    idempotency_key: str | None = None
    enter: Entry | None = None


def create(project: Project, new: New) -> Outcome:
    """Creates one task, and dispatches it where `enter` says so."""
    title = checked_title(new.title)
    _require_texts("check", new.checks)
    _require_texts("label", new.labels)
    key = new.idempotency_key
    request = Create(
        title=title,
        uid=uid_of(None if key is None else ("key", key)),
        body=_template(project) if new.body is None else new.body,
        labels=(*new.labels, *project.settings.labels),
        priority=new.priority,
        checks=tuple(new.checks),
        depends_on=tuple(map(project.resolve, new.depends_on)),
        parent=_resolved(project, new.parent),
        supersedes=_resolved(project, new.supersedes),
        follows=_resolved(project, new.follows),
        assignee=new.assignee,
    )
    return _carry_out(project, [Wanted(request, new.enter)])[0]


def create_all(
    project: Project, data: bytes, file: str, *, idempotency_key: str | None = None
) -> list[Outcome]:
    """Creates the tasks of a file in one ref update; the outcomes stand in the file's order."""
    from gittasks.workflow import task_list

    listed = task_list.read(data, file)
    keys = {task.key for task in listed if task.key is not None}
    wanted = [
        Wanted(
            _listed_request(project, task, keys, (idempotency_key, number)), task.enter, task.key
        )
        for number, task in enumerate(listed)
    ]
    return _carry_out(project, wanted)


def _template(project: Project) -> bytes:
    from gittasks.ledger import layout

    text = project.shared_text(layout.TEMPLATE_FILE)
    return text or b""


def _require_texts(what: str, texts: Sequence[str]) -> None:
    for text in texts:
        if not text.strip():
            raise UsageFault(f"A {what} is blank.", f"Give --{what} some text, or leave it out.")


def _resolved(project: Project, spelling: str | None) -> str | None:
    return None if spelling is None else project.resolve(spelling)


def _listed_request(
    project: Project, task: Listed, keys: set[str], repeat: tuple[str | None, int]
) -> Create:
    def known(name: str) -> str:
        return name if name in keys else project.resolve(parse_id(name))

    run, number = repeat
    mark: tuple[object, ...] | None = None
    if run is not None:
        mark = ("file", run, task.key if task.key is not None else number)
    elif task.key is not None:
        # The key alone would make two files that both call a task "a" one and the same.
        mark = ("line", *task._replace(line=0))
    return Create(
        title=checked_title(task.title),
        uid=uid_of(mark),
        body=task.body,
        labels=(*task.labels, *project.settings.labels),
        priority=task.priority,
        checks=task.checks,
        depends_on=tuple(map(known, task.depends_on)),
        parent=None if task.parent is None else known(task.parent),
    )


def uid_of(mark: tuple[object, ...] | None) -> str:
    """Returns a fresh uid, or the one that belongs to a key, the same in every clone."""
    if mark is None:
        return os.urandom(16).hex()
    from gittasks.plumbing.objects import digest

    text = "gittasks create " + repr(mark)
    return digest("sha256", text.encode("utf-8", "surrogatepass")).hex()[:32]


def _carry_out(project: Project, wanted: Sequence[Wanted]) -> list[Outcome]:
    speaker = project.speaker("new")
    order = in_order(wanted)
    appended = project.apply(
        lambda graph: requests(graph, wanted, order), speaker, publishing=Publishing(fresh=False)
    )
    commands = [check for one in wanted for check in one.create.checks]
    if commands and speaker.role == "manager":
        from gittasks.workflow.trust import approve_own

        # Nobody is asked about what they typed themselves.
        approve_own(project, commands, speaker.actor)
    notes = []
    for event in appended.events:
        if event.kind == "abort" and event.task is not None:
            from gittasks.workflow.abort import put_away

            # What is superseded while open ends here, and so does the work on it.
            notes += put_away(project, project.task(event.task))
    outcomes = _outcomes(project, wanted, appended)
    notes += _repeated([one.task.id for one in outcomes if not one.changed], len(wanted))
    if project.remote is not None and project.is_offline and appended.events:
        which = "Its number" if len(outcomes) == 1 else "Their numbers"
        notes.append(f"{which} may change at `git tasks sync`, if others take it first.")
    outcomes[0] = outcomes[0]._replace(notes=(*outcomes[0].notes, *notes))
    return outcomes


def _repeated(known: Sequence[str], asked: int) -> list[str]:
    """Says which tasks were there already; of many, only how many."""
    if len(known) == 1:
        return [f"The task {known[0]} was created with this key before; nothing to do."]
    return [f"{len(known)} of {asked} tasks were created with their keys before."] if known else []


def requests(graph: Graph, wanted: Sequence[Wanted], order: Sequence[int]) -> Iterator[Request]:
    """Creates all tasks before any is dispatched; what is there already stays as it is.

    `order` are the positions of the tasks as `in_order` gives them.
    """
    # Numbers are given in the order of creation, so each is known before it is there.
    numbers = free_ids(graph)
    keys = {one.key for one in wanted if one.key is not None}
    ids: dict[str, str] = {}
    below: list[Reparent] = []
    dispatched: list[Submit] = []
    over: list[Abort] = []
    for position in order:
        one = wanted[position]
        present = graph.with_uid(one.create.uid)
        if present is None:
            present = next(numbers)
            parent = one.create.parent
            if parent in keys and parent not in ids:
                below.append(Reparent(present, parent))
                parent = None
            yield one.create._replace(
                depends_on=tuple(ids.get(name, name) for name in one.create.depends_on),
                parent=ids.get(parent, parent) if parent else None,
            )
            if one.over is not None:
                over.append(Abort(present, one.over))
            if one.enter is not None:
                dispatched.append(Submit(present, enter=machine.ENTRIES[one.enter]))
        if one.key is not None:
            ids[one.key] = present
    for move in below:
        assert move.parent is not None
        yield move._replace(parent=ids[move.parent])
    yield from dispatched
    # Children end before their parent does.
    yield from reversed(over)


def in_order(wanted: Sequence[Wanted]) -> list[int]:
    """Returns the positions in an order in which each comes after what it needs.

    Whoever stands higher in the file comes first, where that is possible. Parents come before
    their children unless the dependencies want it otherwise.
    """
    places = {one.key: number for number, one in enumerate(wanted) if one.key is not None}
    needs = [{places[n] for n in one.create.depends_on if n in places} for one in wanted]
    above = [
        {places[parent]} if (parent := one.create.parent) in places else set() for one in wanted
    ]
    both = _sorted_by_needs([a | b for a, b in zip(needs, above, strict=True)])
    if both is not None:
        return both
    ordered = _sorted_by_needs(needs)
    if ordered is None:
        raise Cycle(tuple(str(wanted[n].key) for n in _ring(needs)))
    return ordered


def _sorted_by_needs(needs: Sequence[set[int]]) -> list[int] | None:
    import heapq

    waiting = [len(needed) for needed in needs]
    followers: list[list[int]] = [[] for _ in needs]
    for number, needed in enumerate(needs):
        for other in needed:
            followers[other].append(number)
    free = [number for number, count in enumerate(waiting) if not count]
    order: list[int] = []
    while free:
        number = heapq.heappop(free)
        order.append(number)
        for follower in followers[number]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(free, follower)
    return order if len(order) == len(needs) else None


def _ring(needs: Sequence[set[int]]) -> list[int]:
    """Returns one ring among needs that have one, its first position repeated last."""
    left = {number: set(needed) for number, needed in enumerate(needs)}
    while gone := {number for number, needed in left.items() if not needed}:
        left = {n: needed - gone for n, needed in left.items() if n not in gone}
    path = [min(left)]
    while path.count(path[-1]) < 2:
        path.append(min(left[path[-1]]))
    return path[path.index(path[-1]) :]


def _outcomes(project: Project, wanted: Sequence[Wanted], appended: Appended) -> list[Outcome]:
    own: dict[str | None, list[int]] = {}
    for number, event in enumerate(appended.events):
        own.setdefault(event.task, []).append(number)
    graph = project.ledger.graph()
    outcomes = []
    for one in wanted:
        task = graph.with_uid(one.create.uid)
        assert task is not None
        outcomes.append(_outcome(project, task, appended, own.get(task, ())))
    return outcomes


def _outcome(project: Project, task: str, appended: Appended, own: Sequence[int]) -> Outcome:
    part = appended._replace(
        events=tuple(appended.events[n] for n in own),
        commits=tuple(appended.commits[n] for n in own),
    )
    outcome = project.outcome(task, part)
    return outcome._replace(kind="create") if outcome.changed else outcome
