"""Looks for what is wrong with a clone and its host, and says for each the command that helps.

Every check stands alone: one that fails, or cannot be made, hides none of the others. Nothing is
written but what finding out needs; `fix` only adds and repairs, and takes nothing away.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from gittasks.domain.errors import GittasksError
from gittasks.plumbing.errors import BadSetting, GitError, LockTimeout
from gittasks.plumbing.process import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gittasks.domain.pool import Pool
    from gittasks.workflow.project import Project

Verdict = Literal["ok", "warn", "fail"]

_REMOTE_SECONDS = 5.0
_SHELL_SECONDS = 10.0
_VERIFIED_COMMITS = 5000
_LOOSE_OBJECTS = 10_000
_FREE_BYTES = 200 << 20
_RECOVER = "git tasks recover"


class Check(NamedTuple):
    """One thing that was looked at: how it is, and the command that helps where it is not well."""

    name: str
    verdict: Verdict
    sentence: str
    fix: str = ""


class Examination(NamedTuple):
    """All that was looked at, and what `fix` has done."""

    checks: tuple[Check, ...]
    done: tuple[str, ...] = ()
    tip: str | None = None
    """The tip of the ledger, None where it cannot be read."""

    @property
    def has_failed(self) -> bool:
        """Tells whether something does not work."""
        return any(check.verdict == "fail" for check in self.checks)


def examine(
    find: Callable[[], Project], environ: Mapping[str, str], *, fix: bool = False
) -> Examination:
    """Looks at everything; `find` opens the project, which may fail.

    Outside a repository only the host is looked at. With `fix`, what a crash left is repaired first.
    """
    done: tuple[str, ...] = ()
    try:
        project = find()
    except (GittasksError, GitError, OSError) as error:
        fault = Check("repository", "fail", _sentence(error), "git tasks -C FOLDER doctor")
        return Examination((fault, *_all(_HOST, None, environ)))
    if fix:
        done = _fixed(project)
    checks = tuple(_all((*_CLONE, *_HOST), project, environ))
    return Examination(checks, done, _tip(project))


def _tip(project: Project) -> str | None:
    try:
        return project.ledger.tip
    except (GittasksError, GitError, OSError):
        return None


def _fixed(project: Project) -> tuple[str, ...]:
    from gittasks.workflow.recover import recover

    try:
        if not _may_exist(project):
            return ()
        done = recover(project)
        project.ledger.refresh()
    except (GittasksError, GitError, OSError, LockTimeout) as error:
        return (_sentence(error),)
    return done


def _may_exist(project: Project) -> bool:
    """Tells whether there is a ledger, or was one that a crash has damaged."""
    try:
        return project.ledger.exists
    except (GittasksError, GitError):
        return True


def _all(
    table: tuple[tuple[str, Callable[[_Ward], Iterator[Check]]], ...],
    project: Project | None,
    environ: Mapping[str, str],
) -> Iterator[Check]:
    ward = _Ward(project, environ)
    for name, look in table:
        try:
            yield from look(ward)
        except _Skip:
            continue
        except (GittasksError, GitError, BadSetting, LockTimeout, OSError) as error:
            yield Check(name, "fail", _sentence(error), _hint(error))


class _Skip(Exception):
    """A check has no ground to stand on; another one has said why."""


class _Ward:
    """What the checks look at."""

    def __init__(self, project: Project | None, environ: Mapping[str, str]) -> None:
        self._project = project
        self.environ = environ

    @property
    def project(self) -> Project:
        """Returns the project of a clone."""
        if self._project is None:
            raise _Skip
        return self._project

    @property
    def begun(self) -> Project:
        """Returns the project where there is a ledger that can be read."""
        try:
            if self.project.ledger.exists:
                return self.project
        except (GittasksError, GitError, OSError):
            pass
        raise _Skip

    def pool(self) -> Pool:
        """Returns the pool where its file can be used."""
        from gittasks.workflow import pool

        try:
            return pool.load(self.begun)
        except GittasksError:
            raise _Skip from None


# The clone.


def _git(ward: _Ward) -> Iterator[Check]:
    from gittasks.plumbing import versions

    repo = ward.project.repo
    found = ".".join(map(str, versions.git_version(repo)))
    needed = ".".join(map(str, versions.FEATURES["required"].version))
    if not versions.supports(repo, "required"):
        yield Check("git", "fail", f"git is {found}; {needed} or later is needed.")
        return
    missing = [
        f"{one.reason} ({'.'.join(map(str, one.version))})"
        for name, one in versions.FEATURES.items()
        if name == "merge-tree" and not versions.supports(repo, name)
    ]
    if missing:
        yield Check("git", "warn", f"git {found} lacks {', '.join(missing)}.")
    else:
        yield Check("git", "ok", f"git {found} has all that is needed.")


def _identity(ward: _Ward) -> Iterator[Check]:
    config = ward.project.config
    lacking = [key for key in ("user.name", "user.email") if not config.get(key)]
    if lacking:
        words = f"{' and '.join(lacking)} not set; agents sign with the name of their slot."
        yield Check("identity", "warn", words, f'git config --global {lacking[0]} "…"')
    else:
        yield Check("identity", "ok", f"Commits are made as {config.get('user.name')}.")
    if config.get_bool("commit.gpgSign", False):
        words = "commit.gpgSign asks for a key at every commit, which no agent can answer."
        yield Check("signing", "warn", words, "git config commit.gpgSign false")


def _ledger(ward: _Ward) -> Iterator[Check]:
    project = ward.project
    name = project.branch.removeprefix("refs/heads/")
    if not project.ledger.exists:
        yield Check("ledger", "fail", "There is no ledger in this repository.", "git tasks init")
        return
    problems = len(project.ledger.snapshot.problems())
    if problems:
        words = f"{problems} documents of the ledger cannot be used."
        yield Check("ledger", "fail", words, "git tasks fsck")
    else:
        tasks = sum(project.ledger.snapshot.counts().values())
        yield Check("ledger", "ok", f"The branch {name} holds {tasks} tasks.")


def _history(ward: _Ward) -> Iterator[Check]:
    from gittasks.workflow import verify

    project = ward.begun
    commits = int(project.repo.text("rev-list", "--count", project.ledger.tip, "--"))
    if commits > _VERIFIED_COMMITS:
        words = f"{commits} commits are too many to verify on the way."
        yield Check("history", "ok", words, "git tasks fsck")
        return
    found = verify.fsck(project)
    if found.findings:
        words = f"{len(found.findings)} things do not verify: {found.findings[0].message}"
        yield Check("history", "fail", words, "git tasks fsck")
    else:
        yield Check("history", "ok", f"{found.commits} commits verify.")


def _backup(ward: _Ward) -> Iterator[Check]:
    from gittasks.ledger import layout
    from gittasks.plumbing import refs

    project = ward.begun
    here = project.ledger.tip
    there = refs.read(project.repo, layout.BACKUP)
    if there == here:
        yield Check("backup", "ok", "The backup of the ledger is at its tip.")
    elif there is None:
        yield Check("backup", "warn", "The ledger has no backup.", _RECOVER)
    else:
        words = f"The backup is at {there[:12]}, the ledger at {here[:12]}."
        yield Check("backup", "warn", words, _RECOVER)


def _locks(ward: _Ward) -> Iterator[Check]:
    from gittasks.ledger import layout
    from gittasks.plumbing import refs

    project = ward.begun
    names = (project.branch, project.base, layout.BACKUP)
    left = refs.stale_locks(project.repo, names)
    if left:
        words = f"{left[0]} is locked; unless a git runs just now, a killed one left it."
        yield Check("locks", "warn", words, _RECOVER)
    else:
        yield Check("locks", "ok", "No lock stands in the way.")


def _clock(ward: _Ward) -> Iterator[Check]:
    project = ward.begun
    ahead = project.ledger.reader.commit(project.ledger.tip).committer_time - project.clock()
    if ahead > 60:
        words = f"The last event is {ahead} s in the future: a clock is wrong, here or elsewhere."
        yield Check("clock", "warn", words)


def _remote(ward: _Ward) -> Iterator[Check]:
    project = ward.begun
    name = project.remote
    if name is None:
        yield Check("remote", "ok", "The ledger is not shared with a remote.")
        return
    from gittasks.plumbing import remote
    from gittasks.workflow import sync

    _, unpublished = sync.state(project) or (name, 0)
    if not project.is_offline:
        try:
            remote.head(project.repo, name, timeout=_REMOTE_SECONDS)
        except GitError as error:
            words = f"The remote {name} does not answer: {_sentence(error)}"
            yield Check("remote", "warn", words, "git tasks sync")
            return
    if unpublished:
        words = f"{unpublished} events of this clone are not on {name} yet."
        yield Check("remote", "warn", words, "git tasks sync")
    else:
        yield Check("remote", "ok", f"{name} has every event of this clone.")


def _hooks(ward: _Ward) -> Iterator[Check]:
    from gittasks.plumbing import hook_places
    from gittasks.workflow import hooks

    project = ward.project
    if project.repo.bare:
        raise _Skip
    folder = hook_places.hooks_folder(project.repo)
    found = hooks.install(project, dry_run=True)
    names = os.listdir(folder.path) if os.path.isdir(folder.path) else []
    for name in sorted(names):
        path = os.path.join(folder.path, name)
        if name in _SLOWING and os.access(path, os.X_OK):
            words = f"The hook {name} runs at every commit of an agent; let it ask nothing."
            yield Check("hooks", "warn", words, f"git config core.hooksPath  # or look at {path}")
    if folder.place == "shared":
        words = f"The hooks in {folder.path} are shared with other repositories."
        yield Check("hooks", "ok", words)
    elif any(step.action == "renew" for step in found.steps):
        words = "The hooks of git tasks come from another version."
        yield Check("hooks", "warn", words, "git tasks setup hooks")
    elif all(step.action == "keep" for step in found.steps):
        yield Check("hooks", "ok", "The hooks of git tasks are in place.")
    else:
        yield Check("hooks", "ok", "The hooks of git tasks are not set up, which is fine.")


_SLOWING = ("pre-commit", "prepare-commit-msg", "post-commit", "post-checkout")


def _worktrees(ward: _Ward) -> Iterator[Check]:
    from gittasks.workflow import trees

    project = ward.begun
    root = project.worktree_root
    there = os.path.dirname(root) if not os.path.isdir(root) else root
    if not os.access(there, os.W_OK):
        words = f"Nothing can be written in {there}, where the worktrees stand."
        yield Check("worktrees", "fail", words, "git config gittasks.worktreeDir FOLDER")
        return
    places = trees.places(project)
    broken = [place for place in places if place.problem]
    for place in broken:
        words = f"The worktree of {place.task} in {place.path}: {place.problem}."
        yield Check("worktrees", "warn", words, "git tasks worktree repair")
    done = [place for place in places if place.state in (None, "CLOSED")]
    if done:
        words = f"{len(done)} worktrees are of tasks that are closed or unknown."
        yield Check("worktrees", "warn", words, "git tasks gc")
    elif not broken:
        yield Check("worktrees", "ok", f"{len(places)} worktrees in {root}.")
    for task in trees.left_apart(project):
        words = f"What an agent has committed for {task} is not brought in yet."
        yield Check("worktrees", "warn", words, _RECOVER)


def _claims(ward: _Ward) -> Iterator[Check]:
    from gittasks.workspaces import records

    project = ward.begun
    graph = project.ledger.graph()
    held = 0
    is_well = True
    for record in records.all(project.state_dir):
        task = graph.get(record.task)
        if task is None or task.claim != record.claim:
            continue
        held += 1
        if record.process is not None and not records.is_alive(record.process):
            words = f"{record.actor} holds {task.id} and its process is dead."
            is_well = False
            yield Check("claims", "warn", words, f"git tasks release {task.id} --force")
        elif record.tree and not os.path.isdir(project.places.tree(task.id)):
            words = f"{record.actor} holds {task.id}, whose worktree is gone."
            is_well = False
            yield Check("claims", "warn", words, f"git tasks start {task.id} --as {record.actor}")
    if is_well:
        yield Check("claims", "ok", f"{held} tasks are held from this clone.")


def _trust(ward: _Ward) -> Iterator[Check]:
    from gittasks.workflow import trust

    waiting = trust.waiting(ward.begun)
    if waiting:
        words = f"The checks of {', '.join(one.task for one in waiting[:5])} wait for approval."
        yield Check("trust", "warn", words, "git tasks trust")


def _room(ward: _Ward) -> Iterator[Check]:
    import shutil

    project = ward.project
    free = shutil.disk_usage(project.repo.common_dir).free
    if free < _FREE_BYTES:
        words = f"Only {free >> 20} MiB are free beside the repository."
        yield Check("disk", "warn", words)
    if not os.access(project.repo.common_dir, os.W_OK):
        words = f"Nothing can be written in {project.repo.common_dir}."
        yield Check("disk", "fail", words)
    loose = int(project.repo.text("count-objects").split()[0])
    if loose > _LOOSE_OBJECTS:
        words = f"{loose} loose objects make git slow."
        yield Check("objects", "warn", words, "git gc")


# The pool and the host.


def _pool(ward: _Ward) -> Iterator[Check]:
    from gittasks.domain.pool import PoolFault
    from gittasks.workflow import pool

    project = ward.begun
    path = pool.pool_path(project)
    try:
        found = pool.load(project)
    except PoolFault as error:
        for fault in error.faults:
            yield Check("pool", "fail", f"{path}: {fault}", f"$EDITOR {path}")
        return
    enabled = [agent for agent in found.agents if agent.enabled]
    if enabled:
        slots = sum(agent.slots for agent in enabled)
        yield Check("pool", "ok", f"{len(enabled)} agents with {slots} slots are enabled.")
    else:
        yield Check("pool", "warn", f"No agent is enabled in {path}.", f"$EDITOR {path}")


def _agents(ward: _Ward) -> Iterator[Check]:
    from gittasks.agents import ADAPTERS
    from gittasks.agents.base import Program
    from gittasks.domain.pool import agent_name

    for agent in ward.pool().agents:
        if not agent.enabled:
            continue
        name = agent_name(agent)
        if agent.type not in ADAPTERS:
            yield Check("agents", "fail", f"{name}: nobody here speaks with {agent.type}.")
            continue
        program = Program(agent.type, agent.provider, agent.model, agent.command)
        found = ADAPTERS[agent.type].probe(program, ward.environ)
        for problem in found.problems:
            yield Check("agents", "fail", f"{name}: {problem}")
        if not found.problems:
            yield Check(
                "agents", "ok", f"{name} can work{f': {found.version}' * bool(found.version)}."
            )


def _sandbox(ward: _Ward) -> Iterator[Check]:
    from gittasks.agents import sandbox

    wish = "auto"
    room = None
    try:
        from gittasks.workflow import pool
        from gittasks.workspaces import quarantine

        project = ward.begun
        wish = pool.sandbox_wish(project, ward.pool())
        laid = quarantine.trial_mounts(project.repo, project.places)
        room = sandbox.Room("/", quarantine.trial_folder(project.places), laid)
    except (_Skip, OSError):
        pass
    step = sandbox.reached(wish, ward.environ, room)
    verdict: Verdict = "ok" if step.name == "bubblewrap" or wish == "off" else "warn"
    help_ = "" if verdict == "ok" or "bwrap" in step.tools else "apt install bubblewrap"
    yield Check("sandbox", verdict, f"{step.name}: {step.why}", help_)


def _program(ward: _Ward) -> Iterator[Check]:
    """Looks whether `git tasks` is found where a login shell sets its own PATH."""
    home = ward.environ.get("HOME", "/")
    env = {"HOME": home, "PATH": os.defpath, "TERM": "dumb"}
    argv = ("/bin/sh", "-lc", "command -v git-tasks")
    done = run(argv, env=env, timeout=_SHELL_SECONDS)
    where = os.fsdecode(done.stdout).strip().splitlines()
    if done.status == 0 and where:
        yield Check("program", "ok", f"A login shell finds {where[-1]}.")
        return
    words = (
        "A login shell does not find git-tasks; agents get an alias, people need it on the PATH."
    )
    yield Check("program", "warn", words, "pipx ensurepath")


def _processes(ward: _Ward) -> Iterator[Check]:
    from gittasks.agents import orphans
    from gittasks.workspaces import records, runs

    project = ward.begun
    known = {
        run.mark
        for run in runs.all(project.state_dir)
        if records.is_alive(run.runner) or records.is_alive(run.process)
    }
    strays = [
        pid
        for mark, pids in orphans.of_clone(project.host).items()
        if mark not in known
        for pid in pids
    ]
    if strays:
        count = len(strays)
        what = "A process of an agent is" if count == 1 else f"{count} processes of agents are"
        words = f"{what} left that nobody looks after."
        yield Check("processes", "warn", words, f"kill {' '.join(map(str, strays[:20]))}")
    else:
        yield Check("processes", "ok", "No process of an agent is left behind.")


_CLONE: tuple[tuple[str, Callable[[_Ward], Iterator[Check]]], ...] = (
    ("git", _git),
    ("identity", _identity),
    ("ledger", _ledger),
    ("history", _history),
    ("backup", _backup),
    ("locks", _locks),
    ("clock", _clock),
    ("remote", _remote),
    ("hooks", _hooks),
    ("worktrees", _worktrees),
    ("claims", _claims),
    ("trust", _trust),
    ("disk", _room),
    ("pool", _pool),
    ("agents", _agents),
    ("processes", _processes),
)
_HOST: tuple[tuple[str, Callable[[_Ward], Iterator[Check]]], ...] = (
    ("sandbox", _sandbox),
    ("program", _program),
)


def _sentence(error: Exception) -> str:
    words = error.message if isinstance(error, GittasksError) else str(error)
    first = words.strip().splitlines()[0] if words.strip() else type(error).__name__
    return first if first.endswith(".") else f"{first}."


def _hint(error: Exception) -> str:
    hint = getattr(error, "hint", None) or ""
    return hint.split("`")[1] if hint.count("`") >= 2 else ""
