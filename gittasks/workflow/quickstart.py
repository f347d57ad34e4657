"""The guided story: real commands, one after the other, in a repository made for it."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from gittasks.plumbing import repository
from gittasks.plumbing.process import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SECONDS = 120.0
_CHECK = "sh hello.sh | grep -q hello"


class Scene(NamedTuple):
    """One command of the story: why it is run, its words; `enter` goes to the folder it prints."""

    why: str
    words: tuple[str, ...]
    enter: bool = False


class Played(NamedTuple):
    """What a scene left behind: the line to type, what it printed, its exit status."""

    why: str
    line: str
    out: str
    err: str
    status: int


STORY: tuple[Scene | str, ...] = (
    Scene("A small project, as you have one.", ("git", "init", "-q", "-b", "main")),
    "echo 'echo hi' > hello.sh",
    Scene("", ("git", "add", "hello.sh")),
    Scene("", ("git", "commit", "-q", "-m", "Say hi")),
    Scene(
        "Tasks live on a branch of their own; your files are not touched.",
        ("git", "tasks", "init"),
    ),
    Scene(
        "Two tasks. Each names what has to pass; the second waits for the first.",
        ("git", "tasks", "new", "Say hello", "--check", _CHECK, "-m", "Greet whoever runs it."),
    ),
    Scene(
        "",
        ("git", "tasks", "new", "Say it to everybody", "--dep", "1", "--enter", "work"),
    ),
    Scene(
        "You are the manager: submitting a new task hands it to the team.",
        ("git", "tasks", "submit", "1", "--enter", "work"),
    ),
    Scene("", ("git", "tasks", "list")),
    Scene(
        "Sam, a worker, takes it and gets a directory and a branch for it alone.",
        ("git", "tasks", "start", "1", "--as", "sam"),
        enter=True,
    ),
    "echo 'echo hello' > hello.sh",
    Scene("", ("git", "commit", "-q", "-a", "-m", "Say hello")),
    Scene(
        "Submitting ends the stage; the check runs on exactly this commit.",
        ("git", "tasks", "submit", "--as", "sam", "-m", "hello.sh says hello now."),
    ),
    Scene(
        "Rita reviews it: she sees the change, and accepts or sends findings back.",
        ("git", "tasks", "claim", "1", "--as", "rita"),
    ),
    Scene("", ("git", "tasks", "diff", "1", "--stat")),
    Scene("", ("git", "tasks", "submit", "1", "--as", "rita")),
    "cd -",
    Scene("What waits for you stands in the inbox.", ("git", "tasks", "inbox")),
    Scene(
        "Your last submit checks the merged result, then moves the base and closes the task.",
        ("git", "tasks", "submit", "1"),
    ),
    Scene("The work is on main.", ("git", "log", "--oneline", "--graph")),
    Scene("The second task is free.", ("git", "tasks", "ready")),
    Scene(
        "Every step is a commit of the ledger.",
        ("git", "log", "--format=%h %s", "--reverse", "gittasks", "--"),
    ),
)
"""The scenes in their order; a text alone is a line of shell that needs no git."""


@contextmanager
def stage(*, keep: bool) -> Iterator[str]:
    """Gives an empty folder for the story, and removes it afterwards unless it is to be kept."""
    import shutil
    import tempfile

    folder = os.path.realpath(tempfile.mkdtemp(prefix="gittasks-quickstart-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def play(folder: str, environ: Mapping[str, str] | None = None) -> Iterator[Played]:
    """Plays the story in an empty folder, and ends early where a command fails."""
    project = os.path.join(folder, "project")
    os.mkdir(project)
    env = _environment(folder, os.environ if environ is None else environ)
    here = project
    for scene in STORY:
        if isinstance(scene, str):
            if scene == "cd -":
                here = project
                yield Played("", "cd -", "", "", 0)
                continue
            played = _run(scene, "", ["/bin/sh", "-c", scene], here, env)
        else:
            line = " ".join(map(_quoted, scene.words))
            if scene.enter:
                line = f'cd "$({line})"'
            played = _run(line, scene.why, _argv(scene.words), here, env)
        yield played
        if played.status:
            return
        if isinstance(scene, Scene) and scene.enter:
            here = played.out.strip()


def _run(line: str, why: str, argv: list[str], here: str, env: Mapping[str, str]) -> Played:
    # The processes are started from where we stand; a shell takes them to the story's folder.
    moved = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', here, *argv]
    done = run(moved, env=env, timeout=_SECONDS)
    out, err = (part.decode("utf-8", "replace") for part in (done.stdout, done.stderr))
    return Played(why, line, out, err, done.status)


def _argv(words: tuple[str, ...]) -> list[str]:
    if words[:2] == ("git", "tasks"):
        return [sys.executable, "-P", "-m", "gittasks", *words[2:]]
    return [repository.GIT, *words[1:]]


def _quoted(word: str) -> str:
    plain = word.replace("-", "a").replace("_", "a").replace(".", "a").replace("=", "a")
    return word if plain.isalnum() else "'" + word.replace("'", "'\\''") + "'"


def _environment(folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns an environment in which neither the user's settings nor an agent's speak."""
    import gittasks

    forgotten = ("GIT_", "GITTASKS_")
    kept = {name: value for name, value in environ.items() if not name.startswith(forgotten)}
    package = os.path.dirname(os.path.dirname(os.path.abspath(gittasks.__file__)))
    paths = [package, *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(paths),
        "PWD": folder,
        "NO_COLOR": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        # As a setting, so that it is also the name by which the commands know the speaker.
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "you",
        "GIT_CONFIG_KEY_1": "user.email",
        "GIT_CONFIG_VALUE_1": "you@example.invalid",
    }
