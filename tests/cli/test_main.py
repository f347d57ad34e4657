"""The frame: commands by name, options anywhere, help without loading, and whoami and version."""

from __future__ import annotations

import ast
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gittasks import __version__
from gittasks.cli.catalogue import ALIASES, COMMANDS, INSTEAD, distance, overview
from tests.support.cli import CHECKOUT, COMMAND, environment, tasks, tasks_inprocess
from tests.support.git import git, make_repository


@pytest.fixture
def repo(home: Path) -> Path:
    folder = make_repository(home / "work")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    return folder


def test_the_overview_is_the_answer_to_every_way_of_asking(home: Path) -> None:
    answers = [tasks_inprocess(home, *line).out for line in (["-h"], ["--help"], ["help"])]
    assert answers == [overview()] * 3
    assert [line for line in overview().splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_alike_in_both_ways(name: str, home: Path) -> None:
    by_option = tasks_inprocess(home, name, "-h").out
    assert tasks_inprocess(home, "help", name).out == by_option
    assert by_option.startswith(f"Usage: git tasks {name} ")


def test_help_for_a_verb_of_a_group(home: Path) -> None:
    shown = tasks_inprocess(home, "help", "dep", "add").out
    assert shown == tasks_inprocess(home, "dep", "add", "-h").out
    assert shown.startswith("Usage: git tasks dep add ")


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("sbumit", "Did you mean `git tasks submit`?"),
        ("lst", "Did you mean `git tasks list`?"),
        ("reday", "Did you mean `git tasks ready`?"),
        ("quue", "Did you mean `git tasks queue`?"),
        ("frobnicate", "Run `git tasks -h` to see the commands."),
    ],
)
def test_a_typing_error_gets_the_nearest_command(typed: str, hint: str, home: Path) -> None:
    result = tasks_inprocess(home, typed, check=2)
    assert result == (2, "", f"error: There is no command {typed!r}.\nhint: {hint}\n")


@pytest.mark.parametrize("word", ["done", "approve", "complete", "delete", "assign", "undo"])
def test_a_word_of_other_tools_is_answered_with_ours(word: str, home: Path) -> None:
    result = tasks_inprocess(home, word, "42", check=2)
    assert result == (2, "", f"error: There is no command {word!r}.\nhint: {INSTEAD[word]}\n")


def test_no_word_has_two_meanings() -> None:
    assert set(INSTEAD).isdisjoint({*COMMANDS, *ALIASES})
    assert set(ALIASES).isdisjoint(COMMANDS)
    assert set(ALIASES.values()) <= set(COMMANDS)


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_an_alias_is_the_command_itself(alias: str, name: str, home: Path) -> None:
    shown = tasks_inprocess(home, alias, "-h").out
    assert shown == tasks_inprocess(home, name, "-h").out


def test_a_swapped_letter_is_one_step() -> None:
    words = [("submit", "sbumit"), ("a", "a"), ("ab", ""), ("list", "lost"), ("ready", "raedy")]
    assert [distance(one, other) for one, other in words] == [1, 0, 2, 1, 1]


@pytest.mark.parametrize(
    "line",
    [
        ["--as", "eve", "--json", "--role", "worker", "whoami"],
        ["whoami", "--as", "eve", "--json", "--role", "worker"],
        ["--json", "--role", "worker", "whoami", "--as", "eve"],
        ["--as", "bob", "whoami", "--role=worker", "--json", "--as", "eve"],
    ],
)
def test_options_count_wherever_they_stand(line: list[str], repo: Path) -> None:
    said = tasks_inprocess(repo, *line).json()
    assert said == {
        "schema_version": 1,
        "kind": "whoami",
        "ledger": None,
        "data": {
            "actor": "eve",
            "actor_from": "--as",
            "role": "worker",
            "role_from": "--role",
            "claim": None,
            "task": None,
        },
    }


def test_a_place_may_be_named_in_steps_as_with_git(repo: Path, home: Path) -> None:
    (repo / "sub").mkdir()
    result = tasks_inprocess(home, "-C", "work", "whoami", "-C", "sub")
    assert result.out == ("actor  Ada  (user.name)\nrole   manager  (a person at this machine)\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--role", "boss", "whoami"],
         "Invalid value for '--role': 'boss' is not a role; the roles are manager, designer, "
         "planner, worker, checker, reviewer."),
        (["--color", "pink", "whoami"],
         "Invalid value for '--color': 'pink' is not one of 'auto', 'always', 'never'."),
        (["whoami", "--frob"], "There is no option --frob."),
        (["whoami", "extra"], "Got unexpected extra argument (extra)."),
        (["whoami", "--as"], "Option '--as' requires an argument."),
    ],
)  # fmt: skip
def test_a_wrong_line_is_told_in_one_sentence(line: list[str], message: str, repo: Path) -> None:
    result = tasks_inprocess(repo, *line, check=2)
    assert result.out == ""
    assert result.err.splitlines()[0] == f"error: {message}"


