"""The resources: what can be read, and followed, under a name of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from gittasks.mcp import reads
from gittasks.mcp.arguments import Arguments
from gittasks.mcp.desk import Answer, refusal_of
from gittasks.workflow import answers, queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from gittasks.mcp.desk import Desk
    from gittasks.workflow.project import Project

SCHEME = "gittasks://"
TEMPLATE = f"{SCHEME}task/{{id}}"
_TASK = "task/"


class Resource(NamedTuple):
    """One resource: its name, what it is, and where its answer comes from."""

    name: str
    description: str
    read: Callable[[Desk], dict[str, Any]]

    @property
    def uri(self) -> str:
        """Returns the name that it is read under."""
        return SCHEME + self.name


def read(desk: Desk, uri: str) -> dict[str, Any] | None:
    """Returns the envelope of a resource, None where there is none of that name."""
    name = _name_of(uri)
    if name is None:
        return None
    if name.startswith(_TASK):
        given = Arguments({"id": name.removeprefix(_TASK)})
        return desk.ask(lambda project: reads.show(project, given))
    return _BY_NAME[name].read(desk)


def is_known(uri: str) -> bool:
    """Tells whether there is a resource of that name; a task need not be there yet."""
    return _name_of(uri) is not None


def _name_of(uri: str) -> str | None:
    if not uri.startswith(SCHEME):
        return None
    name = unquote(uri.removeprefix(SCHEME)).rstrip("/")
    is_task = name.startswith(_TASK) and len(name) > len(_TASK)
    return name if is_task or name in _BY_NAME else None


# What each of them says.


def _changed_last(project: Project) -> Answer:
    """Returns the tasks that have changed their state last, closed ones too, newest first."""
    everything = queries.Filter(include_closed=True)
    found = queries.list_columns(project, everything, ("id",), "age")
    ids = [row[0] for row in found.rows[: -queries.ROW_LIMIT - 1 : -1]]
    tasks = answers.as_tasks(queries.tasks_of(project, ids), redacted=True)
    shown = found._replace(left_out=len(found.rows) - len(ids))
    return Answer("tasks", tasks, answers.announced(shown, redacted=True))


def _slots(project: Project) -> Answer:
    from gittasks.domain.redact import redact_all
    from gittasks.workflow import pool

    found = pool.status(project)
    rows = [
        {**row, "activity": redact_all(row.get("activity")), "why": redact_all(row.get("why"))}
        for row in found.slots
    ]
    return Answer("slots", rows, {"agents_file": found.file, "runners": list(found.runners)})


def _checks(project: Project) -> Answer:
    from gittasks.workflow import pool

    return Answer("checks", list(pool.status(project).checks))


def _paths(project: Project) -> Answer:
    from gittasks.workflow import pool

    state = project.state_dir
    return Answer(
        "paths",
        {
            "repository": project.repo.common_dir,
            "checkout": project.repo.worktree,
            "ledger_branch": project.branch.removeprefix("refs/heads/"),
            "worktrees": project.worktree_root,
            "state": state,
            "agents_file": pool.pool_path(project),
            "agent_logs": f"{state}/agents",
            "check_logs": f"{state}/checks",
            "reports": f"{state}/reports",
        },
    )


def _health(desk: Desk) -> dict[str, Any]:
    """Returns what is broken, which is nothing where all is well."""
    broken: list[dict[str, Any]] = []

    def look(part: str, asked: Callable[[], object]) -> bool:
        try:
            asked()
        except Exception as error:  # noqa: BLE001 - whatever it is, this is where it is told
            broken.append({"part": part, **answers.as_error(refusal_of(error))})
            return False
        return True

    opened: list[Project] = []
    if look("repository", lambda: opened.append(desk.open())):
        (project,) = opened
        look("ledger", lambda: queries.inbox(project, 0))
        look("pool", lambda: _slots(project))
        project.close()
    ledger = None
    if not broken or broken[0]["part"] == "pool":
        ledger = opened[0].ledger.tip
    return answers.envelope("problems", broken, ledger)


def _asking(
    question: Callable[[Project], Answer], *, needs_ledger: bool = True
) -> Callable[[Desk], dict[str, Any]]:
    return lambda desk: desk.ask(question, needs_ledger=needs_ledger)


_ALL = Arguments({"limit": queries.ROW_LIMIT})

RESOURCES: tuple[Resource, ...] = (
    Resource("inbox", "the decisions that wait for the manager",
             _asking(lambda project: reads.inbox(project, _ALL))),
    Resource("tasks", "the tasks that have changed last, closed ones too", _asking(_changed_last)),
    Resource("queue", "what agents could take, in order",
             _asking(lambda project: reads.queue(project, _ALL))),
    Resource("slots", "the agents of this host and what they do", _asking(_slots)),
    Resource("checks", "the checks that run on this host", _asking(_checks)),
    Resource("graph", "the open tasks and what they need",
             _asking(lambda project: reads.graph(project, _ALL))),
    Resource("paths", "where everything is on this host", _asking(_paths, needs_ledger=False)),
    Resource("error", "what is broken; empty where nothing is", _health),
)  # fmt: skip

_BY_NAME = {one.name: one for one in RESOURCES}
