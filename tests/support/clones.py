"""Clones of one project in one process, played by the real verbs, and what has to hold of them.

Everything is chosen by a random generator of its own, so that a story is told again by its seed.
Only ids and secrets, which nothing is chosen by, are new each time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from gittasks.domain.decide import decide_all
from gittasks.domain.errors import GittasksError
from gittasks.domain.requests import Request, Speaker
from gittasks.domain.task import Task
from gittasks.ledger import publishing
from gittasks.ledger.shared import Arrived, Shared
from gittasks.plumbing import remote
from gittasks.plumbing.errors import RemoteRaced
from gittasks.workflow import aftermath, queries, sharing, sync, verify
from gittasks.workflow.init import init
from gittasks.workflow.project import Options, Project
from tests.support.git import git
from tests.support.remotes import bare_remote, clone

LEDGER = "refs/heads/gittasks"
NAMES = ("Ada", "Bob", "Cid", "Dot", "Eve", "Fay", "Gus")


class Clock:
    """The clock of one machine: it goes on, stands still, or now and then goes back."""

    def __init__(self, kind: str, dice: Random, now: int = 1_800_000_000) -> None:
        self.kind = kind
        self.now = now
        self._dice = dice

    def __call__(self) -> float:
        """Returns the seconds since 1970."""
        return self.now

    def goes_on(self) -> None:
        """Lets some time go by, for better or worse."""
        if self.kind == "frozen":
            return
        step = self._dice.choice((0, 1, 60, 7_200))
        if self.kind == "backward" and self._dice.random() < 0.5:
            step *= -3
        self.now += step


class Crash(Exception):
    """The machine went out."""


class Fragile(Shared):
    """A remote at whose side a machine goes out, before or after the n-th time it is spoken with."""

    def __init__(self, project: Project, at: int, *, after: bool) -> None:
        assert project.remote is not None
        super().__init__(project.ledger, project.remote)
        self._countdown = at
        self._after = after

    def fetch(
        self, names: Sequence[str] = (), globs: Sequence[str] = (), *, adopting: bool = False
    ) -> Arrived:
        """Fetches, or not."""
        with self._danger():
            return super().fetch(names, globs, adopting=adopting)

    def push(self, updates: Sequence[remote.Update]) -> None:
        """Pushes, or not."""
        with self._danger():
            super().push(updates)

    @contextmanager
    def _danger(self) -> Iterator[None]:
        self._countdown -= 1
        if not self._countdown and not self._after:
            raise Crash
        yield
        if not self._countdown:
            raise Crash


class Written(NamedTuple):
    """One commit of the ledger, as its message tells it."""

    commit: str
    event_id: str
    kind: str
    task: str | None
    uid: str | None
    source: str | None
    target: str | None
    claim: str | None
    actor: str


class Clone:
    """One clone, seen by whoever speaks."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self.clock = clock
        self._project: Project | None = None
        self.noted: str | None = None
        """The tip up to which the events of this clone are in the team's book."""

    def project(self, actor: str | None = None, *, offline: bool = True) -> Project:
        """Returns the project for a verb of somebody; it stays open until `close`."""
        if self._project is None:
            self._project = Project.open(Options(str(self.folder)), os.environ, self.clock)
        self._project.options = Options(str(self.folder), actor=actor, offline=offline)
        self._project.told = ()
        return self._project

    def close(self) -> None:
        """Ends what the verbs share, as the end of a command does."""
        if self._project is not None:
            self._project.close()
            self._project = None

    @property
    def tip(self) -> str:
        """Returns the tip of the ledger here."""
        return git(self.folder, "rev-parse", LEDGER)

    def work_on(self, branch: str, text: str) -> None:
        """Puts a commit with one file on a branch, in one step."""
        ref = f"refs/heads/{branch}"
        lines = [
            f"commit {ref}",
            "committer Ada <ada@example.org> 1700000000 +0000",
            f"data {len(text)}",
            text,
            f"from {ref}^0",
            f"M 100644 inline {branch.rpartition('/')[2]}.txt",
            f"data {len(text)}",
            text,
            "",
        ]
        git(self.folder, "fast-import", "--quiet", stdin="\n".join(lines))

    def tasks(self) -> list[Task]:
        """Returns all tasks here, by number."""
        return self.project().ledger.snapshot.all_tasks()


