"""Creates the ledger of a repository, or takes over the remote's; nothing else is touched."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain import config
from gittasks.domain.errors import (
    Busy,
    Corrupt,
    NoLedger,
    Refused,
    SyncRefused,
    UsageFault,
    WrongRole,
)
from gittasks.domain.fields import shown
from gittasks.ledger import layout
from gittasks.ledger.shared import Shared
from gittasks.plumbing import refs
from gittasks.plumbing.errors import RefMoved
from gittasks.workflow import exchange, sharing
from gittasks.workflow.project import DEFAULT_BRANCH

if TYPE_CHECKING:
    from collections.abc import Collection

    from gittasks.workflow.project import Project

HEADS = "refs/heads/"
_ASK_SECONDS = 10.0
"""How long `init` waits for a remote that nobody named."""


class Begun(NamedTuple):
    """Where everything is after `init`: short names of branches, the folder of the trees."""

    created: bool
    branch: str
    base: str
    worktrees: str
    commit: str | None
    adopted: str | None = None
    """The remote branch whose ledger was taken over, None where one began."""
    remote: str | None = None
    """The remote that this clone shares the ledger through."""
    notes: tuple[str, ...] = ()


def init(
    project: Project,
    *,
    base: str | None = None,
    branch: str | None = None,
    remote: str | None = None,
) -> Begun:
    """Creates the ledger or takes over that of the remote, or tells that it is there.

    Refuses before anything is written. With `remote` this clone shares from now on.
    """
    speaker = project.speaker("init")
    if speaker.role != "manager":
        raise WrongRole(
            "Only the person at this machine may create a ledger.",
            "Run `git tasks whoami` to see why you are somebody else.",
        )
    chosen = sharing.choose(project, remote)
    if _is_there(project):
        begun = _already(project, base, branch)
        if remote is None and chosen is not None and _came_along(project):
            return _shared(project, begun, chosen)
        return begun if remote is None else _shared(project, begun, remote)
    notes: tuple[str, ...] = ()
    noted = refs.list(project.repo, layout.INCOMING) if remote is not None else ()
    if chosen is not None:
        named = project if branch is None else project.named(_name(branch))
        found, notes = _elsewhere(named, chosen, must=remote is not None)
        if found is not None:
            return _adopt(named, chosen, found, notes)
    named_before = sharing.own_values(project, "gittasks.branch")
    try:
        begun = _begin(project, speaker.actor, base, branch)
    except Refused:
        # Somebody else may have been faster.
        project.ledger.refresh()
        if not _is_there(project):
            raise
        return _already(project, base, branch)
    begun = begun._replace(notes=(*notes, *begun.notes))
    if remote is None:
        return begun
    sharing_project = _reopened(project)
    try:
        return _shared(sharing_project, begun, remote)
    except BaseException as error:
        if begun.created and _taken_back(sharing_project, begun, named_before, noted):
            # Nothing more is true for the ledger that has gone.
            project.ledger.is_at(None)
            _say_taken_back(error)
        raise
    finally:
        sharing_project.close()


def _elsewhere(
    project: Project, remote: str, *, must: bool
) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
    """Returns name and tip of the remote's ledger, None where it has none, and what to say."""
    if not project.options.offline:
        shared = Shared(project.ledger, remote, timeout=None if must else _ASK_SECONDS)
        try:
            arrived = shared.fetch(adopting=True)
        except (Busy, SyncRefused) as error:
            if must or (isinstance(error, SyncRefused) and "no ledger" in error.message):
                raise
            known = project.ledger.fetched()
            return known, (f"{error.message} `git tasks sync` shares the ledger later.",)
        if arrived.tip is None:
            return None, ()
        return (f"{remote}/{project.ledger.short_branch}", arrived.tip), arrived.notes
    found = project.ledger.fetched()
    return (None if found is None else (found[0].removeprefix("refs/remotes/"), found[1])), ()


def _came_along(project: Project) -> bool:
    """Tells whether the ledger is that of a remote, which git has made a branch of this clone."""
    written = os.path.exists(os.path.join(project.state_dir, "clone-id"))
    return project.remote is None and not written


