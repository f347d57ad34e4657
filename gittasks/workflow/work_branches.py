"""The branches of a clone that shares: the base it starts from, and the work that travels.

What was committed for a task goes to the remote with the ledger and comes from there, so that
any clone can review, check and land it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.errors import Busy, Refused, SyncRefused
from gittasks.ledger import layout, leases
from gittasks.plumbing import merging, refs, remote
from gittasks.plumbing.errors import GitError
from gittasks.plumbing.remote import Update
from gittasks.workflow import sharing
from gittasks.workflow.sharing import HEADS
from gittasks.workspaces import records
from gittasks.workspaces.branch import JUDGED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gittasks.domain.task import Task
    from gittasks.workflow.site import Site

_SHOWN_COMMITS = 5


def fetched_tip(site: Site, name: str) -> str | None:
    """Returns where the remote's branch stood when it was last fetched; short name."""
    if site.remote is None:
        return None
    found = site.ledger.reader.get(f"{layout.INCOMING}heads/{name}")
    return found and found.oid


def base_of(site: Site) -> str:
    """Returns the base that new work starts from: the remote's where it has merely gone on."""
    fetched = fetched_tip(site, site.settings.base)
    found = site.ledger.reader.get(site.base)
    here = found and found.oid
    if fetched is None or fetched == here:
        return site.base
    if here is None or merging.is_ancestor(site.repo, here, fetched):
        return fetched
    return site.base


def present_base(site: Site, ref: str) -> tuple[str, str | None]:
    """Returns the commit that a landing is made on, and what the remote's base is.

    That is the remote's base, as it was fetched last, where ours has nothing that it lacks; what
    nobody submitted is not published. Raises SyncRefused where ours has more.
    """
    here = refs.read(site.repo, ref)
    there = refs.read(site.repo, f"{layout.INCOMING}{ref.removeprefix('refs/')}")
    name = ref.removeprefix(HEADS)
    if here is None:
        start = "" if there is None else f" {there[:12]}"
        raise Refused(
            f"The base branch {name} does not exist here.", f"Make it: git branch {name}{start}."
        )
    if here == there:
        return here, there
    if there is None:
        raise SyncRefused(
            f"The remote {site.remote} has no branch {name}, so nothing can land there.",
            f"Publish it: git push {site.remote} {name}.",
        )
    if merging.is_ancestor(site.repo, here, there):
        return there, there
    listed = site.repo.text(
        "log", "--format=%h %s", f"--max-count={_SHOWN_COMMITS + 1}", here, f"^{there}", "--"
    )
    lines = listed.split("\n")
    shown = "; ".join(lines[:_SHOWN_COMMITS]) + (" …" if len(lines) > _SHOWN_COMMITS else "")
    publish = f"git push {site.remote} {name}"
    if merging.is_ancestor(site.repo, there, here):
        hint = f"Publish them yourself ({publish}), or move them to another branch."
    else:
        hint = (
            f"Merge what {site.remote} has (git merge {there[:12]}) or rebase onto it, then publish"
            f" them yourself ({publish}); or move them to another branch."
        )
    raise SyncRefused(
        f"Your {name} has commits that {site.remote} has not, and a landing would publish"
        f" them: {shown}.",
        hint,
    )


def names_taken(site: Site, task: Task) -> tuple[str, ...]:
    """Returns which of the names that a task's branch could have are those of other tasks."""
    name = f"{site.branch_prefix}{task.id}"
    found = site.ledger.snapshot.with_branches((name, f"{name}-{task.uid[:4]}"))
    return tuple(name for name, owner in found.items() if owner != task.id)


def bring_branch(site: Site, task: Task) -> None:
    """Fetches the branch of a task, and moves ours along where the others have only gone on."""
    if site.remote is None or task.branch is None:
        return
    if not site.is_offline:
        sharing.shared_of(site).fetch(globs=(f"{HEADS}{task.branch}*",))
    follow_branch(site, task)


def have_branch(site: Site, task: Task) -> None:
    """Fetches the branch of a task where what was submitted is not here yet; best effort."""
    if site.remote is None or task.branch is None:
        return
    here = refs.read(site.repo, HEADS + task.branch)
    wanted = task.submitted_tip or task.dispatched
    if here is not None and (wanted in (None, here) or _has(site, here, wanted)):
        return
    try:
        bring_branch(site, task)
    except (Busy, SyncRefused) as error:
        site.told += (error.message,)


def _has(site: Site, tip: str, commit: str | None) -> bool:
    if commit is None or site.ledger.reader.get(commit) is None:
        return False
    return merging.is_ancestor(site.repo, commit, tip)


