"""`git tasks timeline` and `git tasks stats` on a ledger whose times are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gittasks.domain.requests import Abort, Hold, Request, Resume, Submit
from gittasks.domain.task import Cost
from gittasks.domain.times import seconds_of
from tests.support.cli import tasks_inprocess
from tests.support.git import git, make_repository
from tests.support.hooks import by_hand
from tests.support.ledgers import a_request, asks, begin, open_ledger, speaks

START = seconds_of("2026-11-30T08:00:00Z")
HOUR = 3600
STEPS: tuple[tuple[int, Request], ...] = (
    (0, a_request(1)),
    (60, Submit("000001", "WORK")),
    (120, a_request(2)),
    (660, Hold("000001", "Which?", cost=Cost("WORK", "one", 300, 0.25, 1000))),
    (HOUR, Resume("000001")),
    (24 * HOUR, Abort("000002", "No.")),
    (25 * HOUR, a_request(3)),
)


def _written(folder: Path) -> Path:
    make_repository(folder)
    begin(folder, now=START).close()
    for at, request in STEPS:
        ledger = open_ledger(folder, START + at)
        ledger.append(asks(request, facts=speaks(now=START + at)))
        ledger.close()
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks that have moved, one that is new, over 25 hours."""
    return _written(tmp_path_factory.mktemp("timeline") / "project")


@pytest.fixture
def empty(home: Path) -> Path:
    folder = make_repository(home / "empty")
    begin(folder).close()
    return folder


def commits(project: Path) -> list[str]:
    return git(project, "log", "--format=%H", "--reverse", "gittasks").split()[-len(STEPS) :]


def row(
    at: str, event: str, source: str | None, target: str, seconds: int | None
) -> dict[str, Any]:
    return {
        "at": at,
        "event": event,
        "from": source,
        "to": target,
        "actor": "Ada",
        "role": "manager",
        "seconds": seconds,
        "cost": None,
    }


# Timeline.


def test_the_transitions_of_one_task(project: Path) -> None:
    oids = commits(project)
    found = tasks_inprocess(project, "timeline", "1", "--json").json()
    assert found["kind"] == "timeline"
    assert found["data"] == [
        {**row("2026-11-30T08:00:00Z", "create", None, "NEW", None), "commit": oids[0]},
        {**row("2026-11-30T08:01:00Z", "submit", "NEW", "WORK", 60), "commit": oids[1]},
        {**row("2026-11-30T08:11:00Z", "hold", "WORK", "HELD_WORK", 600),
         "cost": 0.25, "commit": oids[3]},
        {**row("2026-11-30T09:00:00Z", "resume", "HELD_WORK", "WORK", 2940), "commit": oids[4]},
    ]  # fmt: skip


def test_the_timeline_of_a_task_ends_with_a_bar_for_each_state(project: Path) -> None:
    one, two, _, four, five = (oid[:10] for oid in commits(project)[:5])
    # It has stood at WORK for ten minutes, and again for the last 24 hours.
    assert tasks_inprocess(project, "timeline", "1", "--at", "HEAD").out == (
        f"2026-11-30 08:00  create  - -> NEW                          {one}  Ada (manager)\n"
        f"2026-11-30 08:01  submit  NEW -> WORK        1 min          {two}  Ada (manager)\n"
        f"2026-11-30 08:11  hold    WORK -> HELD_WORK  10 min  $0.25  {four}  Ada (manager)\n"
        f"2026-11-30 09:00  resume  HELD_WORK -> WORK  49 min         {five}  Ada (manager)\n"
        "\n"
        "NEW        1 min   #\n"
        f"WORK       24 h    {'#' * 40}>\n"
        "HELD_WORK  49 min  #\n"
    )


def test_what_was_later_is_not_in_an_earlier_timeline(project: Path) -> None:
    at = commits(project)[1]
    found = tasks_inprocess(project, "timeline", "1", "--at", at, "--json").json()
    assert [step["event"] for step in found["data"]] == ["create", "submit"]


def test_the_transitions_of_all_tasks_name_them(project: Path) -> None:
    found = tasks_inprocess(project, "timeline", "--limit", "2", "--json").json()
    assert [
        (step["task"], step["event"], step["from"], step["to"], step["seconds"])
        for step in found["data"]
    ] == [
        ("000002", "abort", "NEW", "CLOSED", 24 * HOUR - 120),
        ("000003", "create", None, "NEW", None),
    ]
    assert found["truncated"] == 5
    said = tasks_inprocess(project, "timeline", "--limit", "2")
    assert said.err == "5 older ones; use --limit to see them.\n"


def test_a_task_that_is_not_there_has_no_timeline(project: Path) -> None:
    assert tasks_inprocess(project, "timeline", "9", check=4).out == ""


# Stats.


