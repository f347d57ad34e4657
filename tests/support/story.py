"""A whole project's day on a real repository, by scripts without a terminal.

Fifteen tasks with dependencies and a hierarchy: a full design-plan-work pipeline, rejections, a
second rejection, a held task, an abort, a failing check, a prerequisite that is thrown away, and
four workers that are nothing but shell loops. `play` leaves twelve landings on the base.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.cli import COMMAND, environment, tasks
from tests.support.git import git

PEOPLE = {
    "GIT_AUTHOR_NAME": "Script",
    "GIT_AUTHOR_EMAIL": "script@example.org",
    "GIT_COMMITTER_NAME": "Script",
    "GIT_COMMITTER_EMAIL": "script@example.org",
}

TEAM = """
while :; do
    tree=$(git-tasks start)
    case $? in 0) ;; 10) exit 0 ;; *) exit 1 ;; esac
    (
        cd "$tree" || exit 1
        task=$(basename "$(dirname "$tree")")
        case $(git-tasks prime) in
        *"State: WORK,"*)
            mkdir -p story && echo "$GITTASKS_AGENT did $task" > "story/$task.txt"
            git add story && git commit -q -m "Write story/$task.txt" || exit 1
            git-tasks submit -m "1. Wrote story/$task.txt." ;;
        *) git-tasks submit ;;
        esac
    ) || exit 1
done
"""


class Story(NamedTuple):
    """What was played: the repository, the ids that landed, the one that was aborted."""

    repository: Path
    landed: tuple[str, ...]
    aborted: str


class Player:
    """Speaks to the real command as one actor after the other."""

    def __init__(self, repository: Path) -> None:
        """Takes the folder of the user's checkout."""
        self.repository = repository

    def manager(self, *args: str, check: int | None = 0) -> str:
        """Runs a command as the person at the machine; returns what it prints."""
        return tasks(self.repository, *args, check=check, env=PEOPLE).out.strip()

    def agent(self, name: str, *args: str, cwd: str | None = None, check: int | None = 0) -> str:
        """Runs a command as an agent of this name; returns what it prints."""
        env = {**PEOPLE, "GITTASKS_AGENT": name}
        return tasks(cwd or self.repository, *args, check=check, env=env).out.strip()

    def new(self, title: str, *args: str) -> str:
        """Creates a task and returns its id."""
        return self.manager("new", title, *args)

    def state(self, task: str) -> str:
        """Returns the state of a task."""
        shown = tasks(self.repository, "show", task, "--json", env=PEOPLE).json()
        return str(shown["data"]["state"])

    def work(self, task: str, name: str, text: str, *, check: int = 0) -> str:
        """Claims, writes story/<task>.txt, commits and submits as a worker."""
        tree = self.agent(name, "start", task)
        file = Path(tree, "story", f"{task}.txt")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        git(tree, "add", "story", env=PEOPLE)
        git(tree, "commit", "-q", "-m", f"Write story/{task}.txt", env=PEOPLE)
        return self.agent(name, "submit", "-m", f"1. {text.strip()}", cwd=tree, check=check)

    def stage(self, task: str, name: str, text: str) -> None:
        """Claims and submits a design or a plan."""
        tree = self.agent(name, "start", task)
        self.agent(name, "submit", "-m", text, cwd=tree)

    def approve(self, task: str, name: str = "rita") -> None:
        """Claims and approves a review."""
        tree = self.agent(name, "start", task)
        self.agent(name, "submit", cwd=tree)

    def reject(self, task: str, finding: str, name: str = "rita") -> None:
        """Claims a review and sends it back."""
        tree = self.agent(name, "start", task)
        self.agent(name, "feedback", "-m", finding, cwd=tree)

    def land(self, task: str) -> None:
        """Lands a task as the manager."""
        self.manager("submit", task)


