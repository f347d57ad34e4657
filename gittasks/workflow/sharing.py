"""What a clone that shares does beside the ledger: which remote, which branches, what follows here.

A clone shares when `gittasks.remote` is set. Until then nothing is fetched and nothing is pushed.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gittasks.domain.errors import Busy, GittasksError, Refused, SyncRefused, UsageFault
from gittasks.domain.events import Rejected
from gittasks.ledger import layout, leases
from gittasks.ledger.shared import Shared, SyncLock
from gittasks.plumbing import merging, refs, remote
from gittasks.plumbing.errors import GitError
from gittasks.plumbing.remote import Update
from gittasks.workflow.site import LOCK_TIMEOUT
from gittasks.workspaces import branch as branches
from gittasks.workspaces import records, worktree

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from gittasks.domain.events import Event
    from gittasks.domain.replayed import Lost, Renaming, Replayed
    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph
    from gittasks.ledger.writing import Appended
    from gittasks.workflow.site import Publishing, Site
    from gittasks.workspaces.records import ClaimRecord

HEADS = "refs/heads/"
LEASES = "refs/gittasks/leases/*"
_SHOWN_COMMITS = 5
_NO_PATIENCE = 0.05
_JUDGED = ("CHECK", "WORK_REVIEW", "MANAGER_REVIEW")
"""The states in which others look at exactly what was submitted."""


def shared_of(site: Site, *, timeout: float | None = None) -> Shared:
    """Returns the ledger with the remote that this clone shares it through."""
    assert site.remote is not None
    return Shared(site.ledger, site.remote, timeout=timeout)


def choose(site: Site, wanted: str | None = None) -> str | None:
    """Returns the remote to share through: the one named, the one set, origin, or the only one."""
    names = remote.names(site.repo)
    if wanted is not None:
        if wanted not in names:
            raise UsageFault(
                f"There is no remote {wanted!r} in this clone.",
                f"Name one of {', '.join(names)}."
                if names
                else f"Add it: git remote add {wanted} URL.",
            )
        return wanted
    if site.remote is not None:
        return site.remote
    if "origin" in names:
        return "origin"
    return names[0] if len(names) == 1 else None


def begin(site: Site, name: str) -> None:
    """Makes this clone share its ledger through a remote."""
    if site.remote != name:
        site.repo.git("config", "--local", "gittasks.remote", name)
        keep_from_mirroring(site, name)
        site.repo.forget_config()


@contextmanager
def beginning(site: Site, name: str) -> Iterator[None]:
    """Makes this clone share its ledger through a remote, unless the block ends in an error."""
    before = site.remote
    site.repo.git("config", "--local", "gittasks.remote", name)
    site.repo.forget_config()
    try:
        yield
    except BaseException:
        if before is None:
            site.repo.git("config", "--local", "--unset-all", "gittasks.remote", check=False)
        else:
            site.repo.git("config", "--local", "gittasks.remote", before)
        site.repo.forget_config()
        raise


def keep_from_mirroring(site: Site, name: str) -> None:
    """Excepts what is written here from a fetch of the user's that overwrites and prunes it."""
    key = f"remote.{name}.fetch"
    known = site.config.get_all(key)
    ours = (site.ledger.branch, f"{HEADS}{site.branch_prefix}*", "refs/gittasks/*")
    targets = [one.partition(":")[2].partition("*")[0] for one in known if ":" in one]
    for pattern in ours:
        is_written = any(target and pattern.startswith(target) for target in targets)
        if is_written and f"^{pattern}" not in known:
            site.repo.git("config", "--local", "--add", key, f"^{pattern}")
            site.repo.forget_config()


def has_shared(site: Site) -> bool:
    """Tells whether this clone has ever spoken with a remote; costs no process."""
    return os.path.exists(os.path.join(site.state_dir, "sync.flk"))


def globs(site: Site) -> tuple[str, ...]:
    """Returns the patterns of the refs that a sync fetches beside the ledger."""
    return (f"{HEADS}{site.branch_prefix}*", LEASES)


def patience(site: Site) -> float:
    """Returns how many seconds to wait for another sync of this clone."""
    return site.config.get_seconds("gittasks.lockTimeout", LOCK_TIMEOUT)


