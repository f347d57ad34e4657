"""Speaks with the git repositories elsewhere: what is there, what comes from it, what goes to it.

Every call names its refs in full, is bounded in time, asks nobody anything, and lets no setting of
a remote widen what was asked for: the user's remote-tracking refs, tags and branches stay as they
are. What can go wrong is told by the errors of `plumbing.errors`: somebody was faster, the remote
refuses, is not there, or wants to know who asks.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.plumbing.errors import (
    GitError,
    GitTimeout,
    NoSuchRemote,
    RemoteAsks,
    RemoteRaced,
    RemoteRefused,
    RemoteUnreachable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gittasks.plumbing.process import Completed
    from gittasks.plumbing.repository import Repository

# The only place where a fetch may write.
_OURS = "refs/gittasks/"

_FETCH = (
    "fetch", "--no-tags", "--no-prune-tags", "--no-recurse-submodules", "--no-write-fetch-head",
    "--no-auto-maintenance", "--no-show-forced-updates", "--refmap=",
)  # fmt: skip
_PUSH = (
    "push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no",
    "--no-signed",
)  # fmt: skip

# One less than what git takes for "without end": that would complete every history, also those
# the user cut off.
_DEEP = "--depth=2147483646"

# What a remote is called while a push goes there, and which of its settings stay behind: a push to
# the remote itself would also move the user's remote-tracking refs, and in a mirror the branches.
_ALIAS = "gittasks-"
_NOT_FOR_A_PUSH = {
    "fetch", "push", "mirror", "prune", "prunetags", "tagopt", "promisor", "partialclonefilter",
    "followremotehead", "skipdefaultupdate", "skipfetchall",
}  # fmt: skip

# How long to wait before each new try when a lock file is in the way for a moment.
_PAUSES = (0.1, 0.2, 0.4, 0.8)

# For how many seconds nobody needs to know that a remote is being asked.
_SILENT = 3.0

_KEPT_LINES = 20
_KEPT_CHARACTERS = 500

# Why git itself did not send a ref, and why the other side did not take it: what is no race here
# is a refusal. Nothing follows from the last group alone; the server's words tell.
_LOCAL_RACES = {
    "fetch first",
    "non-fast-forward",
    "stale info",
    "needs force",
    "already exists",
    "remote ref updated since checkout",
}
_REMOTE_RACES = {
    "incorrect old value provided",
    "reference already exists",
    "reference does not exist",
}
_FELL_WITH_OTHERS = {"atomic push failed", "atomic push failure"}
_UNCLEAR = {"failed to update ref", "failed to delete", "atomic transaction failed"}

# What the server says about a ref that it could not move, though nobody else moved it.
_STANDS_IN_THE_WAY = (
    "cannot create '",
    "file exists",
    "permission denied",
    "read-only file system",
    "no space left",
    "quota exceeded",
    "not a directory",
    "is a directory",
)

# The other side only says that the pack was broken.
_LOCAL_FAULTS = ("fatal: bad object", "error: pack-objects died", "fatal: unable to read")

_WORDS_OF_A_RACE = ("but expected", "cannot lock ref")
_WORDS_OF_ASKING = (
    "authentication failed",
    "could not read username",
    "could not read password",
    "terminal prompts disabled",
    "unable to get password",
    "permission denied (",
    "permission denied, please try again",
    "too many authentication failures",
    "host key verification failed",
    "host identification has changed",
    "returned error: 401",
    "returned error: 407",
)
_WORDS_OF_REFUSAL = (
    "returned error: 403",
    "denied to ",
    "dubious ownership",
    "service not enabled",
    "access denied",
    "denied by ",
    "is read-only",
    "marked as read only",
    "not allowed to ",
    "not authorized to ",
    "permission denied for writing",
    "remote error: ",
)
# Nothing can have arrived, because nobody was reached.
_WORDS_OF_ABSENCE = (
    "does not appear to be a git repository",
    "not valid: is this a git repository",
    "repository not found",
    "could not resolve",
    "unable to look up",
    "connection refused",
    "no route to host",
    "network is unreachable",
    "failed to connect",
    "couldn't connect",
    "kex_exchange_identification",
    "returned error: 404",
    "' not found",
)
_WORDS_OF_TIME = ("connection timed out", "operation timed out", "timeout was reached")
_WORDS_OF_LOSS = (
    *_WORDS_OF_TIME,
    "hung up",
    "early eof",
    "rpc failed",
    "unexpected disconnect",
    "connection reset",
    "connection closed",
    "connection to ",
    "broken pipe",
    "protocol error",
    "expected flush",
    "empty reply from server",
    "failed to report status",
    "returned error: 5",
    "unable to access '",
    "could not read from remote repository",
    "hung up upon initial contact",
)
# git says this when it was told nothing yet, so it has not said anything either.
_WORDS_BEFORE_ALL = _WORDS_OF_LOSS[-3:]


class Update(NamedTuple):
    """One ref's move on the remote: `new` None deletes it, `old` None says that it must not exist.

    A plain one only goes forward, whatever the remote has by now; any other happens exactly from
    `old`, in whatever direction.
    """

    name: str
    new: str | None
    old: str | None
    plain: bool = False


def names(repo: Repository) -> tuple[str, ...]:
    """Returns the remotes that have an address, in the order of the configuration."""
    found = []
    for key in repo.config.names():
        section, _, rest = key.partition(".")
        name, _, what = rest.rpartition(".")
        if section == "remote" and what == "url" and name and url(repo, name) is not None:
            found.append(name)
    return tuple(found)


def url(repo: Repository, remote: str) -> str | None:
    """Returns the configured address of a remote, before `insteadOf` and such have their say."""
    known = repo.config.get_all(f"remote.{remote}.url")
    # An empty address takes back those before it.
    for at in range(len(known), 0, -1):
        if not known[at - 1]:
            known = known[at:]
            break
    return known[0] if known else None


def listed(
    repo: Repository, remote: str, patterns: Sequence[str], *, timeout: float | None = None
) -> dict[str, str]:
    """Returns the refs of the remote, by full name, that a name or a pattern with `*` means."""
    return _listed(_Line(repo, remote, timeout), patterns)


def head(repo: Repository, remote: str, timeout: float | None = None) -> str | None:
    """Returns the branch that the HEAD of the remote means; None if detached or unborn."""
    line = _Line(repo, remote, timeout)
    done = line.run("ls-remote", "--symref", "--", remote, "HEAD")
    if done.status:
        raise line.failure("ls-remote", done)
    for row in os.fsdecode(done.stdout).splitlines():
        told, _, name = row.partition("\t")
        if name == "HEAD" and told.startswith("ref: "):
            return told.removeprefix("ref: ")
    return None


def fetch(
    repo: Repository,
    remote: str,
    refspecs: Mapping[str, str],
    *,
    globs: Mapping[str, str] = {},
    timeout: float | None = None,
    whole: bool = False,
    prune: bool = False,
) -> frozenset[str]:
    """Copies refs of the remote into ours, wherever ours were; returns which are not there.

    `refspecs` and `globs` (one `*` on each side) name for what is there the ref below
    `refs/gittasks/` that it becomes. With `prune`, what a glob no longer finds goes. With `whole`,
    history and contents come in full, also into a clone that is shallow or partial; what else
    that clone left out stays out.
    """
    for target in (*refspecs.values(), *globs.values()):
        if not target.startswith(_OURS):
            raise ValueError(f"{target} is not ours to write.")
    line = _Line(repo, remote, timeout)
    options = ["--prune"] if prune and globs else []
    partial = whole and _is_partial(repo)
    if partial:
        _bring_contents(line, refspecs, globs)
    if whole:
        # Also in a clone that is not partial, where it changes nothing.
        options.append("--no-filter")
    wanted, missing = _fetch(line, options, dict(refspecs), globs)
    if whole and _shallow(repo):
        _deepen(line, wanted, globs)
        if partial:
            _bring_missing(line, _targets(repo, wanted, globs).values(), ())
    return missing


def push(
    repo: Repository, remote: str, updates: Sequence[Update], *, timeout: float | None = None
) -> None:
    """Moves refs of the remote by object id, all or none; raises RemoteError's kinds."""
    if not updates:
        return
    leases, refspecs = [], []
    for update in updates:
        _check(repo, update)
        refspecs.append(f"{update.new or ''}:{update.name}")
        if not update.plain:
            leases.append(f"--force-with-lease={update.name}:{update.old or ''}")
    line = _Line(repo, remote, timeout, pushing=True)
    atomic = ("--atomic",) if len(updates) > 1 else ()
    for pause in (*_PAUSES, None):
        done = line.run(*_PUSH, *atomic, *leases, "--", line.called, *refspecs)
        if not done.status:
            return
        error = _why_not(line, updates, done)
        # The lock is mostly somebody's who pushes at the same moment.
        passes = _is_locked(error) or _is_half_made(os.fsdecode(done.stderr))
        if pause is None or not passes or not line.pause(pause):
            raise error


