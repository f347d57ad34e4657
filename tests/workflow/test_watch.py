"""Following the ledger: every event once, in order, whatever happens to the branch meanwhile.

What happens while the follower waits is done in the place of its waiting, step by step.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from gittasks.domain.errors import NoLedger, UnknownTask
from gittasks.ledger import quarantine
from gittasks.plumbing.errors import GitError
from gittasks.workflow import claim, create, hold, queries
from gittasks.workflow.create import New
from gittasks.workflow.project import Options, Project
from gittasks.workflow.watch import TICK, Follower
from tests.support.git import IDENTITY, git, make_repository
from tests.workflow import landings
from tests.workflow.ground import begun, opened

BRANCH = "refs/heads/gittasks"
Step = Callable[[], object]
Answer = TypeVar("Answer")


class Ended(Exception):
    """The steps of a test are over."""


class Scene:
    """A repository whose ledger somebody follows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[str] = []
        self.steps: list[Step] = []
        begun(folder)

    def follower(self, *steps: Step, refresh: Callable[[], None] | None = None) -> Follower:
        """Returns a follower in whose waits the steps are done, one after the other."""
        self.steps = list(steps)
        return Follower(
            opened(self.folder), tell=self.told.append, wait=self._wait, refresh=refresh
        )

    def _wait(self, _seconds: float) -> None:
        if not self.steps:
            raise Ended
        self.steps.pop(0)()

    def seen(self, follower: Follower, after: str | None = None, **options: bool) -> list[str]:
        """Returns what a follower sees until the steps are over or it ends by itself."""
        return [told for _, told in self.lines(follower, after, **options)]

    def lines(
        self, follower: Follower, after: str | None = None, **options: bool
    ) -> list[tuple[str, str]]:
        """Returns commit and words of each event that a follower sees."""
        found = []
        try:
            for entry, _ in follower.events(follower.start(after), **options):
                about = getattr(entry.event.change, "title", None) or entry.event.task
                found.append((entry.oid, f"{entry.event.kind} {about}"))
        except Ended:
            pass
        return found

    def new(self, title: str) -> str:
        """Writes a task down, ready for a worker; returns the tip."""
        create.create(opened(self.folder), New(title, enter="work"))
        return self.tip

    def idea(self, title: str) -> str:
        """Writes a task down that nobody works on; returns the tip."""
        create.create(opened(self.folder), New(title))
        return self.tip

    @property
    def tip(self) -> str:
        """Returns the tip of the ledger."""
        return git(self.folder, "rev-parse", BRANCH)

    @property
    def root(self) -> str:
        """Returns the first commit of the ledger."""
        return git(self.folder, "rev-list", "--max-parents=0", BRANCH)

    def moves_to(self, commit: str) -> str:
        """Lets the ledger be at another commit, and all that remembers where it was."""
        for ref in (BRANCH, "refs/gittasks/backup"):
            git(self.folder, "update-ref", ref, commit)
        return commit

    def again(self, commit: str, onto: str) -> str:
        """Returns the same event as another commit on another parent."""
        message = git(self.folder, "log", "-1", "--format=%B", commit) + "\n"
        tree = f"{onto}^{{tree}}"
        author = {"GIT_AUTHOR_DATE": "1800000000 +0000"}
        return git(
            self.folder, "commit-tree", "-p", onto, git(self.folder, "rev-parse", tree),
            stdin=message, env={**IDENTITY, **author},
        )  # fmt: skip

    def synced(self, theirs: str, own: list[str]) -> str:
        """Puts own events behind those of others, as a sync does; returns the new tip."""
        tip = theirs
        for commit in own:
            tip = self.again(commit, tip)
        return self.moves_to(tip)


@pytest.fixture
def scene(home: Path) -> Scene:
    return Scene(home / "project")


@pytest.fixture
def parted(scene: Scene) -> tuple[str, str, list[str]]:
    """Returns where two clones parted, the other one's tip, and our commits since."""
    base = scene.idea("Base")
    theirs = scene.idea("Theirs")
    scene.moves_to(base)
    own = [scene.idea("First of ours"), scene.idea("Second of ours")]
    return base, theirs, own


# In order, once.


