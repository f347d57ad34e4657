"""What the contracts between folders cannot say, read from the source text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGE = CHECKOUT / "gittasks"
TESTS = CHECKOUT / "tests"

# What a test may replace: the clock, the identity, the agent. Everything else is real.
PATCHABLE = {"clock", "identity", "agent"}
BLIND_WRITE = re.compile(r"""["']update-ref["']""")
# Words of git that have their own meaning there, whatever the glossary says about tasks.
GIT_WORDS = {"branch", "lock", "log"}


def modules(folder: Path, at_least: int) -> list[Path]:
    """Returns the modules of a folder; a rule that sees too few is looking in the wrong place."""
    found = sorted(folder.rglob("*.py"))
    assert len(found) >= at_least, f"only {len(found)} modules below {folder}"
    return found


def name_of(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def test_tests_replace_nothing_but_clock_identity_and_agent() -> None:
    replaced = [
        f"{name_of(path)}:{call.lineno} replaces {target}"
        for path in modules(TESTS, 15)
        for call, target in _replacements(parse(path))
        if target not in PATCHABLE
    ]
    assert replaced == []


def _replacements(tree: ast.Module) -> Iterator[tuple[ast.Call | ast.Import | ast.ImportFrom, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            if any("mock" in name.split(".") for name in names):
                yield node, "anything, by mocks"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "monkeypatch.setattr":
            last = node.args[-2] if len(node.args) > 1 else node.args[0]
            yield node, ast.literal_eval(last) if isinstance(last, ast.Constant) else "?"


def test_refs_are_moved_only_where_the_expected_value_is_given() -> None:
    movers = [
        name_of(path)
        for path in modules(PACKAGE, 60)
        if BLIND_WRITE.search(path.read_text(encoding="utf-8"))
    ]
    assert movers == ["gittasks/plumbing/refs.py"]


def test_every_module_says_what_it_is() -> None:
    silent = [
        name_of(path)
        for path in [*modules(PACKAGE, 60), *modules(TESTS, 15)]
        if path.read_text(encoding="utf-8").strip() and ast.get_docstring(parse(path)) is None
    ]
    assert silent == []


def test_every_module_defers_its_annotations() -> None:
    eager = [
        name_of(path)
        for path in [*modules(PACKAGE, 60), *modules(TESTS, 15)]
        if (text := path.read_text(encoding="utf-8")).count("\n") > 5
        and "from __future__ import annotations\n" not in text
    ]
    assert eager == []


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = [
        name_of(path)
        for path in [*modules(PACKAGE, 60), *modules(TESTS, 15)]
        if path.stem in {"utils", "util", "helpers", "common", "manager", "misc"}
    ]
    assert drawers == []


def test_nothing_in_the_package_is_decided_by_an_enum_or_a_dataclass() -> None:
    """Both cost more at start-up than all the classes they would describe."""
    users = [
        f"{name_of(path)}:{node.lineno}"
        for path in modules(PACKAGE, 60)
        for node in parse(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and {"enum", "dataclasses"}
        & {*(alias.name for alias in node.names), getattr(node, "module", None)}
    ]
    assert users == []


def commands(at_least: int = 10) -> list[Path]:
    """Returns the files of the commands."""
    folder = PACKAGE / "cli" / "commands"
    return [path for path in modules(folder, at_least) if path.stem != "__init__"]


def command_name(path: Path) -> str:
    """Returns the word a user types for the command of a file."""
    return path.stem.rstrip("_").replace("_", "-")


def test_a_command_is_found_by_its_file_name() -> None:
    declared = {name_of(path): _declared_commands(parse(path)) for path in commands()}
    assert declared == {name_of(path): [("command", command_name(path))] for path in commands()}


def _declared_commands(tree: ast.Module) -> list[tuple[str, str]]:
    """Returns name in the file and name for the user: of a function, or of a group of them."""
    makers = {
        (node.name, call)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for call in node.decorator_list
    } | {
        (ast.unparse(node.targets[0]), node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
    }
    return [
        (name, ast.literal_eval(call.args[0]))
        for name, call in makers
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {"frame.command", "frame.Group"}
    ]


def test_the_table_of_commands_and_their_files_agree() -> None:
    from gittasks.cli.catalogue import COMMANDS

    assert {command_name(path) for path in commands()} == set(COMMANDS)


def test_a_command_asks_the_workflow() -> None:
    idle = [
        path.stem
        for path in commands()
        if not any(name.startswith("gittasks.workflow") for name in _imported(parse(path)))
    ]
    # They speak about the commands themselves, the tool, and who has opened the project.
    assert idle == ["help", "version", "whoami"]


def test_every_verb_of_the_workflow_is_used() -> None:
    users = [
        path
        for path in modules(PACKAGE, 60)
        if {"cli", "mcp", "runner", "workflow"} & set(path.parts)
    ]
    users.append(PACKAGE / "__init__.py")
    imported = {name for path in users for name in _imported(parse(path))}
    unused = [
        name_of(path)
        for path in modules(PACKAGE / "workflow", 10)
        if path.stem != "__init__"
        and ".".join(path.relative_to(CHECKOUT).with_suffix("").parts) not in imported
    ]
    assert unused == []


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_a_rejected_word_names_nothing() -> None:
    rejected = _rejected_words()
    assert len(rejected) >= 3
    used = [
        f"{name_of(path)}:{line} {name}"
        for path in modules(PACKAGE, 60)
        for line, name in _names(parse(path))
        if rejected & set(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower()))
    ]
    assert used == []


def _rejected_words() -> set[str]:
    """Returns the words of the glossary's last table, under its heading with "reject"."""
    page = CHECKOUT / "docs" / "glossary.md"
    if not page.exists():
        pytest.skip("the glossary is not written yet")
    part = re.split(r"^#+ .*[Rr]eject.*$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    part = re.split(r"^#+ ", part, flags=re.MULTILINE)[0]
    first_cells = re.findall(r"^\s*(?:[-*]|\|)\s*\W*([a-z]+)", part, flags=re.MULTILINE)
    return set(first_cells) - GIT_WORDS - {"word", "rejected", "instead"}


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
