"""Sync, push and pull: what the clones of a project exchange, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Busy, GittasksError, NoLedger, SyncRefused, UsageFault
from gittasks.ledger import sync as ledgers
from gittasks.plumbing import refs
from gittasks.plumbing.errors import GitError
from gittasks.workflow import aftermath, sharing, work_branches

if TYPE_CHECKING:
    from gittasks.domain.replayed import Lost, Renaming
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project

AUTOSYNC_SECONDS = 5.0
"""How long a command may still try to publish after it has told its success."""
_AUTOSYNC_ROUNDS = 5
_NO_PATIENCE = 0.05


class Synced(NamedTuple):
    """What a sync did, for the surfaces to tell."""

    remote: str
    tip: str
    received: int
    published: int
    pending: int
    branches: tuple[str, ...]
    renumbered: tuple[Renaming, ...]
    lost: tuple[Lost, ...]
    rejected: tuple[tuple[str, str | None, str], ...]
    """Kind, task and reason of each event that was not applied."""
    dry_run: bool = False
    began: bool = False
    """Whether this clone shares from now on."""
    notes: tuple[str, ...] = ()


def sync(
    project: Project, *, push: bool = True, pull: bool = True, dry_run: bool = False
) -> Synced:
    """Exchanges events with the remote; raises SyncRefused, or Busy where it cannot be reached."""
    if project.options.offline:
        raise UsageFault("Nothing can be exchanged offline.", "Leave --offline out.")
    name = sharing.require_remote(project)
    began = project.remote is None
    if dry_run:
        return _foreseen(project, name, push=push, pull=pull, began=began)
    if not began:
        return _exchanged(project, push=push, pull=pull)
    _require_ledger(project, name)
    with sharing.beginning(project, name):
        return _exchanged(project, push=push, pull=pull)._replace(began=True)


def _exchanged(project: Project, *, push: bool, pull: bool) -> Synced:
    project.recover()
    shared = sharing.shared_of(project)
    sharing.keep_from_mirroring(project, shared.name)
    held = aftermath.held_here(project)
    try:
        done = ledgers.sync(
            shared,
            work_branches.to_push(project),
            names=(project.base,),
            globs=sharing.globs(project),
            push=push,
            pull=pull,
            patience=sharing.patience(project),
            followed=lambda replayed: aftermath.follow(project, replayed),
        )
    except Busy as error:
        if "--offline" in (error.hint or ""):
            # There is nothing else that a sync could do.
            error.hint = "Try again later; everything is safe in this clone."
        raise
    project.ledger.has_written = False
    aftermath.settle(project)
    lost = {one.claim for replayed in done.replayed for one in replayed.lost}
    project.told += (*aftermath.ended_elsewhere(project, held, lost), *_without_base(project))
    return _told(project, done, began=False)


def _without_base(project: Project) -> list[str]:
    """Says that nobody else can work or land while the remote has no base."""
    name = project.settings.base
    if refs.read(project.repo, project.base) is None or work_branches.fetched_tip(project, name):
        return []
    return [
        f"The remote {project.remote} has no branch {name} yet, which the others need:"
        f" git push {project.remote} {name}."
    ]


def publish_quietly(project: Project) -> str | None:
    """Publishes what was written, in a few seconds at most; returns why it could not."""
    if project.remote is None or project.options.offline:
        return None
    if not project.config.get_bool("gittasks.autoSync", True):
        return None
    shared = sharing.shared_of(project, timeout=AUTOSYNC_SECONDS)
    before = project.told
    held = aftermath.held_here(project)
    try:
        done = ledgers.sync(
            shared,
            work_branches.to_push(project),
            names=(project.base,),
            globs=sharing.globs(project),
            rounds=_AUTOSYNC_ROUNDS,
            patience=_NO_PATIENCE,
            followed=lambda replayed: aftermath.follow(project, replayed),
        )
        aftermath.settle(project)
        lost = {one.claim for replayed in done.replayed for one in replayed.lost}
        project.told += tuple(aftermath.ended_elsewhere(project, held, lost))
    except (GittasksError, GitError) as error:
        words = error.message if isinstance(error, GittasksError) else str(error)
        if isinstance(error, SyncRefused):
            return f"Not published yet: {words}"
        return f"Not published yet: {words} `git tasks sync` does it later."
    news = project.told[len(before) :]
    return " ".join(news) or None


def _require_ledger(project: Project, name: str) -> None:
    """Raises NoLedger where there is neither a ledger here nor anything to share."""
    if not project.ledger.exists:
        raise NoLedger(
            "There is no ledger in this repository yet.",
            f"Run `git tasks init`, which takes over the one of {name} if there is one.",
        )


def _told(project: Project, done: ledgers.Synced, *, began: bool) -> Synced:
    rejected: list[tuple[str, str | None, str]] = []
    renamed: list[Renaming] = []
    lost: list[Lost] = []
    for replayed in done.replayed:
        renamed += [one for one in replayed.renamed if one.old != one.new]
        lost += replayed.lost
        rejected += [(e.kind, e.task, why) for e, why in aftermath.heard(replayed)]
    return Synced(
        done.remote,
        done.tip,
        done.received,
        done.published,
        done.pending,
        tuple(n.removeprefix(sharing.HEADS) for n in done.branches if n.startswith(sharing.HEADS)),
        tuple(renamed),
        tuple(lost),
        tuple(rejected),
        began=began,
        notes=(*done.notes, *project.told, *project.ledger.repaired),
    )


def _foreseen(project: Project, name: str, *, push: bool, pull: bool, began: bool) -> Synced:
    """Tells what a sync would do; only the objects of what the remote has are fetched."""
    from gittasks.ledger.shared import Shared

    project.require_ledger()
    found = ledgers.foreseen(Shared(project.ledger, name), push=push, pull=pull)
    done = _told(project, found, began=began)
    return done._replace(dry_run=True)


def state(project: Project) -> tuple[str, int] | None:
    """Returns the remote and how many events it does not have, as of the last fetch."""
    if project.remote is None:
        return None
    shared = sharing.shared_of(project)
    return shared.name, ledgers.unpublished(project.ledger, shared.copy)


def is_provisional(project: Project, task: Task) -> bool:
    """Tells whether a claim is known in this clone only: the remote did not have it yet."""
    if task.claim is None or not sharing.has_shared(project) or project.remote is None:
        return False
    copy = sharing.shared_of(project).copy
    return copy != project.ledger.tip and task.claim != _claim_at(project, copy, task.id)


def _claim_at(project: Project, commit: str | None, task_id: str) -> str | None:
    from gittasks.domain.fields import BadDocument
    from gittasks.domain.frontmatter import parse
    from gittasks.ledger.layout import task_path

    if commit is None:
        return None
    found = project.ledger.reader.get(f"{commit}:{task_path(task_id, closed=False)}")
    try:
        return None if found is None else parse(found.data)[0].claim
    except BadDocument:
        return None
