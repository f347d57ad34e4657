"""`git tasks version`: the versions that matter in a report."""

from __future__ import annotations

from gittasks.cli import frame


def print_versions(session: frame.Session) -> None:
    """Prints the versions of the tool, the ledger format, git and Python."""
    from gittasks.workflow.queries import versions

    found = versions()
    if session.answer("version", found):
        return
    session.out.line(f"git tasks {found['gittasks']}")
    session.out.line(
        f"ledger format {found['ledger_format']}, git {found['git']}, Python {found['python']}"
    )


@frame.command("version")
def command(session: frame.Session) -> None:
    """Print the versions that matter."""
    print_versions(session)