def test_all_numbers_of_a_ledger(project: Path) -> None:
    found = tasks_inprocess(project, "stats", "--at", "HEAD", "--json").json()
    nobody = {
        "accepted": 0, "rejected": 0, "first": 0, "first_accepted": 0, "first_pass_yield": None
    }  # fmt: skip
    spent = {"claims": 1, "seconds": 300, "cost": 0.25, "tokens": 1000}
    assert found["kind"] == "stats"
    assert found["data"] == {
        "since": None,
        "until": "2026-12-01T09:00:00Z",
        "tasks": {"created": 3, "landed": 0, "aborted": 1},
        "lead_time": _spread(0, None, None, None, 0),
        "stages": [
            # Task 1 for a minute, task 2 from the second minute for a day.
            {"state": "NEW", **_spread(2, (60 + 86_280) // 2, 86_280, 86_280, 86_340)},
            {"state": "WORK", **_spread(1, 600, 600, 600, 600)},
            {"state": "HELD_WORK", **_spread(1, 2940, 2940, 2940, 2940)},
        ],
        "reviews": [
            {"state": state, **nobody}
            for state in ("DESIGN_REVIEW", "PLAN_REVIEW", "WORK_REVIEW", "MANAGER_REVIEW")
        ],
        "rejections": 0,
        "checks": nobody,
        "throughput": {
            "days": [
                {"day": "2026-11-30", "created": 2, "landed": 0, "aborted": 0},
                {"day": "2026-12-01", "created": 1, "landed": 0, "aborted": 1},
            ],
            "weeks": [{"week": "2026-11-30", "created": 3, "landed": 0, "aborted": 1}],
        },
        "cost": {
            "total": spent,
            "stages": [{"state": "WORK", **spent}],
            "agents": [{"actor": "Ada", **spent}],
            "days": [{"day": "2026-11-30", **spent}],
        },
        "wip": {
            "open": 2,
            "started": 1,
            "claimed": 0,
            "states": [
                {"state": "NEW", "tasks": 1, "oldest_seconds": 0},
                {"state": "WORK", "tasks": 1, "oldest_seconds": 86_400},
            ],
        },
    }


def _spread(
    times: int, median: int | None, p90: int | None, longest: int | None, total: int
) -> dict[str, int | None]:
    return {
        "times": times,
        "median_seconds": median,
        "p90_seconds": p90,
        "max_seconds": longest,
        "total_seconds": total,
    }


def test_numbers_for_people(project: Path) -> None:
    assert tasks_inprocess(project, "stats", "--at", "HEAD", "--since", "2026-12-01").out == (
        "1 created, 0 landed, 1 aborted\n"
        "2 open: 1 started, 0 claimed\n"
        "\n"
        "stage  times  median  90 %  longest\n"
        f"NEW    1      23 h    23 h  23 h     {'#' * 24}\n"
        "\n"
        "day         created  landed  aborted\n"
        "2026-12-01  1        0       1\n"
        "\n"
        "week of     created  landed  aborted\n"
        "2026-11-30  1        0       1\n"
        "\n"
        "open at  tasks  oldest\n"
        f"NEW      1      0 s     {'#' * 24}\n"
        f"WORK     1      24 h    {'#' * 24}\n"
    )


def test_since_a_commit_and_since_its_time_are_the_same(project: Path) -> None:
    oid = commits(project)[4]
    by_commit = tasks_inprocess(project, "stats", "--since", oid, "--at", "HEAD", "--json").json()
    when = "2026-11-30T09:00:01Z"
    by_time = tasks_inprocess(project, "stats", "--since", when, "--at", "HEAD", "--json").json()
    assert by_commit["data"].pop("since") == "2026-11-30T09:00:00Z"
    assert by_time["data"].pop("since") == when
    assert by_commit["data"] == by_time["data"]
    assert by_commit["data"]["tasks"] == {"created": 1, "landed": 0, "aborted": 1}


def test_since_before_the_ledger_is_all_of_it(project: Path) -> None:
    found = tasks_inprocess(project, "stats", "--since", "2001-01-01", "--json").json()
    assert found["data"]["tasks"] == {"created": 3, "landed": 0, "aborted": 1}


def test_words_that_are_no_time_are_refused(project: Path) -> None:
    assert "is no date" in tasks_inprocess(project, "stats", "--since", "soonish", check=2).err


# Both.


def test_an_empty_ledger_has_nothing_to_tell(empty: Path) -> None:
    assert tasks_inprocess(empty, "timeline", "--json").json()["data"] == []
    assert tasks_inprocess(empty, "timeline").out == ""
    assert tasks_inprocess(empty, "stats").out == (
        "0 created, 0 landed, 0 aborted\n0 open: 0 started, 0 claimed\n"
    )
    assert tasks_inprocess(empty, "stats", "--json").json()["data"]["stages"] == []


def test_bad_documents_and_commits_that_are_none_stop_neither(home: Path) -> None:
    project = _written(home / "project")
    ledger = open_ledger(project, START + 26 * HOUR)
    by_hand(ledger, b"by hand\n\nTask: 000001\n", {"tasks/0000/000004.md": b"nothing\n"})
    by_hand(ledger, b"again\n", {"tasks/0000/000001.md": b"---\nbroken\n"})
    ledger.close()
    assert len(tasks_inprocess(project, "timeline", "--json").json()["data"]) == len(STEPS)
    assert len(tasks_inprocess(project, "timeline", "1", "--json").json()["data"]) == 4
    found = tasks_inprocess(project, "stats", "--json").json()
    assert found["data"]["tasks"] == {"created": 3, "landed": 0, "aborted": 1}
    assert [problem["task"] for problem in found["problems"]] == ["000001", "000004"]
