"""`git tasks quickstart`: plays the whole way of a task in a repository made for it."""

from __future__ import annotations

import sys

from gittasks.cli import frame
from gittasks.domain.errors import GittasksError


@frame.command("quickstart")
@frame.option("--keep", is_flag=True, help="leave the repository in place and say where it is")
def command(session: frame.Session, keep: bool) -> None:
    """Play a two-minute story in a throw-away repository, with the real commands."""
    from gittasks.workflow import quickstart

    out = session.out
    played = []
    with quickstart.stage(keep=keep) as folder:
        for scene in quickstart.play(folder):
            played.append(scene)
            if not out.json:
                if scene.why:
                    out.line()
                    out.line(f"# {scene.why}", "dim")
                out.line(f"$ {scene.line}", "bold")
                out.block(scene.out + scene.err)
                sys.stdout.flush()
    failed = next((scene for scene in played if scene.status), None)
    if failed is not None:
        raise GittasksError(
            f"The story ended early: `{failed.line}` ended with status {failed.status}.\n"
            f"{failed.err.strip()}",
            "Run `git tasks quickstart --keep` to look at the repository.",
        )
    steps = [{"command": scene.line, "output": scene.out, "told": scene.err} for scene in played]
    place = folder if keep else None
    if session.answer("quickstart", {"folder": place, "steps": steps}):
        return
    out.line()
    out.line("That was all: `git tasks init` begins it in a repository of yours.")
    if keep:
        out.line(f"The story's repository is {folder}/project.")
