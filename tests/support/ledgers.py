"""Opens ledgers with a fixed clock and identity, and asks things of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gittasks.domain import config
from gittasks.domain.decide import decide_all
from gittasks.domain.events import Event
from gittasks.domain.requests import Create, Facts, Request, Speaker
from gittasks.domain.task import Role
from gittasks.domain.task_graph import Graph
from gittasks.ledger.ledger import Ledger
from gittasks.plumbing.repository import Repository
from tests.support.builders import BRANCH, NOW, hexadecimal


def open_ledger(path: Path | str, now: int = NOW, **options: Any) -> Ledger:
    """Returns the ledger of a repository as a fresh process would see it."""
    repo = Repository.open(str(path), resolve=(BRANCH,))
    return Ledger(
        repo,
        state_dir=os.path.join(repo.common_dir, "gittasks"),
        host="test",
        clock=lambda: now,
        identity=lambda: ("Ada", "ada@example.org"),
        **options,
    )


def begin(path: Path | str, **options: Any) -> Ledger:
    """Returns a ledger that has just been initialised."""
    ledger = open_ledger(path, **options)
    ledger.create(config.Project(base="master"), "Ada")
    return ledger


def speaks(role: Role | None = "manager", claim: str | None = None, now: int = NOW) -> Facts:
    """Returns the facts of a decision."""
    return Facts(now, "test", Speaker("Ada", role, claim))


def asks(*requests: Request, facts: Facts | None = None) -> Callable[[Graph], Sequence[Event]]:
    """Returns what an append wants: the events that carry the requests out."""
    return lambda graph: decide_all(graph, requests, facts or speaks())


def a_request(number: int = 1, **fields: Any) -> Create:
    """Returns the request that writes a task down."""
    return Create(f"Task {number}", hexadecimal(f"uid {number}"), **fields)
