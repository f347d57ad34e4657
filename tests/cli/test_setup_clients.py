"""`setup mcp|claude|codex|pi`: shown, written once, and taken back to the byte."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.cli import Result, tasks_inprocess
from tests.support.git import make_repository

SKILLS = ("gittasks-inbox", "gittasks-watch", "gittasks-worker")
WHOLE = """\
{
  "mcpServers": {
    "gittasks": {
      "command": "git",
      "args": [
        "tasks",
        "mcp"
      ]
    }
  }
}
"""
CLIENTS = ("mcp", "claude", "codex", "pi")


@pytest.fixture
def folder(home: Path) -> Path:
    return make_repository(home / "repo")


def setup(folder: Path, *words: str, check: int = 0) -> Result:
    return tasks_inprocess(folder, "setup", *words, check=check)


def state(home: Path) -> dict[str, tuple[int, bytes]]:
    """Returns mode and bytes of all files of a person, the repository's own left out."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(home.rglob("*")):
        if ".git" not in path.parts:
            data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            found[str(path.relative_to(home))] = (path.lstat().st_mode, data)
    return found


def test_a_file_of_its_own_is_shown_and_made(folder: Path) -> None:
    file = folder / ".mcp.json"
    printed = setup(folder, "mcp", "--print")
    assert printed.out == f"would make {file}\n{WHOLE}"
    assert not file.exists()
    assert setup(folder, "mcp").out == f"{WHOLE}made {file}\n"
    assert file.read_text(encoding="utf-8") == WHOLE
    assert setup(folder, "mcp").out == f"in place {file}\n"


@pytest.mark.parametrize("client", CLIENTS)
def test_what_was_made_goes_away_again(home: Path, folder: Path, client: str) -> None:
    before = state(home)
    setup(folder, client)
    made = state(home)
    assert made != before
    setup(folder, client)
    assert state(home) == made
    setup(folder, client, "--remove", "--print")
    assert state(home) == made
    setup(folder, client, "--remove")
    assert state(home) == before
    assert setup(folder, client, "--remove").err == "There is nothing to take out.\n"


