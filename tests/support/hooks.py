"""Installs the hooks for a test, with a tool that git finds, and commits what no command would."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from gittasks.domain.events import Event
from gittasks.ledger import effect
from gittasks.ledger.ledger import Ledger
from gittasks.ledger.message import encode
from gittasks.plumbing import objects, refs
from tests.support.builders import ACTOR, BRANCH
from tests.support.cli import CHECKOUT, COMMAND, tasks_inprocess
from tests.support.git import IDENTITY


class Said(NamedTuple):
    """How git ended, and what it said on stderr."""

    status: int
    err: str


def tool(folder: Path) -> str:
    """Makes the tool findable and returns the search path; tests that share a home share it."""
    script = folder / "bin" / "git-tasks"
    if not script.exists():
        script.parent.mkdir(parents=True)
        words = " ".join(map(shlex.quote, COMMAND))
        text = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(CHECKOUT))} exec {words} "$@"\n'
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)
    return f"{script.parent}{os.pathsep}{os.environ['PATH']}"


def git_says(folder: Path | str, *args: str, stdin: str = "", **env: str) -> Said:
    """Runs git and returns how it ended, whatever that is."""
    done = subprocess.run(
        ["git", *args],
        cwd=folder,
        env={**os.environ, **IDENTITY, **env},
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        text=True,
    )
    lines = (line.rstrip() for line in done.stderr.splitlines())
    return Said(done.returncode, "\n".join(lines))


def install(folder: Path, *words: str, path: str | None = None) -> None:
    """Puts the hooks in place."""
    env = {} if path is None else {"PATH": path}
    tasks_inprocess(folder, "setup", "hooks", "-q", *words, env=env)


def forged(ledger: Ledger, *events: Event) -> str:
    """Writes events as the tool would if nobody decided about them, and moves the branch there."""
    for event in events:
        assert event.task is not None
        graph = ledger.graph()
        task = graph.get(event.task)
        done = effect.of_task_event(event, task, graph.body(event.task) if task else b"")
        assert done.document is not None
        document = objects.object_id(ledger.repo, "blob", done.files[done.document] or b"")
        by_hand(ledger, encode(event, document), done.files)
    return ledger.tip


def by_hand(
    ledger: Ledger,
    message: bytes,
    files: Mapping[str, bytes | None],
    *,
    parents: Iterable[str] = (),
    mode: str = objects.FILE,
) -> str:
    """Puts a commit on the branch as somebody with git and an editor would."""
    repo = ledger.repo
    above = ledger.reader.commit(ledger.tip)
    blobs = {n: objects.draft(repo, "blob", data) for n, data in files.items() if data is not None}
    rows = {name: (mode, blobs[name].oid) if name in blobs else None for name in files}
    tree, trees = objects.graft(ledger.reader, repo, above.tree, rows)
    text = objects.commit_bytes(tree, [above.oid, *parents], ACTOR, ACTOR, message)
    commit = objects.draft(repo, "commit", text)
    objects.write(repo, [*blobs.values(), *trees, commit])
    refs.compare_and_swap(repo, BRANCH, commit.oid, ledger.tip, "forged")
    ledger.refresh()
    return commit.oid
