"""Finds the repository, and runs git in it: always in full, always cleaned, always bounded.

Every call starts from the caller's environment without what git hands to its hooks and external
commands, names the repository explicitly, asks nobody anything, runs no hook and no replace
object, and is killed when its time is over. Hooks that git 2.54 and later read from the
configuration (`hook.<name>.command`) stand beside `core.hooksPath` and cannot be switched off
without knowing their names.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gittasks.plumbing.errors import BadSetting, GitError, NotARepository
from gittasks.plumbing.process import Completed, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gittasks.plumbing.process import Child

GIT: str
"""The absolute path of git, looked for when it is first needed."""

DEFAULT_TIMEOUT = 120.0

# What `git rev-parse --local-env-vars` lists in any version, the variables a push sets for the
# objects it keeps apart, and what changes the meaning of arguments. Settings given with `-c`
# (GIT_CONFIG_PARAMETERS, GIT_CONFIG_COUNT) are the caller's wish and stay.
_FORGOTTEN = frozenset(
    [
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CONFIG",
        "GIT_OBJECT_DIRECTORY",
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_GRAFT_FILE",
        "GIT_INDEX_FILE",
        "GIT_INDEX_VERSION",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_REPLACE_REF_BASE",
        "GIT_PREFIX",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_INTERNAL_TOPLEVEL",
        "GIT_SHALLOW_FILE",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_QUARANTINE_PATH",
        "GIT_CEILING_DIRECTORIES",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_LITERAL_PATHSPECS",
        "GIT_GLOB_PATHSPECS",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_ICASE_PATHSPECS",
        "GIT_REF_PARANOIA",
        "GIT_REFLOG_ACTION",
        "GIT_DEFAULT_HASH",
        "GIT_DEFAULT_REF_FORMAT",
        "GIT_REF_FORMAT",
        "GIT_ATTR_SOURCE",
        "GIT_EXTERNAL_DIFF",
        "GIT_DIFF_OPTS",
        "GIT_PAGER_IN_USE",
        "LANGUAGE",
    ]
)

_SET = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_PAGER": "cat",
}

# What only finding the repository needs: where git or the caller said that it is.
_DISCOVERY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)

# Where a push keeps its objects while hooks look at them; git moves no ref from there.
_QUARANTINE = (
    "GIT_QUARANTINE_PATH",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
)

_OVERRIDES = tuple(
    word
    for setting in (
        "core.hooksPath=/dev/null",
        "core.quotePath=false",
        "core.fsmonitor=false",
        "core.useReplaceRefs=false",
        "color.ui=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "commit.gpgSign=false",
        "i18n.commitEncoding=UTF-8",
        "i18n.logOutputEncoding=UTF-8",
        "log.showSignature=false",
        "advice.detachedHead=false",
        "submodule.recurse=false",
    )
    for word in ("-c", setting)
)

# An unknown flag is echoed: it tells where a path, which may hold line ends, is over.
_QUESTIONS = (
    *("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir"),
    *("--gittasks-bare", "--is-bare-repository", "--show-object-format", "--show-prefix"),
    *("--gittasks-top", "--show-cdup", "--gittasks-refs"),
)


def __getattr__(name: str) -> str:
    if name == "GIT":
        found = find_git(os.environ.get("PATH", os.defpath))
        globals()["GIT"] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def find_git(path: str) -> str:
    """Returns the absolute path of the first git on a search path."""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, "git")
        # A relative folder would mean another program in every directory.
        if os.path.isabs(candidate) and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    raise GitError(("git",), 127, "git is not on the search path")


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment every git call gets."""
    kept = {name: value for name, value in environ.items() if name not in _FORGOTTEN}
    kept.update(_SET)
    return kept


