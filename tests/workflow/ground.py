"""Projects for the tests of the verbs: a repository with a ledger, seen by somebody."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gittasks.workflow.init import init
from gittasks.workflow.project import Options, Project
from tests.support.git import make_repository

NOW = 1_800_000_000


def begun(folder: Path, *, branch: str = "master") -> Project:
    """Returns the project of a new repository with one commit and an empty ledger."""
    make_repository(folder, branch=branch)
    project = opened(folder)
    init(project)
    return opened(folder)


def opened(
    folder: Path, options: Options | None = None, environ: Mapping[str, str] | None = None
) -> Project:
    """Returns the project of a folder; the clock stands still."""
    said = options or Options(str(folder))
    return Project.open(said, {**os.environ, **(environ or {})}, clock=lambda: NOW)


def reopened(
    project: Project, options: Options | None = None, environ: Mapping[str, str] | None = None
) -> Project:
    """Returns the same project as another process would see it."""
    return opened(Path(str(project.options.path)), options, environ)
