"""What an agent is told: the brief and the prompt of its state, and the words for each issue.

The prompts are those that came with the tool, each replaced as a whole by the file of the same
name in the ledger's `prompts/`, as it is at the tip: an agent cannot change what it will be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain import machine
from gittasks.domain.errors import NotAllowed
from gittasks.ledger import layout
from gittasks.prompts import fragments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gittasks.domain.events import CheckResult
    from gittasks.domain.task import Task
    from gittasks.domain.turn import Issue
    from gittasks.prompts.fragments import Prompts, Value
    from gittasks.workflow.project import Project

BRIEF = "brief"
CHECK_FAILED = "check-failed"

_REMARKS = 10
"""How many of the latest remarks on a task its next holder is told."""
_REMARKED = ("note", "hold", "resume", "release")


class Preview(NamedTuple):
    """What an agent would be sent for a task: the text, and the files it is made of.

    `files` tells for each prompt the blob of the override, None where it is the tool's own.
    """

    task: Task
    text: str
    files: Mapping[str, str | None]


def prompts_of(project: Project) -> Prompts:
    """Returns the prompts of a project at the ledger's tip; raises BadPrompts for faulty ones.

    A runner that meets faulty ones while it works goes on with those it has, and says so.
    """
    from gittasks.plumbing.objects import object_id

    stored = {
        path.rpartition("/")[2].removesuffix(".md"): data
        for path, data in project.ledger.snapshot.texts(layout.PROMPTS).items()
    }
    return fragments.load(
        {name: data.decode("utf-8", "surrogateescape") for name, data in stored.items()},
        {name: object_id(project.repo, "blob", data) for name, data in stored.items()},
    )


def names_of(task: Task) -> tuple[str, str]:
    """Returns the prompts of a dispatch: the brief, and that of the state, with findings or without.

    Raises NotAllowed for a state that no agent works in.
    """
    if task.state not in fragments.PROMPTS:
        owner = machine.STAGE[task.state].role
        whose = f"is the {owner}'s" if owner else "is nobody's"
        raise NotAllowed(
            f"No agent is sent anything for {task.id}: it is at {task.state}, which {whose}.",
            "Name a task at one of "
            f"{', '.join(state for state in machine.STAGE if state in fragments.PROMPTS)}.",
            task.id,
        )
    is_redo = task.findings is not None and task.findings.state == task.state
    return BRIEF, f"{task.state}-with-findings" if is_redo else task.state


def dispatch_prompt(project: Project, prompts: Prompts, task: Task) -> tuple[str, dict[str, str]]:
    """Returns what begins a fresh session on a task, and the blobs of the overrides it is made of."""
    names = names_of(task)
    text = "\n".join(_rendered(project, prompts, name, task) for name in names)
    return text, {name: prompts.ids[name] for name in names if name in prompts.ids}


def check_failed_prompt(project: Project, prompts: Prompts, task: Task) -> str:
    """Returns what is said to a session that goes on because the checks of its work have failed."""
    return _rendered(project, prompts, CHECK_FAILED, task)


def nudge(prompts: Prompts, issue: Issue, task: Task, detail: str = "") -> str:
    """Returns what is said to a session about an issue of its turn; the detail is quoted."""
    values: dict[str, Value] = {name: fact(task) for name, fact in _OF_TASK.items()}
    values["commit"] = (task.dispatched or "")[:12] or "HEAD"
    values["details"] = ({"detail": detail},) if detail.strip() else ()
    return prompts.render(issue, **values)


def preview(project: Project, task_id: str) -> Preview:
    """Returns what an agent would be sent now for a task, whether or not somebody holds it."""
    task = project.task(task_id, reading=True)
    names = names_of(task)
    prompts = prompts_of(project)
    text, ids = dispatch_prompt(project, prompts, task)
    return Preview(task, text, {name: ids.get(name) for name in names})


# ----------------------------------------------------------------------------------------- the facts


def _rendered(project: Project, prompts: Prompts, name: str, task: Task) -> str:
    values: dict[str, Value] = {}
    for variable in fragments.PROMPTS[name].variables:
        fact = _OF_TASK.get(variable)
        values[variable] = fact(task) if fact else _OF_PROJECT[variable](project, task)
    return prompts.render(name, **values)


def _is_author(task: Task) -> bool:
    return machine.STAGE[task.state].heading is not None


def _has_draft(project: Project, task: Task) -> bool:
    from gittasks.workflow.claim import former_draft

    return former_draft(project, task) is not None


def _findings(_project: Project, task: Task) -> tuple[dict[str, str], ...]:
    items = task.findings.items if task.findings else ()
    return tuple({"finding": item} for item in items)


def _checks(_project: Project, task: Task) -> tuple[dict[str, str], ...]:
    return tuple({"command": command} for command in task.checks)


def _moved(project: Project, task: Task) -> tuple[dict[str, str], ...]:
    """Returns how far the base has gone on without a branch that has commits."""
    from gittasks.plumbing import merging
    from gittasks.workflow import dispatch

    found = project.ledger.reader.get(dispatch.base_name(project))
    if found is None or task.base in (None, found.oid) or project.options.at is not None:
        return ()
    # A branch without commits is moved to the present base when it is handed out.
    if not dispatch.has_own_commits(project, task):
        return ()
    count = len(merging.commits_between(project.repo, str(task.base), found.oid))
    return ({"count": str(count), "commit": found.oid[:12]},) if count else ()


def _remarks(project: Project, task: Task) -> tuple[dict[str, str], ...]:
    """Returns what was said since somebody last took the task before, oldest first."""
    said: list[dict[str, str]] = []
    own = task.claim is not None
    for event in project.ledger.history(task.id):
        if event.kind == "claim":
            if not own:
                break
            own = False
        elif event.kind in _REMARKED and event.text and event.text.strip():
            said.append({"by": event.actor, "remark": event.text})
        if len(said) == _REMARKS:
            break
    return tuple(reversed(said))


def _failures(project: Project, task: Task) -> tuple[dict[str, str], ...]:
    """Returns how the checks failed that the findings come from; outputs as far as kept here."""
    from gittasks.workflow.check import logs_of
    from gittasks.workspaces import checks

    failures = []
    for number, result in _failed_results(project, task):
        log = logs_of(project, task.id, f"{number}.log")
        tail = checks.tail_of(log, result.digest)
        output = "(its output is not kept here)" if tail is None else tail or "(nothing)"
        words = checks.Outcome(result, log, "").words
        failures.append({"command": result.command, "result": words, "output": output})
    return tuple(failures)


def _failed_results(project: Project, task: Task) -> Iterator[tuple[int, CheckResult]]:
    """Yields the commands of the last check that failed, with their numbers."""
    from gittasks.domain.events import CheckRefuted

    found = task.findings
    if not task.check_failures or found is None or found.state != task.state:
        return
    for event in project.ledger.history(task.id):
        if isinstance(event.change, CheckRefuted):
            for number, result in enumerate(event.change.results, 1):
                if result.exit:
                    yield number, result
            return


_OF_TASK: dict[str, Callable[[Task], Value]] = {
    "id": lambda task: task.id,
    "title": lambda task: task.title,
    "state": lambda task: task.state,
    "role": lambda task: machine.STAGE[task.state].role or "",
    "author": _is_author,
    "reviewer": lambda task: not _is_author(task),
}
_OF_PROJECT: dict[str, Callable[[Project, Task], Value]] = {
    "draft": _has_draft,
    "findings": _findings,
    "checks": _checks,
    "moved": _moved,
    "remarks": _remarks,
    "failures": _failures,
}
