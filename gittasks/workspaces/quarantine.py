"""A tree whose agent cannot write the repository: what it commits is kept apart, then brought in.

While an agent works in a sandbox, HEAD of its tree is detached at the tip of the task's branch and
new objects go to a folder of their own, which stands there in the place of the repository's. So a
commit works, and every attempt to move a ref fails. Whoever looks after the agent brings in what
it has made: the objects are read again and verified, and the branch moves by compare-and-swap.

    <git common dir>/gittasks/quarantine/<id>/objects/     what the agent writes
    <git common dir>/gittasks/quarantine/<id>/record.json  what is to be brought in where
    <git common dir>/gittasks/quarantine/store/            where the agent sees the real objects

The record is written before HEAD is detached and goes last, so that whoever comes after a crash
knows that a tree has something to bring in. Nothing that the agent could write is followed: HEAD
is read as a file, links are not taken, no git outside reads settings that were made inside.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Refused
from gittasks.plumbing import objects, refs, worktrees
from gittasks.plumbing.errors import GitError, RefLocked, RefMoved
from gittasks.workspaces import records
from gittasks.workspaces.branch import HEADS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gittasks.plumbing.repository import Repository
    from gittasks.workspaces.places import Places

Mount = tuple[str, str, str]
"""What is laid over the file system of an agent: how (`bind`, `ro-bind`, `tmpfs`, `remount-ro`),
where, and what of this host is seen there."""

SIZE_LIMIT = 2 << 30
"""How many bytes of new objects are brought in at most."""

_FOLDER = "quarantine"
_RECORD = "record.json"
_STORE = "store"
_HEAD_LIMIT = 1024
_LOOSE_LIMIT = 100
_LOOSE_BYTES = 16 << 20
# A file above this is streamed, so that a few bytes that inflate to many need no memory.
_STREAMED = ("-c", "core.bigFileThreshold=16m")

# Folders of the clone's own state that are none of an agent's business: claims have secrets.
_HIDDEN = ("agents", "orders", "runners", "runs", "sessions")
# Files of a tree's git directory that say where it belongs.
_FIXED = ("commondir", "gitdir", "locked", "config.worktree")
# What git would read there as settings, or run.
_FOREIGN = ("config", "hooks")


class Quarantine(NamedTuple):
    """A tree that is kept apart; `tip` is where its branch stood when it was handed out."""

    name: str
    branch: str
    tip: str
    tree: str
    git_dir: str
    moves: bool
    """Tells whether commits are wanted, so that the branch follows them."""
    known: tuple[str, ...] = ()
    """Where we have taken the branch, or were about to."""
    has_settings: bool = False
    """Tells whether the tree had a file of settings of its own before."""


class Harvest(NamedTuple):
    """What was brought in: the commit that HEAD is at, and why something was not, in a sentence."""

    tip: str | None = None
    trouble: str | None = None
    has_moved: bool = False


def prepare(repo: Repository, places: Places, task: str, branch: str, *, moves: bool) -> Quarantine:
    """Keeps the tree of a task apart from now on; the tree stands on its branch."""
    close(repo, places, task)
    tree = places.tree(task)
    git_dir = worktrees.git_dir_of(repo, tree)
    tip = refs.read(repo, HEADS + branch)
    if tip is None or _head(repo, git_dir) not in (HEADS + branch, tip):
        raise Refused(
            f"The worktree of {task} does not stand on {branch}.",
            f"Run `git switch {branch}` in {tree}.",
            task,
        )
    settings = os.path.join(git_dir, "config.worktree")
    name = _name(places, task)
    made = Quarantine(
        name, branch, tip, tree, git_dir, moves, (tip,), has_settings=os.path.exists(settings)
    )
    home = _home(places.state, name)
    os.makedirs(os.path.join(home, "objects", "info"), mode=0o700, exist_ok=True)
    os.makedirs(_store(places.state), mode=0o700, exist_ok=True)
    _restore_alternates(places.state, home)
    _write_far_alternates(repo, home)
    _write(places.state, made)
    # An empty file can be made unwritable; one that is not there could be made.
    with open(settings, "ab"):
        pass
    if _head(repo, git_dir) != tip:
        refs.detach(repo, git_dir, tip, "gittasks: detach for an agent")
    return made


def opened(places: Places, task: str) -> Quarantine | None:
    """Returns the quarantine of a task's tree, None where it has none."""
    return _read(places.state, _name(places, task))