def test_without_a_cursor_it_begins_with_the_next_event(scene: Scene) -> None:
    scene.idea("Before")
    follower = scene.follower(lambda: scene.idea("One"), lambda: scene.new("Two"), lambda: None)
    assert scene.seen(follower) == ["create One", "create Two", "submit 000003"]
    assert scene.told == []


def test_from_the_root_on_it_tells_all(scene: Scene) -> None:
    scene.idea("One")
    scene.new("Two")
    follower = scene.follower()
    everything = ["init None", "create One", "create Two", "submit 000002"]
    assert scene.seen(follower, scene.root) == everything


@pytest.mark.parametrize(
    ("cursor", "missing"),
    [("HEAD", 3), ("@", 3), ("HEAD~1", 2), ("@~2", 1), ("HEAD^", 2), ("gittasks~1", 2)],
)
def test_a_cursor_may_be_spelled_as_git_spells_commits(
    scene: Scene, cursor: str, missing: int
) -> None:
    for title in ("One", "Two", "Three"):
        scene.idea(title)
    everything = ["create One", "create Two", "create Three"]
    assert scene.seen(scene.follower(), cursor) == everything[missing:]


def test_a_cursor_may_be_abbreviated(scene: Scene) -> None:
    first = scene.idea("One")
    scene.idea("Two")
    assert scene.seen(scene.follower(), first[:8]) == ["create Two"]


@pytest.mark.parametrize("cursor", ["master", "what", "", "--all", "HEAD~99", "f" * 40, "@{u}"])
def test_a_commit_outside_the_ledger_is_no_cursor(scene: Scene, cursor: str) -> None:
    with pytest.raises(UnknownTask, match="is not part of the ledger"):
        scene.follower().start(cursor)


def test_without_a_ledger_there_is_nothing_to_follow(home: Path) -> None:
    folder = make_repository(home / "project")
    with pytest.raises(NoLedger):
        Follower(opened(folder), tell=print).start(None)


def test_every_line_is_a_place_to_go_on_from(scene: Scene) -> None:
    for number in range(6):
        scene.new(f"Task {number}")
    whole = scene.lines(scene.follower(), scene.root)
    assert len(whole) == 13
    for at, (oid, _) in enumerate(whole, 1):
        assert scene.lines(scene.follower(), oid) == whole[at:]


def test_many_events_come_in_the_order_of_the_chain(scene: Scene) -> None:
    tip = scene.idea("One")
    names = [f"create {number}" for number in range(1100)]
    template = git(scene.folder, "log", "-1", "--format=%B", tip)
    (event_id,) = [line for line in template.splitlines() if line.startswith("Event-Id: ")]
    stream = []
    for number in range(1100):
        message = template.replace(event_id, f"Event-Id: {number:032x}")
        message = message.replace('"title":"One"', f'"title":"{number}"') + "\n"
        stream.append(
            f"commit {BRANCH}\nmark :{number + 1}\ncommitter A <a@b> {1_800_000_000 - number} +0000\n"
            f"data {len(message)}\n{message}\nfrom {tip if not number else f':{number}'}\n"
        )
    git(scene.folder, "fast-import", "--quiet", stdin="".join(stream))
    assert scene.seen(scene.follower(), tip) == names


# What a sync does to the chain.


def test_events_that_a_sync_moved_are_told_once(
    scene: Scene, parted: tuple[str, str, list[str]]
) -> None:
    base, theirs, own = parted
    follower = scene.follower(lambda: scene.synced(theirs, own), lambda: scene.idea("Later"))
    scene.steps.append(lambda: None)
    assert scene.seen(follower, base) == [
        "create First of ours", "create Second of ours", "create Theirs", "create Later",
    ]  # fmt: skip
    assert scene.told == [
        f"The commit {own[1][:12]} is no longer part of the ledger, as after a sync; "
        "what was told already is not told again."
    ]


@pytest.mark.parametrize("given", [1, 2])
def test_a_cursor_that_a_sync_replaced_goes_on_without_loss_or_repetition(
    scene: Scene, parted: tuple[str, str, list[str]], given: int
) -> None:
    _, theirs, own = parted
    scene.synced(theirs, own)
    expected = ["create Theirs", "create Second of ours"][: 3 - given]
    assert scene.seen(scene.follower(), own[given - 1]) == expected
    assert len(scene.told) == 1


