"""The same command line as click sees it: for help, for typing errors, for unusual spellings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gittasks.cli import catalogue, frame, versions
from gittasks.domain.errors import UsageFault

if TYPE_CHECKING:
    from collections.abc import Sequence

_META = "gittasks.session"
_VERSIONS = "gittasks.versions"
_FOOT = "Options that every command takes: see `git tasks -h`."
_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    session = context.meta.get(_META)
    if session is None or parameter.name is None:
        return
    try:
        frame.note(session, parameter.name, value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def _type(declared: frame.Choice | frame.IntRange | None) -> Any:
    match declared:
        case frame.Choice():
            return click.Choice(declared.words)
        case frame.IntRange():
            return click.IntRange(declared.min, declared.max)
        case None:
            return None


def _parameter(one: frame.Parameter, **settings: Any) -> click.Parameter:
    names = [*one.names, one.name]
    shared: dict[str, Any] = {"type": _type(one.type), "metavar": one.metavar, **settings}
    if one.default is not None:
        shared["default"] = one.default
    if one.is_argument:
        return click.Argument([one.name], required=one.required, nargs=one.nargs, **shared)
    shared["help"] = one.help
    if one.is_flag:
        return click.Option(names, is_flag=True, **shared)
    return click.Option(names, multiple=one.multiple, required=one.required, **shared)


GLOBALS: tuple[click.Parameter, ...] = tuple(
    _parameter(one, callback=_note, expose_value=False, hidden=True) for one in frame.GLOBALS
)


def made(declared: frame.Command | frame.Group) -> click.Command:
    """Returns the command that click runs for a declared one."""
    if isinstance(declared, frame.Group):
        return click.Group(
            declared.name,
            {name: made(verb) for name, verb in declared.commands.items()},
            help=declared.help,
            params=list(GLOBALS),
            context_settings=_SETTINGS,
            epilog=_FOOT,
            no_args_is_help=False,
        )

    def run(**values: Any) -> int | None:
        return declared.call(click.get_current_context().meta[_META], values)

    return click.Command(
        declared.name,
        callback=run,
        help=declared.help,
        params=[*map(_parameter, declared.parameters), *GLOBALS],
        context_settings=_SETTINGS,
        epilog=_FOOT,
    )


class Tasks(click.Group):
    """The group of all commands, which imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Returns the names of all commands in the order of the table."""
        return list(catalogue.COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Returns a command from the file that is named like it."""
        name = catalogue.ALIASES.get(cmd_name, cmd_name)
        return made(catalogue.load(name)) if name in catalogue.COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command meant by the first word; a task's id means `show`."""
        word = args[0]
        if catalogue.is_task_word(word):
            return "show", self.get_command(ctx, "show"), args
        if word in catalogue.INSTEAD:
            raise UsageFault(f"There is no command {word!r}.", catalogue.INSTEAD[word])
        command = self.get_command(ctx, word)
        if command is None:
            raise UsageFault(
                f"There is no command {word!r}.",
                catalogue.suggestion(word, [*catalogue.COMMANDS, *catalogue.ALIASES]),
            )
        return catalogue.ALIASES.get(word, word), command, args[1:]

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command named, or `status` where none is; versions are printed instead."""
        if ctx.meta.get(_VERSIONS):
            # Only now is it known what else was said, such as --json.
            return versions.print_versions(ctx.meta[_META])
        if not ctx._protected_args:
            ctx._protected_args = ["status"]
        return super().invoke(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Writes the overview without importing a single command."""
        formatter.write(catalogue.overview())


def _want_versions(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    context.meta[_VERSIONS] = wanted


def group() -> Tasks:
    """Returns the command line as click sees it."""
    version = click.Option(
        ["--version"], is_flag=True, expose_value=False, callback=_want_versions, hidden=True
    )
    return Tasks(
        catalogue.PROGRAM,
        params=[version, *GLOBALS],
        callback=lambda: None,
        invoke_without_command=True,
        context_settings=_SETTINGS,
    )


def run(words: Sequence[str], session: frame.Session) -> int:
    """Runs one command line and returns its exit status; raises what `refusal` understands."""
    top = group()
    context = top.context_class(top, info_name=catalogue.PROGRAM, **_SETTINGS)
    context.meta[_META] = session
    try:
        with context.scope(cleanup=False):
            top.parse_args(context, list(words))
        with context:
            status = top.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return status if isinstance(status, int) else 0


def refusal(error: BaseException) -> UsageFault | None:
    """Returns what an error of click means, None when it is not one of its usage errors."""
    if not isinstance(error, click.ClickException):
        return None
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else catalogue.PROGRAM
    if isinstance(error, click.NoSuchOption):
        nearest = " or ".join(error.possibilities or ())
        return UsageFault(
            f"There is no option {error.option_name}.",
            f"Did you mean {nearest}?" if nearest else f"Run `{path} -h` for its usage.",
        )
    message = error.format_message().strip().rstrip(".")
    return UsageFault(f"{message[:1].upper()}{message[1:]}.", f"Run `{path} -h` for its usage.")


def help_of(words: Sequence[str]) -> str:
    """Returns the help of a command, or of a verb of one; without words, of all."""
    found: click.Command = group()
    context = click.Context(found, info_name=catalogue.PROGRAM)
    for word in words:
        if not isinstance(found, click.Group):
            break
        name, inner, _ = found.resolve_command(context, [word])
        assert inner is not None
        context = click.Context(inner, parent=context, info_name=name, **_SETTINGS)
        found = inner
    return found.get_help(context)
