"""Opens the project anew for each request, and turns whatever happens into one JSON answer.

Nothing is kept between requests: whatever was broken and is mended by then works, and what others
have done meanwhile is seen.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.domain.errors import GittasksError, WrongRole
from gittasks.workflow import answers, queries
from gittasks.workflow.failures import report, told
from gittasks.workflow.project import Options, Project

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_OF_AGENTS = (
    "GITTASKS_CLAIM", "GITTASKS_TASK", "GITTASKS_AGENT", "GITTASKS_OUTBOX", "GITTASKS_RUN",
)  # fmt: skip
"""What only an agent at work has in its environment."""


class Answer(NamedTuple):
    """What a question is answered with, as the envelope has it."""

    kind: str
    data: Any
    more: Mapping[str, Any] = {}
    """What stands in the envelope beside the data."""
    ledger: str | None = None
    """The commit it is true for, where that is not the tip."""


class Desk:
    """Where questions are answered about one repository."""

    def __init__(self, options: Options, environ: Mapping[str, str]) -> None:
        """Takes where the repository is and who asks; there need not be one yet."""
        self.options = options
        self.environ = environ

    def open(self, **options: Any) -> Project:
        """Returns the project as it is now; raises what is wrong with it."""
        return Project.open(self.options._replace(**options), self.environ)

    def ask(
        self, question: Callable[[Project], Answer], *, needs_ledger: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Returns the envelope of an answer, or of the failure that stands in its place.

        Whatever is asked, a ledger that does not verify is the first thing to say.
        """
        return self._answered(
            queries.snapshot_of if needs_ledger else None, question, needs_ledger, options
        )

    def _answered(
        self,
        look: Callable[[Project], object] | None,
        question: Callable[[Project], Answer],
        needs_ledger: bool,
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        project = None
        try:
            project = self.open(**options)
            if look is not None:
                look(project)
            answer = question(project)
            ledger = answer.ledger or (project.ledger.tip if needs_ledger else _tip(project))
            found = answers.envelope(answer.kind, answer.data, ledger, answer.more)
        except Exception as error:  # noqa: BLE001 - whoever asked is told, whatever it is
            found = answers.error_envelope(
                answers.as_error(refusal_of(error, project)),
                None if project is None else _tip(project),
            )
            notes = [] if project is None else list(project.unsaid)
        else:
            notes = list(found.pop("notes", ()))
        if project is not None:
            notes += project.warnings
            notes += _published(project)
            project.close()
        return {**found, "notes": list(dict.fromkeys(notes))} if notes else found

    def manage(self, question: Callable[[Project], Answer]) -> dict[str, Any]:
        """Answers in the role of the manager, and refuses whoever is an agent at work."""

        def look(project: Project) -> None:
            require_manager(project)
            # Brings a ledger back that is lost, as every verb does.
            _ = project.settings

        return self._answered(look, question, True, {"role": self.options.role or "manager"})


def require_manager(project: Project) -> None:
    """Raises WrongRole in the worktree of a task, and for whoever has an agent's environment.

    An agent may find the manager's server among its own without anybody having meant that.
    """
    why = next((f"{name} is set" for name in _OF_AGENTS if project.environ.get(name)), None)
    role = project.environ.get("GITTASKS_ROLE")
    if why is None and role and role != "manager":
        why = "GITTASKS_ROLE is set"
    if why is None and project.tree_task is not None:
        why = f"this is the worktree of {project.tree_task}"
    if why is not None:
        raise WrongRole(
            f"You are an agent at work ({why}), and only the manager may do this.",
            "End your turn with `git tasks submit`, `git tasks feedback` or `git tasks hold` in"
            " your shell; what is asked here can be read.",
        )


def refusal_of(error: BaseException, project: Project | None = None) -> GittasksError:
    """Returns what went wrong as a refusal, with its own text where it is no refusal of ours.

    A defect is written down in the project, where there is one.
    """
    known = told(error)
    if known is not None:
        return known
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return GittasksError(
            f"The system refused: {where}{error.strerror or type(error).__name__}.",
            "Free space, or correct the permissions, and ask again.",
        )
    words = f"{type(error).__name__}: {error}".strip()
    path = None if project is None else report(project.state_dir, error, "mcp")
    where = f"; the report is in {path}" if path else ""
    return GittasksError(
        f"This is a defect of git tasks ({words}){where}.", "Report what was asked."
    )


def _tip(project: Project) -> str | None:
    try:
        return project.ledger.tip
    except Exception:  # noqa: BLE001 - the first failure is the one to tell
        return None


def _published(project: Project) -> list[str]:
    """Gives others what was written; that it could not be is said, and changes nothing."""
    if not project.has_news or project.remote is None:
        return []
    from gittasks.workflow.sync import publish_quietly  # only a clone that shares

    try:
        said = publish_quietly(project)
    except Exception as error:  # noqa: BLE001 - what was written stays written
        why = refusal_of(error).message
        return [f"Not published yet: {why} The tool sync does it later."]
    return [] if said is None else [said]
