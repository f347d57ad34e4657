"""Follows the ledger as it grows, here and, in a sharing clone, on the remote.

The branch is looked at four times a second without a process of git, and read only when it has
moved. Events come in the order of the chain. Where a sync has put events of this clone behind
those of others, they have new commits but are the same events: what was told is not told again.

A follower is resumed from the commit of the last line it has read. That commit may be gone from
the chain by then; whatever it stood on is known by the ids of the events. In one place nobody can
know: after a sync the newest line may be an event of somebody else that now stands before events
told earlier. Whoever resumes there gets those once more, under their new commits, because a loss
would be worse.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gittasks.domain.errors import Corrupt, GittasksError, UnknownTask, UsageFault
from gittasks.ledger import message
from gittasks.plumbing import merging, refs
from gittasks.plumbing.errors import GitError, GitTimeout, LockTimeout
from gittasks.plumbing.objects import Reader
from gittasks.workflow.log import Entry
from gittasks.workflow.past import named

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from gittasks.domain.projections.signals import Signal
    from gittasks.domain.projections.table import World
    from gittasks.plumbing.objects import Commit
    from gittasks.workflow.project import Project

TICK = 0.25
"""How many seconds pass between two looks at the branch."""
ASKED_AFRESH = 1.0
"""How many seconds an answer may stand that depends on more than the branch, as on the clock."""
FETCH_INTERVAL = 5.0
"""How many seconds pass between two fetches, unless `gittasks.watchInterval` says otherwise."""
FETCH_SECONDS = 5.0
"""How long one fetch may take; meanwhile nothing is told of what happens here."""

EXEC_SECONDS = 60.0
"""How long a command of --exec may take for one line."""

_CHUNK = 500

Answer = TypeVar("Answer")


class Told(NamedTuple):
    """One event, and the signals that it gives, in the order of the projections."""

    entry: Entry
    signals: tuple[Signal, ...] = ()


class Cursor(NamedTuple):
    """Where somebody stopped: in the ledger, and at which line of that commit (None: the last)."""

    commit: str
    ordinal: int | None = None


class Follower:
    """One who follows the ledger of a project, until nobody wants to know any more."""

    def __init__(
        self,
        project: Project,
        *,
        tell: Callable[[str], None],
        wait: Callable[[float], None] = time.sleep,
        refresh: Callable[[], None] | None = None,
    ) -> None:
        """Takes how to tell a person something, how to wait, and what fetches from the remote."""
        self.project = project
        self._tell = tell
        self._wait = wait
        self._refresh = refresh
        pace = project.config.get_seconds("gittasks.watchInterval", FETCH_INTERVAL)
        self._pace = max(pace, TICK)
        self._is_fresh = refresh is None
        self._mark: bytes | None = None
        self._read_at = 0.0
        self._given: set[str] = set()
        self._invalid: Collection[str] = ()
        self._world: World | None = None
        self._failure: str | None = None
        self._failed_at: float | None = None
        self._fetch_failure: str | None = None

    def start(self, spelling: str | None) -> Cursor:
        """Returns where to begin: behind `COMMIT`, behind line N of it (`COMMIT:N`), or at the tip.

        Raises UnknownTask for a commit that was never part of this ledger.
        """
        tip = self.project.ledger.tip
        if spelling is None:
            return Cursor(tip)
        name, colon, number = spelling.strip().rpartition(":")
        if colon and number.isascii() and number.isdigit():
            return Cursor(_resolved(self.project, name, tip), int(number))
        return Cursor(_resolved(self.project, spelling, tip))

    def events(
        self, after: Cursor, *, signals: bool = False, until_idle: bool = False
    ) -> Iterator[Told]:
        """Yields every event after a cursor, oldest first, and then those that come.

        A cursor within a commit gives that commit's event once more, whose lines up to the cursor
        are known. With `until_idle` it ends where nothing is claimed, ready or at CHECK any more.
        """
        last = after.commit
        if after.ordinal is not None:
            (begun,) = self._commits([last])
            entry = self._entry(begun)
            if entry is not None:
                yield Told(entry, self._signals(begun) if signals else ())
        for tip in self._looks():
            if tip != last:
                for commit, entry in self._since(last, tip):
                    told = None
                    if commit is not None and signals:
                        # Those told before count as well for what comes after them.
                        told = self._guarded(lambda: self._signals(commit))  # noqa: B023 - at once
                        if told is None:
                            break
                    if entry is not None:
                        yield Told(entry, told or ())
                    last = tip if commit is None else commit.oid
            if until_idle and last == tip and self._is_fresh and self._guarded(self._is_idle):
                return

    def answers(self, ask: Callable[[], Answer]) -> Iterator[Answer]:
        """Yields what `ask` returns: at once, and again whenever it has become something else."""
        before = ask()
        yield before
        for _ in self._looks(ASKED_AFRESH):
            found = self._guarded(ask)
            if found is not None and found != before:
                before = found
                yield found

    def _looks(self, every: float | None = None) -> Iterator[str]:
        """Yields the tip: at once, whenever it has moved, and then after so many seconds.

        What has failed is tried again a second later.
        """
        seen = None
        said_at = due = time.monotonic()
        while True:
            tip = None if self._rests() else self._guarded(self._tip)
            if tip is not None:
                now = time.monotonic()
                late = every is not None and now - said_at >= every
                if tip != seen or late or self._failed_at is not None:
                    self._failed_at = None
                    seen, said_at = tip, now
                    yield tip
                if self._failed_at is None:
                    self._failure = None
            if self._refresh is None or time.monotonic() < due:
                self._wait(TICK)
                continue
            self._fetch(self._refresh)
            due = time.monotonic() + self._pace
            if not self._is_fresh:
                # Whoever waits for the word of the remote has it now, be it that nothing moved.
                self._is_fresh = True
                seen = None

    def _rests(self) -> bool:
        at = self._failed_at
        return at is not None and time.monotonic() - at < ASKED_AFRESH

    def _tip(self) -> str:
        ledger = self.project.ledger
        mark = refs.mark(self.project.repo, ledger.branch)
        now = time.monotonic()
        if mark != self._mark or (mark is None and now - self._read_at >= ASKED_AFRESH):
            ledger.refresh()
            self._mark, self._read_at = mark, now
        return ledger.tip

    def _guarded(self, ask: Callable[[], Answer]) -> Answer | None:
        """Returns the answer, None where it failed; the same failure is told once.

        A repository that is gone ends everything.
        """
        try:
            return ask()
        except (GittasksError, GitError, LockTimeout, OSError) as error:
            if not os.path.isdir(self.project.repo.common_dir):
                raise
            self._failed_at = time.monotonic()
            words = _words(error)
            if words != self._failure:
                self._failure = words
                self._tell(f"warning: {words}")
            return None

    def _fetch(self, refresh: Callable[[], None]) -> None:
        try:
            refresh()
        except Exception as error:  # noqa: BLE001 - whatever it is, what is here can be followed
            words = _words(error)
            if words != self._fetch_failure:
                self._fetch_failure = words
                self._tell(f"warning: the remote is not followed at present: {words}")
        else:
            self._fetch_failure = None

    def _is_idle(self) -> bool:
        snapshot = self.project.ledger.snapshot
        return not (
            snapshot.claims() or snapshot.ready_count() or snapshot.counts().get("CHECK", 0)
        )

    def _signals(self, commit: Commit) -> tuple[Signal, ...]:
        """Returns what a commit gives on top of the world before it."""
        from gittasks.domain.projections import table
        from gittasks.ledger import history, worlds

        parent = commit.parents[0] if commit.parents else None
        world = self._world
        if parent is None:
            self._world = table.World()
            return ()
        if world is None or world.oid != parent:
            world = worlds.at(self.project.ledger, parent)
        self._world, signals = table.fold(world, history.fact(commit, self._invalid))
        return signals

    def _since(self, last: str, tip: str) -> Iterator[tuple[Commit | None, Entry | None]]:
        """Yields commit and event of all that came after a commit; None for what is no event.

        The last one has no commit: all up to the tip was yielded. It may end early; what is left
        comes with the next look.
        """
        found = self._guarded(lambda: self._new_commits(last, tip))
        for at in range(0, len(found or ()), _CHUNK):
            assert found is not None
            part = found[at : at + _CHUNK]
            commits = self._guarded(lambda: self._commits(part))  # noqa: B023 - at once
            if commits is None:
                return
            for commit in commits:
                yield commit, self._entry(commit)
        if found is not None:
            # A chain that went back has nothing new, and what follows begins at its tip.
            yield None, None

    def _new_commits(self, last: str, tip: str) -> Sequence[str]:
        """Returns the commits that a chain has after another one, and notes what that one told."""
        # What a merge by hand brings is no part of the chain.
        options = ("--left-right", "--first-parent", "--topo-order", "--reverse")
        asked = ("rev-list", *options, f"{last}...{tip}", "--")
        lines = self.project.repo.text(*asked).split()
        left = [line[1:] for line in lines if line[0] == "<"]
        if left:
            self._tell(
                f"The commit {last[:12]} is no longer part of the ledger, as after a sync; "
                "what was told already is not told again."
            )
            for commit in self._commits(left):
                self._given.update(message.event_ids(commit.message))
        return [line[1:] for line in lines if line[0] == ">"]

    def _commits(self, oids: Sequence[str]) -> list[Commit]:
        """Returns commits, and looks again which ones are known to count for nothing."""
        from gittasks.ledger import quarantine

        self._invalid = quarantine.invalid(self.project.ledger.state_dir)
        # A reader of its own for each batch: nothing stays open while nothing happens.
        with Reader(self.project.repo) as reader:
            return [reader.commit(oid) for oid in oids]

    def _entry(self, commit: Commit) -> Entry | None:
        if not commit.parents:
            return None  # the root of every ledger is no event
        if commit.oid in self._invalid:
            return None  # whoever brought it has told so, and it counts for nothing
        try:
            event = message.decode(commit.message, commit.author_time, commit.oid)
        except Corrupt as error:
            self._tell(f"warning: {error.message}")
            return None
        if event.event_id in self._given:
            return None
        subject = commit.message.split(b"\n", 1)[0].decode("utf-8", "replace")
        return Entry(commit.oid, event, subject)


def known_signals(names: Sequence[str]) -> frozenset[str]:
    """Returns the names of signals; raises UsageFault for one that no projection gives."""
    from gittasks.domain.projections import table

    for name in names:
        if name not in table.SIGNALS:
            raise UsageFault(
                f"There is no signal {name!r}.", f"The signals are {', '.join(table.SIGNALS)}."
            )
    return frozenset(names)


def handler(project: Project, line: str) -> Callable[[Mapping[str, Any]], str | None]:
    """Returns what runs a command for a line of the watch, and says why it failed if it did.

    The command is the user's own words, split as a shell would, and no shell is asked. It has the
    line as JSON on its stdin, and what it says goes to stderr.
    """
    import shlex
    import shutil

    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageFault(f"--exec {line!r} cannot be split: {error}.", _EXEC_HINT) from None
    program = shutil.which(words[0], path=project.environ.get("PATH")) if words else None
    if program is None:
        raise UsageFault(f"--exec {line!r} names no program that can be run.", _EXEC_HINT)
    command = (program, *words[1:])

    def handle(row: Mapping[str, Any]) -> str | None:
        import json

        from gittasks.plumbing import process

        env = {
            **project.environ,
            **{
                f"GITTASKS_WATCH_{name.upper()}": "" if row[name] is None else str(row[name])
                for name in _TOLD_ENV
            },
        }
        try:
            done = process.run(
                command, stdin=json.dumps(row).encode() + b"\n", env=env, timeout=EXEC_SECONDS
            )
        except GitTimeout:
            return f"The command {words[0]} took more than {EXEC_SECONDS:.0f} s and was stopped."
        except (GitError, OSError) as error:
            return f"The command {words[0]} cannot be run: {error}"
        os.write(2, done.stdout + done.stderr)
        return f"The command {words[0]} ended with {done.status}." if done.status else None

    return handle


_EXEC_HINT = "Give a program and its arguments, such as --exec 'notify-send done'."
_TOLD_ENV = ("oid", "ordinal", "event", "signal", "task")


def from_remote(project: Project, tell: Callable[[str], None]) -> Callable[[], None] | None:
    """Returns what takes over what others did, None in a clone that does not share, or offline."""
    if project.remote is None or project.options.offline:
        return None

    def refresh() -> None:
        from gittasks.workflow import exchange

        before = project.told
        try:
            exchange.pull(project, timeout=FETCH_SECONDS)
            for note in project.told[len(before) :]:
                tell(note)
        finally:
            project.told = before

    return refresh


def _words(error: Exception) -> str:
    from gittasks.workflow.failures import told

    known = told(error)
    return known.message if known is not None else str(error) or type(error).__name__


def _resolved(project: Project, spelling: str, tip: str) -> str:
    """Returns the commit that a cursor names, be it one that the ledger has replaced."""
    found = named(project.repo, spelling, tip)
    if found is None or merging.merge_base(project.repo, found, tip) is None:
        raise UnknownTask(
            f"The commit {spelling} is not part of the ledger.",
            "Name one of `git tasks log`, or the last one that a watch has printed.",
        )
    return found
