"""Boards as the workflow gives them, made up: a project of any size, the same each time."""

from __future__ import annotations

from random import Random
from typing import Any

from gittasks.domain.task import STATES
from tests.support.builders import hexadecimal

NOW = 1_796_083_200
_HOUR = 3600
_WAY = (
    "NEW", "DESIGN", "DESIGN_REVIEW", "PLAN", "PLAN_REVIEW", "WORK", "CHECK", "WORK_REVIEW",
    "MANAGER_REVIEW", "CLOSED",
)  # fmt: skip
_VERBS = ("Write", "Repair", "Measure", "Replace", "Explain", "Test", "Split", "Speed up", "Remove")
_THINGS = (
    "the parser of headers", "the landing of two branches at once", "the page about leases",
    "the cache of trees", "how a claim ends when its holder is gone", "the table of commands",
    "the search in long histories", "what a refused push prints", "the queue of the checker",
)  # fmt: skip
_LABELS = ("docs", "speed", "ledger", "sharing", "interface", "tests")
_NAMES = ("ada", "ben", "claude-1", "claude-2", "codex-1", "dora", "pi-3")


def a_board(count: int, seed: int = 1) -> dict[str, Any]:
    """Returns the board of so many tasks in all states."""
    dice = Random(seed)
    tasks = [_task(dice, number, count) for number in range(1, count + 1)]
    by_id = {task["id"]: task for task in tasks}
    shown = [task["id"] for task in tasks if task["state"] != "CLOSED"]
    shown += sorted({need for one in shown for need in by_id[one].get("needs", [])} - {*shown})
    shown.sort()
    within = set(shown)
    edges = [
        [kind, named, task["id"]]
        for task in tasks
        for kind, found in (("depends_on", task.get("needs", [])), ("parent", [task.get("parent")]))
        for named in found
        if task["id"] in within and named in within
    ]
    open_ = [task for task in tasks if task["state"] != "CLOSED"]
    return {
        "as_of": NOW,
        "ledger": hexadecimal("ledger", 40),
        "states": list(STATES),
        "counts": {
            state: len(found)
            for state in STATES
            if (found := [task for task in tasks if task["state"] == state])
        },
        "tasks": tasks,
        "left_out": 0,
        "ready": [
            [task["id"], "worker" if task["state"] == "WORK" else "planner"]
            for task in open_
            if task["state"] in ("DESIGN", "PLAN", "WORK") and "holder" not in task
        ][:500],
        "ready_left_out": 0,
        "inbox": [_waiting(task) for task in open_ if task["state"] in _REASONS][:500],
        "inbox_left_out": 0,
        "graph": {"shown": shown, "edges": edges},
        "numbers": _numbers(dice, open_, len(tasks) - len(open_)),
        "problems": [],
        "problem_count": 0,
        "names": list(_NAMES),
    }


def _task(dice: Random, number: int, count: int) -> dict[str, Any]:
    is_old = dice.random() < 0.55 * (1 - number / (count + 1)) + 0.1
    steps = len(_WAY) if is_old else dice.randint(1, len(_WAY) - 1)
    way = [*_WAY[:steps]]
    if not is_old and dice.random() < 0.1:
        way = ["NEW", "BLOCKED"]
    if not is_old and way[-1] in ("DESIGN", "PLAN", "WORK") and dice.random() < 0.15:
        way.append(f"HELD_{way[-1]}")
    at = NOW - int((count - number + 1) / count * 40 * 24 * _HOUR) - dice.randint(1, 20 * _HOUR)
    visits = []
    for state in way:
        if at >= NOW:
            break
        visits.append([STATES.index(state), at, dice.randrange(len(_NAMES))])
        at += dice.randint(60, 20 * _HOUR)
    state = STATES[visits[-1][0]]
    labels = dice.sample(_LABELS, dice.choice((0, 0, 1, 2)))
    needs = (
        {f"{dice.randint(max(1, number - 30), number - 1):06d}" for _ in range(2)}
        if number > 2
        else ()
    )
    row = {
        "id": f"{number:06d}",
        "title": f"{dice.choice(_VERBS)} {dice.choice(_THINGS)}",
        "state": state,
        "since": visits[-1][1],
        "labels": labels,
        "needs": sorted(needs) if dice.random() < 0.35 else [],
        "parent": f"{number - number % 10:06d}"
        if number % 10 and number > 10 and dice.random() < 0.5
        else None,
        "rejections": dice.choice((0, 0, 0, 0, 0, 0, 1, 1, 2, 3)),
        "visits": visits,
    }
    if state in ("DESIGN", "PLAN", "WORK", "WORK_REVIEW") and dice.random() < 0.6:
        row |= {
            "holder": dice.choice(_NAMES),
            "held": visits[-1][1] + 30,
            "lease": NOW + dice.randint(60, _HOUR),
            "worked": NOW - visits[-1][1],
        }
    if state == "CLOSED":
        row["outcome"] = "landed" if dice.random() < 0.85 else "aborted"
        row |= {"worked": 5400, "cost": 1.25, "tokens": 180_000}
    if state.startswith("HELD"):
        row["reason"] = "The two pages disagree about what a lease is; which one is meant?"
    priority = dice.choice((0, 1, 2, 2, 2, 2, 3))
    return {name: value for name, value in row.items() if value} | {"priority": priority}


