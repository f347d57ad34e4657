"""Which walls stand is found by trying, and the walls let through what they should."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gittasks.agents import sandbox
from gittasks.agents.sandbox import Room, Step
from gittasks.domain.errors import Refused

LIMITED = Step("limits", "", ("prlimit",), "", ("/usr/bin/prlimit", "--core=0"))


def programs(folder: Path, **scripts: str) -> dict[str, str]:
    """Returns an environment whose PATH has these programs before the usual ones."""
    folder.mkdir()
    for name, script in scripts.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return {**os.environ, "PATH": str(folder)}


def test_without_bubblewrap_the_limits_that_work_are_taken(tmp_path: Path) -> None:
    env = programs(tmp_path / "bin", prlimit='shift 3; exec "$@"', choom="exit 1")
    step = sandbox.reached("auto", env)
    assert (step.name, step.tools) == ("limits", ("prlimit",))
    assert step.why == "Bwrap is not installed; prlimit works."
    assert sandbox.wrap(step, Room("/", "/"), ("true",), env)[0].endswith("/bin/prlimit")


def test_a_bubblewrap_that_does_not_work_here_is_not_used(tmp_path: Path) -> None:
    env = programs(tmp_path / "bin", bwrap="echo 'bwrap: No permissions' >&2; exit 1")
    step = sandbox.reached("auto", env)
    assert step == Step(
        "bare",
        "Bwrap does not work here (bwrap: No permissions), and nothing here bounds memory or"
        " processes.",
    )
    with pytest.raises(Refused, match=r"A sandbox is required, and bwrap does not work here \("):
        sandbox.reached("require", env)


def test_a_sandbox_that_is_turned_off_is_not_tried(tmp_path: Path) -> None:
    env = programs(tmp_path / "bin", bwrap=f"touch {tmp_path}/tried")
    assert sandbox.reached("off", env).name == "bare"
    assert not (tmp_path / "tried").exists()


def test_below_bubblewrap_an_argument_list_keeps_its_words() -> None:
    room = Room("/", "/")
    assert sandbox.wrap(Step("bare", ""), room, ("a", "b"), {}) == ("a", "b")
    assert sandbox.wrap(LIMITED, room, ("a",), {}) == ("/usr/bin/prlimit", "--core=0", "a")


class Cell:
    """A room of the tests, with real walls around it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder / "task"
        self.tree = self.folder / "tree"
        self.tree.mkdir(parents=True)
        self.env = {**os.environ, "HOME": str(home)}
        self.env.pop("XDG_CACHE_HOME", None)
        self.room = Room(str(self.tree), str(self.folder))
        self.step = sandbox.reached("auto", self.env, self.room)
        if self.step.name != "bubblewrap":
            pytest.skip(self.step.why)

    def argv(self, *argv: str, **changes: object) -> Sequence[str]:
        room = self.room._replace(**changes)  # type: ignore[arg-type]  # the test knows the fields
        return sandbox.wrap(self.step, room, argv, self.env)

    def run(self, script: str, **changes: object) -> subprocess.CompletedProcess[str]:
        argv = self.argv("/bin/sh", "-c", script, **changes)
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, check=False)


@pytest.fixture
def cell(tmp_path: Path, home: Path) -> Cell:
    return Cell(tmp_path, home)


def test_only_the_folder_and_what_the_pool_names_can_be_written(cell: Cell, home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\n")
    done = cell.run(
        'pwd; for f in tree/a b "$HOME"/.gitconfig "$HOME"/.ssh "$HOME"/own/c "$HOME"/.cache/d'
        ' /etc/x; do case $f in /*) ;; *) f=../$f ;; esac; (echo x >"$f") 2>/dev/null && echo "$f"; done',
        write=("~/own",),
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        str(cell.tree), "../tree/a", "../b", f"{home}/own/c", f"{home}/.cache/d",
    ]  # fmt: skip
    assert (home / ".gitconfig").read_text() == "[user]\n"


@pytest.mark.parametrize("kind", ["claude", "codex", "pi"])
def test_a_program_keeps_its_sessions_and_not_its_settings(
    cell: Cell, home: Path, kind: str
) -> None:
    own = sandbox.HOMES[kind]
    folder = home / own.writable[0][1][2:]
    settings = folder / own.kept[0]
    settings.mkdir(parents=True)
    done = cell.run(f"touch {folder}/session; touch {settings}/evil", type=kind)
    assert (folder / "session").exists()
    assert list(settings.iterdir()) == []
    assert "Read-only file system" in done.stderr


def test_nothing_is_left_when_the_group_is_killed(cell: Cell, tmp_path: Path) -> None:
    """Also what has a session of its own goes with the first process of the PID namespace."""
    mark = f"4{os.getpid()}.5"
    argv = cell.argv("/bin/sh", "-c", f"setsid sleep {mark} & sleep {mark} & echo; wait")
    with subprocess.Popen(argv, env=cell.env, stdout=subprocess.PIPE, start_new_session=True) as it:
        assert it.stdout is not None
        it.stdout.readline()
        os.killpg(it.pid, 9)
        it.stdout.read()
    found = subprocess.run(["ps", "ax", "-o", "args"], capture_output=True, text=True, check=True)
    assert f"sleep {mark}" not in found.stdout.splitlines()


def test_other_processes_are_not_seen(cell: Cell) -> None:
    assert cell.run(f"ls -d /proc/{os.getpid()}").returncode != 0


def test_temporary_files_are_private_unless_something_needed_is_among_them(
    tmp_path: Path,
) -> None:
    env = {"PATH": "/bin"}
    step = Step("bubblewrap", "", ("bwrap",), "bwrap")
    room = Room("/srv/tree", "/srv")
    if sandbox.is_below_tmp(room, ("/bin/true",), env):
        pytest.skip("this program itself lies below /tmp")
    words = sandbox.wrap(step, room, ("/bin/true",), env)
    assert "--tmpfs /tmp --bind /srv /srv --setenv TMPDIR /tmp" in " ".join(words)
    for argv, changes in (
        (("/bin/python", "/tmp/agent.py"), {}),
        (("/bin/true",), {"HOME": "/tmp/home"}),
    ):
        assert sandbox.is_below_tmp(room, argv, {**env, **changes})
    own = Room("/tmp/x/tree", str(tmp_path))
    words = sandbox.wrap(step, own, ("/bin/true",), env)
    assert f"--setenv TMPDIR {tmp_path}/agent/tmp" in " ".join(words)
    assert "--tmpfs /tmp" not in " ".join(words)
