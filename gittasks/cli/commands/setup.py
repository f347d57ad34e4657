"""`git tasks setup`: puts what other programs need of the tool where they find it."""

from __future__ import annotations

from gittasks.cli import frame

_HELP = """Put hooks where git finds them, and take them out again.

A shell script that is there already gets a few lines after its first one. Hooks of husky,
pre-commit or lefthook, tracked ones and shared ones are left alone: their lines are printed.
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
