"""What every verb of a holder shares: the record of the claim, the branch, the guard, the text."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from gittasks.domain import assignment
from gittasks.domain.errors import GuardBroken, Refused
from gittasks.domain.machine import STAGE
from gittasks.plumbing import objects
from gittasks.workspaces import guard, quarantine, records

if TYPE_CHECKING:
    from gittasks.domain.requests import GuardReport, Speaker
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project


def holds(task: Task, speaker: Speaker) -> bool:
    """Tells whether a speaker holds the present claim of a task, in the role that owns it."""
    return (
        task.claim is not None
        and speaker.claim == task.claim
        and speaker.role == STAGE[task.state].role
    )


def own_record(project: Project, speaker: Speaker) -> records.ClaimRecord | None:
    """Returns this clone's record of the claim that a speaker presents."""
    return records.with_claim(project.state_dir, speaker.claim) if speaker.claim else None


def forget_claim(project: Project, speaker: Speaker, task_id: str) -> None:
    """Drops the record of a claim that its own actor has ended.

    The record of a claim that somebody else ended stays, so that its actor is refused as stale.
    """
    record = records.with_claim(project.state_dir, speaker.claim) if speaker.claim else None
    if record is None or record.task != task_id:
        return
    if project.remote is None:
        records.drop(project.state_dir, record.claim)
    else:
        # Where the others do not agree, the claim goes on.
        records.put_by(project.state_dir, record.claim)


def put_assignment_away(project: Project, speaker: Speaker, task_id: str) -> None:
    """Takes away the assignment of a claim that a verdict has ended: the ledger has it all."""
    record = records.with_claim(project.state_dir, speaker.claim) if speaker.claim else None
    if record is not None and record.assignment and record.task == task_id:
        for path in (project.places.assignment(task_id), project.places.draft(task_id)):
            if os.path.exists(path):
                os.unlink(path)
    forget_claim(project, speaker, task_id)


def require_no_landing(project: Project, task_id: str) -> None:
    """Raises Busy while this clone lands the task."""
    if records.landing(project.state_dir, task_id) is not None:
        from gittasks.workflow import land  # only while a landing is open

        land.require_no_landing(project, task_id)


def branch_tip(project: Project, branch: str) -> str | None:
    """Returns the commit of a branch given by its short name, None where there is none."""
    apart = quarantine.of_tree(project.state_dir, project.repo.worktree or "")
    if apart is not None and apart.branch == branch:
        # Here it moves when what was committed is brought in.
        return quarantine.detached_at(project.repo, apart) or apart.tip
    reader = project.ledger.reader
    found = reader.get(f"refs/heads/{branch}")
    if found is None and project.remote is not None:
        # The work of another clone, as it was fetched last.
        found = reader.get(f"refs/gittasks/incoming/heads/{branch}")
    return found.oid if found else None


def base_name(project: Project) -> str:
    """Returns the base as a name or a commit: where a clone that shares has seen it go on, there."""
    if project.remote is None:
        return project.base
    from gittasks.workflow import work_branches  # only a clone that shares

    return work_branches.base_of(project)


def base_tip(project: Project) -> str:
    """Returns the commit of the base branch; raises Refused while it has none."""
    found = project.ledger.reader.get(base_name(project))
    if found is None:
        name = project.base.removeprefix("refs/heads/")
        raise Refused(
            f"The base branch {name} has no commit yet, so there is nothing to work from.",
            f"Make a first commit on {name}.",
        )
    return found.oid


def has_own_commits(project: Project, task: Task) -> bool:
    """Tells whether the branch of a task has commits that the base does not have."""
    tip = branch_tip(project, task.branch) if task.branch else None
    if tip is None or tip == task.base:
        return False
    base = project.ledger.reader.get(base_name(project))
    if base is None:
        return True
    from gittasks.plumbing import merging

    return not merging.is_ancestor(project.repo, tip, base.oid)


def guard_of(
    project: Project, task: Task, record: records.ClaimRecord | None
) -> GuardReport | None:
    """Returns what the task's branch and tree look like now."""
    if record is not None and record.tree:
        # The repository may have been moved since, and its trees with it.
        record = record._replace(tree=project.places.tree(task.id))
    return guard.report(project.repo, task, record, base_tip(project), reader=project.ledger.reader)


