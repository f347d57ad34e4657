"""`git tasks mcp`: the project for a manager's agent, over MCP on stdin and stdout."""

from __future__ import annotations

import os
import sys

from gittasks.cli import frame
from gittasks.domain.errors import GittasksError


@frame.command("mcp")
def command(session: frame.Session) -> None:
    """Serve the project over MCP on stdin and stdout, until the input ends.

    A program starts it; `git tasks setup mcp` says how. It speaks for the manager, except in the
    worktree of a task and for agents at work: they can only read.
    """
    from gittasks.workflow.project import Options

    try:
        from gittasks.mcp.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "gittasks":
            raise
        raise GittasksError(
            f"The MCP server needs the Python package {error.name}, which is not installed here.",
            "Install it with `pip install 'gittasks[mcp]'`.",
        ) from None
    if sys.stdin is not None and sys.stdin.isatty():
        session.out.say(
            "This waits for a program that speaks MCP; `git tasks setup mcp` registers it."
        )
    said = session.options
    serve(Options(said.path, said.actor, said.role, said.claim, said.offline), os.environ)