def is_shallow(repo: Repository) -> bool:
    """Returns whether git has cut the history of this clone off somewhere."""
    return os.path.exists(os.path.join(repo.common_dir, "shallow"))


def is_cut(repo: Repository, ref: str) -> bool:
    """Returns whether the history of a ref is one that git has cut off."""
    roots = set(repo.text("rev-list", "--max-parents=0", ref, "--").split())
    return any(
        b"\nparent " in repo.git("cat-file", "commit", oid).stdout.partition(b"\n\n")[0]
        for oid in roots & _shallow(repo)
    )


class _Line:
    """One call's way to a remote: where git runs, with which settings, and until when."""

    __slots__ = ("_deadline", "_env", "_place", "_seconds", "called", "pushing", "remote", "repo")

    def __init__(
        self, repo: Repository, remote: str, timeout: float | None, *, pushing: bool = False
    ) -> None:
        address = url(repo, remote)
        if address is None:
            raise NoSuchRemote(remote)
        self.repo = repo
        self.remote = remote
        self.pushing = pushing
        self._seconds = repo.timeout if timeout is None else timeout
        self._deadline = time.monotonic() + self._seconds
        self.called = _alias(repo, remote) if pushing else remote
        self._env = _environment(repo, remote, self.called)
        self._place = _place(repo, remote)

    def run(self, *args: str, stdin: bytes = b"") -> Completed:
        """Runs git within what is left of the time."""
        # Even when nothing is left, a process must exist to be stopped.
        left = max(self._deadline - time.monotonic(), 0.01)
        command = (*self._place, *args)
        try:
            with _Ending(), _Waiting(self):
                return self.repo.git(
                    *command, stdin=stdin, env=self._env, timeout=left, check=False
                )
        except GitTimeout as error:
            raise RemoteUnreachable(
                self.remote,
                "",
                args,
                error.status,
                error.stderr,
                seconds=self._seconds,
                maybe_done=self.pushing,
            ) from None

    @property
    def spent(self) -> float:
        """Returns for how many seconds this has been going on."""
        return self._seconds - (self._deadline - time.monotonic())

    def pause(self, seconds: float) -> bool:
        """Waits a moment; returns whether there was time to."""
        if time.monotonic() + seconds >= self._deadline:
            return False
        time.sleep(seconds)
        return True

    def failure(self, command: str, done: Completed, names: Sequence[str] = ()) -> GitError:
        """Returns what kind of failure it was, as far as words on the error output tell."""
        stderr = os.fsdecode(done.stderr)
        rest = ((command,), done.status, stderr)
        if cause := _line_with(_WORDS_OF_ASKING, stderr):
            return RemoteAsks(self.remote, cause, *rest)
        if "aborted by hook" in stderr:
            words = _told_by_hook(stderr)
            kind = RemoteRaced if _line_with(_WORDS_OF_A_RACE, words) else RemoteRefused
            return kind(self.remote, names, words, *rest)
        if "not our ref" not in stderr and (cause := _line_with(_WORDS_OF_REFUSAL, stderr)):
            return RemoteRefused(self.remote, names, _told(stderr) or cause, *rest)
        if cause := _line_with(_WORDS_OF_ABSENCE, stderr):
            return RemoteUnreachable(self.remote, cause, *rest)
        cause = _line_with(_WORDS_OF_LOSS, stderr)
        # A push whose git was killed may have gone through as well.
        if cause or (self.pushing and done.status < 0):
            begun = self.pushing and not _line_with(_WORDS_BEFORE_ALL, stderr)
            timed_out = bool(_line_with(_WORDS_OF_TIME, stderr))
            cause = _before_silence(stderr) or cause
            return RemoteUnreachable(
                self.remote, cause, *rest, timed_out=timed_out, maybe_done=begun
            )
        return GitError(*rest)


