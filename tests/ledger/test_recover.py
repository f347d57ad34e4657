"""What a crash, a gc or a hand leaves behind is repaired, and nothing that counted is lost."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gittasks.domain.errors import Busy, Corrupt
from gittasks.domain.frontmatter import render
from gittasks.domain.requests import Abort, Claim, Edit, Facts, Note, Speaker, Submit
from gittasks.ledger import journal, recover, repair
from gittasks.ledger.layout import BACKUP, PRE_REPLAY
from gittasks.ledger.ledger import Ledger
from gittasks.ledger.verify import verify
from gittasks.plumbing import objects, refs
from tests.support.builders import BRANCH, NOW, a_task, hexadecimal
from tests.support.git import git
from tests.support.ledgers import a_request, asks, open_ledger

DOCUMENT = "tasks/0000/000001.md"
NEW_DOCUMENT = """---
id: "000007"
uid: "0123456789abcdef0123456789abcdef"
title: "By hand"
state: WORK
entered_at: "2026-01-01T00:00:00Z"
priority: 1
created_at: "2026-01-01T00:00:00Z"
created_by: "Bob"
x-mine: "kept"
---
Its body.
"""


def edit_by_hand(folder: Path, home: Path, *changes: tuple[str, str, str] | tuple[str, str]) -> str:
    """Checks the ledger out, changes files in an editor and commits; returns the commit."""
    tree = home / "by-hand"
    git(folder, "worktree", "add", "-q", str(tree), "gittasks")
    for path, *texts in changes:
        file = tree / path
        if len(texts) == 2:
            file.write_text(file.read_text().replace(texts[0], texts[1]))
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(texts[0])
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "By hand")
    git(folder, "worktree", "remove", "--force", str(tree))
    return git(folder, "rev-parse", BRANCH)


def events(folder: Path) -> list[str]:
    return git(folder, "log", "--format=%s", BRANCH).splitlines()[::-1]


def reopened(folder: Path, now: int = NOW) -> Ledger:
    return open_ledger(folder, now)


def test_a_deleted_branch_comes_back_at_the_next_write(ledger: Ledger, folder: Path) -> None:
    tip = ledger.append(asks(a_request())).tip
    git(folder, "branch", "-D", "gittasks")
    again = reopened(folder)
    done = again.append(asks(Note("000001", "hello")))
    again.close()
    assert (done.before, again.repaired) == (
        tip,
        [f"The branch gittasks was missing; it is back at {tip[:12]}."],
    )


def test_reading_a_deleted_branch_names_recover(ledger: Ledger, folder: Path) -> None:
    git(folder, "branch", "-D", "gittasks")
    with pytest.raises(Corrupt) as caught:
        reopened(folder).graph()
    assert (caught.value.message, caught.value.hint) == (
        "The branch gittasks of the ledger is missing.",
        "Run `git tasks recover` to bring it back.",
    )


def test_an_empty_ref_file_is_restored_from_the_reflog(ledger: Ledger, folder: Path) -> None:
    tip = ledger.append(asks(a_request())).tip
    (folder / ".git" / BRANCH).write_text("")
    again = reopened(folder)
    recover.recover(again)
    assert (again.tip, git(folder, "rev-parse", BRANCH)) == (tip, tip)


def test_a_branch_that_was_set_back_goes_forward_again(ledger: Ledger, folder: Path) -> None:
    first = ledger.tip
    tip = ledger.append(asks(a_request())).tip
    git(folder, "update-ref", BRANCH, first, tip)
    again = reopened(folder)
    done = again.append(asks(a_request(2)))
    assert done.before == tip
    assert again.repaired == [f"The branch gittasks had been set back; it is at {tip[:12]} again."]


def test_a_branch_that_left_its_history_is_not_written(ledger: Ledger, folder: Path) -> None:
    tip = ledger.append(asks(a_request())).tip
    other = git(folder, "commit-tree", f"{tip}^{{tree}}", "-m", "Another beginning")
    git(folder, "update-ref", BRANCH, other, tip)
    again = reopened(folder)
    with pytest.raises(Corrupt) as caught:
        again.append(asks(a_request(2)))
    assert tip[:12] in caught.value.message
    assert git(folder, "rev-parse", BRANCH) == other
    recover.recover(again)
    assert git(folder, "rev-parse", BRANCH) == tip
    assert list(refs.list(again.repo, PRE_REPLAY).values()) == [other]


def test_a_field_edited_by_hand_becomes_an_event(ledger: Ledger, folder: Path, home: Path) -> None:
    ledger.append(asks(a_request(body=b"Old.\n")))
    by_hand = edit_by_hand(
        folder, home, (DOCUMENT, 'title: "Task 1"', 'title: "Better"\npriority: 0')
    )
    again = reopened(folder)
    assert [(row.priority, row.title) for row in map(again.graph().need, ["000001"])] == [
        (0, "Better")
    ]
    again.append(asks(Note("000001", "seen")))
    assert events(folder)[-2:] == [
        "000001 external NEW (tool Ada)",
        "000001 note NEW (manager Ada)",
    ]
    assert refs.list(again.repo, PRE_REPLAY) == {f"{PRE_REPLAY}20270115T080000Z": by_hand}
    assert again.graph().need("000001").title == "Better"
    assert verify(again).findings == ()


def test_a_body_edited_by_hand_becomes_an_event(ledger: Ledger, folder: Path, home: Path) -> None:
    ledger.append(asks(a_request(body=b"Old.\n")))
    edit_by_hand(folder, home, (DOCUMENT, "Old.", "New."))
    again = reopened(folder)
    recover.recover(again)
    assert (again.graph().body("000001"), verify(again).findings) == (b"New.\n", ())


def test_a_state_edited_by_hand_keeps_its_last_good_text(
    ledger: Ledger, folder: Path, home: Path
) -> None:
    ledger.append(asks(a_request()))
    edit_by_hand(folder, home, (DOCUMENT, "state: NEW", "state: WORK"))
    again = reopened(folder)
    done = recover.recover(again)
    assert again.graph().need("000001").state == "NEW"
    assert done == [
        "The commits made by hand on gittasks were replaced by no event; they are kept at"
        f" {PRE_REPLAY}20270115T080000Z.",
        f"What was written by hand in {DOCUMENT} is not taken over: state is not edited by hand.",
    ]


def test_a_document_broken_by_hand_is_left_out_until_it_is_recovered(
    ledger: Ledger, folder: Path, home: Path
) -> None:
    ledger.append(asks(a_request(1), a_request(2)))
    edit_by_hand(folder, home, (DOCUMENT, 'title: "Task 1"', "title: [oops"))
    again = reopened(folder)
    assert [task.id for task in again.snapshot.all_tasks()] == ["000002"]
    assert [problem.path for problem in again.problems()] == [DOCUMENT]
    with pytest.raises(Corrupt, match=DOCUMENT):
        again.graph().need("000001")
    recover.recover(again)
    assert again.graph().need("000001").title == "Task 1"


def test_a_document_written_by_hand_begins_as_new(ledger: Ledger, folder: Path, home: Path) -> None:
    edit_by_hand(folder, home, ("tasks/0000/000007.md", NEW_DOCUMENT))
    again = reopened(folder)
    recover.recover(again)
    task = again.graph().need("000007")
    assert (task.title, task.state, task.priority, task.created_by, task.extra) == (
        "By hand", "NEW", 1, "Ada", (("x-mine", ' "kept"'),),
    )  # fmt: skip
    assert again.graph().body("000007") == b"Its body.\n"
    assert verify(again).findings == ()


def test_commits_of_another_writer_are_taken_as_they_are(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request()))
    backup = git(folder, "rev-parse", BACKUP)
    tip = ledger.append(asks(Note("000001", "hello"))).tip
    git(folder, "update-ref", BACKUP, backup, tip)
    again = reopened(folder)
    done = again.append(asks(Note("000001", "again")))
    assert (done.before, again.repaired) == (tip, [])


def test_objects_that_a_gc_took_are_written_again(ledger: Ledger, folder: Path) -> None:
    tip = ledger.append(asks(a_request())).tip
    blob = ledger.graph().revision("000001")
    assert blob is not None
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    again = reopened(folder)
    done = recover.recover(again)
    assert done == [f"1 objects of the event {tip[:12]} were written again."]
    assert again.graph().body("000001") == b""


def test_an_event_that_never_moved_the_branch_leaves_no_trace(ledger: Ledger, folder: Path) -> None:
    tip = ledger.tip
    lost = objects.draft(ledger.repo, "blob", b"never")
    journal.keep(ledger.state_dir, tip, "f" * 40, [lost])
    recover.recover(ledger)
    assert (ledger.tip, journal.entries(ledger.state_dir)) == (tip, [])


def test_a_lock_file_that_nobody_touched_for_long_is_removed(ledger: Ledger, folder: Path) -> None:
    lock = folder / ".git" / f"{BRANCH}.lock"
    lock.write_text("")
    old = time.time() - 11
    os.utime(lock, (old, old))
    ledger.append(asks(a_request()))
    assert (lock.exists(), ledger.graph().need("000001").title) == (False, "Task 1")


def test_a_fresh_lock_file_of_somebody_else_is_respected(ledger: Ledger, folder: Path) -> None:
    lock = folder / ".git" / f"{BRANCH}.lock"
    lock.write_text("")
    assert repair.remove_stale(str(lock)) is False
    assert lock.exists()


def test_a_lock_file_of_a_dead_writer_is_removed_at_once(ledger: Ledger, folder: Path) -> None:
    pid = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(pid, 0)
    path = journal.keep(ledger.state_dir, ledger.tip, "e" * 40, [])
    os.rename(path, path.rpartition(".")[0] + f".{pid}")
    lock = folder / ".git" / f"{BRANCH}.lock"
    lock.write_text("")
    started = time.monotonic()
    ledger.append(asks(a_request()))
    assert time.monotonic() - started < 5
    assert not lock.exists()


def test_a_commit_lost_by_a_blind_hand_gets_a_name(ledger: Ledger, folder: Path) -> None:
    tip = ledger.append(asks(a_request())).tip
    other = git(folder, "commit-tree", f"{tip}^{{tree}}", "-p", f"{tip}^", "-m", "Another")
    git(folder, "update-ref", BRANCH, other, tip)
    git(folder, "update-ref", BRANCH, tip, other)
    done = recover.recover(ledger)
    assert done == [
        f"The commit {other[:12]} is no longer part of the ledger;"
        f" it is kept at {PRE_REPLAY}20270115T080000Z."
    ]
    assert verify(ledger).notes == (
        f"A former tip is kept at {PRE_REPLAY}20270115T080000Z ({other[:12]}).",
    )


def test_former_tips_are_forgotten_after_thirty_days(ledger: Ledger, folder: Path) -> None:
    name = f"{PRE_REPLAY}20260101T000000Z"
    git(folder, "update-ref", name, "HEAD")
    assert recover.recover(ledger) == [
        f"The former tip {name} is older than 30 days and is forgotten."
    ]
    assert refs.list(ledger.repo, PRE_REPLAY) == {}


def test_a_healthy_ledger_is_not_touched(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request(), Submit("000001", enter="WORK")))
    before = git(folder, "for-each-ref")
    assert recover.recover(ledger) == []
    assert git(folder, "for-each-ref") == before


def test_recovery_waits_for_a_writer_and_names_it(ledger: Ledger, folder: Path) -> None:
    impatient = open_ledger(folder, lock_timeout=0.05)
    other = open_ledger(folder)
    with other.locked():
        pid = os.fork()
        if not pid:
            try:
                recover.recover(impatient)
            except Busy:
                os._exit(75)
            os._exit(1)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 75


def by_hand(number: int, **fields: object) -> str:
    return render(a_task(number, **fields), b"").decode()


@pytest.mark.parametrize(
    ("path", "texts", "told"),
    [
        ("project.yaml", ("master", "main"), "The file project.yaml was changed by hand; it stays as it was."),
        ("README", ("hello",), "The file README was changed by hand; it stays as it was."),
        ("tasks/0000/000002.md", ('"000001"', '"000002"'), "does not verify"),
        ("closed/0000/000001.md", (by_hand(1, state="CLOSED"),), "the task is NEW and its document is elsewhere."),
        ("tasks/0000/000003.md", ("Text", "Other text"), "the task is claimed by pi."),
        ("tasks/0000/000002.md", ('["000001"]', '["000009"]'), "it names 000009, which does not exist."),
        (DOCUMENT, ("state: NEW", 'state: NEW\ndepends_on: ["000002"]'), "it closes a ring of dependencies."),
        ("tasks/0000/000009.md", (by_hand(9, uid=hexadecimal("uid 1")),), "another task has this uid."),
        ("tasks/0000/000009.md", (by_hand(9, branch="task/9"),), "branch is not set by hand."),
        ("tasks/0000/000009.md", (by_hand(9, parent="000008"),), "it names 000008, which does not exist."),
        ("tasks/0000/000009.md", (by_hand(9, parent="000004"),), "the task 000004 is closed."),
    ],
)  # fmt: skip
def test_what_a_hand_may_not_change_stays_as_it_was(
    ledger: Ledger, folder: Path, home: Path, path: str, texts: tuple[str, ...], told: str
) -> None:
    ledger.append(
        asks(
            a_request(1),
            a_request(2, depends_on=("000001",)),
            a_request(3, body=b"Text\n"),
            a_request(4),
            Abort("000004"),
            Submit("000003", enter="WORK"),
        )
    )
    claim = Claim("000003", "c" * 32, NOW + 60, "task/000003", "master", "d" * 40)
    ledger.append(asks(claim, facts=Facts(NOW, "test", Speaker("pi", "worker"))))
    before = ledger.snapshot.all_tasks()
    edit_by_hand(folder, home, (path, *texts))  # type: ignore[arg-type]
    again = reopened(folder)
    done = recover.recover(again)
    assert len(done) == 2
    assert told in done[1]
    assert again.snapshot.all_tasks() == before
    assert verify(again).findings == ()


def test_a_document_removed_by_hand_stays(ledger: Ledger, folder: Path, home: Path) -> None:
    ledger.append(asks(a_request()))
    tree = home / "by-hand"
    git(folder, "worktree", "add", "-q", str(tree), "gittasks")
    git(tree, "rm", "-q", DOCUMENT)
    git(tree, "commit", "-q", "-m", "Remove")
    git(folder, "worktree", "remove", "--force", str(tree))
    again = reopened(folder)
    assert recover.recover(again)[1:] == [
        f"The file {DOCUMENT} was removed by hand; it stays as it was."
    ]
    assert again.graph().need("000001").title == "Task 1"


def test_a_key_of_the_user_is_set_and_unset_by_hand(
    ledger: Ledger, folder: Path, home: Path
) -> None:
    ledger.append(asks(a_request(labels=("a",)), Edit("000001", set=(("x-old", ' "1"'),))))
    edit_by_hand(folder, home, (DOCUMENT, 'x-old: "1"', 'x-new: "2"'))
    edit_again = (DOCUMENT, 'labels: ["a"]\n', "")
    edit_by_hand(folder, home, edit_again)
    again = reopened(folder)
    recover.recover(again)
    task = again.graph().need("000001")
    assert (task.extra, task.labels) == ((("x-new", ' "2"'),), ())
    assert verify(again).findings == ()