def pull(site: Site, *, timeout: float | None = None) -> None:
    """Takes over what others did, with the branches of tasks; raises Busy, or SyncRefused."""
    from gittasks.ledger import sync

    done = sync.sync(
        shared_of(site, timeout=timeout),
        to_push(site),
        names=(site.base,),
        globs=globs(site),
        push=False,
        patience=patience(site),
        followed=lambda replayed: follow(site, replayed),
    )
    site.told += done.notes
    if done.pending:
        # What an earlier command could not publish goes along at the end of this one.
        site.ledger.has_written = True


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
    raise SyncRefused(
        f"Your {name} has commits that {site.remote} has not, and a landing would publish"
        f" them: {shown}.",
        f"Publish them yourself (git push {site.remote} {name}), or move them to another branch.",
    )


def publish(
    site: Site,
    decide: Callable[[Graph], Sequence[Event]],
    also: Callable[[], Sequence[refs.Change]],
    how: Publishing,
) -> Appended:
    """Appends events that count only when the remote has them; raises and leaves nothing else."""
    from gittasks.ledger import publishing

    try:
        return publishing.append(
            shared_of(site),
            decide,
            also=also,
            updates=how.updates,
            optional=how.optional,
            names=how.names,
            globs=how.globs,
            fresh=how.fresh,
            patience=patience(site),
            followed=lambda replayed: follow(site, replayed),
        )
    except publishing.NotFollowed as half:
        site.told += (f"The remote has it, but not all could follow here: {half.error}",)
        return half.appended


# ------------------------------------------------------------------------------- work branches


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
        shared_of(site).fetch(globs=(f"{HEADS}{task.branch}*",))
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
        raise shared_of(site).told(error) from None


def follow_branch(site: Site, task: Task) -> None:
    """Moves our branch of a task to where it was fetched, where that is merely further on."""
    if task.branch is None:
        return
    complete_history(site, task)
    fetched = fetched_tip(site, task.branch)
    here = refs.read(site.repo, HEADS + task.branch)
    if fetched is None or fetched == here:
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
    if task.state in _JUDGED and here != task.submitted_tip:
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


# ------------------------------------------------------------------------ what a replay leaves


def follow(site: Site, replayed: Replayed) -> None:
    """Carries out here what a replay has decided about our claims and our numbers, and tells it."""
    told = []
    for renaming in replayed.renamed:
        told += _renamed(site, renaming)
    for lost in replayed.lost:
        told.append(_set_aside(site, lost))
    told += replayed.notes
    claims = {one.claim for one in replayed.lost}
    for event, reason in heard(replayed):
        if event.kind == "claim" and event.claim in claims:
            continue
        what = f"{event.kind} of {event.task}" if event.task else event.kind
        told.append(f"Your {what} was not applied: {reason}.")
    told += _held_again(site, replayed)
    site.told += tuple(told)


def held_here(site: Site) -> tuple[ClaimRecord, ...]:
    """Returns the records of the claims that somebody in this clone holds now."""
    found = records.all(site.state_dir)
    graph = site.ledger.graph() if found else None
    if graph is None:
        return ()
    tasks = {one.claim: graph.get(graph.with_uid(one.uid) or "") for one in found}
    return tuple(one for one in found if (t := tasks[one.claim]) and t.claim == one.claim)


def ended_elsewhere(
    site: Site, held: Sequence[ClaimRecord], lost: Collection[str]
) -> Iterator[str]:
    """Yields a sentence for each claim of this clone that others have ended meanwhile."""
    graph = site.ledger.graph() if held else None
    for record in held:
        task = None if graph is None else graph.get(graph.with_uid(record.uid) or "")
        if task is None or task.claim == record.claim or record.claim in lost:
            continue
        state = f"{task.state}, {task.outcome}" if task.outcome else task.state
        holder = f", held by {task.claimed_by}" if task.claimed_by else ""
        yield (
            f"The claim of {record.actor} on {task.id} was ended elsewhere: the task is at"
            f" {state}{holder}."
        )


def settle(site: Site) -> None:
    """Forgets the claims of this clone whose end the remote has."""
    ended = records.ended(site.state_dir)
    graph = site.ledger.graph() if ended else None
    if graph is None or graph.tip != shared_of(site).copy:
        return
    for record in ended:
        task = graph.get(graph.with_uid(record.uid) or "")
        if task is None or task.claim != record.claim:
            records.drop(site.state_dir, record.claim)


