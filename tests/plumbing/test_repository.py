"""Finding a repository, and the way git is run in it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gittasks.plumbing import repository
from gittasks.plumbing.errors import GitError, GitTimeout, NotARepository
from gittasks.plumbing.repository import Config, Repository, clean_environment
from tests.support.git import git, make_repository

MASTER = "refs/heads/master"


def _place(repo: Repository) -> tuple[str, str, str | None, bool, str]:
    return repo.git_dir, repo.common_dir, repo.worktree, repo.bare, repo.prefix


# ------------------------------------------------------------------------------- finding


@pytest.mark.parametrize("name", ["r", "with space", "line\nend", "true\n", "ümläut", "b\udcff"])
def test_one_process_finds_the_repository_and_the_id_of_a_ref(tmp_path: Path, name: str) -> None:
    folder = make_repository(tmp_path / name)
    (folder / "sub\ndir").mkdir()
    repo = Repository.open(str(folder / "sub\ndir"), resolve=(MASTER,))
    assert (*_place(repo), repo.resolved, repo.calls) == (
        str(folder / ".git"),
        str(folder / ".git"),
        str(folder),
        False,
        "sub\ndir/",
        {MASTER: git(folder, "rev-parse", MASTER)},
        1,
    )


def test_the_current_folder_is_taken_when_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_repository(tmp_path / "r", files={"a/b/c.txt": ""})
    monkeypatch.chdir(folder / "a" / "b")
    repo = Repository.open()
    assert (repo.worktree, repo.prefix) == (str(folder), "a/b/")


def test_a_symbolic_link_leads_to_the_real_folder(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    (tmp_path / "link").symlink_to(folder)
    assert Repository.open(str(tmp_path / "link")).worktree == str(folder)


def test_a_bare_repository_has_no_worktree(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "bare.git", bare=True)
    repo = Repository.open(str(folder), resolve=(MASTER,))
    assert (*_place(repo), repo.resolved, repo.calls) == (
        str(folder),
        str(folder),
        None,
        True,
        "",
        {MASTER: git(folder, "rev-parse", MASTER)},
        1,
    )


def test_a_linked_worktree_shares_the_common_directory(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    git(folder, "worktree", "add", "-q", "--detach", "../w")
    repo = Repository.open(str(tmp_path / "w"), resolve=(MASTER,))
    assert (*_place(repo), repo.resolved[MASTER], repo.calls) == (
        str(folder / ".git/worktrees/w"),
        str(folder / ".git"),
        str(tmp_path / "w"),
        False,
        "",
        git(folder, "rev-parse", MASTER),
        1,
    )


def test_inside_the_git_directory_there_is_no_worktree(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    repo = Repository.open(str(folder / ".git"))
    assert _place(repo) == (str(folder / ".git"), str(folder / ".git"), None, False, "")


def test_an_unborn_branch_is_no_obstacle(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", commit=False)
    repo = Repository.open(str(folder), resolve=(MASTER,))
    assert (repo.worktree, repo.resolved) == (str(folder), {MASTER: None})


def test_a_sha256_repository_has_longer_ids(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", object_format="sha256")
    repo = Repository.open(str(folder), resolve=(MASTER,))
    resolved = repo.resolved[MASTER]
    assert resolved is not None
    assert (repo.object_format, repo.oid_length, repo.null_oid, len(resolved)) == (
        "sha256",
        64,
        "0" * 64,
        64,
    )


def test_git_dir_and_work_tree_of_the_caller_are_honoured(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    (tmp_path / "elsewhere").mkdir()
    environ = {**os.environ, "GIT_DIR": str(folder / ".git"), "GIT_WORK_TREE": str(folder)}
    repo = Repository.open(str(tmp_path / "elsewhere"), environ)
    assert _place(repo) == (str(folder / ".git"), str(folder / ".git"), str(folder), False, "")


def test_a_relative_git_dir_as_git_leaves_it_is_honoured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path / "r")
    monkeypatch.chdir(tmp_path)
    repo = Repository.open(environ={**os.environ, "GIT_DIR": "r/.git"})
    monkeypatch.chdir("/")
    assert repo.text("rev-parse", "--git-dir") == str(tmp_path / "r/.git")


def test_an_index_or_object_folder_of_a_hook_does_not_leak_into_our_calls(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    other = make_repository(tmp_path / "other", files={"b.txt": "b\n"})
    environ = {
        **os.environ,
        "GIT_DIR": str(folder / ".git"),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"),
        "GIT_QUARANTINE_PATH": str(other / ".git/objects"),
        "GIT_NAMESPACE": "other",
        "GIT_LITERAL_PATHSPECS": "1",
    }
    repo = Repository.open(str(folder), environ, resolve=(MASTER,))
    assert (repo.resolved[MASTER], repo.text("ls-files", at=str(folder))) == (
        git(folder, "rev-parse", MASTER),
        "app.txt",
    )


def test_the_folder_from_which_an_alias_was_called_is_the_prefix(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", files={"a/b.txt": ""})
    repo = Repository.open(str(folder), {**os.environ, "GIT_PREFIX": "a/"})
    assert repo.prefix == "a/"


def test_a_prefix_of_another_repository_is_ignored(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    repo = Repository.open(str(folder), {**os.environ, "GIT_PREFIX": "elsewhere/"})
    assert repo.prefix == ""


def test_a_folder_outside_any_repository_is_told(tmp_path: Path) -> None:
    environ = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    with pytest.raises(NotARepository) as caught:
        Repository.open(str(tmp_path), environ)
    assert str(caught.value) == f"{tmp_path} is not in a git repository."


def test_a_ceiling_stops_the_search(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", files={"a/b.txt": ""})
    with pytest.raises(NotARepository):
        Repository.open(str(folder / "a"), {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder)})


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="No such file or directory"):
        Repository.open(str(tmp_path / "nowhere"))


def test_a_repository_of_somebody_else_is_refused_by_its_reason(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    environ = {**os.environ, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    with pytest.raises(NotARepository) as caught:
        Repository.open(str(folder), environ)
    assert str(caught.value) == (
        f"detected dubious ownership in repository at '{folder}'; it belongs to another user, "
        "and git uses it only when it is named in safe.directory."
    )


def test_a_bare_repository_that_the_user_forbids_is_refused_by_its_reason(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "bare.git", bare=True)
    environ = {
        **os.environ,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.bareRepository",
        "GIT_CONFIG_VALUE_0": "explicit",
    }
    with pytest.raises(NotARepository, match=r"safe\.bareRepository is 'explicit'"):
        Repository.open(str(folder), environ)


# ------------------------------------------------------------------------- resolved refs


def test_a_missing_ref_costs_one_more_process_and_is_none(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    repo = Repository.open(str(folder), resolve=("refs/heads/none", MASTER))
    assert (repo.resolved, repo.calls) == (
        {"refs/heads/none": None, MASTER: git(folder, "rev-parse", MASTER)},
        2,
    )


def test_a_branch_with_a_misleading_name_is_not_taken_for_the_missing_one(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    git(folder, "branch", "refs/heads/gittasks")
    repo = Repository.open(str(folder), resolve=("refs/heads/gittasks",))
    assert repo.resolved == {"refs/heads/gittasks": None}


def test_a_tag_of_the_same_name_does_not_stand_in_for_a_branch(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    first = git(folder, "rev-parse", "HEAD")
    git(folder, "branch", "gittasks")
    git(folder, "commit", "-q", "--allow-empty", "-m", "more")
    git(folder, "tag", "gittasks")
    git(folder, "tag", "refs/heads/gittasks")
    repo = Repository.open(str(folder), resolve=("refs/heads/gittasks",))
    assert repo.resolved == {"refs/heads/gittasks": first}


def test_a_file_with_the_name_of_a_ref_is_not_taken_for_it(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", files={"refs/heads/none": "", MASTER: ""})
    repo = Repository.open(str(folder), resolve=("refs/heads/none", MASTER))
    assert repo.resolved == {"refs/heads/none": None, MASTER: git(folder, "rev-parse", "HEAD")}


def test_a_short_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not the full name of a ref"):
        Repository.open(str(tmp_path), resolve=("gittasks",))


# ------------------------------------------------------------------------------- running


def test_a_failure_is_told_in_the_words_of_git(tmp_path: Path) -> None:
    repo = Repository.open(str(make_repository(tmp_path / "r")))
    with pytest.raises(GitError) as caught:
        repo.git("cat-file", "-p", "nothing")
    error = caught.value
    assert (str(error), error.status, error.command) == (
        "Not a valid object name nothing.",
        128,
        ("cat-file", "-p", "nothing"),
    )


def test_a_failure_that_is_expected_is_returned(tmp_path: Path) -> None:
    repo = Repository.open(str(make_repository(tmp_path / "r")))
    assert repo.git("rev-parse", "-q", "--verify", "nothing", check=False).status == 1


def test_no_hook_runs_whatever_it_is(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    hooks = folder / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-checkout", "pre-commit"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (hooks / name).chmod(0o755)
    repo = Repository.open(str(folder))
    assert repo.git("update-ref", "refs/heads/new", git(folder, "rev-parse", "HEAD")).status == 0


def test_replaced_objects_are_read_as_they_were(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    head = git(folder, "rev-parse", "HEAD")
    other = git(folder, "commit-tree", "HEAD^{tree}", "-m", "Other")
    git(folder, "replace", head, other)
    repo = Repository.open(str(folder))
    assert repo.text("log", "-1", "--format=%s", head) == "Start"


def test_messages_are_not_translated(tmp_path: Path) -> None:
    repo = Repository.open(
        str(make_repository(tmp_path / "r")), {**os.environ, "LANGUAGE": "de", "LC_ALL": "de_DE"}
    )
    assert repo.text("var", "GIT_EDITOR") == "true"
    assert clean_environment({"LANGUAGE": "de", "LC_ALL": "x"})["LC_ALL"] == "C"


def test_settings_of_the_caller_reach_git(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    environ = {**os.environ, "GIT_CONFIG_PARAMETERS": "'gittasks.ledger'='other'"}
    repo = Repository.open(str(folder), environ)
    assert repo.text("config", "gittasks.ledger") == "other"


def test_colour_and_paging_settings_do_not_reach_our_output(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    for setting in ("color.ui=always", "core.pager=false", "log.showSignature=true"):
        git(folder, "config", *setting.split("="))
    repo = Repository.open(str(folder))
    assert repo.text("log", "-1", "--format=%C(auto)%s") == "Start"


def test_a_call_in_a_worktree_acts_there(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    git(folder, "worktree", "add", "-q", "-b", "side", "../w")
    repo = Repository.open(str(folder))
    heads = [repo.text("symbolic-ref", "HEAD", at=at) for at in (None, str(tmp_path / "w"))]
    assert heads == [MASTER, "refs/heads/side"]


def test_bytes_that_are_no_utf8_come_back_as_they_were(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", files={"x\udcff": ""})
    names = Repository.open(str(folder)).text("ls-files", "-z", at=str(folder))
    assert os.fsencode(names) == b"x\xff\0"


def test_a_call_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    repo = Repository.open(str(folder))
    with pytest.raises(GitTimeout, match=r"did not end within 0.2 seconds"):
        repo.git("-c", "alias.slow=!sleep 60", "slow", timeout=0.2)


def test_the_time_limit_comes_from_the_settings(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    git(folder, "config", "gittasks.gitTimeout", "0.2s")
    repo = Repository.open(str(folder))
    assert repo.config.get("gittasks.gittimeout") == "0.2s"
    with pytest.raises(GitTimeout):
        repo.git("-c", "alias.slow=!sleep 60", "slow")


def test_every_process_is_counted(tmp_path: Path) -> None:
    repo = Repository.open(str(make_repository(tmp_path / "r")))
    repo.git("version")
    assert (repo.config.get("core.bare"), repo.config.get("core.bare"), repo.calls) == (
        "false",
        "false",
        3,
    )


_TRACED = """
import sys
from gittasks.plumbing.repository import Repository
Repository.open(sys.argv[1]).git("version")
"""


def test_a_trace_tells_each_call_on_the_error_stream(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    checkout = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", _TRACED, str(folder)],
        env={**os.environ, "PYTHONPATH": checkout, "GITTASKS_TRACE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    words = [line.split() for line in done.stderr.splitlines()]
    assert [(line[0], line[2:5]) for line in words] == [
        ("trace:", ["ms", "git", "rev-parse"]),
        ("trace:", ["ms", "git", "version"]),
    ]


def test_git_is_found_on_the_search_path_and_never_in_a_relative_folder(tmp_path: Path) -> None:
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    search = os.pathsep.join(["", ".", "bin", str(tmp_path), str(program.parent)])
    assert repository.find_git(search) == str(program)


def test_a_search_path_without_git_is_told(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="git is not on the search path"):
        repository.find_git(str(tmp_path))


def test_the_path_of_git_is_absolute() -> None:
    assert os.path.isabs(repository.GIT)


# ------------------------------------------------------------------------------ settings

LISTING = (
    b"core.bare\nfalse\0remote.Origin.url\nfirst\0remote.Origin.url\nsecond\0"
    b"gittasks.novalue\0gittasks.text\ntwo\nlines\0gittasks.size\n2k\0gittasks.lease\n30m\0"
    b"gittasks.odd\nperhaps\0gittasks.empty\n\0gittasks.zero\n0\0gittasks.negative\n-5s\0"
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.bare", "false"),
        ("CORE.Bare", "false"),
        ("remote.Origin.URL", "second"),
        ("remote.origin.url", None),
        ("gittasks.novalue", ""),
        ("gittasks.text", "two\nlines"),
        ("gittasks.absent", None),
    ],
)
def test_the_last_value_wins_under_the_name_as_git_compares_it(key: str, value: str | None) -> None:
    assert Config(LISTING).get(key) == value


def test_every_value_of_a_name_is_told_in_order() -> None:
    assert Config(LISTING).get_all("remote.Origin.url") == ("first", "second")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.bare", False),
        ("gittasks.novalue", True),
        ("gittasks.empty", False),
        ("gittasks.zero", False),
        ("gittasks.size", True),
        ("gittasks.absent", True),
    ],
)
def test_a_yes_or_no_is_read_as_git_reads_it(key: str, value: bool) -> None:
    assert Config(LISTING).get_bool(key, True) is value


def test_a_number_may_have_a_unit() -> None:
    assert Config(LISTING).get_int("gittasks.size", 1) == 2048


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86400), ("1.5h", 5400), ("0", 0)],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    config = Config(b"gittasks.lease\n" + text.encode() + b"\0")
    assert config.get_seconds("gittasks.lease", 1) == seconds


@pytest.mark.parametrize("key", ["gittasks.odd", "gittasks.empty", "gittasks.negative"])
def test_a_duration_that_is_none_is_named_with_its_value(key: str) -> None:
    config = Config(LISTING)
    with pytest.raises(ValueError) as caught:
        config.get_seconds(key, 1)
    assert str(caught.value) == (
        f"The setting {key} is {config.get(key)!r}, which is not a duration such as 30s, 5m or 2h."
    )


def test_a_yes_or_no_that_is_none_is_named_with_its_value() -> None:
    with pytest.raises(ValueError, match=r"The setting gittasks\.odd is 'perhaps', which is not a"):
        Config(LISTING).get_bool("gittasks.odd", True)


def test_settings_are_those_of_the_user_and_not_the_ones_we_force(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r")
    git(folder, "config", "core.hooksPath", ".husky")
    assert Repository.open(str(folder)).config.get("core.hooksPath") == ".husky"
