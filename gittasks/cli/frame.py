"""What every command shares: the options accepted everywhere, and the session they describe."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gittasks.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gittasks.workflow.project import Outcome, Project

_META = "gittasks.session"


class Globals(NamedTuple):
    """The options that every command accepts, before and after its arguments."""

    path: str | None = None
    json: bool = False
    actor: str | None = None
    role: str | None = None
    claim: str | None = None
    offline: bool = False
    pager: bool = True
    color: str | None = None
    quiet: bool = False
    verbose: bool = False


class Session:
    """One run of the tool: the options given, the project they lead to, and the output."""

    def __init__(self) -> None:
        """Starts with nothing said; the parser tells what it finds."""
        self._said: dict[str, Any] = {}
        self._out: Output | None = None
        self._project: Project | None = None

    def tell(self, name: str, value: Any) -> None:
        """Notes one global option; given twice, the later one counts, and paths are joined."""
        if name == "path":
            value = os.path.join(self._said.get("path", ""), value)
        self._said[name] = value

    @property
    def options(self) -> Globals:
        """Returns what the global options say, wherever they stood."""
        return Globals(**self._said)

    @property
    def out(self) -> Output:
        """Returns where this run prints to."""
        if self._out is None:
            options = self.options
            self._out = Output(
                json=options.json,
                quiet=options.quiet,
                verbose=options.verbose,
                color=options.color,
                pager=options.pager,
                setting=self._setting,
            )
        return self._out

    def _setting(self, key: str) -> str | None:
        return None if self._project is None else self._project.config.get(key)

    @property
    def has_project(self) -> bool:
        """Tells whether the project was opened already."""
        return self._project is not None

    @property
    def project(self) -> Project:
        """Returns the project of the folder we stand in, opened when it is first asked for."""
        if self._project is None:
            from gittasks.workflow.project import Options, Project

            said = self.options
            self._project = Project.open(
                Options(said.path, said.actor, said.role, said.claim, said.offline)
            )
        return self._project

    @property
    def ledger(self) -> str | None:
        """Returns the ledger commit the answer is true for, None before one is known."""
        return None if self._project is None else self._project.ledger.tip

    def path(self, name: str) -> str:
        """Returns the path of a file that the user named, from where the user stands."""
        if self.options.path:
            return os.path.join(self.options.path, name)
        # A shell alias of git runs at the top, and says where the user stood.
        stood = os.environ.get("GIT_PREFIX", "")
        return os.path.join(stood, name) if stood and os.path.exists(".git") else name

    def read_text(self, name: str) -> bytes:
        """Returns the bytes of a file that the user named; `-` is stdin."""
        if name == "-":
            import sys

            return b"" if sys.stdin is None else sys.stdin.buffer.read()
        try:
            with open(self.path(name), "rb") as file:
                return file.read()
        except OSError as error:
            from gittasks.domain.errors import UsageFault

            raise UsageFault(
                f"The file {name} cannot be read: {error.strerror}.", "Name a readable file, or -."
            ) from error

    def answer(
        self, kind: str, data: Any, ledger: str | None = None, more: Mapping[str, Any] | None = None
    ) -> bool:
        """Prints the JSON document if JSON was asked for, and tells whether it did."""
        if self.out.json:
            self.out.envelope(kind, data, ledger or self.ledger, more)
        return self.out.json

    def outcome(self, outcome: Outcome, *plain: str) -> None:
        """Prints what a verb did: the task as JSON, or the plain lines, else the transition."""
        for note in outcome.notes:
            self.out.say(note)
        if self.out.json:
            self.out.envelope("task", verb_data(outcome), outcome.commit or self.ledger)
            return
        for line in plain or _told(outcome):
            self.out.line(line)


def verb_data(outcome: Outcome) -> dict[str, Any]:
    """Returns the JSON of what a verb did: the task object, the step, and what the verb adds."""
    from gittasks.domain.frontmatter import task_dict

    data = task_dict(outcome.task)
    data["from"] = outcome.source
    data["to"] = outcome.target
    data["commit"] = outcome.commit
    data["unblocked"] = list(outcome.unblocked)
    return {**data, **outcome.extra}


def _told(outcome: Outcome) -> tuple[str, ...]:
    task = outcome.task
    if not outcome.changed:
        return (f"{task.id} {task.state}: nothing to do",)
    moved = f" {outcome.source or '-'} -> {outcome.target}"
    line = f"{task.id} {outcome.kind}{moved if outcome.source != outcome.target else ''}"
    return (line, *(f"{other} unblocked" for other in outcome.unblocked))


def session_of(context: click.Context) -> Session:
    """Returns the session of a run, made when it is first asked for."""
    session = context.meta.get(_META)
    if session is None:
        session = context.meta[_META] = Session()
    assert isinstance(session, Session)
    return session


def _note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is None or value is False or parameter.name is None:
        return
    if parameter.name == "no_pager":
        session_of(context).tell("pager", False)
        return
    if parameter.name == "role":
        from gittasks.domain.task import ROLES

        if value not in ROLES:
            raise click.BadParameter(
                f"{value!r} is not a role; the roles are {', '.join(ROLES)}.", context, parameter
            )
    session_of(context).tell(parameter.name, value)


def _option(*names: str, help: str, **settings: Any) -> click.Option:
    return click.Option(
        names, help=help, callback=_note, expose_value=False, hidden=True, **settings
    )


GLOBALS: tuple[click.Option, ...] = (
    _option("-C", "path", metavar="PATH", help="run as if started in PATH"),
    _option("--json", is_flag=True, help="print one JSON document, also for errors"),
    _option("--as", "actor", metavar="NAME", help="speak as NAME"),
    _option("--role", metavar="ROLE", help="speak in ROLE"),
    _option("--claim", metavar="SECRET", help="speak for the claim with this secret"),
    _option("--offline", is_flag=True, help="do without the remote"),
    _option("--no-pager", is_flag=True, help="print straight to the terminal"),
    _option("--color", type=click.Choice(("auto", "always", "never")), help="when to use colours"),
    _option("-q", "--quiet", is_flag=True, help="print data only"),
    _option("-v", "--verbose", is_flag=True, help="tell more on stderr"),
)

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_FOOT = "Options that every command takes: see `git tasks -h`."


class Command(click.Command):
    """A command that also takes the options accepted everywhere."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        """Adds the global options behind the command's own."""
        settings["params"] = [*(settings.get("params") or ()), *GLOBALS]
        settings.setdefault("context_settings", _SETTINGS)
        settings.setdefault("epilog", _FOOT)
        super().__init__(name, **settings)


class Group(click.Group):
    """A command of several verbs, such as `dep add`, that takes the global options too."""

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        """Adds the global options behind the group's own."""
        settings["params"] = [*(settings.get("params") or ()), *GLOBALS]
        settings.setdefault("context_settings", _SETTINGS)
        settings.setdefault("epilog", _FOOT)
        settings.setdefault("no_args_is_help", False)
        super().__init__(name, **settings)

    def verb(self, name: str, **settings: Any) -> Callable[[Callable[..., None]], Command]:
        """Declares one verb of the group; its function gets the session first."""
        declare = command(name, **settings)

        def decorator(function: Callable[..., None]) -> Command:
            made = declare(function)
            self.add_command(made)
            return made

        return decorator


def command(name: str, **settings: Any) -> Callable[[Callable[..., None]], Command]:
    """Declares a command; its function gets the session before its own parameters."""

    def decorator(function: Callable[..., None]) -> Command:
        def run(**values: Any) -> None:
            function(session_of(click.get_current_context()), **values)

        run.__doc__ = function.__doc__
        # click collects the options of the decorators below on the function itself.
        run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        return click.command(name, cls=Command, **settings)(run)

    return decorator
