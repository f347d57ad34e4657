"""An entry goes into a file of others and comes out again: every other byte is what it was."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.workflow.registering import json_entry, toml_block
from gittasks.workflow.registering.json_entry import CannotEdit
from tests.support.examples import examples

ENTRY = {"command": "git", "args": ["tasks", "mcp"]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "{}",
            '{\n  "mcpServers": {\n    "gittasks": {\n      "command": "git",\n'
            '      "args": ["tasks", "mcp"]\n    }\n  }\n}',
        ),
        (
            '{\n    "a": 1,\n    "mcpServers": {}\n}\n',
            '{\n    "a": 1,\n    "mcpServers": {\n        "gittasks": {\n'
            '            "args": ["tasks", "mcp"],\n            "command": "git"\n        }\n'
            "    }\n}\n",
        ),
        (
            '{\r\n\t"mcpServers": {\r\n\t\t"x": {}\r\n\t}\r\n}',
            '{\r\n\t"mcpServers": {\r\n\t\t"x": {},\r\n\t\t"gittasks": {\r\n'
            '\t\t\t"args": ["tasks", "mcp"],\r\n\t\t\t"command": "git"\r\n\t\t}\r\n\t}\r\n}',
        ),
        (
            '{"mcpServers":{"x":{}}}',
            '{"mcpServers":{"x":{},"gittasks": {"args": ["tasks", "mcp"], "command": "git"}}}',
        ),
    ],
)
def test_an_entry_is_written_in_the_style_of_the_file(before: str, after: str) -> None:
    assert json_entry.added(before) == after
    assert json_entry.removed(after) == before


SPACE = st.text(" \t\r\n", max_size=4)
KEYS = st.sampled_from(["x", "mcpServers ", "é", 'a"b', "{", "}", "//"])
LEAVES = st.sampled_from(["1", "-2.5e3", "true", "null", '"a, b"', '"\\u00e9\\n"', "[]", "[1, {}]"])


@st.composite
def objects(draw: st.DrawFn, depth: int = 2, servers: bool = False) -> str:
    """Returns an object as anybody could have written it."""
    members = []
    for key in draw(st.lists(KEYS, max_size=3, unique=True)):
        value = draw(objects(depth - 1) if depth and draw(st.booleans()) else LEAVES)
        members.append((key, value))
    if servers and draw(st.booleans()):
        position = draw(st.integers(0, len(members)))
        members.insert(position, ("mcpServers", draw(objects(depth - 1))))
    parts = [
        f"{draw(SPACE)}{json.dumps(key)}{draw(SPACE)}:{draw(SPACE)}{value}{draw(SPACE)}"
        for key, value in members
    ]
    return "{" + (",".join(parts) if parts else draw(SPACE)) + "}"


@given(objects(servers=True), SPACE, SPACE)
@examples(300)
def test_what_is_added_to_any_object_can_be_taken_out(text: str, lead: str, rest: str) -> None:
    before = lead + text + rest
    assert json_entry.state_of(before) == "none"
    after = json_entry.added(before)
    expected: dict[str, Any] = json.loads(before)
    expected.setdefault("mcpServers", {})["gittasks"] = ENTRY
    assert json.loads(after) == expected
    assert json_entry.state_of(after) == "ours"
    assert json_entry.removed(after) == before


def test_what_others_added_meanwhile_stays() -> None:
    text = json_entry.whole().replace('"mcpServers": {', '"mcpServers": {\n    "y": {},')
    text = text.replace('"args": [', '"args": [ ').replace("    }\n", '    },\n    "z": {}\n')
    assert json.loads(json_entry.removed(text)) == {"mcpServers": {"y": {}, "z": {}}}
    first = json_entry.whole().replace("    }\n", '    },\n    "z": {}\n')
    assert json_entry.removed(first) == '{\n  "mcpServers": {\n    "z": {}\n  }\n}\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is not JSON"),
        ("{,}", "it is not JSON"),
        ("\ufeff{}", "it is not JSON"),
        ("[]", "it is no JSON object"),
        ('{"mcpServers": []}', "mcpServers is no object in it"),
        ('{"mcpServers": {}, "mcpServers": {}}', "it says the same twice"),
    ],
)
def test_a_file_that_is_no_such_object_is_left_alone(text: str, why: str) -> None:
    with pytest.raises(CannotEdit, match=why):
        json_entry.state_of(text)


@pytest.mark.parametrize(
    ("entry", "state"),
    [
        ({"type": "stdio", "command": "git", "args": ["tasks", "mcp"], "env": {}}, "same"),
        ({"command": "git", "args": ["tasks", "mcp"]}, "ours"),
        ({"command": "git", "args": ["tasks", "-C", "x", "mcp"]}, "other"),
        ("git tasks mcp", "other"),
    ],
)
def test_an_entry_of_the_name_is_known_for_what_it_is(entry: Any, state: str) -> None:
    assert json_entry.state_of(json.dumps({"mcpServers": {"gittasks": entry}})) == state


@pytest.mark.parametrize(
    "before",
    [
        "",
        "\n",
        "a = 1",
        "a = 1\n",
        "a = 1\r\n[b]\r\n",
        "# \u00e9\n\n\n",
        "[mcp_servers.x]\nurl = 'u'",
    ],
)
def test_lines_at_the_end_come_out_again(before: str) -> None:
    after = toml_block.added(before)
    server = tomllib.loads(after)["mcp_servers"]["gittasks"]
    assert {name: server[name] for name in ENTRY} == ENTRY
    assert after.startswith(before)
    assert toml_block.removed(after) == before
    assert toml_block.removed(after + "[z]\n") == before + "[z]\n"
    older = after.replace("= 600", "= 6")
    assert (toml_block.state_of(older), toml_block.renewed(older)) == ("old", after)


def test_settings_that_nothing_can_be_added_to_are_left_alone() -> None:
    with pytest.raises(CannotEdit, match="in a form that nothing can be added to"):
        toml_block.added("mcp_servers = {}\n")
    with pytest.raises(CannotEdit, match="it is not TOML"):
        toml_block.state_of("a =")
    with pytest.raises(CannotEdit, match="mcp_servers is no table in it"):
        toml_block.state_of("mcp_servers = 1")
    own = '[mcp_servers.gittasks]\ncommand = "git"\nargs = ["tasks", "mcp"]\n'
    assert toml_block.state_of(own) == "same"
    assert toml_block.state_of(own.replace('git"', 'x"')) == "other"