# --------------------------------------------------------------------------- the way there


def _alias(repo: Repository, remote: str) -> str:
    """Returns a name for a remote that nobody uses."""
    name = _ALIAS + remote
    while any(key.startswith(f"remote.{name}.") for key in repo.config.names()):
        name = _ALIAS + name
    return name


class _Ended(BaseException):
    """Somebody has asked this process to end."""


class _Ending:
    """While git speaks with a remote, being asked to end ends git first.

    git runs in a session of its own, where nobody else would tell it; it could wait for hours.
    """

    def __enter__(self) -> None:
        # The module brings `enum`, which only those who wait for a remote pay for.
        import signal
        import threading

        self._before: Any = None
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._before = signal.signal(signal.SIGTERM, _end)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._before is None:
            return
        import signal

        signal.signal(signal.SIGTERM, self._before)
        if isinstance(error, _Ended):
            os.kill(os.getpid(), signal.SIGTERM)


class _Waiting:
    """While git speaks with a remote that takes its time, whoever waits is told so, once."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def __enter__(self) -> None:
        from threading import Timer

        self._timer = None
        if self._line.repo.on_wait is not None:
            self._timer = Timer(max(_SILENT - self._line.spent, 0), self._tell)
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self) -> None:
        repo = self._line.repo
        tell, repo.on_wait = repo.on_wait, None
        if tell is not None:
            tell(self._line.remote)


def _end(_number: int, _frame: object) -> None:
    raise _Ended


def _environment(repo: Repository, remote: str, called: str) -> dict[str, str]:
    """Returns what keeps the user's settings from changing what is asked, and git from asking."""
    copied = []
    if called != remote:
        for key in repo.config.names():
            name, _, what = key.removeprefix("remote.").rpartition(".")
            if key.startswith("remote.") and name == remote and what not in _NOT_FOR_A_PUSH:
                copied += [(f"remote.{called}.{what}", v) for v in repo.config.get_all(key)]
    settings = (
        *copied,
        (f"remote.{called}.followRemoteHEAD", "never"),
        ("fetch.writeCommitGraph", "false"),
        # An empty value forgets those before it: an option that the remote does not know fails.
        ("push.pushOption", ""),
        ("push.negotiate", "false"),
        ("credential.interactive", "false"),
        ("color.remote", "false"),
    )
    given = repo.environment.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isdecimal() else 0
    env = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for at, (key, value) in enumerate(settings, first):
        env[f"GIT_CONFIG_KEY_{at}"] = key
        env[f"GIT_CONFIG_VALUE_{at}"] = value
    own = any(repo.environment.get(name) for name in ("GIT_SSH_COMMAND", "GIT_SSH"))
    if not own and not repo.config.get("core.sshCommand"):
        # Without a terminal ssh cannot ask; this lets it fail at once instead of trying.
        env["GIT_SSH_COMMAND"] = "ssh -oBatchMode=yes"
    return env


