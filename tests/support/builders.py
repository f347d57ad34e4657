"""Builds values of the domain for the tests, and writes them into real repositories."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from gittasks.domain.events import Created, Event
from gittasks.domain.frontmatter import render
from gittasks.domain.task import Findings, Task
from gittasks.ledger.layout import path_of, root_commit
from gittasks.plumbing import objects, refs
from gittasks.plumbing.repository import Repository

BRANCH = "refs/heads/gittasks"
NOW = 1_800_000_000
LATER = "2099-01-01T00:00:00Z"
ACTOR = objects.Signature("Ada", "ada@example.org", NOW)


def hexadecimal(text: str, digits: int = 32) -> str:
    """Returns digits that follow from the text."""
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def a_task(number: int = 1, **fields: Any) -> Task:
    """Returns a task that verifies, whatever state is asked for."""
    state = fields.get("state", "NEW")
    base: dict[str, Any] = {
        "id": f"{number:06d}",
        "uid": hexadecimal(f"uid {number}"),
        "title": f"Task {number}",
        "entered_at": "2027-01-15T08:00:00Z",
        "created_at": "2027-01-15T08:00:00Z",
        "created_by": "Ada",
    }
    if state == "BLOCKED":
        base["enters"] = "WORK"
    if state == "CLOSED":
        base["outcome"] = "landed"
    if state.startswith("HELD_"):
        base["held_reason"] = "stuck"
    if fields.get("claimed_by"):
        base |= {
            "claim": hexadecimal(f"claim {number}"),
            "claimed_at": "2027-01-15T08:00:00Z",
            "lease_expires": LATER,
        }
    return Task(**{**base, **fields})


def findings(*items: str, state: str = "WORK", round_: int = 1) -> Findings:
    """Returns findings for an author state."""
    return Findings(state, round_, items)  # type: ignore[arg-type]


def a_create(number: int = 1, *, body: bytes = b"Do it.\n", at: int = NOW, **fields: Any) -> Event:
    """Returns the event that writes a task down."""
    title = fields.pop("title", f"Task {number}")
    return Event(
        event_id=hexadecimal(f"create {number}"),
        at=at,
        actor=fields.pop("actor", "Ada"),
        role=fields.pop("role", "manager"),
        host="test",
        change=Created(title, **fields),
        task=f"{number:06d}",
        uid=hexadecimal(f"uid {number}"),
        source=None,
        target="NEW",
        body=body,
    )


def write_ledger(
    repo: Repository,
    tasks: Iterable[Task],
    *,
    bodies: Mapping[str, bytes] | None = None,
    files: Mapping[str, bytes] | None = None,
    parent: str | None = None,
    branch: str = BRANCH,
) -> str:
    """Writes one commit that holds exactly these documents, and moves the branch there."""
    documents = {path_of(task): render(task, (bodies or {}).get(task.id, b"")) for task in tasks}
    documents["project.yaml"] = b'format: 1\nbase: "master"\n'
    documents.update(files or {})
    drafts = {path: objects.draft(repo, "blob", data) for path, data in documents.items()}
    with objects.Reader(repo) as reader:
        tree, trees = objects.graft(
            reader, repo, None, {path: (objects.FILE, one.oid) for path, one in drafts.items()}
        )
    new = [*drafts.values(), *trees]
    if parent is None:
        empty = objects.draft(repo, "tree", b"")
        root = objects.draft(repo, "commit", root_commit(empty.oid))
        new += [empty, root]
        parent = root.oid
    commit = objects.draft(
        repo, "commit", objects.commit_bytes(tree, [parent], ACTOR, ACTOR, b"by hand\n")
    )
    objects.write(repo, [*new, commit])
    refs.compare_and_swap(repo, branch, commit.oid, refs.read(repo, branch), "test")
    return commit.oid
