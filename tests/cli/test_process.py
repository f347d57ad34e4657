"""The installed command ends at once: what it said has arrived, and nothing it started is left."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.cli import CHECKOUT, UNMEASURED, environment, tasks, tasks_inprocess
from tests.support.git import git, make_repository

PROCESS = "import sys; from gittasks.cli.main import process; sys.argv[0] = 'git-tasks'; process()"

# A read must not wait for any of these.
SLOW = {
    "pydantic", "git", "yaml", "frontmatter", "subprocess", "filelock", "click", "dataclasses",
    "datetime", "hashlib", "inspect", "pathlib", "shutil", "tempfile", "threading",
}  # fmt: skip
LOADED = """
import sys
from gittasks.cli.main import main
sys.argv = ["git-tasks", *sys.argv[1:]]
try:
    main()
finally:
    print("\\n".join(sorted(sys.modules)), file=sys.stderr)
"""
READS: tuple[list[str], ...] = (
    ["ready"], ["show", "1"], ["inbox"], ["status"], [], ["prime", "1"], ["list", "--all"],
    ["log", "1"], ["log", "--limit", "3"], ["dep", "tree", "1"],
)  # fmt: skip


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_repository(tmp_path_factory.mktemp("process") / "repo")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    tasks_inprocess(folder, "init")
    tasks_inprocess(folder, "new", "Build the wall", "-m", "Of brick.", "--enter", "work")
    tasks_inprocess(folder, "new", "Paint the wall", "--dep", "1")
    return folder


def python(
    folder: Path, code: str, *line: str, stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *line],
        cwd=folder,
        env=environment(UNMEASURED),
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )


def test_the_installed_command_is_this_one() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {"git-tasks": "gittasks.cli.main:process"}


@pytest.mark.parametrize(
    "line", [["show", "1", "--json"], ["list", "--json"], ["show", "7"], ["frob"], ["-h"]]
)
def test_it_says_and_ends_as_the_module_does(line: list[str], repo: Path) -> None:
    done = python(repo, PROCESS, *line)
    theirs = tasks(repo, *line, check=None)
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == theirs


def test_a_reader_that_left_is_no_failure(repo: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-c", PROCESS, "list", "--all"],
        cwd=repo,
        env=environment(UNMEASURED),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (0, b"")


def test_nothing_it_started_outlives_it(repo: Path) -> None:
    # Whoever still ran would hold the other end of this pipe, and reading would not end.
    done = python(repo, PROCESS, "note", "1", "The wall stands.")
    assert (done.returncode, done.stdout) == (0, b"000001 note\n")
    assert running(repo) == []


def running(folder: Path) -> list[str]:
    """Returns the command lines of processes that name a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


@pytest.mark.parametrize("line", READS, ids=" ".join)
def test_a_read_loads_nothing_slow(line: list[str], repo: Path) -> None:
    done = python(repo, LOADED, *line)
    modules = set(done.stderr.decode().split("\n"))
    assert done.returncode == 0
    assert "gittasks.workflow.project" in modules
    assert modules & SLOW == set()


@pytest.mark.parametrize("line", [["ready"], ["list"], ["show", "1"], ["inbox"], ["status"]])
def test_a_read_loads_no_rule_about_writing(line: list[str], repo: Path) -> None:
    modules = set(python(repo, LOADED, *line).stderr.decode().split("\n"))
    rules = {"gittasks.domain.decide", "gittasks.ledger.build", "gittasks.ledger.message"}
    if line[0] in ("ready", "list", "show"):
        rules |= {"gittasks.domain.events", "gittasks.domain.requests"}
    assert modules & rules == set()
