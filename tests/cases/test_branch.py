"""The branch of the ledger: checked out, edited, deleted, emptied, locked, collected, replaced."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.cases.ground import Team, error_of, path_of
from tests.support.cli import tasks, tasks_inprocess, tasks_process
from tests.support.git import git

LEDGER = "refs/heads/gittasks"


@pytest.mark.parametrize("where", ["linked worktree", "main worktree", "subfolder of one"])
def test_nothing_is_written_while_the_ledger_is_checked_out(team: Team, where: str) -> None:
    """Guards against a checkout of the ledger that shows every new event as a staged removal."""
    task = team.new("One")
    if where == "main worktree":
        team.git("switch", "-q", "gittasks")
        place = team.folder
    else:
        place = team.folder.parent / "looking"
        team.git("worktree", "add", "-q", str(place), "gittasks")
    before = team.tip()
    for words in (("note", task, "x"), ("claim", task), ("new", "Two"), ("abort", task)):
        error = error_of(team.manager(*words, "--json", check=5))
        assert str(place) in error["message"]
    assert team.tip() == before
    assert git(place, "status", "--porcelain") == ""
    team.manager("list")
    folder = place / "tasks/0000" if where == "subfolder of one" else place
    assert task in tasks_inprocess(folder, "list").out
    git(place, "switch", "-q", "--detach")
    team.manager("note", task, "x")


def test_an_edit_by_hand_becomes_an_event_and_the_rest_of_it_is_kept(team: Team) -> None:
    """Guards against commits by hand that are lost, or that make a task skip its reviews."""
    one, two = team.new("One"), team.new("Two")
    good = team.document(one).replace(b'"One"', b'"One, and more"')
    bad = team.document(two).replace(b"state: WORK", b"state: MANAGER_REVIEW")
    tip = team.write_by_hand({path_of(one): good, path_of(two): bad, "notes.txt": b"mine\n"})
    team.manager("note", one, "Go on.")
    assert team.show(one)["title"] == "One, and more"
    assert team.state(two) == "WORK"
    refs = team.git("for-each-ref", "--format=%(objectname) %(refname)", "refs/gittasks/pre-replay")
    assert tip in refs
    said = team.manager("fsck")
    assert "pre-replay" in said.out + said.err
    assert [line.split()[1] for line in team.subjects()[:2]] == ["note", "external"]


@pytest.mark.parametrize("with_claim", [True, False])
def test_a_document_removed_by_hand_comes_back(team: Team, with_claim: bool) -> None:
    """Guards against a task that vanishes because somebody deleted its file."""
    task = team.new("One")
    if with_claim:
        team.agent("wim", "claim", task)
    before = team.document(task)
    team.write_by_hand({path_of(task): None})
    team.manager("new", "Two")
    assert team.document(task) == before
    team.manager("fsck")


DAMAGES = ["deleted", "emptied", "zeros", "nonsense", "set back", "to master", "to a blob"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_branch_is_told_and_comes_back(team: Team, damage: str) -> None:
    """Guards against a branch that is gone after a crash or a careless command, with all tasks."""
    task = team.new("One")
    team.manager("note", task, "Kept.")
    tip = team.tip()
    file = team.folder / ".git" / LEDGER
    match damage:
        case "deleted":
            team.git("branch", "-q", "-D", "gittasks")
        case "emptied":
            file.write_bytes(b"")
        case "zeros":
            file.write_bytes(b"0" * 40 + b"\n")
        case "nonsense":
            file.write_bytes(b"\0" * 41)
        case "set back":
            team.git("update-ref", LEDGER, f"{tip}~2")
        case "to master":
            team.git("update-ref", LEDGER, "master")
        case _:
            file.write_text(team.git("rev-parse", "master:app.txt") + "\n", encoding="utf-8")
    read = team.manager("list", "--json", check=None)
    if read.status:
        error = error_of(read)
        assert error["code"] in (3, 9)
        assert "recover" in (error["hint"] or "") + error["message"]
    write = team.manager("note", task, "After.", check=None)
    if write.status:
        assert write.status == 9, write
        assert "recover" in write.err
        team.manager("recover")
        team.manager("note", task, "After.")
    assert team.git("merge-base", "--is-ancestor", tip, LEDGER) == ""
    team.manager("fsck")
    assert team.git("fsck", "--no-dangling", "--connectivity-only") == ""


@pytest.mark.parametrize("journal", ["there", "gone"])
@pytest.mark.parametrize("which", ["the tip", "its tree", "a document", "an old commit"])
def test_a_corrupt_object_is_written_again_or_named(team: Team, which: str, journal: str) -> None:
    """Guards against a damaged disk block that ends in a traceback, or in an empty list."""
    task = team.new("One")
    team.manager("note", task, "Kept.")
    name = {
        "the tip": LEDGER, "its tree": f"{LEDGER}^{{tree}}",
        "a document": f"{LEDGER}:{path_of(task)}", "an old commit": f"{LEDGER}~1",
    }[which]  # fmt: skip
    oid = team.git("rev-parse", name)
    path = team.folder / ".git/objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    path.write_bytes(b"damaged")
    if journal == "gone":
        shutil.rmtree(team.folder / ".git/gittasks")
    for words in (("list",), ("show", task), ("fsck",), ("note", task, "x"), ("recover",)):
        said = team.manager(*words, "--json", check=None)
        assert said.status in (0, 9), (words, said)
        assert "defect" not in said.out, (words, said)
    end = team.manager("fsck", "--json", check=None)
    if journal == "there":
        assert end.status == 0
        assert team.git("fsck", "--connectivity-only", "--no-dangling", LEDGER) == ""


def age(path: Path, seconds: int) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.mark.parametrize(
    "lock", [f"{LEDGER}.lock", "packed-refs.lock", "refs/gittasks/backup.lock", "config.lock",
             "index.lock", "HEAD.lock", "packed-refs.new"],
)  # fmt: skip
def test_an_old_lock_file_of_a_dead_git_stops_nobody(team: Team, lock: str) -> None:
    """Guards against a lock file that a killed git left, and that stops every later command."""
    task = team.new("One")
    path = team.folder / ".git" / lock
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("", encoding="utf-8")
    age(path, 3600)
    team.manager("note", task, "x")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    team.agent("wim", "submit", "-m", "Done.", at=tree)
    team.approve(task)
    landed = team.manager("submit", task, check=None)
    if landed.status:
        assert lock in ("index.lock",), landed
        assert "index.lock" in landed.err
        path.unlink()
        team.manager("submit", task)
    assert team.show(task)["outcome"] == "landed"


def test_every_event_of_many_writers_is_there_and_counted_once(team: Team) -> None:
    """Guards against lost events, doubled events, and writers that wait for ever."""
    task = team.new("One")
    began = time.monotonic()
    running = [tasks_process(team.folder, "note", task, f"Note {n}.") for n in range(32)]
    ended = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0] * 32, ended
    assert time.monotonic() - began < 60
    log = team.git("log", "--format=%(trailers:key=Event-Id,valueonly)%B", "gittasks", "--")
    assert all(f"Note {n}." in log for n in range(32))
    ids = team.git("log", "--format=%(trailers:key=Event-Id,valueonly)", "gittasks", "--").split()
    assert len(ids) == len(set(ids))
    team.manager("fsck")


@pytest.mark.slow
def test_writers_beside_gc_and_pack_refs_lose_nothing(team: Team) -> None:
    """Guards against an acknowledged event whose objects or ref a collector takes away."""
    task = team.new("One")
    script = (
        "while :; do git gc -q --prune=now; git pack-refs --all --prune; git repack -adq; "
        "git prune --expire=now; git reflog expire --expire=now --all; done >/dev/null 2>&1"
    )
    loop = subprocess.Popen(["sh", "-c", script], cwd=team.folder, start_new_session=True)
    try:
        for _ in range(4):
            running = [tasks_process(team.folder, "note", task, f"Note {n}.") for n in range(8)]
            ended = [process.communicate(timeout=60) for process in running]
            assert [process.returncode for process in running] == [0] * 8, ended
    finally:
        os.killpg(loop.pid, 9)
        loop.wait()
    for path in (team.folder / ".git").rglob("*.lock"):
        path.unlink()
    assert len([line for line in team.subjects() if " note " in line]) == 32
    team.manager("recover")
    team.manager("fsck")
    assert team.git("fsck", "--connectivity-only", "--no-dangling", LEDGER) == ""


@pytest.mark.parametrize("kind", ["replace ref", "graft", "shallow file"])
def test_replacements_and_grafts_do_not_change_the_ledger(team: Team, kind: str) -> None:
    """Guards against a history that reads differently on one machine than on the others."""
    task = team.new("One")
    team.manager("note", task, "A.")
    tip, parent = team.tip(), team.git("rev-parse", f"{LEDGER}~1")
    document = team.git("rev-parse", f"{LEDGER}:{path_of(task)}")
    before = team.manager("log", "--json").out
    match kind:
        case "replace ref":
            other = team.git("commit-tree", "master^{tree}", "-m", "not an event")
            team.git("replace", tip, other)
            nothing = git(team.folder, "hash-object", "-w", "--stdin", stdin="nothing")
            team.git("replace", document, nothing)
        case "graft":
            (team.folder / ".git/info").mkdir(exist_ok=True)
            (team.folder / ".git/info/grafts").write_text(f"{tip}\n", encoding="utf-8")
        case _:
            (team.folder / ".git/shallow").write_text(f"{parent}\n", encoding="utf-8")
    if kind == "replace ref":
        assert team.manager("log", "--json").out == before
        team.manager("fsck")
    shown = team.show(task)
    assert shown["title"] == "One"
    team.manager("note", task, "B.")
    assert git(team.folder, "--no-replace-objects", "rev-parse", f"{LEDGER}~1") == tip


def test_a_borrowing_clone_reads_after_the_source_collected(team: Team, home: Path) -> None:
    """Guards against a clone with borrowed objects that are gone after a recovery and a gc."""
    task = team.new("One")
    git(home, "clone", "-q", "--shared", str(team.folder), "borrower")
    git(home / "borrower", "update-ref", LEDGER, team.tip())
    team.write_by_hand({path_of(task): b"nothing\n"})
    team.manager("recover")
    team.git("gc", "-q", "--prune=now")
    team.manager("note", task, "In the source.")
    tasks(home / "borrower", "note", task, "In the clone.")
    for folder in (team.folder, home / "borrower"):
        tasks(folder, "fsck")
        git(folder, "fsck", "--connectivity-only", "--no-dangling", LEDGER)


@pytest.mark.parametrize(
    "words", [("gc", "--prune=now"), ("pack-refs", "--all"), ("repack", "-ad")]
)
def test_a_packed_repository_is_read_and_written(team: Team, words: tuple[str, ...]) -> None:
    """Guards against code that looks for loose objects and loose refs."""
    task = team.new("One")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    team.git(*words)
    assert team.state(task) == "WORK"
    team.agent("wim", "submit", "-m", "Done.", at=tree)
    team.git(*words)
    team.approve(task)
    team.git(*words)
    team.manager("submit", task)
    assert team.show(task)["outcome"] == "landed"
    team.manager("fsck")


def test_a_create_that_died_leaves_the_next_one_its_number(team: Team) -> None:
    """Guards against a counter that is ahead of the documents, or behind them."""
    team.new("One")
    for moment in (0.02, 0.05, 0.08, 0.11, 0.14, 0.2):
        process = tasks_process(team.folder, "new", "Dies")
        time.sleep(moment)
        os.killpg(process.pid, 9)
        process.communicate()
    for path in (team.folder / ".git").rglob("*.lock"):
        age(path, 60)
    before = len(team.manager("list", "--json").json()["data"])
    assert team.new("Two") == f"{before + 1:06d}"
    team.manager("fsck")
