"""What the page of the board is made of, on ledgers whose times are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gittasks.domain.requests import Abort, Claim, Hold, Request, Submit
from gittasks.domain.task import STATES, Role
from gittasks.plumbing.repository import Repository
from gittasks.workflow.board import board, good_until, newest
from gittasks.workflow.project import Options, Project
from tests.support.boards import a_board
from tests.support.builders import BRANCH, NOW, a_task, hexadecimal, write_ledger
from tests.support.git import git, make_repository
from tests.support.ledgers import a_request, asks, begin, open_ledger, speaks

SECRET = "AKIA" + "Q" * 16
CLAIM, TIP = hexadecimal("a claim"), hexadecimal("a tip", 40)
STEPS: tuple[tuple[int, Request], ...] = (
    (0, a_request(1, labels=("docs",))),
    (10, Submit("000001", "WORK")),
    (20, a_request(2, depends_on=("000001",), priority=0)),
    (30, a_request(3, parent="000002")),
    (40, Abort("000003", "No.")),
    (50, a_request(4)),
    (60, Submit("000004", "WORK")),
    (70, Hold("000004", f"Is /home/mia/plan right, with {SECRET}?")),
    (80, Claim("000001", CLAIM, NOW + 3680, "task/000001", TIP, TIP)),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_repository(tmp_path_factory.mktemp("board") / "project")
    begin(folder).close()
    for at, request in STEPS:
        ledger = open_ledger(folder, NOW + at)
        role: Role = "worker" if isinstance(request, Claim) else "manager"
        ledger.append(asks(request, facts=speaks(role, now=NOW + at)))
        ledger.close()
    return folder


def board_of(folder: Path, at: str | None = None, now: int = NOW + 100) -> dict[str, Any]:
    project = Project.open(Options(str(folder), at=at), clock=lambda: now)
    try:
        return board(project)
    finally:
        project.close()


def test_it_says_where_everything_stands_and_how_it_got_there(folder: Path) -> None:
    found = board_of(folder)
    numbers = found.pop("numbers")
    assert found == {
        "as_of": NOW + 100,
        "ledger": git(folder, "rev-parse", "gittasks").strip(),
        "states": list(STATES),
        "counts": {"NEW": 1, "WORK": 1, "HELD_WORK": 1, "CLOSED": 1},
        "tasks": [
            {
                "id": "000001", "title": "Task 1", "state": "WORK", "since": NOW + 10,
                "labels": ["docs"], "holder": "Ada", "held": NOW + 80, "lease": NOW + 3680,
                "worked": 20, "visits": [[0, NOW, 0], [6, NOW + 10, 0]], "priority": 2,
            },
            {
                "id": "000002", "title": "Task 2", "state": "NEW", "since": NOW + 20,
                "needs": ["000001"], "visits": [[0, NOW + 20, 0]], "priority": 0,
            },
            {
                "id": "000003", "title": "Task 3", "state": "CLOSED", "since": NOW + 40,
                "outcome": "aborted", "parent": "000002",
                "visits": [[0, NOW + 30, 0], [13, NOW + 40, 0]], "priority": 2,
            },
            {
                "id": "000004", "title": "Task 4", "state": "HELD_WORK", "since": NOW + 70,
                "reason": "Is [path] right, with [secret]?", "priority": 2,
                "visits": [[0, NOW + 50, 0], [6, NOW + 60, 0], [12, NOW + 70, 0]],
            },
        ],
        "left_out": 0,
        "ready": [],
        "ready_left_out": 0,
        "inbox": [
            {
                "id": "000004", "reason": "Is [path] right, with [secret]?",
                "command": "git tasks resume 000004", "blocking": 0, "since": NOW + 70,
            },
            {
                "id": "000002", "reason": "not dispatched yet",
                "command": "git tasks submit 000002", "blocking": 0, "since": NOW + 20,
            },
        ],
        "inbox_left_out": 0,
        "graph": {
            "shown": ["000001", "000002", "000004"],
            "edges": [["depends_on", "000001", "000002"]],
        },
        "problems": [],
        "problem_count": 0,
        "names": ["Ada"],
    }  # fmt: skip
    assert (numbers["done"], numbers["in_progress"]["claimed"]) == (
        {"created": 4, "landed": 0, "aborted": 1},
        1,
    )


def test_the_past_is_told_as_it_was_then_whenever_one_asks(folder: Path) -> None:
    then, later = (board_of(folder, "HEAD~4", now) for now in (NOW + 100, NOW + 100_000))
    assert then == later
    assert (then["as_of"], then["counts"]) == (NOW + 40, {"NEW": 1, "WORK": 1, "CLOSED": 1})


def test_it_is_good_until_a_lease_runs_out(folder: Path) -> None:
    assert good_until(board_of(folder)) == NOW + 3680
    late = board_of(folder, now=NOW + 3700)
    assert good_until(late) is None
    assert [row["reason"] for row in late["inbox"]] == [
        "Is [path] right, with [secret]?", "the lease of Ada ran out", "not dispatched yet",
    ]  # fmt: skip


def test_what_cannot_be_read_is_said(home: Path) -> None:
    folder = make_repository(home / "project")
    files = {"tasks/000/000002.md": f"no task of /home/mia {SECRET}\n".encode()}
    repo = Repository.open(str(folder), resolve=(BRANCH,))
    write_ledger(repo, [a_task(1, depends_on=("000002",))], files=files)
    found = board_of(folder)
    assert found["problem_count"] == 1
    assert SECRET not in repr(found)
    assert "/home/mia" not in repr(found)
    # What no event has told has no history.
    assert [(task["id"], task.get("visits")) for task in found["tasks"]] == [("000001", None)]
    assert found["graph"] == {"shown": ["000001"], "edges": []}


def test_of_the_closed_tasks_the_newest_are_kept() -> None:
    tasks = [a_task(number, state="CLOSED", entered_at=f"2027-01-{20 - number}T08:00:00Z")
             for number in range(1, 6)]  # fmt: skip
    tasks.insert(2, a_task(9, entered_at="2020-01-01T08:00:00Z"))
    kept, left_out = newest(tasks, 2)
    assert ([task.id for task in kept], left_out) == (["000001", "000002", "000009"], 3)
    assert newest(tasks, 5) == (tasks, 0)
    assert newest(tasks, 0)[1] == 5


def test_boards_that_are_made_up_look_like_real_ones(folder: Path) -> None:
    real, made = board_of(folder), a_board(20)
    assert list(made) == list(real)
    assert list(made["graph"]) == list(real["graph"])
    assert list(made["inbox"][0]) == list(real["inbox"][0])
    known = {name for task in real["tasks"] for name in task}
    assert {name for task in made["tasks"] for name in task} - known <= {
        "rejections", "cost", "tokens",
    }  # fmt: skip
    assert made["numbers"].keys() <= real["numbers"].keys()
    for name in ("lead", "checks", "done", "spent", "in_progress"):
        assert made["numbers"][name].keys() == real["numbers"][name].keys()