def of_tree(state_dir: str, tree: str) -> Quarantine | None:
    """Returns the quarantine of the tree at a path, None where it has none."""
    folder, name = os.path.split(tree)
    return _read(state_dir, os.path.basename(folder)) if name == "tree" else None


def detached_at(repo: Repository, made: Quarantine) -> str | None:
    """Returns the commit that HEAD of a tree is at, None where it is on a branch or unreadable."""
    at = _head(repo, made.git_dir)
    return None if at is None or at.startswith("refs/") else at


def names(places: Places) -> tuple[str, ...]:
    """Returns the names of all folders of tasks whose trees are kept apart."""
    try:
        found = sorted(os.listdir(os.path.join(places.state, _FOLDER)))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(name for name in found if _read(places.state, name) is not None)


def mounts(
    repo: Repository, places: Places, made: Quarantine, *, claim: str, outbox: str
) -> tuple[Mount, ...]:
    """Returns what an agent sees of the repository, of this clone's state and of its own folder."""
    state, common = places.state, repo.common_dir
    home = _home(state, made.name)
    folder = os.path.dirname(made.tree)
    own = os.path.join(folder, "agent")
    for path in (own, outbox, *(os.path.join(state, name) for name in _HIDDEN)):
        os.makedirs(path, mode=0o700, exist_ok=True)
    laid: list[Mount] = [_read_only(common), _read_only(os.path.dirname(folder))]
    hidden = [os.path.join(state, name) for name in _HIDDEN]
    laid += [("tmpfs", path, "") for path in hidden]
    laid.append(("ro-bind", os.path.join(state, "claims"), records.shared(state, claim)))
    laid.append(_writable(outbox))
    laid += [("remount-ro", path, "") for path in hidden]
    # Each is a mount of its own, so that it cannot be renamed away.
    laid += [_writable(folder), _writable(own), _writable(made.tree)]
    laid.append(_read_only(os.path.join(made.tree, ".git")))
    laid += _object_mounts(repo, state, home)
    laid.append(_writable(made.git_dir))
    fixed = (os.path.join(made.git_dir, name) for name in _FIXED)
    laid += [_read_only(path) for path in fixed if os.path.exists(path)]
    return tuple(laid)


def trial_mounts(repo: Repository, places: Places) -> tuple[Mount, ...]:
    """Returns the same kinds of mounts around a folder of no task, to see whether they work."""
    home = _home(places.state, "trial")
    folder = os.path.join(home, "folder")
    os.makedirs(os.path.join(home, "objects", "info"), mode=0o700, exist_ok=True)
    for path in (folder, _store(places.state), os.path.join(places.state, "agents")):
        os.makedirs(path, mode=0o700, exist_ok=True)
    _restore_alternates(places.state, home)
    _write_far_alternates(repo, home)
    hidden = os.path.join(places.state, "agents")
    laid: list[Mount] = [_read_only(repo.common_dir), ("tmpfs", hidden, "")]
    laid += [("remount-ro", hidden, ""), _writable(folder)]
    return (*laid, *_object_mounts(repo, places.state, home))


def trial_folder(places: Places) -> str:
    """Returns the folder that `trial_mounts` leaves writable."""
    return os.path.join(_home(places.state, "trial"), "folder")


def harvest(repo: Repository, places: Places, task: str) -> Harvest:
    """Brings in what an agent has committed; it may still live. Twice is the same as once."""
    made = opened(places, task)
    if made is None:
        return Harvest()
    found, trouble = _brought(repo, places, made)
    if found is None:
        return Harvest(None, trouble)
    return _followed(repo, places.state, made, found)


