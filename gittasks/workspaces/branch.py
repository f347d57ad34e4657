"""The branch of a task: named once, moved to the present base until it has commits of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Refused
from gittasks.plumbing import refs, worktrees
from gittasks.plumbing.errors import RefMoved
from gittasks.plumbing.refs import Change

if TYPE_CHECKING:
    from collections.abc import Collection

    from gittasks.domain.task import Task
    from gittasks.plumbing.objects import Reader
    from gittasks.plumbing.repository import Repository

PREFIX = "task/"
HEADS = "refs/heads/"
JUDGED = ("CHECK", "WORK_REVIEW", "MANAGER_REVIEW")
"""The states in which others look at exactly what was submitted."""
LOCK_REASON = "git tasks "
"""How the reason begins that our worktrees are locked with; the id of the task follows."""


class Branch(NamedTuple):
    """Where a task's branch is to stand for a claim; `change` takes it there.

    `base` is where its own commits begin, `behind` tells whether the base has moved on since.
    """

    name: str
    tip: str
    base: str
    behind: bool = False
    change: Change | None = None

    @property
    def ref(self) -> str:
        """Returns the full name."""
        return HEADS + self.name


def plan_branch(
    repo: Repository,
    reader: Reader,
    task: Task,
    base: str,
    prefix: str = PREFIX,
    *,
    fetched: str | None = None,
    taken: Collection[str] = (),
) -> Branch:
    """Returns where the branch of a task has to stand for a claim, without moving it.

    `base` is a full ref name or a commit; `fetched` is the commit that other clones have left the
    branch at, `taken` are names that other tasks have. The caller moves `change` together with
    the ledger, so that the loser of a race moves nothing. A branch with commits of its own stays
    where it is.
    """
    tip = _commit(reader, base)
    if tip is None:
        raise Refused(
            f"The base {base.removeprefix(HEADS)} has no commit yet.",
            "Commit something first.",
            task.id,
        )
    if task.branch is None:
        return _minted(reader, task, tip, prefix, taken)
    here = _commit(reader, HEADS + task.branch)
    if task.state in JUDGED and not lacks_submitted(reader, task):
        wrong = astray(repo, reader, task)
        if wrong is not None:
            raise wrong
        # What others have pushed there since is not what was submitted.
        fetched = task.submitted_tip
    now = _newest(repo, here, fetched)
    if (now is None or task.state in JUDGED) and lacks_submitted(reader, task):
        raise lacking(task, base)
    if now is None:
        return _brought_back(repo, reader, task, task.branch, tip)
    found = _placed(repo, task, task.branch, now, tip)
    if now == here:
        return found
    return found._replace(change=Change(HEADS + task.branch, found.tip, here))


def lacks_submitted(reader: Reader, task: Task) -> bool:
    """Tells whether the work that was submitted of a task is not in this clone."""
    tip = task.submitted_tip
    return tip is not None and tip != task.base and _commit(reader, tip) is None


def lacking(task: Task, base: str) -> Refused:
    """Returns the refusal of whoever needs work that is not in this clone."""
    tip = str(task.submitted_tip)[:12]
    otherwise = (
        f"or have it done again: git tasks hold {task.id} -m TEXT, git tasks resume {task.id}"
        if task.state in JUDGED
        else f"or begin anew: git branch {task.branch} {base.removeprefix(HEADS)}"
    )
    return Refused(
        f"What was submitted of {task.id}, the commit {tip}, is not in this clone, and no branch"
        " that was fetched has it.",
        f"Run `git tasks sync` in the clone that has it, {otherwise}.",
        task.id,
    )


def astray(repo: Repository, reader: Reader, task: Task) -> Refused | None:
    """Returns why nobody can look at what was submitted: the branch here has something else."""
    tip = task.submitted_tip
    if task.state not in JUDGED or task.branch is None or tip is None:
        return None
    here = _commit(reader, HEADS + task.branch)
    if here in (None, tip) or lacks_submitted(reader, task):
        return None
    from gittasks.plumbing import merging

    assert here is not None
    if merging.is_ancestor(repo, here, tip) and not _is_elsewhere(repo, HEADS + task.branch):
        # It merely has not followed yet.
        return None
    return Refused(
        f"The branch {task.branch} is at {here[:12]} here, but {tip[:12]} was submitted of"
        f" {task.id}.",
        f"Look at it: git log {tip[:12]}...{here[:12]}; then put the branch back to {tip[:12]}, or"
        f" have it submitted: git tasks hold {task.id} -m TEXT, git tasks resume {task.id}.",
        task.id,
    )


def _newest(repo: Repository, here: str | None, fetched: str | None) -> str | None:
    """Returns where the branch stands when what others have done is counted."""
    if fetched is None or here == fetched:
        return here
    if here is None:
        return fetched
    from gittasks.plumbing import merging

    return fetched if merging.is_ancestor(repo, here, fetched) else here


def _minted(reader: Reader, task: Task, base: str, prefix: str, others: Collection[str]) -> Branch:
    """Names a new branch; one that stands there already is somebody else's."""
    names = (f"{prefix}{task.id}", f"{prefix}{task.id}-{task.uid[:4]}")
    above = names[0].rpartition("/")[0]
    taken = reader.many([HEADS + name for name in (*names, above) if name])
    if above and taken.pop() is not None:
        raise Refused(
            f"A branch {above} stands in the way of {names[0]}.",
            f"Rename it: git branch -m {above} NAME.",
            task.id,
        )
    for name, found in zip(names, taken, strict=True):
        if found is None and name not in others:
            return Branch(name, base, base, change=Change(HEADS + name, base, None))
    raise Refused(
        f"The branches {names[0]} and {names[1]} both exist and are not of this task.",
        f"Rename one of them: git branch -m {names[1]} NAME.",
        task.id,
    )