def unattended_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a program that is not git and that nobody watches.

    No repository but that of its folder, nobody to ask, and the user's own language.
    """
    env = clean_environment(environ)
    # These serve our own reading of git's answers.
    for name in ("LC_ALL", "LANGUAGE"):
        env.pop(name, None)
        if name in environ:
            env[name] = environ[name]
    for name in ("GIT_OPTIONAL_LOCKS", "GIT_NO_REPLACE_OBJECTS"):
        env.pop(name, None)
    env.update(EDITOR="true", VISUAL="true", PAGER="cat")
    return env


class Config:
    """The settings of a repository, with the names as git compares them."""

    __slots__ = ("_values",)

    def __init__(self, listing: bytes) -> None:
        self._values: dict[str, list[str | None]] = {}
        for item in listing.split(b"\0"):
            if item:
                name, line_end, value = item.partition(b"\n")
                key = os.fsdecode(name)
                self._values.setdefault(key, []).append(os.fsdecode(value) if line_end else None)

    def get(self, key: str, default: str | None = None) -> str | None:
        """Returns the last value; a setting without a value is the empty string."""
        values = self._values.get(_config_key(key))
        return default if not values else values[-1] or ""

    def get_all(self, key: str) -> tuple[str, ...]:
        """Returns every value, the strongest last."""
        return tuple(value or "" for value in self._values.get(_config_key(key), ()))

    def names(self) -> tuple[str, ...]:
        """Returns every name that is set, in the order of the files."""
        return tuple(self._values)

    def get_bool(self, key: str, default: bool) -> bool:
        """Returns a yes or no in any of the words git knows."""
        values = self._values.get(_config_key(key))
        if not values:
            return default
        value = values[-1]
        if value is None or value.lower() in ("true", "yes", "on"):
            return True
        if value.lower() in ("false", "no", "off", ""):
            return False
        return self._number(key, value, _integer, "a yes or no") != 0

    def get_int(self, key: str, default: int) -> int:
        """Returns a whole number, which may end in k, m or g."""
        value = self.get(key)
        return default if value is None else int(self._number(key, value, _integer, "a number"))

    def get_seconds(self, key: str, default: float) -> float:
        """Returns a duration such as 90, 30s, 5m, 2h or 1d in seconds."""
        value = self.get(key)
        if value is None:
            return default
        return self._number(key, value, _seconds, "a duration such as 30s, 5m or 2h")

    @staticmethod
    def _number(key: str, value: str, parse: Callable[[str], float], wanted: str) -> float:
        try:
            return parse(value)
        except ValueError:
            raise BadSetting(f"The setting {key} is {value!r}, which is not {wanted}.") from None


def _config_key(key: str) -> str:
    section, dot, rest = key.partition(".")
    middle, second, name = rest.rpartition(".")
    return f"{section.lower()}{dot}{middle}{second}{name.lower()}"


def _integer(text: str) -> int:
    unit = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(text[-1:].lower(), 0)
    return int(text[:-1]) * unit if unit else int(text)


def _seconds(text: str) -> float:
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:].lower(), 0)
    seconds = float(text[:-1]) * unit if unit else float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


class Repository:
    """One repository, seen from the folder we stand in."""

    __slots__ = (
        "_config", "_environ", "_environment", "_timeout", "_trace", "_version", "bare", "calls",
        "common_dir", "git_dir", "object_format", "on_wait", "prefix", "resolved", "worktree",
    )  # fmt: skip

    def __init__(
        self,
        *,
        git_dir: str,
        common_dir: str,
        worktree: str | None,
        bare: bool,
        object_format: str = "sha1",
        prefix: str = "",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.worktree = worktree
        self.bare = bare
        self.object_format = object_format
        self.prefix = prefix
        self.resolved: dict[str, str | None] = {}
        self.calls = 0
        self.on_wait: Callable[[str], None] | None = None
        """Who is told, once, the name of a remote that lets us wait."""
        self._environ = environ
        self._environment = clean_environment(environ)
        self._timeout = DEFAULT_TIMEOUT
        self._trace = environ.get("GITTASKS_TRACE", "") not in ("", "0")
        self._config: Config | None = None

    @classmethod
    def open(
        cls,
        path: str | None = None,
        environ: Mapping[str, str] = os.environ,
        resolve: Sequence[str] = (),
    ) -> Repository:
        """Finds the repository of a folder with one git process, and the ids of some refs with it.

        `resolved` then holds each of these full names, with None where there is no such ref.
        """
        for name in resolve:
            if not name.startswith("refs/"):
                raise ValueError(f"{name!r} is not the full name of a ref.")
        env = clean_environment(environ)
        env.update({name: environ[name] for name in _DISCOVERY if name in environ})
        where = ("-C", path) if path else ()
        # A name that is missing would be looked for as refs/heads/refs/heads/…; asking for the
        # full names too tells what was found.
        asked = (*_QUESTIONS, *resolve, "--symbolic-full-name", *resolve)
        started = time.monotonic()
        done = run([_git(), *where, *_OVERRIDES, *asked], env=env, timeout=DEFAULT_TIMEOUT)
        answers = os.fsdecode(done.stdout)
        places, found, rest = answers.partition("\n--gittasks-bare\n")
        if not found:
            raise _not_a_repository(path, asked, done)
        facts, _, rest = rest.partition("\n--gittasks-top\n")
        top, _, ids = ("\n" + rest).partition("\n--gittasks-refs\n")
        git_dir, common_dir = _two_paths(places)
        bare, object_format, prefix = facts.split("\n", 2)
        repo = cls(
            git_dir=git_dir,
            common_dir=common_dir,
            worktree=None,
            bare=bare == "true",
            object_format=object_format,
            prefix=prefix,
            environ=environ,
        )
        repo.calls = 1
        repo._note(started, asked)
        # Nothing is said where there is no work tree; an empty line says "here".
        if top:
            repo.worktree = os.path.realpath(os.path.join(path or ".", top[1:] or "."))
        repo._set_prefix(environ)
        if resolve:
            repo._set_resolved(resolve, ids)
        return repo

    @property
    def oid_length(self) -> int:
        """Returns how many hexadecimal digits an object id has here."""
        return 64 if self.object_format == "sha256" else 40

    @property
    def null_oid(self) -> str:
        """Returns the id that stands for "no object"."""
        return "0" * self.oid_length

    @property
    def config(self) -> Config:
        """Returns the settings, read once, the user's own `-c` included."""
        if self._config is None:
            done = self._run(("config", "-z", "--list"), self._base_dir(), (), b"", None, None)
            if done.status:
                raise _error(("config", "-z", "--list"), done)
            self._config = Config(done.stdout)
            self._timeout = self._config.get_seconds("gittasks.gitTimeout", DEFAULT_TIMEOUT)
        return self._config

    @property
    def environment(self) -> Mapping[str, str]:
        """Returns what every git call here finds in its environment."""
        return self._environment

    @property
    def timeout(self) -> float:
        """Returns how many seconds a git call may take, as `gittasks.gitTimeout` has it."""
        self.config  # noqa: B018 - reading it sets the time
        return self._timeout

    def see_quarantine(self, environ: Mapping[str, str]) -> None:
        """Lets git see the objects that a push keeps apart until the hooks have agreed to them."""
        if "GIT_QUARANTINE_PATH" in environ:
            self._environment.update({n: environ[n] for n in _QUARANTINE if n in environ})

    def ref_ids(self, patterns: Sequence[str]) -> dict[str, str]:
        """Returns the id of every ref that a pattern names, or stands above, by full name."""
        text = self.text("for-each-ref", "--format=%(objectname) %(refname)", *patterns)
        pairs = (line.partition(" ") for line in text.split("\n") if line)
        return {name: oid for oid, _, name in pairs}

    def forget_config(self) -> None:
        """Makes the next look at the settings read them again."""
        self._config = None

    def git(
        self,
        *args: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        check: bool = True,
        at: str | None = None,
    ) -> Completed:
        """Runs git on this repository, or in the worktree `at`."""
        where = self._base_dir() if at is None else _worktree_dir(at, args)
        done = self._run(args, where, _OVERRIDES, stdin, self._with(env, at), timeout)
        if check and done.status:
            raise _error(args, done)
        return done

    def text(
        self,
        *args: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        check: bool = True,
        at: str | None = None,
    ) -> str:
        """Returns what git prints, without the last line end."""
        done = self.git(*args, stdin=stdin, env=env, timeout=timeout, check=check, at=at)
        return os.fsdecode(done.stdout).removesuffix("\n")

    def start(self, *args: str) -> Child:
        """Starts a git process that stays, to be spoken to; its caller closes it."""
        from gittasks.plumbing.process import Child

        self.calls += 1
        argv = [_git(), *self._base_dir(), *_OVERRIDES, *args]
        started = time.monotonic()
        child = Child(argv, env=self._environment, timeout=self._timeout)
        self._note(started, ("(started)", *args))
        return child

    def _run(
        self,
        args: Sequence[str],
        where: Sequence[str],
        overrides: Sequence[str],
        stdin: bytes,
        env: Mapping[str, str] | None,
        timeout: float | None,
    ) -> Completed:
        self.calls += 1
        started = time.monotonic()
        try:
            return run(
                [_git(), *where, *overrides, *args],
                stdin=stdin,
                env=self._environment if env is None else env,
                timeout=self._timeout if timeout is None else timeout,
            )
        finally:
            self._note(started, args)

    def _base_dir(self) -> tuple[str, ...]:
        # From the common directory: the folder we stand in, and with it the git directory of its
        # worktree, may be removed by what we do.
        git_dir = self.git_dir
        if git_dir != self.common_dir and not os.path.exists(os.path.join(git_dir, "HEAD")):
            git_dir = self.common_dir
        return ("-C", self.common_dir, f"--git-dir={git_dir}")

    def _with(self, env: Mapping[str, str] | None, at: str | None) -> Mapping[str, str] | None:
        if env is None and at is None:
            return None
        merged = {**self._environment, **(env or {})}
        if at is not None:
            # A worktree that lost its .git must not turn into the repository around it.
            merged.setdefault("GIT_CEILING_DIRECTORIES", os.path.dirname(os.path.realpath(at)))
        return merged

    def _note(self, started: float, args: Sequence[str]) -> None:
        if self._trace:
            spent = (time.monotonic() - started) * 1000
            words = " ".join(args[:6]) + (" …" if len(args) > 6 else "")
            line = f"trace: {spent:7.1f} ms  git {words}\n"
            os.write(2, line.encode("utf-8", "backslashreplace"))

    def _set_prefix(self, environ: Mapping[str, str]) -> None:
        # git runs a shell alias at the top, and says where the user stood.
        stood = environ.get("GIT_PREFIX", "")
        if (
            stood
            and not self.prefix
            and self.worktree is not None
            and not os.path.isabs(stood)
            and os.path.isdir(os.path.join(self.worktree, stood))
        ):
            self.prefix = stood

    def _set_resolved(self, names: Sequence[str], answer: str) -> None:
        lines = answer.splitlines()
        ids = lines[: len(names)]
        if lines[len(names) :] == [*names] and all(len(oid) == self.oid_length for oid in ids):
            self.resolved = dict(zip(names, ids, strict=True))
        else:
            found = self.ref_ids(names)
            self.resolved = {name: found.get(name) for name in names}


