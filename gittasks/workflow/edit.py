"""Changes what a document says: by options, or as a whole in the editor."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain import decide, frontmatter, machine
from gittasks.domain.errors import Cycle, GittasksError, Refused, UsageFault
from gittasks.domain.fields import BadDocument, shown
from gittasks.domain.requests import Edit
from gittasks.plumbing import editor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.task import Task
    from gittasks.domain.task_graph import Graph
    from gittasks.workflow.project import Outcome, Project

_LISTS = ("labels", "checks", "depends_on")
_Edited = tuple[tuple[tuple[str, Any], ...], tuple[str, ...], bytes | None]


class Kept(NamedTuple):
    """A text that a person has written and that could not be taken: where it is kept."""

    path: str

    def refusal(self, error: GittasksError) -> GittasksError:
        """Returns the refusal with the place of the text in its hint."""
        hint = f"Correct {self.path}, which keeps your text."
        error.hint = f"{error.hint} {hint}" if error.hint else hint
        return error


def edit(
    project: Project,
    spelling: str | None,
    *,
    title: str | None = None,
    assignments: Sequence[str] = (),
    unset: Sequence[str] = (),
    body: bytes | None = None,
    force: bool = False,
) -> Outcome:
    """Sets fields (spelled NAME=VALUE, lists as JSON), empties others, replaces the body."""
    task = project.resolve(spelling)
    values = [_assignment(spelled, project) for spelled in assignments]
    if title is not None:
        values.append(("title", title))
    names = [name for name, _ in values]
    for name in names:
        if names.count(name) > 1 or name in unset:
            raise UsageFault(f"The field {name} is named twice.", "Say once what it shall be.")
    request = Edit(task, tuple(values), tuple(unset), body, force=force)
    return _carry_out(project, task, lambda _graph: (request,), dict(values).get("checks", ()))


def in_editor(
    project: Project,
    spelling: str | None,
    write: Callable[[str], None] | None = None,
    *,
    force: bool = False,
) -> Outcome:
    """Lets `write`, else git's editor, change the document in a file; applies what it changed.

    A result that cannot be taken stays in that file, which the refusal names.
    """
    task = project.resolve(spelling)
    before = project.task(task)
    graph = project.ledger.graph()
    # Whoever may not edit hears it before typing anything.
    decide.decide(graph, Edit(task), project.facts(project.speaker("edit", task)))
    body = graph.body(task)
    data, kept = by_hand(project, f"{task}.md", frontmatter.render(before, body), write)
    try:
        changes, dropped, new_body = _differences(before, body, data)

        def requests(fresh: Graph) -> tuple[Edit]:
            _require_untouched(fresh, before, body, changes, dropped, new_body)
            return (Edit(task, changes, dropped, new_body, force=force),)

        outcome = _carry_out(project, task, requests, dict(changes).get("checks", ()))
    except GittasksError as error:
        raise kept.refusal(error) from None
    forget(kept)
    return outcome


def by_hand(
    project: Project, name: str, text: bytes, write: Callable[[str], None] | None = None
) -> tuple[bytes, Kept]:
    """Returns what a person makes of a text in a file of its own, and the file."""
    folder = os.path.join(project.state_dir, "edit")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    # A folder of its own for each: two editors may be open on one document.
    path = os.path.join(folder, f"{os.urandom(4).hex()}-{name}")
    with open(path, "wb") as file:
        file.write(text)
    kept = Kept(path)
    try:
        if write is None:
            editor.edit(project.repo, path, project.environ)
        else:
            write(path)
    except BaseException:
        forget_unchanged(kept, text)
        raise
    with open(path, "rb") as file:
        return file.read(), kept


def forget(kept: Kept) -> None:
    """Removes the file of a text that was taken."""
    os.unlink(kept.path)


def forget_unchanged(kept: Kept, text: bytes) -> None:
    """Removes the file if nothing was written into it."""
    with open(kept.path, "rb") as file:
        same = file.read() == text
    if same:
        forget(kept)


def _carry_out(
    project: Project,
    task: str,
    requests: Callable[[Graph], tuple[Edit]],
    checks: Sequence[str],
) -> Outcome:
    speaker = project.speaker("edit", task)
    appended = project.apply(requests, speaker)
    if checks:
        from gittasks.workflow.trust import approve_own

        approve_own(project, checks, speaker.actor)
    return project.outcome(task, appended)


def _assignment(spelled: str, project: Project) -> tuple[str, Any]:
    name, equals, text = spelled.partition("=")
    name = name.strip()
    if not equals or not name:
        raise UsageFault(
            f"{shown(spelled)} is not spelled NAME=VALUE.", "Write for example --set priority=1."
        )
    if name not in machine.EDITABLE and not name.startswith("x-"):
        raise UsageFault(
            f"The field {shown(name)} is not set by hand.",
            f"Set one of {', '.join(machine.EDITABLE)}, or a key beginning with x-.",
        )
    value = _value(name, text)
    if name == "depends_on" and isinstance(value, list):
        value = [project.resolve(str(one)) for one in value]
    return name, frontmatter.check_field(name, value)


def _value(name: str, text: str) -> Any:
    if name == "priority":
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
    if name not in _LISTS:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list):
        raise UsageFault(
            f"The field {name} is a list, and {shown(text)} is none.",
            f'Write a JSON list, for example --set \'{name}=["one", "two"]\'.',
        )
    return value


def _differences(before: Task, body: bytes, data: bytes) -> _Edited:
    try:
        after, new_body = frontmatter.parse(data, f"{before.id}.md")
    except BadDocument as error:
        if all("cannot depend on itself" in problem.message for problem in error.problems):
            # Well written, and a ring all the same.
            raise Cycle((before.id, before.id), before.id) from None
        # What a person just typed is malformed input; nothing in the ledger is corrupt.
        raise UsageFault(error.message, error.hint, before.id) from None
    changes: list[tuple[str, Any]] = []
    dropped: list[str] = []
    for name, old, new in zip(before._fields, before, after, strict=True):
        if name == "extra" or old == new:
            continue
        if name not in machine.EDITABLE:
            raise UsageFault(
                f"The field {name} is not changed by hand.",
                f"Change only {', '.join(machine.EDITABLE)}, keys beginning with x-, and the body.",
                before.id,
            )
        if new == before._field_defaults.get(name, before):
            dropped.append(name)
        else:
            changes.append((name, new))
    was, now = dict(before.extra), dict(after.extra)
    changes += [(name, text) for name, text in now.items() if was.get(name) != text]
    dropped += [name for name in was if name not in now]
    return tuple(changes), tuple(dropped), new_body if new_body != body else None


def _require_untouched(
    graph: Graph,
    before: Task,
    body: bytes,
    changes: Sequence[tuple[str, Any]],
    dropped: Sequence[str],
    new_body: bytes | None,
) -> None:
    """Refuses to overwrite what somebody else changed while the editor was open."""
    now = graph.get(before.id)
    if now is None:
        return
    here, there = dict(before.extra), dict(now.extra)
    moved = [
        name
        for name in (*dict(changes), *dropped)
        if (
            here.get(name) != there.get(name)
            if name.startswith("x-")
            else getattr(before, name) != getattr(now, name)
        )
    ]
    if new_body is not None and graph.body(before.id) != body:
        moved.append("body")
    if moved:
        raise Refused(
            f"Somebody else changed the {', '.join(moved)} of {before.id} while you were editing.",
            f"Run `git tasks edit {before.id}` to start from the present text.",
            before.id,
        )
