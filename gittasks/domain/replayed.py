"""What a replay takes and what it gives: known also where nothing has to be replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gittasks.domain.config import Project
    from gittasks.domain.events import Event
    from gittasks.domain.task import Task


class Local(NamedTuple):
    """One event that only this clone has: with its message, and the task and text it acted on."""

    event: Event
    message: str
    task: Task | None = None
    body: bytes = b""
    settings: Project | None = None
    """The shared settings, or with `text` a shared text, before an event that changed them."""
    text: bytes | None = None


class Step(NamedTuple):
    """One event to write, and the place of the local one that it stands for, if it does."""

    event: Event
    source: int | None = None


class Lost(NamedTuple):
    """A claim of this clone that did not count: which task, by which branch, and why."""

    task: str
    uid: str
    claim: str
    actor: str
    branch: str
    reason: str


class Renaming(NamedTuple):
    """A task that got another number, or another branch, when it met the others' tasks."""

    uid: str
    old: str
    new: str
    branch: tuple[str, str] | None = None


class Replayed(NamedTuple):
    """What became of all events, and what whoever made them has to be told."""

    steps: tuple[Step, ...]
    renamed: tuple[Renaming, ...] = ()
    lost: tuple[Lost, ...] = ()
    rejected: tuple[tuple[Event, str], ...] = ()
    notes: tuple[str, ...] = ()