def assignment_key(project: Project, body: bytes) -> str:
    """Returns the object id that names a body in the record of a claim."""
    return objects.object_id(project.repo, "blob", body)


def assignment_of(
    project: Project, task: Task, record: records.ClaimRecord | None
) -> tuple[bytes | None, tuple[str, ...] | None]:
    """Returns text and checks that the holder works from, as far as this clone knows.

    Where the manager has changed the text since, the file gets the new one with the holder's own
    section kept, and what is returned is the old state of affairs, so that the verb is refused.
    """
    if record is None or not record.body_oid:
        return None, None
    body = project.ledger.graph().body(task.id)
    same_checks = tuple(record.checks) == task.checks
    if assignment_key(project, body) == record.body_oid and same_checks:
        return body, task.checks
    if may_record(project):
        hand_out_again(project, task, body, record)
    return body + b"\0", record.checks


def may_record(project: Project) -> bool:
    """Tells whether claims can be recorded from here; in a sandbox only outside."""
    return os.access(os.path.join(project.state_dir, "claims"), os.W_OK)


def read_assignment(
    project: Project, task: Task, record: records.ClaimRecord
) -> assignment.Reading | None:
    """Returns what the holder wrote into ASSIGNMENT.md, None where there is none.

    Whatever was changed above the own part is restored, and the verb is refused.
    """
    live = read_file(project.places.assignment(task.id)) if record.assignment else None
    if live is None:
        return None
    reading = assignment.read_back(given_in(record), live)
    if reading.repaired is not None:
        write_file(project.places.assignment(task.id), reading.repaired)
        heading = STAGE[task.state].heading
        kept = f" What you wrote under {heading} is kept." if heading else ""
        raise GuardBroken(
            "modified-assignment",
            f"The assignment of {task.id} was changed above your own part; it is restored.{kept}",
            "Write only at the end of ASSIGNMENT.md, and submit again.",
            task.id,
        )
    return reading


def hand_out_again(project: Project, task: Task, body: bytes, record: records.ClaimRecord) -> None:
    """Rewrites ASSIGNMENT.md from a changed body, keeping what stands under the own heading."""
    if not record.assignment:
        key = assignment_key(project, body)
        records.write(project.state_dir, record._replace(body_oid=key, checks=task.checks))
        return
    path = project.places.assignment(task.id)
    live = read_file(path)
    own = None if live is None else assignment.read_back(given_in(record), live).section
    given = assignment.dispatch(body, STAGE[task.state])
    heading = len((given.heading or "").encode())
    written = own[heading:].lstrip(b"\n") if own else b""
    write_file(path, given.text + written)
    records.write(
        project.state_dir,
        with_assignment(project, record, given, body)._replace(checks=task.checks),
    )


def given_in(record: records.ClaimRecord) -> assignment.Dispatched:
    """Returns the assignment as the record of a claim remembers it."""
    text = record.assignment.encode("utf-8", "surrogateescape")
    if not record.heading:
        return assignment.Dispatched(text)
    return assignment.Dispatched(text, record.offset, record.heading)


def with_assignment(
    project: Project, record: records.ClaimRecord, given: assignment.Dispatched, body: bytes
) -> records.ClaimRecord:
    """Returns the record with the assignment that was handed out and the body it came from."""
    return record._replace(
        assignment=given.text.decode("utf-8", "surrogateescape"),
        heading=given.heading or "",
        offset=given.offset or 0,
        body_oid=assignment_key(project, body),
    )


def read_file(path: str) -> bytes | None:
    """Returns the bytes of a file, None where there is none; nobody waits for a pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(fd, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(fd).st_mode) else None


def write_file(path: str, data: bytes) -> None:
    """Writes a file beside its place and renames it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    beside = f"{path}.{os.getpid()}.part"
    # The folder is the holder's, who may have put a link there.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(beside, flags, 0o666), "wb") as file:
        file.write(data)
    os.rename(beside, path)
