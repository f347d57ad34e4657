"""What can be asked without changing anything: every answer is for one ledger commit."""

from __future__ import annotations

from typing import Any


def versions() -> dict[str, Any]:
    """Returns the versions of the tool, the ledger format, git and Python."""
    import os
    import sys

    from gittasks import __version__
    from gittasks.ledger.layout import FORMAT
    from gittasks.plumbing import repository
    from gittasks.plumbing.process import run

    asked = run([repository.GIT, "--version"], env=os.environ, timeout=10)
    words = os.fsdecode(asked.stdout).split()
    return {
        "gittasks": __version__,
        "ledger_format": FORMAT,
        "git": words[2] if len(words) > 2 else "unknown",
        "python": ".".join(str(part) for part in sys.version_info[:3]),
    }
