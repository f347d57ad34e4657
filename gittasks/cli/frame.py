"""What every command shares: the session, and how its options are declared and read.

A command is declared once, without click: whatever is plain is read here in a millisecond, and
everything else (help, typing errors, unusual spellings) is left to click, which is given the same
declaration by `gittasks.cli.clicked` and says what is wrong.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gittasks.workflow.project import Outcome, Project


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
    at: str | None = None


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

    def take(self, other: Session) -> None:
        """Notes all that another session was told."""
        self._said.update(other._said)

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
                Options(said.path, said.actor, said.role, said.claim, said.offline, said.at)
            )
            self._project.on_wait(lambda name: self.out.say(f"Waiting for the remote {name}…"))
        return self._project

    def close(self) -> None:
        """Ends what answered this run's questions; a later one starts it again."""
        if self._project is not None:
            self._project.close()

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
        if outcome.commit:
            self.out.detail(f"Recorded as the ledger commit {outcome.commit}.")
        if self.out.json:
            from gittasks.workflow.answers import as_step

            self.out.envelope("task", as_step(outcome), outcome.commit or self.ledger)
            return
        for line in plain or _told(outcome):
            self.out.line(line)


def _told(outcome: Outcome) -> tuple[str, ...]:
    task = outcome.task
    if outcome.extra.get("dry_run") and outcome.source != outcome.target:
        step = f"{task.id} would {outcome.kind} {outcome.source} -> {outcome.target}"
        return (step, *(f"{other} would be unblocked" for other in outcome.unblocked))
    if outcome.kind == "check":
        return (f"{task.id} {task.state}: the checks pass",)
    if not outcome.changed:
        return (f"{task.id} {task.state}: nothing to do",)
    moved = f" {outcome.source or '-'} -> {outcome.target}"
    line = f"{task.id} {outcome.kind}{moved if outcome.source != outcome.target else ''}"
    # What was freed itself has said so.
    others = [one for one in outcome.unblocked if (one, outcome.kind) != (task.id, "unblock")]
    return (line, *(f"{other} unblocked" for other in others))


class Choice:
    """A value that is one of some words."""

    __slots__ = ("words",)

    def __init__(self, words: Sequence[str]) -> None:
        """Takes the words."""
        self.words = tuple(words)

    def convert(self, text: str) -> str:
        """Returns the word; raises ValueError for another one."""
        if text not in self.words:
            raise ValueError(text)
        return text


class IntRange:
    """A whole number within limits, both included."""

    __slots__ = ("max", "min")

    def __init__(self, min: int | None = None, max: int | None = None) -> None:
        """Takes the limits; None is none."""
        self.min = min
        self.max = max

    def convert(self, text: str) -> int:
        """Returns the number; raises ValueError for anything else."""
        number = int(text)
        if (self.min is not None and number < self.min) or (
            self.max is not None and number > self.max
        ):
            raise ValueError(text)
        return number


class Parameter:
    """One option or argument, as it was declared."""

    __slots__ = (
        "default", "help", "is_argument", "is_flag", "metavar", "multiple", "name", "names", "nargs",
        "required", "type",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913
        self,
        names: Sequence[str],
        *,
        is_argument: bool = False,
        is_flag: bool = False,
        multiple: bool = False,
        required: bool = False,
        nargs: int = 1,
        default: Any = None,
        type: Choice | IntRange | None = None,
        metavar: str | None = None,
        help: str | None = None,
    ) -> None:
        """Takes spellings and at most one plain word, which names the function's parameter."""
        self.names = tuple(name for name in names if name.startswith("-"))
        plain = [name for name in names if not name.startswith("-")]
        longest = max(self.names, key=len, default="").lstrip("-")
        self.name = (plain[0] if plain else longest).replace("-", "_").lower()
        self.is_argument = is_argument
        self.is_flag = is_flag
        self.multiple = multiple
        self.required = required
        self.nargs = nargs
        self.default = default
        self.type = type
        self.metavar = metavar
        self.help = help

    def value(self, texts: Sequence[str]) -> Any:
        """Returns what the function gets for these texts; raises ValueError for a wrong one."""
        if self.is_flag:
            return bool(texts)
        many = self.multiple or self.nargs == -1
        if not texts:
            if self.required:
                raise ValueError(self.name)
            return () if many else self.default
        values = tuple(texts) if self.type is None else tuple(map(self.type.convert, texts))
        return values if many else values[-1]


def option(*names: str, **settings: Any) -> Callable[[Any], Any]:
    """Declares an option of the function below."""
    return _declaring(Parameter(names, **settings))


def argument(
    name: str, *, required: bool | None = None, nargs: int = 1, **settings: Any
) -> Callable[[Any], Any]:
    """Declares an argument of the function below; `nargs=-1` takes all that are left."""
    # Where any number is taken, none is fine unless it is said otherwise.
    wanted = nargs > 0 if required is None else required
    return _declaring(
        Parameter((name,), is_argument=True, required=wanted, nargs=nargs, **settings)
    )


def _declaring(parameter: Parameter) -> Callable[[Any], Any]:
    def decorator(function: Any) -> Any:
        function.__dict__.setdefault("declared", []).insert(0, parameter)
        return function

    return decorator


