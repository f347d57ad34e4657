"""The versions that matter in a report, printed for `git tasks version` and `--version`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
