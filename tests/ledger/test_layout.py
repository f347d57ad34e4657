"""Where things are in the tree."""

from __future__ import annotations

import pytest

from gittasks.domain import fields
from gittasks.ledger import layout
from tests.support.builders import a_task


def test_open_and_closed_documents_have_folders_of_a_hundred() -> None:
    assert layout.path_of(a_task(42)) == "tasks/0000/000042.md"
    assert layout.path_of(a_task(12345, state="CLOSED")) == "closed/0123/012345.md"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("tasks/0000/000042.md", ("000042", False)),
        ("closed/0123/012345.md", ("012345", True)),
        ("tasks/0001/000042.md", None),
        ("tasks/0000/000000.md", None),
        ("tasks/000042.md", None),
        ("tasks/0000/000042.md/x", None),
        ("tasks/0000/42.md", None),
        ("tasks/0000/000042.txt", None),
        ("other/0000/000042.md", None),
        ("project.yaml", None),
    ],
)
def test_only_the_path_of_a_document_names_a_task(
    path: str, place: tuple[str, bool] | None
) -> None:
    assert layout.parse_path(path) == place


@pytest.mark.parametrize(
    ("path", "is_text"),
    [
        ("template.md", True),
        ("prompts/WORK.md", True),
        ("prompts/work-2_b.md", True),
        ("prompts/.md", False),
        ("prompts/a/b.md", False),
        ("prompts/ä.md", False),
        ("prompts/WORK", False),
        ("project.yaml", False),
        ("README.md", False),
    ],
)
def test_shared_texts_are_the_template_and_the_prompts(path: str, is_text: bool) -> None:
    assert layout.is_shared_text(path) is is_text


def test_the_limit_of_a_document_is_what_the_reader_of_documents_has() -> None:
    assert layout.DOCUMENT_LIMIT == fields.DOCUMENT_LIMIT


def test_the_first_commit_never_changes() -> None:
    assert layout.root_commit("4b825dc642cb6eb9a060e54bf8d69288fbee4904") == (
        b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
        b"author gittasks <gittasks@gittasks.invalid> 1704067200 +0000\n"
        b"committer gittasks <gittasks@gittasks.invalid> 1704067200 +0000\n"
        b"\nThe root of every task ledger\n"
    )