def test_outside_of_a_repository_the_way_in_is_named(home: Path) -> None:
    assert tasks_inprocess(home, "whoami", check=3) == (
        3,
        "",
        "error: this folder is not in a git repository.\n"
        "hint: Go to a git repository, or make one with `git init`.\n",
    )


def test_without_a_ledger_the_way_to_one_is_named(repo: Path) -> None:
    for line in ([], ["list"], ["show", "7"], ["log"], ["inbox"], ["ready"], ["status"]):
        assert tasks_inprocess(repo, *line, check=3) == (
            3,
            "",
            "error: There is no ledger in this repository yet.\nhint: Run `git tasks init`.\n",
        ), line


def test_the_versions_are_the_same_in_both_ways(home: Path) -> None:
    words = git(home, "--version").split()
    lines = f"git tasks {__version__}\nledger format 1, git {words[2]}, Python "
    for words_ in (("--version", "--json"), ("--json", "--version")):
        assert tasks_inprocess(home, *words_).json()["kind"] == "version"
    assert tasks_inprocess(home, "--version").out == lines + platform.python_version() + "\n"
    assert tasks_inprocess(home, "version").out == lines + platform.python_version() + "\n"
    assert tasks_inprocess(home, "version", "--json").json()["data"] == {
        "gittasks": __version__,
        "ledger_format": 1,
        "git": words[2],
        "python": platform.python_version(),
    }


LOADED = """
import sys
from gittasks.cli import main
sys.argv = ["git-tasks", *{line!r}]
try:
    main.main()
except SystemExit:
    pass
print("\\n".join(sorted(sys.modules)), file=sys.stderr)
"""
EXPENSIVE = {"pydantic", "git", "frontmatter", "yaml", "subprocess", "filelock", "sqlite3"}


def loaded(folder: Path, *line: str) -> set[str]:
    """Returns the modules that a command line makes a fresh process load."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOADED.format(line=list(line))],
        cwd=folder,
        env=environment({"COVERAGE_PROCESS_START": None, "COVERAGE_PROCESS_CONFIG": None}),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return set(done.stderr.decode().split("\n"))


@pytest.mark.parametrize("line", [["-h"], ["sbumit"], ["done"], ["--frob"], ["help"]])
def test_help_and_typing_errors_load_no_command_and_no_ledger(line: list[str], home: Path) -> None:
    modules = loaded(home, *line)
    ours = {name for name in modules if name.startswith("gittasks.")}
    assert "gittasks.cli.main" in modules
    assert ours <= {
        "gittasks.cli", "gittasks.cli.main", "gittasks.cli.errors", "gittasks.cli.frame",
        "gittasks.cli.catalogue", "gittasks.cli.versions",
        "gittasks.cli.output", "gittasks.domain", "gittasks.domain.errors",
        "gittasks.cli.clicked", "gittasks.cli.commands", "gittasks.cli.commands.help",
    }  # fmt: skip
    assert modules.isdisjoint(EXPENSIVE)
    assert ("click" in modules) is (line[0] not in ("-h", "help"))


def test_whoami_loads_nothing_expensive(repo: Path) -> None:
    modules = loaded(repo, "whoami")
    assert "gittasks.workflow.project" in modules
    assert modules.isdisjoint({*EXPENSIVE, "click"})


def test_commands_import_workflow_and_domain_only() -> None:
    below = ("gittasks.plumbing", "gittasks.ledger", "gittasks.workspaces", "gittasks.agents")
    wrong = [
        f"{path.name}:{node.lineno} {name}"
        for path in sorted((CHECKOUT / "gittasks" / "cli").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([getattr(node, "module", None) or ""] + [alias.name for alias in node.names])
        if name.startswith(below)
    ]
    assert wrong == []


def test_an_interrupt_ends_the_process_without_a_traceback(repo: Path) -> None:
    # A fifo that nobody writes to holds the command where a person could interrupt it.
    os.mkfifo(repo / "slow")
    git(repo, "config", "include.path", "../slow")
    process = subprocess.Popen(
        [*COMMAND, "whoami"], cwd=repo, env=environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not _has_child(process.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"error: Interrupted.\n")


def _has_child(pid: int) -> bool:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return bool(path.read_text())
    except OSError:
        pytest.skip("this system does not list the children of a process")


def test_the_module_and_the_script_are_the_same_tool(repo: Path) -> None:
    done = tasks(repo, "whoami", "--json")
    assert json.loads(done.out)["data"]["actor"] == "Ada"