def test_what_moves_twice_is_told_once(scene: Scene, parted: tuple[str, str, list[str]]) -> None:
    base, theirs, own = parted

    def once_more() -> None:
        others = scene.again(theirs, base)  # a commit of its own, but the same event
        scene.moves_to(others)
        scene.synced(scene.idea("Fourth"), own)

    follower = scene.follower(lambda: scene.synced(theirs, own), once_more, lambda: None)
    assert scene.seen(follower, base) == [
        "create First of ours", "create Second of ours", "create Theirs", "create Fourth",
    ]  # fmt: skip
    assert len(scene.told) == 2


def test_a_chain_that_goes_back_tells_nothing_and_goes_on(scene: Scene) -> None:
    first = scene.idea("One")
    follower = scene.follower(
        lambda: scene.idea("Two"), lambda: scene.moves_to(first), lambda: scene.idea("Three")
    )
    scene.steps.append(lambda: None)
    assert scene.seen(follower) == ["create Two", "create Three"]
    assert len(scene.told) == 1


# What is no event, and what fails.


def test_a_commit_made_by_hand_is_named_and_left_out(scene: Scene) -> None:
    before = scene.idea("One")
    tree = f"{before}^{{tree}}"
    hand = git(
        scene.folder, "commit-tree", "-p", before, git(scene.folder, "rev-parse", tree), "-m", "x"
    )
    scene.moves_to(hand)
    scene.moves_to(scene.again(before, hand))
    assert scene.seen(scene.follower(), before) == ["create One"]
    (told,) = scene.told
    assert told.startswith(f"warning: The commit {hand[:12]} is not an event of the ledger: ")


def test_a_ledger_that_is_gone_for_a_while_is_waited_for(scene: Scene) -> None:
    tip = scene.idea("One")
    follower = scene.follower(
        lambda: git(scene.folder, "update-ref", "-d", BRANCH),
        *[lambda: time.sleep(1.05)] * 2,
        lambda: scene.moves_to(tip),
        lambda: scene.idea("Two"),
        lambda: time.sleep(1.05),
        lambda: None,
    )
    assert scene.seen(follower) == ["create Two"]
    assert len(scene.told) == 1
    assert "missing" in scene.told[0]


def test_a_repository_that_is_gone_ends_the_watch(scene: Scene) -> None:
    follower = scene.follower(lambda: shutil.rmtree(scene.folder), lambda: None)
    with pytest.raises((OSError, GitError)):
        scene.seen(follower)


def test_refs_that_are_packed_hide_nothing(scene: Scene) -> None:
    def pack() -> None:
        git(scene.folder, "pack-refs", "--all", "--prune")

    follower = scene.follower(
        pack, lambda: scene.idea("One"), pack, lambda: None, lambda: scene.idea("Two"), pack
    )
    scene.steps.append(lambda: None)
    assert scene.seen(follower) == ["create One", "create Two"]


def test_waiting_costs_no_process(scene: Scene) -> None:
    follower = scene.follower(*[lambda: None] * 50)
    start = follower.start(None)
    found = follower.events(start)
    before = follower.project.repo.calls
    with pytest.raises(Ended):
        next(found)
    assert follower.project.repo.calls <= before + 1


