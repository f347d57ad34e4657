"""The table of commands, loaded one by one from the file named like each, and their overview."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gittasks.cli import frame

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "git tasks"

SECTIONS = ("Every day", "Plan", "Work", "Agents", "Share", "Look", "Keep in order")

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("Every day", "Create the ledger, or take over the one of the remote."),
    "new": ("Every day", "Write down a task and print its id."),
    "list": ("Every day", "List tasks."),
    "show": ("Every day", "Show one task."),
    "log": ("Every day", "Show the ledger as history."),
    "inbox": ("Every day", "List the decisions that wait for the manager."),
    "ready": ("Every day", "List what could be taken, in dispatch order."),
    "claim": ("Every day", "Take a task and print its id."),
    "submit": ("Every day", "Finish the stage; for the manager: dispatch or land."),
    "feedback": ("Every day", "Send findings back to the author."),
    "edit": ("Plan", "Change a task."),
    "note": ("Plan", "Add a note to a task's history."),
    "dep": ("Plan", "Add, remove or look at dependencies."),
    "reparent": ("Plan", "Move a task below another one."),
    "reorder": ("Plan", "Move a task among its siblings."),
    "hold": ("Plan", "Stop a task and ask the manager."),
    "resume": ("Plan", "Let a held task go on."),
    "abort": ("Plan", "Throw a task away; its history stays."),
    "start": ("Work", "Take a task and print the folder to work in."),
    "prime": ("Work", "Say who works here on what, and how to end."),
    "release": ("Work", "Give a task back unfinished."),
    "check": ("Work", "Run a task's checks."),
    "diff": ("Work", "Show what a task changes."),
    "worktree": ("Work", "Find, list, repair or remove the trees of tasks."),
    "trust": ("Work", "Approve commands that came with the ledger."),
    "run": ("Agents", "Run the agents of the pool."),
    "pool": ("Agents", "Look at agents and steer them."),
    "send": ("Agents", "Say something to an agent at work."),
    "kill": ("Agents", "End an agent at work; its task is given back."),
    "tail": ("Agents", "Print what an agent has written."),
    "mcp": ("Agents", "Serve the project to a manager's agent over MCP."),
    "sync": ("Share", "Exchange events with the remote."),
    "push": ("Share", "Give the remote the events of this clone."),
    "pull": ("Share", "Take over the events of others."),
    "status": ("Look", "Say where things stand."),
    "review-packet": ("Look", "Gather what a reviewer needs about one task."),
    "watch": ("Look", "Print the events of the ledger as they come."),
    "graph": ("Look", "Draw tasks and what they need."),
    "timeline": ("Look", "Show when tasks went from state to state."),
    "board": ("Look", "Put everything on one page, as a file or served here."),
    "stats": ("Look", "Show how long the work takes and what it costs."),
    "whoami": ("Look", "Say who is speaking, in which role, and why."),
    "version": ("Look", "Print the versions that matter."),
    "help": ("Look", "Explain a command."),
    "quickstart": ("Look", "Play a two-minute story in a throw-away repository."),
    "config": ("Keep in order", "Read or set what all clones share."),
    "export": ("Keep in order", "Print every task as JSON lines."),
    "import": ("Keep in order", "Take over the tasks of another tool."),
    "fsck": ("Keep in order", "Verify every document and every commit of the ledger."),
    "doctor": ("Keep in order", "Find what is wrong here, and say what helps."),
    "recover": ("Keep in order", "Finish or undo what a crash left."),
    "gc": ("Keep in order", "Remove finished worktrees and branches."),
    "setup": ("Keep in order", "Make git and agents' programs know the tool."),
    "hook": ("", "Answer a git hook."),
}
"""Name, section and one line for each command; its file is named like it.

