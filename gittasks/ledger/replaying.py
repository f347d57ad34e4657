"""The events that only this clone has, decided again on top of what the others agreed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import Corrupt, SyncRefused
from gittasks.domain.events import Configured, Initialized
from gittasks.domain.fields import BadDocument
from gittasks.domain.frontmatter import parse
from gittasks.domain.replay import Common, replay
from gittasks.domain.replayed import Local, Replayed
from gittasks.ledger import history, layout, leases, message, quarantine
from gittasks.ledger.build import Builder
from gittasks.plumbing import merging

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.domain.config import Project
    from gittasks.domain.events import Event
    from gittasks.domain.task import Task
    from gittasks.ledger.ledger import Ledger
    from gittasks.plumbing import objects

__all__ = ["foreseen", "replayed"]


def replayed(ledger: Ledger, before: str, tip: str) -> tuple[Replayed, Builder]:
    """Returns what becomes of our events up to `before` on a tip, and the commits of it."""
    own, local = _own_events(ledger, before, tip)
    # From here on everything is asked of what the others agreed on.
    ledger.is_at(tip)
    try:
        found = replay(_common(ledger, tip), local)
        above = ledger.reader.commit(tip)
        text = ledger.snapshot.text(layout.PROJECT_FILE)
        commits = Builder.on(ledger, above, ledger.graph(), text)
        for step in found.steps:
            source = None if step.source is None else own[step.source]
            commits.append(step.event, replayed_from=source)
    finally:
        ledger.is_at(before)
    return found, commits


def foreseen(ledger: Ledger, before: str, tip: str) -> tuple[Replayed, int]:
    """Returns what would become of our events on a tip, and how many they are."""
    _, local = _own_events(ledger, before, tip)
    ledger.is_at(tip)
    try:
        return replay(_common(ledger, tip), local), len(local)
    finally:
        ledger.is_at(before)


def _own_events(ledger: Ledger, before: str, tip: str) -> tuple[list[str], list[Local]]:
    """Returns the commits that only this clone has, oldest first, and what they tell."""
    base = merging.merge_base(ledger.repo, before, tip)
    if base is None:
        raise SyncRefused(
            "The ledger here and the one of the remote have no commit in common.",
            "Run `git tasks fsck` in both clones.",
        )
    known = set(_event_ids(ledger, base, tip))
    invalid = quarantine.invalid(ledger.state_dir)
    own: list[str] = []
    local: list[Local] = []
    for commit in _commits(ledger, base, before):
        if commit.oid in invalid:
            # It had come from a remote that does not have it any more, and never counted.
            continue
        event = message.decode(commit.message, commit.author_time, commit.oid)
        if event.event_id not in known:
            own.append(commit.oid)
            local.append(_local(ledger, commit, history.with_body(event, ledger.reader)))
    return own, local


def _event_ids(ledger: Ledger, base: str, tip: str) -> Iterator[str]:
    for commit in _commits(ledger, base, tip):
        yield from message.event_ids(commit.message)


def _commits(ledger: Ledger, base: str, tip: str) -> Iterator[objects.Commit]:
    from gittasks.ledger.verify import oldest_first

    for commit in oldest_first(ledger.repo, ledger.reader, tip, base):
        if isinstance(commit, str):
            raise Corrupt(
                f"The commit {commit[:12]} of the ledger is missing.",
                "Run `git tasks recover` to repair it.",
            )
        yield commit


def _local(ledger: Ledger, commit: objects.Commit, event: Event) -> Local:
    text = commit.message.decode("utf-8", "replace")
    if isinstance(event.change, Initialized | Configured):
        path = getattr(event.change, "path", None)
        settings = _settings(ledger, commit.parents[0])
        found = None if path is None else ledger.reader.get(f"{commit.parents[0]}:{path}")
        return Local(event, text, settings=settings, text=found and found.data)
    if event.revision is None:
        return Local(event, text)
    found = ledger.reader.get(event.revision)
    try:
        task, body = (None, b"") if found is None else parse(found.data)
    except BadDocument:
        # It was repaired by this very event.
        task, body = None, b""
    return Local(event, text, task, body)


def _settings(ledger: Ledger, commit: str) -> Project | None:
    from gittasks.domain.config import parse_project

    found = ledger.reader.get(f"{commit}:{layout.PROJECT_FILE}")
    return None if found is None else parse_project(found.data)


def _common(ledger: Ledger, tip: str) -> Common:
    """Returns what all clones agree on, at a tip that the ledger stands at for now."""
    snapshot = ledger.snapshot
    graph = ledger.graph()

    def events(task: str) -> Iterator[Event]:
        invalid = quarantine.invalid(ledger.state_dir)
        found = history.of_task(ledger.repo, tip, task, invalid=invalid)
        return (one.event for one in found)

    def owner(branch: str) -> str | None:
        found = graph.get(snapshot.with_branches((branch,)).get(branch, ""))
        return None if found is None else found.uid

    def renewed(task: Task) -> str | None:
        return leases.renewed(ledger.reader, task.id, task.claim) if task.claim else None

    return Common(
        graph,
        ledger.project(),
        snapshot.text,
        events,
        branch_prefix=ledger.repo.config.get("gittasks.branchPrefix") or "task/",
        branches=owner,
        is_unreadable=lambda number: graph.problem(number) is not None,
        renewed=renewed,
        quarantined=graph.quarantined,
    )
