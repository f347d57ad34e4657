"""Dependencies: rings, prerequisites that are thrown away, tasks that wait for ever."""

from __future__ import annotations

import pytest

from tests.cases.ground import Team, error_of, path_of


def test_a_ring_is_refused_with_its_path(team: Team) -> None:
    """Guards against tasks that wait for one another, and nobody notices."""
    one, two, three, four = (team.new(f"Task {n}", "--idle") for n in range(1, 5))
    team.manager("dep", "add", one, two)
    team.manager("dep", "add", two, three)
    before = team.tip()
    for words in (
        ("dep", "add", three, one), ("dep", "add", four, four), ("dep", "add", four, "4"),
        ("edit", three, "--set", f'depends_on=["{one}"]'), ("dep", "add", two, one),
    ):  # fmt: skip
        error = error_of(team.manager(*words, "--json", check=5))
        assert " needs " in error["message"]
        assert team.tip() == before, words
    error = error_of(team.manager("dep", "add", three, one, "--json", check=5))
    for name in (one, two, three):
        assert name in error["message"]
    assert four not in error["message"]
    assert team.manager("dep", "cycles", "--json").json()["data"] == []
    team.manager("dep", "tree", one)


def test_a_ring_written_by_hand_is_named_and_does_not_get_in(team: Team) -> None:
    """Guards against a file edited by hand that closes a ring behind the tool's back."""
    one, two, three = (team.new(f"Task {n}", "--idle") for n in range(1, 4))
    team.manager("dep", "add", one, two)
    team.manager("dep", "add", two, three)
    document = team.document(three).replace(
        b"created_at:", f'depends_on: ["{one}"]\ncreated_at:'.encode()
    )
    head, _, rest = document.partition(b"entered_at:")
    line, _, tail = rest.partition(b"\n")
    ordered = head + b"entered_at:" + line + b"\n" + tail
    team.write_by_hand({path_of(three): ordered})
    for verb in ("list", "status", "ready", "inbox"):
        team.manager(verb)
    team.manager("dep", "tree", one)
    team.manager("recover")
    assert team.show(three)["depends_on"] == []
    assert team.manager("dep", "cycles", "--json").json()["data"] == []
    team.manager("fsck")


def test_a_task_beside_a_ring_is_not_in_it(team: Team) -> None:
    """Guards against ring detection that names the wrong tasks, or depends on the order."""
    a, b, c, d, e = (team.new(f"Task {n}", "--idle") for n in "abcde")
    team.manager("dep", "add", a, b)
    team.manager("dep", "add", b, c)
    team.manager("dep", "add", b, d)
    team.manager("dep", "add", d, c)
    team.manager("dep", "add", e, a)
    error = error_of(team.manager("dep", "add", c, a, "--json", check=5))
    assert e not in error["message"]
    path = [word.strip(".,") for word in error["message"].split() if word.strip(".,").isdigit()]
    assert set(path) <= {a, b, c, d}
    assert len(path) >= 3


def test_a_ring_closed_while_a_task_is_held_is_seen_at_its_resume(team: Team) -> None:
    """Guards against a ring that is closed while nobody looks at one of its tasks."""
    one, two = team.new("One"), team.new("Two", "--idle")
    team.manager("hold", one, "-m", "Stop.")
    team.manager("dep", "add", two, one)
    team.manager("dep", "add", one, two, check=5)
    team.manager("resume", one)
    assert team.state(one) == "WORK"


def test_superseding_does_not_close_a_ring_through_the_aborted_one(team: Team) -> None:
    """Guards against a replacement that waits for what waits for it."""
    old = team.new("Old")
    waiter = team.new("Waiter", "--dep", old)
    new = team.new("New", "--idle", "--supersedes", old)
    team.manager("dep", "add", new, waiter, check=5)
    team.manager("submit", new, "--enter", "work")
    assert team.state(waiter) == "BLOCKED"
    team.work(new, {"new.txt": "new\n"})
    team.approve(new)
    team.manager("submit", new)
    assert team.state(waiter) == "WORK"


def test_a_prerequisite_that_is_thrown_away_is_told_and_blocks(team: Team) -> None:
    """Guards against dependents that go on as if something had been delivered, or wait unseen."""
    one = team.new("One")
    two = team.new("Two", "--dep", one)
    three = team.new("Three", "--dep", two)
    team.manager("hold", one, "-m", "Stop.")
    said = team.manager("abort", one)
    assert two in said.err + said.out
    ready = [row["id"] for row in team.manager("ready", "--json").json()["data"]]
    assert ready == []
    inbox = {row["id"]: row for row in team.manager("inbox", "--json").json()["data"]}
    assert set(inbox) == {two}
    assert f"{one} was aborted" in team.manager("show", two).out
    assert f"{one} was aborted" not in team.manager("show", three).out
    entered = team.show(three)["entered_at"]
    freed = team.manager("dep", "rm", two, one)
    assert team.state(two) == "WORK"
    assert two in freed.out + freed.err
    assert (team.state(three), team.show(three)["entered_at"]) == ("BLOCKED", entered)
    assert team.manager("inbox", "--json").json()["data"] == []
    kinds = [line.split()[:2] for line in team.subjects()[:2]]
    assert [two, "unblock"] in kinds


