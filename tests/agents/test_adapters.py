"""The table of adapters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gittasks.agents import ADAPTERS


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_adapter_has_its_module(name: str) -> None:
    adapter = ADAPTERS[name]
    assert (adapter.__name__, name in ADAPTERS) == (f"gittasks.agents.{name}", True)  # type: ignore[attr-defined]


def test_another_type_is_not_there() -> None:
    assert "parrot" not in ADAPTERS


def test_the_table_loads_no_adapter() -> None:
    script = "import sys, gittasks.agents as a; len(a.ADAPTERS); print(*sys.modules)"
    env = {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    words = [sys.executable, "-c", script]
    loaded = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    modules = {name for name in loaded.stdout.split() if name.startswith("gittasks.")}
    assert modules == {"gittasks.agents"}
