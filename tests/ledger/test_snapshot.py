"""The read cache equals what the rules of the domain say of the same documents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gittasks.domain import dependencies, machine
from gittasks.domain.projections import inbox, queue
from gittasks.domain.task import STATES, Attention, Task
from gittasks.domain.task_graph import TaskGraph
from gittasks.ledger.snapshot import Filter, Snapshot
from gittasks.plumbing.objects import Reader
from gittasks.plumbing.repository import Repository
from tests.support.builders import LATER, NOW, a_task, write_ledger
from tests.support.git import make_repository

TIME = "2027-01-15T08:00:00Z"


@pytest.fixture
def repo(home: Path) -> Repository:
    return Repository.open(str(make_repository(home / "project")))


@pytest.fixture
def reader(repo: Repository) -> Iterator[Reader]:
    with Reader(repo) as reader:
        yield reader


def snapshot_of(repo: Repository, reader: Reader) -> Snapshot:
    return Snapshot(os.path.join(repo.common_dir, "gittasks"), reader)


def assert_equals_rules(snapshot: Snapshot, tasks: dict[str, Task], now: int = NOW) -> None:
    graph = TaskGraph(tasks)
    moment = "2027-01-15T08:00:00Z"
    assert {t.id: t for t in snapshot.all_tasks()} == tasks
    assert dict(snapshot.listing(("id", "blocking"), Filter(include_closed=True))) == {
        task: dependencies.blocking(graph, task) for task in tasks
    }
    assert dict(snapshot.listing(("id", "open_deps"))) == {
        t.id: len(dependencies.open_dependencies(graph, t.depends_on))
        for t in tasks.values()
        if t.is_open
    }
    rows = queue.queue(graph, tasks.values())
    assert [(r.rank, r.priority, r.blocking, r.id) for r in snapshot.ready()] == rows
    assert snapshot.ready_count() == len(rows)
    waiting = inbox.inbox(graph, tasks.values(), NOW)
    assert [tuple(r) for r in snapshot.inbox(moment)] == [tuple(r[:4]) for r in waiting]
    assert snapshot.inbox_count(moment) == len(waiting)
    assert snapshot.counts() == {
        state: n for state in STATES if (n := sum(t.state == state for t in tasks.values()))
    }
    assert snapshot.last_id() == max(map(int, tasks), default=0)
    for task, value in tasks.items():
        assert snapshot.dependents(task) == graph.dependents(task)
        assert snapshot.children(task) == graph.children(task)
        assert snapshot.superseders(task) == graph.superseders(task)
        assert snapshot.with_uid(value.uid) == task
    assert snapshot.children(None) == graph.children(None)


def a_shape(number: int, count: int) -> st.SearchStrategy[Task | None]:
    others = st.integers(1, count).filter(lambda n: n != number).map(lambda n: f"{n:06d}")

    @st.composite
    def task(draw: st.DrawFn) -> Task | None:
        if draw(st.integers(0, 9)) == 0:
            return None
        state = draw(st.sampled_from(["CLOSED", "BLOCKED", *STATES]))
        fields: dict[str, Any] = {
            "state": state,
            "depends_on": tuple(sorted(draw(st.sets(others, max_size=3)))),
            "supersedes": draw(st.none() | others),
            "parent": draw(st.none() | others),
            "priority": draw(st.integers(0, 4)),
            "entered_at": draw(st.sampled_from([TIME, "2027-01-01T00:00:00Z"])),
        }
        if state == "CLOSED":
            fields["outcome"] = draw(st.sampled_from(["landed", "aborted"]))
        else:
            fields["assignee"] = draw(st.sampled_from([None, "pi", "cy"]))
            if draw(st.booleans()):
                fields["attention"] = (Attention("e", "note", "look"),)
        if machine.STAGE[state].claimable and draw(st.booleans()):
            fields["claimed_by"] = "pi"
            fields["lease_expires"] = draw(st.sampled_from([TIME, LATER]))
        if state == "NEW" and draw(st.booleans()):
            fields["proposed_by"] = "pi"
        return a_task(number, **fields)

    return task()


@st.composite
def steps(draw: st.DrawFn) -> list[dict[str, Task]]:
    count = 7
    result: list[dict[str, Task]] = []
    tasks: dict[str, Task] = {}
    for _ in range(3):
        tasks = dict(tasks)
        numbers = draw(st.sets(st.integers(1, count), min_size=1))
        for number in sorted(numbers if result else range(1, count + 1)):
            made = draw(a_shape(number, count))
            tasks.pop(f"{number:06d}", None)
            if made is not None:
                tasks[made.id] = made
        result.append(tasks)
    return result


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps())
def test_every_refresh_gives_what_the_rules_say(
    repo: Repository, reader: Reader, steps: list[dict[str, Task]]
) -> None:
    warm = snapshot_of(repo, reader)
    for tasks in steps:
        tip = write_ledger(repo, tasks.values())
        warm.refresh(tip)
        assert_equals_rules(warm, tasks)
    warm.close()
