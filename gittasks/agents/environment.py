"""What of our own environment reaches an agent, and what is set for it.

Names that are not on the list stay here: an agent gets no key to the user's other machines, no
repository but that of its tree, and no variable of ours that it was not given. `git tasks` is an
alias in its environment, so that it is there also where a login shell resets the PATH.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gittasks.agents.orphans import VARIABLE
from gittasks.plumbing.repository import unattended_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What a program needs to find its files, its language and the network.
_MACHINE = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy",
    "no_proxy", "SSL_CERT_*", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "LD_LIBRARY_PATH", "NIX_*",
    "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_DIRS",
    "XDG_DATA_DIRS",
)  # fmt: skip

# Where compilers and interpreters are, for the work itself.
_TOOLS = (
    "NODE_*", "NVM_DIR", "VOLTA_HOME", "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME",
    "GOPATH", "GOROOT", "GOPROXY", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "GEM_HOME",
    "DOTNET_ROOT",
)  # fmt: skip

# The programs of agents, and the models behind them.
_MODELS = (
    "ANTHROPIC_*", "CLAUDE_*", "OPENAI_*", "CODEX_*", "PI_*", "GEMINI_*", "GOOGLE_*", "AWS_*",
    "AZURE_*", "MISTRAL_*", "OPENROUTER_*", "OLLAMA_*", "COPILOT_*", "*_API_KEY", "*_API_BASE",
)  # fmt: skip

# Settings of git that are the user's wish, and who the user is.
_GIT = (
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL",
    "GIT_CONFIG_*", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_ALLOW_PROTOCOL", "GIT_SSL_CAINFO",
)  # fmt: skip

_ALLOWED = (*_MACHINE, *_TOOLS, *_MODELS, *_GIT)

# An agent that was started from within another one is not that one's helper.
_NEVER = frozenset(
    (
        "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_REMOTE", "CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED",
        "PI_CODING_AGENT",
    )
)  # fmt: skip

# git runs an alias in the top folder of the tree and names a repository for it: back to where the
# agent stands, with nothing named.
_TO_ITS_FOLDER = 'cd -- "${GIT_PREFIX:-.}" && unset GIT_PREFIX GIT_DIR GIT_WORK_TREE && exec '


def agent_environment(  # noqa: PLR0913 - one for each variable
    environ: Mapping[str, str],
    *,
    task: str,
    role: str,
    slot: str,
    secret: str,
    outbox: str,
    run: str,
    program: Sequence[str],
    names: Sequence[str] = (),
    has_identity: bool = True,
) -> dict[str, str]:
    """Returns the whole environment of an agent.

    `program` is what reaches `git tasks`, `names` lets further variables pass (`NAME`, `START_*`,
    `*_END`); without an identity in git's configuration the slot signs the commits.
    """
    passed = {
        name: value
        for name, value in environ.items()
        if name not in _NEVER and _is_allowed(name, (*_ALLOWED, *names))
    }
    env = unattended_environment(passed)
    env["TERM"] = "dumb"
    if not has_identity:
        for who in ("AUTHOR", "COMMITTER"):
            env.setdefault(f"GIT_{who}_NAME", slot)
            env.setdefault(f"GIT_{who}_EMAIL", f"{slot}@localhost")
    _add_setting(env, "alias.tasks", "!" + _TO_ITS_FOLDER + " ".join(map(_quoted, program)))
    env.update(
        {
            "GITTASKS_TASK": task,
            "GITTASKS_ROLE": role,
            "GITTASKS_AGENT": slot,
            "GITTASKS_CLAIM": secret,
            "GITTASKS_OUTBOX": outbox,
            VARIABLE: run,
        }
    )
    return env


def own_program(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the argument list that reaches this very `git tasks`, from any folder."""
    script = os.path.join(os.path.dirname(sys.executable), "git-tasks")
    if _root() not in _python_path(environ) and os.access(script, os.X_OK):
        return (script,)
    return own_module("gittasks")


def own_module(name: str) -> tuple[str, ...]:
    """Returns the argument list that runs a module of this very package, from any folder."""
    # `-P`: the agent's tree may hold a package of the same name.
    return ("/usr/bin/env", f"PYTHONPATH={_root()}", sys.executable, "-P", "-m", name)


def _root() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _python_path(environ: Mapping[str, str]) -> list[str]:
    return [os.path.abspath(path) for path in environ.get("PYTHONPATH", "").split(os.pathsep)]


def _is_allowed(name: str, patterns: Sequence[str]) -> bool:
    # What speaks to git and to ourselves is given, never passed on.
    if name.startswith(("GITTASKS_", "SSH_")):
        return False
    return any(_fits(name, pattern) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    if pattern.startswith("*"):
        return name.endswith(pattern[1:])
    return name == pattern


def _add_setting(env: dict[str, str], key: str, value: str) -> None:
    count = env.get("GIT_CONFIG_COUNT", "")
    number = int(count) if count.isascii() and count.isdigit() else 0
    env[f"GIT_CONFIG_KEY_{number}"] = key
    env[f"GIT_CONFIG_VALUE_{number}"] = value
    env["GIT_CONFIG_COUNT"] = str(number + 1)


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)