def _place(repo: Repository, remote: str) -> tuple[str, ...]:
    """Returns how git gets to the folder that a relative address is meant from."""
    config = repo.config
    known = config.get_all(f"remote.{remote}.url") + config.get_all(f"remote.{remote}.pushurl")
    if not any(_is_relative(one) for one in known):
        return ()
    top = repo.common_dir
    if os.path.basename(top) == ".git":
        top = os.path.dirname(top)
    elif worktree := config.get("core.worktree"):
        top = os.path.join(top, worktree)
    return ("-C", top)


def _is_relative(address: str) -> bool:
    # `host:path` is an address of ssh, unless a slash comes before the colon.
    return bool(address) and not address.startswith("/") and ":" not in address.partition("/")[0]


# ----------------------------------------------------------------------------------- fetch


def _listed(line: _Line, patterns: Sequence[str]) -> dict[str, str]:
    # The server then leaves out what cannot be meant, whatever else it has.
    branches = bool(patterns) and all(one.startswith("refs/heads/") for one in patterns)
    only = ("--heads",) if branches else ()
    done = line.run("ls-remote", "--refs", *only, "--", line.remote, *patterns)
    if done.status:
        raise line.failure("ls-remote", done)
    rows = (row.partition("\t") for row in os.fsdecode(done.stdout).split("\n") if row)
    # git also lists refs that only end as a pattern does.
    return {
        name: oid
        for oid, _, name in rows
        if not patterns or any(_means(pattern, name) for pattern in patterns)
    }


