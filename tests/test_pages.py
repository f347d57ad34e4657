"""What the pages name is there: files of the checkout, other pages, headings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
PACKAGE = CHECKOUT / "gittasks"
# Keys of click's, not of git's configuration; packages are named as strings, too.
NO_SETTINGS = {"session", "versions"}
# Set for the checks that are run, so that what they leave behind is found.
NO_VARIABLES = {"GITTASKS_CHECK"}
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FILE = re.compile(r"`((?:gittasks|tests|docs|hooks)/[\w./-]+\.\w+)`")


def name_of(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


def test_there_are_pages() -> None:
    assert len(PAGES) > 15


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_of_the_checkout(page: Path) -> None:
    targets = [link.partition("#")[0] for link in _LINK.findall(page.read_text(encoding="utf-8"))]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_exist(page: Path) -> None:
    named = _FILE.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if not (CHECKOUT / name).exists()] == []


def test_every_page_is_reached_from_the_first_ones() -> None:
    reached = {CHECKOUT / "README.md", CHECKOUT / "docs" / "index.md"}
    waiting = list(reached)
    while waiting:
        page = waiting.pop()
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.exists() and target not in reached:
                reached.add(target)
                waiting.append(target)
    lost = [name_of(page) for page in PAGES if page not in reached]
    assert [name for name in lost if not name.startswith("docs/changelog.d/")] == []


def test_every_setting_of_a_clone_is_explained() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    read = set(re.findall(r"[\"']gittasks\.([a-z]+(?:[A-Z][a-z]+)*)[\"']", text)) - NO_SETTINGS
    page = (CHECKOUT / "docs" / "configuration.md").read_text(encoding="utf-8")
    part = page.split("## Of one clone")[1].split("##")[0]
    assert len(read) > 5
    assert set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) == read


def test_every_variable_of_the_environment_is_explained() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    read = set(re.findall(r"\"(GITTASKS_[A-Z]+)\"", text)) - NO_VARIABLES
    page = (CHECKOUT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert len(read) > 3
    assert set(re.findall(r"^\| `(GITTASKS_\w+)` \|", page, re.MULTILINE)) == read
