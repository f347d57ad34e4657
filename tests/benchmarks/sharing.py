"""Clones that share a remote: what a fetch, a push and a replay cost, and a race of many clones."""

from __future__ import annotations

import contextlib
import itertools
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.fixtures import Plan, task_lines
from tests.benchmarks.measure import Budget, Failed, Sample
from tests.benchmarks.table import Row, case_row, count_row, cpu_row

ONE_EVENT = Budget(r=10)
NOTHING_NEW = Budget(r=8)
A_REPLAYED_EVENT = 3.0
"""In R."""
# Whole commands: what a read or a write may cost, and what the remote is asked beside it. After a
# push it is asked once more, because what a push says is not always so.
SYNC = Budget(p=5, r=2 + 8)
PULL = Budget(p=6.5, r=6 + 10)
PUSH = Budget(p=5, r=2 + 8 + 10 + 8)
CLAIM = Budget(p=6.5, r=6 + 8 + 10 + 8)

START = """
from gittasks.workflow import sharing
from gittasks.workflow.project import Project
from gittasks.plumbing import remote
from gittasks.ledger import arrivals, verify
project = Project.open()
shared = sharing.shared_of(project)
names, globs, tip = (project.base,), sharing.globs(project), project.ledger.tip
project.ledger.reader.commit(tip)
"""
FETCH = START + "shared.fetch(names, globs)"
A_PUSH = START + "shared.push([remote.Update(project.branch, tip, shared.copy, plain=True)])"
"""What a command has loaded already, and then the one thing that is measured."""
GIT_FETCH = ("fetch", "-q", "--no-tags", "--no-auto-maintenance", "origin", "gittasks")
REPLAYED = 100
NOTHING_LEFT = 10
BUSY = 75
CLONES = 8
POOL = 200
POOL_QUICK = 24
LONGER = 4.0
"""How many times as long as a bare push a claim may take in a race."""


class _Pair(NamedTuple):
    """A remote, two clones that share it, and one that only uses git."""

    remote: Path
    ada: Path
    bob: Path
    carl: Path


