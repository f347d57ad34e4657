"""The ledger as programs see it: views of commits, what differs, and signals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gittasks
from gittasks.domain.errors import NoLedger, UnknownTask, UsageFault
from gittasks.plumbing.errors import NotARepository
from gittasks.workflow.opened import Opened
from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(home: Path) -> Path:
    folder = make_repository(home / "project")
    tasks_inprocess(folder, "init")
    tasks_inprocess(folder, "new", "One")
    tasks_inprocess(folder, "new", "Two", "--parent", "1", "--enter", "work")
    tasks_inprocess(folder, "new", "Three", "--parent", "2", "--enter", "work")
    tasks_inprocess(folder, "claim", "3", "--as", "pi", "--no-worktree")
    return folder


@pytest.fixture
def ledger(folder: Path) -> Iterator[Opened]:
    with gittasks.open(str(folder)) as ledger:
        yield ledger


def test_a_view_answers_for_any_spelling_of_an_id(ledger: Opened) -> None:
    view = ledger.graph()
    for spelling in ("1", "#1", "000001", "task/000001"):
        assert view.subtree(spelling) == ("000001", "000002", "000003")
        assert view.children(spelling) == ("000002",)
        assert view.working_children(spelling) == ()
        assert view.working_children(spelling, recursive=True) == ("000003",)
    assert view.ancestors("3") == ("000002", "000001")
    assert view.oid == ledger.tip
    assert view.working_state() == {
        "_tag": "Working", "workerCount": 1, "waiting_on": "agent", "children": {"000002": 1},
    }  # fmt: skip
    assert (view.task("9"), view.subtree("9"), view.can_close("9")) == (
        None, (), ("There is no task 000009.",),
    )  # fmt: skip


def test_a_view_stays_what_it_was_while_the_ledger_goes_on(folder: Path, ledger: Opened) -> None:
    view = ledger.graph()
    tasks_inprocess(folder, "hold", "3", "-m", "Which?")
    assert [task.state for task in view.tasks()] == ["NEW", "WORK", "WORK"]
    assert [task.state for task in ledger.graph().tasks()] == ["NEW", "WORK", "HELD_WORK"]
    assert ledger.graph(at=view.oid or "").tasks() == view.tasks()


def test_a_difference_tells_each_field_and_is_turned_round_backwards(ledger: Opened) -> None:
    found = ledger.diff("HEAD~3")
    assert (found.created, found.gone, found.closed) == (("000003",), (), ())
    assert (found.claimed, found.unclaimed) == (("000003",), ())
    back = ledger.diff("HEAD", "HEAD~3")
    assert (back.created, back.gone) == ((), ("000003",))
    assert (back.claimed, back.unclaimed) == ((), ("000003",))
    assert ledger.diff("HEAD~1").changed["000003"]["claimed_by"] == (None, "pi")


def test_signals_are_the_same_in_one_go_and_in_pieces(ledger: Opened) -> None:
    whole = list(ledger.signals())
    pieces = [*ledger.signals(until="HEAD~2"), *ledger.signals(after="HEAD~2")]
    assert pieces == whole
    assert [one.signal for one in whole if one.task == "000003"] == [
        "task_created", "inbox_added", "task_status_changed", "inbox_cleared", "queue_added",
        "agent_became_working", "task_assigned", "queue_cleared",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spelling", "error"),
    [("master", UnknownTask), ("nothing", UnknownTask), ("2001-01-01", UnknownTask),
     ("", UsageFault), ("--all", UsageFault)],
)  # fmt: skip
def test_what_is_no_commit_of_the_ledger_is_refused(
    ledger: Opened, spelling: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ledger.graph(at=spelling)


def test_without_a_ledger_or_a_repository_there_is_nothing_to_open(home: Path) -> None:
    bare = make_repository(home / "empty")
    with pytest.raises(NoLedger):
        gittasks.open(str(bare)).graph()
    with pytest.raises(NotARepository):
        gittasks.open(str(home))


def test_the_package_brings_nothing_before_it_is_asked() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import gittasks, sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True, cwd=CHECKOUT,
    ).stdout.split()  # fmt: skip
    assert [name for name in told if name.startswith("gittasks")] == ["gittasks"]


def test_a_date_means_the_last_event_until_then(folder: Path, ledger: Opened) -> None:
    tip = git(folder, "rev-parse", "gittasks")
    when = git(folder, "log", "-1", "--format=%cI", "gittasks")
    assert ledger.graph(at=when).oid == tip
    assert ledger.graph(at="2100-01-01").oid == tip