def test_what_counts_for_nothing_is_not_told(scene: Scene) -> None:
    start = git(scene.folder, "rev-parse", BRANCH)
    scene.idea("One")
    tip = git(scene.folder, "rev-parse", BRANCH)
    stray = git(scene.folder, "commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "x")
    side = git(scene.folder, "rev-parse", f"{tip}~1")
    merge = git(scene.folder, "commit-tree", f"{tip}^{{tree}}", "-p", tip, "-p", side, "-m", "y")
    quarantine.save(str(scene.folder / ".git" / "gittasks"), quarantine.Kept((), (stray,)))
    for commit in (stray, merge):
        git(scene.folder, "update-ref", BRANCH, commit)
        scene.told.clear()
        follower = scene.follower()
        told = []
        with suppress(Ended):
            for one in follower.events(follower.start(start), signals=True):
                told.append((one.entry.event.kind, [signal.name for signal in one.signals]))
        assert told == [("create", ["task_created", "inbox_added"])]
        assert len(scene.told) == (commit == merge)


# Until nobody has anything to do.


def test_an_idle_ledger_ends_the_watch_at_once(scene: Scene) -> None:
    scene.idea("One")
    follower = scene.follower(lambda: pytest.fail("It waits."))
    assert scene.seen(follower, scene.root, until_idle=True) == ["init None", "create One"]


def test_it_ends_once_nothing_is_ready_claimed_or_at_check(scene: Scene) -> None:
    scene.new("One")

    def take() -> None:
        claim.claim(_wim(scene), "1", with_tree=False)

    def stop() -> None:
        hold.hold(_wim(scene), "1", "Which?")

    follower = scene.follower(lambda: None, take, lambda: None, stop)
    assert scene.seen(follower, until_idle=True) == ["claim 000001", "hold 000001"]
    assert scene.steps == []


def _wim(scene: Scene) -> Project:
    return opened(scene.folder, Options(str(scene.folder), actor="wim"))


def test_a_check_that_nobody_runs_is_not_idle(scene: Scene) -> None:
    work = landings.Scene(scene.folder.parent / "other")
    work.new("000001", "true")
    work.commit(work.started("000001"), {"new.txt": "new\n"})
    work.submitted("000001", check=False)
    assert work.manager.task("000001").state == "CHECK"
    scene.folder = work.folder
    follower = scene.follower(lambda: None)
    scene.seen(follower, until_idle=True)
    assert scene.steps == []


# The remote.


@pytest.fixture
def quick(scene: Scene) -> Scene:
    """A scene in which every fourth of a second asks the remote."""
    git(scene.folder, "config", "gittasks.watchInterval", "0")
    return scene


def test_what_a_fetch_brings_is_told(quick: Scene) -> None:
    brought = iter(["One", "Two"])

    def refresh() -> None:
        if title := next(brought, None):
            quick.idea(title)

    waits = [lambda: time.sleep(TICK)] * 2
    assert quick.seen(quick.follower(*waits, refresh=refresh)) == ["create One", "create Two"]


def test_a_fetch_that_fails_is_told_once_and_stops_nothing(quick: Scene) -> None:
    def refresh() -> None:
        raise RuntimeError("The remote does not answer.")

    waits = [lambda: time.sleep(TICK)] * 3
    follower = quick.follower(*waits, lambda: quick.idea("One"), lambda: None, refresh=refresh)
    assert quick.seen(follower) == ["create One"]
    assert quick.told == [
        "warning: the remote is not followed at present: The remote does not answer."
    ]


def test_the_remote_is_asked_at_its_pace(scene: Scene) -> None:
    asked: list[float] = []
    follower = scene.follower(*[lambda: None] * 20, refresh=lambda: asked.append(time.monotonic()))
    assert scene.seen(follower) == []
    assert len(asked) == 1


def test_idle_is_only_what_is_idle_on_the_remote_too(scene: Scene) -> None:
    asked: list[str] = []

    def refresh() -> None:
        asked.append(scene.new("From afar"))

    follower = scene.follower(lambda: None, refresh=refresh)
    assert scene.seen(follower, until_idle=True) == ["create From afar", "submit 000001"]
    assert scene.steps == []
    assert len(asked) == 1


# Answers.


def test_an_answer_comes_again_when_it_has_changed(scene: Scene) -> None:
    def later() -> None:
        time.sleep(1.05)

    follower = scene.follower(later, lambda: scene.idea("One"), later, lambda: None, later)
    project = follower.project

    def ask() -> list[str]:
        return [row.task.title for row in queries.inbox(project, None).rows]

    assert list(_until_ended(follower.answers(ask))) == [[], ["One"]]


def test_an_answer_may_change_without_the_ledger(scene: Scene) -> None:
    answers = iter("aabbc")
    waits = [lambda: time.sleep(1.05)] * 3
    follower = scene.follower(*waits)
    assert list(_until_ended(follower.answers(lambda: next(answers)))) == ["a", "b", "c"]


def _until_ended(found: Iterator[Answer]) -> Iterator[Answer]:
    try:
        yield from found
    except Ended:
        return
