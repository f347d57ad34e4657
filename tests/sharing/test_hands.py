"""Hands on the branch in two clones at once: what arrives bad stays apart from what is tidied here."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.cli import tasks, tasks_inprocess
from tests.support.git import git
from tests.support.remotes import two_clones


def _by_hand(clone: Path, task: str, title: str) -> None:
    """Sets a title in the document itself, in a checkout of the branch."""
    tree = clone.parent / f"{clone.name}-by-hand"
    git(clone, "worktree", "add", "-q", str(tree), "gittasks")
    document = tree / "tasks" / "0000" / f"{task}.md"
    text = re.sub(r"(?m)^title: .*$", f"title: {title}", document.read_text(encoding="utf-8"))
    document.write_text(text, encoding="utf-8")
    git(tree, "commit", "-q", "-a", "-m", "by hand")
    git(clone, "worktree", "remove", "--force", str(tree))


def test_what_arrives_bad_stays_apart_while_own_hands_are_tidied(home: Path) -> None:
    _, ada, bob = two_clones(home)
    tasks_inprocess(ada, "init", "--base", "master", "--remote", "origin")
    for title in ("One", "Two"):
        tasks_inprocess(ada, "new", title, "--enter", "work")
    tasks_inprocess(bob, "init", "--remote", "origin")
    _by_hand(ada, "000001", "no")
    _by_hand(bob, "000002", '"Hacked"')
    git(bob, "push", "-q", "origin", "gittasks")
    tasks_inprocess(ada, "sync")
    listed = tasks_inprocess(ada, "list", "--json").json()["data"]
    assert [(row["id"], row["title"]) for row in listed] == [("000001", "One"), ("000002", "Two")]
    rows = tasks_inprocess(ada, "inbox", "--json").json()["data"]
    assert [(row["id"], row["command"]) for row in rows] == [("000002", "git tasks edit 000002")]
    # Nobody could take it.
    ready = tasks_inprocess(ada, "ready", "--json").json()["data"]
    assert [row["id"] for row in ready] == ["000001"]
    assert tasks_inprocess(ada, "status", "--json").json()["data"]["ready_count"] == 1
    line = ("claim", "--next", "--as", "pi", "--no-worktree")
    assert tasks_inprocess(ada, *line).out == "000001\n"
    assert tasks_inprocess(ada, *line, check=10).out == ""
    assert "keeps its last good text" in tasks(ada, "fsck", check=9).out
