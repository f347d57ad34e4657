"""The page about agents says what the rules say."""

from __future__ import annotations

import re

from gittasks.domain.turn import ISSUES
from tests.support.scenarios import CHECKOUT


def test_the_page_lists_every_issue_with_its_attempts() -> None:
    page = (CHECKOUT / "docs" / "agents.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert rows == [(name, str(rule.attempts), rule.held) for name, rule in ISSUES.items()]
