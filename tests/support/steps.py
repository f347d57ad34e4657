"""Draws requests that may or may not suit a task, for ledgers that nobody has thought out."""

from __future__ import annotations

from hypothesis import strategies as st

from gittasks.domain.requests import (
    Abort,
    Claim,
    Edit,
    Feedback,
    Hold,
    Note,
    RecordCheck,
    Release,
    Reorder,
    Reparent,
    Request,
    Resume,
    Submit,
)
from gittasks.domain.task import Task
from tests.support.builders import NOW, hexadecimal

COMMIT = "c" * 40
TEXTS = st.sampled_from(["", "ok", "a\n\n  b\nTask: 000009\n", "é\x1b[31m\u202e", "\\u001b\0"])


def a_step(draw: st.DrawFn, task: Task, ids: list[str]) -> tuple[Request, str | None]:
    """Returns a request that may suit the state, and the role that makes it."""
    other = draw(st.sampled_from(ids))
    owner = {
        "DESIGN": "designer", "PLAN": "planner", "WORK": "worker", "CHECK": "checker",
        "DESIGN_REVIEW": "reviewer", "PLAN_REVIEW": "reviewer", "WORK_REVIEW": "reviewer",
    }.get(task.state, "manager")  # fmt: skip
    text = draw(TEXTS)
    wanted: list[tuple[Request, str | None]] = [
        (Submit(task.id, enter=draw(st.sampled_from(["DESIGN", "PLAN", "WORK", None])),
                section=b"## Implementation Notes\n\nDone.\n", remark=text), owner),
        (Edit(task.id, set=(("title", "No: 12"), ("x-a", " 1")), body=draw(st.none() | st.just(b"\xff new\r\n"))), "manager"),
        (Edit(task.id, add_dependencies=(other,)), "manager"),
        (Note(task.id, text or "seen", artifacts=(("b", "1"), ("a", "2"))), None),
        (Reparent(task.id, draw(st.none() | st.just(other))), "manager"),
        (Reorder(task.id, "first"), "manager"),
        (Hold(task.id, "stuck " + text), "manager"),
        (Resume(task.id), "manager"),
        (Abort(task.id, text, recursive=True), "manager"),
        (Release(task.id, why="forced"), "manager"),
        (Feedback(task.id, ("one", "two\nlines")), owner),
        (RecordCheck(task.id, task.submitted_tip or COMMIT, findings=draw(st.sampled_from([(), ("no",)]))), "checker"),
        (Claim(task.id, hexadecimal(task.id), NOW + 60, f"task/{task.id}", "master", COMMIT), owner),
    ]  # fmt: skip
    chosen: tuple[Request, str | None] = draw(st.sampled_from(wanted))
    return chosen
