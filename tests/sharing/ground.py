"""A bare remote and the clones of the people who share one project through it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.cases.ground import Team
from tests.support.cli import Result, tasks_inprocess
from tests.support.git import git
from tests.support.remotes import bare_remote, clone

LEDGER = "refs/heads/gittasks"
OWN_COPIES = ("refs/gittasks/remotes/", "refs/gittasks/incoming/", "refs/remotes/")
"""What a clone notes of the remote: it may move although a command was refused."""


class Clone(Team):
    """The clone of one person, and the agents who work there."""

    def __init__(self, folder: Path) -> None:
        """Takes a clone that is there."""
        self.folder = folder

    def sync(self, *args: str, check: int | None = 0) -> Result:
        """Exchanges events with the remote."""
        return self.manager("sync", *args, check=check)

    def offline(self, *args: str, check: int | None = 0) -> Result:
        """Runs a command as the person, without the remote."""
        return self.manager("--offline", *args, check=check)

    def alone(self, name: str, *args: str, at: Path | None = None, check: int | None = 0) -> Result:
        """Runs a command as an agent, without the remote."""
        return self.agent(name, "--offline", *args, at=at, check=check)

    def begun(self, task: str, name: str, text: str, *, offline: bool = False) -> Path:
        """Takes a task and commits one file named after the agent; returns the tree."""
        how = self.alone if offline else self.agent
        tree = Path(how(name, "start", task).out.strip())
        self.commit(tree, {f"{name}.txt": text}, f"Work of {name}")
        return tree

    def refs(self, *patterns: str) -> dict[str, str]:
        """Returns the refs of this clone, without what it notes of the remote."""
        return refs_of(self.folder, *patterns)

    def holds(self, commit: str) -> bool:
        """Tells whether some ref of this clone holds a commit."""
        return bool(self.git("for-each-ref", f"--contains={commit}"))

    def everything(self) -> dict[str, str | bytes]:
        """Returns all that a refused command leaves as it was: refs, settings, records, files."""
        common = self.folder if (self.folder / "HEAD").is_file() else self.folder / ".git"
        kept = [common / "config"]
        for name in ("claims", "landing", "outbox", "renumbered"):
            kept += sorted((common / "gittasks" / name).glob("*"))
        files = {str(file): file.read_bytes() for file in kept if file.is_file()}
        trees = {"worktrees": self.git("worktree", "list", "--porcelain")}
        checkout = {f"checkout {n}": text for n, text in enumerate(self.checkout())}
        return {**self.refs(), **files, **trees, **checkout}


def refs_of(repository: Path, *patterns: str) -> dict[str, str]:
    """Returns refs by name, without what is only noted of a remote."""
    rows = git(repository, "for-each-ref", "--format=%(refname) %(objectname)", *patterns)
    found = dict(row.split(" ") for row in rows.splitlines())
    return {name: oid for name, oid in found.items() if not name.startswith(OWN_COPIES)}


class Shared(NamedTuple):
    """A project that two people share."""

    remote: Path
    ada: Clone
    bob: Clone

    @property
    def tip(self) -> str:
        """Returns the tip of the remote's ledger."""
        return git(self.remote, "rev-parse", LEDGER)

    @property
    def base(self) -> str:
        """Returns where the base of the remote is."""
        return git(self.remote, "rev-parse", "refs/heads/master")

    def ready(self, title: str, *args: str) -> str:
        """Lets Ada write a task down that both know; returns its id."""
        task = self.ada.new(title, *args)
        self.bob.sync()
        return task

    def met(self) -> None:
        """Lets both sync until they agree, and requires that they do."""
        self.ada.sync(check=None)
        self.bob.sync(check=None)
        self.ada.sync()
        assert {self.ada.tip(), self.bob.tip()} == {self.tip}

    def kinds(self, task: str) -> list[str]:
        """Returns what the remote's ledger tells of a task, oldest first."""
        told = git(self.remote, "log", "--reverse", "--format=%s", LEDGER)
        rows = [line.split() for line in told.splitlines()]
        return [row[1] for row in rows if row[0] == task]

    def everything(self) -> dict[str, str | bytes]:
        """Returns all that a refused command leaves as it was, everywhere."""
        found: dict[str, str | bytes] = {}
        for one, said in (("ada", self.ada.everything()), ("bob", self.bob.everything())):
            found |= {f"{one}: {name}": value for name, value in said.items()}
        return found | {f"remote: {n}": oid for n, oid in refs_of(self.remote).items()}

    def unchanged_by(self, act: Callable[[], Result]) -> Result:
        """Runs a command that is refused, and requires that nothing moved anywhere."""
        before = self.everything()
        result = act()
        assert result.status
        assert self.everything() == before
        return result


def begin(folder: Path) -> Shared:
    """Makes the remote and both clones; Ada begins the ledger, and Bob takes it over."""
    remote = bare_remote(folder / "remote.git")
    for name in ("Ada", "Bob"):
        person = Clone(clone(remote, folder / name.lower(), name))
        person.manager("init", "--remote", "origin")
    return at(folder)


def copied(begun: Path, folder: Path) -> Shared:
    """Returns a copy of such a project, whose clones know the copied remote."""
    folder.parent.mkdir(exist_ok=True)
    shutil.copytree(begun, folder, symlinks=True)
    shared = at(folder)
    for person in (shared.ada, shared.bob):
        config = person.folder / ".git/config"
        text = config.read_text(encoding="utf-8")
        config.write_text(text.replace(str(begun), str(folder)), encoding="utf-8")
        # The copied files are other files: without this git would look at each again.
        git(person.folder, "update-index", "-q", "--refresh")
    return shared


def at(folder: Path) -> Shared:
    """Returns the project in a folder."""
    return Shared(folder / "remote.git", Clone(folder / "ada"), Clone(folder / "bob"))


def linear(repository: Path) -> bool:
    """Tells whether each commit of the ledger has one parent, and only the first has none."""
    rows = git(repository, "rev-list", "--parents", LEDGER).splitlines()
    return [len(row.split()) for row in rows] == [2] * (len(rows) - 1) + [1]


def only_forward(repository: Path) -> bool:
    """Tells whether the ledger of a repository has only ever been fast-forwarded."""
    log = repository / "logs" / LEDGER
    moves = [line.split(" ")[:2] for line in log.read_text(encoding="utf-8").splitlines()]
    return all(
        not old.strip("0") or not git(repository, "rev-list", "--max-count=1", old, f"^{new}")
        for old, new in moves
    )


def elsewhere(cwd: Path, *args: str, check: int | None = 0, **env: str) -> Result:
    """Runs a command in any folder, as whoever the environment says."""
    return tasks_inprocess(cwd, *args, check=check, env=env)


def environment_of(**variables: str) -> dict[str, str]:
    """Returns this environment with more variables."""
    return {**os.environ, **variables}
