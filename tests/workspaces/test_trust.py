"""Which commands a person here has approved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gittasks.domain.errors import Refused
from gittasks.workspaces.trust import Approval, Trust


def test_only_the_exact_text_is_trusted(tmp_path: Path) -> None:
    trust = Trust(str(tmp_path))
    assert trust.approve(["make test", "make lint"], "Ada", 5) == ("make test", "make lint")
    assert trust.untrusted(["make test", "make test ", "make lint"]) == ("make test ",)


def test_an_approval_says_who_and_when(tmp_path: Path) -> None:
    Trust(str(tmp_path)).approve(["b"], "Ada", 5)
    Trust(str(tmp_path)).approve(["a", "b"], "Bob", 6)
    approvals = Trust(str(tmp_path)).approvals()
    assert approvals == (Approval("b", "Ada", 5), Approval("a", "Bob", 6))


def test_a_revoked_command_is_no_longer_trusted(tmp_path: Path) -> None:
    trust = Trust(str(tmp_path))
    trust.approve(["a", "b", "c"], "Ada", 5)
    gone = [trust.revoke(["b", "never there"]), trust.revoke()]
    assert (gone, trust.approvals()) == ([("b",), ("a", "c")], ())


def test_where_it_is_never_nothing_is_trusted(tmp_path: Path) -> None:
    Trust(str(tmp_path)).approve(["a"], "Ada", 5)
    trust = Trust(str(tmp_path), "never")
    assert trust.untrusted(["a"]) == ("a",)
    with pytest.raises(Refused, match=r"gittasks\.trust is never"):
        trust.approve(["b"], "Ada", 6)


def test_no_commands_need_no_trust(tmp_path: Path) -> None:
    assert Trust(str(tmp_path), "never").untrusted([]) == ()


def test_a_row_that_was_tampered_with_approves_nothing(tmp_path: Path) -> None:
    rows = {"commands": [{"command": "a"}, 7, {"command": "b", "by": "Ada", "at": 5}]}
    (tmp_path / "trust.json").write_text(json.dumps(rows))
    assert Trust(str(tmp_path)).approvals() == (Approval("b", "Ada", 5),)
