"""`git tasks doctor`: what is wrong here, and the command that helps."""

from __future__ import annotations

import os

from gittasks.cli import frame
from gittasks.workflow.doctor import examine

_COLOURS = {"warn": "yellow", "fail": "red"}


@frame.command("doctor")
@frame.option("--fix", is_flag=True, help="repair what a crash left first; nothing is taken away")
def command(session: frame.Session, fix: bool) -> int:
    """Look at repository, ledger, agents and host, and say what helps.

    Exit 1 if something does not work; a warning alone is no reason.
    """
    found = examine(lambda: session.project, os.environ, fix=fix)
    data = {"checks": [check._asdict() for check in found.checks], "done": list(found.done)}
    out = session.out
    if out.json:
        # The ledger may be what is broken.
        out.envelope("doctor", data, found.tip)
        return int(found.has_failed)
    for sentence in found.done:
        out.line(f"done: {sentence}")
    for check in found.checks:
        colour = _COLOURS.get(check.verdict)
        out.line(f"{check.verdict:<5} {check.name:<10} {check.sentence}", colour)
        if check.fix and check.verdict != "ok":
            out.line(f"{'':<16} {check.fix}")
    return int(found.has_failed)
