"""Writes what was read into the ledger: all of it in one ref update, and each task only once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain import frontmatter
from gittasks.domain.errors import WrongRole
from gittasks.domain.requests import Create
from gittasks.workflow import create
from gittasks.workflow.importing import links, sources
from gittasks.workflow.importing.items import bytes_of
from gittasks.workflow.project import Publishing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gittasks.domain.requests import Request
    from gittasks.domain.task_graph import Graph
    from gittasks.workflow.importing.items import Dump, Fault, Item
    from gittasks.workflow.importing.links import Placed, Plan
    from gittasks.workflow.importing.sources import Source
    from gittasks.workflow.project import Project


class Wish(NamedTuple):
    """How to import: closed items too, links that do not hold as words, or only a look at it."""

    everything: bool = False
    drop_links: bool = False
    dry_run: bool = False
    idempotency_key: str | None = None
    """Tells two projects apart whose ids are alike."""


class Brought(NamedTuple):
    """One task of the source: its key and title there, and its id here, None before it is made."""

    key: str
    id: str | None
    title: str


class Imported(NamedTuple):
    """What an import did, or would do."""

    source: Source
    created: Sequence[Brought]
    known: Sequence[Brought]
    closed: Sequence[str]
    """The keys of items that are closed and were left out."""
    faults: Sequence[Fault]
    skipped: int
    dry_run: bool = False
    notes: tuple[str, ...] = ()


def bring(
    project: Project,
    path: str,
    told: str,
    source: Source | None = None,
    *,
    wish: Wish = Wish(),  # noqa: B008  # a NamedTuple is immutable
    data: bytes | None = None,
) -> Imported:
    """Imports what lies at a path, or what `data` holds; good rows come whatever others have."""
    project.require_ledger()
    speaker = project.speaker("import")
    if speaker.role != "manager":
        raise WrongRole(
            "Only the manager may import tasks.",
            "Run `git tasks whoami` to see why you are somebody else.",
        )
    source, dump = sources.read(path, told, source, data)
    import_ = _Import(source, dump, wish, project.settings.labels)
    plan = import_.plan(project.ledger.graph())
    notes: tuple[str, ...] = ()
    if plan.new and not wish.dry_run:
        appended = project.apply(import_.requests, speaker, publishing=Publishing(fresh=False))
        assert import_.planned is not None
        plan = import_.planned
        notes = _notes(project, appended.events)
    return import_.result(plan, project.ledger.graph())._replace(notes=notes)


def _notes(project: Project, events: Sequence[Any]) -> tuple[str, ...]:
    from gittasks.workflow.secrets import warnings

    notes = (*project.told, *project.ledger.repaired, *warnings(events))
    if project.remote is not None and project.is_offline and events:
        notes += ("Their numbers may change at `git tasks sync`, if others take them first.",)
    return notes


class _Import:
    """One dump on its way into a ledger, asked again whenever the ledger has moved."""

    def __init__(self, source: Source, dump: Dump, wish: Wish, labels: Sequence[str]) -> None:
        self.source = source
        self.wish = wish
        self.labels = labels
        self._dump = dump
        self._uids = {item.key: item.uid for item in dump.items if item.uid is not None}
        self.planned: Plan | None = None

    def uid(self, key: str) -> str:
        """Returns the uid that belongs to a key of the source, the same in every clone."""
        own = self._uids.get(key)
        mark = ("import", self.source, self.wish.idempotency_key, key.casefold())
        return own or create.uid_of(mark)

    def plan(self, graph: Graph) -> Plan:
        """Returns what to create on a graph."""
        return links.plan(
            self._dump,
            links.Rules(
                known=lambda key: graph.with_uid(self.uid(key)) is not None,
                closed=lambda key: _is_closed(graph, self.uid(key)),
                everything=self.wish.everything,
                drop_links=self.wish.drop_links,
            ),
        )

    def requests(self, graph: Graph) -> Iterator[Request]:
        """Gives the creates, and the ends of what is closed."""
        self.planned = self.plan(graph)
        wanted = [self._wanted(one, graph) for one in self.planned.new]
        yield from create.requests(graph, wanted, create.in_order(wanted))

    def _wanted(self, placed: Placed, graph: Graph) -> create.Wanted:
        item = placed.item

        def link(key: str) -> str:
            uid = self.uid(key)
            return graph.with_uid(uid) or uid

        uid = self.uid(item.key)
        request = Create(
            title=item.title.strip(),
            uid=uid,
            body=bytes_of(item),
            labels=(*item.labels, *self.labels),
            priority=item.priority,
            checks=item.checks,
            depends_on=tuple(map(link, placed.needs)),
            parent=None if placed.parent is None else link(placed.parent),
            follows=None if placed.follows is None else link(placed.follows),
            assignee=item.assignee,
            extra=tuple(self._extra(placed)),
        )
        over = f"Closed in {sources.TITLES[self.source]} before it was imported."
        return create.Wanted(request, key=uid, over=over if item.closed else None)

    def _extra(self, placed: Placed) -> Iterator[tuple[str, str]]:
        item = placed.item
        told: dict[str, Any] = {}
        if item.uid is None:
            told |= {"from": self.source, "id": item.key}
        told |= item.about
        told |= {
            "needs": placed.lost_needs, "parent": placed.lost_parent,
            "follows": placed.lost_follows,
        }  # fmt: skip
        own = {f"x-imported-{name}": value for name, value in told.items() if value}
        yield from ((name, text) for name, text in item.extra if name not in own)
        for name, value in own.items():
            yield name, frontmatter.check_field(name, value)

    def result(self, plan: Plan, graph: Graph) -> Imported:
        """Returns what became of the dump."""

        def brought(item: Item) -> Brought:
            return Brought(item.key, graph.with_uid(self.uid(item.key)), item.title.strip())

        return Imported(
            self.source,
            [brought(one.item) for one in plan.new],
            [brought(item) for item in plan.known],
            [item.key for item in plan.over],
            plan.faults,
            self._dump.skipped,
            self.wish.dry_run,
        )


def _is_closed(graph: Graph, uid: str) -> bool:
    task = graph.get(graph.with_uid(uid) or "")
    return task is not None and not task.is_open