What has no section is for programs, and the overview leaves it out.
"""

ALIASES: dict[str, str] = {
    "add": "new",
    "create": "new",
    "ls": "list",
    "queue": "ready",
    "next": "ready",
    "reject": "feedback",
}

INSTEAD: dict[str, str] = {
    "done": "Finish a stage with `git tasks submit`; the manager lands the task with it.",
    "complete": "Finish a stage with `git tasks submit`; the manager lands the task with it.",
    "finish": "Finish a stage with `git tasks submit`; the manager lands the task with it.",
    "approve": "Approve with `git tasks submit`, in the role of the reviewer or the manager.",
    "land": "Land a task with `git tasks submit`, as the manager.",
    "merge": "Land a task with `git tasks submit`, as the manager.",
    "delete": "Throw a task away with `git tasks abort`; its history stays.",
    "remove": "Throw a task away with `git tasks abort`; its history stays.",
    "cancel": "Throw a task away with `git tasks abort`; its history stays.",
    "close": "Close a parent with `git tasks submit --close`, or use `git tasks abort`.",
    "assign": "Use `git tasks edit --set assignee=NAME`; who works takes it with `claim`.",
    "undo": "Do the opposite: `resume` after hold, `release` after claim, `feedback` after submit.",
    "fetch": "Take over what others did with `git tasks pull`; `git tasks sync` gives them yours too.",
    "unclaim": "Give a task back with `git tasks release`.",
    "stop": "Stop a task with `git tasks hold`; `git tasks pool stop` ends the agents of this host.",
}
"""Words that are no commands, and what does what they ask for."""

_GLOBAL_HELP_COLUMN = 22


def load(name: str) -> frame.Command | frame.Group:
    """Returns a command from the file that is named like it."""
    from importlib import import_module

    started = time.monotonic()
    # Some words of the command line are no names for Python.
    file = "import_" if name == "import" else name.replace("-", "_")
    command = import_module(f"gittasks.cli.commands.{file}").command
    if os.environ.get("GITTASKS_TRACE", "") not in ("", "0"):
        spent = (time.monotonic() - started) * 1000
        os.write(2, f"trace: {spent:7.1f} ms  import {name}\n".encode())
    assert isinstance(command, frame.Command | frame.Group)
    return command


def is_task_word(word: str) -> bool:
    """Tells whether a word in the place of a command spells a task: 42, #42, task/000042 or a dot."""
    number = word.removeprefix("#").removeprefix("task/")
    return word == "." or (number.isascii() and number.isdigit())


def overview() -> str:
    """Returns the text of `git tasks -h`."""
    lines = [
        "usage: git tasks [<options>] [<command>] [<arguments>]",
        "",
        "Tasks for a team of agents, kept as commits in this repository.",
        "Without a command: where things stand. With a task's id: that task.",
    ]
    for section in SECTIONS:
        lines += ["", f"{section}:"]
        lines += [
            f"  {name:<15}{summary}"
            for name, (place, summary) in COMMANDS.items()
            if place == section
        ]
    lines += ["", "Options, before or after the command:"]
    for option in frame.GLOBALS:
        names = ", ".join(option.names) + (f" {option.metavar}" if option.metavar else "")
        lines.append(f"  {names:<{_GLOBAL_HELP_COLUMN}}{option.help}")
    lines.append(f"  {'--version':<{_GLOBAL_HELP_COLUMN}}print the versions and stop")
    lines += ["", "`git tasks <command> -h` explains one command.", ""]
    return "\n".join(lines)


def suggestion(word: str, names: Sequence[str]) -> str:
    """Returns a hint that names the nearest word, or the way to all of them."""
    nearest = min(names, key=lambda name: (distance(word, name), name))
    if distance(word, nearest) <= max(1, len(word) // 3):
        return f"Did you mean `git tasks {nearest}`?"
    return "Run `git tasks -h` to see the commands."


def distance(one: str, other: str) -> int:
    """Returns how many letters have to be added, dropped, changed or swapped."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        following = [i]
        for j, wanted in enumerate(other, 1):
            steps = min(row[j] + 1, following[j - 1] + 1, row[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                steps = min(steps, before[j - 2] + 1)
            following.append(steps)
        before, row = row, following
    return row[-1]