def _git() -> str:
    found = globals().get("GIT")
    return found if isinstance(found, str) else __getattr__("GIT")


def _two_paths(text: str) -> tuple[str, str]:
    """Splits git directory and common directory, either of which may hold line ends."""
    lines = text.split("\n")
    if len(lines) == 2:
        return os.path.realpath(lines[0]), os.path.realpath(lines[1])
    for at in range(1, len(lines)):
        first, second = "\n".join(lines[:at]), "\n".join(lines[at:])
        if os.path.isdir(first) and os.path.isdir(second):
            return os.path.realpath(first), os.path.realpath(second)
    raise NotARepository(("rev-parse",), 128, f"the folders {text!r} do not exist")


def _worktree_dir(at: str, args: Sequence[str]) -> tuple[str, ...]:
    if not os.path.lexists(os.path.join(at, ".git")) and not os.path.exists(
        os.path.join(at, "HEAD")
    ):
        raise NotARepository(args, 128, f"{at} is not a worktree")
    return ("-C", at)


def _not_a_repository(path: str | None, args: Sequence[str], done: Completed) -> GitError:
    error = os.fsdecode(done.stderr)
    where = os.path.abspath(path) if path else "this folder"
    if "dubious ownership" in error:
        line = next(line for line in error.splitlines() if "dubious ownership" in line)
        words = f"{line}; it belongs to another user, and git uses it only when it is named in safe.directory"
    elif "not a git repository (or any" in error:
        words = f"{where} is not in a git repository"
    else:
        words = error or f"git tells nothing about {where}"
    return NotARepository(args, done.status, words)


def _error(args: Sequence[str], done: Completed) -> GitError:
    return GitError(args, done.status, os.fsdecode(done.stderr))
