"""A ledger is checked commit by commit; whatever a command writes passes."""

from __future__ import annotations

import cProfile
import itertools
import pstats
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gittasks.domain.decide import decide_all
from gittasks.domain.errors import GittasksError
from gittasks.domain.requests import Note, Submit
from gittasks.ledger import arrivals
from gittasks.ledger.layout import COPIES
from gittasks.ledger.ledger import Ledger
from gittasks.ledger.verify import Checker, Fold, oldest_first, verify
from gittasks.ledger.verify import Finding as Found
from gittasks.plumbing import objects
from tests.support.builders import ACTOR, a_task, hexadecimal, write_ledger
from tests.support.git import git, make_repository
from tests.support.hands import commit_by_hand
from tests.support.ledgers import a_request, asks, begin, open_ledger, speaks
from tests.support.steps import a_step


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_running_the_events_again_gives_the_tree_of_every_commit(
    home: Path, data: st.DataObject
) -> None:
    ledger = begin(make_repository(home / hexadecimal(str(next(_COUNTER)))))
    ledger.append(asks(*(a_request(n, body=b"Body\n") for n in range(1, 4))))
    for _ in range(12):
        graph = ledger.graph()
        ids = ["000001", "000002", "000003"]
        task = graph.get(data.draw(st.sampled_from(ids)))
        assert task is not None
        request, role = a_step(data.draw, task, ids)  # type: ignore[arg-type]
        facts = speaks(role, hexadecimal(task.id))  # type: ignore[arg-type]
        try:
            decide_all(graph, [request], facts)
        except GittasksError:
            continue
        ledger.append(asks(request, facts=facts))
    report = verify(ledger)
    ledger.close()
    assert (report.findings, report.notes) == ((), ())


_COUNTER = itertools.count()


def test_a_fold_of_every_event_is_the_graph_read_from_the_tip(ledger: Ledger) -> None:
    ledger.append(asks(*(a_request(n) for n in range(1, 4)), Submit("000002", enter="WORK")))
    checker = Checker(ledger.repo, ledger.reader)
    for commit in oldest_first(ledger.repo, ledger.reader, ledger.tip):
        assert isinstance(commit, objects.Commit)
        assert checker.check(commit) == []
    assert [
        checker.fold.tasks[task] for task in sorted(checker.fold.tasks)
    ] == ledger.snapshot.all_tasks()


def kinds(path: Path) -> list[tuple[str, str | None]]:
    ledger = open_ledger(path)
    try:
        return [(finding.kind, finding.task) for finding in verify(ledger).findings]
    finally:
        ledger.close()


def ends(path: Path) -> list[str]:
    """Returns how the notes about commits end that have left nothing, in two words."""
    ledger = open_ledger(path)
    try:
        notes = verify(ledger).notes
        assert all(note.endswith(" It left nothing.") for note in notes)
        return [" ".join(note.split()[-5:-3]) for note in notes]
    finally:
        ledger.close()


def test_a_commit_without_an_event_is_found(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request()))
    document = ledger.graph().document("000001").replace(b"Task 1", b"Task one")
    commit_by_hand(ledger, b"edit\n", {"tasks/0000/000001.md": document})
    assert kinds(folder) == [("message", None)]


def test_an_event_that_says_less_than_it_does_is_found(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request()))
    ledger.append(asks(Note("000001", "hello")))
    note = ledger.reader.commit(ledger.tip).message
    other = note.replace(b"Event-Id: ", b"Event-Id: 0123")[:].replace(b"hello", b"again")
    # The id keeps its length.
    start = other.index(b"Event-Id: ") + 10
    other = other[: start + 32] + other[start + 36 :]
    document = ledger.graph().document("000001").replace(b"Task 1", b"Task one")
    commit_by_hand(ledger, other, {"tasks/0000/000001.md": document})
    assert kinds(folder) == [("tree", "000001")]


def test_the_same_event_twice_is_found(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request()))
    ledger.append(asks(Note("000001", "hello")))
    commit_by_hand(ledger, ledger.reader.commit(ledger.tip).message, {})
    assert kinds(folder) == [("repeated", "000001")]


def test_an_illegal_step_is_found(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request()))
    commit_by_hand(ledger, ledger.reader.commit(ledger.tip).message, {})
    assert (kinds(folder), ends(folder)) == ([], ["there twice.", "exists already."])


