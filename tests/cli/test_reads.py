"""The commands that only look: lists, one task, history, where things stand."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_main import EXPENSIVE, loaded
from tests.support.cli import COMMAND, Result, environment, tasks_inprocess
from tests.support.git import git, make_repository

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x9b31m"


@pytest.fixture
def project(home: Path) -> Path:
    folder = make_repository(home / "project")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    tasks_inprocess(folder, "init", "-q")
    return folder


@pytest.fixture
def four(project: Path) -> Path:
    """A task at WORK, one that waits for it, a new one, a proposal."""
    new(project, "Lay the ground", "--enter", "work", "--check", "true", "--label", "ui")
    new(project, "Build on it", "--dep", "1", "--enter", "design", "--priority", "0")
    new(project, "Paint /home/ada/wall", "--parent", "1", "-m", "Blue.\n\n- or green")
    tasks_inprocess(project, "new", "Add a door", "--as", "eve", env={"GITTASKS_AGENT": "eve"})
    return project


def new(folder: Path, *args: str) -> str:
    return tasks_inprocess(folder, "new", *args).out.strip()


def tip(folder: Path) -> str:
    return git(folder, "rev-parse", "refs/heads/gittasks")


def data(folder: Path, *args: str) -> Any:
    answer = tasks_inprocess(folder, *args, "--json").json()
    assert answer["ledger"] == tip(folder)
    assert answer["schema_version"] == 1
    return answer["data"]


def steady(text: str) -> str:
    """Returns the text with what differs from run to run made equal."""
    text = re.sub(r"\b\d+ (s|min)\b", "<age>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "<time>", text)
    return re.sub(r"\b[0-9a-f]{10,40}\b", "<id>", text)


def worked(folder: Path, task: str, actor: str = "wanda") -> Path:
    """Returns the tree of a task that was started and has a commit."""
    tree = Path(tasks_inprocess(folder, "start", task, "--as", actor).out.strip())
    (tree / "src").mkdir(exist_ok=True)
    (tree / "src" / "new.txt").write_text("hello\n", encoding="utf-8")
    (tree / "src" / "test_new.py").write_text("assert True\n", encoding="utf-8")
    git(tree, "add", "src")
    git(tree, "commit", "-q", "-m", "Work")
    return tree


def rejected(folder: Path) -> Path:
    """Leaves task 1 at WORK with a finding, its check passed once."""
    tasks_inprocess(folder, "trust", "1")
    tree = worked(folder, "1")
    tasks_inprocess(tree, "submit", "-m", "Done.", "--as", "wanda")
    tasks_inprocess(folder, "claim", "1", "--as", "rob")
    tasks_inprocess(folder, "feedback", "1", "--as", "rob", "-m", "Say\nmore.")
    return tree


# -- list


def test_a_list_has_one_line_for_each_open_task(four: Path) -> None:
    assert tasks_inprocess(four, "list") == Result(
        0,
        "000001  WORK            Lay the ground\n"
        "000002  BLOCKED         Build on it\n"
        "000003  NEW             Paint /home/ada/wall\n"
        "000004  NEW             Add a door\n",
        "",
    )


def test_a_claimed_task_shows_its_holder(four: Path) -> None:
    tasks_inprocess(four, "claim", "1", "--as", "wanda", "--no-worktree")
    assert tasks_inprocess(four, "ls", "--limit", "2") == Result(
        0,
        "000001  WORK            wanda  Lay the ground\n"
        "000002  BLOCKED                Build on it\n",
        "2 more; use --limit to see them.\n",
    )


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--state", "new"], [3, 4]),
        (["--state", "WORK,blocked"], [1, 2]),
        (["--state", "work", "--state", "new"], [1, 3, 4]),
        (["--role", "worker"], [1]),
        (["--role", "manager"], [3, 4]),
        (["--label", "ui"], [1]),
        (["--label", "u"], []),
        (["--parent", "#1"], [3]),
        (["--roots"], [1, 2, 4]),
        (["--blocked"], [2]),
        (["--sort", "priority"], [2, 1, 3, 4]),
        (["--sort", "title"], [4, 2, 1, 3]),
        (["--sort", "blocking", "--limit", "1"], [1]),
        (["--mine", "--as", "nobody"], []),
        (["--limit", "0"], []),
    ],
)
def test_a_list_is_what_the_filters_leave(four: Path, options: list[str], ids: list[int]) -> None:
    printed = tasks_inprocess(four, "list", *options).out.splitlines()
    assert [int(line[:6]) for line in printed] == ids
    assert [int(task["id"]) for task in data(four, "list", *options)] == ids


def test_mine_is_what_i_hold_or_shall_take(four: Path) -> None:
    tasks_inprocess(four, "claim", "1", "--as", "wanda", "--no-worktree")
    tasks_inprocess(four, "edit", "3", "--set", "assignee=wanda")
    assert [task["id"] for task in data(four, "list", "--mine", "--as", "wanda")] == [
        "000001",
        "000003",
    ]


def test_closed_tasks_are_listed_only_when_asked_for(four: Path) -> None:
    tasks_inprocess(four, "abort", "4", "--reason", "No door.")
    assert [task["id"] for task in data(four, "list")] == ["000001", "000002", "000003"]
    assert [task["outcome"] for task in data(four, "list", "--all")][3] == "aborted"
    assert [task["id"] for task in data(four, "list", "--state", "closed")] == ["000004"]


def test_a_list_for_machines_has_whole_tasks_without_bodies(four: Path) -> None:
    answer = tasks_inprocess(four, "list", "--json", "--limit", "3").json()
    assert (answer["kind"], answer["truncated"]) == ("tasks", 1)
    assert "problems" not in answer
    third = answer["data"][2]
    assert (third["title"], third["depends_on"], third["labels"]) == (
        "Paint /home/ada/wall",
        [],
        [],
    )
    assert third["assignee"] is None
    assert "body" not in third


def test_an_empty_list_is_an_empty_answer(project: Path) -> None:
    assert tasks_inprocess(project, "list") == Result(0, "", "")
    for command in ("list", "ready", "inbox"):
        assert data(project, command) == []


@pytest.mark.parametrize(
    ("line", "status", "told"),
    [
        (["list", "--state", "nowhere"], 2, "error: 'NOWHERE' is not a state.\n"),
        (["list", "--parent", "9"], 4, "error: There is no task 000009.\n"),
        (["list", "--sort", "luck"], 2, "error: Invalid value for '--sort': "),
        (["list", "--limit", "-1"], 2, "error: Invalid value for '--limit': "),
        (["show", "7"], 4, "error: There is no task 000007.\n"),
        (["show", "000000"], 4, "error: There is no task '000000': "),
        (["show", "--", "-x"], 4, "error: There is no task '-x': "),
        (["show"], 2, "error: No task is named, "),
        (["log", "9"], 4, "error: There is no task 000009.\n"),
        (["log", "--since", "gibberish"], 2, "error: 'gibberish' is no date, "),
        (["log", "--since", "master"], 4, "error: The commit master is not part of the ledger.\n"),
        (["diff", "9"], 4, "error: There is no task 000009.\n"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    four: Path, line: list[str], status: int, told: str
) -> None:
    result = tasks_inprocess(four, *line, check=status)
    assert result.out == ""
    assert result.err.startswith(told)


# -- one task


def _ageless(shown: str) -> str:
    """Returns what was shown without its age, which goes on between two looks."""
    return re.sub(r"for \d+ s", "for a while", shown)


@pytest.mark.parametrize("spelling", ["3", "000003", "#3", "task/000003", "0003"])
def test_a_task_is_shown_however_it_is_spelled(four: Path, spelling: str) -> None:
    shown = tasks_inprocess(four, "show", spelling).out
    assert shown.startswith("000003 Paint /home/ada/wall\n")
    assert _ageless(tasks_inprocess(four, spelling).out) == _ageless(shown)


def test_a_task_is_shown_with_all_that_hangs_on_it(four: Path) -> None:
    assert steady(tasks_inprocess(four, "1").out) == (
        "000001 Lay the ground\n"
        "state      WORK, for <age>\n"
        "labels     ui\n"
        "needed by  000002 (BLOCKED) Build on it\n"
        "children   000003 (NEW) Paint /home/ada/wall\n"
        "check      true\n"
        "created    <time> by Ada\n"
    )
    assert steady(tasks_inprocess(four, "2").out) == (
        "000002 Build on it\n"
        "state      BLOCKED, for <age>\n"
        "enters     DESIGN\n"
        "priority   0\n"
        "needs      000001 (WORK, waited for) Lay the ground\n"
        "created    <time> by Ada\n"
    )
    assert steady(tasks_inprocess(four, "3").out) == (
        "000003 Paint /home/ada/wall\n"
        "state      NEW, for <age>\n"
        "parent     000001\n"
        "created    <time> by Ada\n"
        "\n"
        "Blue.\n"
        "\n"
        "- or green\n"
    )


def test_a_task_whose_prerequisite_was_thrown_away_says_so(four: Path) -> None:
    tasks_inprocess(four, "hold", "1", "-m", "Wait.")
    tasks_inprocess(four, "reparent", "3", "--root")
    tasks_inprocess(four, "abort", "1")
    assert "waits      000001 was aborted\n" in tasks_inprocess(four, "show", "2").out
    assert data(four, "show", "2")["aborted_dependencies"] == ["000001"]
    row = data(four, "inbox")[0]
    assert (row["id"], row["rank"], row["reason"], row["command"]) == (
        "000002",
        5,
        "000001 was aborted",
        "git tasks dep rm 000002 000001",
    )


def test_rounds_and_checks_are_told_from_the_history(four: Path) -> None:
    rejected(four)
    shown = data(four, "show", "1")
    (one,) = shown["rounds"]
    assert {**one, "at": "<time>"} == {
        "round": 1,
        "review": "WORK_REVIEW",
        "findings": ["Say\nmore."],
        "actor": "rob",
        "at": "<time>",
    }
    assert one["at"].endswith("Z")
    assert shown["last_check"]["outcome"] == "pass"
    assert shown["last_check"]["results"][0]["command"] == "true"
    assert shown["findings"] == {"state": "WORK", "round": 1, "items": ["Say\nmore."]}
    text = tasks_inprocess(four, "show", "1").out
    assert "last check exit 0: true\n" in text
    assert "findings for WORK, round 1:\n  - Say\n    more.\n" in text


def test_what_came_back_is_remembered_and_completed(four: Path) -> None:
    tree = rejected(four)
    first = data(four, "show", "1")
    assert git_calls(four, "show", "1") == ["rev-parse", "config", "(started) cat-file"]
    assert data(four, "show", "1") == first
    (tree / "more.txt").write_text("more\n", encoding="utf-8")
    git(tree, "add", "more.txt")
    git(tree, "commit", "-q", "-m", "More")
    tasks_inprocess(four, "claim", "1", "--as", "wanda")
    tasks_inprocess(tree, "submit", "-m", "More.", "--as", "wanda")
    tasks_inprocess(four, "claim", "1", "--as", "rob")
    tasks_inprocess(four, "feedback", "1", "--as", "rob", "-m", "Again.")
    second = data(four, "show", "1")
    assert [row["findings"] for row in second["rounds"]] == [["Say\nmore."], ["Again."]]
    assert second["rounds"][0] == first["rounds"][0]
    assert second["last_check"]["commit"] == git(tree, "rev-parse", "HEAD")
    remembered = four / ".git" / "gittasks" / "rounds" / "000001.json"
    remembered.unlink()
    assert data(four, "show", "1") == second


@pytest.mark.parametrize("text", ["", "[]", "{}", "[1]", '[1, "x", "y", "z", [], null]', "\0"])
def test_what_is_remembered_may_be_anything(four: Path, text: str) -> None:
    rejected(four)
    shown = data(four, "show", "1")
    remembered = four / ".git" / "gittasks" / "rounds" / "000001.json"
    kept = json.loads(remembered.read_text(encoding="utf-8"))
    remembered.write_text(text, encoding="utf-8")
    assert data(four, "show", "1") == shown
    # The commit of the last look is not in this ledger.
    other = git(four, "rev-parse", "master")
    for tip in (other, "0" * 40):
        kept[2:4] = [tip, "another document"]
        remembered.write_text(json.dumps(kept), encoding="utf-8")
        assert data(four, "show", "1") == shown


def test_where_nothing_can_be_remembered_it_is_told_all_the_same(four: Path) -> None:
    rejected(four)
    (four / ".git" / "gittasks" / "rounds").write_text("in the way", encoding="utf-8")
    assert len(data(four, "show", "1")["rounds"]) == 1


def test_a_reviewer_sees_every_round_and_the_change(four: Path) -> None:
    rejected(four)
    text = steady(tasks_inprocess(four, "show", "1", "--review").out)
    assert "round 1 of WORK_REVIEW by rob, <time>:\n  - Say\n    more.\n" in text
    assert "+++ b/src/new.txt\n@@ -0,0 +1 @@\n+hello\n" in text
    change = data(four, "show", "1", "--review")["change"]
    assert change["files"] == [
        {"status": "A", "path": "src/new.txt"},
        {"status": "A", "path": "src/test_new.py"},
    ]


def test_a_document_is_given_byte_for_byte(four: Path) -> None:
    body = "\n\n    code\n---\nlast \x1b[1m line"
    (four / "body").write_text(body, encoding="utf-8")
    new(four, "Bytes", "-F", "body")
    stored = git(four, "cat-file", "blob", "gittasks:tasks/0000/000005.md")
    done = subprocess.run(
        [*COMMAND, "show", "5", "--raw"], cwd=four, env=environment(), capture_output=True,
        check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.decode() == stored
    assert stored.endswith(body)
    assert data(four, "show", "5", "--raw") == {"id": "000005", "document": stored}
    assert data(four, "show", "5")["body"] == body


# -- ready and inbox


def test_ready_is_in_dispatch_order(four: Path) -> None:
    new(four, "Design something", "--enter", "design")
    new(four, "Do it now", "--enter", "work", "--priority", "0")
    assert tasks_inprocess(four, "ready") == Result(
        0,
        "000006  WORK           Do it now\n"
        "000001  WORK           Lay the ground\n"
        "000005  DESIGN         Design something\n",
        "",
    )
    assert tasks_inprocess(four, "queue", "--role", "designer").out == (
        "000005  DESIGN         Design something\n"
    )
    assert [task["id"] for task in data(four, "next", "--limit", "2")] == ["000006", "000001"]
    assert tasks_inprocess(four, "ready", "--one").out == "000006  WORK           Do it now\n"


def test_ready_leaves_out_what_is_assigned_to_somebody_else(four: Path) -> None:
    tasks_inprocess(four, "edit", "1", "--set", "assignee=wanda")
    assert [task["id"] for task in data(four, "ready", "--as", "eve")] == []
    assert [task["id"] for task in data(four, "ready", "--as", "wanda")] == ["000001"]
    assert [task["id"] for task in data(four, "ready")] == ["000001"]


def test_where_one_is_wanted_and_none_is_ready_the_exit_says_so(project: Path) -> None:
    assert tasks_inprocess(project, "ready", "--one", check=10) == Result(
        10, "", "error: Nothing is ready.\nhint: Run `git tasks status` to see what waits.\n"
    )


def test_the_inbox_is_ranked_and_names_the_commands(four: Path) -> None:
    tasks_inprocess(four, "hold", "1", "-m", "Which ground?")
    assert steady(tasks_inprocess(four, "inbox").out) == (
        "000001  HELD_WORK  <age>  git tasks resume 000001  Lay the ground (Which ground?)\n"
        "000004  NEW        <age>  git tasks submit 000004  Add a door (proposed by eve)\n"
        "000003  NEW        <age>  git tasks submit 000003  Paint [path] (not dispatched yet)\n"
    )
    answer = tasks_inprocess(four, "inbox", "--json", "--limit", "2").json()
    assert answer["truncated"] == 1
    assert [
        (row["id"], row["rank"], row["reason"], row["blocking"], row["waiting_since"])
        for row in answer["data"]
    ] == [
        ("000001", 2, "Which ground?", 1, answer["data"][0]["entered_at"]),
        ("000004", 9, "proposed by eve", 0, answer["data"][1]["entered_at"]),
    ]


def test_checks_that_nobody_here_approved_wait_in_the_inbox(four: Path) -> None:
    tasks_inprocess(four, "trust", "1", "--revoke")
    tree = worked(four, "1")
    tasks_inprocess(tree, "submit", "-m", "Done.", "--as", "wanda", check=None)
    row = data(four, "inbox")[0]
    assert (row["id"], row["state"], row["rank"], row["command"]) == (
        "000001",
        "CHECK",
        8,
        "git tasks trust 000001",
    )
    assert data(four, "status")["inbox_count"] == 3


# -- status


def test_the_bare_command_says_where_things_stand(four: Path) -> None:
    tasks_inprocess(four, "claim", "1", "--as", "wanda", "--no-worktree")
    shown = tasks_inprocess(four, "--as", "wanda").out
    assert steady(shown) == (
        "yours    000001 WORK Lay the ground\n"
        "open     2 NEW, 1 BLOCKED, 1 WORK\n"
        "running  1\n"
        "ready    0\n"
        "inbox    2\n"
        "  000004  NEW  <age>  git tasks submit 000004  Add a door (proposed by eve)\n"
        "  000003  NEW  <age>  git tasks submit 000003  Paint [path] (not dispatched yet)\n"
    )
    assert steady(tasks_inprocess(four, "status", "--as", "wanda").out) == steady(shown)


def test_status_for_machines_is_bounded(project: Path) -> None:
    title = "A long title with emoji 👩 " * 18
    new(project, title)
    one = tasks_inprocess(project, "status", "--json").out
    for _ in range(9):
        new(project, title, "-m", "x" * 10_000)
        new(project, title, "--enter", "work", "--parent", "1")
    for number in range(3, 20, 2):
        tasks_inprocess(project, "claim", str(number), "--as", title, "--no-worktree")
    many = tasks_inprocess(project, "status", "--json", "--as", title).out
    assert len(one) <= 8_000
    assert len(many) <= 25_000
    said = json.loads(many)["data"]
    assert len(said["attention_queue"]["items"]) == 5
    assert said["attention_queue"]["truncated"] == said["inbox_count"] - 5
    assert (len(said["mine"]), said["mine_truncated"]) == (5, 4)


def test_status_says_who_works_and_what_is_waited_for(four: Path) -> None:
    assert data(four, "status")["working_state"] == {
        "_tag": "Idle",
        "workerCount": 0,
        "waiting_on": "agent",
        "children": {},
        "children_truncated": 0,
    }
    tasks_inprocess(four, "submit", "3", "--enter", "work")
    tasks_inprocess(four, "claim", "3", "--as", "wanda", "--no-worktree")
    assert data(four, "status")["working_state"] == {
        "_tag": "Working",
        "workerCount": 1,
        "waiting_on": "agent",
        "children": {"000001": 1},
        "children_truncated": 0,
    }
    tasks_inprocess(four, "hold", "1", "-m", "Wait.")
    tasks_inprocess(four, "hold", "3", "-m", "Wait.")
    assert data(four, "status")["working_state"]["waiting_on"] == "manager"


def test_an_empty_project_waits_for_nothing(project: Path) -> None:
    said = data(project, "status")
    assert said["working_state"]["waiting_on"] == "none"
    assert said["attention_queue"] == {"items": [], "truncated": 0}
    assert tasks_inprocess(project).out == "open     none\nrunning  0\nready    0\ninbox    0\n"


def test_in_a_worktree_its_task_is_meant(four: Path) -> None:
    tree = worked(four, "1")
    assert tasks_inprocess(tree / "src", "show").out.startswith("000001 Lay the ground\n")
    assert tasks_inprocess(tree, ".").out.startswith("000001 Lay the ground\n")
    assert tasks_inprocess(tree).out.startswith("here     000001 WORK Lay the ground\n")
    assert data(tree, "status")["task"]["id"] == "000001"
    assert tasks_inprocess(tree, "whoami", "--json").json()["data"]["task"] == "000001"


# -- history


def test_the_log_tells_the_ledger_newest_first(four: Path) -> None:
    tasks_inprocess(four, "note", "1", "Remember\nthis.")
    assert steady(tasks_inprocess(four, "log").out) == (
        "<id> <time>  000001 note WORK (manager Ada)\n"
        "    Remember\n"
        "    this.\n"
        "<id> <time>  000004 create -> NEW (none eve): Add a door\n"
        "<id> <time>  000003 create -> NEW (manager Ada): Paint /home/ada/wall\n"
        "<id> <time>  000002 submit NEW -> BLOCKED (manager Ada)\n"
        "<id> <time>  000002 create -> NEW (manager Ada): Build on it\n"
        "<id> <time>  000001 submit NEW -> WORK (manager Ada)\n"
        "<id> <time>  000001 create -> NEW (manager Ada): Lay the ground\n"
        "<id> <time>  init (operator Ada)\n"
    )


def test_the_log_of_one_task_has_its_events_only(four: Path) -> None:
    tasks_inprocess(four, "note", "2", "This speaks of\nTask: 000001")
    events = [(row["event"], row["from"], row["to"]) for row in data(four, "log", "1")]
    assert events == [("submit", "NEW", "WORK"), ("create", None, "NEW")]
    assert len(data(four, "log", "2", "--limit", "2")) == 2
    lines = tasks_inprocess(four, "log", "--jsonl", "--limit", "3").out.splitlines()
    assert [json.loads(line)["task"] for line in lines] == ["000002", "000004", "000003"]


def test_the_log_since_a_commit_or_a_date_is_what_is_newer(four: Path) -> None:
    before = tip(four)
    tasks_inprocess(four, "note", "1", "New.")
    assert [row["event"] for row in data(four, "log", "--since", before)] == ["note"]
    assert [row["event"] for row in data(four, "log", "1", "--since", before)] == ["note"]
    assert data(four, "log", "--since", "gittasks") == []
    assert len(data(four, "log", "--since", "1.hour")) == 8
    assert data(four, "log", "--since", "2099-01-01") == []


def test_a_diff_is_against_the_point_where_the_branch_left(four: Path) -> None:
    assert tasks_inprocess(four, "diff", "1") == Result(
        0, "", "000001 has no commits of its own yet.\n"
    )
    assert data(four, "diff", "1") is None
    tree = worked(four, "1")
    (four / "other.txt").write_text("other\n", encoding="utf-8")
    git(four, "add", "other.txt")
    git(four, "commit", "-q", "-m", "Meanwhile")
    text = tasks_inprocess(tree, "diff").out
    assert text.count("diff --git") == 2
    assert "other.txt" not in text
    assert tasks_inprocess(four, "diff", "1", "--stat").out == (
        " src/new.txt     | 1 +\n src/test_new.py | 1 +\n 2 files changed, 2 insertions(+)\n"
    )
    assert tasks_inprocess(four, "diff", "1", "--tests").out.count("diff --git") == 1
    change = data(four, "diff", "1", "--tests")
    assert change["files"] == [{"status": "A", "path": "src/test_new.py"}]
    assert change["base"] == git(four, "rev-parse", "master~1")


# -- hostile text, broken documents, terminals


def test_no_text_of_a_task_can_steer_the_terminal(four: Path) -> None:
    tasks_inprocess(four, "note", "1", HOSTILE, "--as", HOSTILE)
    tasks_inprocess(four, "claim", "1", "--as", HOSTILE, "--no-worktree")
    tasks_inprocess(four, "edit", "3", "-m", HOSTILE, "--set", f'labels=["{"x" * 3}\u202e"]',
                    check=None)  # fmt: skip
    lines: list[list[str]] = [
        [], ["list"], ["show", "1"], ["show", "3"], ["log"], ["inbox"], ["ready"], ["whoami"],
        ["status", "--as", HOSTILE], ["claim", "1", "--as", "eve"], ["show", HOSTILE],
        ["list", "--state", HOSTILE], [HOSTILE], ["list", "--json"], ["log", "--json"],
    ]  # fmt: skip
    for line in lines:
        result = tasks_inprocess(four, *line, check=None)
        for text in (result.out, result.err):
            unsafe = [c for c in text if not c.isprintable() and c not in "\n\u200d"]
            assert unsafe == [], (line, text)


def test_a_document_that_does_not_verify_is_told_and_the_others_are_listed(four: Path) -> None:
    path = "tasks/0000/000002.md"
    broken = git(four, "cat-file", "blob", f"gittasks:{path}").replace("id:", "deps: [1]\nid:", 1)
    commit_by_hand(four, path, broken + "\n")
    result = tasks_inprocess(four, "list")
    assert [line[:6] for line in result.out.splitlines()] == ["000001", "000003", "000004"]
    assert result.err.startswith(f"warning: The document {path} does not verify.\n")
    answer = tasks_inprocess(four, "list", "--json").json()
    (problem,) = answer["problems"]
    assert (problem["path"], problem["task"]) == (path, "000002")
    refused = tasks_inprocess(four, "show", "2", check=9)
    assert refused.err.startswith(f"error: The document {path} does not verify.\n")
    assert "depends_on" in refused.err
    assert tasks_inprocess(four, "show", "2", "--raw").out == broken + "\n"
    assert data(four, "status")["problem_count"] == 1


def test_what_leaves_the_team_quotes_no_secret_of_a_bad_document(four: Path) -> None:
    path = "tasks/0000/000002.md"
    text = git(four, "cat-file", "blob", f"gittasks:{path}")
    commit_by_hand(four, path, text.replace("BLOCKED", '"token=hunter2x"') + "\n")
    assert "token=hunter2x" in tasks_inprocess(four, "list").err
    for command in ("ready", "inbox", "status"):
        for line in ([command], [command, "--json"]):
            result = tasks_inprocess(four, *line)
            assert "hunter2x" not in result.out + result.err


def commit_by_hand(folder: Path, path: str, text: str) -> None:
    """Commits a file to the ledger as somebody with an editor would."""
    index = {"GIT_INDEX_FILE": str(folder / "index.by-hand")}
    git(folder, "read-tree", "gittasks", env=index)
    oid = git(folder, "hash-object", "-w", "--stdin", stdin=text)
    git(folder, "update-index", "--add", "--cacheinfo", f"100644,{oid},{path}", env=index)
    tree = git(folder, "write-tree", env=index)
    commit = git(folder, "commit-tree", tree, "-p", "gittasks", "-m", "By hand")
    git(folder, "update-ref", "refs/heads/gittasks", commit)
    (folder / "index.by-hand").unlink()


def test_a_person_gets_lists_in_their_pager_with_colours(four: Path) -> None:
    printed = on_terminal(four, ["list"], {"GIT_PAGER": "sed 's/^/paged: /'", "NO_COLOR": None})
    assert printed.splitlines()[0] == "paged: \x1b[33m000001\x1b[m  WORK            Lay the ground"


@pytest.mark.parametrize(
    ("line", "env"),
    [
        (["list", "--no-pager"], {"GIT_PAGER": "sed 's/^/paged: /'"}),
        (["ready"], {"GIT_PAGER": "sed 's/^/paged: /'"}),
        (["list"], {"GIT_PAGER": "cat"}),
        (["-c", "core.pager=cat"], {}),
    ],
)
def test_a_person_who_wants_no_pager_gets_none(
    four: Path, line: list[str], env: dict[str, str]
) -> None:
    if line[0] == "-c":
        git(four, "config", "core.pager", "cat")
        line = ["list"]
    printed = on_terminal(four, line, env)
    assert printed.splitlines()[0].split() == ["000001", "WORK", "Lay", "the", "ground"]


def test_long_lines_are_cut_on_a_terminal_only(project: Path) -> None:
    new(project, "word " * 40)
    printed = on_terminal(project, ["list", "--no-pager"], {"COLUMNS": "40"})
    assert printed == "000001  NEW             word word word …\r\n"
    assert len(tasks_inprocess(project, "list", env={"COLUMNS": "40"}).out) > 200


def on_terminal(folder: Path, line: list[str], env: dict[str, str] | dict[str, str | None]) -> str:
    """Returns what a command prints on a terminal."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            [*COMMAND, *line], cwd=folder, env=environment({"TERM": "xterm", **env}),
            stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL, check=True,
            timeout=60,
        )  # fmt: skip
        return os.read(ours, 65_536).decode()
    finally:
        os.close(theirs)
        os.close(ours)