class Team:
    """Some clones of one bare remote, and the book of all that they have ever accepted."""

    def __init__(self, folder: Path, count: int, dice: Random) -> None:
        """Makes the remote and the clones; the first begins the ledger, the others take it over."""
        self.remote = bare_remote(folder / "remote.git")
        git(self.remote, "config", "core.logAllRefUpdates", "always")
        kinds = ("steady", "frozen", "backward", "steady", "backward")
        self.clones = []
        for number in range(count):
            place = clone(self.remote, folder / NAMES[number].lower(), NAMES[number])
            clock = Clock(kinds[number % len(kinds)], dice, 1_800_000_000 + 900 * number)
            made = Clone(place, clock)
            init(made.project(offline=False), remote="origin")
            made.close()
            self.clones.append(made)
        self.accepted: dict[str, str] = {}
        """The events that a clone has ever accepted: what each was."""
        self.confirmed_claims: dict[str, str] = {}
        """The claims that a command has called good: claim and number of the task."""
        self.confirmed_tasks: dict[str, str] = {}
        """The tasks that a command has called created everywhere: uid and number."""

    @property
    def tip(self) -> str:
        """Returns the tip of the remote's ledger."""
        return git(self.remote, "rev-parse", LEDGER)

    def kinds(self) -> Counter[str]:
        """Returns how many events of each kind are on the remote."""
        return Counter(event.kind for event in written(self.remote, self.tip))

    def landings(self) -> dict[str, str]:
        """Returns the tasks that were merged into the remote's base, each with its merge."""
        lines = git(self.remote, "log", "--first-parent", "--merges", "--format=%H %s", "master")
        pairs = [(line[41:47], line[:40]) for line in lines.splitlines()]
        assert len({task for task, _ in pairs}) == len(pairs), f"landed twice: {pairs}"
        return dict(pairs)

    def note_down(self, one: Clone) -> None:
        """Writes what a clone has accepted since the last time into the book."""
        tip = one.tip
        if tip != one.noted:
            for event in written(one.folder, tip, one.noted):
                self.accepted.setdefault(event.event_id, event.kind)
            one.noted = tip

    def exchange(
        self,
        one: Clone,
        verb: Callable[[Project], object] = sync.sync,
    ) -> bool:
        """Lets a clone speak with the remote as a new command; tells whether it was not refused."""
        self.note_down(one)
        one.close()
        try:
            verb(one.project(offline=False))
        except (GittasksError, Crash):
            return False
        finally:
            one.close()
            self.note_down(one)
        return True

    def set_back(self, events: int) -> None:
        """Puts the remote's ledger back to how it was, as from a backup; nothing newer is there."""
        older = git(self.remote, "rev-parse", f"{LEDGER}~{events}")
        git(self.remote, "update-ref", LEDGER, older)
        git(self.remote, "reflog", "expire", "--expire=now", "--all")
        git(self.remote, "prune", "--expire=now")

    # -------------------------------------------------------------------------- what has to hold

    def converge(self) -> None:
        """Lets every clone sync until nothing changes any more, which has to be soon."""
        for _ in range(3):
            for one in self.clones:
                assert self.exchange(one), "a sync that nobody disturbs was refused"
            if {one.tip for one in self.clones} == {self.tip}:
                return
        raise AssertionError(f"no common tip: {[one.tip[:8] for one in self.clones]}")

    def assert_sound(self) -> None:
        """Checks all that has to hold once all clones have met."""
        events = list(written(self.remote, self.tip))
        self._assert_only_forward(events)
        self._assert_nothing_lost(events)
        _assert_one_claim(events)
        self._assert_confirmed(events)
        _assert_numbers(events)
        self._assert_landed()
        for one in self.clones:
            _assert_sound(one, self.tip)
        assert git(self.remote, "fsck", "--connectivity-only", "--no-dangling") == ""
        assert list(self.remote.rglob("*.lock")) == []

    def _assert_only_forward(self, events: Sequence[Written]) -> None:
        places = {event.commit: number for number, event in enumerate(events)}
        log = self.remote.joinpath("logs", *LEDGER.split("/")).read_text(encoding="utf-8")
        moves = [line.split(" ")[:2] for line in log.splitlines()]
        assert moves, "the remote never moved"
        for old, new in moves:
            assert new in places, f"the remote once had {new}"
            assert places.get(old, -1) < places[new], f"the remote went back to {new}"

    def _assert_nothing_lost(self, events: Sequence[Written]) -> None:
        counts = Counter(event.event_id for event in events)
        doubled = [one for one, count in counts.items() if count > 1]
        assert doubled == [], f"applied twice: {doubled}"
        lost = {one: kind for one, kind in self.accepted.items() if one not in counts}
        assert lost == {}, f"lost: {lost}"

    def _assert_landed(self) -> None:
        """Checks that base and ledger agree: what has landed is there, and what is there has landed."""
        merged = self.landings()
        tasks = self.clones[0].tasks()
        landed = {task.id: task.landed for task in tasks if task.landed is not None}
        assert merged == landed
        base = git(self.remote, "rev-list", "master").splitlines()
        for one in self.clones:
            assert git(one.folder, "rev-parse", "master") in base
            assert git(one.folder, "status", "--porcelain") == ""

    def _assert_confirmed(self, events: Sequence[Written]) -> None:
        claims = {event.claim: event.task for event in events if event.kind == "claim"}
        missing = self.confirmed_claims.items() - claims.items()
        assert missing == set(), f"confirmed and gone: {missing}"
        creates = {event.uid: event.task for event in events if event.kind == "create"}
        missing = self.confirmed_tasks.items() - creates.items()
        assert missing == set(), f"confirmed and renumbered: {missing}"


