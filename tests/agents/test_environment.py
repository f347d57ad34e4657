"""An agent gets what it needs of our environment, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gittasks.agents.environment import agent_environment, own_module, own_program
from tests.support.git import git, make_repository

CHECKOUT = Path(__file__).resolve().parents[2]


def environment(
    environ: dict[str, str], *program: str, has_identity: bool = True, names: tuple[str, ...] = ()
) -> dict[str, str]:
    return agent_environment(
        environ,
        task="000042",
        role="worker",
        slot="pi-x-y-1",
        secret="s3cret",
        outbox="/the/outbox",
        run="clone.mark",
        program=program or ("/opt/a b/git-tasks",),
        has_identity=has_identity,
        names=names,
    )


def test_the_whole_environment_of_an_agent() -> None:
    passed = {
        "PATH": "/usr/bin",
        "HOME": "/home/ada",
        "LC_ALL": "de_DE.UTF-8",
        "https_proxy": "http://proxy",
        "ANTHROPIC_API_KEY": "key",
        "DEEPSEEK_API_KEY": "key",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_CONFIG_GLOBAL": "/the/config",
    }
    kept_back = {
        "SSH_AUTH_SOCK": "/agent",
        "XDG_RUNTIME_DIR": "/run/user/1",
        "GH_TOKEN": "token",
        "DATABASE_URL": "postgres://",
        "CLAUDE_CODE_SSE_PORT": "1",
        "GIT_DIR": "/elsewhere",
        "GIT_INDEX_FILE": "/elsewhere",
        "GIT_SSH_COMMAND": "ssh",
        "GIT_EDITOR": "vi",
        "GITTASKS_TRACE": "1",
        "GITTASKS_CLAIM": "of somebody else",
        "PYTHONPATH": "/elsewhere",
        "TERM": "xterm",
    }
    assert environment({**passed, **kept_back}) == {
        **passed,
        "TERM": "dumb",
        "EDITOR": "true",
        "VISUAL": "true",
        "PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_SEQUENCE_EDITOR": "true",
        "GIT_MERGE_AUTOEDIT": "no",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "SSH_ASKPASS_REQUIRE": "never",
        "GCM_INTERACTIVE": "never",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "alias.tasks",
        "GIT_CONFIG_VALUE_0": (
            '!cd -- "${GIT_PREFIX:-.}" && unset GIT_PREFIX GIT_DIR GIT_WORK_TREE && exec '
            "'/opt/a b/git-tasks'"
        ),
        "GITTASKS_TASK": "000042",
        "GITTASKS_ROLE": "worker",
        "GITTASKS_AGENT": "pi-x-y-1",
        "GITTASKS_CLAIM": "s3cret",
        "GITTASKS_OUTBOX": "/the/outbox",
        "GITTASKS_RUN": "clone.mark",
    }


def test_the_pool_can_let_more_pass_but_no_variable_of_ours() -> None:
    environ = {"DATABASE_URL": "a", "MY_ONE": "b", "THE_TOKEN": "c", "GITTASKS_TRACE": "1"}
    env = environment(environ, names=("DATABASE_URL", "MY_*", "*_TOKEN", "GITTASKS_*"))
    assert {name: env[name] for name in environ if name in env} == {
        "DATABASE_URL": "a", "MY_ONE": "b", "THE_TOKEN": "c",
    }  # fmt: skip


def test_settings_that_are_there_stay_and_what_is_no_number_begins_anew() -> None:
    environ = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    env, odd = environment(environ), environment({"GIT_CONFIG_COUNT": "²"})
    assert (env["GIT_CONFIG_COUNT"], env["GIT_CONFIG_KEY_0"], env["GIT_CONFIG_KEY_1"]) == (
        "2", "a.b", "alias.tasks",
    )  # fmt: skip
    assert (odd["GIT_CONFIG_COUNT"], odd["GIT_CONFIG_KEY_0"]) == ("1", "alias.tasks")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agent")
    main = make_repository(folder / "main")
    git(main, "worktree", "add", "-q", str(folder / "tree"))
    (folder / "tree" / "deep").mkdir()
    return folder / "tree"


def test_the_alias_works_in_a_folder_of_a_linked_tree_whatever_the_path(tree: Path) -> None:
    script = 'pwd; git rev-parse --show-toplevel; printf "%s|" "$@"'
    env = environment({**os.environ}, "/bin/sh", "-c", script, "it's")
    words = [str(shutil.which("git")), "tasks", "submit", "two words", "$x"]
    # A git-tasks that is installed would be found first.
    env["PATH"] = os.defpath
    done = subprocess.run(
        words, cwd=tree / "deep", env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{tree}/deep\n{tree}\nsubmit|two words|$x|"


def test_a_commit_works_for_somebody_without_a_name(tree: Path) -> None:
    env = environment({**os.environ}, has_identity=False)
    words = ["git", "commit", "-q", "--allow-empty", "-m", "Anything."]
    subprocess.run(words, cwd=tree, env=env, check=True)
    assert git(tree, "log", "-1", "--format=%an <%ae>") == "pi-x-y-1 <pi-x-y-1@localhost>"


def test_this_very_program_is_reached_from_a_tree_with_a_package_of_the_same_name(
    tree: Path,
) -> None:
    (tree / "gittasks").mkdir()
    (tree / "gittasks" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    program = own_program({"PYTHONPATH": str(CHECKOUT)})
    done = subprocess.run(
        [*program, "--version"], cwd=tree, capture_output=True, text=True, check=True
    )
    assert (program, done.stderr) == (own_module("gittasks"), "")
    assert program[1:] == (f"PYTHONPATH={CHECKOUT}", sys.executable, "-P", "-m", "gittasks")