def _shared(project: Project, begun: Begun, remote: str) -> Begun:
    """Lets this clone share its ledger through a remote from now on."""
    from gittasks.workflow.sync import sync

    if project.options.offline:
        sharing.begin(project, remote)
        return begun._replace(remote=remote)
    with sharing.beginning(project, remote):
        done = sync(project)
    return begun._replace(remote=remote, notes=(*begun.notes, *done.notes))


def _begin(project: Project, actor: str, base: str | None, branch: str | None) -> Begun:
    ledger = HEADS + (project.branch.removeprefix(HEADS) if branch is None else _name(branch))
    _require_room(project, ledger)
    settings = config.Project(base=_base(project, base, ledger))
    # Asked before anything is written: a folder inside of the checkout is refused.
    worktrees = project.worktree_root
    if ledger != project.branch:
        project = _with_branch(project, ledger.removeprefix(HEADS))
    commit = project.ledger.create(settings, actor)
    notes: tuple[str, ...] = ()
    if refs.read(project.repo, HEADS + settings.base) is None:
        notes = (f"{settings.base} has no commit yet; work on tasks can start when it has one.",)
    return Begun(True, ledger.removeprefix(HEADS), settings.base, worktrees, commit, notes=notes)


def _taken_back(
    project: Project, begun: Begun, named: tuple[str, ...], noted: Collection[str]
) -> bool:
    """Removes a ledger that has just begun; tells whether nobody has written to it since."""
    from gittasks.ledger import journal

    with project.ledger.locked():
        gone = [refs.Change(name, None, begun.commit) for name in (project.branch, layout.BACKUP)]
        try:
            refs.transaction(project.repo, gone, "gittasks: the ledger could not be shared")
        except RefMoved:
            return False
        for entry in journal.entries(project.state_dir):
            journal.drop(entry)
        _forget_attempt(project, noted)
    sharing.put_back(project, "gittasks.branch", named)
    return True


def _forget_attempt(project: Project, noted: Collection[str]) -> None:
    """Removes what was fetched on the way, and the answers of a ledger that never was."""
    here = refs.list(project.repo, layout.INCOMING)
    fetched = [refs.Change(name, None, oid) for name, oid in here.items() if name not in noted]
    refs.transaction(project.repo, fetched, "gittasks: the ledger could not be shared")
    project.ledger.close()
    for name in ("cache.db", "cache.db-wal", "cache.db-shm"):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(project.state_dir, name))


def _say_taken_back(error: BaseException) -> None:
    if isinstance(error, (Busy, SyncRefused)):
        error.message += " No ledger has begun here."
        if "safe in this clone" in (error.hint or ""):
            error.hint = (
                "Have the remote's owner allow it, or begin without it: git tasks init;"
                " `git tasks sync` shares the ledger later."
            )


def _adopt(project: Project, remote: str, found: tuple[str, str], notes: tuple[str, ...]) -> Begun:
    """Takes over the ledger that was fetched, and shares it from now on."""
    worktrees = project.worktree_root
    name, tip = found
    backup = refs.read(project.repo, layout.BACKUP)
    changes = [
        refs.Change(project.branch, tip, None),
        refs.Change(layout.BACKUP, tip, backup),
    ]
    refs.transaction(project.repo, changes, "gittasks: adopt the ledger of a remote")
    branch = project.branch.removeprefix(HEADS)
    if branch != DEFAULT_BRANCH:
        project.repo.git("config", "--local", "gittasks.branch", branch)
    sharing.begin(project, remote)
    project = _reopened(project)
    if not project.options.offline and refs.read(project.repo, layout.COPIES + remote) is not None:
        try:
            exchange.pull(project, timeout=_ASK_SECONDS)
        except (Busy, SyncRefused) as error:
            notes = (*notes, error.message)
    return Begun(
        False, branch, project.settings.base, worktrees, tip, name.removeprefix("refs/remotes/"),
        remote, notes,
    )  # fmt: skip


def _reopened(project: Project) -> Project:
    """Returns the project with the settings that this clone has by now."""
    project.repo.forget_config()
    return type(project)(project.repo, project.options, project.environ, project.clock)


