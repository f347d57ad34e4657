"""The real pi, Claude Code and Codex, with a model behind them that plays a script.

Two variables say where they are; without them a test that needs them is skipped:

    GITTASKS_TEST_CLIENTS   a folder filled by `tests/install_clients.sh`; else the PATH is searched
    GITTASKS_TEST_MODEL     a Python file with the class FakeLLM(script), a context manager with
                            `url` and `requests`, which speaks the protocols of the providers
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gittasks.agents.base import Program

KINDS = ("pi", "claude", "codex")

_MODULES = {
    "pi": ("@earendil-works/pi-coding-agent/dist/cli.js",),
    # What `.bin` names is a script that the install script of the package would have replaced.
    "claude": ("@anthropic-ai/claude-code-*/claude",),
    "codex": ("@openai/codex/bin/codex.js",),
}
_NODE = ("node-linux-*/bin/node", "node-darwin-*/bin/node", "node/bin/node")


@cache
def folder() -> Path | None:
    """Returns where packages are installed."""
    named = os.environ.get("GITTASKS_TEST_CLIENTS")
    if not named:
        return None
    return next(path for path in (Path(named, "node_modules"), Path(named)) if path.is_dir())


def search_path() -> str:
    """Returns the PATH of an agent, with a node that is new enough first."""
    node = _installed(_NODE)
    return f"{node.parent}:{os.environ['PATH']}" if node else os.environ["PATH"]


def command(kind: str) -> tuple[str, ...]:
    """Returns the command of a client; skips the test where it is not installed."""
    path = _installed(_MODULES[kind])
    if path is None and folder() is None:
        found = shutil.which(kind)
        path = Path(found) if found else None
    if path is None:
        pytest.skip(f"{kind} is not installed; see tests/install_clients.sh")
    return (str(path),)


def model(turns: list[dict[str, Any]]) -> Any:
    """Returns a model that plays turns; skips the test where there is none."""
    return _model({"turns": turns, "side": {"text": "A title"}})


def cast(parts: Mapping[str, list[dict[str, Any]]]) -> Any:
    """Returns a model that plays a part for each role of a team, told apart by their briefs."""
    lanes = [
        {"name": role, "match": {"text": f"You are the {role} of task "}, "turns": turns}
        for role, turns in parts.items()
    ]
    nothing = dict.fromkeys(("input", "output", "cache_read", "cache_write"), 0)
    return _model({"lanes": lanes, "side": {"text": "A title", "usage": nothing}})


def prepare(kind: str, home: Path, url: str) -> tuple[Program, dict[str, str]]:
    """Makes a home in which a client asks the model at an address; returns what starts it."""
    env = {"PATH": search_path(), "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb"}
    if kind == "pi":
        return _pi(home, url), {**env, "PI_OFFLINE": "1"}
    if kind == "claude":
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "1"}
        asked = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
        return Program(kind, model="claude-sonnet-4-5", command=command(kind)), {
            **env,
            **quiet,
            **asked,
        }
    return _codex(home, url), {**env, "MODEL_KEY": "none"}


def _model(script: dict[str, Any]) -> Any:
    path = os.environ.get("GITTASKS_TEST_MODEL")
    if not path:
        pytest.skip("GITTASKS_TEST_MODEL names no model that plays a script")
    return _module(path).FakeLLM(script)


def _pi(home: Path, url: str) -> Program:
    place = home / ".pi" / "agent"
    place.mkdir(parents=True)
    cost = {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1}
    one = {"id": "fake-model", "contextWindow": 100_000, "maxTokens": 1000, "cost": cost}
    provider = {
        "baseUrl": f"{url}/v1",
        "api": "openai-completions",
        "apiKey": "none",
        "models": [one],
    }
    (place / "models.json").write_text(json.dumps({"providers": {"local": provider}}))
    retry = {"enabled": True, "maxRetries": 1, "baseDelayMs": 50}
    (place / "settings.json").write_text(json.dumps({"retry": retry}))
    return Program("pi", "local", "fake-model", command("pi"))


def _codex(home: Path, url: str) -> Program:
    place = home / ".codex"
    place.mkdir()
    (place / "config.toml").write_text(
        "[model_providers.local]\n"
        'name = "local"\n'
        f'base_url = "{url}/v1"\n'
        'env_key = "MODEL_KEY"\n'
        'wire_api = "responses"\n'
        "request_max_retries = 0\n"
        "stream_max_retries = 1\n"
    )
    return Program("codex", "local", "fake-model", command("codex"))


def _installed(patterns: tuple[str, ...]) -> Path | None:
    top = folder()
    if top is None:
        return None
    found = (path for pattern in patterns for path in sorted(top.glob(pattern)))
    return next((path for path in found if os.access(path, os.X_OK)), None)


@cache
def _module(path: str) -> Any:
    found = importlib.util.spec_from_file_location("scripted_model", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