def play(repository: Path, scratch: Path) -> Story:
    """Plays the day in a repository that has a first commit; returns what came of it."""
    player = Player(repository)
    player.manager("init")
    first = player.new("Write the first page", "--enter", "work", "--check", "test -d story")
    piped = player.new("Design the second page", "--dep", first, "--enter", "design")
    once = player.new("Write a page that is rejected once", "--enter", "work")
    twice = player.new("Write a page that is rejected twice", "--enter", "work")
    held = player.new("Write a page that needs an answer", "--enter", "work")
    dropped = player.new("Write a page nobody wants", "--enter", "work")
    failing = player.new("Write a page that fails at first", "--enter", "work",
                         "--check", "! grep -r wrong story")  # fmt: skip
    after = player.new("Write a page after the one nobody wants", "--dep", dropped,
                       "--enter", "work")  # fmt: skip
    whole = player.new("Write five pages")
    parts = [player.new(f"Write part {n}", "--parent", whole, "--enter", "work") for n in "12345"]

    player.work(first, "ada", "the first page\n")
    player.approve(first)
    player.land(first)
    _pipeline(player, piped)
    _rejections(player, once, twice)
    _hold_and_abort(player, held, dropped, after)
    _failing_check(player, failing)
    _team(player, scratch, parts)
    player.manager("submit", whole, "--close")
    landed = (first, piped, once, twice, held, failing, after, *parts, whole)
    return Story(repository, landed, dropped)


def _pipeline(player: Player, task: str) -> None:
    player.stage(task, "dora", "One page, one file.")
    player.reject(task, "Say which file.")
    player.stage(task, "dora", "One page in story/.")
    player.approve(task)
    player.stage(task, "paul", "1. Write the page.")
    player.approve(task)
    player.work(task, "ada", "the second page\n")
    player.approve(task)
    player.land(task)


def _rejections(player: Player, once: str, twice: str) -> None:
    player.work(once, "ada", "a page\n")
    player.reject(once, "It says too little.")
    player.work(once, "ada", "a page that says more\n")
    player.approve(once)
    player.land(once)
    player.work(twice, "bert", "a page\n")
    player.reject(twice, "It says too little.")
    player.work(twice, "bert", "the same page\n")
    player.reject(twice, "It still says too little.")
    assert player.state(twice) == "HELD_WORK"
    player.manager("resume", twice)
    player.work(twice, "bert", "a page that says enough\n")
    player.approve(twice)
    player.land(twice)


def _hold_and_abort(player: Player, held: str, dropped: str, after: str) -> None:
    tree = player.agent("carl", "start", held)
    player.agent("carl", "hold", "--reason", "Which page?", cwd=tree)
    player.manager("note", held, "The fifth one.")
    player.manager("resume", held)
    player.work(held, "carl", "the fifth page\n")
    player.approve(held)
    player.land(held)
    player.agent("carl", "start", dropped)
    player.manager("hold", dropped, "--reason", "Nobody wants it.")
    player.manager("abort", dropped, "--reason", "Nobody wants it.")
    assert player.state(after) == "BLOCKED"
    player.manager("dep", "rm", after, dropped)
    player.work(after, "carl", "the page after\n")
    player.approve(after)
    player.land(after)


def _failing_check(player: Player, task: str) -> None:
    player.work(task, "ada", "wrong\n", check=7)
    assert player.state(task) == "WORK"
    player.work(task, "ada", "right\n")
    player.approve(task)
    player.land(task)


def _team(player: Player, scratch: Path, parts: list[str]) -> None:
    """Lets four shell loops take what is ready until nothing is, then lands the parts."""
    scratch.mkdir(parents=True, exist_ok=True)
    command = scratch / "git-tasks"
    words = " ".join(f"'{word}'" for word in COMMAND)
    command.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    loops = []
    for number in range(4):
        env = {**environment(), **PEOPLE, "GITTASKS_AGENT": f"loop-{number}"}
        env["PATH"] = f"{scratch}{os.pathsep}{env['PATH']}"
        loops.append(
            subprocess.Popen(
                ["sh", "-c", TEAM],
                cwd=player.repository,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    said = [loop.communicate(timeout=300)[0] for loop in loops]
    assert [loop.returncode for loop in loops] == [0, 0, 0, 0], "\n".join(said)
    for part in parts:
        if player.state(part) == "WORK_REVIEW":
            player.approve(part)
        player.land(part)


def main() -> None:
    """Plays the day in the repository given, and prints its ledger: python -m tests.support.story."""
    repository, scratch = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    story = play(repository, scratch)
    print(git(repository, "log", "--oneline", "--reverse", "gittasks", "--"))
    print(f"{len(story.landed)} landed, {story.aborted} aborted")


if __name__ == "__main__":
    main()