def close(repo: Repository, places: Places, task: str) -> tuple[str, ...]:
    """Ends the quarantine of a tree whose agent is gone: all of it is brought in, or put aside.

    The tree stands on its branch again, or, where the branch could not follow, at its commit.
    Returns what a person has to be told. Callers hold the lock around worktrees, or the claim.
    """
    made = opened(places, task)
    if made is None:
        _sweep(places, task)
        return ()
    told: list[str] = []
    if os.path.isdir(made.git_dir):
        told += _clean(made.git_dir)
        gathered = _everything(repo, places, made)
        told += [gathered] if gathered else []
        done = harvest(repo, places, task)
        told += [done.trouble] if done.trouble and not gathered else []
        _attach(repo, made, is_lost=gathered is not None)
        _drop_settings(made)
    else:
        gathered = _everything(repo, places, made)
        told += [gathered] if gathered else []
    if gathered is not None:
        aside = os.path.join(_home(places.state, made.name), "objects")
        kept = f"{_home(places.state, made.name)}.{os.urandom(4).hex()}.kept"
        os.rename(aside, kept)
        told.append(f"What could not be brought in of {task} is kept in {kept}.")
    os.unlink(os.path.join(_home(places.state, made.name), _RECORD))
    _sweep(places, task)
    return tuple(told)


# Reading what an agent may have written.


def _head(repo: Repository, git_dir: str) -> str | None:
    """Returns the ref or the commit that HEAD of a git directory names, None for anything else."""
    if refs.is_reftable(repo):
        head = refs.head(repo, at=git_dir)
        return head.branch or head.oid
    text = _plain(os.path.join(git_dir, "HEAD"))
    if text is None:
        return None
    if text.startswith("ref: refs/"):
        return text.removeprefix("ref: ")
    is_oid = len(text) == repo.oid_length and not text.strip("0123456789abcdef")
    return text if is_oid else None


