"""Repositories of every shape: empty, bare, detached, hooked, somebody else's, read-only, full."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cases.ground import Team, error_of
from tests.support.cli import CHECKOUT, COMMAND, UNMEASURED, environment, tasks, tasks_inprocess
from tests.support.git import git, make_repository
from tests.support.mounts import read_only

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and change owners")


def story(folder: Path, *, branch: str, ground: Mapping[str, str | None] | None = None) -> None:
    """Plays one task from its creation to its landing; with an environment, in real processes."""

    def run(*words: str, at: Path | None = None, **env: str) -> str:
        if ground is not None:
            return tasks(at or folder, *words, env={**ground, **env}).out.strip()
        return tasks_inprocess(at or folder, *words, env=env).out.strip()

    task = run("new", "One", "--enter", "work", "--check", "test -e new.txt")
    tree = Path(run("start", task, GITTASKS_AGENT="wim"))
    (tree / "new.txt").write_text("new\n", encoding="utf-8")
    git(tree, "add", "new.txt")
    git(tree, "commit", "-q", "-m", "Work")
    run("submit", "-m", "Done.", at=tree, GITTASKS_AGENT="wim")
    run("claim", task, GITTASKS_AGENT="rita")
    run("submit", task, GITTASKS_AGENT="rita")
    run("submit", task)
    assert git(folder, "show", f"{branch}:new.txt") == "new"
    run("fsck")


@pytest.mark.parametrize(
    "kind", ["sha256", "odd branch", "detached", "bare", "separate git dir", "linked worktree"]
)
def test_a_task_lands_in_a_repository_of_every_shape(home: Path, kind: str) -> None:
    """Guards against assumptions about the name of a branch, the length of an id, or `.git`."""
    folder, branch, words = home / "project", "master", ["init"]
    match kind:
        case "sha256":
            make_repository(folder, object_format="sha256")
        case "odd branch":
            branch = "release/ü-1.x"
            make_repository(folder, branch=branch)
        case "detached":
            make_repository(folder)
            git(folder, "switch", "-q", "--detach")
            words = ["init", "--base", "master"]
        case "bare":
            make_repository(folder, bare=True)
        case "separate git dir":
            make_repository(folder)
            git(folder, "init", "-q", f"--separate-git-dir={home / 'elsewhere.git'}")
        case _:
            make_repository(home / "main")
            git(home / "main", "worktree", "add", "-q", "-b", "side", str(folder))
            words = ["init", "--base", "master"]
    tasks_inprocess(folder, *words)
    story(folder, branch=branch)


def test_a_task_lands_in_a_repository_with_reftables(home: Path) -> None:
    """Guards against code that reads files below refs/ itself."""
    probe = home / "probe"
    probe.mkdir()
    if subprocess.run(["git", "init", "-q", "--ref-format=reftable"], cwd=probe, check=False,
                      capture_output=True).returncode:  # fmt: skip
        pytest.skip("this git has no reftables")
    folder = home / "project"
    folder.mkdir()
    git(folder, "init", "-q", "--ref-format=reftable", "--initial-branch=master")
    (folder / "app.txt").write_text("one\n", encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Start")
    tasks_inprocess(folder, "init")
    story(folder, branch="master")


def test_an_empty_repository_can_be_planned_and_not_yet_worked_in(home: Path) -> None:
    """Guards against a traceback where there is no commit to branch from."""
    folder = make_repository(home / "project", branch="trunk", commit=False)
    tasks_inprocess(folder, "init")
    task = tasks_inprocess(folder, "new", "One", "--enter", "work").out.strip()
    refused = tasks_inprocess(folder, "start", task, "--json", check=5)
    assert "trunk" in error_of(refused)["message"]
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Start")
    story(folder, branch="trunk")


@pytest.mark.parametrize("name", ["gittasks", "gittasks/x"])
def test_a_branch_that_is_in_the_way_is_left_alone(home: Path, name: str) -> None:
    """Guards against a user's branch that is taken for the ledger, or overwritten."""
    folder = make_repository(home / "project")
    git(folder, "branch", name)
    before = git(folder, "for-each-ref")
    refused = tasks_inprocess(folder, "init", "--json", check=5)
    assert name in error_of(refused)["message"]
    assert git(folder, "for-each-ref") == before
    tasks_inprocess(folder, "init", "--branch", "team/ledger")
    story(folder, branch="master")


