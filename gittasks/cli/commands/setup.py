"""`git tasks setup`: puts what other programs need of the tool where they find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.cli import frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gittasks.workflow.registering.clients import Client, Step

_HELP = """Make git and your agents' programs know the tool, or forget it again.

What is there already keeps every other byte: a hook gets a few lines after its first one, a file of
settings one entry. What cannot be changed like that is left alone, and the lines are printed.
"""

command = frame.Group("setup", help=_HELP)

_WORDS = {
    "make": ("made", "would make"),
    "insert": ("added to", "would add to"),
    "renew": ("renewed", "would renew"),
    "keep": ("in place", "in place"),
    "leave": ("left alone", "would leave alone"),
    "take out": ("taken out of", "would take out of"),
    "delete": ("deleted", "would delete"),
}


@command.verb("hooks")
@frame.option("--server", is_flag=True, help="the hooks of a bare repository that others push to")
@frame.option("--print", "printed", is_flag=True, help="print the lines; write nothing")
@frame.option("--remove", is_flag=True, help="take out what was put in; all else stays as it is")
def hooks(session: frame.Session, server: bool, printed: bool, remove: bool) -> None:
    """Install the hooks of the ledger beside other hooks."""
    from gittasks.workflow import hooks as workflow

    verb = workflow.remove if remove else workflow.install
    setup = verb(session.project, server=server, dry_run=printed)
    out = session.out
    for note in setup.notes:
        out.say(note)
    if out.json:
        data = [
            {**step._asdict(), "text": step.text.decode(errors="replace")} for step in setup.steps
        ]
        out.envelope("hooks", {"dry_run": printed, "steps": data})
        return
    for step in setup.steps:
        line = f"{_WORDS[step.action][printed]} {step.path}"
        out.line(f"{line}: {step.reason}" if step.reason else line)
        if printed:
            out.block(step.text.decode(errors="replace"))
    if not setup.steps:
        out.say("There is nothing to take out.")
    left = [step for step in setup.steps if step.action == "leave"]
    for step in left if not printed else ():
        what = "Take these lines out of" if remove else "Add these lines to"
        out.say(f"{what} {step.path} yourself:\n{step.text.decode(errors='replace')}")


@command.verb("mcp")
@frame.option("--print", "printed", is_flag=True, help="print the change; write nothing")
@frame.option("--remove", is_flag=True, help="take out what was put in; all else stays as it is")
def mcp(session: frame.Session, printed: bool, remove: bool) -> None:
    """Register the MCP server in .mcp.json, where most clients look for it."""
    _register(session, "mcp", printed, remove)


@command.verb("claude")
@frame.option("--print", "printed", is_flag=True, help="print the change; write nothing")
@frame.option("--remove", is_flag=True, help="take out what was put in; all else stays as it is")
def claude(session: frame.Session, printed: bool, remove: bool) -> None:
    """Register the MCP server in .mcp.json, and put skills into .claude/skills."""
    _register(session, "claude", printed, remove)


@command.verb("codex")
@frame.option("--print", "printed", is_flag=True, help="print the change; write nothing")
@frame.option("--remove", is_flag=True, help="take out what was put in; all else stays as it is")
def codex(session: frame.Session, printed: bool, remove: bool) -> None:
    """Register the MCP server in your config.toml, and put skills into .agents/skills."""
    _register(session, "codex", printed, remove)


@command.verb("pi")
@frame.option("--print", "printed", is_flag=True, help="print the change; write nothing")
@frame.option("--remove", is_flag=True, help="take out what was put in; all else stays as it is")
def pi(session: frame.Session, printed: bool, remove: bool) -> None:
    """Register the MCP server in .pi/mcp.json, and put skills into .pi/skills."""
    _register(session, "pi", printed, remove)


def _register(session: frame.Session, client: Client, printed: bool, remove: bool) -> None:
    """Shows what changes, changes it, and says that it is done."""
    from gittasks.workflow.registering import clients

    project, out = session.project, session.out
    steps = clients.plan(project, client, remove=remove)
    if out.json:
        if not printed:
            clients.carry_out(project, steps)
        data = [step.as_object() for step in steps]
        out.envelope("setup", {"client": client, "dry_run": printed, "steps": data})
        return
    _show(session, steps, printed)
    if not printed:
        out.flush()
        clients.carry_out(project, steps)
        for step in steps:
            line = f"{_WORDS[step.action][0]} {step.path}"
            out.line(f"{line}: {step.reason}" if step.reason else line)
    for step in steps:
        if step.action == "leave" and step.text:
            what = "Take these lines out of" if remove else "Put these lines into"
            out.say(f"{what} {step.path} yourself:\n{step.text}")
    if not steps:
        out.say("There is nothing to take out.")
    for hint in clients.hints(client) if not remove else ():
        out.say(hint)


def _show(session: frame.Session, steps: Sequence[Step], printed: bool) -> None:
    """Prints the lines of each change; of a skill only where nothing else is asked for."""
    out = session.out
    for step in steps:
        if printed:
            line = f"{_WORDS[step.action][1]} {step.path}"
            out.line(f"{line}: {step.reason}" if step.reason else line)
        if step.text and step.action != "leave" and (printed or not step.is_skill):
            out.block(step.text)