@pytest.mark.parametrize("client", CLIENTS)
def test_what_was_there_gets_its_bytes_back(home: Path, folder: Path, client: str) -> None:
    """Without a last line end, with the line ends of others, in folders that are empty."""
    files = {
        ".mcp.json": b'{"mcpServers":\r\n\t{ "x" : {"command":"x"}   } }',
        ".pi/mcp.json": b"{\n}\n\n",
        ".claude/skills/mine/SKILL.md": b"mine",
        ".claude/settings.json": b"{}",
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    (folder / ".agents" / "skills").mkdir(parents=True)
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_bytes(b'model = "m"\r\n[projects."/x"]')
    before = state(home)
    setup(folder, client)
    assert state(home) != before
    setup(folder, client, "--remove")
    assert state(home) == before


def test_only_the_new_lines_of_a_file_are_shown(folder: Path) -> None:
    file = folder / ".mcp.json"
    file.write_text('{\n  "mcpServers": {\n    "x": {}\n  }\n}\n', encoding="utf-8")
    lines = setup(folder, "mcp").out.splitlines()
    assert lines == [
        '    "x": {},', '    "gittasks": {', '      "args": ["tasks", "mcp"],',
        '      "command": "git"', "    }", f"added to {file}",
    ]  # fmt: skip


def test_skills_have_the_names_of_their_folders(folder: Path) -> None:
    setup(folder, "claude")
    for name in SKILLS:
        text = (folder / ".claude" / "skills" / name / "SKILL.md").read_text(encoding="utf-8")
        head = text.split("---\n")[1].splitlines()
        assert head[0] == f"name: {name}"
        assert head[1].startswith("description: ")
        assert len(head[1]) < 300


def test_skills_name_only_tools_and_commands_that_there_are(folder: Path) -> None:
    import re

    from gittasks.cli.catalogue import COMMANDS
    from gittasks.mcp.tools import TOOLS

    known = {tool.name for tool in TOOLS}
    text = setup(folder, "claude", "--print").out
    words = set(re.findall(r"`((?:task|pool|inbox|queue)(?:_\w+)?)`", text))
    assert words <= known
    assert len(words) > 8
    assert set(re.findall(r"git tasks (\w+)", text)) <= {*COMMANDS}


def test_a_skill_that_somebody_changed_is_left_alone(folder: Path) -> None:
    setup(folder, "pi")
    file = folder / ".pi" / "skills" / SKILLS[0] / "SKILL.md"
    file.write_text(file.read_text(encoding="utf-8") + "More.\n", encoding="utf-8")
    changed = file.read_bytes()
    for words in ((), ("--remove",)):
        assert f"left alone {file}: somebody has changed it" in setup(folder, "pi", *words).out
        assert file.read_bytes() == changed
    assert not (folder / ".pi" / "mcp.json").exists()


def test_a_skill_of_an_older_version_is_renewed(folder: Path) -> None:
    from gittasks.workflow.registering import skills

    setup(folder, "pi")
    file = folder / ".pi" / "skills" / SKILLS[0] / "SKILL.md"
    now = file.read_bytes()
    older = b"older\n"
    file.write_bytes(older + b"\n<!-- git tasks setup: %s -->\n" % skills._digest(older))
    assert f"renewed {file}" in setup(folder, "pi").out
    assert file.read_bytes() == now


def test_links_and_what_cannot_be_read_are_left_alone(home: Path, folder: Path) -> None:
    (home / "dotfiles").mkdir()
    (folder / ".claude").symlink_to(home / "dotfiles")
    (folder / ".mcp.json").write_text("{", encoding="utf-8")
    before = state(home)
    said = setup(folder, "claude")
    assert state(home) == before
    assert said.out.splitlines()[0] == f"left alone {folder}/.mcp.json: it is not JSON"
    assert said.out.splitlines()[1].endswith(f"SKILL.md: {folder}/.claude is a link")
    assert f"Put these lines into {folder}/.mcp.json yourself:\n{WHOLE}" in said.err
    (folder / ".mcp.json").unlink()
    (folder / ".mcp.json").symlink_to(home / "dotfiles" / "mcp.json")
    assert "is a link" in setup(folder, "mcp").out
    assert os.listdir(home / "dotfiles") == []


def test_a_server_of_that_name_that_is_another_one_stays(folder: Path) -> None:
    file = folder / ".mcp.json"
    file.write_text('{"mcpServers": {"gittasks": {"command": "x"}}}', encoding="utf-8")
    assert "another server named gittasks" in setup(folder, "mcp").out
    assert setup(folder, "mcp", "--remove").out == ""
    assert file.read_text(encoding="utf-8") == '{"mcpServers": {"gittasks": {"command": "x"}}}'


def test_codex_keeps_its_settings_where_it_is_told(folder: Path, tmp_path: Path) -> None:
    tasks_inprocess(folder, "setup", "codex", env={"CODEX_HOME": str(tmp_path / "own")})
    text = (tmp_path / "own" / "config.toml").read_text(encoding="utf-8")
    assert 'default_tools_approval_mode = "approve"' in text


def test_the_steps_are_told_as_json(folder: Path) -> None:
    found = tasks_inprocess(folder, "setup", "mcp", "--json").json()
    assert found["data"] == {
        "client": "mcp",
        "dry_run": False,
        "steps": [{"path": f"{folder}/.mcp.json", "action": "make", "reason": "", "text": WHOLE}],
    }
    assert json.loads((folder / ".mcp.json").read_text(encoding="utf-8"))


def test_nothing_is_registered_where_agents_work(folder: Path, home: Path) -> None:
    tasks_inprocess(folder, "init", "-q")
    tasks_inprocess(folder, "new", "A", "--enter", "work")
    tree = Path(tasks_inprocess(folder, "start", "1", "--as", "wim").out.strip())
    assert "the worktree of 000001" in setup(tree, "claude", check=5).err
    as_agent = {"GITTASKS_AGENT": "wim"}
    refused = tasks_inprocess(folder, "setup", "claude", env=as_agent, check=5)
    assert refused.err.startswith("error: Only the person at this machine")
    bare = make_repository(home / "bare.git", bare=True)
    assert "no checkout" in setup(bare, "claude", check=5).err