@pytest.mark.parametrize("kind", ["tag", "file", "remote branch", "head-like"])
def test_other_things_of_the_same_name_do_not_mislead(home: Path, kind: str) -> None:
    """Guards against `gittasks` that git resolves to a tag, a file or another namespace."""
    folder = make_repository(home / "project")
    tasks_inprocess(folder, "init")
    match kind:
        case "tag":
            for name in ("gittasks", "heads/gittasks", "task/000001", "master"):
                git(folder, "tag", name)
        case "file":
            (folder / "gittasks").write_text("mine\n", encoding="utf-8")
            (folder / "task").mkdir()
        case "remote branch":
            git(folder, "update-ref", "refs/remotes/origin/gittasks", "master")
            git(folder, "update-ref", "refs/remotes/gittasks/master", "master")
        case _:
            git(folder, "update-ref", "refs/gittasks", "master", check=False)
            git(folder, "branch", "refs/heads/gittasks")
            git(folder, "branch", "heads/master")
    story(folder, branch="refs/heads/master")


def test_no_identity_is_no_obstacle(home: Path) -> None:
    """Guards against `Please tell me who you are` in the middle of a landing."""
    folder = make_repository(home / "project")
    git(folder, "config", "user.useConfigOnly", "true")
    tasks_inprocess(folder, "init")
    story(folder, branch="master")
    names = git(folder, "log", "--format=%cn <%ce>", "gittasks", "--").splitlines()
    assert all(name.endswith(".invalid>") for name in names[:-1])


def test_a_failing_signature_moves_nothing(team: Team) -> None:
    """Guards against a half-written event because gpg cannot ask for its password."""
    team.git("config", "commit.gpgSign", "true")
    team.git("config", "gpg.program", "false")
    task = team.new("The user's own signing does not concern the ledger")
    team.git("config", "gittasks.sign", "true")
    before = team.git("for-each-ref")
    refused = team.manager("note", task, "x", "--json", check=1)
    assert "sign" in error_of(refused)["message"]
    team.agent("wim", "claim", task, check=1)
    assert team.git("for-each-ref") == before
    team.git("config", "gittasks.sign", "false")
    team.start(task)
    assert team.leftovers() == []