def _brought_back(repo: Repository, reader: Reader, task: Task, name: str, base: str) -> Branch:
    """Makes a branch that is gone again, at the last commit the ledger knows of it."""
    for known in (task.submitted_tip, task.dispatched):
        if known and _commit(reader, known) is not None:
            found = _placed(repo, task, name, known, base)
            return found._replace(change=Change(HEADS + name, found.tip, None))
    return Branch(name, base, base, change=Change(HEADS + name, base, None))


def _placed(repo: Repository, task: Task, name: str, now: str, base: str) -> Branch:
    from gittasks.plumbing import merging

    if now == base:
        return Branch(name, now, base)
    fork = merging.merge_base(repo, base, now) or base
    if fork == now and now == task.submitted_tip:
        # Somebody has merged it by hand. It was submitted, so it stays, and so does its beginning.
        return Branch(name, now, task.base or fork, behind=True)
    if fork != now or _is_elsewhere(repo, HEADS + name):
        return Branch(name, now, fork, behind=fork != base)
    return Branch(name, base, base, change=Change(HEADS + name, base, now))


def _is_elsewhere(repo: Repository, ref: str) -> bool:
    """Tells whether a person has the branch checked out in a tree that is not ours."""
    return any(
        one.branch == ref and not (one.locked or "").startswith(LOCK_REASON)
        for one in worktrees.list(repo)
    )


def _commit(reader: Reader, name: str) -> str | None:
    found = reader.get(name)
    return found.oid if found is not None and found.kind == "commit" else None


def rename_branch(repo: Repository, old: str, new: str) -> bool:
    """Renames a branch, and the HEAD of the tree it is checked out in; tells whether it was there.

    git does both in one step, and refuses where there is a branch of that name.
    """
    if refs.read(repo, HEADS + old) is None or refs.read(repo, HEADS + new) is not None:
        return False
    repo.git("branch", "-m", old, new)
    return True


def delete_branch(repo: Repository, name: str, tip: str) -> str | None:
    """Deletes a branch that stands at `tip`; returns why it stays where it cannot go."""
    ref = HEADS + name
    for one in worktrees.list(repo):
        if one.branch == ref:
            return f"The branch {name} stays: it is checked out in {one.path}."
    try:
        refs.compare_and_swap(repo, ref, None, tip, "gittasks: the task is closed")
    except RefMoved as error:
        if error.actual is None:
            return None
        return f"The branch {name} stays: it has moved to {error.actual[:12]}."
    return None