# -- what it costs


@pytest.mark.parametrize(
    "line",
    [
        [], ["status"], ["list"], ["list", "--json"], ["ready"], ["ready", "--json"], ["inbox"],
        ["inbox", "--json"], ["show", "1"], ["show", "1", "--json"],
    ],
)  # fmt: skip
def test_no_read_loads_what_is_expensive(four: Path, line: list[str]) -> None:
    modules = loaded(four, *line)
    assert "gittasks.ledger.ledger" in modules
    assert modules.isdisjoint({*EXPENSIVE, "click"})


@pytest.mark.parametrize(
    ("line", "processes"),
    [(["list"], 2), (["ready"], 2), (["inbox"], 3), (["status"], 2), (["show", "1"], 3)],
)
def test_a_warm_read_starts_few_git_processes(four: Path, line: list[str], processes: int) -> None:
    tasks_inprocess(four, *line)
    assert len(git_calls(four, *line)) == processes


def git_calls(folder: Path, *line: str) -> list[str]:
    """Returns the verbs of the git processes that a command starts."""
    done = subprocess.run(
        [*COMMAND, *line], cwd=folder, env=environment({"GITTASKS_TRACE": "1"}),
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    calls = re.findall(r"ms  git ((?:\(started\) )?\S+)", done.stderr.decode())
    return [str(call) for call in calls]
