"""`git tasks help`: explains the tool or one command."""

from __future__ import annotations

from gittasks.cli import frame


@frame.command("help")
@frame.argument("words", nargs=-1, metavar="[COMMAND]...")
def command(session: frame.Session, words: tuple[str, ...]) -> None:
    """Explain a command, or without one all of them."""
    if words:
        from gittasks.cli.clicked import help_of

        text = help_of(words)
    else:
        from gittasks.cli.catalogue import overview

        text = overview()
    if not session.answer("help", {"command": " ".join(words) or None, "text": text}):
        session.out.block(text)