class Command:
    """One command: its word, its function, its parameters and what help says."""

    __slots__ = ("by_name", "function", "help", "name", "parameters", "past")

    def __init__(
        self, name: str, function: Callable[..., int | None], *, past: bool = False
    ) -> None:
        """Takes what the decorators below have declared, and whether it can look at the past."""
        self.name = name
        self.past = past
        self.function = function
        self.help = function.__doc__ or ""
        self.parameters: tuple[Parameter, ...] = tuple(getattr(function, "declared", ()))
        self.by_name = {name: one for one in self.parameters for name in one.names}

    def call(self, session: Session, values: Mapping[str, Any]) -> int | None:
        """Runs the function; raises UsageFault where the past is asked for what is now."""
        if session.options.at is not None and not self.past:
            from gittasks.domain.errors import UsageFault

            raise UsageFault(
                f"`git tasks {self.name}` does not take --at: it is about the present.",
                "Leave --at out; reads such as `show`, `list` and `graph` take it.",
            )
        return self.function(session, **values)

    def read(self, words: Sequence[str], session: Session) -> dict[str, Any] | None:
        """Returns the function's parameters; None where click has to look at the words."""
        options: dict[Parameter, list[str]] = {}
        arguments: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--":
                arguments += words[at:]
                break
            if word[:1] != "-" or word == "-":
                arguments.append(word)
                continue
            found = _option(word, self.by_name)
            if found is None:
                return None
            parameter, text = found
            if text is None and not parameter.is_flag:
                if at == len(words):
                    return None
                text = words[at]
                at += 1
            options.setdefault(parameter, []).append(text or "")
        return self._values(options, arguments, session)

    def _values(
        self, options: Mapping[Parameter, list[str]], arguments: list[str], session: Session
    ) -> dict[str, Any] | None:
        values: dict[str, Any] = {}
        left = arguments
        try:
            for one in self.parameters:
                if one.is_argument:
                    taken = len(left) if one.nargs == -1 else one.nargs
                    texts, left = left[:taken], left[taken:]
                else:
                    texts = options.get(one, [])
                values[one.name] = one.value(texts)
            if left or not _note_all(options, session):
                return None
        except ValueError:
            return None
        return values


class Group:
    """A command of several verbs, such as `dep add`."""

    __slots__ = ("commands", "help", "name")

    def __init__(self, name: str, help: str = "") -> None:
        """Starts without verbs."""
        self.name = name
        self.help = help
        self.commands: dict[str, Command] = {}

    def verb(
        self, name: str, *, past: bool = False
    ) -> Callable[[Callable[..., int | None]], Command]:
        """Declares one verb of the group; its function gets the session first."""

        def decorator(function: Callable[..., int | None]) -> Command:
            made = self.commands[name] = Command(name, function, past=past)
            made.name = f"{self.name} {name}"
            return made

        return decorator


def command(name: str, *, past: bool = False) -> Callable[[Callable[..., int | None]], Command]:
    """Declares a command; its function gets the session before its own parameters.

    With `past` it takes --at, and answers as it would have then.
    """
    return lambda function: Command(name, function, past=past)


GLOBALS: tuple[Parameter, ...] = (
    Parameter(("-C", "path"), multiple=True, metavar="PATH", help="run as if started in PATH"),
    Parameter(("--json",), is_flag=True, help="print one JSON document, also for errors"),
    Parameter(("--as", "actor"), metavar="NAME", help="speak as NAME"),
    Parameter(("--role",), metavar="ROLE", help="speak in ROLE"),
    Parameter(("--claim",), metavar="SECRET", help="speak for the claim with this secret"),
    Parameter(("--offline",), is_flag=True, help="do without the remote"),
    Parameter(("--at",), metavar="REV", help="look at the ledger as it was: a commit, ref or date"),
    Parameter(("--no-pager",), is_flag=True, help="print straight to the terminal"),
    Parameter(
        ("--color",),
        type=Choice(("auto", "always", "never")),
        metavar="WHEN",
        help="colours: auto, always or never",
    ),
    Parameter(("-q", "--quiet"), is_flag=True, help="print data only"),
    Parameter(("-v", "--verbose"), is_flag=True, help="tell more on stderr"),
)
_GLOBAL_NAMES = {name: one for one in GLOBALS for name in one.names}


def note(session: Session, name: str, value: Any) -> None:
    """Tells the session one global option; raises ValueError for a value that cannot be."""
    if value is None or value is False or value == ():
        return
    if name == "no_pager":
        session.tell("pager", False)
    elif name == "path":
        for part in value:
            session.tell("path", part)
    else:
        if name == "role":
            from gittasks.domain.task import ROLES

            if value not in ROLES:
                raise ValueError(f"{value!r} is not a role; the roles are {', '.join(ROLES)}.")
        session.tell(name, value)


def read_globals(words: Sequence[str], session: Session) -> int | None:
    """Notes the options before a command and returns how many words they take.

    None where click has to look at the words.
    """
    options: dict[Parameter, list[str]] = {}
    at = 0
    while at < len(words) and words[at][:1] == "-":
        found = _option(words[at], {})
        if found is None:
            return None
        parameter, text = found
        at += 1
        if text is None and not parameter.is_flag:
            if at == len(words):
                return None
            text = words[at]
            at += 1
        options.setdefault(parameter, []).append(text or "")
    return at if _note_all(options, session) else None


def _option(word: str, own: Mapping[str, Parameter]) -> tuple[Parameter, str | None] | None:
    """Returns the option that a word names, and the value behind its equals sign."""
    name, is_given, text = word.partition("=")
    parameter = own.get(name) or _GLOBAL_NAMES.get(name)
    if parameter is None or (is_given and (parameter.is_flag or name[:2] != "--")):
        return None
    return parameter, text if is_given else None


def _note_all(options: Mapping[Parameter, list[str]], session: Session) -> bool:
    """Notes the global ones among the options; tells whether all of them could be."""
    try:
        for one in GLOBALS:
            if one in options:
                note(session, one.name, one.value(options[one]))
    except ValueError:
        return False
    return True
