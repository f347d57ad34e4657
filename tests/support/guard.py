"""Stops a test that reaches for the developer's home or for the repository of this checkout."""

from __future__ import annotations

import os
import pwd
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
REAL_HOME = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)


def _own_repositories() -> tuple[str, ...]:
    """Returns the folders that hold this checkout's history; a linked worktree names two more."""
    entry = CHECKOUT / ".git"
    if not entry.is_file():
        return (str(entry),)
    linked = Path(CHECKOUT, entry.read_text(encoding="utf-8").removeprefix("gitdir:").strip())
    common = linked / (linked / "commondir").read_text(encoding="utf-8").strip()
    return str(entry), str(linked.resolve()), str(common.resolve())


_OWN_REPOSITORIES = _own_repositories()
# A checkout, an environment or a temporary folder below the home is no part of the home.
_ALLOWED = tuple(
    os.path.realpath(path)
    for path in (CHECKOUT, sys.prefix, sys.base_prefix, tempfile.gettempdir(), "/dev", "/proc")
)
_SETTINGS = tuple(
    os.path.join(REAL_HOME, name)
    for name in (".gitconfig", ".config/git", ".config/gittasks", ".local/state", ".local/share")
)
_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod"}
_STARTS = {"subprocess.Popen", "os.posix_spawn", "os.exec"}


class OutsideTheTest(BaseException):
    """Not an Exception, so that no broad handler can swallow it."""


def install() -> None:
    """Watches this process until it ends; an audit hook cannot be taken away."""
    sys.addaudithook(_hook)


def _hook(event: str, args: tuple[object, ...]) -> None:
    if event == "open":
        flags = args[2] if isinstance(args[2], int) else 0
        _refuse_path(args[0], writes=bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)))
    elif event in _CHANGES:
        for path in args[:2]:
            _refuse_path(path, writes=True)
    elif event in _STARTS:
        _refuse_start(event, args)


def _refuse_path(path: object, *, writes: bool) -> None:
    if not isinstance(path, (str, bytes, os.PathLike)):
        return
    full = os.path.abspath(os.fsdecode(path))
    if any(_is_below(full, own) for own in _OWN_REPOSITORIES):
        raise OutsideTheTest(f"A test touched the repository of this checkout: {full}")
    if any(_is_below(full, one) for one in _SETTINGS):
        raise OutsideTheTest(f"A test read the real home: {full}")
    if writes and _is_below(full, REAL_HOME) and not any(_is_below(full, one) for one in _ALLOWED):
        raise OutsideTheTest(f"A test wrote into the real home: {full}")


def _refuse_start(event: str, args: tuple[object, ...]) -> None:
    """Looks at program, arguments and folder; what the child does then is out of sight."""
    argv = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
    words = [os.fsdecode(w) for w in argv if isinstance(w, (str, bytes, os.PathLike))]
    folder = args[2] if event == "subprocess.Popen" and args[2] is not None else os.getcwd()
    stands_in = [os.fsdecode(folder)] if isinstance(folder, (str, bytes, os.PathLike)) else []
    stands_in += [after for word, after in pairwise(words) if word == "-C"]
    speaks_git = "gittasks" in words or os.path.basename(words[0] if words else "") == "git"
    if speaks_git and any(_is_below(os.path.abspath(one), str(CHECKOUT)) for one in stands_in):
        raise OutsideTheTest(f"A test ran git in this checkout: {' '.join(words)}")
    named = [word.partition("=")[2] or word for word in words]
    if any(_is_below(name, own) for name in named for own in _OWN_REPOSITORIES):
        raise OutsideTheTest(f"A test named the repository of this checkout: {' '.join(words)}")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