@pytest.mark.parametrize("where", [pytest.param("main", marks=pytest.mark.slow), "linked"])
@pytest.mark.parametrize("hook", ["post-commit", "post-checkout", "pre-commit"])
def test_a_hook_may_call_the_tool(team: Team, hook: str, where: str) -> None:
    """Guards against GIT_DIR and GIT_INDEX_FILE of a hook that lead our git into a wrong place."""
    task = team.new("One")
    tree = team.start(task)
    words = " ".join(COMMAND)
    script = team.folder / ".git/hooks" / hook
    script.parent.mkdir(exist_ok=True)
    script.write_text(
        f"#!/bin/sh\nexport PYTHONPATH={CHECKOUT}\n{words} note {task} 'From the hook.' || exit 1\n"
        f"{words} list >/dev/null && {words} new 'From the hook' >/dev/null\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    at = tree if where == "linked" else team.folder
    (at / "staged.txt").write_text("staged\n", encoding="utf-8")
    (at / "other.txt").write_text("not staged\n", encoding="utf-8")
    git(at, "add", "staged.txt")
    if hook == "post-checkout":
        git(at, "switch", "-q", "-c", "elsewhere")
        git(at, "switch", "-q", "-")
    git(at, "commit", "-q", "-m", "Work", "staged.txt")
    assert git(at, "status", "--porcelain") == "?? other.txt"
    assert git(at, "show", "--format=", "--name-only", "HEAD") == "staged.txt"
    assert any("note" in line for line in team.subjects())
    team.manager("fsck")


def wrapped(team: Team, home: Path, *words: str, at: Path | None = None) -> str:
    """Runs `git … tasks …` as people type it, with the command on the search path."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    tool = folder / "git-tasks"
    tool.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    env = {**environment(), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["git", *words], cwd=at or team.folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    return done.stdout


def test_git_finds_the_command_from_everywhere(team: Team, home: Path) -> None:
    """Guards against options of git, folders and aliases that change what the command sees."""
    task = team.new("One")
    deep = team.folder / "a/b"
    deep.mkdir(parents=True)
    tree = team.start(task)
    expected = wrapped(team, home, "tasks", "list")
    assert task in expected
    dot_git = str(team.folder / ".git")
    assert wrapped(team, home, "tasks", "list", at=deep) == expected
    assert wrapped(team, home, "tasks", "list", at=team.folder / ".git") == expected
    assert wrapped(team, home, f"--git-dir={dot_git}", "tasks", "list", at=home) == expected
    assert wrapped(team, home, "-C", str(deep), "tasks", "list", at=home) == expected
    assert wrapped(team, home, "-C", "a", "tasks", "-C", "b", "list") == expected
    assert wrapped(team, home, "tasks", "list", at=tree) == expected
    alias = ("-c", "alias.t=tasks", "-c", "alias.ts=!git tasks")
    assert wrapped(team, home, *alias, "t", "list", at=deep) == expected
    assert wrapped(team, home, *alias, "ts", "list", at=deep) == expected
    bare = f"--git-dir={dot_git}", f"--work-tree={team.folder}"
    assert wrapped(team, home, *bare, "tasks", "list", at=home) == expected
    coloured = wrapped(team, home, "-c", "color.ui=always", "tasks", "list")
    assert "\x1b[" in coloured
    assert (
        wrapped(team, home, "-c", "color.ui=always", "tasks", "list", "--color=never") == expected
    )
    inside = json.loads(wrapped(team, home, "tasks", "show", ".", "--json", at=tree))
    assert inside["data"]["id"] == task


@needs_root
@pytest.mark.parametrize("what", ["repository", "tree"])
def test_a_repository_of_somebody_else_is_named(team: Team, what: str) -> None:
    """Guards against git's `dubious ownership` that ends as `no repository`, or as a traceback."""
    task = team.new("One")
    tree = team.start(task)
    folder = tree if what == "tree" else team.folder
    for path in (folder, folder / ".git"):
        os.lchown(path, 12345, 12345)
    refused = tasks(folder, "list", "--json", check=3)
    assert "safe.directory" in refused.out
    assert "defect" not in refused.out


@needs_root
def test_a_read_only_repository_can_be_read_and_says_why_it_cannot_be_written(
    team: Team, tmp_path: Path
) -> None:
    """Guards against reads that need to write a cache, and writes that fail with a traceback."""
    task = team.new("One")
    words = " ".join(COMMAND)
    lines = (
        f"for verb in list 'show 1' log inbox ready status fsck whoami; do\n"
        f'  {words} $verb >/dev/null || echo "$verb ended with $?"\ndone\n'
        f"{words} note {task} x; echo $?\n"
    )
    done = read_only(team.folder, lines, tmp_path)
    assert done.stdout == "1\n", done
    assert "Read-only" in done.stderr
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr


@pytest.mark.parametrize("limit", [0, 4096])
@pytest.mark.parametrize("verb", ["note", "claim", "start", "submit"])
def test_a_full_disk_moves_nothing_and_is_named(team: Team, verb: str, limit: int) -> None:
    """Guards against events that are half there because the disk was full in between."""
    task = team.new("One")
    tree = team.start(task)
    commit = team.commit(tree, {"new.txt": "new\n"})
    other = team.new("Other")
    words = {
        "note": ("note", task, "x" * 20_000), "claim": ("claim", other, "--no-worktree"),
        "start": ("start", other), "submit": ("submit", task, "-m", "x" * 20_000),
    }[verb]  # fmt: skip

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    before = team.git("for-each-ref")
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=tree if verb == "submit" else team.folder,
        # What measures the tests has no room to write either.
        env={**environment(UNMEASURED), "GITTASKS_AGENT": "wim"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=full,
    )
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert team.git("for-each-ref") == before or verb == "start", done
    team.manager("recover")
    assert team.manager("fsck").status == 0
    assert git(team.folder, "fsck", "--connectivity-only", "--no-dangling") == ""
    team.agent("wim", *words, at=tree if verb == "submit" else None)
    assert team.git("rev-parse", "HEAD", at=tree) == commit
    assert team.leftovers() == []


@pytest.mark.parametrize("umask", ["000", "077"])
def test_secrets_are_for_their_owner_only(team: Team, umask: str) -> None:
    """Guards against claim secrets and check output that everybody on the machine can read."""
    task = team.new("One", "--check", "true")
    line = f"umask {umask}; {' '.join(COMMAND)} start {task}"
    subprocess.run(
        ["sh", "-c", line], cwd=team.folder, env={**environment(), "GITTASKS_AGENT": "wim"},
        check=True, capture_output=True,
    )  # fmt: skip
    (record,) = (team.folder / ".git/gittasks/claims").iterdir()
    assert record.stat().st_mode & 0o077 == 0


def test_settings_that_cannot_be_are_named(team: Team) -> None:
    """Guards against a typing error in a setting that becomes a traceback or a silent default."""
    task = team.new("One", "--check", "true")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    with (tree.parent / "ASSIGNMENT.md").open("a", encoding="utf-8") as file:
        file.write("Done.\n")
    for name, value in (
        ("lockTimeout", "soon"), ("checkTimeout", "-1"), ("gitTimeout", "1x"), ("sign", "perhaps"),
    ):  # fmt: skip
        team.git("config", f"gittasks.{name}", value)
        refused = team.manager("note", task, "x", check=None)
        refused = refused if refused.status else team.agent("wim", "submit", at=tree, check=None)
        assert refused.status == 2, (name, refused)
        assert value in refused.err
        assert "defect" not in refused.err
        team.git("config", "--unset", f"gittasks.{name}")


@pytest.mark.parametrize(
    "setting",
    [
        "core.autocrlf=true", "core.quotePath=false", "core.bigFileThreshold=1", "diff.noprefix=true",
        "status.showUntrackedFiles=no", "status.relativePaths=true", "status.short=true",
        "merge.ff=only", "merge.conflictStyle=diff3", "pull.rebase=true", "log.showSignature=true",
        "core.commitGraph=false", "core.logAllRefUpdates=false", "core.fsync=all", "gc.auto=1",
        "core.preferSymlinkRefs=true", "i18n.commitEncoding=ISO-8859-1", "i18n.logOutputEncoding=UTF-16",
        "core.abbrev=4", "log.date=relative", "core.hooksPath=/nonexistent", "core.fileMode=false",
        "commit.template=/nonexistent", "core.attributesFile=/nonexistent", "core.editor=false",
        "merge.renames=false", "checkout.defaultRemote=x", "branch.autoSetupMerge=always",
        "core.checkStat=minimal", "submodule.recurse=true", "diff.external=false", "core.pager=false",
        "transfer.hideRefs=refs/gittasks", "extensions.worktreeConfig=true", "core.untrackedCache=true",
        "core.splitIndex=true", "feature.manyFiles=true", "fetch.prune=true", "rerere.enabled=true",
        "receive.denyCurrentBranch=refuse", "color.ui=always", "column.ui=always", "core.safecrlf=true",
        "worktree.guessRemote=true", "commit.cleanup=scissors", "commit.verbose=true", "help.autoCorrect=1",
    ],
)  # fmt: skip
@pytest.mark.slow
def test_no_setting_of_the_user_changes_what_the_tool_does(home: Path, setting: str) -> None:
    """Guards against git configurations that we did not have when the code was written."""
    team = Team(home / "project")
    team.git("config", *setting.split("=", 1))
    story(team.folder, branch="master")
    assert team.git("-c", "status.showUntrackedFiles=all", "status", "--porcelain") == ""


ENVIRONMENTS: list[dict[str, str | None]] = [
    {"HOME": None}, {"HOME": "/nonexistent"}, {"TMPDIR": "/nonexistent"}, {"PATH": "/usr/bin:/bin"},
    {"LC_ALL": "C", "LANG": None}, {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de"}, {"LC_ALL": "POSIX",
     "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii:strict"},
    {"PYTHONWARNINGS": "error"}, {"PYTHONDEVMODE": "1"}, {"PYTHONOPTIMIZE": "2"},
    {"PYTHONDONTWRITEBYTECODE": "1"}, {"PYTHONSAFEPATH": "1"}, {"PYTHONNOUSERSITE": "1"},
    {"GIT_TRACE": "1", "GIT_TRACE2": "1"}, {"GIT_TRACE": "2", "GIT_TRACE_SETUP": "1"},
    {"GIT_OPTIONAL_LOCKS": "0"}, {"GIT_LITERAL_PATHSPECS": "1"}, {"GIT_NOGLOB_PATHSPECS": "1"},
    {"GIT_ICASE_PATHSPECS": "1"}, {"GIT_EXTERNAL_DIFF": "false"}, {"GIT_DIFF_OPTS": "-u0"},
    {"GIT_NAMESPACE": "other"}, {"GIT_REFLOG_ACTION": "x"}, {"GIT_QUARANTINE_PATH": "/x"},
    {"GIT_REPLACE_REF_BASE": "refs/heads/"}, {"GIT_NO_REPLACE_OBJECTS": None},
    {"GIT_GRAFT_FILE": "/nonexistent"}, {"GIT_SHALLOW_FILE": "/nonexistent"},
    {"GIT_DEFAULT_HASH": "sha256"}, {"GIT_DEFAULT_REF_FORMAT": "reftable"},
    {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": "/x"},
    {"GIT_CONFIG_PARAMETERS": "'color.ui=always' 'core.bare=false'"}, {"GIT_PAGER": "false"},
    {"GIT_EDITOR": "false"}, {"GIT_SEQUENCE_EDITOR": "false"}, {"GIT_MERGE_AUTOEDIT": "yes"},
    {"GIT_AUTHOR_NAME": "Só\u202eé", "GIT_AUTHOR_EMAIL": "<x>"}, {"GIT_AUTHOR_DATE": "2001-01-01"},
    {"GIT_COMMITTER_DATE": "2001-01-01 00:00:00 +0545"}, {"TERM": None}, {"COLUMNS": "1"},
    {"NO_COLOR": None, "CLICOLOR_FORCE": "1", "FORCE_COLOR": "1"}, {"TZ": "America/St_Johns"},
    {"GIT_ATTR_SOURCE": "HEAD"}, {"GIT_ATTR_NOSYSTEM": "1"}, {"GIT_TEMPLATE_DIR": "/nonexistent"},
    {"USER": None, "LOGNAME": None}, {"GITTASKS_TRACE": "1"}, {"GIT_EXEC_PATH": None},
    {"GIT_FLUSH": "1"}, {"GIT_ADVICE": "0"}, {"GIT_PREFIX": "nowhere/"}, {"GIT_ASKPASS": "false"},
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("ground", ENVIRONMENTS, ids=str)
def test_no_variable_of_the_user_changes_what_the_tool_does(
    home: Path, ground: dict[str, str | None]
) -> None:
    """Guards against environments that we did not have when the code was written."""
    team = Team(home / "project")
    story(team.folder, branch="master", ground=ground)
    assert team.git("status", "--porcelain") == ""
    assert team.git("fsck", "--strict", "--no-dangling") == ""
