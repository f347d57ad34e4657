"""What the hooks ask: may these commits join the ledger, and which task is a commit for?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gittasks.domain.errors import Corrupt, NoLedger, Refused
from gittasks.ledger import arrivals, layout
from gittasks.plumbing import merging, refs

if TYPE_CHECKING:
    from gittasks.workflow.project import Project

_SHOWN = 12
_WORDS = 300


def update(project: Project, ref: str, old: str, new: str) -> None:
    """Refuses a push that would take the ledger anywhere but forward, by valid events."""
    if ref != project.branch:
        return
    # A hook that runs before the objects are taken sees them only where the push keeps them.
    project.repo.see_quarantine(project.environ)
    if not new.strip("0"):
        raise Refused("The ledger is not deleted by a push.", "Leave it out of the push.")
    known = old if old.strip("0") else None
    if known is not None and not merging.is_ancestor(project.repo, known, new):
        raise Refused(
            f"The push would throw away events: {new[:_SHOWN]} does not follow {known[:_SHOWN]}.",
            "Run `git tasks sync`, which adds yours to what is there.",
        )
    _require_sizes(project, known, new)
    findings = arrivals.judge(project.ledger, known, new)
    if findings:
        first = findings[0]
        task = f" ({first.task})" if first.task else ""
        words = first.message
        words = words if len(words) <= _WORDS else words[:_WORDS] + "…"
        raise Corrupt(
            f"The commit {first.commit[:_SHOWN]}{task} is no valid event: {words}",
            "Run `git tasks fsck` where it comes from.",
            first.task,
        )


def push(project: Project, ref: str, old: str, new: str) -> None:
    """Refuses what a server with our hooks would refuse, before it travels."""
    # What the tool itself has written needs no second look.
    if refs.read(project.repo, layout.BACKUP) != new:
        update(project, ref, old, new)


def _require_sizes(project: Project, known: str | None, new: str) -> None:
    """Refuses what is too large before any of it is read."""
    revisions = (new,) if known is None else (new, f"^{known}")
    ids = project.repo.git("rev-list", "--objects", "--no-object-names", *revisions, "--").stdout
    asked = "--batch-check=%(objecttype) %(objectsize) %(objectname)"
    for line in os.fsdecode(project.repo.git("cat-file", asked, stdin=ids).stdout).splitlines():
        kind, _, rest = line.partition(" ")
        size, _, oid = rest.partition(" ")
        limit = layout.DOCUMENT_LIMIT if kind == "blob" else layout.MESSAGE_LIMIT
        if size.isdigit() and int(size) > limit and kind != "tree":
            what = "document" if kind == "blob" else "message"
            raise Corrupt(
                f"The {kind} {oid[:_SHOWN]} has {size} bytes; a {what} has at most {limit}.",
                "Run `git tasks fsck` where it comes from.",
            )


def task_of_branch(project: Project) -> str | None:
    """Returns the id of the task whose branch is checked out here, None elsewhere."""
    branch = refs.head(project.repo).branch
    name = (branch or "").removeprefix("refs/heads/")
    if not name.startswith(project.branch_prefix):
        return None
    try:
        # The number in the name may be an old one.
        return project.ledger.snapshot.with_branch(name)
    except NoLedger:
        return None


def complete_message(project: Project, path: str) -> None:
    """Adds the task's trailer to the file that holds the message of a commit in the making."""
    task = task_of_branch(project)
    if task is None:
        return
    from gittasks.workflow.trailer import Cleanup, is_same, with_trailer

    with open(path, "rb") as file:
        text = file.read()
    mark = project.config.get("core.commentString") or project.config.get("core.commentChar", "#")
    mode = project.config.get("commit.cleanup", "default")
    # That is how git tells its hooks that it starts no editor.
    is_seen = project.environ.get("GIT_EDITOR") != ":"
    cleanup = Cleanup(
        b"" if mark == "auto" else os.fsencode(mark or "#"),
        mode == "strip" or (mode == "default" and is_seen),
    )
    template = _template(project)
    # Whoever leaves the template as it is wants no commit, and git sees it by that.
    if template is not None and is_seen and is_same(text, template, cleanup):
        return
    now = with_trailer(text, task, cleanup)
    if now != text:
        with open(path, "wb") as file:
            file.write(now)


def _template(project: Project) -> bytes | None:
    name = project.config.get("commit.template")
    if not name:
        return None
    path = os.path.join(project.repo.worktree or "", os.path.expanduser(name))
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
