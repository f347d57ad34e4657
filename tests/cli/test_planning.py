"""The commands that write down, change and order tasks, as a person types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import tasks, tasks_inprocess
from tests.support.git import git, make_repository


@pytest.fixture
def project(home: Path) -> Path:
    folder = make_repository(home / "project")
    tasks_inprocess(folder, "init", "-q")
    return folder


def tip(folder: Path) -> str:
    return git(folder, "rev-parse", "refs/heads/gittasks")


def test_init_says_what_it_made_and_what_it_did_not_touch(home: Path) -> None:
    folder = make_repository(home / "project")
    assert tasks_inprocess(folder, "init").out.splitlines() == [
        "Created the ledger on the branch gittasks.",
        "Tasks land on master.",
        f"Worktrees of tasks stand in {home}/project.tasks.",
        "Not touched: your files, index, current branch, hooks and settings.",
        'Next: git tasks new "What has to be done"',
    ]
    assert tasks_inprocess(folder, "init").out.splitlines()[0] == (
        "Already initialised: the ledger is the branch gittasks; nothing to do."
    )


def test_init_answers_machines(home: Path) -> None:
    folder = make_repository(home / "project")
    answer = tasks_inprocess(folder, "init", "--json").json()
    assert answer["data"] == {
        "created": True,
        "branch": "gittasks",
        "base": "master",
        "worktrees": f"{home}/project.tasks",
        "commit": tip(folder),
        "adopted": None,
        "remote": None,
        "notes": [],
    }


def test_a_clone_takes_over_the_ledger_that_came_with_it(home: Path, project: Path) -> None:
    tasks_inprocess(project, "new", "One")
    git(home, "clone", "-q", str(project), "copy")
    refused = tasks_inprocess(home / "copy", "list", check=3)
    assert refused.err == (
        "error: The ledger is at origin/gittasks, and not yet in this clone.\n"
        "hint: Run `git tasks init` to take it over.\n"
    )
    taken = tasks_inprocess(home / "copy", "init", "--json").json()["data"]
    assert (taken["created"], taken["adopted"]) == (False, "origin/gittasks")
    assert tip(home / "copy") == tip(project)


def test_an_unborn_base_is_said_at_once(home: Path) -> None:
    folder = make_repository(home / "empty", commit=False)
    assert tasks_inprocess(folder, "init").err == (
        "master has no commit yet; work on tasks can start when it has one.\n"
    )


def test_new_prints_exactly_the_id(project: Path) -> None:
    for words in (["new", "One"], ["add", "--title", "Two"]):
        result = tasks_inprocess(project, *words)
        assert result.err == ""
    assert tasks_inprocess(project, "create", "Three", "--json").json()["data"]["id"] == "000003"
    assert tasks_inprocess(project, "new", "Four").out == "000004\n"


def test_new_takes_every_option(project: Path) -> None:
    tasks_inprocess(project, "new", "Before")
    (project / "body.md").write_text("From a file.\n", encoding="utf-8")
    data = tasks_inprocess(
        project, "new", "-F", "body.md", "--dep", "1", "--check", "true", "--label", "ui",
        "--priority", "0", "--parent", "#1", "--follows", "000001", "--assignee", "ann",
        "--enter", "plan", "--json", "All of it",
    ).json()["data"]  # fmt: skip
    wanted = {
        "title": "All of it", "depends_on": ["000001"], "checks": ["true"], "labels": ["ui"],
        "priority": 0, "parent": "000001", "follows": "000001", "assignee": "ann",
        "state": "BLOCKED", "enters": "PLAN", "from": None, "to": "BLOCKED", "unblocked": [],
    }  # fmt: skip
    assert {name: data[name] for name in wanted} == wanted
    assert data["commit"] == tip(project)


def test_paragraphs_of_the_body_are_given_one_by_one(project: Path) -> None:
    tasks_inprocess(project, "new", "One", "-m", "First.", "-m", "Second.")
    assert git(project, "show", "gittasks:tasks/0000/000001.md").endswith("---\nFirst.\n\nSecond.")


def test_a_title_may_begin_with_a_dash_after_two_dashes(project: Path) -> None:
    assert tasks_inprocess(project, "new", "--", "-x").out == "000001\n"


def test_new_from_a_file_prints_one_id_a_line(project: Path) -> None:
    plan = '{"title": "B", "depends_on": ["a"]}\n{"title": "A", "key": "a"}\n'
    result = tasks_inprocess(project, "new", "--from-file", "-", stdin=plan)
    assert (result.out, result.err) == ("000002\n000001\n", "")


def test_new_from_a_file_answers_machines_with_a_list(project: Path) -> None:
    (project / "plan.md").write_text("# One\n\n# Two\n", encoding="utf-8")
    answer = tasks_inprocess(project, "--json", "new", "--from-file", "plan.md").json()
    assert [(one["id"], one["title"]) for one in answer["data"]] == [
        ("000001", "One"), ("000002", "Two"),
    ]  # fmt: skip


def test_a_faulty_file_is_told_line_by_line_and_creates_nothing(project: Path) -> None:
    before = tip(project)
    plan = '{"title": "A"}\n{"titel": "B"}\n'
    result = tasks_inprocess(project, "new", "--from-file", "-", stdin=plan, check=2)
    assert result.err.splitlines()[:3] == [
        "error: stdin has 2 faults; nothing was created.",
        "  line 2, titel: There is no such field; did you mean title?",
        "  line 2, title: The field is missing.",
    ]
    assert (result.out, tip(project)) == ("", before)


@pytest.mark.parametrize(
    "words",
    [
        ("new",),
        ("new", " "),
        ("new", "a", "b"),
        ("new", "a", "--title", "b"),
        ("new", "a", "-m", "x", "-F", "y"),
        ("new", "a", "-F", "missing.md"),
        ("new", "a", "--priority", "5"),
        ("new", "a", "--enter", "check"),
        ("new", "a", "--from-file", "-"),
        ("new", "--from-file", "missing"),
        ("note", "1"),
        ("note", "1", "a", "b"),
        ("reparent", "1"),
        ("reparent", "1", "2", "--root"),
        ("reorder", "1"),
        ("reorder", "1", "--first", "--last"),
        ("dep", "add", "1"),
        ("dep", "frob", "1"),
        ("edit", "1", "--set", "x"),
        ("edit", "1"),
        ("config", "landing", "fast"),
        ("config", "nothing"),
        ("config", "--edit", "template"),
        ("config", "landing", "--unset", "landing"),
    ],
    ids=" ".join,
)
def test_wrong_words_are_exit_2_and_write_nothing(project: Path, words: tuple[str, ...]) -> None:
    tasks_inprocess(project, "new", "One")
    before = tip(project)
    result = tasks_inprocess(project, *words, "--json", check=2)
    error = result.json()["error"]
    assert (error["code"], error["name"], bool(error["message"])) == (2, "USAGE", True)
    assert tip(project) == before


def test_edit_changes_what_is_said(project: Path) -> None:
    tasks_inprocess(project, "new", "One")
    result = tasks_inprocess(project, "edit", "1", "--title", "Other", "--set", "priority=0")
    assert result.out == "000001 edit\n"
    assert tasks_inprocess(project, "edit", "1", "--title", "Other").out == (
        "000001 NEW: nothing to do\n"
    )


def test_edit_takes_a_body_from_stdin(project: Path) -> None:
    tasks_inprocess(project, "new", "One")
    tasks_inprocess(project, "edit", "1", "-F", "-", stdin="A body")
    assert git(project, "show", "gittasks:tasks/0000/000001.md").endswith("---\nA body")


def test_edit_opens_the_editor_of_the_environment_without_a_terminal(project: Path) -> None:
    tasks_inprocess(project, "new", "One")
    result = tasks(project, "edit", "1", env={"GIT_EDITOR": "sed -i s/One/Two/"})
    assert result.out == "000001 edit\n"
    result = tasks(project, "edit", "1", env={"GIT_EDITOR": "true"})
    assert (result.status, result.out) == (0, "000001 NEW: nothing to do\n")


def test_a_ring_through_the_editor_is_refused_and_the_text_kept(project: Path) -> None:
    tasks_inprocess(project, "new", "One")
    tasks_inprocess(project, "new", "Two", "--dep", "1")
    before = tip(project)
    editor = "sed -i '/^title/a depends_on: [\"000002\"]'"
    result = tasks(project, "edit", "1", "--json", env={"GIT_EDITOR": editor}, check=5)
    error = result.json()["error"]
    assert "000001 needs 000002, 000002 needs 000001" in error["message"]
    kept = Path(error["hint"].partition("Correct ")[2].partition(", which")[0])
    assert 'depends_on: ["000002"]' in kept.read_text(encoding="utf-8")
    assert tip(project) == before


def test_an_editor_that_fails_is_exit_1(project: Path) -> None:
    tasks_inprocess(project, "new", "One")
    result = tasks(project, "edit", "1", env={"GIT_EDITOR": "false"}, check=1)
    assert "The editor false ended with status 1." in result.err


def test_notes_are_in_the_log(project: Path) -> None:
    tasks_inprocess(project, "new", "One")
    tasks_inprocess(project, "note", "1", "It is slow.", "--artifact", "report=a.html")
    tasks_inprocess(project, "note", "1", "-F", "-", stdin="From stdin.\n")
    bodies = git(project, "log", "--format=%b", "gittasks", "--")
    assert "    It is slow.\n" in bodies
    assert "    From stdin.\n" in bodies


def test_a_dependency_comes_and_goes(project: Path) -> None:
    tasks_inprocess(project, "new", "One")
    tasks_inprocess(project, "new", "Two", "--enter", "work")
    tasks_inprocess(project, "hold", "2", "-m", "wait")
    assert tasks_inprocess(project, "dep", "add", "2", "#1", "--json").json()["data"][
        "depends_on"
    ] == ["000001"]
    assert tasks_inprocess(project, "dep", "tree", "2").out.splitlines() == [
        "000002 HELD_WORK Two",
        "  000001 NEW One",
    ]
    assert tasks_inprocess(project, "resume", "2").out == "000002 resume HELD_WORK -> BLOCKED\n"
    assert tasks_inprocess(project, "dep", "rm", "2", "1").out == (
        "000002 unblock BLOCKED -> WORK\n"
    )


def test_rings_are_refused_with_the_path_and_the_self_edge_too(project: Path) -> None:
    for title in "1234":
        tasks_inprocess(project, "new", title)
    tasks_inprocess(project, "dep", "add", "1", "2")
    tasks_inprocess(project, "dep", "add", "2", "3")
    before = tip(project)
    third = tasks_inprocess(project, "dep", "add", "3", "1", check=5)
    own = tasks_inprocess(project, "dep", "add", "4", "4", check=5)
    assert "000003 needs 000001, 000001 needs 000002, 000002 needs 000003" in third.err
    assert "000004 needs 000004" in own.err
    assert tip(project) == before
    assert tasks_inprocess(project, "dep", "cycles", "--json").json()["data"] == []


def test_tasks_move_in_the_hierarchy(project: Path) -> None:
    for title in "123":
        tasks_inprocess(project, "new", title)
    assert tasks_inprocess(project, "reparent", "2", "1").out == "000002 reparent\n"
    assert tasks_inprocess(project, "reparent", "2", "--root").out == "000002 reparent\n"
    assert tasks_inprocess(project, "reorder", "3", "--before", "1").out == "000003 reorder\n"
    assert tasks_inprocess(project, "reorder", "3", "--first").out == "000003 NEW: nothing to do\n"


def test_settings_are_read_and_written(project: Path) -> None:
    assert tasks_inprocess(project, "config", "landing").out == "merge\n"
    assert tasks_inprocess(project, "config", "landing", "rebase").out == ""
    assert tasks_inprocess(project, "config", "landing").out == "rebase\n"
    assert (
        tasks_inprocess(project, "config", "--unset", "landing", "--json").json()["data"]["landing"]
        == "merge"
    )
    result = tasks_inprocess(project, "config", "landing", "merge")
    assert (result.out, result.err) == ("", "There is nothing to do.\n")
    assert tasks_inprocess(project, "config").out.splitlines()[2:4] == [
        "base = master", "landing = merge",
    ]  # fmt: skip


def test_a_shared_text_is_edited(project: Path) -> None:
    editor = {"GIT_EDITOR": "f() { echo '## Why' > \"$1\"; }; f"}
    tasks(project, "config", "--edit", "template", env=editor)
    assert tasks_inprocess(project, "config", "template").out == "## Why\n"
    tasks_inprocess(project, "new", "One")
    assert git(project, "show", "gittasks:tasks/0000/000001.md").endswith("---\n## Why")


def test_the_index_and_the_files_of_the_user_stay_as_they_are(project: Path) -> None:
    (project / "app.txt").write_text("two\n", encoding="utf-8")
    git(project, "add", "app.txt")
    (project / "app.txt").write_text("three\n", encoding="utf-8")
    (project / "new.txt").write_text("new\n", encoding="utf-8")
    git(project, "add", "-N", "new.txt")
    before = git(project, "status", "--porcelain=v2"), git(project, "diff", "--cached")
    tasks_inprocess(project, "new", "One", "--enter", "work")
    tasks_inprocess(project, "note", "1", "x")
    tasks_inprocess(project, "edit", "1", "--title", "Two")
    tasks_inprocess(project, "hold", "1", "-m", "stop")
    assert (git(project, "status", "--porcelain=v2"), git(project, "diff", "--cached")) == before


def test_ids_are_understood_in_every_spelling(project: Path) -> None:
    tasks_inprocess(project, "new", "One")
    for spelling in ("1", "000001", "#1", "task/000001", " 1 ", "01"):
        data = tasks_inprocess(project, "note", spelling, "x", "--json").json()["data"]
        assert data["id"] == "000001"