_REASONS = {
    "NEW": ("not dispatched yet", "git tasks submit {}"),
    "MANAGER_REVIEW": ("ready for the final review", "git tasks submit {}"),
    "HELD_DESIGN": ("The two pages disagree; which one is meant?", "git tasks resume {}"),
    "HELD_PLAN": ("The two pages disagree; which one is meant?", "git tasks resume {}"),
    "HELD_WORK": ("The two pages disagree; which one is meant?", "git tasks resume {}"),
}


def _waiting(task: dict[str, Any]) -> dict[str, Any]:
    reason, command = _REASONS[task["state"]]
    return {
        "id": task["id"],
        "reason": reason,
        "command": command.format(task["id"]),
        "blocking": int(task["id"]) % 4,
        "since": task["since"],
    }


def _numbers(dice: Random, open_: list[dict[str, Any]], closed: int) -> dict[str, Any]:
    def spent(claims: int) -> dict[str, Any]:
        return {
            "claims": claims,
            "seconds": claims * 2700,
            "cost": claims * 0.8,
            "tokens": claims * 90_000,
        }

    standing = [
        [state, {"tasks": len(found), "oldest_seconds": NOW - min(task["since"] for task in found)}]
        for state in STATES
        if (found := [task for task in open_ if task["state"] == state])
    ]
    return {
        "stages": [
            [
                state,
                {
                    "times": closed + 5,
                    "median_seconds": dice.randint(600, 90_000),
                    "p90_seconds": 120_000,
                    "max_seconds": 400_000,
                    "total_seconds": 1_000_000,
                },
            ]
            for state in _WAY[:-1]
        ],
        "lead": {
            "times": closed,
            "median_seconds": 260_000,
            "p90_seconds": 500_000,
            "max_seconds": 900_000,
            "total_seconds": 9_000_000,
        },
        "reviews": [
            [
                state,
                {
                    "accepted": closed,
                    "rejected": closed // 3,
                    "first": closed,
                    "first_accepted": closed * 2 // 3,
                },
            ]
            for state in ("DESIGN_REVIEW", "PLAN_REVIEW", "WORK_REVIEW", "MANAGER_REVIEW")
        ],
        "first_pass": dict.fromkeys(
            ("DESIGN_REVIEW", "PLAN_REVIEW", "WORK_REVIEW", "MANAGER_REVIEW"), 0.67
        ),
        "checks": {
            "accepted": closed,
            "rejected": closed // 5,
            "first": closed,
            "first_accepted": closed * 4 // 5,
        },
        "done": {"created": closed + len(open_), "landed": closed, "aborted": closed // 8},
        "weeks": [
            [
                f"2026-{month:02d}-{day:02d}",
                {
                    "created": dice.randint(3, 30),
                    "landed": dice.randint(0, 25),
                    "aborted": dice.randint(0, 3),
                },
            ]
            for month in (10, 11)
            for day in (2, 9, 16, 23)
        ],
        "spent": spent(closed * 4),
        "spent_by_state": [
            [state, spent(closed)] for state in ("DESIGN", "PLAN", "WORK", "WORK_REVIEW")
        ],
        "spent_by_actor": [
            [name, spent(closed // (place + 1))] for place, name in enumerate(_NAMES)
        ],
        "in_progress": {
            "open": len(open_),
            "started": len(open_) // 2,
            "claimed": sum("holder" in task for task in open_),
            "states": standing,
        },
    }