def _is_there(project: Project) -> bool:
    """Tells whether there is a ledger; raises Corrupt where there was one that is lost."""
    try:
        return bool(project.settings)
    except NoLedger:
        return False
    except Corrupt:
        # It may be beginning now, in a process that has moved one of its refs and not the other.
        with project.ledger.locked():
            project.ledger.refresh()
        if refs.read(project.repo, project.branch) is None:
            raise
        if refs.read(project.repo, layout.BACKUP) is None:
            # A branch of that name that never was a ledger of ours is merely in the way.
            return False
        return bool(project.settings)


def _with_branch(project: Project, name: str) -> Project:
    """Returns the project with another name for its ledger, which this clone remembers."""
    project.repo.git("config", "--local", "gittasks.branch", name)
    return _reopened(project)


def _already(project: Project, base: str | None, branch: str | None) -> Begun:
    here = project.branch.removeprefix(HEADS)
    if branch is not None and _name(branch) != here:
        raise Refused(
            f"The ledger of this repository is the branch {here} already.",
            f"Go on with it, or look at it with `git log {here} --`.",
        )
    if base is not None and _name(base) != project.settings.base:
        raise Refused(
            f"The ledger is there already, with the base {project.settings.base}.",
            f"Run `git tasks config base {base}` to change it.",
        )
    return Begun(False, here, project.settings.base, project.worktree_root, None)


def _name(text: str) -> str:
    name = text.removeprefix(HEADS)
    if not layout.is_ref_part(name) or name == "HEAD":
        raise UsageFault(f"{shown(text)} cannot name a branch.", "Choose another name.")
    return name


def _require_room(project: Project, ledger: str) -> None:
    """Refuses while a branch, tag or folder of refs stands where our refs have to be."""
    name = ledger.removeprefix(HEADS)
    taken = refs.list(project.repo, "refs/")
    trees = HEADS + project.branch_prefix.rstrip("/")
    for ref in taken:
        stands = ref.partition("/")[2]
        if ref == ledger:
            raise _in_the_way(f"There is a branch {name} already, and it is no ledger")
        if ref == f"refs/tags/{name}":
            raise _in_the_way(f"The tag {name} would make the name of the ledger ambiguous")
        if ref.startswith(ledger + "/"):
            raise _in_the_way(f"The branch {stands.partition('/')[2]} leaves no room for {name}")
        if ledger.startswith(ref + "/"):
            raise _in_the_way(f"The branch {ref.removeprefix(HEADS)} leaves no room for {name}")
        if ref == trees or trees.startswith(ref + "/"):
            raise _in_the_way(
                f"The branch {ref.removeprefix(HEADS)} leaves no room for the branches of tasks"
            )


def _in_the_way(sentence: str) -> Refused:
    return Refused(
        f"{sentence}; nothing was written.", "Rename it, or choose another name with --branch."
    )


def _base(project: Project, wanted: str | None, ledger: str) -> str:
    """Returns the branch that tasks land on: the one named, the remote's, the current one."""
    head = refs.head(project.repo)
    current = head.branch.removeprefix(HEADS) if head.branch else None
    base = _name(wanted) if wanted is not None else _remote_base(project) or current
    if base is None:
        raise UsageFault(
            "No branch is checked out here, so it is not clear where tasks shall land.",
            "Name the branch with --base.",
        )
    if HEADS + base == ledger:
        raise UsageFault(
            f"The ledger itself cannot be the base: {base}.", "Name another branch with --base."
        )
    if base != current and refs.read(project.repo, HEADS + base) is None:
        raise UsageFault(f"There is no branch {base} here.", "Name another one with --base.")
    return base


def _remote_base(project: Project) -> str | None:
    """Returns the branch that HEAD of the remote means, where this clone has it too."""
    names = [
        key.split(".", 1)[1].removesuffix(".url")
        for key in project.config.names()
        if key.startswith("remote.") and key.endswith(".url")
    ]
    remote = "origin" if "origin" in names else names[0] if len(names) == 1 else None
    if remote is None:
        return None
    prefix = f"refs/remotes/{remote}/"
    found = project.repo.text("symbolic-ref", "-q", prefix + "HEAD", check=False)
    name = found.removeprefix(prefix) if found.startswith(prefix) else None
    return name if name and refs.read(project.repo, HEADS + name) else None
