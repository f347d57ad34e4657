"""Appending to the ledger, and what is read afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gittasks.domain import config
from gittasks.domain.decide import decide_all
from gittasks.domain.errors import Busy, Corrupt, GittasksError, NoLedger, Refused, UsageFault
from gittasks.domain.events import Configured, Event, Noted
from gittasks.domain.requests import Abort, Note, Submit
from gittasks.ledger import journal
from gittasks.ledger.build import Builder
from gittasks.ledger.layout import BACKUP
from gittasks.ledger.ledger import Ledger
from gittasks.ledger.verify import verify
from gittasks.ledger.writing import Appended
from gittasks.plumbing import objects, refs
from gittasks.plumbing.errors import RefMoved
from tests.support.builders import BRANCH, NOW, hexadecimal, write_ledger
from tests.support.git import git, make_repository
from tests.support.ledgers import a_request, asks, begin, open_ledger, speaks


def test_a_created_task_is_a_document_in_a_folder_of_a_hundred(
    ledger: Ledger, folder: Path
) -> None:
    ledger.append(asks(a_request(1, body=b"Do it.\n")))
    assert git(folder, "ls-tree", "-r", "--name-only", BRANCH).splitlines() == [
        "project.yaml",
        "tasks/0000/000001.md",
    ]
    assert git(folder, "show", f"{BRANCH}:tasks/0000/000001.md").splitlines() == [
        "---",
        'id: "000001"',
        f'uid: "{hexadecimal("uid 1")}"',
        'title: "Task 1"',
        "state: NEW",
        'entered_at: "2027-01-15T08:00:00Z"',
        'created_at: "2027-01-15T08:00:00Z"',
        'created_by: "Ada"',
        "---",
        "Do it.",
    ]


def test_one_write_starts_five_git_processes_with_everything(folder: Path, ledger: Ledger) -> None:
    ledger.append(asks(a_request(1)))
    ledger.close()
    fresh = open_ledger(folder)
    fresh.append(asks(Note("000001", "hello")))
    fresh.close()
    assert fresh.repo.calls <= 5


def test_the_answers_after_a_write_are_those_of_the_new_tip(ledger: Ledger, folder: Path) -> None:
    done = ledger.append(asks(a_request(1), Submit("000001", enter="WORK")))
    again = open_ledger(folder)
    assert (ledger.tip, again.tip) == (done.tip, done.tip)
    for one in (ledger, again):
        assert [(row.id, row.state) for row in one.ready()] == [("000001", "WORK")]
        assert [recorded.event.kind for recorded in one.log("000001")] == ["submit", "create"]
    again.close()


def test_two_repositories_begin_their_ledgers_with_the_same_commit(home: Path) -> None:
    roots: list[str] = []
    for name in ("one", "two"):
        path = make_repository(home / name)
        ledger = open_ledger(path, now=NOW + len(roots))
        ledger.create(config.Project(base="master"), name)
        ledger.close()
        roots.append(git(path, "rev-list", "--max-parents=0", BRANCH))
    assert roots[0] == roots[1]


def test_a_decision_without_events_writes_nothing(ledger: Ledger, folder: Path) -> None:
    before = git(folder, "rev-parse", BRANCH)
    done = ledger.append(lambda _graph: ())
    assert done == Appended((), (), before, before)
    assert git(folder, "rev-parse", BRANCH) == before


def test_without_a_ledger_reading_and_writing_name_init(folder: Path) -> None:
    ledger = open_ledger(folder)
    for ask in (lambda: ledger.tip, lambda: ledger.append(asks(a_request()))):
        with pytest.raises(NoLedger, match="no ledger") as caught:
            ask()
        assert caught.value.hint == "Run `git tasks init`."
    ledger.close()


def test_a_ledger_that_is_checked_out_is_not_written(
    ledger: Ledger, folder: Path, home: Path
) -> None:
    git(folder, "worktree", "add", "-q", str(home / "look"), "gittasks")
    with pytest.raises(Refused, match="checked out at") as caught:
        ledger.append(asks(a_request()))
    assert str(home / "look") in caught.value.message


def test_other_refs_move_with_the_events_or_nothing_does(ledger: Ledger, folder: Path) -> None:
    head = git(folder, "rev-parse", "HEAD")
    ledger.append(asks(a_request()), also=[refs.Change("refs/heads/task/000001", head, None)])
    assert git(folder, "rev-parse", "refs/heads/task/000001") == head
    assert git(folder, "rev-parse", BACKUP) == git(folder, "rev-parse", BRANCH)


def a_move(name: str, new: str | None, old: str | None) -> list[refs.Change]:
    return [refs.Change(name, new, old)]


def test_another_ref_that_has_moved_stops_everything(ledger: Ledger, folder: Path) -> None:
    head = git(folder, "rev-parse", "HEAD")
    before = git(folder, "for-each-ref")
    with pytest.raises(RefMoved) as caught:
        ledger.append(asks(a_request()), also=a_move("refs/heads/task/000001", head, head))
    assert caught.value.name == "refs/heads/task/000001"
    assert git(folder, "for-each-ref") == before
    assert len(journal.entries(ledger.state_dir)) == 1


def test_changes_that_are_asked_for_again_are_decided_again(ledger: Ledger, folder: Path) -> None:
    head = git(folder, "rev-parse", "HEAD")
    answers = [a_move("refs/heads/x", head, head), a_move("refs/heads/x", head, None)]
    done = ledger.append(asks(a_request()), also=lambda: answers.pop(0))
    assert (len(done.events), answers, git(folder, "rev-parse", "refs/heads/x")) == (1, [], head)


def test_a_writer_without_the_lock_makes_us_decide_again(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request()))
    seen: list[str] = []

    def also() -> list[refs.Change]:
        # Somebody who does not queue moves the branch between our decision and our move.
        if not seen:
            other = open_ledger(folder)
            above = other.reader.commit(other.tip)
            commits = Builder.on(other, above, other.graph(), None)
            note = decide_all(other.graph(), [Note("000001", "theirs")], speaks())[0]
            commits.append(note)
            objects.write(other.repo, list(commits.drafts.values()))
            changes = [
                refs.Change(name, commits.commits[-1], above.oid) for name in (BRANCH, BACKUP)
            ]
            refs.transaction(other.repo, changes, "theirs")
            other.close()
        seen.append(git(folder, "rev-parse", BRANCH))
        return []

    done = ledger.append(asks(Note("000001", "ours")), also=also)
    assert done.before == seen[-1]
    assert [r.event.text for r in ledger.log("000001")] == ["ours", "theirs", ""]


def test_a_ledger_that_never_stands_still_is_busy(ledger: Ledger, folder: Path) -> None:
    head = git(folder, "rev-parse", "HEAD")
    with pytest.raises(Busy, match="all the time"):
        ledger.append(asks(a_request()), also=lambda: a_move("refs/heads/x", head, head))


def test_events_are_kept_as_a_reader_will_have_them(ledger: Ledger) -> None:
    done = ledger.append(asks(a_request(), Note("000001", "x", artifacts=(("b", "1"), ("a", "2")))))
    read = list(ledger.history("000001"))[::-1]
    assert [event._replace(body=None) for event in done.events] == read
    assert [event.document for event in done.events] == [
        git(ledger.repo.common_dir, "rev-parse", f"{commit}:tasks/0000/000001.md")
        for commit in done.commits
    ]


def test_a_note_that_changes_nothing_has_no_document(ledger: Ledger) -> None:
    ledger.append(asks(a_request()))
    done = ledger.append(asks(Note("000001", "only words")))
    assert done.events[0].document is None
    assert done.events[0].revision == ledger.graph().revision("000001")


def test_a_commit_is_never_older_than_its_parent(folder: Path, ledger: Ledger) -> None:
    ledger.append(asks(a_request()))
    early = open_ledger(folder, now=NOW - 1000)
    early.append(asks(Note("000001", "late"), facts=speaks(now=NOW - 1000)))
    assert git(folder, "log", "-2", "--format=%at %ct %an <%ae> %cn", BRANCH).splitlines() == [
        f"{NOW - 1000} {NOW} Ada <Ada@test.invalid> Ada",
        f"{NOW} {NOW} Ada <Ada@test.invalid> Ada",
    ]


def test_a_close_moves_the_document(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request()))
    ledger.append(asks(Abort("000001", "no")))
    assert git(folder, "ls-tree", "-r", "--name-only", BRANCH).splitlines() == [
        "closed/0000/000001.md",
        "project.yaml",
    ]


def configured(change: Configured, body: bytes | None = None) -> Callable[[object], list[Event]]:
    return lambda _graph: [Event("", NOW, "Ada", "manager", "", change, body=body)]


def test_settings_and_texts_are_events_too(ledger: Ledger, folder: Path) -> None:
    ledger.append(configured(Configured(set=(("landing", "squash"), ("labels", ("a",))))))
    ledger.append(configured(Configured(path="prompts/WORK.md"), b"Work!\n"))
    ledger.append(configured(Configured(path="template.md"), b"Why\n"))
    ledger.append(configured(Configured(path="template.md", unset=("template.md",))))
    ledger.append(configured(Configured(unset=("labels",))))
    again = open_ledger(folder)
    assert again.project() == config.Project(base="master", landing="squash")
    assert (again.text("prompts/WORK.md"), again.text("template.md")) == (b"Work!\n", None)
    assert verify(again).findings == ()
    again.close()


@pytest.mark.parametrize(
    "change",
    [
        Configured(set=(("colour", "red"),)),
        Configured(set=(("landing", "jump"),)),
        Configured(set=(("rejection_limit", 0),)),
        Configured(path="README.md"),
    ],
)
def test_settings_that_nobody_could_read_are_not_written(
    ledger: Ledger, folder: Path, change: Configured
) -> None:
    before = git(folder, "rev-parse", BRANCH)
    with pytest.raises(Corrupt):
        ledger.append(configured(change, b"x"))
    assert git(folder, "rev-parse", BRANCH) == before


def test_an_illegal_event_of_our_own_is_a_bug(ledger: Ledger) -> None:
    event = Event("", NOW, "Ada", "manager", "", Noted(), "000009", hexadecimal("u"), "NEW", "NEW")
    with pytest.raises(RuntimeError, match="does not exist"):
        ledger.append(lambda _graph: [event])


def test_a_document_over_the_limit_is_refused(ledger: Ledger) -> None:
    with pytest.raises(UsageFault, match="at most 4194304 are allowed"):
        ledger.append(asks(a_request(body=b"x" * 4_194_304)))


def test_a_folder_that_cannot_be_written_is_named(ledger: Ledger, folder: Path) -> None:
    state = folder / ".git" / "gittasks"
    before = git(folder, "rev-parse", BRANCH)
    for path in (state / "journal").iterdir():
        path.unlink()
    (state / "journal").rmdir()
    (state / "journal").write_text("in the way")
    with pytest.raises(GittasksError, match="cannot be written: Not a directory") as caught:
        ledger.append(asks(a_request()))
    assert (caught.value.exit_code, git(folder, "rev-parse", BRANCH)) == (1, before)


def test_a_signature_that_fails_leaves_everything_as_it_was(ledger: Ledger, folder: Path) -> None:
    git(folder, "config", "gpg.program", "false")
    git(folder, "config", "gittasks.sign", "true")
    before = git(folder, "for-each-ref")
    with pytest.raises(GittasksError, match="could not be signed") as caught:
        open_ledger(folder).append(asks(a_request()))
    assert (caught.value.exit_code, git(folder, "for-each-ref")) == (1, before)


def test_events_are_signed_where_that_is_wanted(ledger: Ledger, folder: Path, home: Path) -> None:
    signer = home / "sign"
    signer.write_text(
        "#!/bin/sh\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n"
        "echo '-----BEGIN PGP SIGNATURE-----'\necho made\necho '-----END PGP SIGNATURE-----'\n"
    )
    signer.chmod(0o755)
    git(folder, "config", "gpg.program", str(signer))
    signing = open_ledger(folder, sign=True)
    signing.append(asks(a_request(1), a_request(2)))
    kinds = [
        line
        for line in git(folder, "cat-file", "commit", f"{BRANCH}^").splitlines()
        if "gpgsig" in line
    ]
    assert kinds == ["gpgsig -----BEGIN PGP SIGNATURE-----"]
    assert verify(signing).findings == ()


def test_a_task_whose_document_is_broken_is_refused_as_such(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request(1), a_request(2)))
    path = "tasks/0000/000001.md"
    tip = write_ledger(
        ledger.repo, [], files={path: b"no header\n"}, parent=refs.read(ledger.repo, BRANCH)
    )
    refs.transaction(ledger.repo, a_move(BACKUP, tip, refs.read(ledger.repo, BACKUP)), "test")
    with pytest.raises(Corrupt, match=path):
        open_ledger(folder).append(asks(Note("000001", "hello")))


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
@pytest.mark.parametrize("bare", [False, True])
def test_any_kind_of_repository_holds_a_ledger(home: Path, object_format: str, bare: bool) -> None:
    folder = make_repository(home / "a b\n", object_format=object_format, bare=bare)
    ledger = begin(folder)
    ledger.append(asks(a_request(), Submit("000001", enter="WORK")))
    assert verify(ledger).findings == ()
    assert git(folder, "fsck", "--strict", "--no-dangling") == ""
    ledger.close()


def test_a_linked_worktree_and_its_repository_share_one_ledger(
    ledger: Ledger, folder: Path, home: Path
) -> None:
    git(folder, "worktree", "add", "-q", str(home / "linked"))
    linked = open_ledger(home / "linked")
    done = linked.append(asks(a_request()))
    ledger.refresh()
    assert (ledger.tip, linked.state_dir) == (done.tip, ledger.state_dir)
    linked.close()


def test_an_empty_repository_with_an_unborn_branch_holds_a_ledger(home: Path) -> None:
    folder = make_repository(home / "empty", commit=False)
    ledger = begin(folder)
    ledger.append(asks(a_request()))
    assert git(folder, "status", "--porcelain") == "?? app.txt"
    assert not (folder / ".git" / "index").exists()
    ledger.close()


def test_a_deleted_ledger_is_not_begun_a_second_time(ledger: Ledger, folder: Path) -> None:
    git(folder, "branch", "-D", "gittasks")
    with pytest.raises(Corrupt, match="is missing"):
        _ = open_ledger(folder).exists


def test_many_events_make_one_pack_and_one_move_of_the_branch(ledger: Ledger, folder: Path) -> None:
    before = len(list((folder / ".git" / "objects" / "pack").glob("*")))
    ledger.append(asks(*(a_request(n) for n in range(1, 61))))
    packs = len(list((folder / ".git" / "objects" / "pack").glob("*")))
    moves = git(folder, "reflog", "show", "--format=%gs", BRANCH).splitlines()
    assert packs - before == 2
    assert moves[0] == "gittasks: 000001 create -> NEW (manager Ada) and 59 more"
    assert len(moves) == 2


def test_every_256th_event_or_so_lets_git_tidy_up(ledger: Ledger, folder: Path) -> None:
    git(folder, "config", "gc.auto", "1")
    git(folder, "config", "gc.autoDetach", "false")
    event = decide_all(ledger.graph(), [a_request()], speaks())[0]
    before = ledger.repo.calls
    ledger.append(lambda _graph: [event._replace(event_id="0" * 32)])
    calls = ledger.repo.calls - before
    ledger.append(asks(Note("000001", "hello")))
    assert calls == ledger.repo.calls - before - calls + 1


def test_a_read_after_a_gc_took_the_newest_blob_is_repaired_from_the_journal(
    ledger: Ledger, folder: Path
) -> None:
    ledger.append(asks(a_request()))
    blob = ledger.graph().revision("000001")
    ledger.close()
    assert blob is not None
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (folder / ".git" / "gittasks" / "cache.db").unlink()
    tree = git(folder, "rev-parse", f"{BRANCH}^{{tree}}")
    (folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    again = open_ledger(folder)
    assert again.graph().body("000001") == b""
    again.close()
