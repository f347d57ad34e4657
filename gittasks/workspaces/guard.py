"""Reports facts about a task's branch, its tree and the user's own checkout; judges nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.requests import GuardReport
from gittasks.plumbing import objects, worktrees
from gittasks.plumbing.errors import GitError
from gittasks.workspaces import quarantine, worktree
from gittasks.workspaces.branch import HEADS
from gittasks.workspaces.places import checkout_of, state_dir

if TYPE_CHECKING:
    from gittasks.domain.requests import Snapshot
    from gittasks.domain.task import Task
    from gittasks.plumbing.repository import Repository
    from gittasks.workspaces.records import ClaimRecord

_HASHED_BYTES = 1 << 20
_HASHED_FILES = 200


class _Own(NamedTuple):
    """The commits of a branch that the base does not have, and where they begin."""

    commits: tuple[str, ...]
    boundaries: tuple[str, ...]


def report(
    repo: Repository,
    task: Task,
    record: ClaimRecord | None,
    base: str,
    *,
    reader: objects.Reader | None = None,
) -> GuardReport:
    """Returns what the branch and the tree of a task look like now, against a base commit.

    The tree is the one that the record of the claim names; without it only the branch counts.
    """
    if reader is None:
        with objects.Reader(repo) as opened:
            return report(repo, task, record, base, reader=opened)
    branch = task.branch
    tip = _oid(reader, HEADS + branch) if branch else None
    now = None
    if branch and record is not None and record.tree and worktree.is_whole(repo, record.tree):
        now = _snapshot(repo, reader, record.tree, branch)
        tip = now.tip if now else tip
    dispatched = record.snapshot if record else None
    if tip is None:
        facts = GuardReport(None, now, dispatched, descends=False)
    else:
        own = _own(repo, tip, base)
        facts = GuardReport(
            tip,
            now,
            dispatched,
            descends=_descends(repo, task.dispatched, tip, own),
            commits=len(own.commits),
            differs=_differs(repo, reader, tip, base, own),
        )
    if record is not None and now is not None and _is_stuck(repo, record.tree):
        facts = facts._replace(is_stuck=True)
    if record is None or not _is_odd(task, facts):
        return facts
    return facts._replace(user_changes=user_changes(repo, record.user_status))


def _snapshot(repo: Repository, reader: objects.Reader, tree: str, branch: str) -> Snapshot | None:
    """Returns how a tree stands; kept apart, it is on its branch at what is brought in of it."""
    made = quarantine.of_tree(state_dir(repo), tree)
    if made is None:
        return worktree.snapshot(repo, tree, branch)
    head = quarantine.detached_at(repo, made)
    if head is not None and reader.get(head) is None:
        # What could not be brought in cannot be judged.
        return None
    now = worktree.snapshot(repo, tree, branch)
    if now.branch is not None or made.branch != branch:
        return now
    return now._replace(branch=HEADS + branch, tip=now.head)


def _is_stuck(repo: Repository, tree: str) -> bool:
    """Tells whether a tree that is kept apart has a branch checked out, where nothing can go on."""
    made = quarantine.of_tree(state_dir(repo), tree)
    return made is not None and quarantine.detached_at(repo, made) is None


def user_status(repo: Repository) -> tuple[tuple[str, str], ...]:
    """Returns what differs in the user's own checkout now: each path with a mark of its content."""
    checkout = checkout_of(repo)
    if checkout is None:
        return ()
    try:
        lines = worktrees.status(repo, checkout)
    except GitError:
        # Nobody has checked anything out there; what we cannot see we cannot compare.
        return ()
    marks = []
    for number, line in enumerate(lines):
        path = os.path.join(checkout, line.path)
        try:
            info = os.lstat(path)
            mark = f"{info.st_size}:{info.st_mtime_ns}"
            if number < _HASHED_FILES and info.st_size <= _HASHED_BYTES and os.path.isfile(path):
                with open(path, "rb") as file:
                    mark = objects.digest("sha256", file.read()).hex()
        except OSError:
            mark = "gone"
        marks.append((line.path, f"{line.code} {mark}"))
    return tuple(marks)


def user_changes(repo: Repository, before: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Returns the paths of the user's checkout that changed since, and still differ from HEAD."""
    then = dict(before)
    return tuple(path for path, mark in user_status(repo) if then.get(path) != mark)


def has_own_commits(repo: Repository, tip: str, base: str) -> bool:
    """Tells whether a branch has commits that the base does not have."""
    return tip != base and bool(_own(repo, tip, base).commits)


def _own(repo: Repository, tip: str, base: str) -> _Own:
    if tip == base:
        return _Own((), (base,))
    lines = repo.text("rev-list", "--boundary", tip, f"^{base}", "--").split()
    return _Own(
        tuple(line for line in lines if line[0] != "-"),
        tuple(line[1:] for line in lines if line[0] == "-"),
    )


def _descends(repo: Repository, dispatched: str | None, tip: str, own: _Own) -> bool:
    if dispatched is None or dispatched in (tip, *own.commits):
        return True
    if dispatched in own.boundaries and own.commits:
        return True
    from gittasks.plumbing import merging

    try:
        return merging.is_ancestor(repo, dispatched, tip)
    except GitError:
        # Rewritten, and the former commit is no longer here.
        return False


def _differs(repo: Repository, reader: objects.Reader, tip: str, base: str, own: _Own) -> bool:
    """Tells whether the branch changes anything since it left the base."""
    if not own.commits:
        return False
    if len(own.boundaries) == 1:
        fork: str | None = own.boundaries[0]
    else:
        from gittasks.plumbing import merging

        fork = merging.merge_base(repo, base, tip)
    return fork is None or reader.commit(tip).tree != reader.commit(fork).tree


def _is_odd(task: Task, facts: GuardReport) -> bool:
    """Tells whether somebody may have worked in the wrong place, which is worth a look."""
    if task.state == "WORK":
        return not facts.differs or (facts.now is not None and bool(facts.now.status))
    return facts.now != facts.dispatched


def _oid(reader: objects.Reader, name: str) -> str | None:
    found = reader.get(name)
    return None if found is None else found.oid
