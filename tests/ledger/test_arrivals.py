"""A commit that arrives and does not verify touches nothing but its own task."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gittasks.domain.config import render_project
from gittasks.domain.decide import decide_all
from gittasks.domain.errors import Corrupt, GittasksError
from gittasks.domain.events import Claimed, Configured, Created, Event, EventRole, Noted, Submitted
from gittasks.domain.frontmatter import render
from gittasks.domain.machine import INBOX_ATTENTION
from gittasks.domain.requests import Abort, Claim, Edit, Note, Submit
from gittasks.domain.task import Task
from gittasks.ledger import arrivals, message, quarantine, recover
from gittasks.ledger.layout import BACKUP, COPIES, DOCUMENT_LIMIT, PROJECT_FILE
from gittasks.ledger.ledger import Ledger
from gittasks.ledger.verify import Checker, Finding, Fold, oldest_first, verify
from gittasks.plumbing import objects, refs
from tests.support.builders import ACTOR, BRANCH, NOW, hexadecimal
from tests.support.git import git, make_repository
from tests.support.hands import a_commit
from tests.support.ledgers import a_request, asks, begin, open_ledger, speaks
from tests.support.steps import a_step

ONE = "tasks/0000/000001.md"
CLOSED_ONE = "closed/0000/000001.md"
TWO = "tasks/0000/000002.md"


@pytest.fixture
def shared(folder: Path) -> Iterator[Ledger]:
    """Returns a ledger of two tasks that a remote has too."""
    ledger = begin(folder)
    tip = ledger.append(asks(a_request(1, body=b"One.\n"), a_request(2, body=b"Two.\n"))).tip
    refs.compare_and_swap(ledger.repo, COPIES + "origin", tip, None, "test")
    yield ledger
    ledger.close()


def arrive(ledger: Ledger, new: str) -> tuple[Finding, ...]:
    """Takes commits over as a sync does: looks at them, then moves the refs."""
    known = ledger.tip
    found = arrivals.inspect(ledger, known, new)
    changes = [
        refs.Change(name, new, refs.read(ledger.repo, name))
        for name in (COPIES + "origin", BRANCH, BACKUP)
    ]
    refs.transaction(ledger.repo, changes, "test")
    ledger.is_at(new)
    return found


def event(ledger: Ledger, task: str | None, change: Any, **fields: Any) -> Event:
    """Returns an event about a task as it is, said by the manager."""
    now = None if task is None else ledger.graph().get(task)
    state = None if now is None else now.state
    uid = hexadecimal(f"uid {int(task)}") if task else None
    base: dict[str, Any] = {
        "source": state, "target": state, "uid": uid, "role": "manager",
        "event_id": hexadecimal(repr((change, fields))),
    }  # fmt: skip
    return Event(at=NOW, actor="Eve", host="evil", change=change, task=task, **{**base, **fields})


def forged(
    ledger: Ledger, said: Event, files: Mapping[str, bytes | None], parent: str | None = None
) -> str:
    """Writes a commit that says an event and does something else, or something illegal."""
    written = next((data for data in files.values() if data is not None), None)
    blob = None if written is None else objects.object_id(ledger.repo, "blob", written)
    return a_commit(ledger, message.encode(said, blob), files, parent=parent)


def document(task: Task | None, body: bytes = b"One.\n", **fields: Any) -> bytes:
    """Returns the document of a task with some fields changed."""
    assert task is not None
    return render(task._replace(**fields), body)


def a_jump(ledger: Ledger, task: str = "000001", parent: str | None = None) -> str:
    """Writes a commit that takes a task from NEW to the review, past everybody."""
    now = ledger.graph().get(task)
    said = event(ledger, task, Submitted(), target="WORK_REVIEW")
    path = f"tasks/0000/{task}.md"
    return forged(ledger, said, {path: document(now, state="WORK_REVIEW")}, parent)


def kinds(found: tuple[Finding, ...]) -> list[tuple[str, str | None]]:
    return [(one.kind, one.task) for one in found]


def is_well(ledger: Ledger, commit: str) -> None:
    """Checks that everything counts again and one commit of the past is still told of."""
    report = verify(ledger)
    assert (report.findings, len(report.notes) > 0) == ((), True)
    assert all(note.startswith(f"The commit {commit[:12]} is not valid: ") for note in report.notes)
    assert all(note.find(" Repaired since, by ") > 0 for note in report.notes)
    assert (ledger.problems(), ledger.snapshot.strays()) == ((), ())


def test_what_verifies_arrives_without_a_word(shared: Ledger, folder: Path) -> None:
    known = shared.tip
    new = shared.append(asks(Note("000001", "hello"), Submit("000002", enter="WORK"))).tip
    git(folder, "update-ref", BRANCH, known)
    git(folder, "update-ref", BACKUP, known)
    here = open_ledger(folder)
    assert arrivals.inspect(here, known, new) == ()
    assert not os.path.exists(os.path.join(here.state_dir, "quarantine.json"))
    here.close()


def test_an_illegal_transition_leaves_the_task_where_it_was(shared: Ledger) -> None:
    bad = a_jump(shared)
    assert arrive(shared, bad) == (
        Finding(
            "illegal",
            bad,
            "000001",
            "The step is not legal: there is no submit from NEW to WORK_REVIEW.",
        ),
    )
    graph = shared.graph()
    reason = "The step is not legal: there is no submit from NEW to WORK_REVIEW."
    assert (graph.need("000001").state, graph.body("000001")) == ("NEW", b"One.\n")
    assert (graph.quarantined("000001"), graph.quarantined("000002")) == (reason, None)
    assert (
        [problem[:4] for problem in shared.problems()]
        == [
            (
                ONE,
                "000001",
                shared.reader.get(f"{bad}:{ONE}").oid,  # type: ignore[union-attr]
                f"The commit {bad[:12]} is not valid, so {ONE} keeps its last good text: {reason}",
            )
        ]
    )


def test_a_quarantined_task_waits_in_the_inbox(shared: Ledger) -> None:
    shared.append(asks(Submit("000001", enter="WORK")))
    shared.append(asks(Submit("000002", enter="WORK")))
    claimed = document(shared.graph().get("000001"), state="CHECK")
    bad = forged(shared, event(shared, "000001", Submitted(), target="CHECK"), {ONE: claimed})
    arrive(shared, bad)
    (row,) = shared.graph().need("000001").attention
    assert row == (
        bad[:32],
        "invalid",
        f"the commit {bad[:12]} is not valid: The step is not legal:"
        " the manager may not submit at WORK.",
    )
    assert [(one.id, one.rank) for one in shared.snapshot.inbox("2027-01-01T00:00:00Z")] == [
        ("000001", INBOX_ATTENTION)
    ]


def test_an_edit_repairs_it_and_writes_the_good_state_again(shared: Ledger) -> None:
    good = shared.graph().document("000001")
    bad = a_jump(shared)
    arrive(shared, bad)
    done = shared.append(asks(Edit("000001")))
    assert [event.kind for event in done.events] == ["edit"]
    assert (shared.reader.blob(f"{shared.tip}:{ONE}"), shared.graph().document("000001")) == (
        good,
        good,
    )
    assert shared.graph().need("000001").attention == ()
    is_well(shared, bad)


def test_an_edit_that_asks_for_just_what_the_bad_commit_did_repairs_it(
    shared: Ledger, folder: Path
) -> None:
    better = document(shared.graph().get("000001"), title="Better")
    bad = a_commit(shared, b"edit\n", {ONE: better})
    arrive(shared, bad)
    assert shared.graph().need("000001").title == "Task 1"
    shared.append(asks(Edit("000001", set=(("title", "Better"),))))
    assert shared.graph().need("000001").title == "Better"
    assert shared.graph().quarantined("000001") is None
    os.unlink(os.path.join(shared.state_dir, "cache.db"))
    anew = open_ledger(folder)
    assert (anew.graph().need("000001").title, anew.problems()) == ("Better", ())
    is_well(anew, bad)
    anew.close()


def test_a_look_from_before_a_repair_still_knows_what_counted(shared: Ledger) -> None:
    better = document(shared.graph().get("000001"), title="Better")
    bad = a_commit(shared, b"edit\n", {ONE: better})
    arrive(shared, bad)
    shared.append(asks(Edit("000001", set=(("title", "Better"),))))
    other = a_commit(shared, b"more\n", {ONE: better + b"More.\n"}, parent=bad)
    assert kinds(arrivals.judge(shared, bad, other)) == [("message", None)]
    checker, _ = arrivals.checker_at(shared, bad, quarantine.load(shared.state_dir))
    task = checker.fold.get("000001")
    assert task is not None
    assert (task.title, [stray.path for stray in checker.fold.strays("000001")]) == (
        "Task 1",
        [ONE],
    )


def test_a_note_of_the_tool_repairs_it_without_the_mark(shared: Ledger) -> None:
    bad = a_jump(shared)
    arrive(shared, bad)
    shared.append(asks(Note("000001", "looked at")))
    assert b"attention" not in shared.reader.blob(f"{shared.tip}:{ONE}")
    is_well(shared, bad)


def test_a_forged_claim_is_not_there(shared: Ledger) -> None:
    shared.append(asks(Submit("000001", enter="WORK")))
    mine = Claim("000001", hexadecimal("mine"), NOW + 60, "task/000001", "master", "c" * 40)
    shared.append(asks(mine, facts=speaks("worker")))
    before = shared.graph().get("000001")
    said = event(
        shared,
        "000001",
        Claimed("2099-01-01T00:00:00Z", "task/000001", "master", "c" * 40),
        role="worker",
        claim=hexadecimal("theirs"),
    )
    theirs = document(before, claim=hexadecimal("theirs"), claimed_by="Eve")
    found = arrive(shared, forged(shared, said, {ONE: theirs}))
    assert [(one.kind, one.message) for one in found] == [
        ("illegal", "The step is not legal: the task is claimed by Ada.")
    ]
    assert shared.graph().need("000001").claimed_by == "Ada"


def test_an_event_that_changes_another_task_too_counts_for_neither(shared: Ledger) -> None:
    one, two = (shared.graph().get(task) for task in ("000001", "000002"))
    said = event(shared, "000001", Noted(), text="only looking")
    files = {
        ONE: document(one, artifacts=(("a", "b"),)),
        TWO: document(two, b"Two.\n", title="Mine"),
    }
    found = arrive(shared, forged(shared, said, files))
    assert kinds(found) == [("document", "000001"), ("tree", "000001")]
    graph = shared.graph()
    assert (graph.need("000001").artifacts, graph.need("000002").title) == ((), "Task 2")
    assert graph.quarantined("000001") == graph.quarantined("000002") == found[0].message


def test_an_oversized_document_counts_for_nothing(shared: Ledger) -> None:
    said = event(shared, "000001", Noted(), text="x")
    large = document(shared.graph().get("000001"), b"x" * DOCUMENT_LIMIT)
    found = arrive(shared, forged(shared, said, {ONE: large}))
    assert kinds(found) == [("document", "000001"), ("tree", "000001"), ("file", "000001")]
    assert shared.graph().body("000001") == b"One.\n"


@pytest.mark.parametrize(
    "rubbish", [b"---\n\x00: [\n", b"", b"---\n- a\n---\n", b"---\nid: &a 1\n---\n"]
)
def test_a_document_that_cannot_be_read_counts_for_nothing(shared: Ledger, rubbish: bytes) -> None:
    found = arrive(shared, a_commit(shared, b"edit\n", {ONE: rubbish}))
    assert kinds(found) == [("message", None), ("file", "000001")]
    assert [task.title for task in shared.snapshot.all_tasks()] == ["Task 1", "Task 2"]
    assert shared.graph().document("000001").endswith(b"One.\n")


def test_a_removed_document_is_still_there_and_comes_back(shared: Ledger) -> None:
    bad = a_commit(shared, b"rm\n", {ONE: None})
    assert kinds(arrive(shared, bad)) == [("message", None)]
    assert shared.graph().need("000001").title == "Task 1"
    assert [(one.path, one.oid) for one in shared.problems()] == [(ONE, "")]
    shared.append(asks(Edit("000001")))
    assert shared.reader.get(f"{shared.tip}:{ONE}") is not None
    is_well(shared, bad)


def test_a_moved_document_stands_where_it_stood_and_goes_back(shared: Ledger) -> None:
    gone = document(shared.graph().get("000001"), state="CLOSED", outcome="landed")
    bad = a_commit(shared, b"mv\n", {ONE: None, CLOSED_ONE: gone})
    arrive(shared, bad)
    assert shared.graph().need("000001").is_open
    assert [one.path for one in shared.problems()] == [CLOSED_ONE, ONE]
    shared.append(asks(Edit("000001")))
    reader = shared.reader
    assert reader.get(f"{shared.tip}:{CLOSED_ONE}") is None
    assert reader.get(f"{shared.tip}:{ONE}") is not None
    is_well(shared, bad)


def test_a_second_document_of_a_task_goes_with_its_next_event(shared: Ledger) -> None:
    double = document(shared.graph().get("000001"), state="CLOSED", outcome="landed")
    bad = a_commit(shared, b"cp\n", {CLOSED_ONE: double})
    arrive(shared, bad)
    assert shared.graph().need("000001").is_open
    shared.append(asks(Edit("000001")))
    shared.append(asks(Abort("000001")))
    assert shared.graph().need("000001").outcome == "aborted"
    is_well(shared, bad)


def test_a_folder_in_the_place_of_a_document_makes_room_for_it(shared: Ledger) -> None:
    bad = a_commit(shared, b"mkdir\n", {f"{ONE}/inside": b"x", ONE: None})
    assert kinds(arrive(shared, bad)) == [("message", None), ("file", None)]
    assert shared.graph().need("000001").title == "Task 1"
    shared.append(asks(Edit("000001")))
    is_well(shared, bad)


def test_a_file_in_the_place_of_a_folder_makes_room_for_each_document(shared: Ledger) -> None:
    bad = a_commit(shared, b"rm\n", {"tasks/0000": b"x", ONE: None, TWO: None})
    arrive(shared, bad)
    shared.append(asks(Edit("000001")))
    shared.append(asks(Edit("000002")))
    assert [task.title for task in shared.snapshot.all_tasks()] == ["Task 1", "Task 2"]
    is_well(shared, bad)


def test_a_link_counts_for_nothing(shared: Ledger) -> None:
    bad = a_commit(shared, b"ln\n", {ONE: b"/etc/passwd"}, mode="120000")
    assert kinds(arrive(shared, bad)) == [("message", None), ("file", "000001")]
    assert shared.graph().body("000001") == b"One.\n"
    shared.append(asks(Edit("000001")))
    is_well(shared, bad)


def test_a_task_that_was_not_created_well_does_not_exist(shared: Ledger) -> None:
    said = event(
        shared,
        "000003",
        Created("Task 3", parent="000009"),
        target="NEW",
        body=b"",
    )
    made = document(shared.graph().get("000001"), b"", id="000003", uid=said.uid, title="Task 3")
    bad = forged(shared, said, {"tasks/0000/000003.md": made})
    found = arrive(shared, bad)
    reason = "The step is not legal: it names 000009, which does not exist."
    assert [(one.kind, one.message) for one in found] == [("illegal", reason)]
    assert shared.graph().get("000003") is None
    with pytest.raises(Corrupt) as caught:
        shared.graph().need("000003")
    assert caught.value.message == (
        f"The commit {bad[:12]} is not valid, so tasks/0000/000003.md does not count: {reason}"
    )
    assert shared.append(asks(a_request(4))).events[0].task == "000004"


def test_settings_that_nobody_may_write_so_stay_as_they_were(shared: Ledger) -> None:
    bad = a_commit(shared, b"edit\n", {PROJECT_FILE: b'format: 1\nbase: "evil"\n'})
    arrive(shared, bad)
    assert shared.project().base == "master"
    change = Configured(set=(("rejection_limit", 3),))
    said = event(shared, None, change, role="manager", event_id="")
    shared.append(lambda _graph: [said._replace(uid=None)])
    assert shared.project().base == "master"
    is_well(shared, bad)


@pytest.mark.parametrize("role", ["worker", "checker", "tool", "operator", "none"])
def test_settings_are_the_managers_alone(shared: Ledger, role: EventRole) -> None:
    said = event(shared, None, Configured(set=(("rejection_limit", 9),)), role=role)
    settings = render_project(shared.project()._replace(rejection_limit=9))
    bad = forged(shared, said._replace(uid=None), {PROJECT_FILE: settings})
    words = f"The step is not legal: the {role} may not configure."
    wanted = (Finding("illegal", bad, None, words),)
    # That is what a server with the hook asks, and then what a clone does.
    assert arrivals.judge(shared, shared.tip, bad) == wanted
    assert arrive(shared, bad) == wanted
    assert shared.project().rejection_limit == 2


def test_a_ledger_without_settings_keeps_them(shared: Ledger, folder: Path) -> None:
    arrive(shared, a_commit(shared, b"rm\n", {PROJECT_FILE: None}))
    os.unlink(os.path.join(shared.state_dir, "cache.db"))
    anew = open_ledger(folder)
    assert (anew.project().base, len(anew.snapshot.all_tasks())) == ("master", 2)
    anew.close()


def test_a_merge_counts_for_nothing(shared: Ledger) -> None:
    first = shared.reader.commit(shared.tip).parents[0]
    title = document(shared.graph().get("000001"), title="Merged")
    bad = a_commit(shared, b"merge\n", {ONE: title}, more_parents=(first,))
    assert kinds(arrive(shared, bad)) == [("parents", None), ("message", None)]
    assert shared.graph().need("000001").title == "Task 1"
    shared.append(asks(Note("000002", "goes on"), Edit("000001")))
    is_well(shared, bad)


def test_a_pull_by_hand_takes_nothing_of_others_away(shared: Ledger, folder: Path) -> None:
    fork = shared.tip
    title = document(shared.graph().get("000001"), title="By hand")
    hand = a_commit(shared, b"edit\n", {ONE: title}, parent=fork)
    tip = shared.append(asks(Note("000002", "a"), Edit("000002", set=(("priority", 0),)))).tip
    merged = a_commit(shared, b"merge\n", {TWO: shared.graph().document("000002")}, parent=hand,
                      more_parents=(tip,))  # fmt: skip
    found = arrive(shared, merged)
    assert {one.commit for one in found} == {merged}
    graph = shared.graph()
    assert (graph.need("000001").title, graph.need("000002").priority) == ("Task 1", 0)
    assert (graph.quarantined("000001") is None, graph.quarantined("000002")) == (False, None)
    assert kinds(verify(shared).findings)[-1] == ("quarantine", "000001")


def test_the_same_event_twice_is_told(shared: Ledger) -> None:
    known = shared.tip
    shared.append(asks(Note("000001", "hello")))
    again = a_commit(shared, shared.reader.commit(shared.tip).message, {})
    assert kinds(arrivals.judge(shared, known, again)) == [("repeated", "000001")]


def test_an_event_of_a_newer_format_asks_for_a_newer_tool(shared: Ledger) -> None:
    title = document(shared.graph().get("000001"), title="From the future")
    said = message.encode(event(shared, "000001", Noted(), text="x"))
    said = said.replace(b"Event-Version: 1", b"Event-Version: 2")
    bad = a_commit(shared, said, {ONE: title})
    assert [(one.kind, one.message) for one in arrive(shared, bad)] == [
        (
            "newer",
            "The message is not an event of the ledger: it has version 2 of the format and needs"
            " a newer gittasks. Install a newer gittasks.",
        )
    ]
    assert shared.graph().need("000001").title == "Task 1"


def test_after_two_bad_commits_the_state_before_the_first_counts(shared: Ledger) -> None:
    first = a_jump(shared)
    now = shared.graph().get("000001")
    second = a_commit(shared, b"edit\n", {ONE: document(now, title="Worse")}, parent=first)
    assert [one.commit for one in arrive(shared, second)] == [first, second]
    third = a_commit(shared, b"edit\n", {ONE: document(now, title="Worst")}, parent=second)
    arrive(shared, third)
    (row,) = shared.graph().need("000001").attention
    assert (shared.graph().need("000001").title, row.event) == ("Task 1", first[:32])
    shared.append(asks(Edit("000001")))
    repair = shared.tip[:12]
    words = "The message is not an event of the ledger: its message has no paragraph of trailers."
    assert verify(shared)[3:] == (
        (),
        (
            f"The commit {first[:12]} is not valid: The step is not legal: there is no submit from"
            f" NEW to WORK_REVIEW. Repaired since, by {repair}.",
            f"The commit {second[:12]} is not valid: {words} Repaired since, by {repair}.",
            f"The commit {third[:12]} is not valid: {words} Repaired since, by {repair}.",
        ),
    )


def test_a_bad_commit_that_another_takes_back_leaves_nothing(shared: Ledger) -> None:
    good = shared.graph().document("000001")
    bad = a_jump(shared)
    back = a_commit(shared, b"back\n", {ONE: good}, parent=bad)
    arrive(shared, back)
    assert (shared.problems(), shared.graph().quarantined("000001")) == ((), None)
    report = verify(shared)
    assert report.findings == ()
    assert [note.partition(" is not valid: ")[0] for note in report.notes] == [
        f"The commit {one[:12]}" for one in (bad, back)
    ]
    assert report.notes[0].endswith(" WORK_REVIEW. Undone since.")
    assert report.notes[1].endswith(" no paragraph of trailers. It left nothing.")


def test_what_follows_on_other_tasks_counts(shared: Ledger) -> None:
    bad = a_jump(shared)
    known = shared.tip
    arrive(shared, bad)
    new = shared.append(asks(Submit("000002", enter="WORK"))).tip
    assert [one.commit for one in arrivals.judge(shared, known, new)] == [bad]
    assert shared.graph().need("000002").state == "WORK"


def test_what_follows_on_the_bad_state_does_not_count_either(shared: Ledger) -> None:
    bad = a_jump(shared)
    now = shared.graph().get("000001")
    said = event(shared, "000001", Submitted(), source="WORK_REVIEW", target="MANAGER_REVIEW")
    more = forged(shared, said, {ONE: document(now, state="MANAGER_REVIEW")}, bad)
    found = arrive(shared, more)
    assert found[1].message == "The step is not legal: the task is at NEW, not at WORK_REVIEW."
    assert shared.graph().need("000001").state == "NEW"


def test_a_repair_that_arrives_from_another_clone_counts(
    shared: Ledger, folder: Path, home: Path
) -> None:
    known = shared.tip
    bad = a_jump(shared)
    git(home, "clone", "-q", "--no-hardlinks", str(folder), "other")
    other = home / "other"
    git(other, "fetch", "-q", str(folder), bad)
    git(other, "update-ref", BRANCH, known)
    theirs = open_ledger(other)
    arrive(theirs, bad)
    repaired = theirs.append(asks(Edit("000001"))).tip
    theirs.close()
    git(folder, "fetch", "-q", str(other), repaired)
    assert [one.commit for one in arrive(shared, bad)] == [bad]
    assert arrive(shared, repaired) == ()
    assert shared.graph().quarantined("000001") is None
    is_well(shared, bad)


@pytest.mark.parametrize("rebuilt", ["cache.db", "nothing", "in memory"])
def test_whoever_reads_anew_sees_the_same(shared: Ledger, folder: Path, rebuilt: str) -> None:
    arrive(shared, a_jump(shared))
    expected = (shared.snapshot.all_tasks(), shared.problems(), shared.snapshot.strays())
    if rebuilt == "cache.db":
        os.unlink(os.path.join(shared.state_dir, "cache.db"))
    anew = open_ledger(folder)
    if rebuilt == "in memory":
        anew.snapshot.close()
        anew.snapshot._build_in_memory()
    assert (anew.snapshot.all_tasks(), anew.problems(), anew.snapshot.strays()) == expected
    anew.close()


def test_whoever_still_stands_before_it_sees_what_was(shared: Ledger, folder: Path) -> None:
    behind = open_ledger(folder)
    before = behind.snapshot.all_tasks()
    arrive(shared, a_jump(shared))
    assert shared.graph().need("000001").attention
    assert behind.snapshot.all_tasks() == before
    assert shared.graph().need("000001").attention
    behind.close()


@pytest.mark.parametrize("looks", [recover.recover, verify])
def test_what_is_kept_is_found_again_when_it_was_lost(
    shared: Ledger, folder: Path, looks: Any
) -> None:
    arrive(shared, a_jump(shared))
    expected = (shared.snapshot.all_tasks(), quarantine.load(shared.state_dir))
    for name in ("quarantine.json", "cache.db"):
        os.unlink(os.path.join(shared.state_dir, name))
    anew = open_ledger(folder)
    assert anew.graph().need("000001").state == "WORK_REVIEW"
    looks(anew)
    assert (anew.snapshot.all_tasks(), quarantine.load(anew.state_dir)) == expected
    anew.close()


def test_recovery_tells_what_it_has_found_again(shared: Ledger) -> None:
    bad = a_jump(shared)
    arrive(shared, bad)
    os.unlink(os.path.join(shared.state_dir, "quarantine.json"))
    assert recover.recover(shared) == [
        f"The commit {bad[:12]} is not valid, so {ONE} keeps its last good text: The step is not"
        " legal: there is no submit from NEW to WORK_REVIEW."
    ]
    assert recover.recover(shared) == []


def test_a_check_of_everything_tells_what_is_kept_apart(shared: Ledger) -> None:
    bad = a_jump(shared)
    arrive(shared, bad)
    reason = "The step is not legal: there is no submit from NEW to WORK_REVIEW."
    assert verify(shared).findings == (
        Finding("illegal", bad, "000001", reason),
        Finding(
            "quarantine",
            bad,
            "000001",
            f"The commit {bad[:12]} is not valid, so {ONE} keeps its last good text: {reason}"
            " Repair it: git tasks edit 000001.",
        ),
    )
    tip = shared.append(asks(Edit("000001"))).tip
    assert verify(shared)[3:] == (
        (),
        (f"The commit {bad[:12]} is not valid: {reason} Repaired since, by {tip[:12]}.",),
    )


JUNK = "junk.txt"
NO_EVENT = "The message is not an event of the ledger: its message has no paragraph of trailers."


def some_junk(ledger: Ledger, parent: str | None = None) -> str:
    """Writes a commit that adds a file of its own and removes the settings."""
    return a_commit(ledger, b"junk\n", {JUNK: b"x\n", PROJECT_FILE: None}, parent=parent)


def at_tip(ledger: Ledger, path: str) -> bytes | None:
    found = ledger.reader.get(f"{ledger.tip}:{path}")
    return None if found is None else found.data


def test_whatever_is_written_next_puts_right_what_belongs_to_no_task(
    shared: Ledger, folder: Path
) -> None:
    settings = at_tip(shared, PROJECT_FILE)
    bad = some_junk(shared)
    arrive(shared, bad)
    assert [problem.path for problem in shared.problems()] == [JUNK, PROJECT_FILE]
    done = shared.append(asks(Note("000001", "hello")))
    assert (at_tip(shared, JUNK), at_tip(shared, PROJECT_FILE)) == (None, settings)
    assert [event.document for event in done.events] == [None]
    is_well(shared, bad)
    anew = open_ledger(folder)
    assert (arrivals.judge(anew, bad, shared.tip), recover.recover(anew)) == ((), [])
    anew.close()


def test_junk_that_is_still_there_is_told_and_blames_nobody_else(shared: Ledger) -> None:
    shared.append(asks(Note("000002", "before")))
    bad = some_junk(shared)
    arrive(shared, bad)
    assert verify(shared).findings == (
        Finding("message", bad, None, NO_EVENT),
        Finding("file", bad, None, f"The file {JUNK} does not belong in a ledger."),
        *(
            Finding("quarantine", bad, None, f"The commit {bad[:12]} is not valid, so {words} {NO_EVENT}")
            for words in (
                f"{JUNK} does not count:",
                f"{PROJECT_FILE} keeps its last good text:",
            )
        ),
    )  # fmt: skip


def test_each_bad_commit_names_only_what_repaired_it(shared: Ledger) -> None:
    first = some_junk(shared)
    arrive(shared, first)
    one = shared.append(asks(Note("000001", "a"))).tip
    second = some_junk(shared)
    arrive(shared, second)
    two = shared.append(asks(Note("000001", "b"))).tip
    report = verify(shared)
    assert (report.findings, [note[-12 - 1 :] for note in report.notes]) == (
        (),
        [f"{one[:12]}."] * 2 + [f"{two[:12]}."] * 2,
    )


def test_an_event_of_a_clone_that_did_not_know_leaves_the_junk_and_verifies(
    shared: Ledger, folder: Path
) -> None:
    bad = some_junk(shared)
    arrive(shared, bad)
    said = message.encode(event(shared, "000001", Noted(), text="x"))
    unaware = a_commit(shared, said, {}, parent=bad)
    assert arrive(shared, unaware) == ()
    assert at_tip(shared, JUNK) == b"x\n"
    assert {one.commit for one in verify(shared).findings} == {bad}
    shared.append(asks(Note("000002", "hello")))
    is_well(shared, bad)


def test_with_an_event_goes_only_what_is_no_tasks(shared: Ledger) -> None:
    said = message.encode(event(shared, "000001", Noted(), text="x"))
    settings = at_tip(shared, PROJECT_FILE)
    assert settings is not None
    other = a_commit(shared, said, {PROJECT_FILE: settings + b"\n"})
    assert kinds(arrivals.judge(shared, shared.tip, other)) == [("tree", "000001")]
    worse = some_junk(shared, a_jump(shared, "000002"))
    arrive(shared, worse)
    good = shared.graph().document("000002")
    takes_back = a_commit(shared, said, {TWO: good}, parent=worse)
    assert kinds(arrivals.judge(shared, worse, takes_back)) == [("tree", "000001")]
    half = a_commit(shared, said, {JUNK: None}, parent=worse)
    assert arrivals.judge(shared, worse, half) == ()


def test_the_junk_of_a_task_that_is_there_waits_for_its_repair(shared: Ledger) -> None:
    bad = some_junk(shared, a_jump(shared))
    arrive(shared, bad)
    shared.append(asks(Note("000002", "hello")))
    assert at_tip(shared, JUNK) is None
    assert [stray.path for stray in shared.snapshot.strays()] == [ONE]
    shared.append(asks(Edit("000001")))
    assert (verify(shared).findings, shared.problems()) == ((), ())


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("a/b/c/d/e/f", objects.FILE),
        ("tasks/notes.txt", objects.FILE),
        ("tasks/0000/000009.md", objects.FILE),
        ("link", "120000"),
        ("template.md", "120000"),
        ("prompts/work.md", "100755"),
        (f"{PROJECT_FILE}/inside", objects.FILE),
        ("caf\udce9", objects.FILE),
        ("\x1b[31m\u2028", objects.FILE),
    ],
)
def test_junk_of_every_kind_goes(shared: Ledger, folder: Path, path: str, mode: str) -> None:
    before = shared.reader.commit(shared.tip).tree
    files = {path: b"x\n"} | ({PROJECT_FILE: None} if path.startswith(PROJECT_FILE) else {})
    bad = a_commit(shared, b"junk\n", files, mode=mode)
    arrive(shared, bad)
    anew = open_ledger(folder)
    tip = anew.append(asks(Note("000001", "hello"))).tip
    assert anew.reader.commit(tip).tree == before
    is_well(anew, bad)
    anew.close()


def test_a_module_of_another_repository_goes(shared: Ledger, folder: Path) -> None:
    before = shared.reader.commit(shared.tip).tree
    entries = git(folder, "ls-tree", before)
    tree = git(folder, "mktree", stdin=f"{entries}\n160000 commit {shared.tip}\tmodule\n")
    data = objects.commit_bytes(tree, [shared.tip], ACTOR, ACTOR, b"module\n")
    commit = objects.draft(shared.repo, "commit", data)
    objects.write(shared.repo, [commit])
    arrive(shared, commit.oid)
    assert shared.reader.commit(shared.append(asks(Note("000001", "x"))).tip).tree == before
    is_well(shared, commit.oid)


def test_settings_that_only_a_newer_tool_can_read_are_left_to_it(shared: Ledger) -> None:
    change = Configured(set=(("rejection_limit", 3),))
    said = message.encode(event(shared, None, change)._replace(uid=None))
    said = said.replace(b"Event-Version: 1", b"Event-Version: 2")
    arrive(shared, a_commit(shared, said, {PROJECT_FILE: b"format: 2\n"}))
    shared.append(asks(Note("000001", "hello")))
    assert at_tip(shared, PROJECT_FILE) == b"format: 2\n"
    assert shared.project().base == "master"


def test_another_clone_sees_nothing_of_it_any_more(
    shared: Ledger, folder: Path, home: Path
) -> None:
    bad = some_junk(shared)
    git(home, "clone", "-q", "--no-hardlinks", str(folder), "other")
    git(home / "other", "fetch", "-q", str(folder), bad)
    git(home / "other", "update-ref", BRANCH, shared.tip)
    theirs = open_ledger(home / "other")
    arrive(theirs, bad)
    assert len(theirs.problems()) == 2
    arrive(shared, bad)
    tip = shared.append(asks(Note("000001", "hello"))).tip
    git(home / "other", "fetch", "-q", str(folder), tip)
    assert arrive(theirs, tip) == ()
    is_well(theirs, bad)
    theirs.close()


def test_whoever_never_looked_takes_the_repair_too(shared: Ledger, folder: Path) -> None:
    bad = some_junk(shared)
    arrive(shared, bad)
    tip = shared.append(asks(Note("000001", "hello"))).tip
    os.unlink(os.path.join(shared.state_dir, "quarantine.json"))
    os.unlink(os.path.join(shared.state_dir, "cache.db"))
    anew = open_ledger(folder)
    assert arrivals.judge(anew, bad, tip) == ()
    anew.close()


def test_a_hand_that_takes_the_junk_away_is_told_when_it_goes(shared: Ledger, folder: Path) -> None:
    bad = some_junk(shared)
    arrive(shared, bad)
    git(folder, "update-ref", BRANCH, a_commit(shared, b"rm\n", {JUNK: None}))
    anew = open_ledger(folder)
    anew.append(asks(Note("000001", "hello")))
    assert anew.repaired[1:] == [f"The file {JUNK} is put right by the next event that is written."]
    is_well_but_for_kept_tips(anew, bad)
    anew.close()


def is_well_but_for_kept_tips(ledger: Ledger, commit: str) -> None:
    report = verify(ledger)
    assert (report.findings, ledger.problems()) == ((), ())
    assert any(note.startswith(f"The commit {commit[:12]} is not valid: ") for note in report.notes)


def test_what_is_wrong_with_a_document_is_said_in_one_line(shared: Ledger, folder: Path) -> None:
    rubbish = document(shared.graph().get("000001")).replace(b"NEW", b"OLD")
    bad = a_commit(shared, b"edit\n", {ONE: rubbish})
    (_, found) = arrive(shared, bad)
    assert found.message.startswith(f'The document {ONE} does not verify; line 5, state: "OLD" is')
    assert all("\n" not in one.message for one in verify(shared).findings)
    worse = document(shared.graph().get("000002")).replace(b"NEW", b"OLD")
    git(folder, "update-ref", BRANCH, a_commit(shared, b"edit\n", {TWO: worse}))
    anew = open_ledger(folder)
    done = recover.recover(anew)
    assert [one for one in done if "\n" in one] == []
    assert f"What was written by hand in {TWO} is not taken over: The document {TWO} does not" in (
        " ".join(done)
    )
    anew.close()


def test_a_step_of_a_quarantined_task_is_refused_in_one_sentence(shared: Ledger) -> None:
    arrive(shared, a_commit(shared, b"edit\n", {ONE: b"x\n"}))
    with pytest.raises(Corrupt) as caught:
        shared.append(asks(Submit("000001", enter="WORK")))
    assert caught.value.message == (
        "The task 000001 keeps its last good state, because the message is not an event of the"
        " ledger: its message has no paragraph of trailers."
    )


def test_what_plain_git_has_brought_is_never_rewritten(shared: Ledger, folder: Path) -> None:
    bad = a_jump(shared)
    git(folder, "update-ref", "refs/remotes/origin/gittasks", bad)
    git(folder, "update-ref", BRANCH, bad)
    anew = open_ledger(folder)
    done = anew.append(asks(Note("000002", "hello")))
    assert (done.before, anew.repaired) == (
        bad,
        [
            "A commit on gittasks that came from a remote does not verify; 000001 keeps the last"
            " good state."
        ],
    )
    assert (anew.graph().need("000001").state, len(anew.snapshot.strays())) == ("NEW", 1)
    anew.close()


def test_what_a_hand_adds_to_a_bad_commit_is_adopted_alone(shared: Ledger, folder: Path) -> None:
    bad = a_jump(shared)
    git(folder, "update-ref", COPIES + "origin", bad)
    two = document(shared.graph().get("000002"), b"Two.\n", title="Better")
    hand = a_commit(shared, b"edit\n", {TWO: two}, parent=bad)
    git(folder, "update-ref", BRANCH, hand)
    anew = open_ledger(folder)
    anew.append(asks(Note("000002", "hello")))
    assert git(folder, "log", "--format=%s", f"{bad}..{BRANCH}").splitlines() == [
        "000002 note NEW (manager Ada)",
        "000002 external NEW (tool Ada)",
    ]
    assert [task.title for task in anew.snapshot.all_tasks()] == ["Task 1", "Better"]
    assert anew.graph().quarantined("000001") is not None
    assert kinds(verify(anew).findings) == [("illegal", "000001"), ("quarantine", "000001")]
    anew.close()


def test_settings_that_a_hand_removes_here_stay(shared: Ledger, folder: Path) -> None:
    good = shared.tip
    git(folder, "update-ref", BRANCH, a_commit(shared, b"rm\n", {PROJECT_FILE: None}))
    anew = open_ledger(folder)
    done = anew.append(asks(Note("000001", "hello")))
    assert (done.before, anew.repaired[1:]) == (
        good,
        [f"The file {PROJECT_FILE} was removed by hand; it stays as it was."],
    )
    assert anew.project().base == "master"
    anew.close()


def test_a_fresh_clone_takes_over_what_counts(shared: Ledger, folder: Path, home: Path) -> None:
    bad = a_jump(shared)
    arrive(shared, bad)
    tip = shared.append(asks(Note("000002", "hello"))).tip
    git(home, "clone", "-q", "--no-hardlinks", str(folder), "fresh")
    git(home / "fresh", "fetch", "-q", str(folder), f"{BRANCH}:refs/remotes/origin/gittasks")
    fresh = open_ledger(home / "fresh")
    assert [one.commit for one in arrivals.inspect(fresh, None, tip)] == [bad]
    git(home / "fresh", "update-ref", BRANCH, tip)
    fresh.refresh()
    assert fresh.snapshot.all_tasks() == shared.snapshot.all_tasks()
    fresh.close()


def test_another_history_is_no_arrival(shared: Ledger) -> None:
    blob = objects.draft(shared.repo, "tree", b"")
    alone = objects.draft(
        shared.repo, "commit", objects.commit_bytes(blob.oid, [], ACTOR, ACTOR, b"mine\n")
    )
    objects.write(shared.repo, [blob, alone])
    with pytest.raises(Corrupt) as caught:
        arrivals.inspect(shared, None, alone.oid)
    short = alone.oid[:12]
    assert caught.value.message == (
        f"The history of {short} is not one of a ledger: it begins with {short}."
    )


def test_a_history_that_is_not_there_cannot_be_read(shared: Ledger) -> None:
    with pytest.raises(Corrupt, match="cannot be read"):
        arrivals.inspect(shared, shared.tip, "d" * 40)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 9, "entries": []}', "\udcff"])
def test_a_file_that_says_nothing_keeps_nothing(shared: Ledger, text: str) -> None:
    path = Path(shared.state_dir) / "quarantine.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert quarantine.load(shared.state_dir) == ()


def test_the_history_has_only_what_counts(shared: Ledger) -> None:
    shared.append(asks(Submit("000001", enter="WORK")))
    bad = a_commit(shared, b"Task: 000001\n", {})
    said = event(shared, "000001", Noted(), text="not so")
    arrive(shared, forged(shared, said, {ONE: b"x"}, bad))
    shared.append(asks(Note("000002", "goes on")))
    assert [event.kind for event in shared.history("000001")] == ["submit", "create"]
    assert [one.event.kind for one in shared.log(limit=2)] == ["note", "submit"]


def test_what_is_kept_says_which_documents_of_which_commit(shared: Ledger) -> None:
    good = shared.graph().revision("000001")
    bad = a_jump(shared)
    arrive(shared, bad)
    kept = json.loads((Path(shared.state_dir) / "quarantine.json").read_text())
    assert kept["invalid"] == [bad]
    assert kept["entries"] == [
        {
            "path": ONE,
            "task": "000001",
            "bad": {"mode": objects.FILE, "oid": git(shared.repo.common_dir, "rev-parse", f"{bad}:{ONE}")},
            "good": good,
            "commit": bad,
            "reason": "The step is not legal: there is no submit from NEW to WORK_REVIEW.",
            "lifted": [],
        }
    ]  # fmt: skip


def answers(fold: Fold) -> list[object]:
    """Returns what a fold says about everything."""
    ids = [f"{number:06d}" for number in range(1, 7)]
    found = [fold.get(task) for task in ids]
    return [
        found,
        [(fold.revision(task.id), fold.body(task.id)) for task in found if task is not None],
        [fold.with_uid(hexadecimal(f"uid {number}")) for number in range(1, 7)],
        [(fold.dependents(t), fold.children(t), fold.superseders(t)) for t in ids],
        fold.children(None),
        [fold.file(path) for path in (PROJECT_FILE, ONE, CLOSED_ONE, TWO)],
    ]


_COUNTER = itertools.count()


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_from_wherever_one_looks_everything_is_the_same(home: Path, data: st.DataObject) -> None:
    folder = make_repository(home / hexadecimal(str(next(_COUNTER))))
    ledger = begin(folder)
    ledger.append(asks(*(a_request(n, body=b"Body\n") for n in range(1, 4))))
    for number in range(4, 10):
        ids = ["000001", "000002", "000003"]
        task = ledger.graph().get(data.draw(st.sampled_from(ids)))
        assert task is not None
        request, role = a_step(data.draw, task, ids)  # type: ignore[arg-type]
        if data.draw(st.booleans()):
            request, role = a_request(number, depends_on=(task.id,), parent=task.id), "manager"
        facts = speaks(role, hexadecimal(task.id))  # type: ignore[arg-type]
        try:
            decide_all(ledger.graph(), [request], facts)
        except GittasksError:
            continue
        ledger.append(asks(request, facts=facts))
    whole = Checker(ledger.repo, ledger.reader)
    chain = list(oldest_first(ledger.repo, ledger.reader, ledger.tip))
    folds = []
    for commit in chain:
        assert isinstance(commit, objects.Commit)
        assert whole.check(commit) == []
        folds.append((commit.oid, answers(whole.fold)))
    end = answers(whole.fold)
    for oid, expected in folds[1:]:
        # Once from where the cache stands, once from a cache that stands there.
        checker, _ = arrivals.checker_at(ledger, oid, ())
        assert answers(checker.fold) == expected
        assert arrivals.judge(ledger, oid, ledger.tip) == ()
        behind = open_ledger(folder)
        behind.is_at(oid)
        checker, _ = arrivals.checker_at(behind, oid, ())
        for commit in oldest_first(behind.repo, behind.reader, ledger.tip, oid):
            assert isinstance(commit, objects.Commit)
            assert checker.check(commit) == []
        assert answers(checker.fold) == end
        behind.close()
    ledger.close()
