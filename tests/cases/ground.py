"""A small repository with a ledger, and the people who work in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.cli import Result, tasks_inprocess
from tests.support.git import git, make_repository


class Team:
    """Speaks to the command as one person or agent after the other, in one repository."""

    def __init__(
        self, folder: Path, *, files: Mapping[str, str] | None = None, like: Path | None = None
    ) -> None:
        """Makes a repository with one commit, an identity and a ledger, or copies such a one."""
        self.folder = folder
        if like is not None:
            shutil.copytree(like, folder, symlinks=True)
            return
        make_repository(folder, files=files)
        git(self.folder, "config", "user.name", "Mia Manager")
        git(self.folder, "config", "user.email", "mia@example.org")
        self.manager("init")

    def manager(self, *args: str, check: int | None = 0, stdin: str | None = None) -> Result:
        """Runs a command as the person whose checkout it is."""
        return tasks_inprocess(self.folder, *args, check=check, stdin=stdin)

    def agent(self, name: str, *args: str, at: Path | None = None, check: int | None = 0) -> Result:
        """Runs a command as an agent, in the user's checkout or in a tree."""
        return tasks_inprocess(at or self.folder, *args, check=check, env={"GITTASKS_AGENT": name})

    def git(self, *args: str, at: Path | None = None, check: bool = True) -> str:
        """Returns what git says in the user's checkout, or in a tree."""
        return git(at or self.folder, *args, check=check)

    def new(self, title: str, *args: str) -> str:
        """Writes a task down, ready for a worker unless said otherwise; returns its id."""
        entry = () if "--enter" in args or "--idle" in args else ("--enter", "work")
        rest = tuple(word for word in args if word != "--idle")
        return self.manager("new", title, *entry, *rest).out.strip()

    def show(self, task: str) -> Any:
        """Returns the task as machines see it."""
        return self.manager("show", task, "--json").json()["data"]

    def state(self, task: str) -> str:
        """Returns the state of the task."""
        return str(self.show(task)["state"])

    def start(self, task: str, name: str = "wim") -> Path:
        """Takes the task and returns its tree."""
        return Path(self.agent(name, "start", task).out.strip())

    def commit(self, tree: Path, files: Mapping[str, str], message: str = "Work") -> str:
        """Commits files in a tree and returns the commit."""
        for file, text in files.items():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_text(text, encoding="utf-8")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", message)
        return git(tree, "rev-parse", "HEAD")

    def work(
        self, task: str, files: Mapping[str, str], name: str = "wim", *, check: int | None = 0
    ) -> Path:
        """Takes the task, commits the files and submits; returns the tree."""
        tree = self.start(task, name)
        self.commit(tree, files, f"Work on {task}")
        self.agent(name, "submit", "-m", "Done as asked.", at=tree, check=check)
        return tree

    def approve(self, task: str, name: str = "rita") -> None:
        """Takes the review and finds nothing wrong."""
        self.agent(name, "claim", task)
        self.agent(name, "submit", task)

    def reject(self, task: str, finding: str, name: str = "rita") -> None:
        """Takes the review and sends the task back."""
        self.agent(name, "claim", task)
        self.agent(name, "feedback", task, "-m", finding)

    def reviewed(self, title: str, files: Mapping[str, str], *args: str) -> str:
        """Brings a new task to the manager's review; returns its id."""
        task = self.new(title, *args)
        self.work(task, files)
        self.approve(task)
        return task

    def tip(self) -> str:
        """Returns the tip of the ledger."""
        return self.git("rev-parse", "refs/heads/gittasks")

    def events(self) -> int:
        """Returns how many commits the ledger has."""
        return int(self.git("rev-list", "--count", "refs/heads/gittasks"))

    def subjects(self) -> list[str]:
        """Returns the subjects of the ledger, newest first."""
        return self.git("log", "--format=%s", "refs/heads/gittasks", "--").splitlines()

    def document(self, task: str, *, revision: str = "refs/heads/gittasks") -> bytes:
        """Returns the stored document of a task, byte for byte."""
        number = f"{int(task):06d}"
        for folder in ("tasks", "closed"):
            path = f"{folder}/{number[:4]}/{number}.md"
            if self.git("ls-tree", revision, path):
                text = self.git("cat-file", "blob", f"{revision}:{path}")
                size = int(self.git("cat-file", "-s", f"{revision}:{path}"))
                data = text.encode("utf-8", "surrogateescape")
                return data + b"\n" * (size - len(data))
        raise AssertionError(f"There is no document of {number}.")

    def write_by_hand(self, files: Mapping[str, bytes | None], *, message: str = "By hand") -> str:
        """Commits files to the ledger as somebody with plain git would; None removes one."""
        index = {"GIT_INDEX_FILE": str(self.folder / ".git/index.of-the-test")}
        git(self.folder, "read-tree", "refs/heads/gittasks", env=index)
        for path, data in files.items():
            if data is None:
                git(self.folder, "update-index", "--force-remove", path, env=index)
                continue
            blob = git(self.folder, "hash-object", "-w", "--stdin", stdin=data)
            git(
                self.folder,
                "update-index",
                "--add",
                "--cacheinfo",
                f"100644,{blob},{path}",
                env=index,
            )
        tree = git(self.folder, "write-tree", env=index)
        os.unlink(index["GIT_INDEX_FILE"])
        commit = git(self.folder, "commit-tree", tree, "-p", self.tip(), "-m", message)
        git(self.folder, "update-ref", "refs/heads/gittasks", commit)
        return commit

    def checkout(self) -> tuple[str, ...]:
        """Returns all that git says about the user's checkout and its index."""
        asked = (
            ("status", "--porcelain=v2", "--branch", "--untracked-files=all", "--ignored"),
            ("diff",), ("diff", "--cached"), ("ls-files", "--stage", "--debug"),
            ("stash", "list"), ("symbolic-ref", "-q", "HEAD"), ("rev-parse", "HEAD"),
        )  # fmt: skip
        return tuple(self.git("--no-optional-locks", *words, check=False) for words in asked)

    def leftovers(self) -> list[str]:
        """Returns lock files and half-written files below the git directory."""
        found = []
        for folder, _, names in os.walk(self.folder / ".git"):
            found += [
                os.path.join(folder, name)
                for name in names
                if name.endswith((".lock", ".part")) or name.startswith("tmp_obj")
            ]
        return found


def path_of(task: str) -> str:
    """Returns where the document of an open task is stored."""
    return f"tasks/{int(task):06d}"[:10] + f"/{int(task):06d}.md"


def error_of(result: Result) -> Any:
    """Returns the error of an answer for machines, which is the only document there is."""
    document = json.loads(result.out)
    assert "data" not in document
    return document["error"]
