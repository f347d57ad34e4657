"""Puts walls around an agent, as high as this host allows: what works is found by trying.

    bubblewrap   all is read-only but the task's folder, the outbox and what the pool file lets it
                 write; processes, temporary files and devices of its own; the network stays
    limits       memory and processes are bounded; nothing is hidden or write-protected
    bare         nothing; only a look at refs and settings afterwards tells what was done

A wall is an argument list in front of another one. `bwrap` stays in the process group of what it
starts, so that a signal to the group reaches all of it, and SIGKILL leaves nothing: with the first
process of a PID namespace all others of it end.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from gittasks.domain.errors import Refused
from gittasks.plumbing import process
from gittasks.plumbing.errors import GitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

StepName = Literal["bubblewrap", "limits", "bare"]

Mount = tuple[str, str, str]
"""How something is laid over the file system (as an option of bwrap), where, and what is seen."""

_TMP = "/tmp"
_TRIAL_SECONDS = 15.0

# Enough for builds and tests; against a leak, or a fork that never ends.
_MEMORY = 8 << 30
_PROCESSES = 8192
_TASKS = 512
_OOM_SCORE = 300

_WALLS = (
    "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL",
    "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
)  # fmt: skip

# Whoever can speak with these can start programs outside.
_DOORS = ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock")


class Home(NamedTuple):
    """What of the user's home an agent program writes, and what of that stays as it is.

    A variable that is set names the folder in place of the usual one.
    """

    writable: tuple[tuple[str, str], ...]
    kept: tuple[str, ...] = ()


_CACHE = ("XDG_CACHE_HOME", "~/.cache")

HOMES: dict[str, Home] = {
    "pi": Home(
        (("PI_CODING_AGENT_DIR", "~/.pi"), _CACHE),
        ("agent/extensions", "agent/skills", "agent/prompts", "agent/AGENTS.md"),
    ),
    "claude": Home(
        (("CLAUDE_CONFIG_DIR", "~/.claude"), ("", "~/.claude.json"), _CACHE),
        ("settings.json", "CLAUDE.md", "agents", "commands", "hooks", "plugins", "skills"),
    ),
    "codex": Home(
        (("CODEX_HOME", "~/.codex"), _CACHE),
        ("config.toml", "AGENTS.md", "prompts", "rules", "skills"),
    ),
}
"""By the type of the agent. What is kept are the settings by which it would start programs, also
for the user; it lies below the first folder."""

_ANY_HOME = Home((_CACHE,))


class Step(NamedTuple):
    """How far it went: the name of the step, why it is that one, and the programs that help."""

    name: StepName
    why: str
    tools: tuple[str, ...] = ()
    bwrap: str = ""
    limits: tuple[str, ...] = ()
    """The argument list that bounds memory and processes."""


class Room(NamedTuple):
    """Where an agent works, and what it may change beside that."""

    tree: str
    folder: str
    """The task's folder; without mounts it is only made writable."""
    mounts: tuple[Mount, ...] = ()
    """What is laid over the repository and the folder, in this order."""
    write: tuple[str, ...] = ()
    """Further paths, as the pool file names them."""
    type: str = ""
    """The type of the agent, which decides what of the home it may write."""
    needed: tuple[str, ...] = ()
    """Paths that must be there also where they lie below /tmp."""


def reached(wish: str, environ: Mapping[str, str], room: Room | None = None) -> Step:
    """Returns the highest step that works here; raises Refused where a sandbox is required.

    It is tried with the very mounts of a room: whether the repository cannot be written there,
    and the folder can.
    """
    if wish == "off":
        return Step("bare", "The sandbox is turned off.")
    limits, tools = _limits(environ)
    bwrap = _found("bwrap", environ)
    problem = "bwrap is not installed" if bwrap is None else _problem(bwrap, environ, room)
    if bwrap is not None and problem is None:
        bounded = f"bounded by {' and '.join(tools)}" if tools else "not bounded"
        why = f"bwrap works here; memory and processes are {bounded}."
        return Step("bubblewrap", why, ("bwrap", *tools), bwrap, limits)
    if wish == "require":
        raise Refused(
            f"A sandbox is required, and {problem}.",
            "Install bubblewrap and let users make namespaces, or set `sandbox` to auto.",
        )
    if tools:
        return Step(
            "limits", f"{_capital(problem)}; {' and '.join(tools)} works.", tools, "", limits
        )
    return Step("bare", f"{_capital(problem)}, and nothing here bounds memory or processes.")