@contextlib.contextmanager
def _served(plan: Plan, folder: Path) -> Iterator[str]:
    """Serves the repositories below a folder, as another machine would; gives their address.

    What the server spends is none of ours, so it is not counted.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    line = ["git", "daemon", "--export-all", "--enable=receive-pack", "--listen=127.0.0.1"]
    line += [f"--port={port}", f"--base-path={folder}", "--log-destination=none"]
    with subprocess.Popen(line, env=plan.machine.environment) as server:
        try:
            _wait_for(port)
            yield f"git://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait_for(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise Failed("git daemon did not begin to listen")


def _pair(plan: Plan, ada: Path, address: str) -> _Pair:
    machine = plan.machine
    remote, bob = ada.parent / "remote.git", ada.parent / "bob"
    machine.git(ada.parent, "init", "-q", "--bare", "-b", "master", str(remote))
    machine.git(ada, "remote", "add", "origin", f"{address}/remote.git")
    # As where tasks land: git looks at all that is newer than the newest branch it has.
    machine.git(ada, "commit", "-q", "--allow-empty", "-m", "Land")
    machine.git(ada, "push", "-q", "origin", "master")
    machine.tasks(ada, "init", "--remote", "origin")
    machine.git(remote, "gc", "-q")
    machine.git(ada.parent, "clone", "-q", f"{address}/remote.git", str(bob))
    machine.tasks(bob, "init", "--remote", "origin")
    carl = ada.parent / "carl"
    machine.git(ada.parent, "clone", "-q", f"{address}/remote.git", str(carl))
    return _Pair(remote, ada, bob, carl)


def rows(plan: Plan) -> Iterator[Row]:
    """Yields what clones cost that share a remote."""
    ada = plan.fixtures.copy(plan.fixtures.events(plan.events))
    with _served(plan, ada.parent) as address:
        yield from _one(plan, _pair(plan, ada, address))
    plan.fixtures.drop(ada)
    yield from _race(plan)


def _one(plan: Plan, pair: _Pair) -> Iterator[Row]:
    machine = plan.machine
    where = f"{plan.events // 1000}k events"
    noted = itertools.count(1)
    # Every tenth waits for another.
    claimed = (number for number in itertools.count(2) if number % 10 != 7)

    def note(clone: Path) -> None:
        machine.tasks(clone, "note", str(next(noted)), "The wall stands.", "--offline")

    def script(clone: Path, text: str) -> Sample:
        return machine.run([machine.python, "-c", text], clone)

    def after_note(measured: Callable[[], Sample]) -> Sample:
        note(pair.ada)
        return measured()

    def replayed() -> Sample:
        lines = "\n".join(task_lines(0, REPLAYED, REPLAYED + 1, waiting=False))
        key = f"--idempotency-key=replay-{next(noted)}"
        line = ("new", "--from-file", "-", key, "--offline")
        machine.tasks(pair.ada, *line, stdin=lines.encode())
        machine.tasks(pair.bob, "note", "1", "The wall stands.")
        return machine.tasks(pair.ada, "sync")

    def one_behind() -> None:
        machine.tasks(pair.bob, "pull")
        machine.git(pair.carl, *GIT_FETCH)
        machine.tasks(pair.ada, "note", str(next(noted)), "The wall stands.")

    def fetched() -> Sample:
        one_behind()
        return script(pair.bob, FETCH)

    def pulled() -> Sample:
        one_behind()
        return machine.tasks(pair.bob, "pull")

    cases: dict[str, Callable[[], Sample]] = {
        "script": lambda: script(pair.ada, START),
        "fetch of nothing": lambda: script(pair.ada, FETCH),
        "push of one": lambda: after_note(lambda: script(pair.ada, A_PUSH)),
        "fetch of one": fetched,
        # The same event.
        "git fetch": lambda: machine.git(pair.carl, *GIT_FETCH),
        "start": lambda: machine.tasks(pair.ada, "whoami"),
        "pull": pulled,
        "push": lambda: after_note(lambda: machine.tasks(pair.ada, "push")),
        "sync": lambda: machine.tasks(pair.ada, "sync"),
        "claim": lambda: machine.tasks(
            pair.ada, "claim", str(next(claimed)), "--no-worktree", "--as", "ada"
        ),
    }
    found = machine.interleaved(pair.ada, cases)
    for name, target in (
        ("fetch of nothing", NOTHING_NEW),
        ("fetch of one", ONE_EVENT),
        ("push of one", ONE_EVENT),
    ):
        beyond = found.cpu[name] - found.cpu["script"]
        what = name.replace("nothing", "nothing new").replace("one", "one event")
        row = cpu_row(f"{what}, beyond the start", where, beyond, found.units, target)
        if name == "fetch of one":
            alone = found.cpu["git fetch"] / found.units.r
            row = row._replace(measured=f"{row.measured}, git alone {alone:.1f} R")
        yield row
    for name, what, target in (
        ("sync", "sync with nothing new", SYNC),
        ("pull", "pull of one event", PULL),
        ("push", "push of one event", PUSH),
        ("claim", "claim that all clones see", CLAIM),
    ):
        yield case_row(found, name, what, where, target)
    machine.tasks(pair.bob, "sync")
    many = machine.interleaved(
        pair.ada, {"start": cases["start"], "replay": replayed}, min(machine.rounds, 5)
    )
    beyond = many.cpu["replay"] - many.cpu["start"]
    target = Budget(r=A_REPLAYED_EVENT * REPLAYED)
    name = f"sync that replays {REPLAYED} events, beyond the start"
    yield cpu_row(name, where, beyond, many.units, target)


# ------------------------------------------------------------------------------------- the race


def _clones(plan: Plan, folder: Path, remote: Path) -> list[Path]:
    made = []
    for number in range(CLONES):
        clone = folder / f"clone-{number}"
        plan.machine.git(folder, "clone", "-q", str(remote), str(clone))
        made.append(clone)
    return made


def _at_once(clones: list[Path], work: Callable[[Path], int]) -> tuple[float, list[int]]:
    """Lets all clones work at the same moment; returns the seconds, and what each has done."""
    gate = threading.Barrier(len(clones) + 1)
    done: dict[Path, int] = {}

    def run(clone: Path) -> None:
        gate.wait()
        done[clone] = work(clone)

    threads = [threading.Thread(target=run, args=(clone,)) for clone in clones]
    for thread in threads:
        thread.start()
    gate.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started, list(done.values())


def _race(plan: Plan) -> Iterator[Row]:
    machine = plan.machine
    pool = POOL_QUICK if plan.is_quick else POOL
    first = plan.fixtures.copy(plan.fixtures.empty())
    folder, remote = first.parent, first.parent / "remote.git"
    machine.git(folder, "init", "-q", "--bare", "-b", "master", str(remote))
    machine.git(first, "remote", "add", "origin", str(remote))
    machine.git(first, "push", "-q", "origin", "master")
    lines = "\n".join(task_lines(0, pool, 1, waiting=False))
    machine.tasks(first, "new", "--from-file", "-", stdin=lines.encode())
    machine.tasks(first, "init", "--remote", "origin")
    clones = _clones(plan, folder, remote)
    for clone in clones:
        machine.tasks(clone, "init", "--remote", "origin")
    taken: list[str] = []

    def take(clone: Path) -> int:
        line = ("claim", "--next", "--no-worktree", "--as", "pi")
        own = 0
        while (done := machine.tasks(clone, *line, expected=None)).status != NOTHING_LEFT:
            if done.status == 0:
                taken.append(done.out.decode().strip())
                own += 1
            elif done.status != BUSY:
                return own
        return own

    spent, _ = _at_once(clones, take)
    bare, pushes = _at_once(clones, lambda clone: _pushes(plan, clone, pool // CLONES))
    place = f"{CLONES} clones, {pool} tasks"
    wrong = pool - len(set(taken)) + len(taken) - len(set(taken))
    yield count_row("clones at once, tasks not taken or taken twice", place, wrong, 0)
    ratio = (spent / pool) / (bare / sum(pushes))
    row = count_row("clones at once, time for a claim / for a bare push", place, ratio, LONGER)
    yield row._replace(
        measured=f"{ratio:.2f} ({pool / spent:.1f} claims, {sum(pushes) / bare:.1f} pushes a second)"
    )
    plan.fixtures.drop(first)


def _pushes(plan: Plan, clone: Path, count: int) -> int:
    """Publishes so many empty commits as a script of git commands would; begins again when beaten."""
    machine = plan.machine
    for number in range(count):
        while True:
            machine.git(clone, "fetch", "-q", "origin", "master")
            commit = (
                machine.git(clone, "commit-tree", "-p", "FETCH_HEAD", "-m", f"{clone.name} {number}",
                            "FETCH_HEAD^{tree}")
                .out.decode()
                .strip()
            )  # fmt: skip
            line = ["git", "push", "-q", "origin", f"{commit}:refs/heads/master"]
            if machine.run(line, clone, expected=None).status == 0:
                break
    return count