def written(place: Path, tip: str, known: str | None = None) -> Iterator[Written]:
    """Yields the events of a ledger up to a tip, oldest first, without those that are known."""
    without = [] if known is None else [f"^{known}"]
    text = git(place, "log", "-z", "--reverse", "--format=%H%n%B", tip, *without, "--")
    for record in text.split("\0"):
        commit, _, message = record.partition("\n")
        trailers = _trailers(message)
        # The root of all ledgers is no event.
        if "Event-Id" in trailers:
            yield Written(
                commit,
                trailers["Event-Id"],
                trailers["Event"],
                trailers.get("Task"),
                trailers.get("Uid"),
                trailers.get("From"),
                trailers.get("To"),
                trailers.get("Claim"),
                trailers["Actor"],
            )


def _trailers(message: str) -> Mapping[str, str]:
    last = message.rstrip("\n").rpartition("\n\n")[2]
    pairs = (line.partition(": ") for line in last.split("\n"))
    return {key: value for key, sign, value in pairs if sign}


def _assert_one_claim(events: Sequence[Written]) -> None:
    """Goes through the whole history: whoever takes a task finds it free."""
    held: dict[str, str] = {}
    for event in events:
        if event.uid is None:
            continue
        if event.kind == "claim":
            assert event.uid not in held, f"{event.commit} takes what {held[event.uid]} holds"
            assert event.claim is not None
            held[event.uid] = event.claim
        elif event.kind == "release" or event.source != event.target:
            held.pop(event.uid, None)


def _assert_numbers(events: Sequence[Written]) -> None:
    created = [event for event in events if event.kind == "create"]
    for values in ([event.task for event in created], [event.uid for event in created]):
        assert len(set(values)) == len(values)
    numbers = {event.uid: event.task for event in created}
    strangers = [e.commit for e in events if e.uid is not None and numbers[e.uid] != e.task]
    assert strangers == [], f"another number than the create's: {strangers}"


def _assert_sound(one: Clone, tip: str) -> None:
    project = one.project()
    try:
        assert project.ledger.tip == tip
        findings = verify.fsck(project).findings
        assert findings == (), f"{one.folder.name}: {findings}"
        rings = queries.cycles(project)
        assert rings == [], f"rings: {rings}"
        tasks = one.tasks()
        _assert_no_ring({task.id: task.depends_on for task in tasks if task.is_open})
        _assert_no_ring({task.id: (task.parent,) for task in tasks if task.parent})
        claims = [task.claim for task in tasks if task.claim]
        assert len(claims) == len(set(claims))
        assert one.project().ledger.problems() == ()
        kept = _rows(project)
        project.ledger.snapshot.rebuild()
        fresh = _rows(project)
        different = {name for name in fresh if fresh[name] != kept[name]}
        assert different == set(), f"the cache of {one.folder.name} differs in {different}"
    finally:
        one.close()


def _assert_no_ring(edges: Mapping[str, Sequence[str]]) -> None:
    done: set[str] = set()

    def visit(task: str, above: tuple[str, ...]) -> None:
        assert task not in above, f"a ring: {(*above, task)}"
        if task not in done:
            for needed in edges.get(task, ()):
                visit(needed, (*above, task))
            done.add(task)

    for task in edges:
        visit(task, ())


def _rows(project: Project) -> dict[str, list[str]]:
    """Returns all that the read cache has, table by table."""
    snapshot = project.ledger.snapshot
    tables = [
        row[0] for row in snapshot.select("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    return {
        name: sorted(map(repr, snapshot.select(f"SELECT * FROM {name}")))
        for name in tables
        if not name.startswith("sqlite_")
    }


def duplicate_push(project: Project) -> None:
    """Tells the remote once more what it was told before."""
    shared = sharing.shared_of(project)
    copy = shared.copy
    if copy is not None:
        again = remote.Update(LEDGER, copy, copy, plain=True)
        # Where the remote has more by now, it does not go back for it.
        with suppress(RemoteRaced):
            shared.push([again])


def publish_dying(
    project: Project, requests: Sequence[Request], speaker: Speaker, at: int, *, after: bool
) -> None:
    """Publishes what counts only on the remote, and dies at the n-th time that it speaks with it."""
    publishing.append(
        Fragile(project, at, after=after),
        lambda graph: decide_all(graph, requests, project.facts(speaker)),
        names=(project.base,),
        globs=sharing.globs(project),
        followed=lambda replayed: aftermath.follow(project, replayed),
    )
