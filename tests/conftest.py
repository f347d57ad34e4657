"""Gives every test a machine of its own: empty home, no git settings, no identity, no network."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import guard, scenarios

# `COVERAGE_` stays: processes a test starts are measured too.
_FORGOTTEN = (
    "GITTASKS_", "GIT_", "XDG_", "PYTEST_DEBUG", "EMAIL", "EDITOR", "VISUAL", "PAGER", "SSH_",
    "LC_", "LANG", "COLUMNS", "LINES", "TERM", "CLICOLOR", "FORCE_COLOR", "PYTHONPATH", "TMUX",
    "HYPOTHESIS_", "CDPATH", "BASH_ENV", "ENV",
)  # fmt: skip


def _hermetic_environment(root: Path) -> dict[str, str]:
    home = root / "home"
    (root / "template").mkdir(parents=True)
    home.mkdir()
    (root / "gitconfig").write_text("", encoding="utf-8")
    kept = {
        k: v
        for k, v in os.environ.items()
        # What a developer says to the tests themselves, see `tests/support/clients.py`.
        if not k.startswith(_FORGOTTEN) or k.startswith("GITTASKS_TEST_")
    }
    return {
        **kept,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(root / "gitconfig"),
        "GIT_TEMPLATE_DIR": str(root / "template"),
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_TERMINAL_PROMPT": "0",
        # git never looks for a repository above the folder of the tests.
        "GIT_CEILING_DIRECTORIES": str(root),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }


_ROOT = Path(tempfile.mkdtemp(prefix="gittasks-tests-"))
_ENVIRONMENT = _hermetic_environment(_ROOT)


os.environ.clear()
os.environ.update(_ENVIRONMENT)
os.umask(0o022)


def pytest_addoption(parser: pytest.Parser) -> None:
    scenarios.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(scenarios.Plugin(), "scenarios")
    # Folders of several runs side by side would be cleared away by one another.
    if config.option.basetemp is None:
        config.option.basetemp = str(_ROOT / "tmp")


def pytest_collection_finish() -> None:
    """Leaves the checkout once every test module has been imported."""
    os.chdir(_ENVIRONMENT["HOME"])
    guard.install()


def pytest_unconfigure() -> None:
    os.chdir("/")
    shutil.rmtree(_ROOT, ignore_errors=True)


@pytest.fixture(autouse=True)
def _own_machine() -> Iterator[None]:
    """Takes back what a test changed in the environment, and empties its home."""
    before = dict(os.environ)
    yield
    now = os.environ.get("PYTEST_CURRENT_TEST", "")
    before["PYTEST_CURRENT_TEST"] = now
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)
    os.umask(0o022)
    home = _ENVIRONMENT["HOME"]
    os.chdir(home)
    for entry in os.scandir(home):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


@pytest.fixture
def home() -> Path:
    """Returns the test's own, empty home."""
    return Path(_ENVIRONMENT["HOME"])
