"""`git tasks version`: the versions that matter in a report."""

from __future__ import annotations

from gittasks.cli import frame, versions


@frame.command("version")
def command(session: frame.Session) -> None:
    """Print the versions that matter."""
    versions.print_versions(session)
