"""What each client is given, and how that goes into its files and out of them.

Registrations and skills go into the checkout, for everybody who works in it; only Codex reads a
server from the user's own settings in any project. A file that was there keeps every other byte,
one that was made goes away again. Links, and whatever cannot be read, are left alone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gittasks.domain.errors import Refused, WrongRole
from gittasks.workflow.registering import json_entry, skills, toml_block
from gittasks.workflow.registering.json_entry import CannotEdit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gittasks.workflow.project import Project

Client = Literal["mcp", "claude", "codex", "pi"]
Action = Literal["make", "insert", "renew", "keep", "leave", "take out", "delete"]

_REGISTRATIONS: dict[Client, str] = {
    "mcp": ".mcp.json", "claude": ".mcp.json", "codex": "", "pi": ".pi/mcp.json",
}  # fmt: skip
_SKILLS: dict[Client, str] = {
    "claude": ".claude/skills", "codex": ".agents/skills", "pi": ".pi/skills",
}  # fmt: skip
_FOLDERS = "setup.json"


class Step(NamedTuple):
    """What happens to one file: where, what, why nothing does, and the lines it is about."""

    path: str
    action: Action
    reason: str = ""
    text: str = ""
    data: bytes | None = None
    """What the file holds afterwards, None for one that goes away."""
    is_skill: bool = False

    def as_object(self) -> dict[str, Any]:
        """Returns the step as JSON has it."""
        return {"path": self.path, "action": self.action, "reason": self.reason, "text": self.text}


def plan(project: Project, client: Client, *, remove: bool = False) -> tuple[Step, ...]:
    """Returns what registering a client, or the opposite, would do; nothing is written."""
    top = _top(project)
    steps = [_removal(project, top, client) if remove else _registration(project, top, client)]
    folder = _SKILLS.get(client)
    for name in skills.NAMES if folder else ():
        assert folder is not None
        path = os.path.join(top, folder, name, "SKILL.md")
        steps.append(_skill_out(top, path) if remove else _skill_in(top, path, name))
    return tuple(step for step in steps if step is not None)


def carry_out(project: Project, steps: Iterable[Step]) -> None:
    """Writes what was planned, and remembers which folders were made for it."""
    known = _folders(project)
    for step in steps:
        if step.action in ("keep", "leave"):
            continue
        if step.data is None:
            os.unlink(step.path)
            for folder in _upwards(os.path.dirname(step.path)):
                if folder not in known or os.listdir(folder):
                    break
                os.rmdir(folder)
                known.remove(folder)
        else:
            known += _make_folders(os.path.dirname(step.path))
            _remember(project, known)
            _write(step.path, step.data)
    _remember(project, known)


def hints(client: Client) -> tuple[str, ...]:
    """Returns what whoever sets up a client should know."""
    if client == "mcp":
        return ("Any other client starts the server with: git tasks mcp",)
    if client == "codex":
        return ("Codex has one list of servers for all projects.",)
    return ()


def _top(project: Project) -> str:
    """Returns the folder that registrations go into; raises where nobody may put them there."""
    if project.tree_task is not None:
        raise Refused(
            f"This is the worktree of {project.tree_task}, in which nothing is registered.",
            "Go to your own checkout.",
        )
    if project.speaker("setup").role != "manager":
        raise WrongRole(
            "Only the person at this machine may register clients.",
            "Run `git tasks whoami` to see why you are somebody else.",
        )
    if project.repo.worktree is None:
        raise Refused("This is no checkout that a client could work in.", "Go to a checkout.")
    return project.repo.worktree


# Registrations.


def _place(project: Project, top: str, client: Client) -> tuple[str, str, Any]:
    """Returns the folder not to leave, the file, and what knows its format."""
    if client != "codex":
        return top, os.path.join(top, _REGISTRATIONS[client]), json_entry
    environ = project.environ
    home = environ.get("CODEX_HOME") or os.path.join(
        environ.get("HOME") or os.path.expanduser("~"), ".codex"
    )
    home = os.path.abspath(home)
    return home, os.path.join(home, "config.toml"), toml_block


def _registration(project: Project, top: str, client: Client) -> Step:
    root, path, form = _place(project, top, client)
    try:
        text = _read(root, path)
        if text is None:
            return Step(path, "make", "", form.whole(), form.whole().encode())
        state = form.state_of(text)
        if state in ("ours", "same"):
            return Step(path, "keep")
        if state == "other":
            raise CannotEdit(f"it has another server named {json_entry.NAME}")
        new = form.renewed(text) if state == "old" else form.added(text)
        action: Action = "renew" if state == "old" else "insert"
        return Step(path, action, "", _new_lines(text, new), new.encode())
    except CannotEdit as error:
        return Step(path, "leave", str(error), form.whole())


def _removal(project: Project, top: str, client: Client) -> Step | None:
    root, path, form = _place(project, top, client)
    try:
        text = _read(root, path)
        if text is None or form.state_of(text) not in ("ours", "old"):
            return None
        if text == form.whole():
            return Step(path, "delete", "", text)
        new = form.removed(text)
        if new is None:
            return Step(path, "delete", "", text)
        return Step(path, "take out", "", _new_lines(new, text), new.encode())
    except CannotEdit as error:
        return Step(path, "leave", str(error), form.whole())


def _new_lines(before: str, after: str) -> str:
    """Returns the lines that only the second text has, and where a line differs, that line."""
    import difflib

    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    found = [
        line
        for kind, _, _, begin, end in matcher.get_opcodes()
        if kind != "equal"
        for line in new[begin:end]
    ]
    return "\n".join(found) + "\n"


# Skills.


def _skill_in(top: str, path: str, name: str) -> Step:
    wanted = skills.text_of(name)
    text = wanted.decode()
    try:
        found = _read(top, path)
    except CannotEdit as error:
        return Step(path, "leave", str(error), text, is_skill=True)
    if found is None:
        return Step(path, "make", "", text, wanted, is_skill=True)
    if found == text:
        return Step(path, "keep", is_skill=True)
    if skills.is_ours(found.encode()):
        return Step(path, "renew", "", text, wanted, is_skill=True)
    return Step(path, "leave", "somebody has changed it", text, is_skill=True)


def _skill_out(top: str, path: str) -> Step | None:
    try:
        found = _read(top, path)
    except CannotEdit as error:
        return Step(path, "leave", str(error), is_skill=True)
    if found is None:
        return None
    if skills.is_ours(found.encode()):
        return Step(path, "delete", "", found, is_skill=True)
    return Step(path, "leave", "somebody has changed it", is_skill=True)


# Files.


def _read(root: str, path: str) -> str | None:
    """Returns a file as it is, None where there is none; raises CannotEdit for all but plain text."""
    here = path
    while here != root and len(here) > len(root):
        if os.path.islink(here):
            raise CannotEdit(f"{here} is a link")
        here = os.path.dirname(here)
    try:
        with open(path, "rb") as file:
            return file.read().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise CannotEdit("it is no text") from None
    except OSError as error:
        raise CannotEdit(f"it cannot be read: {error.strerror}") from None


def _write(path: str, data: bytes) -> None:
    """Replaces a file whole; one that was there keeps its permissions."""
    beside = f"{path}.gittasks-{os.getpid()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        try:
            os.chmod(beside, os.stat(path).st_mode & 0o7777)
        except FileNotFoundError:
            pass
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _make_folders(folder: str) -> list[str]:
    """Makes a folder and those above it; returns the ones that were not there."""
    missing = [one for one in _upwards(folder) if not os.path.isdir(one)]
    os.makedirs(folder, exist_ok=True)
    return missing


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _folders(project: Project) -> list[str]:
    """Returns the folders that were made for what stands in them."""
    from gittasks.workspaces.records import read_json

    found = (read_json(os.path.join(project.state_dir, _FOLDERS)) or {}).get("folders")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _remember(project: Project, folders: list[str]) -> None:
    from gittasks.workspaces.records import write_json

    path = os.path.join(project.state_dir, _FOLDERS)
    if folders:
        write_json(path, {"folders": folders})
    elif os.path.lexists(path):
        os.unlink(path)