@pytest.mark.parametrize("number", ["99", "000000", "999999"])
def test_a_dependency_that_does_not_exist_is_refused(team: Team, number: str) -> None:
    """Guards against a task that waits for a number nobody has."""
    before = team.tip()
    team.manager("new", "One", "--dep", number, check=4)
    assert team.tip() == before
    one = team.new("One", "--idle")
    team.manager("dep", "add", one, number, check=4)


def test_a_dependency_that_has_landed_already_blocks_nobody(team: Team) -> None:
    """Guards against a task that waits for ever for something that is done."""
    done = team.reviewed("Done", {"new.txt": "new\n"})
    team.manager("submit", done)
    task = team.new("Next", "--dep", done)
    assert team.state(task) == "WORK"


def test_a_dependency_on_an_aborted_task_is_told_at_once(team: Team) -> None:
    """Guards against waiting for what was thrown away before."""
    gone = team.new("Gone")
    team.manager("hold", gone, "-m", "Stop.")
    team.manager("abort", gone)
    task = team.new("Next", "--idle", "--dep", gone)
    said = team.manager("submit", task, "--enter", "work")
    assert gone in said.err + said.out
    assert team.state(task) == "BLOCKED"
    assert task in [row["id"] for row in team.manager("inbox", "--json").json()["data"]]


def test_a_landing_frees_all_who_can_go_and_touches_no_one_else(team: Team) -> None:
    """Guards against dependents freed one by one, or whose clocks start again without a reason."""
    one, other = team.new("One"), team.new("Other")
    free = [team.new(f"Free {n}", "--dep", one) for n in range(3)]
    bound = team.new("Bound", "--dep", one, "--dep", other)
    before = team.document(bound)
    team.work(one, {"new.txt": "new\n"})
    team.approve(one)
    said = team.manager("submit", one, "--json").json()["data"]
    assert said["unblocked"] == free
    assert [team.state(task) for task in free] == ["WORK"] * 3
    assert team.document(bound) == before
    kinds = [tuple(line.split()[:2]) for line in team.subjects()[:4]]
    assert kinds[::-1] == [(one, "submit")] + [(task, "unblock") for task in free]


def test_one_unreadable_dependent_does_not_stop_a_landing(team: Team) -> None:
    """Guards against a close that dies half way because a document cannot be read."""
    one = team.new("One")
    good, bad = team.new("Good", "--dep", one), team.new("Bad", "--dep", one)
    team.work(one, {"new.txt": "new\n"})
    team.approve(one)
    team.write_by_hand({path_of(bad): b"nothing\n"})
    team.manager("submit", one)
    assert team.show(one)["outcome"] == "landed"
    assert (team.state(good), team.state(bad)) == ("WORK", "WORK")
    team.manager("fsck")


def test_a_parent_closes_when_its_children_have_delivered(team: Team) -> None:
    """Guards against parents that stay open for ever, or close over open children."""
    parent = team.new("Parent", "--idle")
    child, other = (team.new(f"Child {n}", "--parent", parent) for n in (1, 2))
    team.manager("submit", parent, "--close", check=5)
    team.work(child, {"new.txt": "new\n"})
    team.approve(child)
    team.manager("submit", child)
    error = error_of(team.manager("submit", parent, "--close", "--json", check=5))
    assert other in error["message"]
    team.manager("abort", parent, check=5)
    team.manager("hold", other, "-m", "Stop.")
    team.manager("abort", other)
    team.manager("submit", parent, "--close")
    assert team.show(parent)["outcome"] == "landed"


@pytest.mark.parametrize(("kind", "status"), [("ring", 5), ("itself", 5), ("unknown", 4)])
def test_the_editor_closes_no_ring(
    team: Team, monkeypatch: pytest.MonkeyPatch, kind: str, status: int
) -> None:
    """Guards against a rule that only the command line knows, and not the file."""
    one, two = team.new("One", "--idle"), team.new("Two", "--idle")
    team.manager("dep", "add", two, one)
    other = {"ring": two, "itself": one, "unknown": "000077"}[kind]
    line = f'depends_on: ["{other}"]'
    monkeypatch.setenv("GIT_EDITOR", f"sed -i 's/^title: .*/title: \"New\"\\n{line}/'")
    before = team.tip()
    refused = team.manager("edit", one, "--json", check=status)
    assert other in error_of(refused)["message"]
    assert team.tip() == before