def wrap(
    step: Step, room: Room, argv: Sequence[str], environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns an argument list with the walls of a step in front of it.

    What the room lets an agent write is made where it is missing.
    """
    if not argv or step.name == "bare":
        return tuple(argv)
    if step.name == "limits":
        return (*step.limits, *argv)
    return (*step.limits, step.bwrap, *_options(room, argv, environ), "--", *argv)


def is_below_tmp(room: Room, argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Tells whether something that an agent needs lies below /tmp, which then cannot be hidden."""
    tmp = os.path.realpath(_TMP) + os.sep
    needed = [room.tree, room.folder, environ.get("HOME", ""), *room.needed, *_own_places()]
    needed += [place for _how, place, _seen in room.mounts]
    needed += [_program(argv, environ), *(word for word in argv if os.path.isabs(word))]
    return any(os.path.realpath(path).startswith(tmp) for path in needed if path)


def _options(room: Room, argv: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    words = list(_WALLS)
    if is_below_tmp(room, argv, environ):
        tmp = os.path.join(room.folder, "agent", "tmp")
        os.makedirs(tmp, mode=0o700, exist_ok=True)
    else:
        tmp = _TMP
        words += ["--tmpfs", _TMP]
    for hidden in _doors():
        words += hidden
    words += _home_options(room.type, environ)
    for path in room.write:
        words += _opened(_expanded(path, environ), is_made=True)
    if room.mounts:
        for how, place, seen in room.mounts:
            words += (f"--{how}", seen, place) if seen else (f"--{how}", place)
    else:
        words += ["--bind", room.folder, room.folder]
    for name in ("TMPDIR", "TMP", "TEMP"):
        words += ["--setenv", name, tmp]
    return [*words, "--chdir", room.tree]


def _doors() -> list[list[str]]:
    """Returns what hides the sockets of programs that would start others outside."""
    hidden = []
    sessions = f"/run/user/{os.getuid()}"
    if os.path.isdir(sessions):
        hidden.append(["--tmpfs", sessions])
    for path in _DOORS:
        if os.path.exists(path):
            hidden.append(["--ro-bind", os.devnull, os.path.realpath(path)])
    return hidden


def _home_options(kind: str, environ: Mapping[str, str]) -> list[str]:
    if not environ.get("HOME"):
        return []
    home = HOMES.get(kind, _ANY_HOME)
    words: list[str] = []
    for number, (variable, usual) in enumerate(home.writable):
        path = environ.get(variable) or _expanded(usual, environ)
        is_file = usual.endswith(".json")
        words += _opened(path, is_made=not is_file)
        if number == 0:
            kept = (os.path.realpath(os.path.join(path, name)) for name in home.kept)
            words += [word for one in kept if os.path.exists(one) for word in _closed(one)]
    return words


def _opened(path: str, *, is_made: bool) -> list[str]:
    if is_made and not os.path.exists(path):
        os.makedirs(path, mode=0o700, exist_ok=True)
    if not os.path.exists(path):
        return []
    # What a link names is what is opened.
    real = os.path.realpath(path)
    return ["--bind", real, real]


def _closed(path: str) -> list[str]:
    return ["--ro-bind", path, path]


def _expanded(path: str, environ: Mapping[str, str]) -> str:
    if path == "~" or path.startswith("~/"):
        return os.path.join(environ.get("HOME", "/"), path[2:])
    return path


def _own_places() -> tuple[str, ...]:
    """Returns where this very program and its interpreter are."""
    import sys

    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return sys.prefix, sys.base_prefix, sys.executable, here


def _program(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    if not argv or os.path.dirname(argv[0]):
        return argv[0] if argv else ""
    return _found(argv[0], environ) or ""


def _found(name: str, environ: Mapping[str, str]) -> str | None:
    import shutil

    return shutil.which(name, path=environ.get("PATH", os.defpath))


# Trying.


_LOOK = 'test ! -w "$1" && test -w "$2"'


def _problem(bwrap: str, environ: Mapping[str, str], room: Room | None) -> str | None:
    """Returns why bwrap cannot be used, None where it can."""
    tried = room or Room(os.sep, "")
    if room is None:
        argv: Sequence[str] = (bwrap, *_WALLS, "--", "/bin/sh", "-c", "true")
    else:
        # Of a mount that hides something, what is below it cannot be asked.
        kept = next((place for how, place, _ in room.mounts if how == "ro-bind"), "/proc/sys")
        look = ("/bin/sh", "-c", _LOOK, "look", kept, room.folder)
        argv = wrap(Step("bubblewrap", "", (), bwrap), tried, look, environ)
    return _failure("bwrap", argv, environ)


def _failure(name: str, argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    try:
        done = process.run(argv, env=environ, timeout=_TRIAL_SECONDS)
    except GitError as error:
        return f"{name} does not work here ({_last_line(str(error))})"
    if done.status == 0:
        return None
    words = _last_line(os.fsdecode(done.stderr)) or f"exit code {done.status}"
    return f"{name} does not work here ({words})"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return "".join(c for c in lines[-1] if c.isprintable())[:200] if lines else ""


def _limits(environ: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the argument list that bounds memory and processes, and the programs in it."""
    scope = _scope(environ)
    if scope and _works(scope, environ):
        return scope, ("systemd-run",)
    prefix: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    import resource

    memory = _at_most(_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1])
    processes = _at_most(_PROCESSES, resource.getrlimit(resource.RLIMIT_NPROC)[1])
    for name, arguments in (
        ("prlimit", (f"--data={memory}", f"--nproc={processes}", "--core=0")),
        ("choom", ("-n", str(_OOM_SCORE), "--")),
    ):
        program = _found(name, environ)
        longer = (program, *arguments, *prefix) if program else ()
        if longer and _works(longer, environ):
            prefix, tools = longer, (*tools, name)
    # The score alone bounds nothing.
    return (prefix, tools) if "prlimit" in tools else ((), ())


def _scope(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the argument list for a scope of the user's systemd, where there may be one."""
    program, env = _found("systemd-run", environ), _found("env", environ)
    bus = {
        name: environ[name]
        for name in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
        if environ.get(name)
    }
    if program is None or env is None or not bus:
        return ()
    # An agent is not given the way to the bus.
    return (
        env, *(f"{name}={value}" for name, value in bus.items()),
        program, "--user", "--scope", "--quiet", "--collect",
        "-p", f"MemoryMax={_MEMORY}", "-p", "MemorySwapMax=0", "-p", f"TasksMax={_TASKS}",
        "--", env, *(word for name in bus for word in ("-u", name)),
    )  # fmt: skip


def _at_most(wanted: int, allowed: int) -> int:
    return wanted if allowed < 0 else min(wanted, allowed)


def _works(prefix: Sequence[str], environ: Mapping[str, str]) -> bool:
    return _failure(prefix[0], (*prefix, "/bin/sh", "-c", "true"), environ) is None


def _capital(words: str | None) -> str:
    return words[:1].upper() + words[1:] if words else ""