def _plain(path: str) -> str | None:
    """Returns the one line of a small file; no link is followed, and nothing is waited for."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(fd, "rb", buffering=0) as file:
        if not _is_regular(fd):
            return None
        data = file.read(_HEAD_LIMIT + 1) or b""
    line = data.removesuffix(b"\n")
    return os.fsdecode(line) if len(data) <= _HEAD_LIMIT and b"\n" not in line else None


def _is_regular(fd: int) -> bool:
    import stat

    return stat.S_ISREG(os.fstat(fd).st_mode)


# Bringing in.


def _brought(repo: Repository, places: Places, made: Quarantine) -> tuple[str | None, str | None]:
    """Brings in the objects of the commit that HEAD is at; returns it, or why there is none."""
    at = _head(repo, made.git_dir)
    if at is None:
        return None, "HEAD of the worktree cannot be read."
    if at.startswith("refs/"):
        if at == HEADS + made.branch:
            return refs.read(repo, at), None
        return None, f"HEAD of the worktree is at {at}, not on {made.branch}."
    if not objects.missing(repo, (at,)):
        return at, None
    trouble = _everything(repo, places, made)
    return (None, trouble) if trouble else (at, None)


def _followed(repo: Repository, state: str, made: Quarantine, found: str) -> Harvest:
    """Lets the branch follow what was brought in, where commits are wanted."""
    ref = HEADS + made.branch
    here = refs.read(repo, ref)
    if here == found:
        return Harvest(found)
    if not made.moves:
        # Whoever judges the tree says so.
        return Harvest(found)
    if not _is_sound(repo, made, found):
        return Harvest(None, f"The commit {found[:12]} is not whole.")
    if not _descends(repo, made.tip, found):
        return Harvest(found, f"The commit {found[:12]} does not contain {made.tip[:12]}.")
    if here not in made.known:
        where = "is gone" if here is None else f"has moved to {here[:12]} meanwhile"
        return Harvest(found, f"The branch {made.branch} {where}.")
    _write(state, made._replace(known=(*made.known, found)))
    try:
        refs.compare_and_swap(repo, ref, found, here, "gittasks: bring in what an agent committed")
    except (RefMoved, RefLocked) as error:
        return Harvest(found, f"The branch {made.branch} cannot follow: {error}")
    return Harvest(found, has_moved=True)


def _is_sound(repo: Repository, made: Quarantine, oid: str) -> bool:
    """Tells whether a commit is one, and all that it needs is in the repository itself."""
    done = repo.git("rev-list", "--objects", "--quiet", oid, f"^{made.tip}", "--", check=False)
    kind = repo.text("cat-file", "-t", oid, check=False)
    return done.status == 0 and kind == "commit"


def _descends(repo: Repository, before: str, after: str) -> bool:
    from gittasks.plumbing import merging

    return merging.is_ancestor(repo, before, after)


def _everything(repo: Repository, places: Places, made: Quarantine) -> str | None:
    """Brings in every new object, also what is only staged; returns why that is not possible."""
    home = _home(places.state, made.name)
    if not _has_objects(os.path.join(home, "objects")):
        return None
    try:
        _restore_alternates(places.state, home)
        return _packed_over(repo, home)
    except (GitError, OSError) as error:
        lines = str(error).strip().splitlines()
        words = lines[-1] if lines else type(error).__name__
        return f"What was committed is not sound: {words}"


def _has_objects(folder: str) -> bool:
    has_loose = any(len(name) == 2 for name in _listed(folder))
    return has_loose or bool(_listed(os.path.join(folder, "pack")))


def _packed_over(repo: Repository, home: str) -> str | None:
    """Packs the objects of a quarantine and lets git read and verify each of them."""
    source = os.path.join(home, "objects")
    if _size(source) > SIZE_LIMIT:
        return f"What was committed has more than {SIZE_LIMIT >> 20} MiB."
    apart = {"GIT_OBJECT_DIRECTORY": source}
    listing = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "--buffer")
    there = repo.text(*listing, env=apart).split()
    new = objects.missing(repo, there)
    if not new:
        return None
    beside = os.path.join(home, "in")
    _remove(beside)
    os.makedirs(beside, mode=0o700)
    base = os.path.join(beside, "pack")
    lines = "".join(f"{oid}\n" for oid in new).encode("ascii")
    # One that was made up to be small could swell: the deltas of others are not taken over.
    command = ("pack-objects", "-q", "--threads=1", "--no-reuse-delta", "--window=0", base)
    digest = repo.text(*_STREAMED, *command, stdin=lines, env=apart)
    pack = f"{base}-{digest}.pack"
    _take_over(repo, pack, digest, len(new))
    _remove(beside)
    return None


def _take_over(repo: Repository, pack: str, digest: str, count: int) -> None:
    """Puts a pack among the objects of the repository, loose where they are few."""
    if count <= _LOOSE_LIMIT and os.stat(pack).st_size <= _LOOSE_BYTES:
        with open(pack, "rb") as file:
            data = file.read()
        repo.git(*_STREAMED, "unpack-objects", "-q", "--strict", stdin=data)
        return
    index = pack.removesuffix(".pack") + ".idx"
    _unlink(index)
    repo.git(*_STREAMED, "index-pack", "--strict", "--threads=1", "-o", index, pack)
    folder = os.path.join(repo.common_dir, "objects", "pack")
    os.makedirs(folder, exist_ok=True)
    # The index goes last: it is what makes git look at a pack.
    os.rename(pack, os.path.join(folder, f"pack-{digest}.pack"))
    os.rename(index, os.path.join(folder, f"pack-{digest}.idx"))


# The git directory of the tree, once its agent is gone.


def _clean(git_dir: str) -> list[str]:
    """Takes away what git outside must not meet: links, pipes, settings, hooks, old locks."""
    told = []
    for path in list(_odd(git_dir)):
        _remove(path)
        told.append(f"The agent had left {path}, which is removed.")
    for name in _FOREIGN:
        path = os.path.join(git_dir, name)
        if os.path.lexists(path):
            _remove(path)
            told.append(f"The agent had left {path}, which is removed.")
    for name in _listed(git_dir):
        if name.endswith(".lock"):
            _remove(os.path.join(git_dir, name))
    return told


def _odd(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _odd(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                yield entry.path


def _attach(repo: Repository, made: Quarantine, *, is_lost: bool) -> None:
    """Puts HEAD on the branch again where it is at its tip, or at nothing that is here."""
    at = _head(repo, made.git_dir)
    here = refs.read(repo, HEADS + made.branch)
    if here is None or at == HEADS + made.branch:
        return
    if at is not None and at.startswith("refs/heads/") and refs.read(repo, at) is not None:
        # Whoever takes the task next gets the tree made anew.
        return
    is_there = at is not None and not at.startswith("refs/") and not objects.missing(repo, (at,))
    if is_lost:
        # It names what is nowhere. Without it the files are put aside and the tree is made anew.
        _unlink(os.path.join(made.git_dir, "index"))
    if at == here or is_lost or not is_there:
        if at is None:
            # git takes a folder for a git directory only with a HEAD in it.
            _write_head(made)
        ref = HEADS + made.branch
        refs.attach(repo, made.git_dir, ref, "gittasks: attach after an agent")


def _write_head(made: Quarantine) -> None:
    path = os.path.join(made.git_dir, "HEAD")
    _remove(path)
    with open(path, "x", encoding="utf-8") as file:
        file.write(f"ref: {HEADS}{made.branch}\n")


def _drop_settings(made: Quarantine) -> None:
    if not made.has_settings:
        _unlink(os.path.join(made.git_dir, "config.worktree"))


# Where things stand.


def _name(places: Places, task: str) -> str:
    # The folder keeps its name when the task gets another number.
    return os.path.basename(places.folder(task))


def _home(state: str, name: str) -> str:
    return os.path.join(state, _FOLDER, name)


def _store(state: str) -> str:
    return os.path.join(state, _FOLDER, _STORE)


def _writable(path: str) -> Mount:
    return ("bind", path, path)


def _read_only(path: str) -> Mount:
    return ("ro-bind", path, path)


def _object_mounts(repo: Repository, state: str, home: str) -> list[Mount]:
    real = os.path.join(repo.common_dir, "objects")
    laid: list[Mount] = [
        ("bind", real, os.path.join(home, "objects")),
        ("ro-bind", _store(state), real),
    ]
    far = os.path.join(home, "alternates")
    if os.path.exists(far):
        laid.append(("ro-bind", os.path.join(_store(state), "info", "alternates"), far))
    return laid


def _restore_alternates(state: str, home: str) -> None:
    """Lets the objects of a quarantine continue in the store, which is empty on this side."""
    info = os.path.join(home, "objects", "info")
    if os.path.islink(info) or not os.path.isdir(info):
        _remove(info)
        os.makedirs(info, mode=0o700)
    beside = os.path.join(home, f"alternates.{os.getpid()}")
    with open(beside, "wb") as file:
        file.write(os.fsencode(_store(state)) + b"\n")
    # The agent may live and put a link there in this moment.
    folder = os.open(info, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        os.replace(beside, "alternates", dst_dir_fd=folder)
    finally:
        os.close(folder)


def _write_far_alternates(repo: Repository, home: str) -> None:
    """Spells out where the real objects continue: seen from another place, `..` is elsewhere."""
    real = os.path.join(repo.common_dir, "objects")
    far = os.path.join(home, "alternates")
    try:
        with open(os.path.join(real, "info", "alternates"), "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        _unlink(far)
        return
    with open(far, "wb") as file:
        for line in lines:
            is_path = bool(line) and line[:1] not in (b"#", b'"')
            file.write((os.path.join(os.fsencode(real), line) if is_path else line) + b"\n")


def _write(state: str, made: Quarantine) -> None:
    path = os.path.join(_home(state, made.name), _RECORD)
    records.write_json(path, {**made._asdict(), "known": list(made.known)})


def _read(state: str, name: str) -> Quarantine | None:
    data = records.read_json(os.path.join(_home(state, name), _RECORD))
    if data is None:
        return None
    try:
        known = {key: value for key, value in data.items() if key in Quarantine._fields}
        return Quarantine(**{**known, "known": tuple(data.get("known", ()))})
    except TypeError:
        return None


def _sweep(places: Places, task: str) -> None:
    home = _home(places.state, _name(places, task))
    if os.path.isdir(home):
        _remove(home)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _size(folder: str) -> int:
    total = 0
    for path, _folders, files in os.walk(folder):
        total += sum(os.lstat(os.path.join(path, name)).st_size for name in files)
    return total


def _remove(path: str) -> None:
    """Removes whatever stands at a path; a link, not what it names."""
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        _unlink(path)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