@pytest.mark.parametrize(
    ("files", "mode", "found"),
    [
        ({"README": b"hi\n"}, objects.FILE, ("file", None)),
        ({"tasks/0000/000009.md": b"no header\n"}, objects.FILE, ("file", "000009")),
        ({"tasks/0000/000009.md": b"project.yaml"}, "120000", ("file", "000009")),
        ({"tasks/0000/000009.md": b"x"}, "100755", ("file", "000009")),
    ],
)
def test_a_file_that_does_not_belong_is_found(
    ledger: Ledger,
    folder: Path,
    files: dict[str, bytes | None],
    mode: str,
    found: tuple[str, str | None],
) -> None:
    commit_by_hand(ledger, b"edit\n", files, mode=mode)
    assert kinds(folder) == [("message", None), found]


def test_a_commit_with_two_parents_is_found(ledger: Ledger, folder: Path) -> None:
    ledger.append(asks(a_request()))
    first = ledger.reader.commit(ledger.tip).parents[0]
    commit_by_hand(ledger, b"merge\n", {}, more_parents=(first,))
    assert (kinds(folder), ends(folder)) == ([], ["one before.", "of trailers."])


def test_another_beginning_is_found(folder: Path) -> None:
    ledger = open_ledger(folder)
    root = objects.draft(
        ledger.repo,
        "commit",
        objects.commit_bytes(
            objects.object_id(ledger.repo, "tree", b""), [], ACTOR, ACTOR, b"mine\n"
        ),
    )
    objects.write(ledger.repo, [root, objects.draft(ledger.repo, "tree", b"")])
    write_ledger(ledger.repo, [a_task()], parent=root.oid)
    ledger.close()
    assert kinds(folder) == [("root", None), ("message", None)]


def test_a_fold_knows_no_task_that_was_dropped(ledger: Ledger) -> None:
    fold = Fold(ledger.reader)
    fold.put(a_task(1, depends_on=("000002",), parent="000003", supersedes="000004"))
    fold.drop("000001")
    assert (
        fold.get("000001"),
        fold.dependents("000002"),
        fold.children("000003"),
        fold.superseders("000004"),
        fold.with_uid(hexadecimal("uid 1")),
    ) == (None, [], [], [], None)


def test_findings_name_the_commit(ledger: Ledger) -> None:
    oid = commit_by_hand(ledger, b"edit\n", {"README": b"hi\n"})
    ledger.refresh()
    assert verify(ledger).findings[1] == Found(
        "file", oid, None, "The file README does not belong in a ledger."
    )


# ------------------------------------------------------------------------------------ much junk


def _junk_by_junk(folder: Path, count: int) -> None:
    """Adds files to one folder, each by a commit of its own."""
    stream = "".join(
        "commit refs/heads/gittasks\ncommitter A <a@example.org> 1800000000 +0000\ndata 0\n"
        + ("" if number else "from refs/heads/gittasks^0\n")
        + f"M 100644 inline junk-{number}\ndata 1\n{number % 10}\n"
        for number in range(count)
    )
    git(folder, "fast-import", "--quiet", stdin=stream)


def _junk_at_once(folder: Path, count: int) -> None:
    ledger = open_ledger(folder)
    commit_by_hand(ledger, b"junk\n", {f"junk-{number}": b"x" for number in range(count)})
    ledger.close()


def _cost(folder: Path, junk: Callable[[Path, int], None], count: int, *, shared: bool) -> int:
    """Returns how many calls it takes to verify a ledger with so much junk."""
    begin(make_repository(folder)).close()
    before = git(folder, "rev-parse", "refs/heads/gittasks")
    junk(folder, count)
    ledger = open_ledger(folder)
    if shared:
        tip = ledger.tip
        git(folder, "update-ref", f"{COPIES}origin", tip)
        arrivals.inspect(ledger, before, tip)
    profile = cProfile.Profile()
    assert len(profile.runcall(verify, ledger).findings) >= count
    ledger.close()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]  # it is there


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("junk", [_junk_by_junk, _junk_at_once])
def test_twice_as_much_junk_costs_not_much_more_than_twice_as_much(
    home: Path, junk: Callable[[Path, int], None], shared: bool
) -> None:
    first, second = (_cost(home / f"{count}", junk, count, shared=shared) for count in (200, 400))
    assert second < 2.3 * first


_RUN = ("process.py", "run")


def test_no_process_of_git_is_started_for_each_commit_that_does_not_count(home: Path) -> None:
    def processes(count: int) -> int:
        folder = home / f"{count}"
        begin(make_repository(folder)).close()
        _junk_by_junk(folder, count)
        git(folder, "update-ref", f"{COPIES}origin", "refs/heads/gittasks")
        ledger = open_ledger(folder)
        profile = cProfile.Profile()
        profile.runcall(verify, ledger)
        ledger.close()
        calls = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]  # it is there
        return sum(row[0] for (file, _, name), row in calls if (file[-10:], name) == _RUN)

    assert 0 < processes(3) == processes(30)
