"""Beginning a ledger: where, on which base, and what stands in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.domain.errors import GittasksError, Refused, UsageFault, WrongRole
from gittasks.workflow.init import Begun, init
from tests.support.cli import tasks_process
from tests.support.git import git, make_repository
from tests.workflow.ground import opened


def all_refs(folder: Path) -> str:
    return git(folder, "for-each-ref")


def test_a_ledger_begins_with_two_commits_and_nothing_else_moves(home: Path) -> None:
    folder = make_repository(home / "project", files={"app.txt": "one"})
    (folder / "app.txt").write_text("two", encoding="utf-8")
    config, status = (folder / ".git/config").read_bytes(), git(folder, "status", "--porcelain=v2")
    begun = init(opened(folder))
    assert begun == Begun(
        True, "gittasks", "master", str(home / "project.tasks"),
        git(folder, "rev-parse", "refs/heads/gittasks"),
    )  # fmt: skip
    assert git(folder, "rev-list", "--count", "gittasks", "--") == "2"
    assert git(folder, "show", "gittasks:project.yaml").splitlines() == [
        "format: 1", 'base: "master"',
    ]  # fmt: skip
    assert git(folder, "log", "-1", "--format=%s", "gittasks", "--").startswith("init (")
    assert (folder / ".git/config").read_bytes() == config
    assert git(folder, "status", "--porcelain=v2") == status


def test_a_second_init_changes_nothing(home: Path) -> None:
    folder = make_repository(home / "project")
    first = init(opened(folder))
    before = all_refs(folder)
    again = init(opened(folder), base="master", branch="gittasks")
    assert again == first._replace(created=False, commit=None)
    assert all_refs(folder) == before


def test_two_clones_begin_with_the_same_root(home: Path) -> None:
    roots = set()
    for name in ("a", "b"):
        folder = make_repository(home / name, branch=f"base-{name}")
        init(opened(folder))
        roots.add(git(folder, "rev-list", "--max-parents=0", "gittasks", "--"))
    assert len(roots) == 1


def test_an_unborn_branch_is_a_base(home: Path) -> None:
    folder = make_repository(home / "project", branch="trunk", commit=False)
    assert init(opened(folder)).base == "trunk"


def test_the_current_branch_is_the_base_without_a_remote(home: Path) -> None:
    folder = make_repository(home / "project")
    git(folder, "switch", "-q", "-c", "topic/one")
    assert init(opened(folder)).base == "topic/one"


def test_the_branch_of_the_remote_comes_before_the_current_one(home: Path) -> None:
    make_repository(home / "origin", branch="trunk")
    git(home, "clone", "-q", "origin", "project")
    git(home / "project", "switch", "-q", "-c", "topic")
    assert init(opened(home / "project")).base == "trunk"


def test_a_base_that_is_named_comes_first(home: Path) -> None:
    folder = make_repository(home / "project")
    git(folder, "branch", "other")
    assert init(opened(folder), base="refs/heads/other").base == "other"


def test_a_detached_head_asks_for_a_base(home: Path) -> None:
    folder = make_repository(home / "project")
    git(folder, "switch", "-q", "--detach")
    before = all_refs(folder)
    with pytest.raises(UsageFault) as caught:
        init(opened(folder))
    assert caught.value.hint == "Name the branch with --base."
    assert all_refs(folder) == before
    assert init(opened(folder), base="master").created


@pytest.mark.parametrize(
    "base", ["missing", "-x", "a b", "a..b", "gittasks", "x.lock", "/x", "x/", "@"]
)
def test_a_base_that_cannot_be_is_refused(home: Path, base: str) -> None:
    folder = make_repository(home / "project")
    before = all_refs(folder)
    with pytest.raises(UsageFault):
        init(opened(folder), base=base)
    assert all_refs(folder) == before


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("refs/heads/gittasks", "There is a branch gittasks already"),
        ("refs/tags/gittasks", "The tag gittasks"),
        ("refs/heads/gittasks/x", "The branch gittasks/x leaves no room"),
        ("refs/heads/task", "The branch task leaves no room"),
    ],
)
def test_what_stands_in_the_way_is_named_and_nothing_is_written(
    home: Path, ref: str, words: str
) -> None:
    folder = make_repository(home / "project")
    git(folder, "update-ref", ref, "HEAD")
    before = all_refs(folder)
    with pytest.raises(Refused) as caught:
        init(opened(folder))
    assert words in caught.value.message
    assert all_refs(folder) == before


def test_a_branch_in_the_way_of_a_folder_is_named(home: Path) -> None:
    folder = make_repository(home / "project", branch="a")
    with pytest.raises(Refused, match="The branch a leaves no room for a/b"):
        init(opened(folder), branch="a/b")


def test_another_name_is_remembered_in_the_settings_of_the_clone(home: Path) -> None:
    folder = make_repository(home / "project")
    assert init(opened(folder), branch="team/ledger").branch == "team/ledger"
    assert git(folder, "config", "gittasks.branch") == "team/ledger"
    assert opened(folder).ledger.exists
    assert not init(opened(folder)).created


def test_another_name_or_base_for_a_ledger_that_is_there_is_refused(home: Path) -> None:
    folder = make_repository(home / "project")
    git(folder, "branch", "other")
    init(opened(folder))
    before = all_refs(folder)
    for wanted in ({"branch": "elsewhere"}, {"base": "other"}):
        with pytest.raises(Refused):
            init(opened(folder), **wanted)
    assert all_refs(folder) == before


def test_an_agent_begins_no_ledger(home: Path) -> None:
    folder = make_repository(home / "project")
    with pytest.raises(WrongRole):
        init(opened(folder, environ={"GITTASKS_AGENT": "bot"}))


def test_a_bare_repository_can_have_a_ledger(home: Path) -> None:
    make_repository(home / "project")
    git(home, "clone", "-q", "--bare", "project", "bare.git")
    assert init(opened(home / "bare.git")).created


def test_outside_of_a_repository_there_is_no_ledger(home: Path) -> None:
    (home / "empty").mkdir()
    with pytest.raises(Exception, match="is not in a git repository") as caught:
        opened(home / "empty")
    assert not isinstance(caught.value, GittasksError)


def test_two_at_once_begin_one_ledger(home: Path) -> None:
    folder = make_repository(home / "project")
    processes = [tasks_process(folder, "init") for _ in range(4)]
    first_lines = sorted(process.communicate()[0].splitlines()[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert first_lines == [
        *["Already initialised: the ledger is the branch gittasks; nothing to do."] * 3,
        "Created the ledger on the branch gittasks.",
    ]
    assert git(folder, "rev-list", "--count", "gittasks", "--") == "2"


def test_a_lost_ledger_is_recovered_and_not_begun_again(home: Path) -> None:
    folder = make_repository(home / "project")
    init(opened(folder))
    (folder / ".git/refs/heads/gittasks").unlink()
    tip = git(folder, "rev-parse", "refs/gittasks/backup")
    assert init(opened(folder)).created is False
    assert git(folder, "rev-parse", "gittasks") == tip