def heard(replayed: Replayed) -> list[tuple[Event, str]]:
    """Returns what was not applied and has to be told, with the reasons; not what is so anyway."""
    claims = {one.claim for one in replayed.lost}
    quiet = {
        step.event.event_id
        for step in replayed.steps
        if isinstance(step.event.change, Rejected) and step.event.change.quiet
    }
    return [
        (event, reason)
        for event, reason in replayed.rejected
        if (event.kind == "claim" and event.claim in claims)
        or (event.event_id not in quiet and event.kind != "unblock")
    ]


def finish(site: Site) -> None:
    """Does here what a sync that was killed has left to do."""
    from gittasks.ledger import aftermath

    try:
        with SyncLock(site.state_dir, _NO_PATIENCE):
            aftermath.finish(site.ledger, lambda replayed: follow(site, replayed))
    except Busy:
        # Whoever syncs now does it first.
        pass


def _renamed(site: Site, renaming: Renaming) -> list[str]:
    told = []
    if renaming.branch is not None:
        old, new = renaming.branch
        with worktree.locked(site.places, patience(site)):
            if branches.rename_branch(site.repo, old, new):
                told.append(f"The branch {old} of {renaming.new} is {new} now.")
    if renaming.old == renaming.new:
        return told
    places = site.places
    folder = os.path.basename(places.folder(renaming.old))
    if os.path.lexists(places.folder(renaming.old)):
        places.keep_name(renaming.new, folder)
        newcomer = site.ledger.graph().get(renaming.old)
        if newcomer is not None:
            places.keep_name(renaming.old, f"{renaming.old}-{newcomer.uid[:4]}")
    records.renumber(site.state_dir, renaming.uid, renaming.new)
    records.note_number(site.state_dir, renaming.old, renaming.new, renaming.uid)
    task = site.ledger.graph().get(renaming.new)
    was_taken = task is not None and renaming.old in task.former_ids
    why = "others had taken the number" if was_taken else "others had created it with the same key"
    told.append(f"The task {renaming.old} of this clone is {renaming.new} now: {why}.")
    return told


def _held_again(site: Site, replayed: Replayed) -> list[str]:
    """Gives back the claims that had ended here, and go on because that was not applied."""
    told = []
    graph = site.ledger.graph()
    for event, _reason in replayed.rejected:
        task = None if event.claim is None else graph.get(graph.with_uid(event.uid or "") or "")
        if task is None or task.claim is None or task.claim != event.claim:
            continue
        record = records.bring_back(site.state_dir, task.claim, task.id)
        if record is not None:
            told.append(
                f"{record.actor} still holds {task.id}:"
                f" `git tasks start {task.id}` hands it out again."
            )
    return told


def _set_aside(site: Site, lost: Lost) -> str:
    """Gives the work of a lost claim a name of its own; tree and commits stay."""
    name = f"{lost.branch}-lost-{lost.claim[:8]}"
    stays = ""
    record = records.with_claim(site.state_dir, lost.claim)
    if record is not None and record.state != "WORK":
        # A review changes nothing: what stands there is the work of whoever submitted it.
        return f"The claim of {lost.actor} on {lost.task} was lost: {lost.reason}."
    try:
        with worktree.locked(site.places, patience(site)):
            if branches.rename_branch(site.repo, lost.branch, name):
                stays = f" What was done stays on the branch {name}."
    except (GittasksError, GitError) as error:
        stays = f" Its branch could not be renamed: {error}"
    return f"The claim of {lost.actor} on {lost.task} was lost: {lost.reason}.{stays}"


def require_remote(site: Site, wanted: str | None = None) -> str:
    """Returns the remote to sync with; raises SyncRefused where it is not clear which."""
    name = choose(site, wanted)
    if name is None:
        names = remote.names(site.repo)
        raise SyncRefused(
            "This clone has several remotes, and none is origin."
            if names
            else "This clone has no remote.",
            "Choose one: git config gittasks.remote NAME."
            if names
            else "Add one: git remote add origin URL.",
        )
    return name
