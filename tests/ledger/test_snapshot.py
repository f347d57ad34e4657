"""The read cache equals what the rules of the domain say of the same documents."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gittasks.domain import dependencies, machine
from gittasks.domain.errors import Corrupt
from gittasks.domain.frontmatter import render
from gittasks.domain.projections import inbox, queue
from gittasks.domain.task import STATES, Attention, Task
from gittasks.domain.task_graph import TaskGraph
from gittasks.ledger.snapshot import Filter, Snapshot
from gittasks.plumbing.objects import Reader
from gittasks.plumbing.repository import Repository
from tests.support.builders import BRANCH, LATER, NOW, a_task, write_ledger
from tests.support.git import git, make_repository

TIME = "2027-01-15T08:00:00Z"


@pytest.fixture
def repo(home: Path) -> Repository:
    return Repository.open(str(make_repository(home / "project")))


@pytest.fixture
def reader(repo: Repository) -> Iterator[Reader]:
    with Reader(repo) as reader:
        yield reader


def snapshot_of(repo: Repository, reader: Reader) -> Snapshot:
    return Snapshot(os.path.join(repo.common_dir, "gittasks"), lambda: reader)


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
    assert snapshot.used_ids() == frozenset(map(int, tasks))
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
            "supersedes": draw(others) if draw(st.integers(0, 3)) == 0 else None,
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
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
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


def a_ledger(repo: Repository, count: int = 3) -> str:
    return write_ledger(repo, [a_task(n) for n in range(1, count + 1)])


def ids(snapshot: Snapshot) -> list[str]:
    return [task.id for task in snapshot.all_tasks()]


def test_an_answer_at_the_same_commit_starts_no_git(repo: Repository) -> None:
    tip = a_ledger(repo)
    with Reader(repo) as reader:
        snapshot_of(repo, reader).refresh(tip)
    before = repo.calls
    with Reader(repo) as reader:
        again = snapshot_of(repo, reader)
        again.refresh(tip)
        assert ids(again) == ["000001", "000002", "000003"]
        assert again.text("project.yaml") == b'format: 1\nbase: "master"\n'
    assert repo.calls == before


@pytest.mark.parametrize(
    "damage",
    [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 5000],
    ids=["empty", "text", "garbage"],
)
def test_a_damaged_file_is_built_anew(repo: Repository, reader: Reader, damage: bytes) -> None:
    tip = a_ledger(repo)
    path = Path(repo.common_dir, "gittasks", "cache.db")
    path.parent.mkdir()
    path.write_bytes(damage)
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(tip)
    assert ids(snapshot) == ["000001", "000002", "000003"]
    assert path.read_bytes()[:15] == b"SQLite format 3"


def test_a_file_that_is_damaged_in_the_middle_still_answers(
    repo: Repository, reader: Reader
) -> None:
    tip = a_ledger(repo, 200)
    snapshot_of(repo, reader).refresh(tip)
    path = Path(repo.common_dir, "gittasks", "cache.db")
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(tip)
    assert len(ids(snapshot)) == 200
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM documents").fetchone() == (200,)


def test_a_file_of_another_version_is_built_anew(repo: Repository, reader: Reader) -> None:
    tip = a_ledger(repo)
    snapshot_of(repo, reader).refresh(tip)
    path = os.path.join(repo.common_dir, "gittasks", "cache.db")
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE meta SET version = 0")
        db.execute("DELETE FROM documents")
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(tip)
    assert len(ids(snapshot)) == 3


def test_a_folder_that_cannot_be_made_only_costs_time(repo: Repository, reader: Reader) -> None:
    tip = a_ledger(repo)
    Path(repo.common_dir, "gittasks").write_text("in the way")
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(tip)
    later = write_ledger(repo, [a_task(7)], parent=tip)
    first = ids(snapshot)
    snapshot.refresh(later)
    assert (first, ids(snapshot)) == (["000001", "000002", "000003"], ["000007"])


def test_a_full_disk_only_costs_time(repo: Repository) -> None:
    tip = a_ledger(repo, 60)
    pid = os.fork()
    if not pid:
        status = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
            with Reader(repo) as reader:
                snapshot = snapshot_of(repo, reader)
                snapshot.refresh(tip)
                status = 0 if len(ids(snapshot)) == 60 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_two_commits_can_be_read_from_one_file_at_once(repo: Repository, reader: Reader) -> None:
    old = a_ledger(repo)
    new = write_ledger(repo, [a_task(1, title="New")], parent=old)
    one, two = snapshot_of(repo, reader), snapshot_of(repo, reader)
    one.refresh(old)
    two.refresh(new)
    for _ in range(3):
        assert (len(ids(one)), len(ids(two))) == (3, 1)


def test_a_commit_that_is_gone_is_no_obstacle(repo: Repository) -> None:
    tip = a_ledger(repo)
    lost = write_ledger(repo, [a_task(9)], parent=tip)
    with Reader(repo) as reader:
        snapshot_of(repo, reader).refresh(lost)
    git(repo.common_dir, "update-ref", BRANCH, tip)
    git(repo.common_dir, "reflog", "expire", "--expire=now", "--all")
    git(repo.common_dir, "gc", "-q", "--prune=now")
    with Reader(repo) as reader:
        snapshot = snapshot_of(repo, reader)
        snapshot.refresh(tip)
        assert ids(snapshot) == ["000001", "000002", "000003"]


def test_a_commit_of_something_else_is_refused(repo: Repository, reader: Reader) -> None:
    with pytest.raises(Corrupt, match="is not of a ledger"):
        snapshot_of(repo, reader).refresh(git(repo.common_dir, "rev-parse", "HEAD"))


def test_bad_documents_are_listed_and_stop_nobody(repo: Repository, reader: Reader) -> None:
    good = render(a_task(2), b"")
    tip = write_ledger(
        repo,
        [a_task(1)],
        files={
            "tasks/0000/000002.md": b"nothing\n",
            "tasks/0000/000003.md": good,
            "closed/0000/000004.md": render(a_task(4), b""),
            "closed/0000/000001.md": render(a_task(1, state="CLOSED"), b""),
            "tasks/notes.txt": b"hello\n",
            "README": b"hello\n",
        },
    )
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(tip)
    assert ids(snapshot) == ["000001"]
    assert [(p.path, p.task, p.message.splitlines()[0]) for p in snapshot.problems()] == [
        ("README", None, "The file README does not belong in a ledger."),
        ("closed/0000/000001.md", "000001", "There are two documents of task 000001."),
        (
            "closed/0000/000004.md",
            "000004",
            "The document closed/0000/000004.md stands in the wrong folder: it is NEW.",
        ),
        ("tasks/0000/000002.md", "000002", "The document tasks/0000/000002.md does not verify."),
        ("tasks/0000/000003.md", "000003", "The document tasks/0000/000003.md does not verify."),
        ("tasks/notes.txt", None, "The file tasks/notes.txt does not belong in a ledger."),
    ]
    assert snapshot.problem("000001") is None
    assert (problem := snapshot.problem("000002")) is not None
    assert problem.lines[0][0] == 1
    assert snapshot.last_id() == 4
    assert snapshot.used_ids() == {1, 2, 3, 4}


def test_a_document_that_hid_another_gives_way_when_it_goes(
    repo: Repository, reader: Reader
) -> None:
    closed = render(a_task(1, state="CLOSED"), b"")
    both = write_ledger(repo, [a_task(1)], files={"closed/0000/000001.md": closed})
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(both)
    first = snapshot.task("000001")
    snapshot.refresh(write_ledger(repo, [a_task(1, state="CLOSED")], parent=both))
    second = snapshot.task("000001")
    assert first is not None
    assert second is not None
    assert (first.state, second.state, snapshot.problems()) == ("NEW", "CLOSED", ())


def test_lists_are_cut_and_sorted_as_asked(repo: Repository, reader: Reader) -> None:
    tasks = [
        a_task(1, priority=4, labels=("ui", "x"), title="b"),
        a_task(2, priority=0, state="WORK", claimed_by="pi", title="a", parent="000001"),
        a_task(3, state="BLOCKED", depends_on=("000001",), assignee="pi", labels=("u",), title="C"),
        a_task(4, state="CLOSED", title="d"),
    ]
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(write_ledger(repo, tasks))

    def asked(sort: str = "id", limit: int | None = None, **filters: Any) -> str:
        where = Filter(**filters)
        rows = snapshot.listing(("id",), where, sort=sort, limit=limit)
        assert limit is not None or snapshot.count(where) == len(rows)
        return "".join(row[0][-1] for row in rows)

    assert [
        asked(),
        asked(include_closed=True),
        asked(states=("WORK", "CLOSED")),
        asked(roles=("worker",)),
        asked(mine="pi"),
        asked(labels=("ui",)),
        asked(labels=("u",)),
        asked(parent="000001"),
        asked(roots=True),
        asked(blocked=True),
        asked(blocked=False),
        asked(claimed=True),
        asked(claimed=False),
        asked("priority"),
        asked("title"),
        asked("blocking"),
        asked("state", 2),
    ] == ["123", "1234", "24", "2", "23", "1", "3", "2", "13", "3", "12", "2", "13",
          "231", "213", "123", "31"]  # fmt: skip
    with pytest.raises(ValueError, match="no column 'body'"):
        snapshot.listing(("body",))


def test_the_queue_of_a_role_has_only_its_states(repo: Repository, reader: Reader) -> None:
    tasks = [
        a_task(1, state="WORK"),
        a_task(2, state="CHECK"),
        a_task(3, state="PLAN_REVIEW", assignee="cy"),
        a_task(4, state="WORK_REVIEW"),
        a_task(5, state="DESIGN", claimed_by="pi"),
    ]
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(write_ledger(repo, tasks))

    def asked(*roles: str, limit: int | None = None, assignee: str | None = None) -> list[str]:
        return [row.id for row in snapshot.ready(roles or None, limit, assignee)]

    assert [
        asked(),
        asked(limit=1),
        asked(assignee="pi"),
        asked("worker"),
        asked("reviewer"),
        asked("reviewer", limit=1),
        asked("reviewer", assignee="pi"),
        asked("checker"),
        asked("worker", "checker", "designer"),
        asked("manager"),
    ] == [
        ["000004", "000001", "000003"],
        ["000004"],
        ["000004", "000001"],
        ["000001"],
        ["000004", "000003"],
        ["000004"],
        ["000004"],
        ["000002"],
        ["000002", "000001"],
        [],
    ]
    assert (snapshot.ready_count(), snapshot.ready_count(None, "pi")) == (3, 2)
    assert (snapshot.ready_count(("reviewer",)), snapshot.ready_count(("reviewer",), "pi")) == (
        2,
        1,
    )


def test_a_ring_made_by_hand_is_counted_all_the_same(repo: Repository, reader: Reader) -> None:
    tasks = {
        t.id: t
        for t in (
            a_task(1, state="BLOCKED", depends_on=("000002",)),
            a_task(2, state="BLOCKED", depends_on=("000001",)),
            a_task(3, state="BLOCKED", depends_on=("000001",)),
            a_task(4),
        )
    }
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(write_ledger(repo, tasks.values()))
    assert_equals_rules(snapshot, tasks)


def test_unknown_ids_give_nothing(repo: Repository, reader: Reader) -> None:
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(a_ledger(repo))
    assert (
        snapshot.task("999999"),
        snapshot.task("nonsense"),
        snapshot.blob("999999"),
        snapshot.with_uid("x"),
        snapshot.blocking("999999"),
        snapshot.open_dependencies("999999"),
        snapshot.text("template.md"),
        snapshot.tasks(["000002", "999999", "000001"])[0].id,
    ) == (None, None, None, None, 0, 0, None, "000002")


def test_halves_of_characters_stop_no_list(repo: Repository, reader: Reader) -> None:
    odd = a_task(1, state="WORK", claimed_by="a\udce9", labels=("caf\udce9",), assignee="a\udce9")
    snapshot = snapshot_of(repo, reader)
    snapshot.refresh(write_ledger(repo, [odd, a_task(2)]))
    assert [snapshot.task("000001"), *ids(snapshot)] == [odd, "000001", "000002"]
    assert snapshot.listing(("id", "claimed_by"), Filter(labels=("caf\udce9",))) == [
        ("000001", "a?")
    ]
    snapshot.refresh(write_ledger(repo, [odd, a_task(3)]))
    assert ids(snapshot) == ["000001", "000003"]
