"""Whatever is asked in whatever order: no command ends in a defect, and the ledger verifies."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.cases.ground import Team
from tests.support.git import git

AGENTS = ("wim", "rita", "dora", "Mia Manager")
STEPS = 120


class Walker:
    """Does something sensible or senseless to some task, as some agent or as the manager."""

    def __init__(self, team: Team, seed: int) -> None:
        """Starts with eight tasks, some of which wait for others."""
        self.team = team
        self.pick = random.Random(seed)
        self.said: list[tuple[str | None, tuple[str, ...], int]] = []
        for number in range(8):
            needs = ("--dep", str(self.pick.randint(1, number))) if number > 3 else ()
            entry = self.pick.choice(("work", "work", "design", "plan"))
            team.manager("new", f"Task {number}", "--enter", entry, *needs)

    def tree(self, task: str) -> Path:
        return self.team.folder.with_name("project.tasks") / f"{int(task):06d}" / "tree"

    def step(self) -> None:
        """Takes a step on the way to a landing, most of the time."""
        if self.pick.random() < 0.6:
            self.forward()
        else:
            task = str(self.pick.randint(1, 10))
            if self.pick.random() < 0.4:
                self.meddle(task)
            who = self.pick.choice((*AGENTS, None, None))
            self.ask(who, self.pick.choice(self.anything(task)), task)

    def forward(self) -> None:
        rows = self.team.manager("list", "--json").json()["data"]
        if not rows:
            return
        row = self.pick.choice(rows)
        task, state, holder = row["id"], row["state"], row["claimed_by"]
        if state in ("NEW", "BLOCKED"):
            self.ask(None, ("submit", task, "--enter", "work"))
        elif state.startswith("HELD"):
            self.ask(None, (self.pick.choice(("resume", "resume", "abort")), task))
        elif state == "MANAGER_REVIEW":
            self.ask(None, self.pick.choice((("submit", task), ("feedback", task, "-m", "More."))))
        elif state == "CHECK":
            self.ask(None, ("check", task, "--record"))
        elif holder is None:
            self.ask(self.pick.choice(AGENTS), ("start", task))
        elif state.endswith("REVIEW"):
            self.ask(holder, self.pick.choice((("submit", task), ("feedback", task, "-m", "No."))))
        else:
            if state == "WORK":
                self.commit(task)
            self.ask(holder, ("submit", task, "-m", "Done."))

    def commit(self, task: str) -> None:
        tree = self.tree(task)
        if (tree / ".git").exists():
            name = f"{self.pick.choice('abcdef')}.txt"
            (tree / name).write_text(str(self.pick.random()), encoding="utf-8")
            git(tree, "add", "-A", check=False)
            git(tree, "commit", "-q", "-m", "Work", check=False)

    def meddle(self, task: str) -> None:
        """Does with plain git and a file manager what nobody should."""
        tree = self.tree(task)
        if not (tree / ".git").exists():
            return
        match self.pick.randint(1, 8):
            case 1:
                shutil.rmtree(tree)
            case 2:
                (tree / "junk").write_text("junk\n", encoding="utf-8")
            case 3:
                git(tree, "switch", "-q", "--detach", check=False)
            case 4:
                git(tree, "reset", "-q", "--hard", "master", check=False)
            case 5:
                git(tree, "merge", "-q", "master", check=False)
            case 6:
                self.team.git("branch", "-q", "-D", f"task/{int(task):06d}", check=False)
            case 7:
                git(tree, "switch", "-q", "-c", f"own-{self.pick.random()}", check=False)
            case _:
                self.commit(task)

    def anything(self, task: str) -> list[tuple[str, ...]]:
        other = str(self.pick.randint(1, 10))
        texts = ("-m", "Text.")
        return [
            ("claim", task), ("start", task), ("start",), ("release", task), ("submit", task, "-n"),
            ("release", task, "--force"), ("submit", task, *texts), ("submit", task, "--close"),
            ("submit", task, "--no-check", *texts), ("submit", task, "--no-change", *texts),
            ("feedback", task, *texts), ("feedback", task, "--from-landing"), ("resume", task),
            ("hold", task, *texts), ("abort", task), ("abort", task, "--recursive"),
            ("check", task), ("check", task, "--merged"), ("check", task, "--record"),
            ("dep", "add", task, other), ("dep", "rm", task, other), ("reparent", task, other),
            ("reparent", task, "--root"), ("reorder", task, "--before", other),
            ("new", "Child", "--parent", task), ("new", "Instead", "--supersedes", task),
            ("new", "After", "--dep", task, "--enter", "work", "--check", "test -e a.txt"),
            ("edit", task, "--title", "New"), ("edit", task, *texts), ("edit", task, *texts, "--force"),
            ("edit", task, "--set", 'checks=["test ! -e f.txt"]'), ("note", task, "--seen"),
            ("note", task, "--artifact", "a=b"), ("prime", task), ("diff", task), ("trust", task),
            ("show", task, "--review"), ("worktree", "remove", task), ("worktree", "repair"),
            ("worktree", "remove", task, "--force"), ("gc",), ("recover",), ("inbox",),
            ("config", "landing", self.pick.choice(("merge", "rebase", "squash"))),
        ]  # fmt: skip

    def ask(self, who: str | None, words: tuple[str, ...], task: str = "") -> None:
        tree = self.tree(task) if task else self.team.folder
        at = tree if self.pick.random() < 0.3 and (tree / ".git").exists() else None
        if who is None:
            said = self.team.manager(*words, check=None)
        else:
            said = self.team.agent(who, *words, at=at, check=None)
        self.said.append((who, words, said.status))
        assert said.status in (0, 2, 4, 5, 6, 7, 10), (self.said[-5:], said)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_anything_may_be_asked_in_any_order(team: Team, seed: int) -> None:
    """Guards against the one order of commands that nobody has thought of."""
    walker = Walker(team, seed)
    for _ in range(STEPS):
        walker.step()
    team.manager("recover")
    team.manager("fsck")
    assert team.git("fsck", "--connectivity-only", "--no-dangling") == ""
    assert team.git("status", "--porcelain") == ""
    assert team.leftovers() == []
    assert {status for _, _, status in walker.said} >= {0, 5}