def _means(pattern: str, name: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return name == pattern
    long_enough = len(name) >= len(before) + len(after)
    return long_enough and name.startswith(before) and name.endswith(after)


def _fetch(
    line: _Line, options: Sequence[str], wanted: dict[str, str], globs: Mapping[str, str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Fetches what is there; returns that, and the names that are not."""
    missing: set[str] = set()
    pauses = iter(_PAUSES)
    while wanted or globs:
        pairs = [*wanted.items(), *globs.items()]
        refspecs = [f"+{source}:{target}" for source, target in pairs]
        done = line.run(*_FETCH, *options, "--", line.remote, *refspecs)
        if not done.status:
            break
        words = os.fsdecode(done.stderr)
        absent = _absent(words)
        if absent in wanted:
            # git names one and fetches nothing; we ask once for all the others.
            there = _listed(line, tuple(wanted)) if len(wanted) > 1 else {}
            gone = {name for name in wanted if name not in there or name == absent}
            missing |= gone
            wanted = {name: target for name, target in wanted.items() if name not in gone}
        elif not _is_local_race(words) or not line.pause(next(pauses, float("inf"))):
            raise line.failure("fetch", done)
    return wanted, frozenset(missing)


def _absent(stderr: str) -> str | None:
    for row in stderr.splitlines():
        _, found, name = row.partition("couldn't find remote ref ")
        if found:
            return name
    return None


def _is_local_race(stderr: str) -> bool:
    """Returns whether another process moved the same ref, or adds a worktree, at this moment."""
    if _is_half_made(stderr):
        return True
    return "cannot lock ref" in stderr and ("but expected" in stderr or "File exists" in stderr)


def _is_half_made(stderr: str) -> bool:
    """Returns whether git, which looks at each worktree, has met one in the making."""
    # The HEAD of a new worktree names no commit yet when it appears; other files are still empty.
    return "bad object worktrees/" in stderr or (
        "failed to read " in stderr and "/worktrees/" in stderr
    )


def _targets(
    repo: Repository, wanted: Mapping[str, str], globs: Mapping[str, str]
) -> dict[str, str]:
    """Returns our refs, and their ids, that were fetched."""
    targets = (*wanted.values(), *globs.values())
    found = repo.ref_ids([one.partition("*")[0].rpartition("/")[0] for one in targets])
    return {
        name: oid for name, oid in found.items() if any(_means(target, name) for target in targets)
    }


def _shallow(repo: Repository) -> frozenset[str]:
    """Returns the commits at which the history of a shallow clone was cut off."""
    try:
        with open(os.path.join(repo.common_dir, "shallow"), encoding="ascii") as file:
            return frozenset(file.read().split())
    except FileNotFoundError:
        return frozenset()


def _deepen(line: _Line, wanted: Mapping[str, str], globs: Mapping[str, str]) -> None:
    """Completes the history of what was fetched, and of nothing else."""
    repo = line.repo
    sources = [*wanted.items()]
    if globs:
        there = _listed(line, tuple(globs))
        for source, target in globs.items():
            sources += [
                (name, _substitute(source, target, name)) for name in there if _means(source, name)
            ]
    cut = {source: target for source, target in sources if is_cut(repo, target)}
    if not cut:
        return
    _fetch(line, ("--no-filter", _DEEP), cut, {})
    short = [source for source, target in cut.items() if is_cut(repo, target)]
    if short:
        words = f"The remote {line.remote} has only the end of the history of {', '.join(short)}."
        raise GitError(("fetch",), 1, words)


def _substitute(source: str, target: str, name: str) -> str:
    before, _, after = source.partition("*")
    return target.replace("*", name[len(before) : len(name) - len(after)])


def _is_partial(repo: Repository) -> bool:
    config = repo.config
    return any(
        key.startswith("remote.")
        and (key.endswith(".partialclonefilter") or _is_promisor(repo, key))
        for key in config.names()
    )


def _is_promisor(repo: Repository, key: str) -> bool:
    return key.endswith(".promisor") and repo.config.get_bool(key, default=False)


def _bring_contents(line: _Line, wanted: Mapping[str, str], globs: Mapping[str, str]) -> None:
    """Fetches all objects of what is new on the remote, before any of our refs says that we do.

    Commits that are here already, because the user fetched them, may lack their contents.
    """
    there = _listed(line, (*wanted, *globs))
    before = _targets(line.repo, wanted, globs)
    tips = {
        oid
        for name, oid in there.items()
        for source, target in (*wanted.items(), *globs.items())
        if _means(source, name) and before.get(_substitute(source, target, name)) != oid
    }
    if tips:
        _by_id(line, tips, ())
        # What the refs of a shallow clone say may end earlier than it did before.
        known = () if _shallow(line.repo) else before.values()
        _bring_missing(line, tips, known)


def _bring_missing(line: _Line, tips: Iterable[str], known: Iterable[str]) -> None:
    """Fetches in one go what these commits name and this partial clone has not got."""
    asked = "".join(f"{oid}\n" for oid in tips) + "".join(f"^{oid}\n" for oid in known)
    command = ("rev-list", "--objects", "--missing=print", "--stdin")
    told = line.repo.text(*command, stdin=os.fsencode(asked))
    missing = [row[1:] for row in told.split("\n") if row.startswith("?")]
    if missing:
        # What is here tells nothing about what is not.
        _by_id(line, missing, (("fetch.negotiationAlgorithm", "noop"),))


def _by_id(line: _Line, oids: Iterable[str], settings: Sequence[tuple[str, str]]) -> None:
    options = [word for key, value in settings for word in ("-c", f"{key}={value}")]
    stdin = os.fsencode("".join(f"{oid}\n" for oid in oids))
    done = line.run(*options, *_FETCH, "--no-filter", "--stdin", "--", line.remote, stdin=stdin)
    if done.status:
        raise line.failure("fetch", done)


# ------------------------------------------------------------------------------------ push


def _check(repo: Repository, update: Update) -> None:
    if not update.name.startswith("refs/") or "*" in update.name or ":" in update.name:
        raise ValueError(f"{update.name!r} is not the full name of a ref.")
    if update.new is None and (update.old is None or update.plain):
        raise ValueError(f"{update.name} would be deleted without an expected value.")
    for oid in (update.new, update.old):
        if oid is not None and len(oid) != repo.oid_length:
            raise ValueError(f"{oid!r} is not the id of an object.")


class _Refusal(NamedTuple):
    """One line of git about a ref that did not move, and who says so."""

    name: str
    who: str
    reason: str


def _why_not(line: _Line, updates: Sequence[Update], done: Completed) -> GitError:
    """Returns why a push failed: told per ref where git got so far, else by its words."""
    refusals = _refusals(os.fsdecode(done.stdout))
    stderr = os.fsdecode(done.stderr)
    asked = [update.name for update in updates]
    if not refusals:
        return line.failure("push", done, asked)
    rest = (("push",), done.status, stderr)
    if any(row.startswith(_LOCAL_FAULTS) for row in _rows(stderr)):
        return GitError(*rest)
    plain = {update.name for update in updates if update.plain}
    kinds = [(one, _kind(one, plain, stderr)) for one in refusals]
    refused = [one for one, kind in kinds if kind == "refused"]
    if refused:
        reasons = "\n".join(dict.fromkeys(_clean(one.reason) for one in refused))
        words = _told(stderr) or _line_with(("remote unpack failed",), stderr) or reasons
        return RemoteRefused(line.remote, _unique(one.name for one in refused), words, *rest)
    if any(kind == "lost" for _, kind in kinds):
        cause = _line_with(_WORDS_OF_LOSS, stderr) or "it did not say what became of the push"
        return RemoteUnreachable(line.remote, cause, *rest, maybe_done=True)
    raced = [one.name for one, kind in kinds if kind == "raced"]
    return RemoteRaced(line.remote, _unique(raced or asked), _told(stderr), *rest)


def _refusals(porcelain: str) -> list[_Refusal]:
    found = []
    for row in porcelain.split("\n"):
        flag, _, rest = row.partition("\t")
        if flag == "!":
            pair, _, summary = rest.partition("\t")
            who, _, reason = summary.partition("] (")
            name = pair.rpartition(":")[2]
            found.append(_Refusal(name, who.lstrip("["), reason.removesuffix(")")))
    return found


def _kind(one: _Refusal, plain: set[str], stderr: str) -> str:
    """Returns "raced", "refused", "lost", or "fell" for a ref that only fell with others."""
    if one.reason in _FELL_WITH_OTHERS:
        return "fell"
    if one.who == "rejected":
        return "raced" if one.reason in _LOCAL_RACES else "refused"
    if one.who == "remote failure":
        return "lost"
    if one.reason in _REMOTE_RACES:
        return "raced"
    if one.reason == "non-fast-forward":
        # git compared before it sent anything: what the server says now is a rule of its own.
        return "raced" if one.name in plain else "refused"
    if one.reason in _UNCLEAR:
        return _kind_by_words(one, stderr)
    return "refused"


def _kind_by_words(one: _Refusal, stderr: str) -> str:
    about = [row for row in _rows(stderr) if "cannot lock ref '" in row or "unable to" in row]
    mine = [row for row in about if f"'{one.name}'" in row]
    if one.reason == "atomic transaction failed" and about and not mine:
        return "fell"
    blocked = any(_line_with(_STANDS_IN_THE_WAY, row) for row in mine or about)
    return "refused" if blocked else "raced"


def _is_locked(error: GitError) -> bool:
    return isinstance(error, RemoteRefused) and ".lock': File exists" in error.words


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


# ----------------------------------------------------------------------------------- words


def _rows(stderr: str) -> list[str]:
    return [row.strip() for row in stderr.replace("\r", "\n").split("\n") if row.strip()]


def _line_with(phrases: Sequence[str], stderr: str) -> str:
    """Returns the first line of git's words with one of these phrases in it, cleaned."""
    for row in _rows(stderr):
        lower = row.lower()
        if any(phrase in lower for phrase in phrases):
            return _clean(row)
    return ""


def _before_silence(stderr: str) -> str:
    """Returns what was said last before git found nobody to read from."""
    last = ""
    for row in _rows(stderr):
        if "Could not read from remote repository" in row:
            return _clean(last)
        last = row
    return ""


def _told(stderr: str) -> str:
    """Returns what the server itself said, cleaned; not how far it had come meanwhile."""
    rows = [row.removeprefix("remote:") for row in _rows(stderr) if row.startswith("remote:")]
    cleaned = [row for row in map(_clean, rows) if row and "% (" not in row]
    # What git adds says less than what the hook said.
    own = [row for row in cleaned if not row.startswith("hook declined to update ")]
    return "\n".join((own or cleaned)[:_KEPT_LINES])


def _told_by_hook(stderr: str) -> str:
    """Returns what a hook said that stopped everything: over a file path git does not mark it."""
    rows = [_clean(row) for row in _rows(stderr)]
    end = next(at for at, row in enumerate(rows) if "aborted by hook" in row)
    return "\n".join(rows[:end][:_KEPT_LINES] or rows[end : end + 1])


def _clean(text: str) -> str:
    """Returns one line without git's prefix, without passwords, and without what no eye sees."""
    shown = "".join(char for char in text if char.isprintable()).strip()
    for prefix in ("remote: ", "fatal: ", "error: ", "ERROR: "):
        shown = shown.removeprefix(prefix)
    if "://" in shown:
        import re

        shown = re.sub(r"://[^\s/@']+@", "://", shown)
    return shown[:_KEPT_CHARACTERS]
