"""The doctor finds what was broken on purpose, names what helps, and survives all of it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gittasks.agents import orphans
from gittasks.plumbing.repository import Repository
from gittasks.workflow import doctor
from gittasks.workflow.doctor import Check
from tests.support.cli import tasks
from tests.support.git import git
from tests.workflow.ground import begun, opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    begun(folder)
    return folder


def examined(folder: Path, *, fix: bool = False) -> doctor.Examination:
    return doctor.examine(lambda: opened(folder), os.environ, fix=fix)


def about(found: doctor.Examination, name: str) -> list[Check]:
    return [check for check in found.checks if check.name == name]


def test_a_sound_clone_fails_at_nothing(folder: Path) -> None:
    found = examined(folder)
    assert [check for check in found.checks if check.verdict == "fail"] == []
    assert about(found, "ledger") == [Check("ledger", "ok", "The branch gittasks holds 0 tasks.")]
    assert about(found, "backup") == [
        Check("backup", "ok", "The backup of the ledger is at its tip.")
    ]
    assert about(found, "sandbox")[0].sentence.split(":")[0] in ("bubblewrap", "limits", "bare")


def _no_ledger(folder: Path) -> None:
    git(folder, "update-ref", "-d", "refs/heads/gittasks")


def _no_backup(folder: Path) -> None:
    git(folder, "update-ref", "-d", "refs/gittasks/backup")


def _lock(folder: Path) -> None:
    (folder / ".git" / "refs" / "heads" / "gittasks.lock").write_text("")


def _pool(folder: Path) -> None:
    (folder / ".git" / "gittasks" / "agents.json").write_text('{"agents": [{"type": "x"}]}')


def _agent(folder: Path) -> None:
    agent = {"type": "command", "command": ["/nowhere/agent"]}
    path = folder / ".git" / "gittasks" / "agents.json"
    path.write_text(json.dumps({"agents": [agent]}))


def _hook(folder: Path) -> None:
    path = folder / ".git" / "hooks" / "pre-commit"
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def _signing(folder: Path) -> None:
    git(folder, "config", "commit.gpgSign", "true")


def _remote(folder: Path) -> None:
    git(folder, "remote", "add", "origin", "/nowhere")
    git(folder, "config", "gittasks.remote", "origin")


@pytest.mark.parametrize(
    ("hurt", "name", "verdict", "words", "fix"),
    [
        (_no_ledger, "ledger", "fail", "The branch gittasks of the ledger is missing.", "git tasks recover"),
        (_no_backup, "backup", "warn", "The ledger has no backup.", "git tasks recover"),
        (_lock, "locks", "warn", "gittasks.lock is locked; unless", "git tasks recover"),
        (_pool, "pool", "fail", 'agents[0].type: "x" is none of', "$EDITOR "),
        (_agent, "agents", "fail", "command: There is no program /nowhere/agent here.", ""),
        (_hook, "hooks", "warn", "The hook pre-commit runs at every commit of an agent", "git config"),
        (_signing, "signing", "warn", "asks for a key at every commit", "git config commit.gpgSign false"),
        (_remote, "remote", "warn", "The remote origin does not answer: ", "git tasks sync"),
    ],
    ids=lambda value: getattr(value, "__name__", "") if callable(value) else "",
)  # fmt: skip
def test_what_is_broken_is_found_and_what_helps_is_said(
    folder: Path, hurt: Callable[[Path], None], name: str, verdict: str, words: str, fix: str
) -> None:
    hurt(folder)
    found = about(examined(folder), name)[0]
    assert (found.verdict, words in found.sentence) == (verdict, True), found
    assert found.fix.startswith(fix)


def test_fix_brings_a_lost_ledger_back_and_says_so(folder: Path) -> None:
    tip = git(folder, "rev-parse", "gittasks")
    _no_ledger(folder)
    found = examined(folder, fix=True)
    assert found.done == (f"The branch gittasks was missing; it is back at {tip[:12]}.",)
    assert not found.has_failed
    assert found.tip == tip


def test_a_process_that_nobody_looks_after_is_found(folder: Path) -> None:
    mark = orphans.new_mark(opened(folder).host)
    with subprocess.Popen(["sleep", "60"], env={**os.environ, orphans.VARIABLE: mark}) as stray:
        try:
            time.sleep(0.05)
            found = about(examined(folder), "processes")
        finally:
            stray.kill()
    assert found == [
        Check(
            "processes",
            "warn",
            "A process of an agent is left that nobody looks after.",
            f"kill {stray.pid}",
        )
    ]


def test_outside_a_repository_the_host_is_looked_at(tmp_path: Path) -> None:
    found = doctor.examine(lambda: opened(tmp_path), os.environ)
    assert [check.name for check in found.checks] == ["repository", "sandbox", "program"]
    assert found.has_failed


def test_a_configuration_that_cannot_be_read_is_one_fault(folder: Path) -> None:
    with (folder / ".git" / "config").open("a") as config:
        config.write("[bad\n")
    found = doctor.examine(lambda: opened(folder), os.environ)
    assert [check.name for check in found.checks if check.verdict == "fail"] == ["repository"]


def test_the_command_answers_in_a_broken_repository(folder: Path) -> None:
    _no_ledger(folder)
    done = tasks(folder, "doctor", "--json", check=1)
    answer = done.json()
    assert (answer["kind"], answer["ledger"], done.err) == ("doctor", None, "")
    assert {check["name"] for check in answer["data"]["checks"]} >= {"git", "ledger", "sandbox"}
    shown = tasks(folder, "doctor", check=1).out
    assert "fail  ledger     The branch gittasks of the ledger is missing.\n" in shown
    assert "                 git tasks recover\n" in shown
    assert Repository.open(str(folder)).ref_ids(["refs/heads/gittasks"]) == {}
