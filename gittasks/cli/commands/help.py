"""`git tasks help`: explains the tool or one command."""

from __future__ import annotations

import click

from gittasks.cli import frame


@frame.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
def command(session: frame.Session, words: tuple[str, ...]) -> None:
    """Explain a command, or without one all of them."""
    context = click.get_current_context().find_root()
    found: click.Command = context.command
    for word in words:
        assert isinstance(found, click.Group)
        name, inner, _ = found.resolve_command(context, [word])
        assert inner is not None
        context = click.Context(inner, parent=context, info_name=name)
        found = inner
        if not isinstance(found, click.Group):
            break
    text = found.get_help(context)
    if not session.answer("help", {"command": " ".join(words) or None, "text": text}):
        session.out.block(text)