def complete_history(site: Site, task: Task) -> None:
    """Brings what a task's branch and the base have in common, where git has cut it off here."""
    if task.branch is None or site.is_offline or not remote.is_shallow(site.repo):
        return
    pairs = {
        name: f"{layout.INCOMING}{name.removeprefix('refs/')}"
        for name in (HEADS + task.branch, site.base)
    }
    found = refs.read_many(site.repo, tuple(pairs.values()))
    tips = [oid for oid in found.values() if oid is not None]
    if len(tips) != len(pairs) or merging.merge_base(site.repo, *tips) is not None:
        return
    assert site.remote is not None
    try:
        remote.fetch(site.repo, site.remote, pairs, whole=True)
    except GitError as error:
        raise sharing.shared_of(site).told(error) from None


def follow_branch(site: Site, task: Task) -> None:
    """Moves our branch of a task to where it was fetched, where that is merely further on.

    What is judged is what was submitted: there it goes no further, whatever was pushed since.
    """
    if task.branch is None:
        return
    complete_history(site, task)
    fetched = fetched_tip(site, task.branch)
    here = refs.read(site.repo, HEADS + task.branch)
    if fetched is None or fetched == here:
        return
    if task.state in JUDGED and task.submitted_tip is not None:
        fetched = task.submitted_tip
        if fetched == here or site.ledger.reader.get(fetched) is None:
            return
    if here is None or merging.is_ancestor(site.repo, here, fetched):
        change = refs.Change(HEADS + task.branch, fetched, here)
        refs.transaction(site.repo, [change], "gittasks: fetched")


def to_push(site: Site) -> Callable[[str | None, str], Sequence[Update]]:
    """Returns the function that says which work branches go to the remote with the ledger."""

    def updates(_remote_tip: str | None, _tip: str) -> Sequence[Update]:
        prefix = HEADS + site.branch_prefix
        incoming = layout.INCOMING + prefix.removeprefix("refs/")
        # One process tells of all that may have to go there.
        places = (prefix, incoming, leases.LEASES, leases.INCOMING)
        found = site.repo.ref_ids([place.rstrip("/") for place in places])
        return (*_work_branches(site, found, prefix, incoming), *_leases(site, found))

    return updates


def _leases(site: Site, found: Mapping[str, str]) -> list[Update]:
    places = (leases.LEASES, leases.INCOMING)
    renewed = {name: oid for name, oid in found.items() if name.startswith(places)}
    if not renewed:
        return []
    ledger = site.ledger
    moves = leases.outgoing(site.repo, ledger.reader, ledger.graph().get, renewed)
    return [Update(one.name, one.new, one.old) for one in moves]


def _work_branches(
    site: Site, found: Mapping[str, str], prefix: str, incoming: str
) -> list[Update]:
    here = {n.removeprefix(HEADS): oid for n, oid in found.items() if n.startswith(prefix)}
    there = {
        n.removeprefix(layout.INCOMING + "heads/"): oid
        for n, oid in found.items()
        if n.startswith(incoming)
    }
    differing = [name for name in {*here, *there} if here.get(name) != there.get(name)]
    closed_or_new = {*differing, *there}
    if not closed_or_new:
        return []
    tasks = _by_branch(site, closed_or_new)
    updates = []
    for name in sorted(closed_or_new & tasks.keys()):
        task = tasks[name]
        if not task.is_open:
            if name in there:
                _keep_aborted(site, task, there[name])
                updates.append(Update(HEADS + name, None, there[name]))
        elif name in here and _is_ours(site, task, here[name], there.get(name)):
            updates.append(Update(HEADS + name, here[name], there.get(name)))
    return updates


def _by_branch(site: Site, names: set[str]) -> dict[str, Task]:
    """Returns the tasks that have recorded one of these branches, by branch."""
    rows = site.ledger.snapshot.with_branches(names)
    tasks = site.ledger.snapshot.tasks(rows.values())
    by_id = {task.id: task for task in tasks}
    return {name: by_id[task] for name, task in rows.items() if task in by_id}


def _is_ours(site: Site, task: Task, here: str, there: str | None) -> bool:
    """Tells whether our branch of a task has what the remote's lacks, and may be published."""
    if here in (there, task.base):
        return False
    if task.state in JUDGED and here != task.submitted_tip:
        # Nobody has submitted what came after.
        return False
    if task.claim is not None and task.state == "WORK":
        record = records.with_claim(site.state_dir, task.claim)
        if record is None:
            return False
    return there is None or merging.is_ancestor(site.repo, there, here)


def _keep_aborted(site: Site, task: Task, tip: str) -> None:
    """Keeps the branch of a task that was thrown away before it goes from the remote."""
    if task.outcome != "aborted":
        return
    name = f"refs/gittasks/aborted/{task.id}"
    if refs.read(site.repo, name) is None:
        refs.compare_and_swap(site.repo, name, tip, None, "gittasks: aborted")
